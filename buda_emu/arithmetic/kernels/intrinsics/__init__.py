"""LLVM code of the kernels of this room: how a call is typed, and what it becomes.

The functions themselves stand among the kernels, in numpy, which defines them; a file here has the name of theirs.
Importing this room makes them known to numba; only a process that compiles does so.
"""

from buda_emu.arithmetic.kernels.intrinsics import (
    blocks,
    dense_product,
    dst_words,
    early,
    eltwise_by_singles,
    fma,
    lane_rows,
    prepared,
    spills,
    tile_memory,
)

__all__ = [
    "blocks",
    "dense_product",
    "dst_words",
    "early",
    "eltwise_by_singles",
    "fma",
    "lane_rows",
    "prepared",
    "spills",
    "tile_memory",
]
