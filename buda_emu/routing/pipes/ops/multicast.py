"""Which operands rows or columns of cores share, and over which NoC they are sent to all of them (net2pipe)."""

from dataclasses import dataclass

from buda_emu.netlist.model import Op
from buda_emu.routing.pipes.ops.fused import FusedUse
from buda_emu.routing.pipes.ops.op_class import is_ethernet, op_class
from buda_emu.routing.pipes.refusal import RefusedError


@dataclass(frozen=True, slots=True)
class Multicast:
    """Of one operand: whether all cores of a row (column) of the op's grid get the same, and whether over NoC 1."""

    rows: bool
    columns: bool
    noc1: bool


def multicast(op: Op, index: int, fused: FusedUse | None) -> Multicast:
    """Of operand `index`. RefusedError for a fused op with more than two shared operands."""
    rows, columns, other_noc = _shared(op, index, fused)
    return Multicast(rows, columns, (rows if op.grid_transpose else columns) != other_noc)


def _shared(op: Op, index: int, fused: FusedUse | None) -> tuple[bool, bool, bool]:
    kind = op_class(op)
    if kind == "matmul" and op.attributes.identity:
        return False, index == 1, False
    if kind in ("matmul", "depthwise"):
        return index == 0, index == 1, False
    if kind == "fused_op":
        assert fused is not None
        return _fused(op, index, fused)
    if kind == "buffer":
        return index == 1, index == 0, False
    return kind in ("embedding", "tilizer") and index > 0, False, False


def _fused(op: Op, index: int, fused: FusedUse) -> tuple[bool, bool, bool]:
    rows: list[int] = []
    columns: list[int] = []
    for number in range(len(op.inputs)):
        sub = fused.readers[f"input{number}"]
        if sub.type == "matmul":
            (rows if sub.inputs[0] == f"input{number}" else columns).append(number)
    down, across = op.blocking.grid_size
    total = len(rows) * (across > 1) + len(columns) * (down > 1)
    if total > 2:
        what, hint = f"{total} operands are multicast, at most 2 can be", "split the fused op"
        raise RefusedError("V084", what, hint, op.name)
    second = any(index in group[1:] for group in (rows, columns))
    return index in rows, index in columns, second


def direct(arch: str, grid: tuple[int, int], producer: Op, consumer: Op, how: Multicast) -> int | None:
    """The NoC over which a producer beside its consumer's row (column) can multicast itself; None where it cannot."""
    apart = producer.target_device != consumer.target_device
    if arch != "wormhole_b0" or apart or is_ethernet(producer) or is_ethernet(consumer):
        return None
    down, across = consumer.blocking.grid_size
    rows, columns = how.rows and across > 1, how.columns and down > 1
    along_x, along_y = (columns, rows) if consumer.grid_transpose else (rows, columns)
    for axis, along in ((1, along_x), (0, along_y)):
        other = 1 - axis
        if not along or consumer.cores[other] != producer.cores[other] or producer.cores[axis] != 1:
            continue
        if consumer.grid_loc[other] != producer.grid_loc[other]:
            continue
        after = consumer.grid_loc[axis] == (producer.grid_loc[axis] + 1) % grid[axis]
        before = producer.grid_loc[axis] == (consumer.grid_loc[axis] + consumer.cores[axis]) % grid[axis]
        if after or before:
            noc = 1 if before else 0
            return noc if how.noc1 == (noc == 1) else None
    return None
