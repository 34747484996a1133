"""Reshapes, transpositions and repeats change what is said; concatenation adds what is placed."""

from dataclasses import replace

import numpy as np

from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.compiler.lower.along import along
from buda_emu.compiler.lower.elementwise import expanded, settled
from buda_emu.compiler.lower.inputs import constant_value
from buda_emu.compiler.lower.layout import TILE, Layout, Piece, ordered, reshaped
from buda_emu.compiler.lower.lowering import Lowering, Value, lowers
from buda_emu.compiler.lower.relayout import relayout


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
    """Each operand moved to its place among zeros, then the sum."""
    dim: int = node.attrs["dim"]
    total = node.shape[dim]
    values = [constant_value(low, low.graph[name]) if low.array(name) is not None else settled(low, low.values[name])
              for name in node.inputs]  # fmt: skip
    layout = max(values, key=lambda value: int(np.prod(value.layout.shape))).layout
    start = 0
    found: Value | None = None
    whole: Value | None = None
    for name, value in zip(node.inputs, values, strict=True):
        size = low.graph[name].shape[dim]
        value = relayout(low, value, ordered(value.layout.shape, *_order(layout, len(node.shape))))
        matrix = Sparse.of((total, size), np.arange(size) + start, np.arange(size))
        placed = low.real(along(low, value, dim, matrix))
        start += size
        if found is None:
            found = whole = placed
            continue
        assert whole is not None
        placed = low.masked(relayout(low, placed, whole.layout), rows=True, columns=True)
        t, r, c = whole.layout.extent
        name = low.op("add", [low.use(found), low.use(placed)], (t, r // TILE, c // TILE))
        found = replace(
            whole, source=name, tms=(), clean_rows=found.clean_rows and placed.clean_rows,
            clean_columns=found.clean_columns and placed.clean_columns, same_rows=False, same_columns=False,
        )  # fmt: skip
    assert found is not None
    return replace(found, same_rows=False, same_columns=False)


def _order(layout: Layout, rank: int) -> tuple[list[int], list[int], list[int]]:
    """Dimensions by the axis of their innermost piece, outermost first; the standard one where that says nothing."""
    axes = {place: dim[-1].axis for place, dim in enumerate(layout.dims) if dim}
    plain = {place: axis for axis, places in zip("zrc", _plain(rank), strict=True) for place in places}
    chosen = {place: axes.get(place, plain[place]) for place in range(rank)}
    by = {axis: [place for place in range(rank) if chosen[place] == axis] for axis in "zrc"}
    return by["z"], by["r"], by["c"]


def _plain(rank: int) -> tuple[list[int], list[int], list[int]]:
    return list(range(rank - 2)), list(range(max(rank - 2, 0), rank - 1)), [rank - 1] if rank else []
