"""Rules on buffers, on views of them (parts and casts), and on movements of data between them."""

from collections.abc import Iterator
from typing import Final

from buda_emu.foreign.vpux.layout import StrideReqs, alloc_bits
from buda_emu.foreign.vpux.model import Op, Type
from buda_emu.foreign.vpux.program import SECTION_MEMORY, Program
from buda_emu.foreign.vpux.reader.table import OPS
from buda_emu.foreign.vpux.rules.book import BOOK, finding
from buda_emu.support.checker import Finding
from buda_emu.support.checker.text import plural

_MEMORIES: Final = frozenset(SECTION_MEMORY.values())
_GROUP: Final = ("X004", "X010", "X007", "X011", "X009", "X008", "X005")


def _declarations(program: Program) -> Iterator[tuple[Op, Type, str, tuple[int, ...] | None]]:
    """Yield every VPURT.DeclareBuffer of a plain or distributed buffer: op, type, section, indices."""
    for op in program.ops_of("VPURT.DeclareBuffer"):
        section = op.attributes.get("section")
        if op.types and op.types[0].kind in ("memref", "tensor", "distributed") and isinstance(section, str):
            yield op, op.types[0], section, op.integers("index")


@BOOK.rule(
    "X004", "error", "a buffer's section lies in another memory than its type says", stage="public", source="VPUX 7",
    fix="name the memory of the section in the type: network inputs and outputs lie in DDR",
)  # fmt: skip
def check_memory_of_section(program: Program) -> Iterator[Finding]:
    """Report a buffer whose section lies in another memory than its type says (X004); a space that is absent or
    unknown counts as DDR."""
    for op, of, section, _ in _declarations(program):
        memory = of.space if of.space in _MEMORIES else "DDR"
        expected = SECTION_MEMORY.get(section)
        if expected is None:
            yield finding(program, op, f"there is no section {section}")
        elif expected != memory:
            yield finding(program, op, f"section {section} lies in {expected}, the type says {memory}")


@BOOK.rule(
    "X010", "error", "a buffer's list of indices is empty", stage="public", source="VPUX 7", unless=_GROUP[:1],
    fix="leave the brackets out, or name the slices",
)  # fmt: skip
def check_indices_not_empty(program: Program) -> Iterator[Finding]:
    """Report a buffer whose list of indices is `[]`, which is not the same as no list (X010)."""
    for op, _, _, index in _declarations(program):
        if index == ():
            yield finding(program, op, "its list of section indices is empty")


@BOOK.rule(
    "X007", "error", "a buffer in CMX has no index", stage="public", source="VPUX 7", unless=_GROUP[:2],
    fix="write the slice: <CMX_NN> [0] <offset>",
)  # fmt: skip
def check_index_exists(program: Program) -> Iterator[Finding]:
    """Report plain buffers in CMX without an index (X007); distributed buffers may leave it out."""
    for op, of, section, index in _declarations(program):
        if section == "CMX_NN" and index is None and not of.is_distributed:
            yield finding(program, op, "the slice of CMX is missing")


@BOOK.rule(
    "X011", "error", "a distributed buffer has another number of indices than of clusters", stage="public",
    source="VPUX 7", unless=_GROUP[:3], fix="name one slice for each cluster",
)  # fmt: skip
def check_clusters(program: Program) -> Iterator[Finding]:
    """Report a distributed buffer with another number of indices than of clusters (X011)."""
    for op, of, _, index in _declarations(program):
        number = of.traits.get("num_clusters")
        if of.is_distributed and index is not None and isinstance(number, int) and number != len(index):
            yield finding(program, op, f"{number} clusters and {len(index)} indices")


@BOOK.rule(
    "X009", "error", "a buffer's index differs from that of its type's memory space", stage="public", source="VPUX 7",
    unless=_GROUP[:4], fix="write the same slice in both places: <CMX_NN> [1] and [@CMX_NN, 1]",
)  # fmt: skip
def check_same_index(program: Program) -> Iterator[Finding]:
    """Report a plain buffer in CMX whose one index differs from that of its type's memory space (X009)."""
    for op, of, section, index in _declarations(program):
        if section == "CMX_NN" and not of.is_distributed and index and len(index) == 1:
            if of.space_index is None:
                yield finding(program, op, f"slice {index[0]}, and the type's memory space has no index")
            elif of.space_index != index[0]:
                yield finding(program, op, f"slice {index[0]}, and the type says {of.space_index}")


