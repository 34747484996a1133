"""Rules of programs that only the device's runtime enforces (NETLIST V125-V127)."""

from buda_emu.netlist.model import Declare, EndLoop, Execute, Loop, Program, Queue, VarInst
from buda_emu.netlist.rules.context import Context
from buda_emu.netlist.rules.registry import Finding, Findings, program_check, queue_check
from buda_emu.netlist.rules.rule import rule


@program_check(
    rule(
        "V125",
        "R",
        "a constant variable is written again",
        "A variable whose name starts with $c_ keeps the value it has when the program's first loop or execute "
        "begins; a static one is only changed by set.",
        "[loop: 2, varinst: [$c_one, inc, 1], endloop]",
        "[varinst: [$c_one, set, 1], loop: 2, endloop]",
        "NETLIST 3",
    )
)
def constants_kept(_: Context, program: Program) -> Findings:
    """`$c_...` gets its value before the program's first loop or execute; a static one only by `set` (NETLIST 3)."""
    depth, started = 0, False
    statics: set[str] = set()
    for step in program.instructions:
        started = started or isinstance(step, Loop | Execute)
        if isinstance(step, Loop | EndLoop):
            depth += 1 if isinstance(step, Loop) else -1
        elif isinstance(step, Declare):
            names = {name.replace("$", "") for name, _ in step.variables}
            statics |= names if step.kind == "staticvar" else set()
            if depth > 0 and any(name.startswith("c_") for name in names):
                yield Finding(step.at(), "declares a constant inside a loop")
        elif isinstance(step, VarInst):
            name = step.out.replace("$", "")
            if not name.startswith("c_"):
                continue
            sources = {word.replace("$", "") for word in step.args if "$" in word}
            if depth > 0:
                yield Finding(step.at(), f"changes constant {step.out} inside a loop")
            elif started:
                yield Finding(step.at(), f"changes constant {step.out} after the program's first loop or execute")
            elif name in statics and step.opcode != "set":
                yield Finding(step.at(), f"changes static constant {step.out} by {step.opcode}", "only set may")
            elif name in statics and any(one in statics and not one.startswith("c_") for one in sources):
                yield Finding(step.at(), f"sets static constant {step.out} from a static variable")


@program_check(
    rule(
        "V126",
        "R",
        "the graphs of a temporal graph are not executed together",
        "They run at the same time and wait for each other: a program executes all of them before it executes one"
        " again or another group.",
        "[execute: g0, execute: g0, execute: g1, execute: g1] where g0 feeds g1",
        "[execute: g0, execute: g1, execute: g0, execute: g1]",
        "NETLIST 2, 4.3",
    )
)
def temporal_graphs_whole(ctx: Context, program: Program) -> Findings:
    """The graphs of a temporal graph start together: all are executed before one of them is again, or another group."""
    members = {one.id: {*one.graphs} for one in ctx.netlist.temporal_graphs}
    current, seen = -1, set[str]()
    last: Execute | None = None
    for step in program.instructions:
        if not isinstance(step, Execute):
            continue
        group = ctx.temporal.get(step.graph, -1)
        if group != current or step.graph in seen:
            yield from _unfinished(members.get(current, set()), seen, last)
            current, seen = group, set[str]()
        seen.add(step.graph)
        last = step
    yield from _unfinished(members.get(current, set()), seen, last)


def _unfinished(members: set[str], seen: set[str], last: Execute | None) -> Findings:
    if last is not None and (missing := members - seen):
        what = f"executes {', '.join(sorted(seen))} without {', '.join(sorted(missing))}, which run at the same time"
        yield Finding(last.at("graph_name"), what)


@queue_check(
    rule(
        "V127",
        "W",
        "a buffered queue is not allocated dynamically or reads by more than one",
        "A queue from one op to another of the same temporal graph, with several entries, is a buffer. It is "
        "meant to be allocated by the program and read entry by entry.",
        "a queue between two ops that no allocate_queue names",
        "- allocate_queue: [buf0]",
    )
)
def buffered_queue(ctx: Context, queue: Queue) -> Findings:
    """A queue between two ops of one temporal graph is a buffer: allocated while the program runs, read one by one."""
    producer = ctx.ops.get(queue.input)
    readers = ctx.readers.get(queue.name, ())
    if queue.is_ram or producer is None or len(readers) != 1 or queue.entries < 2:
        return
    if ctx.temporal.get(producer.graph) != ctx.temporal.get(readers[0].graph):
        return
    if queue.name not in ctx.dynamic:
        yield Finding(queue.at(), "buffers between two ops of one temporal graph, but no program allocates it")


@program_check("V127")
def buffered_step(ctx: Context, program: Program) -> Findings:
    for step in program.instructions:
        for setting in step.queue_settings if isinstance(step, Execute) else ():
            queue = ctx.queues[setting.queue]
            if setting.rd_ptr_autoinc.isdigit() and int(setting.rd_ptr_autoinc) > 1 and any(buffered_queue(ctx, queue)):
                yield Finding(setting.at("rd_ptr_autoinc"), f"reads buffer {queue.name} by {setting.rd_ptr_autoinc}")
