"""Rules that the walk of a program checks (buda_emu.netlist.flow): V126, V270-V276, V278, V282-V287, V289, V290,
V292, V293."""

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Final

from buda_emu.netlist.flow import notes_of
from buda_emu.netlist.flow.variables import name_mark
from buda_emu.netlist.model import Allocate, Declare, EndLoop, Execute, Instruction, Loop, Program, VarInst
from buda_emu.netlist.rules.context import Context
from buda_emu.netlist.rules.programs.steps import SHOWN, hint_for_useless, needs_settings, queues_without_settings
from buda_emu.netlist.rules.registry import Finding, Findings, program_check, rule
from buda_emu.spec.varinst import is_variable, stored_name
from buda_emu.support.checker.text import list_first

rule(
    "V270",
    "X",
    "a variable is used that has no value",
    "A variable has a value once var, staticvar or param declares it, or a varinst writes it. Programs have no "
    "branches and loops run at least once, so the run ends with an error there.",
    "[staticvar: [$rd_ptr], varinst: [$x, set, $rdd_ptr]]",
    "[staticvar: [$rd_ptr], varinst: [$x, set, $rd_ptr]]",
    "NETLIST 3.1",
)
rule(
    "V271",
    "X",
    "an instruction cannot be carried out as it is written",
    "An operand is a number in decimal, true, false or a $variable; set and inc take one operand, add, mul and "
    "incwrap two; incwrap needs a modulus other than 0; the name of a variable starts with $.",
    "- varinst: [$x, incwrap, 1]",
    "- varinst: [$x, incwrap, 1, 4]",
    "NETLIST 3.1, 3.3, 11.2 B7",
)
rule(
    "V272",
    "X",
    "a variable is declared twice",
    "var and param need a name that is not in use, a staticvar one that only staticvar declared. A var inside a"
    " loop is declared again in the second round.",
    "[var: [$x], loop: 2, var: [$y], endloop]",
    "[var: [$x, $y], loop: 2, endloop]",
    "NETLIST 3.2",
)
rule(
    "V273",
    "X",
    "an endloop without a loop",
    "Each endloop ends the innermost loop that is open.",
    "[execute: {graph_name: fwd}, endloop]",
    "[loop: 2, execute: {graph_name: fwd}, endloop]",
    "NETLIST 3.4",
)
rule(
    "V274",
    "X",
    "a loop runs less than once",
    "The count is evaluated where the loop begins, and must be at least 1: there are no loops of no rounds.",
    "- loop: 0",
    "- loop: 1",
    "NETLIST 3.4",
)
rule(
    "V275",
    "X",
    "queue settings that no run accepts",
    "zero needs prologue; a ram with global_wrptr_autoinc has neither prologue, epilogue nor zero; prologue and"
    " epilogue may not be parameters; pointers of a ram lie in its slots, those of a queue are not negative; "
    "graphs that run at the same time give a queue the same settings.",
    "q0: {zero: true, prologue: false, ...}",
    "q0: {zero: true, prologue: true, ...}",
    "NETLIST 3.5, 4.1, 4.3",
)
rule(
    "V276",
    "W",
    "a loop without an endloop",
    "The missing endloop is not an error: the body is run once, whatever the count is.",
    "[loop: 4, execute: {graph_name: fwd}]",
    "[loop: 4, execute: {graph_name: fwd}, endloop]",
    "NETLIST 3.4",
)
rule(
    "V278",
    "W",
    "a variable is written that is not declared",
    "It comes to be, and keeps its value until the program runs again, as a staticvar does. Most likely it is "
    "misspelt.",
    "[staticvar: [$lptr], varinst: [$lprt, set, 1]]",
    "[staticvar: [$lptr], varinst: [$lptr, set, 1]]",
    "NETLIST 3.2",
)
rule(
    "V282",
    "W",
    "a queue is read while it is empty, or beyond its entries",
    "Only the ops of this program fill the queue, and where its entries are counted from the beginning of the "
    "first run, there are not enough of them. Unless the host fills it, too, the run fails or reads what is "
    "old.",
    "[execute: {graph_name: reads_q}, execute: {graph_name: writes_q}]",
    "[execute: {graph_name: writes_q}, execute: {graph_name: reads_q}]",
    "NETLIST 4.1, 4.3",
)
rule(
    "V283",
    "W",
    "a queue between graphs gets full",
    "A graph writes one entry for each of its inputs. The queue is read by ops, so nobody else takes entries "
    "out, and its settings have not popped enough of them by then.",
    "{entries: 2} written by the second of two executes with input_count 2, nothing popped between",
    "{entries: 4}",
    "NETLIST 4.1, 4.3",
)
rule(
    "V284",
    "W",
    "a loop takes more instructions than a run is given",
    "A run ends with an error after 10,000,000 instructions, and inputs of epochs: far beyond any real program.",
    "- loop: 2000000000",
    "- loop: 20",
    "NETLIST 3.4",
)
rule(
    "V285",
    "W",
    "a variable is declared inside a loop",
    "The second round declares it again, which is an error (V272). How often the loop runs is up to a "
    "parameter, or to more than a check goes through.",
    "[param: [$p_n], loop: $p_n, var: [$x], endloop]",
    "[param: [$p_n], var: [$x], loop: $p_n, endloop]",
    "NETLIST 3.2",
)
rule(
    "V286",
    "W",
    "a queue's pointer is wrapped at another place than the queue's",
    "The pointers of a queue run modulo twice its entries, so that full and empty differ. A variable that "
    "rd_ptr_global names and that incwrap wraps elsewhere loses its place there, and one that only rd_ptr_local names "
    "goes on with another entry unless it wraps at a multiple of the entries. Rams wrap at their entries.",
    "varinst: [$gptr, incwrap, 1, 4] for a queue of 4 entries",
    "varinst: [$gptr, incwrap, 1, 8] for a queue of 4 entries",
    "NETLIST 4.1, 4.3",
)
rule(
    "V287",
    "W",
    "a varinst moves a ram's pointer beyond its slots",
    "Rams that were executed before follow the variables of their settings at once. The reference refuses a "
    "pointer beyond the last slot even when nothing uses it any more; the device only notes it.",
    "varinst: [$wptr, inc, 1] in a loop of 4 rounds, for a ram of 2 entries",
    "varinst: [$wptr, incwrap, 1, 2]",
    "NETLIST 4.1, 4.3, 12",
)
rule(
    "V289",
    "W",
    "zero for a queue that is not a sum of gradients",
    "zero clears a gradient op's sum at the begin of an execute. Elsewhere it clears the entries that the graph"
    " is about to read.",
    "weights: {prologue: true, zero: true, ...}",
    "weights: {prologue: true, zero: false, ...}",
    "NETLIST 4.1, 4.4",
)
rule(
    "V290",
    "W",
    "the entries of a queue are never popped",
    "An op or the host fills it and ops read it on and on, but rd_ptr_global stays where it is and "
    "global_rdptr_autoinc is 0: when all entries are written, the next one has no room.",
    "q: {rd_ptr_local: $lptr, rd_ptr_global: $c_zero} in a loop",
    "q: {rd_ptr_local: $lptr, rd_ptr_global: $gptr} with a varinst that moves $gptr",
    "NETLIST 4.1, 4.3",
)
rule(
    "V292",
    "W",
    "a queue that is read by prologue moves on by several entries",
    "With prologue or epilogue all inputs of an execute read the same entry. A pointer that moves on by as many "
    "entries as the graph has inputs is a stream's: all but the first of them are never read.",
    "x: {prologue: true, rd_ptr_local: $lptr, ...} and varinst: [$lptr, incwrap, 64, 256]",
    "x: {prologue: false, rd_ptr_local: $lptr, ...} and varinst: [$lptr, incwrap, 64, 256]",
    "NETLIST 4.4",
)
rule(
    "V293",
    "W",
    "a queue's pointer moves on by another number of entries than are read",
    "An execute reads as many entries of a queue as its graph has inputs, beginning at rd_ptr_local. A variable that "
    "moves on by less or more reads entries again or leaves some out, and no value shows it. rd_ptr_global alone may "
    "move by a multiple, which pops the entries of several executes.",
    "varinst: [$lptr, incwrap, 2, 12] for a graph of input_count 3",
    "varinst: [$lptr, incwrap, 3, 12] for a graph of input_count 3",
    "NETLIST 4.3, 5.4",
)
WALKED: Final = (
    "V126", "V270", "V271", "V272", "V273", "V274", "V275", "V276", "V278",
    "V282", "V283", "V284", "V285", "V286", "V287", "V289", "V290", "V292", "V293",
)  # fmt: skip
_FOLLOWS: Final = {"V290": ("V283",)}  # a queue that is never popped, from one that gets full


