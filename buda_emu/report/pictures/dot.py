"""The graphs of a netlist in DOT, for graphviz: a cluster for each chip and epoch, queues as cylinders."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from buda_emu.netlist.model import Graph, Netlist, Op, Queue
from buda_emu.report.pictures.floorplan import memory
from buda_emu.report.pictures.grid_svg import Uses, use_text, uses_of_op
from buda_emu.support.screen import UNPRINTED

_CONTROL: Final = re.compile(rf"[\x00-\x1f{UNPRINTED}\ud800-\udfff]")


def dot(
    netlist: Netlist,
    *,
    epochs: Sequence[int] | None = None,
    chips: Sequence[int] | None = None,
    streams: Uses | None = None,
) -> str:
    """Return a netlist, or some epochs and chips of it (None: all), as text in DOT. With `streams`, labels of ops say
    how many extra streams and what part of L1 are taken on the core that needs most."""
    lines = [
        "digraph netlist {",
        "  rankdir=LR;",
        '  node [shape=box, fontname="monospace", fontsize=10];',
        '  edge [fontname="monospace", fontsize=8];',
    ]
    ops: list[Op] = []
    for epoch, graph in _select_graphs(netlist, epochs, chips):
        lines += _cluster(graph, epoch, streams or {})
        ops += graph.ops
    names = {op.name for op in ops}
    queues = [queue for queue in netlist.queues.values() if queue.input in names or _is_read(queue, ops)]
    lines += [f"  {_quote(f'queue:{queue.name}')} [shape=cylinder, label={_queue_label(queue)}];" for queue in queues]
    lines += _outside_ops(netlist, ops)
    for op in ops:
        lines += _input_edges(netlist, op)
    for queue in queues:
        if queue.input in names:
            lines.append(_edge(f"op:{queue.input}", f"queue:{queue.name}", queue.df))
    return "\n".join([*lines, "}"]) + "\n"


def _select_graphs(
    netlist: Netlist, epochs: Sequence[int] | None, chips: Sequence[int] | None
) -> Iterator[tuple[int, Graph]]:
    """Yield the graphs of some epochs and chips (None: all) with the numbers of their epochs."""
    for temporal in netlist.temporal_graphs:
        if epochs is not None and temporal.id not in epochs:
            continue
        for name in temporal.graphs:
            graph = netlist.graphs[name]
            if chips is None or graph.target_device in chips:
                yield temporal.id, graph


def _outside_ops(netlist: Netlist, ops: Sequence[Op]) -> Iterator[str]:
    """Yield a dashed node for each op that feeds the drawn ops but is not drawn itself."""
    names = {op.name for op in ops}
    for source in dict.fromkeys(chain.from_iterable(op.inputs for op in ops)):
        if source not in names and source not in netlist.queues:
            yield f"  {_quote(f'op:{source}')} [style=dashed, label={_quote(source)}];"


def _cluster(graph: Graph, epoch: int, streams: Uses) -> Iterator[str]:
    """Yield the DOT lines of a graph in epoch number `epoch`: a cluster with its ops, labelled with their use of
    streams."""
    title = f"epoch {epoch}, chip {graph.target_device}: {graph.name} x {graph.input_count}"
    yield f"  subgraph {_quote(f'cluster_{graph.name}')} {{"
    yield f"    label={_quote(title)};"
    for op in graph.ops:
        label = _op_label(op, use_text(uses_of_op(streams, epoch, op)))
        yield f"    {_quote(f'op:{op.name}')} [label={label}];"
    yield "  }"


def _input_edges(netlist: Netlist, op: Op) -> Iterator[str]:
    """Yield the DOT lines of the edges into an op, each labelled with the input's format."""
    for position, name in enumerate(op.inputs):
        kind = "queue" if name in netlist.queues else "op"
        df = op.in_df[position] if position < len(op.in_df) else ""
        yield _edge(f"{kind}:{name}", f"op:{op.name}", df)


def _edge(source: str, target: str, label: str) -> str:
    """Return the DOT line of an edge between two nodes."""
    return f"  {_quote(source)} -> {_quote(target)} [label={_quote(label)}];"


def _is_read(queue: Queue, ops: Sequence[Op]) -> bool:
    """Return whether one of these ops reads a queue."""
    return any(queue.name in op.inputs for op in ops)


def _op_label(op: Op, use: str) -> str:
    """Return the label of an op: name, type, size and format, and `use`, the words on its streams, if any."""
    dims = "x".join(map(str, op.blocking.element_shape))
    streams = f"\nextra streams {use}" if use else ""
    return _quote(f"{op.name}\n{op.type}\n{dims} {op.out_df}{streams}")


def _queue_label(queue: Queue) -> str:
    """Return the label of a queue: name, type, entries, size, format and memory."""
    dims = "x".join(map(str, queue.blocking.element_shape))
    return _quote(f"{queue.name}\n{queue.type} {queue.entries} x {dims} {queue.df}\n{memory(queue)}")


def _quote(text: str) -> str:
    """Return a DOT string: line breaks stay, other control characters become question marks."""
    lines = (_CONTROL.sub("?", line).replace("\\", "\\\\").replace('"', '\\"') for line in text.split("\n"))
    return '"' + "\\n".join(lines) + '"'
