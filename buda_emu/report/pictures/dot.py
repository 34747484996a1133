"""The graphs of a netlist in DOT, for graphviz: a cluster for each chip and epoch, queues as cylinders."""

import re
from collections.abc import Sequence
from typing import Final

from buda_emu.netlist.model import Netlist, Op, Queue
from buda_emu.report.pictures.floorplan import memory
from buda_emu.report.pictures.grid_svg import Uses, of_op, words
from buda_emu.support.screen import UNPRINTED

_CONTROL: Final = re.compile(rf"[\x00-\x1f{UNPRINTED}\ud800-\udfff]")


def dot(
    netlist: Netlist,
    *,
    epochs: Sequence[int] | None = None,
    chips: Sequence[int] | None = None,
    streams: Uses | None = None,
) -> str:
    """The whole netlist, or some epochs and chips of it. `streams`: labels of ops say how many extra streams and what
    part of L1 the core takes that needs most."""
    lines = [
        "digraph netlist {",
        "  rankdir=LR;",
        '  node [shape=box, fontname="monospace", fontsize=10];',
        '  edge [fontname="monospace", fontsize=8];',
    ]
    ops: list[Op] = []
    for temporal in netlist.temporal_graphs:
        for name in temporal.graphs:
            graph = netlist.graphs[name]
            if (epochs is None or temporal.id in epochs) and (chips is None or graph.target_device in chips):
                title = f"epoch {temporal.id}, chip {graph.target_device}: {graph.name} x {graph.input_count}"
                lines.append(f"  subgraph {_quoted(f'cluster_{graph.name}')} {{")
                lines.append(f"    label={_quoted(title)};")
                for op in graph.ops:
                    label = _op_label(op, words(of_op(streams or {}, temporal.id, op)))
                    lines.append(f"    {_quoted(f'op:{op.name}')} [label={label}];")
                lines.append("  }")
                ops += graph.ops
    shown = {op.name for op in ops}
    queues = [queue for queue in netlist.queues.values() if queue.input in shown or _is_read(queue, ops)]
    lines += [f"  {_quoted(f'queue:{q.name}')} [shape=cylinder, label={_queue_label(q)}];" for q in queues]
    others = dict.fromkeys(name for op in ops for name in op.inputs if name not in shown and name not in netlist.queues)
    lines += [f"  {_quoted(f'op:{name}')} [style=dashed, label={_quoted(name)}];" for name in others]
    for op in ops:
        for position, name in enumerate(op.inputs):
            source = f"queue:{name}" if name in netlist.queues else f"op:{name}"
            label = op.in_df[position] if position < len(op.in_df) else ""
            lines.append(f"  {_quoted(source)} -> {_quoted(f'op:{op.name}')} [label={_quoted(label)}];")
    for queue in queues:
        if queue.input in shown:
            source = f"op:{queue.input}"
            target = f"queue:{queue.name}"
            lines.append(f"  {_quoted(source)} -> {_quoted(target)} [label={_quoted(queue.df)}];")
    return "\n".join([*lines, "}"]) + "\n"


def _is_read(queue: Queue, ops: Sequence[Op]) -> bool:
    return any(queue.name in op.inputs for op in ops)


def _op_label(op: Op, use: str) -> str:
    dims = "x".join(map(str, op.blocking.element_shape))
    streams = f"\nextra streams {use}" if use else ""
    return _quoted(f"{op.name}\n{op.type}\n{dims} {op.out_df}{streams}")


def _queue_label(queue: Queue) -> str:
    dims = "x".join(map(str, queue.blocking.element_shape))
    return _quoted(f"{queue.name}\n{queue.type} {queue.entries} x {dims} {queue.df}\n{memory(queue)}")


def _quoted(text: str) -> str:
    """A DOT string: line breaks stay, other control characters become question marks."""
    lines = (_CONTROL.sub("?", line).replace("\\", "\\\\").replace('"', '\\"') for line in text.split("\n"))
    return '"' + "\\n".join(lines) + '"'
