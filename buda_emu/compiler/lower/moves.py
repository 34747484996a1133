"""Reshapes, transpositions and repeats change only the layout description; concatenation adds what is placed."""

from dataclasses import replace
from math import prod

import numpy as np

from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.compiler.lower.elementwise import constant_use, expanded, settled
from buda_emu.compiler.lower.inputs import constant_value
from buda_emu.compiler.lower.layout import TILE, Layout, Piece, ordered, reshaped
from buda_emu.compiler.lower.linear import along
from buda_emu.compiler.lower.lowering import Lowering, Value, lowers
from buda_emu.compiler.lower.relayout import relayout
from buda_emu.compiler.lower.tiles import Use


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
    return Node(node.name, "constant", (), {"value": held}, node.shape, node.dtype, node.source)


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
