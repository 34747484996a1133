"""All features of the netlist language that can be exercised, one list a subject, derived from the tables of `spec`."""

from collections.abc import Mapping
from functools import cache
from typing import Final

from buda_emu.spec.attributes import ATTRIBUTES
from buda_emu.spec.blocking import LEGAL_TILE_DIMS
from buda_emu.spec.formats import NETLIST_FORMATS
from buda_emu.spec.ops import OP_TYPES
from buda_emu.spec.varinst import OPCODES

FIDELITIES: Final = ("LoFi", "HiFi2", "HiFi3", "HiFi4")
TMS: Final = (
    "broadcast r", "broadcast c", "broadcast z", "hslice", "hstack", "vslice", "vstack", "transpose", "pad",
    "input pad", "input unpad", "tile_broadcast r", "tile_broadcast c", "on a queue",
)  # fmt: skip
GRIDS: Final = ("one core", "row", "column", "rectangle", "transposed")
INSTRUCTIONS: Final = (
    "var", "staticvar", "param", "loop", "loop in a loop", "execute", "allocate_queue", "deallocate_queue",
    *(f"varinst {name}" for name in OPCODES),
)  # fmt: skip
SETTINGS: Final = (
    "prologue", "epilogue", "zero", "read_only", "variable pointer", "literal pointer", "rd_ptr_autoinc",
    "global_rdptr_autoinc", "global_wrptr_autoinc",
)  # fmt: skip
QUEUES: Final = (
    "from the host", "of an op", "between graphs", "ram of the host", "ram of an op", "in host memory", "flat",
    "several views", "wraps", "several buffers", *(f"tile {high}x{wide}" for high, wide in LEGAL_TILE_DIMS),
)  # fmt: skip
STRUCTURE: Final = (
    "several graphs", "several programs", "several chips", "graph on a list of chips", "temporal graph", "fused op",
    "fused op of several schedules", "gradient op", "untilized output", "several inputs of an epoch",
)  # fmt: skip


@cache
def lists() -> Mapping[str, tuple[str, ...]]:
    """By subject the names of all that there is: what the reference refuses is left out."""
    running = [op for op in OP_TYPES.values() if op.runs and OP_TYPES.is_own(op.name)]
    attributes = [
        f"{op.name} {name}" + (f"={word}" if word else "")
        for op in running
        for name, spec in ATTRIBUTES.items()
        if spec.is_legal_on(op.name) and (not spec.everywhere or spec.has_effect) and _is_of(name, op.name)
        for word in (spec.words if spec.words and name != "sfpu_op" else ("",))
    ]
    return {
        "op types": tuple(op.name for op in running),
        "attributes": tuple(attributes),
        "results in a format": tuple(NETLIST_FORMATS[: NETLIST_FORMATS.index("RawUInt8")]),
        "operands in a format": NETLIST_FORMATS,
        "queues in a format": NETLIST_FORMATS,
        "fidelities": tuple(f"{op.name} {word}" for op in running if op.has("multiplies") for word in FIDELITIES),
        "TMs": TMS,
        "grids": GRIDS,
        "instructions": INSTRUCTIONS,
        "queue settings": SETTINGS,
        "queues": QUEUES,
        "structure": STRUCTURE,
        "op types in fused ops": tuple(op.name for op in running if op.in_fused),
    }


_OF_PRODUCTS: Final = frozenset(("m_k", "u_kt", "bias", "accumulate", "sfpu_op", "zero_point"))
"""Attributes that every op may have, and that say something on few."""
_ON: Final[Mapping[str, tuple[str, ...]]] = {
    "m_k": ("matmul", "depthwise", "reduce"), "u_kt": ("matmul", "reduce"), "bias": ("matmul", "depthwise"),
    "accumulate": ("matmul",), "sfpu_op": ("matmul",),
    "zero_point": ("matmul", "quantization", "requantization", "dequantization"),
}  # fmt: skip


def _is_of(name: str, op_type: str) -> bool:
    """Whether an attribute says something on an op type."""
    if name == "vector":
        return OP_TYPES[op_type].has("vector unit")
    if name.startswith("relu"):
        return not OP_TYPES[op_type].has("sub-ops")
    return name not in _OF_PRODUCTS or op_type in _ON[name]
