"""Rules on software kernels and the runtime that serves them."""

from collections.abc import Iterator
from typing import Final

from buda_emu.foreign.vpux.arguments import MOST_TENSORS
from buda_emu.foreign.vpux.model import Op
from buda_emu.foreign.vpux.program import Program, callee, is_cache_op
from buda_emu.foreign.vpux.rules.book import BOOK, finding
from buda_emu.support.checker import Finding
from buda_emu.support.checker.text import plural

_SIDES: Final = (
    ("input", "inputs", "dynamicInputShapes", "dynamicInputShapesMap"),
    ("output", "outputs", "dynamicOutputShapes", "dynamicOutputShapesMap"),
)
_MAPS: Final = ("X016", "X017", "X020", "X021", "X022", "X018", "X019")


def _kernels(program: Program) -> Iterator[Op]:
    return program.ops_of("VPUIP.SW.Kernel")


@BOOK.rule(
    "X012", "error", "a cache operation has operands or results", stage="public", source="VPUX 7",
    fix="leave inputs and outputs empty",
)  # fmt: skip
def cache_operands(program: Program) -> Iterator[Finding]:
    for op in _kernels(program):
        if is_cache_op(callee(program.function, op)) and (any(True for _ in op.uses()) or op.types):
            yield finding(program, op, "a cache operation takes no operands")


@BOOK.rule(
    "X013", "error", "the function of a cache operation has inputs or results", stage="public", source="VPUX 7",
    unless=("X012",), fix="declare it without both",
)  # fmt: skip
def cache_function(program: Program) -> Iterator[Finding]:
    for op in _kernels(program):
        declaration = callee(program.function, op)
        if declaration is not None and is_cache_op(declaration) and (declaration.arguments or declaration.results):
            yield finding(program, op, f"@{declaration.name} is declared with inputs or results")


def _bounded_operands(program: Program, side: int) -> Iterator[Finding]:
    word, clause, operands, of_map = _SIDES[side]
    for op in _kernels(program):
        types = [use.type for use in op.clause(clause)]
        if any(of is not None and of.kind == "bounded" for of in types) and (
            of_map in op.attributes or op.clause(operands)
        ):
            yield finding(program, op, f"{word}s carry their shapes, and {of_map} or {operands} gives others")


@BOOK.rule(
    "X016", "error", "inputs are bounded buffers, and shapes of inputs are given as well", stage="public",
    source="VPUX 7", fix="give shapes once",
)  # fmt: skip
def bounded_inputs(program: Program) -> Iterator[Finding]:
    return _bounded_operands(program, 0)


@BOOK.rule(
    "X017", "error", "outputs are bounded buffers, and shapes of outputs are given as well", stage="public",
    source="VPUX 7", unless=_MAPS[:1], fix="give shapes once",
)  # fmt: skip
def bounded_outputs(program: Program) -> Iterator[Finding]:
    return _bounded_operands(program, 1)


def _map_problem(op: Op, side: int) -> tuple[str, str] | None:
    """Return the kind (length, count, range) and a sentence for the first fault of one side's map of shapes, None for a
    map without fault."""
    _, clause, operands, of_map = _SIDES[side]
    entries = op.integers(of_map)
    if entries is None:
        return None
    have = len(op.clause(clause))
    count = len(op.clause(operands))
    used = [entry for entry in entries if entry != -1]
    if len(entries) != have:
        return "length", f"{of_map} has {plural(len(entries), 'entry')} for {have} {clause}"
    if len(used) != count:
        return "count", f"{of_map} says that {len(used)} {clause} are dynamic, and there are {count} shape operands"
    if any(not 0 <= entry < count for entry in used):
        return "range", f"{of_map} names shape operand {max(used)} of {count}"
    return None


def _maps(program: Program, side: int, problem: str) -> Iterator[Finding]:
    """Yield the faults of one kind in the maps of one side. Where both maps are wrong, the inputs' is reported."""
    for op in _kernels(program):
        first = _map_problem(op, 0)
        if side == 0 or first is not None:
            maps = first
        else:
            maps = _map_problem(op, 1)
        if maps is not None and maps[0] == problem and (side == 0) == (first is not None):
            yield finding(program, op, maps[1])


