"""Matmuls, convolutions, pooling and what runs along one dimension."""

from dataclasses import replace
from math import prod

import numpy as np

from buda_emu.compiler.frontend_ops.core import taps
from buda_emu.compiler.graph.graph import Array, Node
from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.compiler.lower.elementwise import expanded, settled
from buda_emu.compiler.lower.inputs import index_queue
from buda_emu.compiler.lower.layout import TILE, Index, Layout, Piece, ordered, padded, reshaped, standard
from buda_emu.compiler.lower.lowering import Lowering, Value, lowers, positions, transposed
from buda_emu.compiler.lower.relayout import relayout
from buda_emu.compiler.lower.tiles import Tm, Use

BELOW = -0.9e38
"""Under all that a value may be, infinity's stand-in included."""


@lowers("matmul")
def matmul(low: Lowering, node: Node) -> Value:
    """By a constant matrix on the columns, by a constant matrix on the rows, or of two values."""
    left, right = (low.array(name) for name in node.inputs)
    if right is not None and prod(right.shape[:-2]) == 1:
        value = expanded(low.values[node.inputs[0]], (*node.shape[:-1], low.graph[node.inputs[0]].shape[-1]))
        return weighted(low, value, right.reshape(right.shape[-2:]), len(node.shape) - 1)
    if left is not None and prod(left.shape[:-2]) == 1:
        value = expanded(low.values[node.inputs[1]], (*node.shape[:-2], *low.graph[node.inputs[1]].shape[-2:]))
        return along(low, value, len(node.shape) - 2, Sparse.dense(left.reshape(left.shape[-2:]).astype(np.float32)))
    return _general(low, node)


def weighted(low: Lowering, value: Value, matrix: Array, dim: int) -> Value:
    """One dimension times a constant [before, after]: it goes along the columns, all others stay where they are."""
    value = columns_of(low, value, (dim,))
    layout = value.layout
    width = matrix.shape[1]
    held = np.zeros((layout.extent[2], padded(width)), np.float32)
    inner = Layout((layout.dims[dim],), layout.extent)
    held[inner.place("c").ravel(), :width] = matrix
    dims = list(layout.dims)
    dims[dim] = (Piece(width, "c", 1),) if width > 1 else ()
    return low.times(value, held, Layout(tuple(dims), (*layout.extent[:2], padded(width))), suffix="matmul")


def columns_of(low: Lowering, value: Value, dims: tuple[int, ...]) -> Value:
    """Just these dimensions along the columns, with or without gaps; the others dense along z and rows as they are."""
    layout = value.layout
    mine = {piece for dim in dims for piece in layout.dims[dim]}
    if all((piece.axis == "c") == (piece in mine) for piece in layout.pieces if piece.axis != "-") and not any(
        piece.axis == "-" for piece in layout.pieces
    ):
        return value
    shape = layout.shape
    others = [place for place in range(len(shape)) if place not in dims]
    z = [place for place in others if layout.dims[place] and layout.dims[place][-1].axis in "z-"]
    rows = [place for place in others if place not in z]
    if rows and any(piece.axis == "c" for place in rows for piece in layout.dims[place][:-1]):
        rows = sorted(rows)
    if not rows or prod(shape[place] for place in rows) == 1:
        rows, z = others[-1:], others[:-1]
    z.sort(key=lambda place: (-_stride(layout, place), place))
    return relayout(low, value, ordered(shape, z, rows, list(dims)), loose=True)


def _stride(layout: Layout, place: int) -> int:
    dim = layout.dims[place]
    return dim[-1].stride if dim and dim[-1].axis == "z" else 0


