"""Rules on programs: executes and their queue settings (NETLIST 2: V113-V128; 3; 11.1 A11, 11.2 B7-B9, B11).

Only the last body of a program name is checked (11.1 A16); the model holds no other.
"""

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from itertools import chain

from buda_emu.netlist.flow.variables import operand_mark
from buda_emu.netlist.model import Execute, Graph, Op, Param, Program, Queue, QueueSettings, VarInst
from buda_emu.netlist.repetitions import repetition_hint
from buda_emu.netlist.rules.context import Context
from buda_emu.netlist.rules.registry import TWICE, Finding, Findings, program_check, rule
from buda_emu.spec.varinst import OPCODES
from buda_emu.support.checker.fix import removing, replacing
from buda_emu.support.checker.suggest import near
from buda_emu.support.checker.text import list_first

SHOWN = 4
"""How many names a message lists."""


@program_check(
    rule(
        "V113",
        "P",
        "a varinst has too few operands or an unknown opcode",
        "A varinst is [variable, opcode, arguments]; opcodes are set, add, mul, inc and incwrap. Whether the "
        "number of arguments is right shows when the program runs.",
        "- varinst: [$x, sub, 1]",
        "- varinst: [$x, inc, -1]",
        "NETLIST 3.3, 11.2 B7",
    )
)
def opcodes(_: Context, program: Program) -> Findings:
    """Refuse unknown opcodes of varinst (NETLIST 3.3). Wrong operand counts fail when the program runs (11.2 B7)."""
    for step in program.instructions:
        if isinstance(step, VarInst) and step.opcode not in OPCODES:
            yield Finding(operand_mark(step, 1), f"unknown opcode '{step.opcode}'", near(step.opcode, OPCODES))


@program_check(
    rule(
        "V121",
        "P",
        "param is not the first instruction",
        "Parameters are bound when the program is called.",
        "[var: [$x], param: [$p_n]]",
        "[param: [$p_n], var: [$x]]",
        "NETLIST 3",
    )
)
def param_first(_: Context, program: Program) -> Findings:
    """Refuse a param that is not the first instruction, also a second one."""
    for step in program.instructions[1:]:
        if isinstance(step, Param):
            yield Finding(step.at(), "param must be the first instruction, once")


@program_check(
    rule(
        "V128",
        "P",
        "execute of a graph that does not exist",
        'An execute without graph_name names the graph "". On grayskull an execute without settings fails only '
        "when it runs.",
        "execute: {graph_name: fwdd}",
        "execute: {graph_name: fwd}",
        "NETLIST 2, 11.2 B11",
    ),
    unless=TWICE,
)
def graph_exists(ctx: Context, program: Program) -> Findings:
    """Refuse an execute of a graph that does not exist (NETLIST 2). Without graph_name the graph is "" (11.2 B11). On
    grayskull an execute without queue settings is not refused here: it fails when it runs."""
    for step in _executes(program):
        if (
            step.graph not in ctx.netlist.graphs
            and not step.broken
            and (ctx.arch.name != "grayskull" or step.queue_settings)
        ):
            if step.graph:
                message = f"executes graph '{step.graph}', which does not exist"
                hint = partial(_graph_hint, step.graph, ctx.netlist.graphs)
            else:
                message = "executes no graph"
                hint = "add graph_name"
            yield Finding(step.at("graph_name"), message, hint)


_FEW_GRAPHS = 4  # a hint with more names would be longer than a line


def _graph_hint(name: str, graphs: Collection[str]) -> str:
    """Return the hint about a graph that does not exist: the one that was probably meant, else all graphs where there
    are few, else ""."""
    hint = near(name, graphs)
    if not hint and 0 < len(graphs) <= _FEW_GRAPHS:
        hint = f"the netlist has {', '.join(graphs)}"
    return hint


@program_check(
    rule(
        "V177",
        "P",
        "a queue is named twice in queue_settings",
        "The second settings would never be used, also where `queue_settings` itself is repeated.",
        "queue_settings: {q0: {...}, q0: {...}}",
        "queue_settings: {q0: {...}, q1: {...}}",
        "NETLIST 11.1 A11",
    )
)
def named_once(ctx: Context, program: Program) -> Findings:
    """Refuse a second entry for a queue in the settings of one execute."""
    for step in _executes(program):
        first: dict[str, QueueSettings] = {}
        lacking = queues_without_settings(ctx, step)
        for setting in step.queue_settings:
            if setting.queue in first:
                message = f"settings for queue {setting.queue} occur twice in one execute"
                yield Finding(setting.at(), message, _hint_for_second(lacking, first[setting.queue], setting))
            else:
                first[setting.queue] = setting


