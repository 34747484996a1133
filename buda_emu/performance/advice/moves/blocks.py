"""Moves that change how an op works through its tiles: larger ublocks, and an operand of one tile that the core
keeps."""

from collections.abc import Iterator
from itertools import product
from typing import Final

from buda_emu.netlist.model import Op
from buda_emu.performance.advice.edits import Edit, Proposal, apply_edits
from buda_emu.performance.advice.moves.cores import can_be_cut
from buda_emu.performance.advice.moves.move import Move, Situation
from buda_emu.spec.blocking import Blocking

_DST_TILES: Final = {"Float32": 4, "Int32": 4}  # that half of Dst holds (PERF 1.1); others 8
_SHAPES: Final = 3  # the fastest ones that are proposed, as each costs a try


def _propose_ublocks(situation: Situation) -> Iterator[Proposal]:
    """Propose the few fastest other ublocks for the op that limits the epoch, if they take fewer cycles than its
    present one; nothing if the target is no op whose blocks alone state its work."""
    op = situation.op
    cycles_before = situation.op_cycles
    if op is None or cycles_before is None or not can_be_cut(situation, op):
        return
    candidates: list[tuple[float, tuple[Edit, ...]]] = []
    for edits in _ublock_edits(op):
        cycles_after = situation.cycles(apply_edits(situation.variant.netlist, edits).ops[op.name])
        if cycles_after is not None and cycles_after < cycles_before:
            candidates.append((cycles_after, edits))
    for cycles_after, edits in sorted(candidates, key=lambda candidate: candidate[0])[:_SHAPES]:
        shapes = f"{_shape_text(edits[1].value)} tiles instead of {_shape_text(op.blocking.ublock)}"
        sentence = f"{op.name} in ublocks of {shapes}"
        yield Proposal("block", op.name, sentence, edits, gain=cycles_before - cycles_after)


def _ublock_edits(op: Op) -> Iterator[tuple[Edit, ...]]:
    """Yield edits of mblock and ublock for every ublock shape, except the present one, that divides the op's block on a
    core and fits into half of Dst."""
    blocking = op.blocking
    dst_tiles = _DST_TILES.get(op.acc_df, 8)
    for rows, columns in product(_divisors(blocking.block_rows), _divisors(blocking.block_cols)):
        if rows * columns <= dst_tiles and (rows, columns) != blocking.ublock:
            mblock = (blocking.block_rows // rows, blocking.block_cols // columns)
            yield Edit("op", op.name, ("mblock",), mblock), Edit("op", op.name, ("ublock",), (rows, columns))


def _divisors(count: int) -> list[int]:
    """Return all divisors of a number, in rising order."""
    return [number for number in range(1, count + 1) if count % number == 0]


def _shape_text(value: object) -> str:
    """Return rows and columns as text, `2x4`."""
    assert isinstance(value, tuple)
    return f"{value[0]}x{value[1]}"


LARGER_UBLOCKS: Final = Move(
    "block", "mblock, ublock", "an op whose block on a core can be cut into larger ublocks that Dst holds",
    lossy=False, proposals=_propose_ublocks,
)  # fmt: skip


def _propose_kept_operand(situation: Situation) -> Iterator[Proposal]:
    """Propose, if a transfer of a single tile that is broadcast limits the epoch, that the reading op keeps the tile in
    L1 (kernel broadcast)."""
    edge = situation.edge
    if situation.target.kind == "op" or edge is None or edge.operand < 0:
        return
    op = situation.ops[edge.target]
    source = situation.ops.get(edge.source) or situation.variant.netlist.queues.get(edge.source)
    if source is None or not _may_keep_operand(op, edge.operand, source.blocking):
        return
    edits = (Edit("op", op.name, ("attributes", "kernel_broadcast"), ((edge.operand, 1),)),)
    sentence = f"{op.name} keeps its input {edge.operand}"
    yield Proposal("kernel_broadcast", op.name, sentence, edits, gain=situation.target.cycles)


def _may_keep_operand(op: Op, operand: int, source: Blocking) -> bool:
    """Return whether an op that keeps no operand yet can keep this one: a single tile that TMs only broadcast."""
    attributes = op.attributes
    if attributes.kernel_broadcast or attributes.kernel_broadcast_per_t or op.has("rows by columns"):
        return False
    if source.t * source.rows * source.cols != 1 or operand >= len(op.input_tms):
        return False
    tms = op.input_tms[operand]
    return bool(tms) and all(tm.name == "broadcast" for tm in tms)


KEPT_OPERAND: Final = Move(
    "kernel_broadcast", "attributes: kernel_broadcast", "a transfer that repeats one tile", lossy=False,
    proposals=_propose_kept_operand,
)  # fmt: skip
