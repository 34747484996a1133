"""Moves of precision: a lower math fidelity, a narrower number format for a tensor that is transferred, and the vector
unit's faster and less accurate form of a function."""

from collections.abc import Iterator
from typing import Final

from buda_emu.netlist.model import Netlist, Op, Queue
from buda_emu.performance.advice.edits import Edit, Proposal, apply_edits
from buda_emu.performance.advice.moves.move import Move, Situation, streams
from buda_emu.performance.timing.transfers.flows import Flow
from buda_emu.spec.precision import FIDELITIES, PHASES


def _propose_fidelities(situation: Situation) -> Iterator[Proposal]:
    """Propose, for the op that limits the epoch, every lower math fidelity that makes it faster, from the highest to
    the lowest."""
    op = situation.op
    cycles_before = situation.op_cycles
    if op is None or cycles_before is None:
        return
    phases = PHASES.get(op.math_fidelity, PHASES["HiFi4"])
    for word in reversed(FIDELITIES[: len(phases) - 1]):
        edits = (Edit("op", op.name, ("math_fidelity",), word),)
        cycles_after = situation.cycles(apply_edits(situation.variant.netlist, edits).ops[op.name])
        if cycles_after is not None and cycles_after < cycles_before:
            sentence = f"{op.name} in {word} instead of {op.math_fidelity}"
            yield Proposal("fidelity", op.name, sentence, edits, lossy=True, gain=cycles_before - cycles_after)


LOWER_FIDELITY: Final = Move(
    "fidelity",
    "math_fidelity",
    "an op of the FPU above LoFi that sets the pace",
    lossy=True,
    proposals=_propose_fidelities,
)


# With exponents of the same family, so that only precision is lost.
_NARROWER: Final = {"Float32": "Float16_b", "Float16_b": "Bfp8_b", "Float16": "Bfp8"}
_STREAMS: Final = 6  # of a channel that are tried, the largest first


def _propose_formats(situation: Situation) -> Iterator[Proposal]:
    """Propose the next narrower number format for the tensor of the transfer that limits the epoch, or, if that is a
    DRAM channel, for each tensor of the largest streams of the channel."""
    if situation.target.kind == "op":
        return
    if situation.edge is not None:
        yield from _narrow_edge(situation, situation.edge, situation.target.cycles)
        return
    carried = streams(situation)
    total = sum(size for _, size in carried)
    for edge, size in carried[:_STREAMS]:
        yield from _narrow_edge(situation, edge, situation.target.cycles * size / total)


def _narrow_edge(situation: Situation, edge: Flow, cycles: float) -> Iterator[Proposal]:
    """Propose a narrower format for the tensor that a transfer carries, changing its producer, its queues and its
    readers alike; nothing if the format has no narrower one, or the tensor is not tilized or has an alias. `cycles`
    becomes the proposal's gain."""
    netlist = situation.variant.netlist
    queue = netlist.queues.get(edge.source) or netlist.queues.get(edge.target)
    if queue is not None and (queue.alias or queue.layout != "tilized"):
        return
    if queue is not None:
        name = queue.name
        before = queue.df
    else:
        name = edge.source
        before = netlist.ops[name].out_df
    narrow = _NARROWER.get(before)
    if narrow is None:
        return
    edits: list[Edit] = []
    if queue is not None:
        edits.append(Edit("queue", name, ("df",), narrow))
    if queue is None or not queue.host_fed:
        producer = _producer(netlist, queue, name)
        if producer is None or producer.out_df != before:
            return
        edits += _producer_edits(netlist, producer, narrow, queue)
    edits += _reader_edits(netlist, {edit.name for edit in edits}, narrow)
    sentence = f"{name} in {narrow} instead of {before}"
    yield Proposal("format", name, sentence, tuple(edits), lossy=True, gain=cycles)


def _producer(netlist: Netlist, queue: Queue | None, name: str) -> Op | None:
    """Return the op that fills `queue`; if that is None, the op `name`. None if the host fills the queue."""
    if queue is not None:
        name = queue.input
    return netlist.ops.get(name)


def _producer_edits(netlist: Netlist, producer: Op, narrow: str, queue: Queue | None) -> Iterator[Edit]:
    """Yield edits that give the result of an op the format `narrow`, and all queues that it feeds except `queue`: an op
    has one format for everybody who reads it."""
    yield Edit("op", producer.name, ("out_df",), narrow)
    for other in netlist.queues.values():
        if other.input == producer.name and other is not queue:
            yield Edit("queue", other.name, ("df",), narrow)


def _reader_edits(netlist: Netlist, names: set[str], narrow: str) -> Iterator[Edit]:
    """Yield edits that give all ops that read one of the tensors `names` the format `narrow` for that input."""
    for op in netlist.ops.values():
        formats = tuple(narrow if source in names else df for source, df in zip(op.inputs, op.in_df, strict=False))
        if formats != op.in_df and len(formats) == len(op.in_df):
            yield Edit("op", op.name, ("in_df",), formats)


NARROWER_FORMAT: Final = Move(
    "format", "df of a queue, out_df of an op, in_df of its readers",
    "a transfer or one of the largest streams of a memory channel, whose tensor has a wider format than it might",
    lossy=True, proposals=_propose_formats,
)  # fmt: skip


def _propose_approximations(situation: Situation) -> Iterator[Proposal]:
    """Propose the vector unit's coarser form of the function for the op that is the target, if that is faster."""
    op = situation.op
    cycles_before = situation.op_cycles
    if op is None or cycles_before is None or not op.has("vector unit") or op.attributes.approximate_mode:
        return
    edits = (Edit("op", op.name, ("attributes", "approximate_mode"), True),)
    cycles_after = situation.cycles(apply_edits(situation.variant.netlist, edits).ops[op.name])
    if cycles_after is not None and cycles_after < cycles_before:
        sentence = f"{op.name} approximated"
        yield Proposal("approximate", op.name, sentence, edits, lossy=True, gain=cycles_before - cycles_after)


APPROXIMATION: Final = Move(
    "approximate", "attributes: approximate_mode", "an op of the vector unit that has a coarser form", lossy=True,
    proposals=_propose_approximations,
)  # fmt: skip
