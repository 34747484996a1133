"""Rules on tasks and their barriers, on software kernels and the runtime that serves them, and those that only a run
can find broken.
"""

from collections.abc import Iterator
from typing import Final

from buda_emu.foreign.vpux.arguments import MOST_TENSORS
from buda_emu.foreign.vpux.model import Op
from buda_emu.foreign.vpux.program import Program, callee, is_cache_op
from buda_emu.foreign.vpux.reader.table import OPS
from buda_emu.foreign.vpux.rules.book import BOOK, finding
from buda_emu.support.checker import Finding
from buda_emu.support.checker.suggest import near
from buda_emu.support.checker.text import plural


@BOOK.rule(
    "X023", "error", "a task holds not exactly one op", stage="public", source="VPUX 7",
    fix="one task for each op",
)  # fmt: skip
def check_one_op(program: Program) -> Iterator[Finding]:
    """Report a task that holds not exactly one op (X023)."""
    for op in program.ops_of("VPURT.Task"):
        if len(op.body) != 1:
            yield finding(program, op, f"holds {plural(len(op.body), 'op')}")


@BOOK.rule(
    "X028", "error", "a physical barrier's number does not exist", stage="public", source="VPUX 7",
    fix="37XX has barriers 0 to 63, 40XX 0 to 95",
)  # fmt: skip
def check_barrier_number(program: Program) -> Iterator[Finding]:
    """Report a physical barrier whose number the architecture does not have (X028)."""
    count = program.arch.barriers
    for barrier in program.barriers:
        if barrier.number is not None and not 0 <= barrier.number < count:
            yield finding(program, barrier.op, f"barrier {barrier.number}: {program.arch.name} has 0 to {count - 1}")


@BOOK.rule(
    "X029", "error", "physical and virtual barriers in one function", stage="public", source="VPUX 7",
    fix="give all of them numbers, or none",
)  # fmt: skip
def check_one_kind(program: Program) -> Iterator[Finding]:
    """Report the first barrier of the second kind where a function has both physical and virtual ones (X029)."""
    kinds = [barrier.number is None for barrier in program.barriers]
    if len(set(kinds)) == 2:
        other = program.barriers[kinds.index(not kinds[0])]
        yield finding(program, other.op, f"{other.name} is of another kind than the barriers before it")


@BOOK.rule(
    "X030", "error", "a physical barrier has more producers or consumers than slots", stage="public",
    source="VPUX 4, 7", fix="split the barrier in two",
)  # fmt: skip
def check_slots(program: Program) -> Iterator[Finding]:
    """Report physical barriers with more producers or consumers than the architecture has slots for (X030).
    Functions with DPU tasks are left out, as their slots are counted by variants."""
    if any(op.name.startswith("VPUIP.NCECluster") for op in program.ops):
        return
    arch = program.arch
    for barrier in program.barriers:
        if barrier.number is None:
            continue
        producers = len(barrier.producers)
        consumers = len(barrier.consumers)
        for count, limit, role in (
            (producers, arch.producers, "producers"),
            (consumers, arch.consumers, "consumers"),
            (producers + consumers, arch.slots, "producers and consumers"),
        ):
            if count > limit:
                yield finding(program, barrier.op, f"{barrier.name} has {count} {role}, {arch.name} allows {limit}")
                break


@BOOK.rule(
    "X031", "error", "a final barrier is waited for", stage="public", source="VPUX 7",
    fix="nothing runs after the final barrier",
)  # fmt: skip
def check_final(program: Program) -> Iterator[Finding]:
    """Report a final barrier that tasks wait for (X031)."""
    for barrier in program.barriers:
        if barrier.is_final and barrier.consumers:
            yield finding(
                program, barrier.op, f"{barrier.name} is final, and {len(barrier.consumers)} tasks wait for it"
            )


_SIDES: Final = (
    ("input", "inputs", "dynamicInputShapes", "dynamicInputShapesMap"),
    ("output", "outputs", "dynamicOutputShapes", "dynamicOutputShapesMap"),
)
_MAPS: Final = ("X016", "X017", "X020", "X021", "X022", "X018", "X019")


def _kernel_ops(program: Program) -> Iterator[Op]:
    """Return an iterator over the ops that call software kernels."""
    return program.ops_of("VPUIP.SW.Kernel")


@BOOK.rule(
    "X012", "error", "a cache operation has operands or results", stage="public", source="VPUX 7",
    fix="leave inputs and outputs empty",
)  # fmt: skip
def cache_operands(program: Program) -> Iterator[Finding]:
    """Report a cache operation with operands or results (X012)."""
    for op in _kernel_ops(program):
        if is_cache_op(callee(program.function, op)) and (any(True for _ in op.uses()) or op.types):
            yield finding(program, op, "a cache operation takes no operands")


