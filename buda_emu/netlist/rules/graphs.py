"""Rules on graphs and on connections between ops: cores, temporal graphs, cycles (NETLIST 1.8, 11.1 A1, A14)."""

from bisect import bisect_left
from collections.abc import Collection
from functools import partial
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush

from buda_emu.netlist.model import Graph, Netlist, Op, Queue
from buda_emu.netlist.rules.context import Context, item_mark, on_ethernet, size_problem
from buda_emu.netlist.rules.missing import size_hint
from buda_emu.netlist.rules.registry import (
    TWICE,
    Finding,
    Findings,
    graph_check,
    netlist_check,
    op_check,
    queue_check,
    rule,
)
from buda_emu.support.checker.suggest import near, nearest

Rectangle = tuple[int, int, int, int]  # first row, first column, row after the last, column after the last


@graph_check(
    rule(
        "V021",
        "P",
        "target_device or input_count of a graph is missing or out of range",
        "A graph runs on one chip, numbered from 0, and takes at least one input each time it is executed.",
        "{target_device: 0, input_count: 0}",
        "{target_device: 0, input_count: 1}",
        "NETLIST 1.4",
    ),
    basic=True,
)
def graph_fields(ctx: Context, graph: Graph) -> Findings:
    """Refuse a graph without a chip, or with an input_count below 1."""
    for key, value, least in (("target_device", graph.target_device, 0), ("input_count", graph.input_count, 1)):
        if problem := size_problem(graph, key, value, least):
            yield Finding(graph.at(key), problem, size_hint(ctx, graph, key))


@op_check(
    rule(
        "V017",
        "P",
        "an op input is neither a queue nor an op",
        "Inputs are names of queues or of ops. `queues` comes before `graphs` in the file. In a graph with a "
        "list of devices every input becomes input.device, and that must exist.",
        "inputs: [q0x]",
        "inputs: [q0]",
        "NETLIST 1.1, 1.7, 2",
    ),
    basic=True,
    unless=TWICE,
)
def inputs_exist(ctx: Context, op: Op) -> Findings:
    """Refuse inputs that are neither a queue nor an op. The inputs of an expanded graph carry the suffix of their
    device (NETLIST 1.7)."""
    for index, name in enumerate(op.inputs):
        if name in ctx.queues or name in ctx.ops:
            continue
        message = f"input {index} '{name}' is neither a queue nor an op"
        yield Finding(item_mark(op, "inputs", index), message, partial(_missing_name_hint, ctx, name))


@op_check(
    rule(
        "V042",
        "P",
        "an op reads an op of another temporal graph",
        "Without a queue between them, producer and consumer must run at the same time: in one graph, or in "
        "graphs on different chips, which then form a temporal graph.",
        "g0 {target_device: 0} -> g1 {target_device: 0} without a queue",
        "a queue fed by the op of g0 and read by the op of g1",
        "NETLIST 1.8",
    )
)
def inputs_in_reach(ctx: Context, op: Op) -> Findings:
    """Refuse an op as input that is not in the same temporal graph; only ops of one feed each other without a queue
    (NETLIST 1.8)."""
    for index, name in enumerate(op.inputs):
        if name not in ctx.queues:
            producer = ctx.ops.get(name)
        else:
            producer = None
        if producer is None or producer.graph == op.graph:
            continue
        if ctx.temporal.get(producer.graph) != ctx.temporal.get(op.graph):
            yield Finding(
                item_mark(op, "inputs", index),
                f"reads op {name} of graph {producer.graph}, which is not in its temporal graph",
                "graphs on one device run after each other: put a queue between them",
            )


@op_check(
    rule(
        "V044",
        "P",
        "forked_dram_inputs names something else than a queue input and an op of the graph",
        "The field says that a queue which this op reads is read once, by the named op of the same graph, and forked.",
        "{inputs: [q0], forked_dram_inputs: [{q1: op1}]}",
        "{inputs: [q0], forked_dram_inputs: [{q0: op1}]}",
        "NETLIST 1.4",
    )
)
def forked_inputs(ctx: Context, op: Op) -> Findings:
    """Check the entries {queue: op} of forked_dram_inputs (NETLIST 1.4); they have no effect on values."""
    read = {*op.inputs}
    for name, other in op.forked_dram_inputs:
        mark = op.at("forked_dram_inputs")
        if name not in ctx.queues or name not in read:
            yield Finding(mark, f"forked_dram_inputs names '{name}', which is not a queue that the op reads")
        elif other not in ctx.ops or ctx.ops[other].graph != op.graph:
            yield Finding(mark, f"forked_dram_inputs names '{other}', which is not an op of graph {op.graph}")


