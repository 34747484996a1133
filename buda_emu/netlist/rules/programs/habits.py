"""Instructions of a program that have no effect or are most likely mistakes (V277, V279-V281, V291; stage W)."""

from collections.abc import Iterator, Sequence
from itertools import accumulate, islice

from buda_emu.checker.fix import removing
from buda_emu.netlist.flow.places import name_mark
from buda_emu.netlist.model import Allocate, Declare, EndLoop, Execute, Instruction, Loop, Program, VarInst
from buda_emu.netlist.rules.context import Context
from buda_emu.netlist.rules.programs.steps import SHOWN
from buda_emu.netlist.rules.registry import Finding, Findings, program_check
from buda_emu.netlist.rules.rule import rule
from buda_emu.spec.operands import is_variable, stored_name

_FIELDS = (
    "prologue", "epilogue", "zero", "read_only", "rd_ptr_global", "rd_ptr_local", "wr_ptr_global", "rd_ptr_autoinc",
    "global_rdptr_autoinc", "global_wrptr_autoinc",
)  # fmt: skip
_CONSTANT = "c_"  # NETLIST 3


@program_check(
    rule(
        "V277",
        "W",
        "a loop over nothing",
        "A loop whose body executes no graph and allocates no queue only takes instructions. Perhaps its "
        "endloop is too far up.",
        "[loop: 4, endloop, execute: {graph_name: fwd}]",
        "[loop: 4, execute: {graph_name: fwd}, endloop]",
        "NETLIST 3.4",
    )
)
def loop_over_nothing(_: Context, program: Program) -> Findings:
    """A loop whose body has no execute and no allocation computes variables, or nothing."""
    steps = program.instructions
    works = [0, *accumulate(isinstance(step, Execute | Allocate) for step in steps)]  # before each instruction
    open_loops: list[tuple[Loop, int]] = []
    for index, step in enumerate(steps):
        if isinstance(step, Loop):
            open_loops.append((step, index))
        elif isinstance(step, EndLoop) and open_loops:
            loop, first = open_loops.pop()
            if works[first] == works[index]:
                what = "the body of this loop executes no graph" if index > first + 1 else "this loop has no body"
                yield Finding(loop.at(), what)


@program_check(
    rule(
        "V279",
        "W",
        "a variable is never read",
        "No operand, loop or queue setting of the program uses it. That a varinst counts it up does not count as use.",
        "[staticvar: [$lptr, $gptr], ... only $lptr in the settings]",
        "[staticvar: [$lptr], ...]",
        "NETLIST 3.2",
    ),
    unless=("V270",),
)
def never_read(_: Context, program: Program) -> Findings:
    """A variable that no operand and no setting reads. Parameters are the caller's (NETLIST 3.7); constants are
    declared by the handful, whether a program needs them or not."""
    read = {stored_name(text) for step in program.instructions for text in _read(step)}
    declared: set[str] = set()
    for step in (one for one in program.instructions if isinstance(one, Declare)):
        for name in (pair[0] for pair in step.variables):
            stored = stored_name(name)
            if is_variable(name) and not (stored in read or stored in declared or stored.startswith(_CONSTANT)):
                declared.add(stored)
                yield Finding(name_mark(step, name), f"variable {name} is never read")


def _read(step: Instruction) -> Iterator[str]:
    match step:
        case VarInst():
            yield from filter(is_variable, step.args)
        case Loop():
            yield step.count
        case Execute():
            for settings in step.queue_settings:
                yield from (text for field in _FIELDS if is_variable(text := getattr(settings, field)))
        case _:
            pass


@program_check(
    rule(
        "V280",
        "W",
        "an execute has no settings for a ram or queue that it reads",
        "A ram, or a queue that an op of another graph feeds, may go without settings; it is then read at the "
        "pointers that it happens to have, and nothing is popped. Input queues of the host need settings (V124).",
        "execute: {graph_name: fwd, queue_settings: {x: {...}}} where fwd reads ram w, too",
        "execute: {graph_name: fwd, queue_settings: {x: {...}, w: {...}}}",
        "NETLIST 2, 4.3",
    )
)
def read_without_settings(ctx: Context, program: Program) -> Findings:
    """Rams, and queues that an op of another epoch feeds (NETLIST 2 V124: they may go without)."""
    for steps in _by_epoch(ctx, program).values():
        named = {settings.queue for step in steps for settings in step.queue_settings}
        for step in steps:
            reads = ctx.read.get(step.graph, frozenset())
            missing = [name for name in sorted(reads - named) if _needs_settings(ctx, name, step.graph)]
            if missing:
                more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
                what = f"execute of {step.graph} lacks settings for {', '.join(islice(missing, SHOWN))}{more}"
                yield Finding(step.at("graph_name"), f"{what}, which it reads: their pointers stay where they were")