def _hint_for_second(lacking: Sequence[str], first: QueueSettings, second: QueueSettings) -> str:
    """Return the hint for `second`, further settings of a queue that already has `first` in the same execute. If
    exactly one queue lacks settings (`lacking`), they are probably meant for that one; else it says to leave one of the
    two out. "" for settings that were not read from a text."""
    if len(lacking) == 1:
        return _meant_for(second, lacking[0])
    if second.source is None:
        return ""
    return repetition_hint(first.source, second.source, "leave one of them out", safe=False)


def hint_for_useless(lacking: Sequence[str], settings: QueueSettings) -> str:
    """Return the hint for settings of a queue that a graph does not use: they are meant for a queue in `lacking`, which
    has none, or are to be removed if no queue lacks settings."""
    if not lacking:
        return removing("leave them out", safe=False)
    if len(lacking) == 1:
        return _meant_for(settings, lacking[0])
    names = ", ".join(lacking[:SHOWN])
    return near(settings.queue, lacking) or f"are they meant for one of those that have none: {names}?"


def _meant_for(settings: QueueSettings, queue: str) -> str:
    """Return the hint that settings are meant for `queue`, which has none."""
    return replacing(f"did you mean '{queue}', which has none?", settings.queue, queue, safe=False)


def queues_without_settings(ctx: Context, step: Execute) -> list[str]:
    """Return the queues that an execute reads, that need settings, and that have none."""
    names = ctx.read.get(step.graph, frozenset()) - {settings.queue for settings in step.queue_settings}
    return [name for name in sorted(names) if needs_settings(ctx, name, step.graph)]


def needs_settings(ctx: Context, name: str, graph: str) -> bool:
    """Return whether a graph that reads a queue needs settings for it. It does for a ram, and for a queue that the host
    or an op of another temporal graph feeds."""
    queue = ctx.queues.get(name)
    if queue is None:
        return False
    producer = ctx.ops.get(queue.input)
    return producer is None or queue.is_ram or ctx.temporal.get(producer.graph) != ctx.temporal.get(graph)


@program_check(
    rule(
        "V116",
        "P",
        "settings for a queue that does not exist",
        "queue_settings name queues of this netlist. A queue with a list of devices is queue.device in a graph on"
        " one device.",
        "queue_settings: {q9: {...}}",
        "queue_settings: {q0: {...}}",
        source="NETLIST 2",
    ),
    unless=TWICE,
)
def queue_exists(ctx: Context, program: Program) -> Findings:
    """Refuse settings of a queue that does not exist, unless an op reads that name and V017 reports it."""
    for setting in _intact_settings(program):
        # V017 reports a name that an op reads, unless the name is that of an op.
        if setting.queue not in ctx.queues and (setting.queue not in ctx.readers or setting.queue in ctx.ops):
            message = f"settings for queue '{setting.queue}', which does not exist"
            yield Finding(setting.at(), message, partial(near, setting.queue, ctx.queues))


@program_check(
    rule(
        "V117",
        "P",
        "queue_settings without rd_ptr_global",
        "Every execute says where reading starts. Nothing after the colon counts as a value, quotes around "
        "nothing do not.",
        "q0: {rd_ptr_local: $lp}",
        "q0: {rd_ptr_local: $lp, rd_ptr_global: $gp}",
        "NETLIST 2, 11.2 B9",
    )
)
def global_read_pointer(ctx: Context, program: Program) -> Findings:
    """Refuse settings without rd_ptr_global: absent, or the quoted empty string (NETLIST 11.2 B9)."""
    for setting in _intact_settings(program):
        if setting.queue in ctx.queues and not setting.rd_ptr_global:
            yield Finding(setting.at("rd_ptr_global"), f"settings for {setting.queue} lack rd_ptr_global")


@program_check(
    rule(
        "V118",
        "P",
        "settings of a queue lack or have the wrong pointers",
        "A queue has rd_ptr_local and rd_ptr_global; its write pointer is the device's own. A queue that an op "
        "feeds has no epilogue.",
        "q0: {rd_ptr_global: $gp, wr_ptr_global: $gp}",
        "q0: {rd_ptr_global: $gp, rd_ptr_local: $lp}",
        "NETLIST 2, 11.2 B8",
    )
)
def queue_pointers(ctx: Context, program: Program) -> Findings:
    """Refuse wr_ptr_global, a missing rd_ptr_local, and epilogue on an op-fed queue, in the settings of a queue
    (NETLIST 2). Only the lower-case word `true` counts as epilogue (11.2 B8)."""
    for setting in _intact_settings(program):
        queue = ctx.queues.get(setting.queue)
        if queue is None or queue.type != "queue":
            continue
        if setting.wr_ptr_global:
            message = f"settings for {queue.name} set wr_ptr_global, which only a ram has"
            yield Finding(setting.at("wr_ptr_global"), message)
        if not setting.rd_ptr_local:
            yield Finding(setting.at("rd_ptr_local"), f"settings for {queue.name} lack rd_ptr_local")
        if setting.epilogue == "true" and not queue.host_fed:
            message = f"settings for {queue.name} set epilogue, but an op feeds it"
            yield Finding(setting.at("epilogue"), message)


