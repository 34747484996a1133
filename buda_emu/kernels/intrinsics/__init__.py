"""What kernels call that numba does not know: how it is typed, and the LLVM code that a call becomes.

The functions themselves stand among the kernels, in numpy, which defines them. Importing this room makes them known to
numba; only a process that compiles does so.
"""

from buda_emu.kernels.intrinsics import (
    blocks,
    crew,
    dense_product,
    early,
    eltwise_by_singles,
    fma,
    group_sums,
    lane_rows,
    parts,
    plain,
    prepared,
    shifts,
    spills,
    tile_memory,
)

__all__ = [
    "blocks",
    "crew",
    "dense_product",
    "early",
    "eltwise_by_singles",
    "fma",
    "group_sums",
    "lane_rows",
    "parts",
    "plain",
    "prepared",
    "shifts",
    "spills",
    "tile_memory",
]
