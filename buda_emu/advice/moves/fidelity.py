"""A lower math fidelity: fewer passes of the FPU over each tile, and fewer bits of its operands."""

from collections.abc import Iterator
from typing import Final

from buda_emu.advice.edits import Edit, Proposal, edited
from buda_emu.advice.moves.move import Move, Situation
from buda_emu.timing.op.call import PHASES

_LOWER: Final = {4: ("HiFi3", "HiFi2", "LoFi"), 3: ("HiFi2", "LoFi"), 2: ("LoFi",)}


def _proposals(here: Situation) -> Iterator[Proposal]:
    op = here.op
    now = here.cycles(op) if op is not None else None
    if op is None or now is None:
        return
    for word in _LOWER.get(PHASES.get(op.math_fidelity, 4), ()):
        edits = (Edit("op", op.name, ("math_fidelity",), word),)
        after = here.cycles(edited(here.variant.netlist, edits).ops[op.name])
        if after is not None and after < now:
            sentence = f"{op.name} in {word} instead of {op.math_fidelity}"
            yield Proposal("fidelity", op.name, sentence, edits, lossy=True, gain=now - after)


MOVE: Final = Move(
    "fidelity", "math_fidelity", "an op of the FPU above LoFi that sets the pace", lossy=True, proposals=_proposals
)