@BOOK.rule(
    "X008", "error", "a buffer that is not distributed has several indices", stage="public", source="VPUX 7",
    unless=_GROUP[:5], fix="use a !VPUIP.DistributedBuffer, or one slice",
)  # fmt: skip
def check_one_index(program: Program) -> Iterator[Finding]:
    """Report a buffer that is not distributed and has several indices (X008)."""
    for op, of, _, index in _declarations(program):
        if index is not None and len(index) > 1 and not of.is_distributed:
            yield finding(program, op, f"{len(index)} section indices")


@BOOK.rule(
    "X005", "error", "a buffer in DDR has a type without memory space", stage="public", source="VPUX 7",
    unless=_GROUP[:6], fix="write @DDR in the type",
)  # fmt: skip
def check_space_exists(program: Program) -> Iterator[Finding]:
    """Report a buffer in DDR whose type names no memory space (X005)."""
    for op, of, section, _ in _declarations(program):
        if section == "DDR" and of.space is None:
            yield finding(program, op, "its type names no memory space")


@BOOK.rule(
    "X006", "error", "a buffer in DDR has an index", stage="public", source="VPUX 7", unless=_GROUP,
    fix="leave the index out: DDR has no slices",
)  # fmt: skip
def check_no_index_in_ddr(program: Program) -> Iterator[Finding]:
    """Report a buffer in DDR with an index (X006)."""
    for op, of, section, index in _declarations(program):
        if section == "DDR" and (index or of.space_index is not None):
            yield finding(program, op, "DDR has no section index")


@BOOK.rule(
    "X034", "error", "an order is not a permutation, or of another rank than the shape", stage="emulator",
    source="VPUX 7", fix="name each dimension once",
)  # fmt: skip
def check_order(program: Program) -> Iterator[Finding]:
    """Report an argument of the function, or a result of an op, whose order is not a permutation or is of another
    rank than the shape (X034)."""
    for value in program.function.arguments:
        if value.type is not None and _has_bad_order(value.type):
            yield Finding(program.function.place, f"{value.name or 'an argument'}: {_describe_order(value.type)}")
    for op in program.ops:
        for of in op.types:
            if _has_bad_order(of):
                yield finding(program, op, _describe_order(of))
                break


def _has_bad_order(of: Type) -> bool:
    """Return whether a buffer's order is not a permutation, or is of another rank than its shape."""
    return of.is_buffer and (of.order is None or of.order.rank != len(of.shape or ()))


def _describe_order(of: Type) -> str:
    """Describe what is wrong with a buffer's order, for a message."""
    if of.order is None:
        return "its layout is not a permutation of dimensions"
    return f"its layout orders {of.order.rank} dimensions, and its shape has {len(of.shape or ())}"


@BOOK.rule(
    "X035", "error", "strides of a declared buffer make elements overlap, or are of another rank", stage="emulator",
    source="VPUX 7", unless=("X034",), fix="make every stride at least the next inner one times its size",
)  # fmt: skip
def check_strides(program: Program) -> Iterator[Finding]:
    """Report a declared buffer whose strides make elements overlap or are of another rank than its shape (X035)."""
    for op in program.ops_of("VPURT.DeclareBuffer", "memref.alloc", "alloc", "VPUIP.StaticAlloc"):
        of = op.types[0] if op.types else None
        if of is None or not of.is_buffer or of.strides is None or of.shape is None:
            continue
        if len(of.strides) != len(of.shape):
            yield finding(program, op, f"{plural(len(of.strides), 'stride')} for {plural(len(of.shape), 'dimension')}")
        elif of.is_laid_out and not StrideReqs().check(of.memory_strides, of.bits, of.memory_shape):
            yield finding(program, op, f"strides {list(of.strides)} do not fit shape {list(of.shape)}")


