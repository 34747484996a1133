"""More macroblocks in an op's output buffer, so that it does not wait for its readers."""

from collections.abc import Iterator
from typing import Final

from buda_emu.advice.edits import Edit, Proposal
from buda_emu.advice.moves.move import Move, Situation
from buda_emu.checker.text import plural

_MOST: Final = 64


def _proposals(here: Situation) -> Iterator[Proposal]:
    if here.target.kind == "memory":
        return
    edge = here.edge
    names = [here.target.name] if here.target.kind == "op" else [edge.source, edge.target] if edge is not None else []
    waits = {item.op: item.waiting_for_room / here.report.timing.modelled for item in here.report.timing.ops}
    for name in names:
        op = here.ops.get(name)
        if op is None or not waits.get(name) or op.has("Ethernet"):
            continue
        count = 2 * max(op.buf_size_mb, 1)
        if count <= _MOST:
            sentence = f"{name} with {plural(count, 'macroblock')} in its output buffer instead of {op.buf_size_mb}"
            yield Proposal(
                "buffer", name, sentence, (Edit("op", name, ("buf_size_mb",), count),), gain=waits[name] / 10
            )


MOVE: Final = Move(
    "buffer", "buf_size_mb", "an op that waits for room in its output buffer", lossy=False, proposals=_proposals
)