@BOOK.rule(
    "X013", "error", "the function of a cache operation has inputs or results", stage="public", source="VPUX 7",
    unless=("X012",), fix="declare it without both",
)  # fmt: skip
def cache_function(program: Program) -> Iterator[Finding]:
    """Report a cache operation whose function is declared with inputs or results (X013)."""
    for op in _kernel_ops(program):
        declaration = callee(program.function, op)
        if declaration is not None and is_cache_op(declaration) and (declaration.arguments or declaration.results):
            yield finding(program, op, f"@{declaration.name} is declared with inputs or results")


def _bounded_operands(program: Program, side: int) -> Iterator[Finding]:
    """Yield a finding for each kernel whose inputs (`side` 0) or outputs (1) carry their shapes, as bounded buffers
    do, and get shapes by a map or operands as well."""
    word, clause, operands, of_map = _SIDES[side]
    for op in _kernel_ops(program):
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
    """Report a kernel whose inputs are bounded buffers and get shapes as well (X016)."""
    return _bounded_operands(program, 0)


@BOOK.rule(
    "X017", "error", "outputs are bounded buffers, and shapes of outputs are given as well", stage="public",
    source="VPUX 7", unless=_MAPS[:1], fix="give shapes once",
)  # fmt: skip
def bounded_outputs(program: Program) -> Iterator[Finding]:
    """Report a kernel whose outputs are bounded buffers and get shapes as well (X017)."""
    return _bounded_operands(program, 1)


def _map_problem(op: Op, side: int) -> tuple[str, str] | None:
    """Return the kind (length, count, range) and a sentence for the first fault of the map of input shapes (`side`
    0) or output shapes (1); None for a map without fault."""
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


def _map_findings(program: Program, side: int, problem: str) -> Iterator[Finding]:
    """Yield the faults of one kind, `problem` (length, count, range), in the maps of input shapes (`side` 0) or
    output shapes (1). Where both maps are wrong, the inputs' is reported."""
    for op in _kernel_ops(program):
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
    """Report a map of input shapes with another length than the inputs (X020)."""
    return _map_findings(program, 0, "length")


@BOOK.rule(
    "X021", "error", "the map of output shapes has another length than the outputs", stage="public", source="VPUX 7",
    unless=_MAPS[:2], fix="one entry for each output, -1 where it is static",
)  # fmt: skip
def output_map_length(program: Program) -> Iterator[Finding]:
    """Report a map of output shapes with another length than the outputs (X021)."""
    return _map_findings(program, 1, "length")


@BOOK.rule(
    "X022", "error", "a map of shapes names more or fewer operands than there are", stage="public", source="VPUX 7",
    unless=_MAPS[:2], fix="one shape operand for each entry that is not -1",
)  # fmt: skip
def map_count(program: Program) -> Iterator[Finding]:
    """Report a map of shapes that names more or fewer operands than there are (X022)."""
    for side in range(2):
        yield from _map_findings(program, side, "count")


@BOOK.rule(
    "X018", "error", "the map of input shapes names an operand that is not there", stage="public", source="VPUX 7",
    unless=_MAPS[:2], fix="operands are counted from 0",
)  # fmt: skip
def input_map_range(program: Program) -> Iterator[Finding]:
    """Report a map of input shapes that names an operand that is not there (X018)."""
    return _map_findings(program, 0, "range")


@BOOK.rule(
    "X019", "error", "the map of output shapes names an operand that is not there", stage="public", source="VPUX 7",
    unless=_MAPS[:2], fix="operands are counted from 0",
)  # fmt: skip
def output_map_range(program: Program) -> Iterator[Finding]:
    """Report a map of output shapes that names an operand that is not there (X019)."""
    return _map_findings(program, 1, "range")


@BOOK.rule(
    "X036", "error", "a kernel's run takes a value that is not an argument of the kernel, or with another shape",
    stage="public", source="VPUX 7", fix="pass the names after `as`, or constants from inside of the kernel",
)  # fmt: skip
def strangers(program: Program) -> Iterator[Finding]:
    """Report a kernel's run that takes a value which is not an argument of the kernel, or takes one with another
    shape (X036)."""
    for kernel in _kernel_ops(program):
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
    """Report a kernel with more than 8 inputs or outputs (X037)."""
    for op in _kernel_ops(program):
        for clause in ("inputs", "outputs"):
            if len(op.clause(clause)) > MOST_TENSORS:
                yield finding(program, op, f"{len(op.clause(clause))} {clause} are more than {MOST_TENSORS}")
                break


@BOOK.rule(
    "X043", "error", "a stack size is not positive", stage="emulator", source="VPUX 7", fix="give bytes, such as 4096"
)
def check_stack_sizes(program: Program) -> Iterator[Finding]:
    """Report a stack size of VPURT.SW.Runtime, or of the old VPURT.Graph, that is not positive (X043)."""
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