@BOOK.rule(
    "X044", "error", "a tile or slice does not exist", stage="emulator", source="VPUX 7",
    fix="37XX has tiles 0 and 1, 40XX has 0 to 5",
)  # fmt: skip
def check_slices_exist(program: Program) -> Iterator[Finding]:
    """Report slices of CMX, and tiles whose SHAVEs a kernel runs on, that the architecture does not have (X044)."""
    count = program.arch.tiles
    for op, _, section, index in _declarations(program):
        wrong = [n for n in index or () if not 0 <= n < count]
        if section == "CMX_NN" and wrong:
            yield finding(program, op, f"{program.arch.name} has no slice {wrong[0]}")
    for op in program.ops_of("VPUIP.SW.Kernel"):
        if not 0 <= op.integer("tile", 0) < count:
            yield finding(program, op, f"{program.arch.name} has no tile {op.integer('tile', 0)}")


def _buffers_with_ends(program: Program) -> Iterator[tuple[Op, int]]:
    """Yield the buffers of CMX with known layouts, each with the byte after its last."""
    for op, of, section, _ in _declarations(program):
        if section == "CMX_NN" and of.is_laid_out:
            bits = alloc_bits(of.memory_shape, of.memory_strides, of.bits)
            yield op, op.integer("offset", 0) + (bits + 7) // 8


@BOOK.rule(
    "X032", "warning", "a buffer ends beyond its slice of CMX", stage="limit", source="VPUX 7",
    fix="a slice has 2 MiB",
)  # fmt: skip
def check_slice_end(program: Program) -> Iterator[Finding]:
    """Warn of a buffer that ends beyond its slice of CMX (X032)."""
    for op, end in _buffers_with_ends(program):
        if end > program.arch.slice_bytes:
            yield finding(program, op, f"ends at byte {end} of a slice of {program.arch.slice_bytes}")


@BOOK.rule(
    "X033", "warning", "a buffer ends beyond the compiler's workspace in CMX", stage="limit", source="VPUX 7",
    unless=("X032",), fix="the rest of a slice belongs to the runtime",
)  # fmt: skip
def beyond_workspace(program: Program) -> Iterator[Finding]:
    """Warn of a buffer that ends beyond the compiler's workspace in a slice of CMX: 1936 KiB on 37XX, 1440 KiB on
    40XX (X033)."""
    for op, end in _buffers_with_ends(program):
        if end > program.arch.workspace_bytes:
            yield finding(program, op, f"ends at byte {end}, the workspace at {program.arch.workspace_bytes}")


def _subviews(program: Program) -> Iterator[tuple[Op, Type, Type]]:
    """Yield every SubView with the types of its source and result."""
    for op in program.ops_of("VPUIP.SubView"):
        if op.clause(""):
            source = op.clause("")[0].type
        else:
            source = None
        if source is not None and op.types and source.shape is not None and op.types[0].shape is not None:
            yield op, source, op.types[0]


@BOOK.rule(
    "X015", "error", "offsets, sizes or steps of a SubView are of another rank than its source", stage="public",
    source="VPUX 7", fix="give one number for each dimension",
)  # fmt: skip
def check_rank(program: Program) -> Iterator[Finding]:
    """Report a SubView with offsets, sizes or steps of another rank than its source (X015)."""
    for op, source, _ in _subviews(program):
        expected = len(source.shape or ())
        for word in ("offsets", "sizes", "steps"):
            numbers = op.integers(word)
            if numbers is not None and len(numbers) != expected:
                yield finding(program, op, f"{len(numbers)} {word} for {expected} dimensions")
                break


@BOOK.rule(
    "X014", "error", "a SubView's result has another shape or other strides than follow from its source",
    stage="public", source="VPUX 7", unless=("X015", "X034"),
    fix="strides of the result are those of the source times the steps",
)  # fmt: skip
def check_result(program: Program) -> Iterator[Finding]:
    """Report a SubView whose result has another shape than its sizes, or other strides than those of its source
    times the steps (X014)."""
    for op, source, target in _subviews(program):
        sizes = op.integers("sizes")
        if sizes is not None and target.shape != sizes:
            yield finding(program, op, f"its result has shape {list(target.shape or ())}, its sizes are {list(sizes)}")
        elif _is_plain(source) and _is_plain(target) and source.bits == target.bits:
            steps = op.integers("steps") or (1,) * len(target.shape or ())
            expected = [stride * step for stride, step in zip(_logical_strides(source), steps, strict=False)]
            actual = _logical_strides(target)
            if expected != actual:
                problem = f"strides of its result are {actual} bits, of its source they follow as {expected}"
                yield finding(program, op, problem)