@program_check(
    rule(
        "V119",
        "P",
        "settings of a ram lack or have the wrong pointers",
        "A ram has rd_ptr_global and wr_ptr_global: slots, not a position in a stream.",
        "w0: {rd_ptr_global: $c_zero, rd_ptr_local: $c_zero}",
        "w0: {rd_ptr_global: $c_zero, wr_ptr_global: $c_zero}",
        source="NETLIST 2",
    )
)
def ram_pointers(ctx: Context, program: Program) -> Findings:
    """Refuse rd_ptr_local and a missing wr_ptr_global in the settings of a ram."""
    for setting in _intact_settings(program):
        queue = ctx.queues.get(setting.queue)
        if queue is None or not queue.is_ram:
            continue
        if setting.rd_ptr_local:
            message = f"settings for ram {queue.name} set rd_ptr_local, which only a queue has"
            yield Finding(setting.at("rd_ptr_local"), message)
        if not setting.wr_ptr_global:
            yield Finding(setting.at("wr_ptr_global"), f"settings for ram {queue.name} lack wr_ptr_global")


@program_check(
    rule(
        "V120",
        "P",
        "both autoincrements of a queue are set, differently",
        "rd_ptr_autoinc (1 for a queue unless written) and global_rdptr_autoinc move one stream; texts are "
        "compared, so two variables differ even if their values do not.",
        "q0: {rd_ptr_autoinc: 1, global_rdptr_autoinc: 2}",
        "q0: {rd_ptr_autoinc: 2, global_rdptr_autoinc: 2}",
        "NETLIST 1.5, 2",
    )
)
def one_autoincrement(ctx: Context, program: Program) -> Findings:
    """Refuse different rd_ptr_autoinc and global_rdptr_autoinc of which none is 0 (NETLIST 2). Texts are compared,
    defaults included (1.5)."""
    for setting in _intact_settings(program):
        local = setting.rd_ptr_autoinc
        shared = setting.global_rdptr_autoinc
        if local != shared and local != "0" and shared != "0" and setting.queue in ctx.queues:
            message = f"settings for {setting.queue} have rd_ptr_autoinc {local} and global_rdptr_autoinc {shared}"
            yield Finding(setting.at("global_rdptr_autoinc", "rd_ptr_autoinc"), message, "equal, or one of them 0")


@program_check(
    rule(
        "V122",
        "P",
        "a gradient op's queue has no settings",
        "Only the settings say whether the accumulator starts from zero.",
        "execute: {graph_name: bwd, queue_settings: {}}",
        "execute: {graph_name: bwd, queue_settings: {grad: {prologue: true, epilogue: true, zero: $z, ...}}}",
        "NETLIST 2, 4.4",
    )
)
def gradient_queue_set(ctx: Context, program: Program) -> Findings:
    """Refuse an execute without settings for the accumulator of a gradient op, which needs its flags (NETLIST 2)."""
    gradients = [op for op in ctx.ops.values() if op.gradient_op]
    fed = _by_graph((queue, op) for op in gradients for queue in ctx.fed.get(op.name, ()))
    yield from _missing_settings(ctx, program, fed, "which a gradient op feeds")


@program_check(
    rule(
        "V123",
        "P",
        "settings for a queue that the graph does not use",
        "The executed graph must read or write every queue that the settings name.",
        "execute: {graph_name: fwd, queue_settings: {queue_of_another_graph: {...}}}",
        "execute: {graph_name: fwd, queue_settings: {input_of_fwd: {...}}}",
        source="NETLIST 2",
    ),
    unless=("V128",),
)
def useless_setting(ctx: Context, program: Program) -> Findings:
    """Refuse settings for a queue that the executed graph neither reads nor writes."""
    for step, graph in _intact_executes(ctx, program):
        lacking = queues_without_settings(ctx, step)
        for setting in step.queue_settings:
            queue = ctx.queues.get(setting.queue)
            if queue is None or queue.name in ctx.read[graph.name]:
                continue
            producer = ctx.ops.get(queue.input)
            if producer is None or producer.graph != graph.name:
                message = f"settings for {queue.name}, which graph {graph.name} neither reads nor writes"
                yield Finding(setting.at(), message, hint_for_useless(lacking, setting))


