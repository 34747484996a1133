"""Where ops and queues stand: cores, chips, prologues (NETLIST 2, V150, V158-V162; tables of 2.1; stages N and R).

Not judged, for want of published numbers: host access (V157) and the unique-id window (V163).
"""

from collections.abc import Container, Iterator

from buda_emu.netlist.model import Execute, Graph, Op, Program, Queue, QueueSettings
from buda_emu.netlist.rules.context import Context, attribute_mark, on_ethernet
from buda_emu.netlist.rules.graphs import rectangle
from buda_emu.netlist.rules.registry import Finding, Findings, op_check, program_check, rule
from buda_emu.spec.archs import REMOTE_WINDOW

TRUE = ("true", "1")
FALSE = ("false", "0")


@op_check(
    rule(
        "V150",
        "N",
        "an op lies outside the worker grid",
        "grid_loc and grid_size give cores of the chip: 10 x 12 on grayskull, 10 x 8 on wormhole, 10 x 14 on "
        "blackhole (rows x columns, nothing harvested).",
        "{grid_loc: [0, 7], grid_size: [1, 2]} on wormhole_b0",
        "{grid_loc: [0, 6], grid_size: [1, 2]} on wormhole_b0",
        "NETLIST 2, 2.1",
    )
)
def in_worker_grid(ctx: Context, op: Op) -> Findings:
    """Refuse an op of which not all cores are worker cores of the chip."""
    if len(op.grid_loc) != 2 or on_ethernet(op):
        return
    row, column, row_end, column_end = rectangle(op)
    rows, columns = ctx.arch.grid
    if min(row, column) < 0 or row_end > rows or column_end > columns:
        message = f"is on cores [{row}, {column}] to [{row_end - 1}, {column_end - 1}]"
        yield Finding(op.at("grid_loc"), f"{message}, the last one of {ctx.arch.name} is [{rows - 1}, {columns - 1}]")


@op_check(
    rule(
        "V158",
        "R",
        "grayskull cannot reach this queue",
        "Grayskull chips read DRAM of their own only, and write that of another chip through channel 0 from "
        "0x30000000 on.",
        "op on device 0 reads a queue with target_device: 1",
        "op on device 0 reads a queue with target_device: 0",
        "NETLIST 2, 2.1",
    )
)
def grayskull_remote(ctx: Context, op: Op) -> Findings:
    """Refuse reads from and writes to other grayskull chips except through their one window (NETLIST 2)."""
    if ctx.arch.name != "grayskull":
        return
    yield from _remote_reads(ctx, op)
    yield from _remote_writes(ctx, op)


def _remote_reads(ctx: Context, op: Op) -> Findings:
    """Yield a finding for each queue in DRAM of another chip that an op reads."""
    for _, source in ctx.sources(op):
        if isinstance(source, Queue) and source.loc == "dram" and source.target_device != op.target_device:
            message = f"reads queue {source.name} of device {source.target_device}, runs on device {op.target_device}"
            yield Finding(op.at("inputs"), message)


def _remote_writes(ctx: Context, op: Op) -> Findings:
    """Yield a finding for each queue in DRAM of another chip that an op fills outside of grayskull's window, channel 0
    from `REMOTE_WINDOW` on."""
    for queue in ctx.fed.get(op.name, ()):
        remote = queue.loc == "dram" and queue.target_device != op.target_device
        if remote and any(buffer.channel != 0 or buffer.address < REMOTE_WINDOW for buffer in queue.buffers):
            message = f"writes queue {queue.name} of another device outside of channel 0 at {REMOTE_WINDOW:#x}"
            yield Finding(queue.at("dram"), message)


@op_check(
    rule(
        "V159",
        "N",
        "Ethernet channels do not match",
        "An ethernet_datacopy has one channel in and one out for each grid cell, of those that the chip has.",
        "{grid_size: [1, 2], attributes: {ingress_channels: [0], egress_channels: [1]}}",
        "{grid_size: [1, 1], attributes: {ingress_channels: [0], egress_channels: [1]}}",
        "NETLIST 2, 2.1",
    )
)
def ethernet_channels(ctx: Context, op: Op) -> Findings:
    """Refuse Ethernet channels that do not exist, and other than one channel in and one out for each cell."""
    attributes = op.attributes
    if not (attributes.ingress_channels or attributes.egress_channels):
        return
    channels = {"ingress_channels": attributes.ingress_channels, "egress_channels": attributes.egress_channels}
    for key, values in channels.items():
        if values and not 0 <= min(values) <= max(values) < max(1, ctx.arch.eth_cores):
            message = f"{key} {list(values)}, {ctx.arch.name} has {ctx.arch.eth_cores} Ethernet cores"
            yield Finding(attribute_mark(op, key), message)
    counts = {len(values) for values in channels.values() if values}
    if on_ethernet(op) and counts != {op.blocking.cells}:
        message = f"{len(attributes.ingress_channels)} ingress and {len(attributes.egress_channels)} egress channels"
        yield Finding(op.at("attributes"), f"{message}, one is needed for each of {op.blocking.cells} cells")


@program_check(
    rule(
        "V161",
        "N",
        "a prologue queue is not local to its reader",
        "With prologue a queue is copied into the cores that read it before the first input; both are on one chip.",
        "prologue: true for a queue on device 1 in a graph on device 0",
        "prologue: true for a queue on device 0 in a graph on device 0",
        source="NETLIST 2",
    )
)
def prologue_is_local(ctx: Context, program: Program) -> Findings:
    """Refuse prologue for a queue that the graph does not read or that lies on another chip: a prologue copies a
    whole queue into the cores that read it. The accumulator of a gradient op is left out.
    """
    for graph, setting, queue in _set_queues(ctx, program):
        if setting.prologue.lower() not in TRUE or queue.loc != "dram":
            continue
        producer = ctx.ops.get(queue.input)
        if producer is not None and producer.gradient_op and producer.graph == graph.name:
            continue
        if queue.name not in ctx.read[graph.name]:
            yield Finding(setting.at("prologue"), f"prologue of {queue.name}, which graph {graph.name} does not read")
        elif queue.target_device != graph.target_device:
            message = f"prologue of {queue.name} on device {queue.target_device}, graph {graph.name} is on "
            yield Finding(setting.at("prologue"), f"{message}{graph.target_device}")