def _is_plain(of: Type) -> bool:
    """Return whether a buffer lies in one piece, with known strides."""
    return of.is_laid_out and not of.is_distributed


def _logical_strides(of: Type) -> list[int]:
    """Return a buffer's strides in bits by logical dimension, to compare a view with its source; [] for a type without
    an order."""
    if of.order is None:
        return []
    return list(of.order.to_logical(of.memory_strides))


@BOOK.rule(
    "X047", "warning", "a SubView reaches outside of its source", stage="limit", source="VPUX 7",
    unless=("X015", "X014"), fix="offset plus size may not exceed the dimension",
)  # fmt: skip
def check_bounds(program: Program) -> Iterator[Finding]:
    """Warn of a SubView that reaches outside of its source (X047)."""
    for op, source, _ in _subviews(program):
        offsets = op.integers("offsets") or ()
        sizes = op.integers("sizes") or ()
        steps = op.integers("steps") or (1,) * len(sizes)
        for dim, (start, size, step, extent) in enumerate(zip(offsets, sizes, steps, source.shape or (), strict=False)):
            if start < 0 or (size and start + (size - 1) * step >= extent):
                yield finding(
                    program, op, f"dimension {dim}: elements {start} to {start + (size - 1) * step} of {extent}"
                )
                break


@BOOK.rule(
    "X039", "error", "a cast changes what it must keep", stage="public", source="VPUX 7", unless=("X034",),
    fix="keep the number of elements, and for ShapeCast the order and rank",
)  # fmt: skip
def check_casts(program: Program) -> Iterator[Finding]:
    """Report a cast that changes what it must keep: GenericReshape elements, both sides compact, PermuteCast
    elements, ShapeCast order (X039)."""
    for op in program.ops_of("VPUIP.GenericReshape", "VPUIP.PermuteCast", "VPUIP.ShapeCast"):
        uses = op.clause("inputs")
        source = uses[0].type if uses else None
        if source is not None and op.types and source.is_laid_out and op.types[0].is_laid_out:
            problem = _cast_problem(op.name, source, op.types[0])
            if problem:
                yield finding(program, op, problem)


def _cast_problem(name: str, source: Type, target: Type) -> str:
    """Return why a cast of this name is illegal, for example because it changes the order or number of elements; "" for
    a legal cast."""
    if name == "VPUIP.ShapeCast":
        if source.order != target.order:
            return f"order {source.order} becomes {target.order}"
    elif source.count != target.count:
        return f"{source.count} elements become {target.count}"
    elif name == "VPUIP.GenericReshape" and not (source.is_compact and target.is_compact):
        return "elements with gaps cannot be reshaped"
    return ""


MOST_BYTES: Final = 16_777_215  # 2^24 - 1 (VPUX 7, X003)
MOST_INDICES: Final = 65_536  # VPUX 7, X027
_UNLIMITED: Final = ("VPUIP.Copy", "VPUIP.CompressDMAOp", "VPUIP.DecompressDMAOp", "VPUIP.GatherDMA")
_LIMITED_BY_DESCRIPTOR: Final = ("VPUIP.ExpandDMA", "VPUIP.UpsamplingDMAOp")


def transfers(program: Program) -> Iterator[Op]:
    """Yield every op that moves data."""
    return (op for op in program.ops if op.known and OPS[op.name].role == "dma")


def operand_type(op: Op, clause: str) -> Type | None:
    """Return the type of the first operand of a clause, None where there is none."""
    uses = op.clause(clause)
    return uses[0].type if uses else None