@BOOK.rule(
    "X020", "error", "the map of input shapes has another length than the inputs", stage="public", source="VPUX 7",
    unless=_MAPS[:2], fix="one entry for each input, -1 where it is static",
)  # fmt: skip
def input_map_length(program: Program) -> Iterator[Finding]:
    return _maps(program, 0, "length")


@BOOK.rule(
    "X021", "error", "the map of output shapes has another length than the outputs", stage="public", source="VPUX 7",
    unless=_MAPS[:2], fix="one entry for each output, -1 where it is static",
)  # fmt: skip
def output_map_length(program: Program) -> Iterator[Finding]:
    return _maps(program, 1, "length")


@BOOK.rule(
    "X022", "error", "a map of shapes names more or fewer operands than there are", stage="public", source="VPUX 7",
    unless=_MAPS[:2], fix="one shape operand for each entry that is not -1",
)  # fmt: skip
def map_count(program: Program) -> Iterator[Finding]:
    for side in range(2):
        yield from _maps(program, side, "count")


@BOOK.rule(
    "X018", "error", "the map of input shapes names an operand that is not there", stage="public", source="VPUX 7",
    unless=_MAPS[:2], fix="operands are counted from 0",
)  # fmt: skip
def input_map_range(program: Program) -> Iterator[Finding]:
    return _maps(program, 0, "range")


@BOOK.rule(
    "X019", "error", "the map of output shapes names an operand that is not there", stage="public", source="VPUX 7",
    unless=_MAPS[:2], fix="operands are counted from 0",
)  # fmt: skip
def output_map_range(program: Program) -> Iterator[Finding]:
    return _maps(program, 1, "range")


@BOOK.rule(
    "X036", "error", "a kernel's run takes a value that is not an argument of the kernel, or with another shape",
    stage="public", source="VPUX 7", fix="pass the names after `as`, or constants from inside of the kernel",
)  # fmt: skip
def strangers(program: Program) -> Iterator[Finding]:
    for kernel in _kernels(program):
        for op in kernel.body:
            if op.name != "VPUIP.SW.Kernel.run":
                continue
            for use in op.clause(""):
                if use.value is None:
                    yield finding(program, op, f"{use.name} is not an argument of its kernel")
                elif (
                    use.written is not None and use.value.type is not None and use.written.shape != use.value.type.shape
                ):
                    yield finding(program, op, f"{use.name} has another shape here than in the kernel's list")


@BOOK.rule(
    "X037", "error", "a kernel has more than 8 inputs or outputs", stage="emulator", source="VPUX 6, 7",
    fix="split the kernel",
)  # fmt: skip
def check_operand_count(program: Program) -> Iterator[Finding]:
    for op in _kernels(program):
        for clause in ("inputs", "outputs"):
            if len(op.clause(clause)) > MOST_TENSORS:
                yield finding(program, op, f"{len(op.clause(clause))} {clause} are more than {MOST_TENSORS}")
                break


@BOOK.rule(
    "X043", "error", "a stack size is not positive", stage="emulator", source="VPUX 7", fix="give bytes, such as 4096"
)
def check_stack_sizes(program: Program) -> Iterator[Finding]:
    """Check the stacks of VPURT.SW.Runtime, and of the old VPURT.Graph."""
    for name in ("VPURT.SW.Runtime", "VPURT.Graph"):
        for _, op in program.function.module_ops(name):
            for size in stack_sizes(op):
                if size <= 0:
                    yield finding(program, op, f"a stack of {size} bytes")
                    break


def stack_sizes(op: Op) -> tuple[int, ...]:
    """Return the stack bytes for each SHAVE, or for each tile in the old dialect."""
    match op.attributes:
        case {"stack_configuration": tuple() as sizes}:
            pass
        case {"act_shaves": {"stack_configuration": tuple() as sizes}}:
            pass
        case _:
            return ()
    return tuple(int(size) for size in sizes if isinstance(size, int))
