"""Rules on views: parts and casts of buffers."""

from collections.abc import Iterator

from buda_emu.foreign.vpux.model import Op, Type
from buda_emu.foreign.vpux.program import Program
from buda_emu.foreign.vpux.rules.book import BOOK, finding
from buda_emu.support.checker import Finding


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
    """Compare the result's shape with the sizes, and its strides with those of the source times the steps."""
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
    """Return the strides in bits, in logical order; none where there is no order."""
    if of.order is None:
        return []
    return list(of.order.to_logical(of.memory_strides))


@BOOK.rule(
    "X047", "warning", "a SubView reaches outside of its source", stage="limit", source="VPUX 7",
    unless=("X015", "X014"), fix="offset plus size may not exceed the dimension",
)  # fmt: skip
def check_bounds(program: Program) -> Iterator[Finding]:
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
    """Check GenericReshape (elements, both sides compact), PermuteCast (elements) and ShapeCast (order)."""
    for op in program.ops_of("VPUIP.GenericReshape", "VPUIP.PermuteCast", "VPUIP.ShapeCast"):
        uses = op.clause("inputs")
        source = uses[0].type if uses else None
        if source is not None and op.types and source.is_laid_out and op.types[0].is_laid_out:
            problem = _cast_problem(op.name, source, op.types[0])
            if problem:
                yield finding(program, op, problem)


def _cast_problem(name: str, source: Type, target: Type) -> str:
    """Return what a cast of this name changes and must keep, "" for a legal cast."""
    if name == "VPUIP.ShapeCast":
        if source.order != target.order:
            return f"order {source.order} becomes {target.order}"
    elif source.count != target.count:
        return f"{source.count} elements become {target.count}"
    elif name == "VPUIP.GenericReshape" and not (source.is_compact and target.is_compact):
        return "elements with gaps cannot be reshaped"
    return ""