BOOK.declare(
    "X040", "error", "tasks wait for each other for ever, or for something that no task provides",
    stage="run", source="VPUX 4, 7",
    fix="see which task would give what the first one waits for, and what holds that one",
)  # fmt: skip


@BOOK.rule(
    "X049", "warning", "tasks wait for each other in a circle of barriers", stage="emulator", source="VPUX 4, 7",
    fix="let one of them update its barrier without waiting; `vpux run` finds all other deadlocks, too",
)  # fmt: skip
def check_circles(program: Program) -> Iterator[Finding]:
    """Report the first circle of barriers each of which has a producer that waits for the next one (X049)."""
    circle = _find_circle(program)
    if circle:
        steps = [
            _step_text(program, barrier, after) for barrier, after in zip(circle, circle[1:] + circle[:1], strict=True)
        ]
        yield finding(program, program.barriers[circle[0]].op, f"{', '.join(steps)}: these tasks never run")


@BOOK.rule(
    "X050", "note", "a task waits for a barrier that no task updates", stage="emulator", source="VPUX 4, 7",
    fix="let the task that it is to wait for update the barrier; a barrier without producers holds nothing back",
)  # fmt: skip
def check_producers(program: Program) -> Iterator[Finding]:
    """Report a task that waits for a barrier without producers: it begins as if it did not wait (X050). A note, since
    fragments of schedules, such as the vendor's own examples, leave the producer out."""
    for barrier in program.barriers:
        if barrier.consumers and not barrier.producers:
            waiting = barrier.consumers[0]
            text = f"task {waiting} waits for {barrier.name}, which no task updates"
            yield finding(program, program.tasks[waiting].op, text)


def _find_circle(program: Program) -> list[int]:
    """Return the barriers of the first circle, each before one that a producer of it waits for; [] without any."""
    finished: set[int] = set()
    for start in range(len(program.barriers)):
        path: list[int] = []
        waiting = [iter((start,))]
        while waiting:
            barrier = next(waiting[-1], None)
            if barrier is None:
                waiting.pop()
                finished.update(path[len(waiting) - 1 :])
                del path[max(0, len(waiting) - 1) :]
            elif barrier in path:
                return path[path.index(barrier) :]
            elif barrier not in finished:
                path.append(barrier)
                waiting.append(iter(_barriers_before(program, barrier)))
    return []


def _barriers_before(program: Program, barrier: int) -> list[int]:
    """Return the barriers that must be complete before all producers of a barrier run."""
    return [before for task in program.barriers[barrier].producers for before in program.tasks[task].waits]


def _step_text(program: Program, barrier: int, after: int) -> str:
    """Return in words which task would update a barrier, and which barrier it waits for."""
    producers = program.barriers[barrier].producers
    task = next(number for number in producers if after in program.tasks[number].waits)
    return f"task {task} updates {program.barriers[barrier].name} and waits for {program.barriers[after].name}"


BOOK.declare(
    "X041", "warning", "two tasks that nothing orders touch the same byte, and one writes", stage="run",
    source="VPUX 4, 7", fix="let the later one wait for a barrier that the earlier one updates",
)  # fmt: skip
BOOK.declare(
    "X042", "warning", "a task reads bytes that nothing wrote", stage="run", source="VPUX 4, 7",
    fix="write them first; memory holds zeros here, and anything on hardware",
)  # fmt: skip
BOOK.declare(
    "X045", "error", "an actual shape is larger than its bound", stage="run", source="VPUX 2, 7",
    fix="give dimensions within those of the buffer's type, innermost first",
)  # fmt: skip
BOOK.declare(
    "X046", "error", "a kernel's attributes or operands are impossible", stage="run", source="VPUX 5, 7",
    fix="see the kernel's attributes in docs/other-compilers/vpux-kernels.md",
)  # fmt: skip


@BOOK.rule(
    "X048", "note", "an op or a type of elements is not known here", stage="emulator", source="VPUX 8",
    fix="see that its name is right",
)  # fmt: skip
def check_known_ops(program: Program) -> Iterator[Finding]:
    """Note each name of an op, and each type of elements, that is not known here, at its first place (X048)."""
    places: dict[str, Op] = {}
    for op in program.function.walk():
        if not op.known:
            places.setdefault(op.name, op)
    for name, op in places.items():
        dialect = name.partition(".")[0]
        hint = near(name, [op_name for op_name in OPS if op_name.partition(".")[0] == dialect])
        yield finding(program, op, f"{name} is neither checked nor run", hint)
    yield from _unknown_elements(program)


def _unknown_elements(program: Program) -> Iterator[Finding]:
    """Note each type of elements in a buffer that is not known, at its first place."""
    places: dict[str, Op] = {}
    for op in program.function.walk():
        for result_type in op.types:
            if result_type.is_buffer and result_type.element is None:
                places.setdefault(result_type.element_name, op)
    for name, op in places.items():
        yield finding(program, op, f"elements of type {name} are neither checked nor run")
