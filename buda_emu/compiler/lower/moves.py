"""Lowerings of core ops that move or pick elements: reshapes, transpositions, embeddings, maxima."""

from dataclasses import replace
from itertools import chain
from itertools import count as numbers
from math import prod
from typing import Any

import numpy as np

from buda_emu.arithmetic.tensor.host import scatter
from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.compiler.lower.elementwise import constant_use, expand_layout, materialise
from buda_emu.compiler.lower.inputs import constant_value, index_queue
from buda_emu.compiler.lower.layout import (
    TILE,
    Layout,
    Piece,
    axes_of,
    dense_layout,
    main_axis,
    padded_size,
    reshape_layout,
    standard,
)
from buda_emu.compiler.lower.linear import along
from buda_emu.compiler.lower.lowering import LoweredValue, Lowering, lowers
from buda_emu.compiler.lower.relayout import relayout
from buda_emu.compiler.lower.tiles import Tm, Use
from buda_emu.spec.precision import BELOW


@lowers("reshape")
def reshape(low: Lowering, node: Node) -> LoweredValue:
    """Lower to a change of the layout if pieces can be cut; otherwise move the value to rows without gaps first."""
    value = low.values[node.inputs[0]]
    new_layout = reshape_layout(value.layout, node.shape)
    if new_layout is None:
        rank = len(value.layout.dims)
        value = relayout(low, value, dense_layout(value.layout.shape, [], list(range(rank)), []))
        pieces: tuple[Piece, ...] = value.layout.pieces
        new_layout = reshape_layout(Layout((pieces,), value.layout.extent), node.shape)
        if new_layout is None:
            plain = dense_layout((int(np.prod(node.shape)),), [], [0], [])
            new_layout = reshape_layout(plain, node.shape)
            assert new_layout is not None
    return replace(value, layout=new_layout)


@lowers("transpose")
def transpose(low: Lowering, node: Node) -> LoweredValue:
    """Lower to a change of the layout."""
    value = low.values[node.inputs[0]]
    perm: tuple[int, ...] = node.attrs["perm"]
    dims = tuple(value.layout.dims[place] for place in perm)
    return replace(value, layout=Layout(dims, value.layout.extent))


@lowers("expand")
def expand(low: Lowering, node: Node) -> LoweredValue:
    """Lower to repeats in the layout."""
    return expand_layout(low.values[node.inputs[0]], node.shape)


@lowers("concat")
def concat(low: Lowering, node: Node) -> LoweredValue:
    """Lower to a sum of the operands, each moved to its place among zeros. The host puts constants in their places."""
    dim: int = node.attrs["dim"]
    sizes = [low.graph[name].shape[dim] for name in node.inputs]
    starts = np.cumsum([0, *sizes])[:-1].tolist()
    computed = [number for number, name in enumerate(node.inputs) if low.array(name) is None]
    if not computed:
        return constant_value(low, _join_constants(low, node, starts))
    values = {number: materialise(low, low.values[node.inputs[number]]) for number in computed}
    largest = max(computed, key=lambda number: prod(values[number].layout.shape))  # which tells where all of it stands
    order = _dims_by_axis(values[largest].layout, len(node.shape))
    total: LoweredValue | None = None
    for number in sorted(computed, key=lambda number: (number != largest, number)):
        value = relayout(low, values[number], dense_layout(values[number].layout.shape, *order))
        matrix = Sparse.of(
            (node.shape[dim], sizes[number]), np.arange(sizes[number]) + starts[number], np.arange(sizes[number])
        )
        placed = low.real(along(low, value, dim, matrix))
        if total is not None:
            placed = low.mask_padding(relayout(low, placed, total.layout), rows=True, columns=True)
            flags = placed.clean_rows, placed.clean_columns
            placed = _add_operand(low, total, low.use(placed), flags)
        total = placed
    assert total is not None
    if len(computed) < len(node.inputs):
        use, flags = constant_use(low, _join_constants(low, node, starts).value, node.shape, total.layout)
        total = _add_operand(low, total, use, flags)
    return replace(total, same_rows=False, same_columns=False)


def _join_constants(low: Lowering, node: Node, starts: list[int]) -> Node:
    """Return a constant of the shape of the concat `node`, with the constant operands at their `starts` along its
    dimension and zeros elsewhere. It is not added to the graph."""
    dim: int = node.attrs["dim"]
    elements = np.zeros(node.shape, np.float32)
    for name, start in zip(node.inputs, starts, strict=True):
        array = low.array(name)
        if array is not None:
            inside = (slice(None),) * dim + (slice(start, start + array.shape[dim]),)
            elements[inside] = np.broadcast_to(array, low.graph[name].shape)
    return Node(
        name=node.name,
        op="constant",
        inputs=(),
        attrs={"value": elements},
        shape=node.shape,
        dtype=node.dtype,
        source=node.source,
    )