@BOOK.rule(
    "X003", "error", "a DMA moves more than 16 777 215 bytes", stage="public", source="VPUX 7",
    fix="split the transfer",
)  # fmt: skip
def check_size(program: Program) -> Iterator[Finding]:
    """Report a DMA whose input has more than 16 777 215 bytes without gaps (X003)."""
    for op in transfers(program):
        if op.name in _UNLIMITED or (op.name in _LIMITED_BY_DESCRIPTOR and "dma_descriptor" not in op.attributes):
            continue
        of = operand_type(op, "inputs")
        if of is not None and of.kind == "memref" and of.is_laid_out and of.compact_bytes > MOST_BYTES:
            yield finding(program, op, f"{of.compact_bytes} bytes are more than {MOST_BYTES}")


@BOOK.rule(
    "X024", "error", "an NNDMA reads and writes different numbers of bytes", stage="emulator", source="VPUX 7",
    fix="give input and output shapes of the same size",
)  # fmt: skip
def check_equal_sizes(program: Program) -> Iterator[Finding]:
    """Report an NNDMA between plain memrefs that reads and writes different numbers of bytes (X024)."""
    for op in program.ops_of("VPUIP.NNDMA", "VPUIP.DMA"):
        source = operand_type(op, "inputs")
        target = operand_type(op, "outputs")
        if source is None or target is None or source.kind != "memref" or target.kind != "memref":
            continue
        if source.is_laid_out and target.is_laid_out and source.compact_bytes != target.compact_bytes:
            yield finding(program, op, f"reads {source.compact_bytes} bytes and writes {target.compact_bytes}")


@BOOK.rule(
    "X025", "error", "a ConvertDMA converts anything but f32 to f16 or bf16", stage="public", source="VPUX 7",
    fix="use the kernel `convert`",
)  # fmt: skip
def check_conversion(program: Program) -> Iterator[Finding]:
    """Report a ConvertDMA that converts anything but f32 to f16 or bf16 (X025)."""
    for op in program.ops_of("VPUIP.ConvertDMA"):
        source = operand_type(op, "inputs")
        target = operand_type(op, "outputs")
        if source is None or target is None:
            continue
        if source.element_name != "f32" or target.element_name not in ("f16", "bf16"):
            yield finding(program, op, f"cannot convert {source.element_name} to {target.element_name}")


@BOOK.rule(
    "X026", "error", "a SyncDMA moves data", stage="public", source="VPUX 7",
    fix="give it operands without elements, or use an NNDMA",
)  # fmt: skip
def check_sync(program: Program) -> Iterator[Finding]:
    """Report a SyncDMA whose operands have elements (X026)."""
    for op in program.ops_of("VPUIP.SyncDMA"):
        types = [type_ for type_ in (operand_type(op, "inputs"), operand_type(op, "outputs")) if type_ is not None]
        if any(type_.is_buffer and type_.count != 0 for type_ in types):
            yield finding(program, op, "its operands have elements")


@BOOK.rule(
    "X027", "error", "indices of a GatherDMA are not in CMX, or more than 65 536", stage="public", source="VPUX 7",
    fix="bring the indices to CMX, split the transfer",
)  # fmt: skip
def check_gather_indices(program: Program) -> Iterator[Finding]:
    """Report a GatherDMA whose indices are not in CMX or more than 65 536 (X027)."""
    for op in program.ops_of("VPUIP.GatherDMA"):
        of = operand_type(op, "indices")
        if of is None or not of.is_buffer:
            continue
        if of.space != "CMX_NN":
            yield finding(program, op, f"indices lie in {of.space or 'no named memory'}, not in CMX_NN")
        elif of.count > MOST_INDICES:
            yield finding(program, op, f"{of.count} indices are more than {MOST_INDICES}")


@BOOK.rule("X038", "error", "a DMA port does not exist", stage="emulator", source="VPUX 7", fix="ports are 0 and 1")
def check_port(program: Program) -> Iterator[Finding]:
    """Report a DMA on a port that the architecture does not have (X038)."""
    for op in transfers(program):
        number = op.integer("port", 0)
        if not 0 <= number < program.arch.ports:
            yield finding(program, op, f"port {number} does not exist")
