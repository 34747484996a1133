"""The op types of the netlist language (OPS 1): a file for each, or for those that are alike. Behaviour stands in the
folder of the same name in `buda_emu.ops`."""

from buda_emu.spec.ops.binary import BINARY
from buda_emu.spec.ops.copies import COPIES
from buda_emu.spec.ops.declaration import Family, Group, OpType, Trait
from buda_emu.spec.ops.depthwise import DEPTHWISE
from buda_emu.spec.ops.embedding import EMBEDDING
from buda_emu.spec.ops.fused import FUSED
from buda_emu.spec.ops.matmul import MATMUL
from buda_emu.spec.ops.outside import OpTypes
from buda_emu.spec.ops.quantization import QUANTIZATION
from buda_emu.spec.ops.reduce import REDUCE
from buda_emu.spec.ops.refused import REFUSED
from buda_emu.spec.ops.sfpu import SFPU, SFPU_TYPES
from buda_emu.spec.ops.splice import SPLICE
from buda_emu.spec.ops.tilizer import TILIZER
from buda_emu.spec.ops.topk import TOPK

__all__ = ["OP_TYPES", "SFPU_TYPES", "Family", "Group", "OpType", "Trait"]

OP_TYPES = OpTypes(
    (
        MATMUL, DEPTHWISE, *BINARY, *QUANTIZATION, *COPIES, *SFPU, REDUCE, SPLICE, EMBEDDING, TILIZER, TOPK, FUSED,
        *REFUSED,
    )
)  # fmt: skip
