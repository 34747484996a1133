"""What an op type does: shape rule, reference function, kernel binding. The words themselves stand in `spec.ops`."""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Final

from buda_emu.errors import InternalError, UnsupportedError
from buda_emu.spec.ops import OP_TYPES, Family

if TYPE_CHECKING:
    from buda_emu.ops.base import Implementation

# A module is imported when its family is first used, so that a run loads and compiles only the kernels it needs.
_MODULES: Final[Mapping[Family, str]] = {
    "matmul": "matmul",
    "depthwise": "depthwise",
    "binary": "binary",
    "quantization": "quantization",
    "unary": "unary",
    "ethernet": "unary",
    "sfpu": "sfpu",
    "reduce": "reduce",
    "splice": "splice",
    "embedding": "embedding",
    "tilizer": "tilizer",
    "topk": "topk",
    "fused": "fused",
}


def implementation(type: str) -> "Implementation":
    """The behaviour of an op type. Raises UnsupportedError for an unknown word, or one that the reference refuses."""
    from buda_emu.ops.base import REGISTRY

    op_type = OP_TYPES.get(type)
    if op_type is None or op_type.family not in _MODULES:
        raise UnsupportedError(f"op type {type!r} cannot be run")
    import_module(f"buda_emu.ops.{_MODULES[op_type.family]}")
    if type not in REGISTRY:
        raise InternalError(f"op type {type} has no implementation")
    return REGISTRY[type]
