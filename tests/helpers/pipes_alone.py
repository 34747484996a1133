"""Pipes of a few ops without a netlist around them, for searches that ask of one op, or one edge, at a time."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from buda_emu.netlist.model import Attributes, Buffer, Execute, FusedOp, Graph, Netlist, Op, Queue, QueueSettings
from buda_emu.performance.routing.pipes.build import Built, build
from buda_emu.performance.routing.pipes.epoch import epoch_of

_GRAPH: Final = "alone"
_CHANNELS: Final = 6


def alone(
    ops: Iterable[Op],
    queues: Iterable[Queue],
    arch_name: str,
    *,
    kept: Iterable[str] = (),
    input_count: int = 1,
    fused_ops: Mapping[str, FusedOp] | None = None,
) -> Built:
    """The pipe graph of ops that run at the same time, or what refuses it, and what it takes of each core.

    `queues` are those that they read and feed; `kept`: those of a prologue. An op whose operands are not all among
    them stands for its result only: it is taken as a nop that reads a queue cut as it is. One that nothing reads feeds
    a queue like that; its addresses mean nothing. Whoever else reads a result may cut it into smaller pieces.
    """
    members = {op.name: op for op in ops}
    known = {queue.name: queue for queue in queues}
    read = {name for op in members.values() for name in op.inputs} | {queue.input for queue in known.values()}
    for name, op in tuple(members.items()):
        if any(source not in members and source not in known for source in op.inputs):
            members[name] = _result_of(op)
            known[_before(op)] = _like(op, _before(op), "HOST")
        if name not in read:
            known[f"{name}.after"] = _like(op, f"{name}.after", name)
    chip = next(iter(members.values())).target_device
    graph = Graph(name=_GRAPH, target_device=chip, input_count=input_count, ops=tuple(members.values()))
    netlist = Netlist(
        path="",
        arch_name=arch_name,
        archs=(arch_name,),
        queues=known,
        graphs={_GRAPH: graph},
        fused_ops=fused_ops or {},
        programs={},
        program_order=(),
    )
    settings = tuple(QueueSettings(queue=name, prologue="true") for name in kept)
    return build(epoch_of(netlist, 0, [_GRAPH], {_GRAPH: Execute(graph=_GRAPH, queue_settings=settings)}))


def _result_of(op: Op) -> Op:
    return replace(
        op,
        type="nop",
        inputs=(_before(op),),
        in_df=(op.out_df,),
        input_tms=((),),
        input_pad=(),
        input_unpad=(),
        input_buf_min_size_tiles=(),
        input_dram_io_buf_size_tiles=(),
        input_tile_dims=(op.blocking.tile_dim,),
        attributes=Attributes(),
    )


def _before(op: Op) -> str:
    return f"{op.name}.before"


def _like(op: Op, name: str, source: str) -> Queue:
    """A queue in DRAM that is cut as an op's result."""
    return Queue(
        name=name,
        input=source,
        type="queue",
        entries=2,
        blocking=replace(op.blocking, ublock_order="r"),
        df=op.out_df,
        target_device=op.target_device,
        loc="dram",
        buffers=tuple(Buffer(number % _CHANNELS, 0) for number in range(op.blocking.cells)),
    )
