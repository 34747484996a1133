"""Rules on declared buffers, layouts and slices of CMX."""

from collections.abc import Iterator
from typing import Final

from buda_emu.foreign.vpux.layout import StrideReqs, alloc_bits
from buda_emu.foreign.vpux.model import Op, Type
from buda_emu.foreign.vpux.program import SECTION_MEMORY, Program
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
    """Compare the section with the type's memory space; a space that is absent or unknown counts as DDR."""
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
    """Report `[]`, which is not the same as no list."""
    for op, _, _, index in _declarations(program):
        if index == ():
            yield finding(program, op, "its list of section indices is empty")


@BOOK.rule(
    "X007", "error", "a buffer in CMX has no index", stage="public", source="VPUX 7", unless=_GROUP[:2],
    fix="write the slice: <CMX_NN> [0] <offset>",
)  # fmt: skip
def check_index_exists(program: Program) -> Iterator[Finding]:
    """Report plain buffers in CMX without an index; distributed buffers may leave it out."""
    for op, of, section, index in _declarations(program):
        if section == "CMX_NN" and index is None and not of.is_distributed:
            yield finding(program, op, "the slice of CMX is missing")


@BOOK.rule(
    "X011", "error", "a distributed buffer has another number of indices than of clusters", stage="public",
    source="VPUX 7", unless=_GROUP[:3], fix="name one slice for each cluster",
)  # fmt: skip
def check_clusters(program: Program) -> Iterator[Finding]:
    for op, of, _, index in _declarations(program):
        number = of.traits.get("num_clusters")
        if of.is_distributed and index is not None and isinstance(number, int) and number != len(index):
            yield finding(program, op, f"{number} clusters and {len(index)} indices")


@BOOK.rule(
    "X009", "error", "a buffer's index differs from that of its type's memory space", stage="public", source="VPUX 7",
    unless=_GROUP[:4], fix="write the same slice in both places: <CMX_NN> [1] and [@CMX_NN, 1]",
)  # fmt: skip
def check_same_index(program: Program) -> Iterator[Finding]:
    """Check plain buffers in CMX with one index."""
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
    for op, of, _, index in _declarations(program):
        if index is not None and len(index) > 1 and not of.is_distributed:
            yield finding(program, op, f"{len(index)} section indices")


@BOOK.rule(
    "X005", "error", "a buffer in DDR has a type without memory space", stage="public", source="VPUX 7",
    unless=_GROUP[:6], fix="write @DDR in the type",
)  # fmt: skip
def check_space_exists(program: Program) -> Iterator[Finding]:
    """Check buffers of section DDR only."""
    for op, of, section, _ in _declarations(program):
        if section == "DDR" and of.space is None:
            yield finding(program, op, "its type names no memory space")


@BOOK.rule(
    "X006", "error", "a buffer in DDR has an index", stage="public", source="VPUX 7", unless=_GROUP,
    fix="leave the index out: DDR has no slices",
)  # fmt: skip
def check_no_index_in_ddr(program: Program) -> Iterator[Finding]:
    for op, of, section, index in _declarations(program):
        if section == "DDR" and (index or of.space_index is not None):
            yield finding(program, op, "DDR has no section index")


@BOOK.rule(
    "X034", "error", "an order is not a permutation, or of another rank than the shape", stage="emulator",
    source="VPUX 7", fix="name each dimension once",
)  # fmt: skip
def check_order(program: Program) -> Iterator[Finding]:
    """Check the types of the function's arguments and of every result."""
    for value in program.function.arguments:
        if value.type is not None and _has_bad_order(value.type):
            yield Finding(program.function.place, f"{value.name or 'an argument'}: {_describe_order(value.type)}")
    for op in program.ops:
        for of in op.types:
            if _has_bad_order(of):
                yield finding(program, op, _describe_order(of))
                break


def _has_bad_order(of: Type) -> bool:
    return of.is_buffer and (of.order is None or of.order.rank != len(of.shape or ()))


def _describe_order(of: Type) -> str:
    if of.order is None:
        return "its layout is not a permutation of dimensions"
    return f"its layout orders {of.order.rank} dimensions, and its shape has {len(of.shape or ())}"


@BOOK.rule(
    "X035", "error", "strides of a declared buffer make elements overlap, or are of another rank", stage="emulator",
    source="VPUX 7", unless=("X034",), fix="make every stride at least the next inner one times its size",
)  # fmt: skip
def check_strides(program: Program) -> Iterator[Finding]:
    """Check strides with `StrideReqs().check`, without requirements."""
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
    """Check slices of CMX, and the tiles whose SHAVEs a kernel runs on."""
    count = program.arch.tiles
    for op, _, section, index in _declarations(program):
        wrong = [n for n in index or () if not 0 <= n < count]
        if section == "CMX_NN" and wrong:
            yield finding(program, op, f"{program.arch.name} has no slice {wrong[0]}")
    for op in program.ops_of("VPUIP.SW.Kernel"):
        if not 0 <= op.integer("tile", 0) < count:
            yield finding(program, op, f"{program.arch.name} has no tile {op.integer('tile', 0)}")


def _ends(program: Program) -> Iterator[tuple[Op, int]]:
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
    for op, end in _ends(program):
        if end > program.arch.slice_bytes:
            yield finding(program, op, f"ends at byte {end} of a slice of {program.arch.slice_bytes}")


@BOOK.rule(
    "X033", "warning", "a buffer ends beyond the compiler's workspace in CMX", stage="limit", source="VPUX 7",
    unless=("X032",), fix="the rest of a slice belongs to the runtime",
)  # fmt: skip
def beyond_workspace(program: Program) -> Iterator[Finding]:
    """1936 KiB on 37XX, 1440 KiB on 40XX."""
    for op, end in _ends(program):
        if end > program.arch.workspace_bytes:
            yield finding(program, op, f"ends at byte {end}, the workspace at {program.arch.workspace_bytes}")
