"""The edges of an op: for each operand the pipes that its tiles come by, and what a prologue makes of them."""

from collections.abc import Collection
from dataclasses import dataclass, field

from buda_emu.errors import UnsupportedError
from buda_emu.netlist.model import Op, Queue
from buda_emu.routing.pipes.maps.edge import EdgeMap, Path, Reading, Source, edge_map
from buda_emu.routing.pipes.maps.paths import path_of, shape_after
from buda_emu.routing.pipes.maps.prologue import TwoSteps, two_steps, unrolled
from buda_emu.routing.pipes.maps.source_map import cores
from buda_emu.routing.pipes.ops.general import buffered_mblocks
from buda_emu.routing.pipes.ops.kinds import kind_of
from buda_emu.routing.pipes.ops.operands import OpInputs
from buda_emu.routing.pipes.refusal import RefusedError


@dataclass(slots=True)
class OpEdges:
    """`maps`: one for each input that the netlist names. `two_steps`: of queues in chunks, by queue. `as_read`: for
    queues with a prologue, whether L1 keeps them as they are read, rather than as they lie in DRAM."""

    maps: list[EdgeMap] = field(default_factory=list[EdgeMap])
    two_steps: dict[str, TwoSteps] = field(default_factory=dict[str, TwoSteps])
    as_read: dict[str, bool] = field(default_factory=dict[str, bool])


def source_of(item: Queue | Op, input_count: int) -> Source:
    """How an op or queue presents its tiles. RefusedError for a result that no pipe can read."""
    if isinstance(item, Queue):
        return Source(item.blocking, item.blocking.t)
    kind = kind_of(item)
    if kind.sums and item.blocking.ublock_order != "r":
        raise RefusedError("V178", f"{item.type} {item.name} has ublock_order c", "a result that is read needs r")
    if kind.keeps_strips:
        return Source(item.blocking, 1)
    return Source(item.blocking, min(input_count * item.blocking.t, buffered_mblocks(item)))


def operand_edge(inputs: OpInputs, index: int, input_count: int) -> EdgeMap:
    """The pipes of one operand, prologues left aside. RefusedError for what net2pipe refuses."""
    if inputs.kind.is_flat(index):
        return inputs.kind.flat_edge(inputs)
    return edge_map(*edge_ends(inputs, index, input_count))


def edge_ends(inputs: OpInputs, index: int, input_count: int) -> tuple[Source, Path, Reading]:
    """What `edge_map` is made of, for any operand that reads tiles."""
    source, path = source_of(inputs.sources[index], input_count), path_of(inputs.op, index)
    return source, path, inputs.reading(index, shape_after(source.blocking, path))


def op_edges(inputs: OpInputs, input_count: int, prologue: Collection[str]) -> OpEdges:
    """All edges of an op; `prologue`: queues that stay in L1. UnsupportedError for more tiles than pipes are made of,
    by op and input."""
    found = OpEdges()
    for index, name in enumerate(inputs.op.inputs):
        try:
            edge = operand_edge(inputs, index, input_count)
            if name in prologue:
                edge = _with_prologue(inputs, index, input_count, edge, found)
        except RefusedError as error:
            error.input = index
            raise
        except UnsupportedError as error:
            raise UnsupportedError(f"op {inputs.op.name}, input {index}: {error}") from None
        found.maps.append(edge)
    return found


def _with_prologue(inputs: OpInputs, index: int, input_count: int, edge: EdgeMap, found: OpEdges) -> EdgeMap:
    op, name = inputs.op, inputs.op.inputs[index]
    whole = edge.most_tiles <= inputs.size_tiles(index)
    if inputs.kind.is_dense and index < 2:
        if whole:
            found.as_read[name] = True
            return unrolled(edge)
        if index == 1 and not path_of(op, index).tms:
            steps = two_steps(*edge_ends(inputs, index, input_count))
            found.two_steps[name], found.as_read[name] = steps, True
            return steps.load
        return edge
    if inputs.kind.keeps_blocks(inputs, index):
        found.as_read[name] = whole
    return edge


def queue_edge(queue: Queue, op: Op, input_count: int) -> EdgeMap:
    """The pipes from an op to a queue that it feeds. RefusedError for what net2pipe refuses."""
    own = queue.blocking
    how = Reading(own.t, own.grid_size, own.mblock, own.ublock, own.ublock_order == "r")
    edge = edge_map(source_of(op, input_count), Path(queue.input_tms), how)
    for pipe in edge.pipes:
        row, column = pipe.dests[0]
        place = f"its buffer at row {row}, column {column}"
        if len(pipe.dests) > 1:
            raise RefusedError(
                "V332", f"{place} would get stacked pieces in turn with others", "stack in an op instead"
            )
        if not op.untilize_output and (cores(pipe.tiles) != cores(pipe.tiles[:1])).any():
            hint = "several cores would fill one buffer: give queue and op the same grid_size"
            raise RefusedError("V078", f"{place} would be filled by several cores of op {op.name}", hint)
    return edge