@queue_check(
    rule(
        "V074",
        "P",
        "graphs of different input_count consume one queue",
        "A queue hands its entries out in batches of input_count. Rams may be shared.",
        "g0 {input_count: 1} and g1 {input_count: 2} read queue q",
        "g0 {input_count: 2} and g1 {input_count: 2} read queue q",
        "NETLIST 1.3, 2",
    )
)
def one_input_count(ctx: Context, queue: Queue) -> Findings:
    """Refuse a queue whose readers have different input counts: it hands the same batch to each (NETLIST 1.3). Rams
    do not count."""
    if queue.is_ram:
        return
    counts = {ctx.netlist.graphs[op.graph].input_count: op.graph for op in ctx.readers.get(queue.name, ())}
    if len(counts) > 1:
        parts = ", ".join(f"{graph} (input_count {count})" for count, graph in counts.items())
        yield Finding(queue.at(), f"is read by graphs of different input_count: {parts}")


@graph_check(
    rule(
        "V041",
        "P",
        "two ops of a graph share a core",
        "All ops of a graph run at the same time, each on its own cores. grid_transpose swaps the rows and "
        "columns of the rectangle. Ethernet ops are placed elsewhere.",
        "a: {grid_loc: [0, 0], grid_size: [2, 1]}, b: {grid_loc: [1, 0]}",
        "a: {grid_loc: [0, 0], grid_size: [2, 1]}, b: {grid_loc: [2, 0]}",
        "NETLIST 1.4, 2",
    )
)
def cores_overlap(ctx: Context, graph: Graph) -> Findings:
    """Refuse ops of one graph that share a core, by a sweep over the rows that never looks at single cores."""
    placed = [
        (rectangle(op), order)
        for order, op in enumerate(graph.ops)
        if op.name not in ctx.broken and not on_ethernet(op)
    ]
    ends: list[tuple[int, int]] = []  # heap of (row after the last, first column) of the rectangles being crossed
    starts: list[int] = []  # their first columns, sorted
    inside: dict[int, tuple[int, int]] = {}  # first column -> (column after the last, which op)
    for (row, column, row_end, column_end), order in sorted(placed):
        while ends and ends[0][0] <= row:
            _, gone = heappop(ends)
            del starts[bisect_left(starts, gone)]
            del inside[gone]
        slot = bisect_left(starts, column)
        if slot and inside[starts[slot - 1]][0] > column:
            other = inside[starts[slot - 1]][1]
            shared = column
        elif slot < len(starts) and starts[slot] < column_end:
            other = inside[starts[slot]][1]
            shared = starts[slot]
        else:
            heappush(ends, (row_end, column))
            starts.insert(slot, column)
            inside[column] = (column_end, order)
            continue
        first = graph.ops[min(order, other)]
        second = graph.ops[max(order, other)]
        yield Finding(
            second.at("grid_loc"),
            f"op {second.name} shares core [{row}, {shared}] with op {first.name}",
            "move one of them with grid_loc, or into another graph",
        )


@netlist_check(
    rule(
        "V173",
        "G",
        "graphs of a temporal graph do not fit together",
        "Graphs that feed each other without a queue run as one: with one input_count, each on a chip of its own."
        " On wormhole and later two executes in a row on different chips are joined as well.",
        "g0: {target_device: 0, input_count: 1}, g1: {target_device: 1, input_count: 2}",
        "g0: {target_device: 0, input_count: 2}, g1: {target_device: 1, input_count: 2}",
        "NETLIST 1.8, 11.1 A14",
    )
)
def temporal_graphs(_: Context, netlist: Netlist) -> Findings:
    """Refuse temporal graphs whose graphs differ in input_count or share a device (NETLIST 1.8, 11.1 A14)."""
    for temporal in netlist.temporal_graphs:
        members = [netlist.graphs[name] for name in temporal.graphs if name in netlist.graphs]
        on_device: dict[int, Graph] = {}
        for graph in members:
            first = members[0]
            if graph.input_count != first.input_count:
                yield Finding(
                    graph.at("input_count"),
                    f"graphs {first.name} and {graph.name} run as one temporal graph, but have input_count "
                    f"{first.input_count} and {graph.input_count}",
                )
            other = on_device.setdefault(graph.target_device, graph)
            if other is not graph:
                yield Finding(
                    graph.at("target_device"),
                    f"graphs {other.name} and {graph.name} run as one temporal graph, both on device "
                    f"{graph.target_device}",
                    "put a queue between them, or the graphs on different devices",
                )


