"""Lowerings of core ops that move or pick elements: reshapes, transpositions, embeddings, maxima."""

from dataclasses import replace
from itertools import count as numbers
from math import prod
from typing import Any

import numpy as np

from buda_emu.arithmetic.tensor.host import scatter
from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.compiler.lower.elementwise import constant_use, expanded, settled
from buda_emu.compiler.lower.inputs import constant_value, index_queue
from buda_emu.compiler.lower.layout import TILE, Layout, Piece, ordered, padded, reshaped, standard
from buda_emu.compiler.lower.linear import along
from buda_emu.compiler.lower.lowering import Lowering, Value, lowers
from buda_emu.compiler.lower.relayout import relayout
from buda_emu.compiler.lower.tiles import Tm, Use
from buda_emu.spec.precision import BELOW


@lowers("reshape")
def reshape(low: Lowering, node: Node) -> Value:
    """In words, where pieces can be cut; else through rows without gaps."""
    value = low.values[node.inputs[0]]
    found = reshaped(value.layout, node.shape)
    if found is None:
        rank = len(value.layout.dims)
        value = relayout(low, value, ordered(value.layout.shape, [], list(range(rank)), []))
        pieces: tuple[Piece, ...] = value.layout.pieces
        found = reshaped(Layout((pieces,), value.layout.extent), node.shape)
        if found is None:
            whole = ordered((int(np.prod(node.shape)),), [], [0], [])
            found = reshaped(whole, node.shape)
            assert found is not None
    return replace(value, layout=found)


@lowers("transpose")
def transpose(low: Lowering, node: Node) -> Value:
    """In words."""
    value = low.values[node.inputs[0]]
    perm: tuple[int, ...] = node.attrs["perm"]
    dims = tuple(value.layout.dims[place] for place in perm)
    return replace(value, layout=Layout(dims, value.layout.extent))


@lowers("expand")
def expand(low: Lowering, node: Node) -> Value:
    """In words."""
    return expanded(low.values[node.inputs[0]], node.shape)


@lowers("concat")
def concat(low: Lowering, node: Node) -> Value:
    """Each operand moved to its place among zeros, then the sum; constants are put there by the host."""
    dim: int = node.attrs["dim"]
    sizes = [low.graph[name].shape[dim] for name in node.inputs]
    starts = np.cumsum([0, *sizes])[:-1].tolist()
    given = [number for number, name in enumerate(node.inputs) if low.array(name) is None]
    if not given:
        return constant_value(low, _joined(low, node, starts))
    values = {number: settled(low, low.values[node.inputs[number]]) for number in given}
    largest = max(given, key=lambda number: prod(values[number].layout.shape))  # which tells where all of it stands
    order = _order(values[largest].layout, len(node.shape))
    found: Value | None = None
    for number in sorted(given, key=lambda number: (number != largest, number)):
        value = relayout(low, values[number], ordered(values[number].layout.shape, *order))
        matrix = Sparse.of(
            (node.shape[dim], sizes[number]), np.arange(sizes[number]) + starts[number], np.arange(sizes[number])
        )
        placed = low.real(along(low, value, dim, matrix))
        if found is not None:
            placed = low.masked(relayout(low, placed, found.layout), rows=True, columns=True)
            flags = placed.clean_rows, placed.clean_columns
            placed = _sum(low, found, low.use(placed), flags)
        found = placed
    assert found is not None
    if len(given) < len(node.inputs):
        use, flags = constant_use(low, _joined(low, node, starts).value, node.shape, found.layout)
        found = _sum(low, found, use, flags)
    return replace(found, same_rows=False, same_columns=False)


def _joined(low: Lowering, node: Node, starts: list[int]) -> Node:
    """The constants among the operands in their places, zeros elsewhere."""
    dim: int = node.attrs["dim"]
    held = np.zeros(node.shape, np.float32)
    for name, start in zip(node.inputs, starts, strict=True):
        array = low.array(name)
        if array is not None:
            inside = (slice(None),) * dim + (slice(start, start + array.shape[dim]),)
            held[inside] = np.broadcast_to(array, low.graph[name].shape)
    return Node(
        name=node.name,
        op="constant",
        inputs=(),
        attrs={"value": held},
        shape=node.shape,
        dtype=node.dtype,
        source=node.source,
    )


def _sum(low: Lowering, found: Value, use: Use, flags: tuple[bool, bool]) -> Value:
    """With an operand of the same layout added; `flags`: whether that one's rows and columns are clean."""
    t, r, c = found.layout.extent
    name = low.op("add", [low.use(found), use], (t, r // TILE, c // TILE))
    return replace(
        found,
        source=name,
        tms=(),
        rows=None,
        clean_rows=found.clean_rows and flags[0],
        clean_columns=found.clean_columns and flags[1],
        same_rows=False,
        same_columns=False,
    )


def _order(layout: Layout, rank: int) -> tuple[list[int], list[int], list[int]]:
    """Dimensions by the axis of their innermost piece, outermost first; the standard one where that says nothing."""
    axes = {place: dim[-1].axis for place, dim in enumerate(layout.dims) if dim}
    plain = {place: axis for axis, places in zip("zrc", _plain(rank), strict=True) for place in places}
    chosen = {place: axes.get(place, plain[place]) for place in range(rank)}
    by = {axis: [place for place in range(rank) if chosen[place] == axis] for axis in "zrc"}
    return by["z"], by["r"], by["c"]


def _plain(rank: int) -> tuple[list[int], list[int], list[int]]:
    return list(range(rank - 2)), list(range(max(rank - 2, 0), rank - 1)), [rank - 1] if rank else []


@lowers("embedding")
def embedding(low: Lowering, node: Node) -> Value:
    """Rows of a table by indices that the host pushes (OPS 6.9)."""
    table = low.array(node.inputs[0])
    assert table is not None
    count = prod(node.shape[:-1])
    width = padded(table.shape[1])
    own = (slice(0, table.shape[0]), slice(0, table.shape[1]))
    held = scatter(table, (padded(table.shape[0]), width), own)[None]
    indices = index_queue(low, node)
    rows = padded(count)
    name = low.op(
        "embedding",
        [Use(_table(low, held, rows)), Use(indices)],
        (1, rows // TILE, width // TILE),
        num_indices=rows,
    )
    layout = standard((count, table.shape[1]))
    found = reshaped(layout, node.shape)
    assert found is not None
    return Value(
        source=name, layout=found, tms=(), rows=None, clean_rows=True, clean_columns=True
    )  # the host pads the indices with ones, which read zeros


def _table(low: Lowering, held: Any, rows: int) -> str:
    """The queue of a table for an embedding of that many rows. net2pipe cuts the queue as the first of its readers in
    an epoch, by name, takes it: none may read more at a time (V081)."""
    for copy in numbers():
        name = low.constant(held, "table", "table", copy=copy)
        readers = {op.name: op for op in low.out.ops.values() if op.has("row-wise index") and op.uses[0].source == name}
        taken = {reader: op.attrs["num_indices"] for reader, op in readers.items() if op.program == low.program}
        taken[low.name()] = rows
        if taken[min(taken)] == max(taken.values()):
            return name
    raise AssertionError


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
        source=name,
        layout=Layout(tuple(dims), extent),
        tms=(),
        rows=None,
        clean_rows=value.clean_rows or axis == "r",
        clean_columns=value.clean_columns or axis == "c",
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
