"""Software kernels by their entry points: one declaration each, with operands, attributes and a numpy definition (VPUX
5). `declare.py` defines the declaration; the other files hold the kernels by subject."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from buda_emu.foreign.vpux.kernels import move
from buda_emu.foreign.vpux.kernels.declare import Call, Kernel, Tensor
from buda_emu.foreign.vpux.kernels.elementwise import ACTIVATIONS, OPERATIONS_OF_TWO
from buda_emu.foreign.vpux.kernels.normalise import KERNELS as NORMALISING
from buda_emu.foreign.vpux.kernels.normalise import REDUCTIONS

_SHORT: Final = ("clamp", "relu", "sigmoid", "hswish", "tanh")  # names in the design documents


def _table() -> Mapping[str, Kernel]:
    """Return all kernels by entry point, some of them under their names in the design documents, too."""
    families = (ACTIVATIONS, OPERATIONS_OF_TWO, NORMALISING, REDUCTIONS, move.KERNELS)
    kernels = {kernel.name: kernel for family in families for kernel in family}
    kernels.update({name: replace(kernels[f"activation_{name}"], name=name) for name in _SHORT})
    return MappingProxyType(kernels)


KERNELS: Final = _table()
"""All kernels by entry point."""

__all__ = ["KERNELS", "Call", "Kernel", "Tensor"]
