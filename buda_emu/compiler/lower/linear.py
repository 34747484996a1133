"""A constant matrix along one dimension, wherever that runs: rows are moved, columns multiplied."""

from collections.abc import Sequence
from math import prod

import numpy as np

from buda_emu.compiler.graph.graph import Array, Node
from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.compiler.lower.elementwise import settled
from buda_emu.compiler.lower.layout import Layout, Piece, ordered, padded
from buda_emu.compiler.lower.lowering import Lowering, Value, lowers
from buda_emu.compiler.lower.relayout import relayout


@lowers("linear")
def linear(low: Lowering, node: Node) -> Value:
    """Rows are moved, columns multiplied."""
    return along(low, low.values[node.inputs[0]], node.attrs["dim"], node.attrs["matrix"])


def along(low: Lowering, value: Value, dim: int, matrix: Sparse) -> Value:
    """A constant matrix along one dimension, wherever that runs."""
    layout = value.layout
    axes = {piece.axis for piece in layout.dims[dim]}
    if axes == {"c"} and any(
        piece.axis == "c" for place, item in enumerate(layout.dims) if place != dim for piece in item
    ):
        return _along_columns_beside(low, value, dim, matrix)
    if axes == {"c"}:
        return _along_columns(low, settled(low, value), dim, matrix)
    if "c" in axes or "-" in axes or any(piece.axis == "-" for piece in layout.pieces):
        rest = [place for place in range(len(layout.dims)) if place != dim]
        columns = _columns(layout, rest)
        others = [place for place in rest if place not in columns]
        value = relayout(low, value, ordered(layout.shape, others, [dim], columns))
    return _along_rows(low, value, dim, matrix)


def _columns(layout: Layout, places: Sequence[int]) -> list[int]:
    """Dimensions that stay along the columns: those that are there with all their pieces, else with some. Another part
    of an image whose windows hold several places would have to come there, times all channels."""
    axes = {place: {piece.axis for piece in layout.dims[place]} for place in places}
    return [place for place in places if axes[place] == {"c"}] or [place for place in places if "c" in axes[place]]


def _along_columns(low: Lowering, value: Value, dim: int, matrix: Sparse) -> Value:
    layout = value.layout
    place = Layout((layout.dims[dim],), layout.extent).place("c").ravel()
    count = matrix.shape[0]
    held = np.zeros((layout.extent[2], padded(count)), np.float32)
    np.add.at(held, (place[matrix.col], matrix.row), matrix.weight)
    dims = list(layout.dims)
    dims[dim] = (Piece(count, "c", 1),) if count > 1 else ()
    wanted = Layout(tuple(dims), (*layout.extent[:2], padded(count)))
    if count == 1:  # FRONTEND 3.2, and in every column: whoever broadcasts it has it
        held[:] = held[:, :1]
        return low.times(value, held, wanted, suffix="reduce", same_columns=True, clean_columns=False)
    return low.times(value, held, wanted, suffix="columns")


def _along_columns_beside(low: Lowering, value: Value, dim: int, matrix: Sparse) -> Value:
    """Other dimensions stand along the columns, too: the product acts on all of them."""
    value = settled(low, value)
    layout = value.layout
    if any(piece.axis != "c" for piece in layout.dims[dim]):
        return along(low, value, dim, matrix)
    own = Layout((layout.dims[dim],), layout.extent).place("c").ravel()
    rest = [piece for place, item in enumerate(layout.dims) if place != dim for piece in item if piece.axis == "c"]
    total = prod(piece.size for piece in rest)
    count = matrix.shape[0]
    have = np.zeros(1, np.int64)
    want = np.zeros(1, np.int64)
    stride = total
    new: dict[Piece, Piece] = {}
    for piece in sorted(rest, key=lambda piece: -piece.stride):
        stride //= piece.size
        new[piece] = Piece(piece.size, "c", stride)
        have = (have[:, None] + np.arange(piece.size) * piece.stride).ravel()
        want = (want[:, None] + np.arange(piece.size) * stride).ravel()
    held = np.zeros((layout.extent[2], padded(total * count)), np.float32)
    rows = own[matrix.col][:, None] + have[None, :]
    columns = matrix.row[:, None] * total + want[None, :]
    np.add.at(held, (rows, columns), np.broadcast_to(matrix.weight[:, None], rows.shape))
    dims = [tuple(new.get(piece, piece) for piece in item) for item in layout.dims]
    dims[dim] = (Piece(count, "c", total),) if count > 1 else ()
    return low.times(value, held, Layout(tuple(dims), (*layout.extent[:2], held.shape[1])), suffix="columns")


