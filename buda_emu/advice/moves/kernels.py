"""An operand that is the same for all parts of an op is kept by each core instead of being sent again."""

from collections.abc import Iterator
from typing import Final

from buda_emu.advice.edits import Edit, Proposal
from buda_emu.advice.moves.move import Move, Situation


def _proposals(here: Situation) -> Iterator[Proposal]:
    edge = here.edge
    if here.target.kind == "op" or edge is None or edge.operand < 0:
        return
    op, source = here.ops[edge.target], here.ops.get(edge.source) or here.variant.netlist.queues.get(edge.source)
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


MOVE: Final = Move(
    "kernel_broadcast", "attributes: kernel_broadcast", "a transfer that repeats one tile", lossy=False,
    proposals=_proposals,
)  # fmt: skip