@program_check(
    rule(
        "V124",
        "P",
        "an input queue has no settings",
        "Without settings it is unknown where the graph reads a queue that the host fills. Rams and queues "
        "fed by ops need none.",
        "execute: {graph_name: fwd}",
        "execute: {graph_name: fwd, queue_settings: {in: {rd_ptr_local: $lp, rd_ptr_global: $gp, ...}}}",
        source="NETLIST 2",
    )
)
def inputs_set(ctx: Context, program: Program) -> Findings:
    """Refuse an execute without settings for queues that its graph reads; rams and op-fed queues may go without
    (NETLIST 2)."""
    host = [queue for queue in ctx.queues.values() if queue.host_fed and not queue.is_ram]
    read = _by_graph((queue, op) for queue in host for op in ctx.readers.get(queue.name, ()))
    yield from _missing_settings(ctx, program, read, "which it reads")


def _by_graph(pairs: Iterator[tuple[Queue, Op]]) -> dict[str, dict[str, None]]:
    """Return the names of queues by the graph of the op that uses them, in order."""
    result: dict[str, dict[str, None]] = {}
    for queue, op in pairs:
        result.setdefault(op.graph, {})[queue.name] = None
    return result


def _missing_settings(ctx: Context, program: Program, needed: dict[str, dict[str, None]], why: str) -> Findings:
    """Yield a finding for each execute that lacks settings for queues. `needed` holds the queues that need them by
    graph; `why` ends the message, such as "which it reads".
    """
    for step, graph in _intact_executes(ctx, program):
        names = needed.get(graph.name, {})
        named = {setting.queue for setting in step.queue_settings}
        if not names.keys() <= named:
            missing = [name for name in names if name not in named]
            message = f"execute of {graph.name} lacks settings for {list_first(missing, SHOWN)}, {why}"
            yield Finding(step.at("graph_name"), message)


def _executes(program: Program) -> Iterator[Execute]:
    """Yield the executes of a program."""
    return (step for step in program.instructions if isinstance(step, Execute))


def _intact_settings(program: Program) -> Iterator[QueueSettings]:
    """Yield the queue settings of all executes in which reading found no error."""
    settings = chain.from_iterable(step.queue_settings for step in _executes(program))
    return (setting for setting in settings if not setting.broken)


def _intact_executes(ctx: Context, program: Program) -> Iterator[tuple[Execute, Graph]]:
    """Yield each execute whose graph exists and has no broken op, with the graph; the settings of other executes cannot
    be checked."""
    for step in _executes(program):
        graph = ctx.netlist.graphs.get(step.graph)
        if graph is not None and not step.broken and graph.name not in ctx.doubtful:
            yield step, graph


# Rules without a function here: those that the reader of netlists checks, and those that nothing checks
rule(
    "V110",
    "P",
    "a program or instruction is malformed or unknown",
    "`programs` is a list of {name: [instructions]}, an instruction a map {name: operand}: param, var, "
    "staticvar, varinst, loop, endloop, execute, allocate_queue, deallocate_queue.",
    "- run: fwd",
    "- execute: {graph_name: fwd}",
    "NETLIST 3",
)
rule(
    "V111",
    "P",
    "a bare instruction other than endloop",
    "Only endloop is a word alone. The end of a program is implied, endprogram is not written.",
    "- endprogram",
    "- endloop",
    "NETLIST 2",
)
rule(
    "V112",
    "P",
    "a declaration is not a list or map",
    "var and staticvar take a list (values start at 0) or a map of names to values, param a list.",
    "- var: $x",
    "- var: [$x]",
    "NETLIST 3",
)
rule(
    "V114",
    "P",
    "allocate_queue or deallocate_queue names no queue",
    "Both take a list of queues that are declared further up in the file.",
    "- allocate_queue: buf0",
    "- allocate_queue: [buf0]",
    "NETLIST 3.6",
)
rule(
    "V115",
    "P",
    "unknown key in execute or queue_settings",
    "execute has graph_name and queue_settings. A setting has prologue, epilogue, zero, read_only, "
    "rd_ptr_global, rd_ptr_local, wr_ptr_global and the autoincrements.",
    "- execute: {graph: fwd}",
    "- execute: {graph_name: fwd}",
    "NETLIST 3",
)