def _general(low: Lowering, node: Node) -> Value:
    """Both operands per slice of t; the second one may be read transposed."""
    shapes = [low.graph[name].shape for name in node.inputs]
    batch = node.shape[:-2]
    (m, k), n = shapes[0][-2:], shapes[1][-1]
    lead = list(range(len(batch)))
    rank = len(batch) + 2
    layouts = [
        ordered((*batch, m, k), lead, [rank - 2], [rank - 1]), ordered((*batch, k, n), lead, [rank - 2], [rank - 1])
    ]  # fmt: skip
    uses: list[Use] = []
    clean: list[tuple[bool, bool]] = []
    values: list[Value | None] = []
    for number, (name, layout) in enumerate(zip(node.inputs, layouts, strict=True)):
        array = low.array(name)
        if array is not None:
            use, _ = _held(low, np.broadcast_to(array, (*batch, *array.shape[-2:])), layout)
            uses.append(use)
            clean.append((True, True))
            values.append(None)
            continue
        value = low.values[name]
        own_batch = value.layout.shape[:-2]
        if number == 1 and prod(own_batch) == 1:
            layout = ordered((*(1,) * len(batch), k, n), lead, [rank - 2], [rank - 1])
            value = expanded(value, layout.shape)
        else:
            value = expanded(value, layout.shape)
        swap = number == 1 and _swapped(value.layout, rank)
        if swap:
            turned = ordered(layout.shape, lead, [rank - 1], [rank - 2])
            value = transposed(low, relayout(low, value, turned))
        else:
            value = relayout(low, value, layout)
        values.append(value)
        uses.append(Use(""))
        clean.append((value.clean_rows, value.clean_columns))
    if not (clean[0][1] or clean[1][0]):
        assert values[0] is not None
        values[0] = low.masked(values[0], columns=True)
    t = prod(batch)
    for number, value in enumerate(values):
        if value is not None:
            use = low.use(value, transpose=number == 1)
            have = value.layout.extent[0]
            uses[number] = use if have == t else Use(use.source, (*use.tms, ("broadcast", "z", t)))
    layout = ordered(node.shape, lead, [rank - 2], [rank - 1])
    _, rows, columns = layout.extent
    name = low.op("matmul", uses, (t, rows // TILE, columns // TILE), inner=padded(k) // TILE)
    first, second = values
    return Value(name, layout, (), None, first.clean_rows if first else True, second.clean_columns if second else True)


def _swapped(layout: Layout, rank: int) -> bool:
    """Whether the rows that a product wants lie along the columns."""
    return any(piece.axis == "c" for piece in layout.dims[rank - 2])


def _held(low: Lowering, array: Array, layout: Layout) -> tuple[Use, tuple[bool, bool]]:
    """A constant with zeros in its padding."""
    values = np.zeros(layout.extent, np.float32)
    full = layout.place("zrc")
    values.reshape(-1)[full.ravel()] = np.asarray(array, np.float32).reshape(-1)
    if len(values) > 1 and (values == values[:1]).all():
        return Use(low.constant(values[:1]), (("broadcast", "z", len(values)),)), (True, True)
    return Use(low.constant(values)), (True, True)


# ------------------------------------------------------------------------------------------- along one dimension
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
        columns = [place for place in rest if any(piece.axis == "c" for piece in layout.dims[place])]
        others = [place for place in rest if place not in columns]
        value = relayout(low, value, ordered(layout.shape, others, [dim], columns))
    return _along_rows(low, value, dim, matrix)


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
    have, want, stride = np.zeros(1, np.int64), np.zeros(1, np.int64), total
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
    was there, in z where all of it was."""
    layout = value.layout
    count = matrix.shape[0]
    axis = layout.dims[dim][-1].axis if layout.dims[dim] else "z"
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
    mine = Layout((layout.dims[dim],), layout.extent).place("zr").ravel() if layout.dims[dim] else np.zeros(1, np.int64)
    own = Layout((wanted.dims[dim],), extent)
    theirs = _row_place(own, extent) if wanted.dims[dim] else np.zeros(1, np.int64)
    mine = _row_place(Layout((layout.dims[dim],), layout.extent), layout.extent) if layout.dims[dim] else mine
    have, want = np.zeros(1, np.int64), np.zeros(1, np.int64)
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


@lowers("reduce_max")
def reduce_max(low: Lowering, node: Node) -> Value:
    """Along z where the dimension is innermost there, along columns or rows where it is alone."""
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
    row[positions(layout, axis)] = 0
    shape = (1, TILE, extent) if axis == "c" else (1, extent, TILE)
    held = np.broadcast_to(row.reshape((1, 1, -1) if axis == "c" else (1, -1, 1)), shape)
    tms: list[Tm] = [("broadcast", "z", layout.extent[0])] if layout.extent[0] > 1 else []
    other, size = ("r", layout.extent[1]) if axis == "c" else ("c", layout.extent[2])
    if size > TILE:
        tms.append(("broadcast", other, size // TILE))
    low_use = Use(low.constant(np.ascontiguousarray(held), "value", "below"), tuple(tms))
    name = low.op("add", [low.use(value), low_use], value.tiles, suffix="below")
    return replace(value, source=name, tms=(), clean_rows=False, clean_columns=False)


# -------------------------------------------------------------------------------------------------- convolutions
@lowers("conv")
def conv(low: Lowering, node: Node) -> Value:
    """Pick what each tap reads, put the taps side by side, times the weights (FRONTEND 2)."""
    weights = low.array(node.inputs[1])
    assert weights is not None
    groups = node.attrs.get("groups", 1)
    kernel = weights.shape[2:]
    value, layout = _tapped(low, node, low.values[node.inputs[0]], kernel, clamp=False)
    count, channels = prod(kernel), node_channels(low, node)
    width = layout.extent[2]
    cout = weights.shape[0]
    if count > 1:
        t, rows, _ = layout.extent
        inner = Layout(layout.dims, (t // count, rows, width * count))
        value = low.through(replace(value, layout=layout), ("hstack", count), inner)
    flat = weights.reshape(cout, channels // groups, count).astype(np.float32)
    t, rows, _ = value.layout.extent
    out = _conv_out(value.layout, cout)
    if groups == channels == cout and channels > 1:
        return _depthwise(low, value, flat[:, 0], width, out)
    held = np.zeros((count, width, padded(cout)), np.float32)
    share_in, share_out = channels // groups, cout // groups
    for group in range(groups):
        ins, outs = slice(group * share_in, (group + 1) * share_in), slice(group * share_out, (group + 1) * share_out)
        held[:, ins, outs] = flat[outs].transpose(2, 1, 0)
    return low.times(value, held.reshape(count * width, -1), out, suffix="conv")


def node_channels(low: Lowering, node: Node) -> int:
    """Of the input."""
    return low.graph[node.inputs[0]].shape[1]


def _tapped(low: Lowering, node: Node, value: Value, kernel: tuple[int, ...], *, clamp: bool) -> tuple[Value, Layout]:
    """[N, taps innermost] along z, the output's space along rows, channels along columns. The layout returned has the
    dimensions of the result [N, C, space...]; the taps are in its extent alone."""
    shape = low.graph[node.inputs[0]].shape
    space, out = shape[2:], node.shape[2:]
    rank = len(shape)
    value = relayout(low, value, ordered(shape, [0], list(range(2, rank)), [1]))
    attrs = node.attrs
    index = np.zeros((prod(kernel), prod(out)), np.int64)
    valid = np.ones(index.shape, bool)
    for place, k in enumerate(kernel):
        picks = taps(space[place], k, attrs["strides"][place], attrs["dilations"][place], attrs["pads"][place],
                     out[place], clamp=clamp)  # fmt: skip
        form = [1] * (2 * len(kernel))
        form[place], form[len(kernel) + place] = k, out[place]
        spread = np.broadcast_to(picks.reshape(form), (*kernel, *out)).reshape(index.shape)
        index = index * space[place] + np.maximum(spread, 0)
        valid &= spread >= 0
    n, height = shape[0], value.layout.extent[1]
    new_height = padded(prod(out))
    tap, where = np.nonzero(valid)
    rows = ((np.arange(n)[:, None] * index.shape[0] + tap[None, :]) * new_height + where[None, :]).ravel()
    columns = (np.arange(n)[:, None] * height + index[tap, where][None, :]).ravel()
    extent = (n * index.shape[0], new_height, value.layout.extent[2])
    result = ordered((n, shape[1], *out), [0], list(range(2, rank)), [1])
    layout = Layout(result.dims, extent)
    matrix = Sparse.of((extent[0] * new_height, n * height), rows, columns)
    if index.shape[0] == 1 and new_height == height and matrix.row.size == n * prod(out) and (rows == columns).all():
        return replace(value, layout=layout), layout
    return low.real(low.moved(value, matrix, layout)), layout


def _conv_out(layout: Layout, cout: int) -> Layout:
    dims = list(layout.dims)
    dims[1] = (Piece(cout, "c", 1),) if cout > 1 else ()
    return Layout(tuple(dims), (*layout.extent[:2], padded(cout)))


def _depthwise(low: Lowering, value: Value, flat: Array, width: int, out: Layout) -> Value:
    """Each channel by itself: tiles with the weights on their diagonals (FRONTEND 2, OPS 6.3)."""
    channels, count = flat.shape
    held = np.zeros((count, width // TILE, TILE, TILE), np.float32)
    column: Index = np.arange(channels, dtype=np.int64)
    held[:, column // TILE, column % TILE, column % TILE] = flat.T
    rows = held.transpose(0, 2, 1, 3).reshape(1, count * TILE, width)
    t, height, _ = out.extent
    weights = Use(low.constant(rows, "value", "weights"), (("broadcast", "z", t),) if t > 1 else ())
    name = low.op(
        "depthwise", [low.use(value), weights], (t, height // TILE, width // TILE), suffix="conv", inner=count
    )
    return Value(name, out, (), None, value.clean_rows, True)


@lowers("max_pool")
def max_pool(low: Lowering, node: Node) -> Value:
    """Taps outside read again what is inside; the largest over the taps along z."""
    kernel = tuple(node.attrs["kernel"])
    value, layout = _tapped(low, node, low.values[node.inputs[0]], kernel, clamp=True)
    count = prod(kernel)
    value = low.real(replace(value, layout=layout))
    t, r, c = value.tiles
    out = Layout(layout.dims, (t // count, *layout.extent[1:]))
    if count == 1:
        return replace(value, layout=out)
    name = low.op("reduce", [low.use(value)], (t // count, r, c), dim="z", type="max", z=count)
    return replace(value, source=name, tms=(), layout=out)


@lowers("embedding")
def embedding(low: Lowering, node: Node) -> Value:
    """Rows of a table by indices that the host pushes (OPS 6.9)."""
    table = low.array(node.inputs[0])
    assert table is not None
    count = prod(node.shape[:-1])
    width = padded(table.shape[1])
    held = np.zeros((1, padded(table.shape[0]), width), np.float32)
    held[0, : table.shape[0], : table.shape[1]] = table
    indices = index_queue(low, node.inputs[1])
    rows = padded(count)
    name = low.op(
        "embedding", [Use(low.constant(held, "table", "table")), Use(indices)], (1, rows // TILE, width // TILE),
        num_indices=rows,
    )  # fmt: skip
    layout = standard((count, table.shape[1]))
    found = reshaped(layout, node.shape)
    assert found is not None
    return Value(name, found, (), None, True, True)  # the host pads the indices with ones, which read zeros