def _needs_settings(ctx: Context, name: str, graph: str) -> bool:
    queue = ctx.queues.get(name)
    if queue is None or (queue.host_fed and not queue.is_ram):
        return False  # V124 is an error
    producer = ctx.ops.get(queue.input)
    return producer is None or queue.is_ram or ctx.temporal.get(producer.graph) != ctx.temporal.get(graph)


def _by_epoch(ctx: Context, program: Program) -> dict[int, list[Execute]]:
    found: dict[int, list[Execute]] = {}
    for step in program.instructions:
        if isinstance(step, Execute):
            found.setdefault(ctx.temporal.get(step.graph, -1), []).append(step)
    return found


@program_check(
    rule(
        "V281",
        "W",
        "settings for a queue that the graph does not read",
        "The settings of a queue say where it is read and what is popped. The graph that fills it writes at the "
        "queue's own write pointer, so they belong to the graph that reads it. A ram and a gradient's queue need "
        "them where they are written, too.",
        "execute: {graph_name: fwd, queue_settings: {result_of_fwd: {...}}}",
        "execute: {graph_name: reader, queue_settings: {result_of_fwd: {...}}}",
        "NETLIST 4.3",
    )
)
def settings_of_results(ctx: Context, program: Program) -> Findings:
    """The settings of a queue say how it is read; the graph that fills it only takes notice of a ram's."""
    sums = _sums_of_gradients(ctx)
    for step in program.instructions:
        if not isinstance(step, Execute):
            continue
        read = ctx.read.get(step.graph, frozenset())
        for settings in step.queue_settings:
            if not ctx.queues[settings.queue].is_ram and settings.queue not in read | sums:
                what = f"settings for {settings.queue}, which no op of graph {step.graph} reads"
                yield Finding(settings.at(), what, removing("leave them out", safe=False))


@program_check(
    rule(
        "V291",
        "W",
        "an instruction has no effect: no graph is executed after it",
        "A var is gone when the program ends. After the last execute and the loops around it, it matters only "
        "where a queue's settings name it.",
        "[execute: {graph_name: fwd}, varinst: [$i, inc, 1]]",
        "[execute: {graph_name: fwd}]",
        "NETLIST 3.2, 4.3",
    )
)
def after_the_last_execute(_: Context, program: Program) -> Findings:
    """Variables that die with the run, written when nothing follows that could read them."""
    steps = program.instructions
    last = max((index for index, step in enumerate(steps) if isinstance(step, Execute)), default=None)
    if last is None:
        return
    declared = [step for step in steps if isinstance(step, Declare) and step.kind == "var"]
    bound = {stored_name(text) for step in steps if isinstance(step, Execute) for text in _read(step)}
    forgotten = {stored_name(name) for step in declared for name, _ in step.variables} - bound
    for step in steps[_behind(steps, last) :]:
        if isinstance(step, VarInst) and stored_name(step.out) in forgotten:
            yield Finding(step.at(), f"writes {step.out} where no graph is executed any more")
        elif isinstance(step, Declare) and step.kind == "var":
            yield Finding(step.at(), "declares variables where no graph is executed any more")


def _behind(steps: Sequence[Instruction], last: int) -> int:
    """Index after the last execute and the outermost loop around it."""
    depth = 0
    for index, step in enumerate(steps):
        depth += isinstance(step, Loop) - isinstance(step, EndLoop)
        if index >= last and depth <= 0:
            return index + 1
    return len(steps)


def _sums_of_gradients(ctx: Context) -> frozenset[str]:
    gradients = (op for op in ctx.ops.values() if op.gradient_op)
    return frozenset(queue.name for op in gradients for queue in ctx.fed.get(op.name, ()))
