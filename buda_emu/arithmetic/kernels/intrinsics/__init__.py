"""LLVM code that kernels call as functions: how a call is typed, and what it becomes.

The functions themselves stand among the kernels, in numpy, which defines them; each file here imports those for which
it has code. Importing this package makes them known to numba; only a process that compiles does so.
"""

from buda_emu.arithmetic.kernels.intrinsics import (
    conversions,
    dense_product,
    dst_words,
    eltwise_by_singles,
    fma,
    prepared,
    spills,
)
from buda_emu.arithmetic.kernels.intrinsics import loads_and_stores as lane_rows
from buda_emu.arithmetic.kernels.intrinsics import loads_and_stores as tile_memory

__all__ = [
    "conversions",
    "dense_product",
    "dst_words",
    "eltwise_by_singles",
    "fma",
    "lane_rows",
    "prepared",
    "spills",
    "tile_memory",
]
