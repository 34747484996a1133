"""The vector unit's faster, less accurate form of a function."""

from collections.abc import Iterator
from typing import Final

from buda_emu.advice.edits import Edit, Proposal, edited
from buda_emu.advice.moves.move import Move, Situation


def _proposals(here: Situation) -> Iterator[Proposal]:
    op = here.op
    now = here.cycles(op) if op is not None else None
    if op is None or now is None or not op.has("vector unit") or op.attributes.approximate_mode:
        return
    edits = (Edit("op", op.name, ("attributes", "approximate_mode"), True),)
    after = here.cycles(edited(here.variant.netlist, edits).ops[op.name])
    if after is not None and after < now:
        sentence = f"{op.name} approximated"
        yield Proposal("approximate", op.name, sentence, edits, lossy=True, gain=now - after)


MOVE: Final = Move(
    "approximate", "attributes: approximate_mode", "an op of the vector unit that has a coarser form", lossy=True,
    proposals=_proposals,
)  # fmt: skip
