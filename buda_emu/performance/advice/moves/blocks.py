"""Moves that change how an op works through its tiles: larger ublocks, and an operand of one tile that the core
keeps."""

from collections.abc import Iterator
from typing import Final

from buda_emu.performance.advice.edits import Edit, Proposal, edited
from buda_emu.performance.advice.moves.cores import can_be_cut
from buda_emu.performance.advice.moves.move import Move, Situation

_DST_TILES: Final = {"Float32": 4, "Int32": 4}  # that half of Dst holds (PERF 1.1); others 8
_SHAPES: Final = 3


def _propose_ublocks(here: Situation) -> Iterator[Proposal]:
    op = here.op
    now = here.cycles(op) if op is not None else None
    if op is None or now is None or not can_be_cut(here, op):
        return
    own = op.blocking
    most = _DST_TILES.get(op.acc_df, 8)
    found: list[tuple[float, tuple[Edit, ...]]] = []
    for rows in _divisors(own.block_rows):
        for columns in _divisors(own.block_cols):
            if rows * columns > most or (rows, columns) == own.ublock:
                continue
            mblock = (own.block_rows // rows, own.block_cols // columns)
            edits = (Edit("op", op.name, ("mblock",), mblock), Edit("op", op.name, ("ublock",), (rows, columns)))
            after = here.cycles(edited(here.variant.netlist, edits).ops[op.name])
            if after is not None and after < now:
                found.append((after, edits))
    for after, edits in sorted(found, key=lambda item: item[0])[:_SHAPES]:
        sentence = f"{op.name} in ublocks of {_of(edits[1].value)} tiles instead of {_of(own.ublock)}"
        yield Proposal("block", op.name, sentence, edits, gain=now - after)


def _divisors(count: int) -> list[int]:
    return [number for number in range(1, count + 1) if count % number == 0]


def _of(value: object) -> str:
    assert isinstance(value, tuple)
    return f"{value[0]}x{value[1]}"


LARGER_UBLOCKS: Final = Move(
    "block", "mblock, ublock", "an op whose block on a core can be cut into larger ublocks that Dst holds",
    lossy=False, proposals=_propose_ublocks,
)  # fmt: skip


def _propose_kept_operand(here: Situation) -> Iterator[Proposal]:
    edge = here.edge
    if here.target.kind == "op" or edge is None or edge.operand < 0:
        return
    op = here.ops[edge.target]
    source = here.ops.get(edge.source) or here.variant.netlist.queues.get(edge.source)
    own = op.attributes
    if source is None or own.kernel_broadcast or own.kernel_broadcast_per_t or op.has("rows by columns"):
        return
    chain = op.input_tms[edge.operand] if edge.operand < len(op.input_tms) else ()
    tiles = source.blocking.t * source.blocking.rows * source.blocking.cols
    if tiles != 1 or not chain or any(tm.name != "broadcast" for tm in chain):
        return
    edits = (Edit("op", op.name, ("attributes", "kernel_broadcast"), ((edge.operand, 1),)),)
    sentence = f"{op.name} keeps its input {edge.operand}"
    yield Proposal("kernel_broadcast", op.name, sentence, edits, gain=here.target.cycles)


KEPT_OPERAND: Final = Move(
    "kernel_broadcast", "attributes: kernel_broadcast", "a transfer that repeats one tile", lossy=False,
    proposals=_propose_kept_operand,
)  # fmt: skip
