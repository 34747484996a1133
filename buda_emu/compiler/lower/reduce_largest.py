"""The largest along one dimension (OPS 6.7)."""

from dataclasses import replace
from math import prod

import numpy as np

from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.lower.elementwise import settled
from buda_emu.compiler.lower.layout import TILE, Layout, ordered
from buda_emu.compiler.lower.lowering import Lowering, Value, lowers
from buda_emu.compiler.lower.relayout import relayout
from buda_emu.compiler.lower.tiles import Tm, Use
from buda_emu.spec.infinity import BELOW


@lowers("reduce_max")
def reduce_max(low: Lowering, node: Node) -> Value:
    """Along z where the dimension is innermost there or shares columns with a larger rest, which so stays there; along
    columns or rows where it is alone."""
    dim: int = node.attrs["dim"]
    value = settled(low, low.values[node.inputs[0]])
    layout = value.layout
    pieces = layout.dims[dim]
    axes = {piece.axis for piece in pieces}
    alone = len(axes) == 1 and all(
        piece.axis not in axes for place, item in enumerate(layout.dims) if place != dim for piece in item
    )
    if axes == {"z"} and len(pieces) == 1 and pieces[0].stride == 1:
        return _largest_of_z(low, value, dim, pieces[0].size)
    if not alone and axes == {"c"} and prod(piece.size for piece in pieces) ** 2 <= _in_columns(layout):
        value = relayout(low, value, _innermost_of_z(layout, dim))
        return _largest_of_z(low, low.real(value), dim, value.layout.dims[dim][0].size)
    if not alone or axes == {"z"}:
        rest = [place for place in range(len(layout.dims)) if place != dim]
        value = relayout(low, value, ordered(layout.shape, rest[:-1], rest[-1:], [dim]))
        axes = {"c"}
    axis = axes.pop()
    value = low.real(_low_padding(low, value, axis))
    layout = value.layout
    t, r, c = value.tiles
    shape = (t, r, 1) if axis == "c" else (t, 1, c)
    name = low.op("reduce", [low.use(value)], shape, inner=c if axis == "c" else r, dim=axis, type="max")
    dims = list(layout.dims)
    dims[dim] = ()
    extent = (t, layout.extent[1], TILE) if axis == "c" else (t, TILE, layout.extent[2])
    return Value(
        name, Layout(tuple(dims), extent), (), None, value.clean_rows or axis == "r", value.clean_columns or axis == "c"
    )


def _in_columns(layout: Layout) -> int:
    return prod(piece.size for piece in layout.on("c"))


def _innermost_of_z(layout: Layout, dim: int) -> Layout:
    """That dimension there, each other one where its innermost piece is."""
    axes = [pieces[-1].axis if pieces else "z" for pieces in layout.dims]
    z, r, c = ([place for place, own in enumerate(axes) if own == axis and place != dim] for axis in "zrc")
    return ordered(layout.shape, [*z, dim], r, c)


def _largest_of_z(low: Lowering, value: Value, dim: int, count: int) -> Value:
    t, r, c = value.tiles
    name = low.op("reduce", [low.use(value)], (t // count, r, c), dim="z", type="max", z=count)
    dims = [
        tuple(replace(piece, stride=piece.stride // count) if piece.axis == "z" else piece for piece in item)
        for item in value.layout.dims
    ]
    dims[dim] = ()
    return replace(value, source=name, tms=(), layout=Layout(tuple(dims), (t // count, *value.layout.extent[1:])))


def _low_padding(low: Lowering, value: Value, axis: str) -> Value:
    """Far below everything where rows (columns) are padding (FRONTEND 3.2)."""
    layout = value.layout
    full = layout.columns_full if axis == "c" else layout.rows_full
    if full:
        return value
    value = low.real(low.masked(value, rows=axis == "r", columns=axis == "c"))
    extent = layout.extent[2 if axis == "c" else 1]
    row = np.full(extent, BELOW, np.float32)
    row[layout.positions(axis)] = 0
    shape = (1, TILE, extent) if axis == "c" else (1, extent, TILE)
    held = np.broadcast_to(row.reshape((1, 1, -1) if axis == "c" else (1, -1, 1)), shape)
    tms: list[Tm] = [("broadcast", "z", layout.extent[0])] if layout.extent[0] > 1 else []
    other, size = ("r", layout.extent[1]) if axis == "c" else ("c", layout.extent[2])
    if size > TILE:
        tms.append(("broadcast", other, size // TILE))
    low_use = Use(low.constant(np.ascontiguousarray(held), suffix="floor", most=-BELOW), tuple(tms))
    name = low.op("add", [low.use(value), low_use], value.tiles, suffix="below")
    return replace(value, source=name, tms=(), clean_rows=False, clean_columns=False)
