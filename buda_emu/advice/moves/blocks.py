"""Larger ublocks: work that comes once with each ublock comes less often."""

from collections.abc import Iterator
from typing import Final

from buda_emu.advice.edits import Edit, Proposal, edited
from buda_emu.advice.moves.cores import can_be_cut
from buda_emu.advice.moves.move import Move, Situation

_DST_TILES: Final = {"Float32": 4, "Int32": 4}  # that half of Dst holds (PERF 1.1); others 8
_SHAPES: Final = 3


def _proposals(here: Situation) -> Iterator[Proposal]:
    op = here.op
    now = here.cycles(op) if op is not None else None
    if op is None or now is None or not can_be_cut(here, op):
        return
    own, most = op.blocking, _DST_TILES.get(op.acc_df, 8)
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


MOVE: Final = Move(
    "block", "mblock, ublock", "an op whose block on a core can be cut into larger ublocks that Dst holds",
    lossy=False, proposals=_proposals,
)  # fmt: skip