@program_check(
    rule(
        "V162",
        "N",
        "prologue or epilogue where it is not available",
        "A gradient op accumulates in one ram, with prologue and epilogue true. Any other queue that an op writes"
        " has neither, and one that is only read has no epilogue.",
        "acc: {prologue: false, epilogue: true} for a gradient op",
        "acc: {prologue: true, epilogue: true} for a gradient op",
        "NETLIST 2, 4.4",
    )
)
def prologue_and_epilogue(ctx: Context, program: Program) -> Findings:
    """Refuse an accumulator without prologue or epilogue, and these flags on other results: only accumulators are
    read before and written after all inputs."""
    for graph, setting, queue in _set_queues(ctx, program):
        producer = ctx.ops.get(queue.input)
        if producer is not None and producer.graph != graph.name:
            producer = None
        if producer is None:
            if setting.epilogue.lower() in TRUE:
                message = f"epilogue of {queue.name}, which graph {graph.name} only reads"
                yield Finding(setting.at("epilogue"), message)
        elif producer.gradient_op:
            yield from _wrong_flags(setting, queue, FALSE, f"gradient op {producer.name} needs true")
        else:
            reason = f"but {producer.name}, which feeds it, is not a gradient op"
            yield from _wrong_flags(setting, queue, TRUE, reason)


def _wrong_flags(setting: QueueSettings, queue: Queue, words: Container[str], reason: str) -> Findings:
    """Yield a finding for prologue and for epilogue of a queue's settings where its text is one of `words`; `reason`
    says in the message why it must not be."""
    for key, text in (("prologue", setting.prologue), ("epilogue", setting.epilogue)):
        value = text.lower()
        if value in words:
            yield Finding(setting.at(key), f"{key} of {queue.name} is {value}, {reason}")


@op_check("V162")
def gradient_output(ctx: Context, op: Op) -> Findings:
    """Refuse a gradient op that does not feed exactly one queue, feeds an op, or accumulates in a queue that is no
    ram.
    """
    queues = ctx.fed.get(op.name, ()) if op.gradient_op else ()
    if op.gradient_op and (len(queues) != 1 or op.name in ctx.readers):
        yield Finding(op.at("gradient_op"), "a gradient op has exactly one output, a ram")
    for queue in queues:
        if not queue.is_ram:
            yield Finding(queue.at("type"), f"gradient op {op.name} accumulates in {queue.name}, which is not a ram")


def _set_queues(ctx: Context, program: Program) -> Iterator[tuple[Graph, QueueSettings, Queue]]:
    """Yield graph, settings and queue for each queue that an execute of the program sets; unknown graphs are left
    out.
    """
    for step in program.instructions:
        if isinstance(step, Execute):
            graph = ctx.netlist.graphs.get(step.graph)
        else:
            graph = None
        if graph is not None and isinstance(step, Execute):
            for setting in step.queue_settings:
                yield graph, setting, ctx.queues[setting.queue]


# Found while a netlist is read, or not checked
rule(
    "V073",
    "P",
    "a graph belongs to no temporal graph",
    "Every graph is given a temporal graph when the netlist is loaded, so this cannot happen and is not checked.",
    source="NETLIST 1.8, 2",
)
rule(
    "V075",
    "P",
    "a one-entry ram has an input_count above 1",
    "The input_count of a one-entry ram is derived as 1, so this cannot happen and is not checked.",
    source="NETLIST 1.3, 2",
)
rule(
    "V081",
    "N",
    "an operand cannot be picked in pieces of its producer's buffer",
    "Pipes move a buffer in pieces of one size. Chains of TMs and blocks that are cut differently may leave none "
    "that fits all readers, or tiles that do not form a piece.",
    "a queue of 64 KiB tiles",
    "a queue of 32x32 tiles",
    source="NETLIST 2",
)
rule(
    "V084",
    "N",
    "a fused op has more than two multicast inputs",
    "Operands of products are sent to whole rows or columns of cores; a core takes part in two such multicasts.",
    "a fused op with two matmul sub-ops on a grid of 2x2 cores",
    "a fused op with one matmul sub-op on a grid of 2x2 cores",
    source="NETLIST 2",
)
rule(
    "V153",
    "R",
    "a queue buffer lies in memory reserved by the backend",
    "The lowest part of every DRAM channel belongs to the backend. How much depends on its version, so it is "
    "not checked here; addresses from 0x10000000 on are safe.",
    source="NETLIST 2, 10",
)
rule(
    "V157",
    "R",
    "a host queue of a chip without host access",
    "Only chips on the host's bus reach host memory. Which they are is not part of a netlist, so it is not "
    "checked here.",
    source="NETLIST 2",
)
rule(
    "V160",
    "N",
    "a device that the cluster does not have",
    "The chips of the machine are listed in a cluster file, which is not part of a netlist: it is checked where the "
    "file is given (`check --strict --cluster FILE`).",
    source="NETLIST 2",
)
rule(
    "V163",
    "N",
    "an entry is too large for one device buffer",
    "Tiles of an entry are numbered in a window whose size is not published; it is not checked here.",
    source="NETLIST 2",
)