def _check_of_notes(rule: str) -> Callable[[Context, Program], Findings]:
    """Return a check that yields the notes of the walks under a rule; the walks are made once for all rules."""

    def check(ctx: Context, program: Program) -> Findings:
        """Yield the notes of the rule in one program as findings; the first check of a netlist makes all walks."""
        if not ctx.notes:
            ctx.notes.update(notes_of(ctx.netlist))
        for note in ctx.notes[program.name]:
            if note.rule == rule:
                yield Finding(note.place, note.message, note.hint)

    return check


for _rule in WALKED:
    program_check(_rule, unless=_FOLLOWS.get(_rule, ()))(_check_of_notes(_rule))


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
    """Warn of a loop whose body has no execute and no allocation, so that it only computes variables."""
    steps = program.instructions
    works = [0, *accumulate(isinstance(step, Execute | Allocate) for step in steps)]  # before each instruction
    open_loops: list[tuple[Loop, int]] = []
    for index, step in enumerate(steps):
        if isinstance(step, Loop):
            open_loops.append((step, index))
        elif isinstance(step, EndLoop) and open_loops:
            loop, first = open_loops.pop()
            if works[first] == works[index]:
                if index > first + 1:
                    message = "the body of this loop executes no graph"
                else:
                    message = "this loop has no body"
                yield Finding(loop.at(), message)


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
    """Warn of a variable that no operand and no setting reads. Parameters are the caller's (NETLIST 3.7), and front
    ends declare the same constants whether a program needs them or not."""
    names_in_use = {stored_name(text) for step in program.instructions for text in _names_read(step)}
    for step in program.instructions:
        if not isinstance(step, Declare):
            continue
        for name, _text in step.variables:
            stored = stored_name(name)
            if is_variable(name) and stored not in names_in_use and not stored.startswith(_CONSTANT):
                names_in_use.add(stored)  # one finding for each variable
                yield Finding(name_mark(step, name), f"variable {name} is never read")