@netlist_check(
    rule(
        "V170",
        "G",
        "the ops of a temporal graph form a cycle",
        "An op runs when its inputs are there. A value may go back only through a ram, which holds the one of the"
        " run before; a queue does not help inside one temporal graph. A queue and an op of one name are one "
        "node, too.",
        "a: {inputs: [b]}, b: {inputs: [a]}",
        "a: {inputs: [state]}, b: {inputs: [a]}, state: {type: ram, input: b}",
        "NETLIST 11.1 A1",
    )
)
def acyclic(ctx: Context, __: Netlist) -> Findings:
    """Refuse cycles of ops, and of ops and queues, inside one temporal graph; a ram breaks a cycle (NETLIST 11.1
    A1)."""
    for name in ctx.ops:
        if name in ctx.queues:
            yield Finding(ctx.ops[name].at(), f"op {name} has the name of a queue: the two are one node of the graph")
    host = ctx.queues.get("HOST")
    if host is not None and host.host_fed and not host.is_ram:
        yield Finding(host.at(), "a queue called HOST that is fed by HOST feeds itself", "rename the queue")
    for sorter in _op_sorters(ctx):
        try:
            sorter.prepare()
        except CycleError as error:
            cycle: list[str] = error.args[1]
            ending = " -> ..." if len(cycle) > 6 else ""
            yield Finding(
                ctx.ops[cycle[0]].at("inputs"),
                f"the ops form a cycle: {' -> '.join(cycle[:6])}{ending}",
                partial(_cycle_hint, ctx, cycle),
            )


def _cycle_hint(ctx: Context, cycle: Collection[str]) -> str:
    """Return the queue that one of the ops most likely meant to read, where nothing reads it and an input of the cycle
    has nearly its name; else how values go back without a cycle."""
    read_names = {name for op in ctx.ops.values() for name in op.inputs}
    unread_queues = [queue.name for queue in ctx.queues.values() if queue.host_fed and queue.name not in read_names]
    for op in (ctx.ops[name] for name in cycle if name in ctx.ops):
        for name in op.inputs:
            meant = nearest(name, unread_queues) if name in cycle else ""
            if meant:
                return f"did op {op.name} mean to read queue '{meant}', which nothing reads, in place of '{name}'?"
    return "feed values back through a queue of type ram"


def _op_sorters(ctx: Context) -> list[TopologicalSorter[str]]:
    """Return, for each temporal graph, a sorter of its ops with the ops that feed them, directly or by a queue."""
    sorters: dict[int, TopologicalSorter[str]] = {}
    for op in ctx.ops.values():
        temporal = ctx.temporal.get(op.graph, -1)
        sorter = sorters.setdefault(temporal, TopologicalSorter())
        sorter.add(op.name)
        for name in op.inputs:
            queue = ctx.queues.get(name)
            if queue is not None:
                name = "" if queue.is_ram or queue.host_fed else queue.input
            producer = ctx.ops.get(name)
            if producer is not None and ctx.temporal.get(producer.graph, -1) == temporal:
                sorter.add(op.name, name)
    return list(sorters.values())


def _missing_name_hint(ctx: Context, name: str) -> str:
    """Return a hint for a name that does not exist: the copies of a queue of that name, else similar names, "" if there
    are none."""
    stems = tuple(f"{stem}." for stem in (name, name.rpartition(".")[0]) if stem)
    copies = [other for other in ctx.queues if other.startswith(stems)]
    if copies:
        return f"the queue exists as {', '.join(copies[:4])}"
    return near(name, [*ctx.queues, *ctx.ops])


def rectangle(op: Op) -> Rectangle:
    """Return the cores of an op as a rectangle; grid_transpose swaps rows and columns (NETLIST 1.4)."""
    rows, columns = op.cores
    row, column = op.grid_loc[:2]
    return row, column, row + rows, column + columns
