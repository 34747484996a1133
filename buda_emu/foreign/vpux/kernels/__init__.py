"""Software kernels by their entry points: one declaration each, with operands, attributes and a numpy definition (VPUX
5). `declare.py` defines the declaration; the other files hold the kernels by subject."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from buda_emu.foreign.vpux.kernels import activations, eltwise, move, normalise, reduce
from buda_emu.foreign.vpux.kernels.declare import Call, Kernel, Tensor

_SHORT: Final = ("clamp", "relu", "sigmoid", "hswish", "tanh")  # names in the design documents


def _table() -> Mapping[str, Kernel]:
    kernels = {
        kernel.name: kernel for room in (activations, eltwise, normalise, reduce, move) for kernel in room.KERNELS
    }
    kernels.update({name: replace(kernels[f"activation_{name}"], name=name) for name in _SHORT})
    return MappingProxyType(kernels)


KERNELS: Final = _table()
"""All kernels by entry point."""

__all__ = ["KERNELS", "Call", "Kernel", "Tensor"]
