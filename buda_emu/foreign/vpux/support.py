"""Find what a function uses and the emulator does not emulate, by name, in program order (VPUX 4, 8). No numpy."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from buda_emu.foreign.vpux.model import DYNAMIC, Attribute, Dense, Op, Opaque, Type
from buda_emu.foreign.vpux.program import Program, callee, entry_point, is_cache_op
from buda_emu.foreign.vpux.reader.table import OPS

PLAIN_MOVES: Final = ("VPUIP.NNDMA", "VPUIP.DMA", "VPUIP.Copy", "VPUIP.SyncDMA", "VPUIP.ConvertDMA")
NEVER_MOVES: Final = ("VPUIP.CompressDMAOp", "VPUIP.DecompressDMAOp", "VPUIP.GatherDMA")
SECTIONS: Final = ("Register", "MAC_Accumulators", "CSRAM")
TRAITS: Final = ("swizzlingScheme", "sparsityCompression", "compressionState")
SPLAT_TRANSFORMS: Final = frozenset(
    {
        "Reorder", "Reshape", "SubView", "MemPermute", "Transpose", "LayoutCast", "ConvertElemType", "CastElemType",
        "QuantCast",
    }
)  # fmt: skip
TRANSFORMS: Final = frozenset({"Reorder", "ConvertElemType", "CastElemType", "Reshape"})


def find_unsupported(
    program: Program, kernels: Mapping[str, object], raw: Collection[str]
) -> Iterator[tuple[str, Op | None]]:
    """Yield the names of what is not emulated, with the op; None for the function's arguments and blocks. The first one
    is the verdict.

    `kernels` are the entry points that can run, `raw` those of them that take elements of any type.
    """
    for op in program.ops:
        yield from ((name, op) for name in _op_reasons(program, op, kernels, raw))
    if program.function.blocks > 1:
        yield "block", None
    for value in program.function.arguments:
        if value.type is not None:
            yield from ((name, None) for name in type_reasons(value.type))


def _is_emulated(op: Op) -> bool:
    """Return whether the emulator runs ops like this one: those of a role that is emulated, and of data movements
    those that copy, permute, convert or have a descriptor."""
    if not op.known:
        return False
    role = OPS[op.name].role
    if role != "dma":
        return role != "named"
    if op.name in NEVER_MOVES:
        return False
    permuted = op.name == "VPUIP.PermuteDMA" and "mem_perm" in op.attributes
    return op.name in PLAIN_MOVES or permuted or isinstance(op.attributes.get("dma_descriptor"), Opaque)


def type_reasons(type_: Type) -> Iterator[str]:
    """Yield the names of what is not emulated in a type."""
    if type_.kind in ("other", "bounded"):
        yield f"type:{type_.name}"
    elif type_.kind != "barrier":
        yield from _buffer_reasons(type_)
        for trait in TRAITS:
            if trait in type_.traits:
                yield f"type:{trait}"
        for name, trait in type_.traits.items():
            if isinstance(trait, Type) or "." in name:  # a layout of another kind
                yield f"type:{name}"


def _buffer_reasons(type_: Type) -> Iterator[str]:
    """Yield what is not emulated of a buffer's distribution, shape and elements."""
    mode = type_.traits.get("mode")
    if type_.is_distributed and mode != "DUPLICATED":
        yield f"type:DistributedBuffer:{mode}"
    if type_.shape is None or DYNAMIC in type_.shape:
        yield "type:dynamic"
    if type_.bits == 0 or (type_.bits % 8 and type_.strides is not None):
        yield f"type:{type_.element_name}"


def _op_reasons(program: Program, op: Op, kernels: Mapping[str, object], raw: Collection[str]) -> Iterator[str]:
    """Yield the names of what an op needs that is not emulated: itself, its types, and what its kind requires."""
    if not _is_emulated(op):
        yield op.name
    if op.name != "constant":  # a scalar
        for result_type in op.types:
            yield from type_reasons(result_type)
    yield from _own_reasons(program, op, kernels, raw)


def _own_reasons(program: Program, op: Op, kernels: Mapping[str, object], raw: Collection[str]) -> Iterator[str]:
    """Yield the names of what an op of its kind needs that is not emulated, besides itself and the types of its
    results."""
    if op.name == "VPURT.DeclareBuffer":
        if "swizzlingKey" in op.attributes:
            yield "type:swizzlingKey"
        if op.attributes.get("section") in SECTIONS:
            yield f"section:{op.attributes['section']}"
    elif op.name == "const.Declare":
        yield from _constant_reasons(op)
    elif op.name == "VPUIP.SW.Kernel":
        yield from _kernel_reasons(program, op, kernels, raw)
    elif op.known and OPS[op.name].role == "sequential":
        for use_type in filter(None, (use.type for use in op.uses())):
            yield from _raw_reasons(use_type)
    if op.blocks > 1:
        yield "block"


def _constant_reasons(op: Op) -> Iterator[str]:
    """Yield the names of a constant's content, element type and transformations that are not emulated."""
    content = op.attributes.get("content")
    if not isinstance(content, Dense):
        yield "const:content"
        return
    if content.kind != "dense":
        yield f"const:{content.kind}"
    if not content.text.startswith('"'):
        yield from _unreadable_types((*op.types, content.type))
    if is_splat(content):
        allowed = SPLAT_TRANSFORMS
    else:
        allowed = TRANSFORMS
    for name in transform_names(op.attributes.get("transforms")):
        if name not in allowed:
            yield f"const:{name}"


def _unreadable_types(types: Iterable[Type | None]) -> Iterator[str]:
    """Yield the name of the first of these types whose numbers are not read from text: floats of 8 bits."""
    elements = [constant_type.element for constant_type in types if constant_type is not None]
    names = [element.name for element in elements if element is not None and element.name.startswith("f8")]
    if names:
        yield f"type:{names[0]}"


def is_splat(content: Dense) -> bool:
    """Return whether one number stands for all elements."""
    return not content.text.startswith(("[", '"'))


def transform_names(attribute: Attribute) -> list[str]:
    """Return the names of a constant's transformations, without the dialect."""
    if not isinstance(attribute, tuple):
        return []
    return [
        transform.name.rpartition(".")[2] if isinstance(transform, Opaque) else str(transform)
        for transform in attribute
    ]


def _kernel_reasons(program: Program, op: Op, kernels: Mapping[str, object], raw: Collection[str]) -> Iterator[str]:
    """Yield the names of the kernel that an op calls and of operands' element types that are not emulated.
    `kernels` and `raw` are those of `find_unsupported`."""
    declaration = callee(program.function, op)
    if declaration is None or is_cache_op(declaration):
        return
    entry = entry_point(declaration)
    if entry not in kernels:
        yield f"kernel:{entry}"
        return
    for use in op.uses():
        if use.type is not None and (entry not in raw or use.type.bits < 8):
            yield from _raw_reasons(use.type)


def _raw_reasons(type_: Type) -> Iterator[str]:
    """Yield the name of an element type that no kernel computes with."""
    element = type_.element
    if element is not None and element.is_raw:
        yield "type:quant" if element.kind == "quant" else f"type:{element.name}"
