"""How each operand of an op reads: which blocks of its source every core gets, and in which order."""

from dataclasses import replace

from buda_emu.netlist.model import Op
from buda_emu.routing.pipes.maps.edge import Reading
from buda_emu.routing.pipes.ops.fused import FusedUse
from buda_emu.routing.pipes.ops.op_class import kernel_broadcast, op_class
from buda_emu.routing.pipes.refusal import RefusedError
from buda_emu.spec.blocking import Shape


def reading(op: Op, index: int, source: Shape, fused: FusedUse | None) -> Reading:
    """How operand `index` reads a source that has shape `source` after its TMs. Embedding tables and flat data apart:
    these are read row by row (`edge.table_rows_map`, `edge.flat_rows_map`)."""
    kept, per_t = kernel_broadcast(op, index)
    found = _reading(op, index, source, fused)
    return replace(found, kept=kept, kept_per_t=per_t) if kept else found


def _reading(op: Op, index: int, source: Shape, fused: FusedUse | None) -> Reading:
    kind = op_class(op)
    if kind == "matmul":
        return _sparse(op, index, source) if op.attributes.identity else _dense(op, index)
    if kind == "depthwise":
        return _depthwise(op, index)
    if kind == "reduce":
        return _reduce(op)
    if kind == "fused_op":
        assert fused is not None
        return _fused(op, index, fused)
    if kind == "splice":
        return _splice(op, source)
    if kind == "buffer":
        return _buffer(op, index)
    if kind == "topk":
        own, (m, _), (r, _) = op.attributes, op.blocking.mblock, op.blocking.ublock
        return replace(_as_result(op), mblock=(m, own.m_k), ublock=(r, own.u_kt))
    return _as_result(op)


def _as_result(op: Op) -> Reading:
    """Blocks as those of the result."""
    own = op.blocking
    return Reading(own.t, own.grid_size, own.mblock, own.ublock, own.ublock_order == "r")


def _rows(op: Op, t: int, k: tuple[int, int], *, row_major: bool = False) -> Reading:
    """The left operand of a product: k = (mblocks, tiles of a ublock) along the inner dimension."""
    own = op.blocking
    return Reading(t, own.grid_size, (own.mblock[0], k[0]), (own.ublock[0], k[1]), row_major, "rows")


def _columns(op: Op, t: int, k: tuple[int, int], *, row_major: bool = True) -> Reading:
    """The right operand."""
    own = op.blocking
    return Reading(t, own.grid_size, (k[0], own.mblock[1]), (k[1], own.ublock[1]), row_major, "columns")


def _dense(op: Op, index: int) -> Reading:
    own = op.attributes
    t = op.blocking.t * (own.z if own.accumulate else 1)
    if index == 0:
        return _rows(op, t, (own.m_k, own.u_kt))
    return _columns(op, t, (own.m_k, own.u_kt)) if index == 1 else _as_result(op)


def _sparse(op: Op, index: int, source: Shape) -> Reading:
    """m_k * u_kt are the rows of one t of the activation (shared/routing/README)."""
    own, grid, by_rows = op.attributes, op.blocking.grid_size, op.blocking.ublock_order == "r"
    if index == 1:
        return _columns(op, source[0], (own.m_k, own.u_kt))
    if index == 3:
        return _as_result(op)
    tiles = own.num_sparse_tiles if index == 0 else own.num_index_tiles
    return Reading(1, grid, (1, tiles), (1, 1), by_rows)


def _depthwise(op: Op, index: int) -> Reading:
    own, blocking = op.attributes, op.blocking
    if index == 0:
        return _rows(op, blocking.t, (own.m_k * blocking.mblock[1], blocking.ublock[1]))
    return _columns(op, blocking.t, (own.m_k, own.u_kt)) if index == 1 else _as_result(op)


def _reduce(op: Op) -> Reading:
    own, blocking = op.attributes, op.blocking
    (m, n), (r, c) = blocking.mblock, blocking.ublock
    if own.dim == "r":
        return replace(_as_result(op), mblock=(own.m_k, n), ublock=(own.u_kt, c), row_major=False)
    if own.dim == "c":
        return replace(_as_result(op), mblock=(m, own.m_k), ublock=(r, own.u_kt), row_major=True)
    if own.dim == "z":
        return replace(_as_result(op), t=blocking.t * own.z, row_major=True)
    raise RefusedError("V331", f"reduce of dim {own.dim}", "reduce r, then c")


def _fused(op: Op, index: int, fused: FusedUse) -> Reading:
    """As the sub-op that reads the input first."""
    name = f"input{index}"
    sub = fused.readers[name]
    own = sub.attributes
    (m, n), (r, c), t, grid = sub.mblock, sub.ublock, op.blocking.t, op.blocking.grid_size
    by_rows = op.blocking.ublock_order == "r"
    if sub.type == "matmul":
        if name == sub.inputs[0]:
            return Reading(t, grid, (m, own.m_k), (r, own.u_kt), True, "rows")
        return Reading(t, grid, (own.m_k, n), (own.u_kt, c), False, "columns")
    if sub.type == "reduce":
        if own.dim == "r":
            return Reading(t, grid, (own.m_k, n), (own.u_kt, c), False)
        if own.dim == "c":
            return Reading(t, grid, (m, own.m_k), (r, own.u_kt), True)
        raise RefusedError("V331", f"{sub.name}: reduce of dim {own.dim} in a fused op", "reduce r or c there")
    return Reading(t, grid, (m, n), (r, c), by_rows)


def _splice(op: Op, source: Shape) -> Reading:
    """Whole inputs, in ublocks as the result's."""
    (rows, columns), (r, c) = op.blocking.grid_size, op.blocking.ublock
    t = op.blocking.t if op.attributes.granularity == "ublock" else source[0]
    mblock = (source[1] // (rows * r), source[2] // (columns * c))
    return replace(_as_result(op), t=t, mblock=mblock)


def _buffer(op: Op, index: int) -> Reading:
    own = op.attributes
    if index == 0:
        return _columns(op, op.blocking.t, (own.m_k, own.u_kt))
    return Reading(1, op.blocking.grid_size, (1, own.num_index_tiles), (1, 1), False, "rows")