def _along_rows(low: Lowering, value: Value, dim: int, matrix: Sparse) -> Value:
    """The dimension runs along z and rows: a matrix of rows, the dimension innermost along the rows afterwards where it
    was there, in z where all of it was. One of size 1 grows along the rows where it is the last but one: in z each of
    its elements would have a tile for itself."""
    layout = value.layout
    count = matrix.shape[0]
    plain = "r" if dim == len(layout.dims) - 2 else "z"
    axis = layout.dims[dim][-1].axis if layout.dims[dim] else plain
    shape = [*layout.shape[:dim], count, *layout.shape[dim + 1 :]]
    order: dict[str, list[tuple[int, int]]] = {"z": [], "r": []}
    parts: list[tuple[int, Piece]] = []
    for place, item in enumerate(layout.dims):
        if place == dim:
            if count > 1:
                stride = item[-1].stride if item else 0
                order[axis].append((stride, len(parts)))
                parts.append((place, Piece(count, axis, 0)))
            continue
        for piece in item:
            if piece.axis != "c":
                order[piece.axis].append((piece.stride, len(parts)))
            parts.append((place, piece))
    new = list(parts)
    sizes: dict[str, int] = {}
    for name, members in order.items():
        stride = 1
        for _, number in sorted(members, key=lambda item: (item[0], -item[1])):
            place, piece = parts[number]
            new[number] = (place, Piece(piece.size, name, stride))
            stride *= piece.size
        sizes[name] = stride
    extent = (sizes["z"], padded(sizes["r"]), layout.extent[2])
    dims = tuple(tuple(piece for place, piece in new if place == number) for number in range(len(shape)))
    wanted = Layout(dims, extent)
    # All rows of one position of the dimension, before and after.
    if layout.dims[dim]:
        mine = Layout((layout.dims[dim],), layout.extent).place("zr").ravel()
    else:
        mine = np.zeros(1, np.int64)
    own = Layout((wanted.dims[dim],), extent)
    if wanted.dims[dim]:
        theirs = _row_place(own, extent)
    else:
        theirs = np.zeros(1, np.int64)
    if layout.dims[dim]:
        mine = _row_place(Layout((layout.dims[dim],), layout.extent), layout.extent)
    else:
        mine = mine
    have = np.zeros(1, np.int64)
    want = np.zeros(1, np.int64)
    for (place, old), (_, piece) in zip(parts, new, strict=True):
        if place != dim and old.axis != "c":
            steps = np.arange(old.size)
            have = (have[:, None] + steps * old.stride * (layout.extent[1] if old.axis == "z" else 1)).ravel()
            want = (want[:, None] + steps * piece.stride * (extent[1] if piece.axis == "z" else 1)).ravel()
    rows = theirs[matrix.row][:, None] + want[None, :]
    columns = mine[matrix.col][:, None] + have[None, :]
    weight = np.broadcast_to(matrix.weight[:, None], rows.shape)
    whole = Sparse.of((extent[0] * extent[1], layout.extent[0] * layout.extent[1]), rows, columns, weight.ravel())
    return low.moved(value, whole, wanted)


def _row_place(layout: Layout, extent: tuple[int, int, int]) -> Array:
    found = np.zeros(1, np.int64)
    for piece in layout.pieces:
        step = extent[1] if piece.axis == "z" else 1
        found = (found[:, None] + np.arange(piece.size) * piece.stride * step).ravel()
    return found