def _names_read(step: Instruction) -> Iterator[str]:
    """Yield the variables that an instruction reads: as operand, loop count or queue setting. A loop count is yielded
    also if it is a number."""
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
    """Warn of an execute without settings for rams, and for queues that an op of another epoch feeds, which it
    reads. The device's loader accepts this (NETLIST 2 V124)."""
    for steps in _by_epoch(ctx, program).values():
        named = {settings.queue for step in steps for settings in step.queue_settings}
        for step in steps:
            reads = ctx.read.get(step.graph, frozenset())
            missing = [name for name in sorted(reads - named) if _may_go_without_settings(ctx, name, step.graph)]
            if missing:
                message = f"execute of {step.graph} lacks settings for {list_first(missing, SHOWN)}"
                yield Finding(step.at("graph_name"), f"{message}, which it reads: their pointers stay where they were")


def _may_go_without_settings(ctx: Context, name: str, graph: str) -> bool:
    """Return whether a queue or ram that needs settings is accepted without them by the device's loader. False for an
    input queue of the host, which rule V124 refuses."""
    queue = ctx.queues.get(name)
    is_input = queue is not None and queue.host_fed and not queue.is_ram
    return not is_input and needs_settings(ctx, name, graph)


def _by_epoch(ctx: Context, program: Program) -> dict[int, list[Execute]]:
    """Return the executes of a program by the id of the temporal graph to which their graph belongs, -1 where it
    belongs to none."""
    steps_by_epoch: dict[int, list[Execute]] = {}
    for step in program.instructions:
        if isinstance(step, Execute):
            steps_by_epoch.setdefault(ctx.temporal.get(step.graph, -1), []).append(step)
    return steps_by_epoch


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
    """Warn of settings for a queue that the graph only fills: they say how it is read, and only a ram's are used
    when it is written."""
    sums = _sums_of_gradients(ctx)
    for step in program.instructions:
        if not isinstance(step, Execute):
            continue
        used = ctx.read.get(step.graph, frozenset()) | sums
        lacking = queues_without_settings(ctx, step)
        for settings in step.queue_settings:
            if not ctx.queues[settings.queue].is_ram and settings.queue not in used:
                message = f"settings for {settings.queue}, which no op of graph {step.graph} reads"
                yield Finding(settings.at(), message, hint_for_useless(lacking, settings))


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
    """Warn of variables that die with the run and are written or declared when no later instruction can read them."""
    steps = program.instructions
    last = max((index for index, step in enumerate(steps) if isinstance(step, Execute)), default=None)
    if last is None:
        return
    forgotten = _unread_variables(steps)
    for step in steps[_index_behind(steps, last) :]:
        if isinstance(step, VarInst) and stored_name(step.out) in forgotten:
            yield Finding(step.at(), f"writes {step.out} where no graph is executed any more")
        elif isinstance(step, Declare) and step.kind == "var":
            yield Finding(step.at(), "declares variables where no graph is executed any more")


def _unread_variables(steps: Sequence[Instruction]) -> set[str]:
    """Return the names of the variables of one run, those that `var` declares, which no execute reads."""
    declared: set[str] = set()
    read: set[str] = set()
    for step in steps:
        if isinstance(step, Declare) and step.kind == "var":
            declared.update(stored_name(name) for name, _ in step.variables)
        elif isinstance(step, Execute):
            read.update(map(stored_name, _names_read(step)))
    return declared - read


def _index_behind(steps: Sequence[Instruction], last: int) -> int:
    """Return the index of the first instruction after the last execute, whose index is `last`, and after the outermost
    loop around it."""
    depth = 0
    for index, step in enumerate(steps):
        depth += isinstance(step, Loop) - isinstance(step, EndLoop)
        if index >= last and depth <= 0:
            return index + 1
    return len(steps)


def _sums_of_gradients(ctx: Context) -> frozenset[str]:
    """Return the names of the queues that gradient ops feed."""
    gradients = (op for op in ctx.ops.values() if op.gradient_op)
    return frozenset(queue.name for op in gradients for queue in ctx.fed.get(op.name, ()))
