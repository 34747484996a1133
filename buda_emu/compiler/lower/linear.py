"""Lowering of a constant matrix along one dimension, on any axis: rows are moved, columns multiplied."""

from collections.abc import Sequence
from itertools import chain
from math import prod

import numpy as np

from buda_emu.compiler.graph.graph import Array, Node
from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.compiler.lower.elementwise import materialise
from buda_emu.compiler.lower.layout import Layout, Piece, axes_of, dense_layout, padded_size, piece_places
from buda_emu.compiler.lower.lowering import LoweredValue, Lowering, lowers
from buda_emu.compiler.lower.relayout import LARGEST_COLUMN_MATRIX, relayout, stand_columns_up
from buda_emu.emulator.image.element_places import strided_places


@lowers("linear")
def linear(low: Lowering, node: Node) -> LoweredValue:
    """Lower the core op `linear`, which multiplies one dimension by a constant sparse matrix."""
    return along(low, low.values[node.inputs[0]], node.attrs["dim"], node.attrs["matrix"])


def along(low: Lowering, value: LoweredValue, dim: int, matrix: Sparse) -> LoweredValue:
    """Apply a constant matrix along dimension `dim` of a value, on whatever axis it lies, and return the product as a
    value."""
    layout = value.layout
    axes = axes_of(layout.dims[dim])
    if axes == {"c"}:
        beside = chain(*layout.dims[:dim], *layout.dims[dim + 1 :])
        if "c" in axes_of(beside):
            return _along_columns_beside(low, value, dim, matrix)
        return _along_columns(low, materialise(low, value), dim, matrix)
    if "c" in axes or "-" in axes_of(layout.pieces):
        rest = [place for place in range(len(layout.dims)) if place != dim]
        columns = _dims_kept_in_columns(layout, rest)
        others = [place for place in rest if place not in columns]
        value = relayout(low, value, dense_layout(layout.shape, others, [dim], columns))
    return _along_rows(low, value, dim, matrix)


def _dims_kept_in_columns(layout: Layout, places: Sequence[int]) -> list[int]:
    """Return which of the dimensions `places` stay along the columns: those with all their pieces there, else those
    with some. To bring other dimensions of an image there, whose windows hold several places, would multiply its
    channels."""
    axes = {place: axes_of(layout.dims[place]) for place in places}
    return [place for place in places if axes[place] == {"c"}] or [place for place in places if "c" in axes[place]]


def _along_columns(low: Lowering, value: LoweredValue, dim: int, matrix: Sparse) -> LoweredValue:
    """Apply a matrix to dimension `dim`, the only one along the columns, by a product with a constant."""
    layout = value.layout
    place = Layout((layout.dims[dim],), layout.extent).place("c").ravel()
    count = matrix.shape[0]
    product_matrix = np.zeros((layout.extent[2], padded_size(count)), np.float32)
    np.add.at(product_matrix, (place[matrix.col], matrix.row), matrix.weight)
    dims = list(layout.dims)
    dims[dim] = (Piece(count, "c", 1),) if count > 1 else ()
    new_layout = Layout(tuple(dims), (*layout.extent[:2], padded_size(count)))
    if count == 1:  # FRONTEND 3.2, and in every column: whoever broadcasts it has it
        product_matrix[:] = product_matrix[:, :1]
        return low.times(value, product_matrix, new_layout, suffix="reduce", same_columns=True, clean_columns=False)
    return low.times(value, product_matrix, new_layout, suffix="columns")


