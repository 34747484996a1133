"""Tensor layouts: dimensions, their order in memory, strides and what is required of them (VPUX 1). Pure Python."""

from buda_emu.vpux.layout.dims import MemDim
from buda_emu.vpux.layout.order import DimsOrder
from buda_emu.vpux.layout.strides import StrideReqs, address, alloc_bits

__all__ = [
    "DimsOrder",
    "MemDim",
    "StrideReqs",
    "address",
    "alloc_bits",
]
