"""The ops of precision "device": what each op type makes of stored bits (DEVICE_NUMERICS 6.2).

An op is written once, on `units.Units`: run on `ReferenceUnits` it is the definition, on `KernelUnits` it is fast.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Final

from buda_emu.errors import InternalError, UnsupportedError
from buda_emu.spec.ops import OP_TYPES, Family

if TYPE_CHECKING:
    from buda_emu.ops.on_device.base import DeviceOp

# A module is imported when its family is first used, so that a run loads and compiles only the kernels it needs.
_MODULES: Final[Mapping[Family, str]] = {
    "matmul": "matmul",
    "depthwise": "depthwise",
    "binary": "binary",
    "quantization": "binary",
    "unary": "copy",
    "ethernet": "copy",
    "sfpu": "sfpu",
    "reduce": "reduce",
    "splice": "moves",
    "embedding": "moves",
    "tilizer": "moves",
    "topk": "topk",
    "fused": "fused",
}


def device_op(type: str) -> "DeviceOp":
    """The behaviour of an op type on the device. Raises UnsupportedError for a word that cannot be run."""
    from buda_emu.ops.on_device.base import DEVICE_OPS

    op_type = OP_TYPES.get(type)
    if op_type is None or op_type.family not in _MODULES:
        raise UnsupportedError(f"op type {type!r} cannot be run with precision device")
    import_module(f"buda_emu.ops.on_device.{_MODULES[op_type.family]}")
    if type not in DEVICE_OPS:
        raise InternalError(f"op type {type} has no implementation with precision device")
    return DEVICE_OPS[type]
