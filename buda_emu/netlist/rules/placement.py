"""Where ops and queues stand: cores, chips, prologues (NETLIST 2, V150, V158-V162; tables of 2.1; stages N and R).

Not judged, for want of published numbers: the cluster (V157, V160) and the unique-id window (V163).
"""

from collections.abc import Iterator

from buda_emu.netlist.model import Execute, Graph, Op, Program, Queue, QueueSettings
from buda_emu.netlist.rules.context import Context, attribute_mark, on_ethernet
from buda_emu.netlist.rules.graphs import rectangle
from buda_emu.netlist.rules.registry import Finding, Findings, op_check, program_check

GRAYSKULL_WINDOW = 0x30000000
"""Start of the part of channel 0 that other grayskull chips can reach (NETLIST 2.1)."""
TRUE, FALSE = ("true", "1"), ("false", "0")


@op_check("V150")
def in_worker_grid(ctx: Context, op: Op) -> Findings:
    """The whole rectangle stands on worker cores."""
    if len(op.grid_loc) != 2 or on_ethernet(op):
        return
    row, column, row_end, column_end = rectangle(op)
    rows, columns = ctx.arch.grid
    if min(row, column) < 0 or row_end > rows or column_end > columns:
        what = f"stands on cores [{row}, {column}] to [{row_end - 1}, {column_end - 1}]"
        yield Finding(op.at("grid_loc"), f"{what}, the last one of {ctx.arch.name} is [{rows - 1}, {columns - 1}]")


@op_check("V158")
def grayskull_remote(ctx: Context, op: Op) -> Findings:
    """NETLIST 2: grayskull chips reach each other through one window only."""
    if ctx.arch.name != "grayskull":
        return
    for _, source in ctx.sources(op):
        if isinstance(source, Queue) and source.loc == "dram" and source.target_device != op.target_device:
            what = f"reads queue {source.name} of device {source.target_device}, runs on device {op.target_device}"
            yield Finding(op.at("inputs"), what)
    for queue in ctx.fed.get(op.name, ()):
        remote = queue.loc == "dram" and queue.target_device != op.target_device
        if remote and any(one.channel != 0 or one.address < GRAYSKULL_WINDOW for one in queue.buffers):
            what = f"writes queue {queue.name} of another device outside of channel 0 at {GRAYSKULL_WINDOW:#x}"
            yield Finding(queue.at("dram"), what)


@op_check("V159")
def ethernet_channels(ctx: Context, op: Op) -> Findings:
    """One channel in and one out for each cell."""
    own = op.attributes
    if not (own.ingress_channels or own.egress_channels):
        return
    channels = {"ingress_channels": own.ingress_channels, "egress_channels": own.egress_channels}
    for key, values in channels.items():
        if values and not 0 <= min(values) <= max(values) < max(1, ctx.arch.eth_cores):
            what = f"{key} {list(values)}, {ctx.arch.name} has {ctx.arch.eth_cores} Ethernet cores"
            yield Finding(attribute_mark(op, key), what)
    counts = {len(values) for values in channels.values() if values}
    if on_ethernet(op) and counts != {op.blocking.cells}:
        what = f"{len(own.ingress_channels)} ingress and {len(own.egress_channels)} egress channels"
        yield Finding(op.at("attributes"), f"{what}, one is needed for each of {op.blocking.cells} cells")


@program_check("V161")
def prologue_is_local(ctx: Context, program: Program) -> Findings:
    """A prologue copies a whole queue into the cores that read it."""
    for graph, setting, queue in _set_queues(ctx, program):
        if setting.prologue.lower() not in TRUE or queue.loc != "dram":
            continue
        producer = ctx.ops.get(queue.input)
        if producer is not None and producer.gradient_op and producer.graph == graph.name:
            continue
        if queue.name not in ctx.read[graph.name]:
            yield Finding(setting.at("prologue"), f"prologue of {queue.name}, which graph {graph.name} does not read")
        elif queue.target_device != graph.target_device:
            what = f"prologue of {queue.name} on device {queue.target_device}, graph {graph.name} is on "
            yield Finding(setting.at("prologue"), f"{what}{graph.target_device}")


@program_check("V162")
def prologue_and_epilogue(ctx: Context, program: Program) -> Findings:
    """Accumulators are read before and written after all inputs; nothing else is."""
    for graph, setting, queue in _set_queues(ctx, program):
        producer = ctx.ops.get(queue.input)
        producer = producer if producer is not None and producer.graph == graph.name else None
        flags = {"prologue": setting.prologue.lower(), "epilogue": setting.epilogue.lower()}
        if producer is not None and producer.gradient_op:
            for key, value in flags.items():
                if value in FALSE:
                    what = f"{key} of {queue.name} is {value}, gradient op {producer.name} needs true"
                    yield Finding(setting.at(key), what)
        elif producer is not None:
            for key, value in flags.items():
                if value in TRUE:
                    what = f"{key} of {queue.name} is {value}, but {producer.name}, which feeds it, is no gradient op"
                    yield Finding(setting.at(key), what)
        elif flags["epilogue"] in TRUE:
            yield Finding(setting.at("epilogue"), f"epilogue of {queue.name}, which graph {graph.name} only reads")


@op_check("V162")
def gradient_output(ctx: Context, op: Op) -> Findings:
    """As above."""
    queues = ctx.fed.get(op.name, ()) if op.gradient_op else ()
    if op.gradient_op and (len(queues) != 1 or op.name in ctx.readers):
        yield Finding(op.at("gradient_op"), "a gradient op has exactly one output, a ram")
    for queue in queues:
        if not queue.is_ram:
            yield Finding(queue.at("type"), f"gradient op {op.name} accumulates in {queue.name}, which is no ram")


def _set_queues(ctx: Context, program: Program) -> Iterator[tuple[Graph, QueueSettings, Queue]]:
    for step in program.instructions:
        graph = ctx.netlist.graphs.get(step.graph) if isinstance(step, Execute) else None
        if graph is not None and isinstance(step, Execute):
            for setting in step.queue_settings:
                yield graph, setting, ctx.queues[setting.queue]
