"""Fused ops: each input as the sub-op that reads it first."""

from buda_emu.netlist.model import Op, SubOp
from buda_emu.routing.pipes.maps.edge import Reading
from buda_emu.routing.pipes.ops.operands import OpInputs, OpKind, Shared
from buda_emu.routing.pipes.ops.products import reduced
from buda_emu.routing.pipes.refusal import RefusedError
from buda_emu.spec.blocking import Shape


class Fused(OpKind):
    """fused_op (OPS 8)."""

    def intermediates(self, op: Op, of_fused: int) -> int:
        return max(of_fused, 0) if of_fused > 0 or op.gradient_op else 0

    def shared(self, inputs: OpInputs, index: int) -> Shared:
        op = inputs.op
        products = [(number, *_reader(inputs, number)) for number in range(len(op.inputs))]
        rows = [number for number, name, sub in products if sub.has("rows by columns") and name == sub.inputs[0]]
        columns = [number for number, name, sub in products if sub.has("rows by columns") and name != sub.inputs[0]]
        down, across = op.blocking.grid_size
        total = len(rows) * (across > 1) + len(columns) * (down > 1)
        if total > 2:
            what, hint = f"{total} operands are multicast, at most 2 can be", "split the fused op"
            raise RefusedError("V084", what, hint, op.name)
        second = any(index in group[1:] for group in (rows, columns))
        return Shared(index in rows, index in columns, second)

    def keeps_blocks(self, inputs: OpInputs, index: int) -> bool:
        return not _reader(inputs, index)[1].has("keeps sums")

    def reading(self, inputs: OpInputs, index: int, source: Shape) -> Reading:
        name, sub = _reader(inputs, index)
        own, (m, n), (r, c) = sub.attributes, sub.mblock, sub.ublock
        t, grid, by_rows = inputs.op.blocking.t, inputs.op.blocking.grid_size, inputs.op.blocking.ublock_order == "r"
        if sub.has("rows by columns") and name == sub.inputs[0]:
            return Reading(t, grid, (m, own.m_k), (r, own.u_kt), True, "rows")
        if sub.has("rows by columns"):
            return Reading(t, grid, (own.m_k, n), (own.u_kt, c), False, "columns")
        found = Reading(t, grid, sub.mblock, sub.ublock, by_rows)
        return reduced(found, own.dim, (own.m_k, own.u_kt), sub.name) if sub.has("reduces") else found

    def block(self, inputs: OpInputs, index: int) -> tuple[int, int]:
        name, sub = _reader(inputs, index)
        t, (m, n), (r, c), own = inputs.op.blocking.t, sub.mblock, sub.ublock, sub.attributes
        k = own.m_k * own.u_kt
        if sub.has("rows by columns"):
            return (t * k * m * r, r * own.u_kt) if name == sub.inputs[0] else (t * k * n * c, own.m_k * c * own.u_kt)
        if sub.has("reduces"):
            return (t * k * n * c, c * own.u_kt) if own.dim == "r" else (t * k * m * r, r * own.u_kt)
        return t * m * n * r * c, m * n * r * c

    def cleared(self, inputs: OpInputs, index: int) -> int:
        assert inputs.fused is not None
        name, sub = _reader(inputs, index)
        (r, c), own = sub.ublock, sub.attributes
        tiles = r * c
        if sub.has("rows by columns"):
            tiles = (r if name == sub.inputs[0] else c) * own.u_kt
        elif sub.has("reduces"):
            tiles = (c if own.dim == "r" else r) * own.u_kt
        return tiles * inputs.fused.forked.get(name, 1)

    def least_bytes(self, inputs: OpInputs, index: int, size: int, covering: int) -> int:
        name, sub = _reader(inputs, index)
        if sub.has("rows by columns") and name == sub.inputs[1]:
            return 2 * size * sub.attributes.m_k * sub.mblock[1] * inputs.cleared(index)
        if sub.has("rows by columns") and name == sub.inputs[0] and sub.mblock[1] > 1:
            return 2 * size * sub.attributes.m_k * inputs.cleared(index)
        return for_many(inputs.op, covering)


def for_many(op: Op, covering: int) -> int:
    """Bytes that cover the latency, of which ops with more than three operands have a part for each."""
    return covering * 3 // len(op.inputs) if len(op.inputs) > 3 else covering


def _reader(inputs: OpInputs, index: int) -> tuple[str, SubOp]:
    """The name of an input inside the fused op, and the sub-op that reads it first."""
    assert inputs.fused is not None
    name = f"input{index}"
    return name, inputs.fused.readers[name]