def _along_columns_beside(low: Lowering, value: LoweredValue, dim: int, matrix: Sparse) -> LoweredValue:
    """Apply a matrix to one of several dimensions along the columns, by a product that acts on all of them."""
    value = materialise(low, value)
    layout = value.layout
    if any(piece.axis != "c" for piece in layout.dims[dim]):
        return along(low, value, dim, matrix)
    positions = Layout((layout.dims[dim],), layout.extent).place("c").ravel()
    other_pieces = chain.from_iterable((*layout.dims[:dim], *layout.dims[dim + 1 :]))
    rest = [piece for piece in other_pieces if piece.axis == "c"]
    total = prod(piece.size for piece in rest)
    count = matrix.shape[0]
    if layout.extent[2] * padded_size(total * count) > LARGEST_COLUMN_MATRIX:
        return _along_rows(low, stand_columns_up(low, value), dim, matrix)
    stride = total
    new: dict[Piece, Piece] = {}
    for piece in sorted(rest, key=lambda piece: -piece.stride):
        stride //= piece.size
        new[piece] = Piece(piece.size, "c", stride)
    have = piece_places(new)
    want = piece_places(new.values())
    product_matrix = np.zeros((layout.extent[2], padded_size(total * count)), np.float32)
    rows = positions[matrix.col][:, None] + have[None, :]
    columns = matrix.row[:, None] * total + want[None, :]
    np.add.at(product_matrix, (rows, columns), np.broadcast_to(matrix.weight[:, None], rows.shape))
    dims = [tuple(new.get(piece, piece) for piece in pieces) for pieces in layout.dims]
    dims[dim] = (Piece(count, "c", total),) if count > 1 else ()
    return low.times(
        value, product_matrix, Layout(tuple(dims), (*layout.extent[:2], product_matrix.shape[1])), suffix="columns"
    )


def _along_rows(low: Lowering, value: LoweredValue, dim: int, matrix: Sparse) -> LoweredValue:
    """Apply a matrix to a dimension along z and rows, as a move of rows. Afterwards the dimension is innermost along
    the rows if it was there, or along z if all of it was. A dimension of size 1 grows along the rows if it is the last
    but one: along z each of its elements would take a tile."""
    layout = value.layout
    count = matrix.shape[0]
    if dim == len(layout.dims) - 2:
        plain = "r"
    else:
        plain = "z"
    if layout.dims[dim]:
        axis = layout.dims[dim][-1].axis
    else:
        axis = plain
    shape = [*layout.shape[:dim], count, *layout.shape[dim + 1 :]]
    order: dict[str, list[tuple[int, int]]] = {"z": [], "r": []}
    parts: list[tuple[int, Piece]] = []
    for place, entry in enumerate(layout.dims):
        if place == dim:
            if count > 1:
                stride = entry[-1].stride if entry else 0
                order[axis].append((stride, len(parts)))
                parts.append((place, Piece(count, axis, 0)))
            continue
        for piece in entry:
            if piece.axis != "c":
                order[piece.axis].append((piece.stride, len(parts)))
            parts.append((place, piece))
    new = list(parts)
    sizes: dict[str, int] = {}
    for name, members in order.items():
        stride = 1
        for _, number in sorted(members, key=lambda entry: (entry[0], -entry[1])):
            place, piece = parts[number]
            new[number] = (place, Piece(piece.size, name, stride))
            stride *= piece.size
        sizes[name] = stride
    extent = (sizes["z"], padded_size(sizes["r"]), layout.extent[2])
    dims = tuple(tuple(piece for place, piece in new if place == number) for number in range(len(shape)))
    new_layout = Layout(dims, extent)
    # All rows of one position of the dimension, before and after.
    rows_before = _rows_of_elements(Layout((layout.dims[dim],), layout.extent), layout.extent)
    rows_after = _rows_of_elements(Layout((new_layout.dims[dim],), extent), extent)
    have = np.zeros(1, np.int64)
    want = np.zeros(1, np.int64)
    for (place, old), (_, piece) in zip(parts, new, strict=True):
        if place != dim and old.axis != "c":
            steps = np.arange(old.size)
            have = (have[:, None] + steps * old.stride * (layout.extent[1] if old.axis == "z" else 1)).ravel()
            want = (want[:, None] + steps * piece.stride * (extent[1] if piece.axis == "z" else 1)).ravel()
    rows = rows_after[matrix.row][:, None] + want[None, :]
    columns = rows_before[matrix.col][:, None] + have[None, :]
    weight = np.broadcast_to(matrix.weight[:, None], rows.shape)
    row_matrix = Sparse.of((extent[0] * extent[1], layout.extent[0] * layout.extent[1]), rows, columns, weight.ravel())
    return low.move_rows(value, row_matrix, new_layout)


def _rows_of_elements(layout: Layout, extent: tuple[int, int, int]) -> Array:
    """Return the row, counted through t, of every element of a layout along z and rows; `extent`: the tensor's t, rows,
    columns."""
    steps = {"z": extent[1]}
    return strided_places((piece.size, piece.stride * steps.get(piece.axis, 1)) for piece in layout.pieces)
