"""Identity matmuls with fewer columns of cores: every column reads the same sparse tiles and encoding, which a
broadcast hands to it."""

from collections.abc import Iterator

from buda_emu.advice.edits import Edit
from buda_emu.netlist.model import Op


def merged_columns(op: Op) -> Iterator[tuple[Edit, ...]]:
    """Edits that give an identity matmul fewer columns of cores. The data of its queues stay as they are."""
    rows, columns = op.blocking.grid_size
    if not op.attributes.identity or columns < 2 or len(op.inputs) != 3 or op.grid_transpose:
        return
    places = [_broadcast_place(op, operand, columns) for operand in (0, 2)]
    for fewer in range(1, columns):
        if columns % fewer or None in places:
            continue
        mblock = (op.blocking.mblock[0], op.blocking.mblock[1] * columns // fewer)
        edits = [Edit("op", op.name, ("grid_size",), (rows, fewer)), Edit("op", op.name, ("mblock",), mblock)]
        for operand, place in zip((0, 2), places, strict=True):
            assert place is not None
            edits.append(Edit("op", op.name, (f"input_{operand}_tms", place, "broadcast", "c"), fewer))
        yield tuple(edits)


def _broadcast_place(op: Op, operand: int, columns: int) -> int | None:
    """Where in an operand's TMs its broadcast to the columns stands."""
    chain = op.input_tms[operand] if operand < len(op.input_tms) else ()
    for place, tm in enumerate(chain):
        if tm.name == "broadcast" and tm.args == ("c", columns):
            return place
    return None