def _add_operand(low: Lowering, value: LoweredValue, use: Use, flags: tuple[bool, bool]) -> LoweredValue:
    """Add an operand of the same layout to a value, and return the sum; `flags`: whether the padding of the operand's
    rows and columns is 0."""
    t, r, c = value.layout.extent
    name = low.op("add", [low.use(value), use], (t, r // TILE, c // TILE))
    return replace(
        value,
        source=name,
        tms=(),
        rows=None,
        clean_rows=value.clean_rows and flags[0],
        clean_columns=value.clean_columns and flags[1],
        same_rows=False,
        same_columns=False,
    )


def _dims_by_axis(layout: Layout, rank: int) -> tuple[list[int], list[int], list[int]]:
    """Return the dimensions along z, rows and columns by the axis of most of their elements; dimensions without pieces
    are where the standard layout has them."""
    axes = {place: main_axis(dim) for place, dim in enumerate(layout.dims) if dim}
    plain = {place: axis for axis, places in zip("zrc", _standard_dims(rank), strict=True) for place in places}
    chosen = {place: axes.get(place, plain[place]) for place in range(rank)}
    by = {axis: [place for place in range(rank) if chosen[place] == axis] for axis in "zrc"}
    return by["z"], by["r"], by["c"]


def _standard_dims(rank: int) -> tuple[list[int], list[int], list[int]]:
    """Return the dimensions along z, rows and columns in the standard layout: the last in columns, the one before in
    rows."""
    return list(range(rank - 2)), list(range(max(rank - 2, 0), rank - 1)), [rank - 1] if rank else []


@lowers("embedding")
def embedding(low: Lowering, node: Node) -> LoweredValue:
    """Lower to rows of a table, picked by indices that the host pushes (OPS 6.9)."""
    table = low.array(node.inputs[0])
    assert table is not None
    count = prod(node.shape[:-1])
    width = padded_size(table.shape[1])
    table_slices = (slice(0, table.shape[0]), slice(0, table.shape[1]))
    table_elements = scatter(table, (padded_size(table.shape[0]), width), table_slices)[None]
    indices = index_queue(low, node)
    rows = padded_size(count)
    name = low.op(
        "embedding",
        [Use(_table_queue(low, table_elements, rows)), Use(indices)],
        (1, rows // TILE, width // TILE),
        num_indices=rows,
    )
    layout = standard((count, table.shape[1]))
    new_layout = reshape_layout(layout, node.shape)
    assert new_layout is not None
    return LoweredValue(
        source=name, layout=new_layout, tms=(), rows=None, clean_rows=True, clean_columns=True
    )  # the host pads the indices with ones, which read zeros


def _table_queue(low: Lowering, table_elements: Any, rows: int) -> str:
    """Return the queue of a table, added if it is new, for an embedding that reads `rows` rows. net2pipe cuts the queue
    for the first reader of an epoch, by name, so no other reader may read more at a time (V081); a copy of the table is
    made if one would."""
    for copy in numbers():
        name = low.constant(table_elements, "table", "table", copy=copy)
        readers = {op.name: op for op in low.out.ops.values() if op.has("row-wise index") and op.uses[0].source == name}
        index_counts = {reader: op.attrs["num_indices"] for reader, op in readers.items() if op.program == low.program}
        index_counts[low.name()] = rows
        if index_counts[min(index_counts)] == max(index_counts.values()):
            return name
    raise AssertionError


@lowers("reduce_max")
def reduce_max(low: Lowering, node: Node) -> LoweredValue:
    """Lower a maximum: along z if the dimension is innermost there, or if it shares the columns with a larger rest,
    which so stays; along columns or rows if it is alone there."""
    dim: int = node.attrs["dim"]
    value = materialise(low, low.values[node.inputs[0]])
    layout = value.layout
    pieces = layout.dims[dim]
    axes = axes_of(pieces)
    alone = len(axes) == 1 and axes.isdisjoint(_axes_of_others(layout, dim))
    if axes == {"z"} and len(pieces) == 1 and pieces[0].stride == 1:
        return _max_over_z(low, value, dim, pieces[0].size)
    if not alone and axes == {"c"} and prod(piece.size for piece in pieces) ** 2 <= _count_columns(layout):
        value = relayout(low, value, _layout_with_innermost(layout, dim))
        return _max_over_z(low, low.real(value), dim, value.layout.dims[dim][0].size)
    if not alone or axes == {"z"}:
        rest = [place for place in range(len(layout.dims)) if place != dim]
        value = relayout(low, value, dense_layout(layout.shape, rest[:-1], rest[-1:], [dim]))
        axes = {"c"}
    return _max_over_axis(low, value, dim, axes.pop())


def _axes_of_others(layout: Layout, dim: int) -> set[str]:
    """Return the axes along which all dimensions but `dim` lie."""
    return axes_of(chain(*layout.dims[:dim], *layout.dims[dim + 1 :]))


def _max_over_axis(low: Lowering, value: LoweredValue, dim: int, axis: str) -> LoweredValue:
    """Add the maximum over a dimension that is alone along an axis, the rows ("r") or columns ("c"), and return its
    value."""
    value = low.real(_fill_padding_below(low, value, axis))
    layout = value.layout
    t, r, c = value.shape_in_tiles
    if axis == "c":
        shape = (t, r, 1)
    else:
        shape = (t, 1, c)
    name = low.op("reduce", [low.use(value)], shape, inner=c if axis == "c" else r, dim=axis, type="max")
    dims = list(layout.dims)
    dims[dim] = ()
    if axis == "c":
        extent = (t, layout.extent[1], TILE)
    else:
        extent = (t, TILE, layout.extent[2])
    return LoweredValue(
        source=name,
        layout=Layout(tuple(dims), extent),
        tms=(),
        rows=None,
        clean_rows=value.clean_rows or axis == "r",
        clean_columns=value.clean_columns or axis == "c",
    )


def _count_columns(layout: Layout) -> int:
    """Return how many elements a layout has in its columns, without padding."""
    return prod(piece.size for piece in layout.on("c"))


def _layout_with_innermost(layout: Layout, dim: int) -> Layout:
    """Return the layout with a dimension innermost along z and every other one where its innermost piece is."""
    axes = [pieces[-1].axis if pieces else "z" for pieces in layout.dims]
    z, r, c = ([place for place, dim_axis in enumerate(axes) if dim_axis == axis and place != dim] for axis in "zrc")
    return dense_layout(layout.shape, [*z, dim], r, c)


def _max_over_z(low: Lowering, value: LoweredValue, dim: int, count: int) -> LoweredValue:
    """Add the maximum over dimension `dim`, the innermost `count` slices of t, and return its value."""
    t, r, c = value.shape_in_tiles
    name = low.op("reduce", [low.use(value)], (t // count, r, c), dim="z", type="max", z=count)
    dims = [
        tuple(replace(piece, stride=piece.stride // count) if piece.axis == "z" else piece for piece in dim_pieces)
        for dim_pieces in value.layout.dims
    ]
    dims[dim] = ()
    return replace(value, source=name, tms=(), layout=Layout(tuple(dims), (t // count, *value.layout.extent[1:])))


def _fill_padding_below(low: Lowering, value: LoweredValue, axis: str) -> LoweredValue:
    """Return the value with a number far below all others in the padding of rows or columns, so that a maximum does not
    see the padding (FRONTEND 3.2); unchanged if there is no padding. `axis`: "r" or "c"."""
    layout = value.layout
    if axis == "c":
        full = layout.columns_full
    else:
        full = layout.rows_full
    if full:
        return value
    value = low.real(low.mask_padding(value, rows=axis == "r", columns=axis == "c"))
    extent = layout.extent[2 if axis == "c" else 1]
    row = np.full(extent, BELOW, np.float32)
    row[layout.positions(axis)] = 0
    if axis == "c":
        shape = (1, TILE, extent)
    else:
        shape = (1, extent, TILE)
    floor_rows = np.broadcast_to(row.reshape((1, 1, -1) if axis == "c" else (1, -1, 1)), shape)
    tms: list[Tm] = [("broadcast", "z", layout.extent[0])] if layout.extent[0] > 1 else []
    other, size = ("r", layout.extent[1]) if axis == "c" else ("c", layout.extent[2])
    if size > TILE:
        tms.append(("broadcast", other, size // TILE))
    low_use = Use(low.constant(np.ascontiguousarray(floor_rows), suffix="floor", largest=-BELOW), tuple(tms))
    name = low.op("add", [low.use(value), low_use], value.shape_in_tiles, suffix="below")
    return replace(value, source=name, tms=(), clean_rows=False, clean_columns=False)
