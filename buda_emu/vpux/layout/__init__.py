"""Tensor layouts: dimensions, their order in memory, strides and what is required of them (VPUX 1). Pure Python."""

from buda_emu.vpux.layout.dims import MOST_DIMS, Dim, MemDim
from buda_emu.vpux.layout.order import CANONICAL_NAMES, OTHER_NAMES, DimsOrder
from buda_emu.vpux.layout.strides import Requirement, StrideReqs, address, alloc_bits

__all__ = [
    "CANONICAL_NAMES",
    "MOST_DIMS",
    "OTHER_NAMES",
    "Dim",
    "DimsOrder",
    "MemDim",
    "Requirement",
    "StrideReqs",
    "address",
    "alloc_bits",
]
