"""The op types of the netlist language (OPS 1): a file for each, or for those that are alike. Behaviour stands in the
folder of the same name in `buda_emu.emulator.ops`."""

from buda_emu.spec.ops.declaration import Family, Group, OpType, OpTypes, Trait
from buda_emu.spec.ops.elementwise import BINARY, COPIES, QUANTIZATION, SFPU, SFPU_TYPES
from buda_emu.spec.ops.moves import EMBEDDING, REDUCE, REFUSED, SPLICE, TILIZER, TOPK
from buda_emu.spec.ops.products import DEPTHWISE, FUSED, MATMUL

__all__ = ["OP_TYPES", "SFPU_TYPES", "Family", "Group", "OpType", "Trait"]

OP_TYPES = OpTypes(
    (
        MATMUL, DEPTHWISE, *BINARY, *QUANTIZATION, *COPIES, *SFPU, REDUCE, SPLICE, EMBEDDING, TILIZER, TOPK, FUSED,
        *REFUSED,
    )
)  # fmt: skip
