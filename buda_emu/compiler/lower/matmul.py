"""Lowerings of products and of windows (convolution, pooling), which become products."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from buda_emu.arithmetic.tensor.host import scatter
from buda_emu.compiler.frontend_ops.core import window_taps
from buda_emu.compiler.graph.graph import Array, Node
from buda_emu.compiler.graph.registry import front_op
from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.compiler.lower.elementwise import expanded
from buda_emu.compiler.lower.layout import TILE, Dim, Layout, Piece, ordered, padded, reshaped
from buda_emu.compiler.lower.linear import along
from buda_emu.compiler.lower.lowering import Lowering, Value, lowers, transposed
from buda_emu.compiler.lower.relayout import relayout
from buda_emu.compiler.lower.tiles import Use, divisors, over
from buda_emu.compiler.target import Target
from buda_emu.performance.timing.epoch.tasks import parts_of_blocks

WIDE = 256 * TILE
"""Columns of a product with a constant that are computed at once."""
SHARING = 8
"""Columns of cores that share a slice of them evenly."""


@lowers("matmul")
def matmul(low: Lowering, node: Node) -> Value:
    """By a constant matrix on the columns, by a constant matrix on the rows, or of two values."""
    left, right = (low.array(name) for name in node.inputs)
    if right is not None and prod(right.shape[:-2]) == 1:
        value = expanded(low.values[node.inputs[0]], (*node.shape[:-1], low.graph[node.inputs[0]].shape[-1]))
        return weighted(low, value, right.reshape(right.shape[-2:]), node)
    if left is not None and prod(left.shape[:-2]) == 1:
        value = expanded(low.values[node.inputs[1]], (*node.shape[:-2], *low.graph[node.inputs[1]].shape[-2:]))
        return along(low, value, len(node.shape) - 2, Sparse.dense(left.reshape(left.shape[-2:]).astype(np.float32)))
    return _general(low, node)


def weighted(low: Lowering, value: Value, matrix: Array, node: Node) -> Value:
    """The last dimension times a constant [before, after]: it goes along the columns, all others stay where they
    are."""
    dim = len(node.shape) - 1
    width = matrix.shape[1]
    if padded(width) > WIDE:
        return _sliced(low, value, matrix, dim, _goes_out(low, node))
    value = columns_of(low, value, (dim,))
    layout = value.layout
    places = Layout((layout.dims[dim],), layout.extent).place("c").ravel()
    rows = slice(places[0], places[0] + len(places)) if (np.diff(places) == 1).all() else places
    held = scatter(matrix, (layout.extent[2], padded(width)), (rows, slice(0, width)))
    dims = list(layout.dims)
    dims[dim] = (Piece(width, "c", 1),) if width > 1 else ()
    return low.times(value, held, Layout(tuple(dims), (*layout.extent[:2], padded(width))), suffix="matmul")


def _goes_out(low: Lowering, node: Node) -> bool:
    """Whether slices of a value's columns are slices of an output: it is one, or only what is done to each element by
    itself comes after it."""
    if any(output.value == node.name for output in low.graph.outputs):
        return True
    readers = [low.graph[name] for name in low.graph.users()[node.name]]
    if len(readers) != 1 or readers[0].shape[-1] != node.shape[-1] or prod(readers[0].shape) != prod(node.shape):
        return False
    others = [low.array(name) for name in readers[0].inputs if name != node.name]
    alone = all(other is not None and other.size == 1 for other in others)
    by_itself = readers[0].op == "reshape" or front_op(readers[0].op).family == "elementwise"
    return alone and by_itself and _goes_out(low, readers[0])


def _sliced(low: Lowering, value: Value, matrix: Array, dim: int, out: bool) -> Value:
    """More columns than the cores have room for: slices of them along t, one after the other, all other dimensions
    along the rows. Who reads it puts the slices side by side (FRONTEND 4.5: streaming in C); `out`: nobody does."""
    shape = value.layout.shape
    rest = [place for place in range(len(shape)) if place != dim]
    value = relayout(low, value, ordered(shape, [], rest, [dim]))
    _, rows, inner = value.layout.extent
    width = matrix.shape[1]
    count, columns = _slices(padded(width), out)
    held = scatter(matrix, (inner, columns), (slice(0, matrix.shape[0]), slice(0, width)))
    slices = held.reshape(inner, count, columns // count).transpose(1, 0, 2)
    right = Use(low.constant(slices, "value", "weights"))
    left = low.use(value)
    name = low.op(
        "matmul",
        [Use(left.source, (*left.tms, ("broadcast", "z", count))), right],
        (count, rows // TILE, columns // count // TILE),
        suffix="matmul",
        inner=inner // TILE,
    )
    dims = list(value.layout.dims)
    dims[dim] = (Piece(width, "c", 1),)
    return Value(
        source=name,
        layout=Layout(tuple(dims), (1, rows, columns)),
        tms=(("hstack", count),),
        rows=None,
        clean_rows=value.clean_rows,
        clean_columns=True,
    )


def _slices(columns: int, out: bool) -> tuple[int, int]:
    """How many slices, and all their columns: such as eight cores share evenly, if that takes a thirty-second more, of
    these the fewest columns, and slices; of an output, whose slices go to the host one by one, the fewest columns with
    those of one part, for which nothing else is done (`timing/epoch/parts.py`). Else as few slices as no columns are
    added for."""
    most = WIDE // 2
    least = -(-columns // most)
    even = {n: -(-columns // (n * SHARING * TILE)) * n * SHARING * TILE for n in range(least, 2 * least + 1)}
    few = {n: size for n, size in even.items() if size // n <= most and size <= columns + columns // TILE}
    if few:
        count = min(few, key=lambda n: few[n] * (1 + 1 / parts_of_blocks(n, (1, 1)) if out else 1))
        return count, few[count]
    return next(n for n in range(1, columns // TILE + 1) if columns % (n * TILE) == 0 and columns // n <= most), columns


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
        rows = others[-1:]
        z = others[:-1]
    z.sort(key=lambda place: (-_stride(layout, place), place))
    return relayout(low, value, ordered(shape, z, rows, list(dims)), loose=True)


def _stride(layout: Layout, place: int) -> int:
    dim = layout.dims[place]
    return dim[-1].stride if dim and dim[-1].axis == "z" else 0


def _general(low: Lowering, node: Node) -> Value:
    """Both operands per slice of t; the second one may be read transposed."""
    shapes = [low.graph[name].shape for name in node.inputs]
    batch = node.shape[:-2]
    (m, k) = shapes[0][-2:]
    n = shapes[1][-1]
    lead = list(range(len(batch)))
    rank = len(batch) + 2
    layouts = [
        ordered((*batch, m, k), lead, [rank - 2], [rank - 1]),
        ordered((*batch, k, n), lead, [rank - 2], [rank - 1]),
    ]
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
            swapped = ordered(layout.shape, lead, [rank - 1], [rank - 2])
            value = transposed(low, relayout(low, value, swapped))
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
    return Value(
        source=name,
        layout=layout,
        tms=(),
        rows=None,
        clean_rows=first.clean_rows if first else True,
        clean_columns=second.clean_columns if second else True,
    )


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


@lowers("conv")
def conv(low: Lowering, node: Node) -> Value:
    """Pick what each tap reads, put the taps side by side, times the weights (FRONTEND 2)."""
    weights = low.array(node.inputs[1])
    assert weights is not None
    groups = node.attrs.get("groups", 1)
    kernel = weights.shape[2:]
    value = low.values[node.inputs[0]]
    cout = weights.shape[0]
    (n, channels, *space) = low.graph[node.inputs[0]].shape
    flat = weights.reshape(cout, channels // groups, prod(kernel)).astype(np.float32)
    if not groups == channels == cout or channels == 1:
        value = _side_by_side(low, node, value, kernel, (n, channels, *space))
        matrix = _matrix(flat, groups, value.layout.extent[2] // prod(kernel))
        return low.times(value, matrix, _conv_out(value.layout, cout), suffix="conv")
    parts = _parts(low.target, channels)
    if parts > 1:
        value = relayout(low, value, ordered((n, channels, *space), [0], list(range(2, 2 + len(space))), [1]))
        value = _reshaped(value, (n * parts, channels // parts, *space))
    value = _side_by_side(low, node, value, kernel, (n * parts, channels // parts, *space))
    return _reshaped(_depthwise(low, value, flat[:, 0], parts), node.shape)


def _side_by_side(low: Lowering, node: Node, value: Value, kernel: tuple[int, ...], shape: tuple[int, ...]) -> Value:
    """What the taps read of a value of that shape, in columns side by side."""
    value, layout = _tapped(low, node, value, kernel, shape)
    count = prod(kernel)
    (t, rows, width) = layout.extent
    if count == 1:
        return value
    return low.through(
        replace(value, layout=layout), ("hstack", count), replace(layout, extent=(t // count, rows, width * count))
    )


def _reshaped(value: Value, shape: Sequence[int]) -> Value:
    layout = reshaped(value.layout, shape)
    assert layout is not None, "dimensions that are cut in whole pieces"
    return replace(value, layout=layout)


def _parts(target: Target, channels: int) -> int:
    """Slices of whole tiles that the channels of a depthwise convolution are cut into, so that a core has room for
    each: cores do not share out columns (OPS 6.3)."""
    tiles = channels // TILE if channels % TILE == 0 else 1
    return next((parts for parts in divisors(tiles) if tiles // parts <= target.widest_block), 1)


def _matrix(flat: Array, groups: int, width: int) -> Array:
    """Kernels [out, in, taps] as a matrix of rows [taps, in], each tap's padded to `width`, and columns [out]: each
    group of outputs has the rows of its own inputs."""
    cout, share_in, count = flat.shape
    share_out = cout // groups
    by_tap = flat.transpose(2, 1, 0)
    shape = (count, width, padded(cout))
    if groups == 1:
        held = scatter(by_tap, shape, (slice(0, count), slice(0, share_in), slice(0, cout)))
    else:
        held = np.zeros(shape, np.float32)
        for group in range(groups):
            ins, outs = (slice(group * size, (group + 1) * size) for size in (share_in, share_out))
            held[:, ins, outs] = by_tap[:, :, outs]
    return held.reshape(count * width, -1)


@lowers("windows")
def windows(low: Lowering, node: Node) -> Value:
    """What each tap reads: the taps along z, the output's space along rows, channels along columns."""
    kernel = tuple(node.attrs["kernel"])
    attrs = node.attrs
    value, layout = _tapped(
        low,
        node,
        low.values[node.inputs[0]],
        kernel,
        low.graph[node.inputs[0]].shape,
        clamp=attrs.get("clamp", False),
        flipped=attrs.get("flipped", False),
    )
    taps_dims: list[Dim] = []
    stride = prod(kernel)
    for size in kernel:
        stride //= size
        taps_dims.append((Piece(size, "z", stride),) if size > 1 else ())
    n, channels, *out = layout.dims
    inner = tuple(replace(piece, stride=piece.stride * prod(kernel)) for piece in n)
    return replace(value, layout=Layout((inner, channels, *taps_dims, *out), layout.extent))


def _tapped(
    low: Lowering,
    node: Node,
    value: Value,
    kernel: tuple[int, ...],
    shape: tuple[int, ...],
    *,
    clamp: bool = False,
    flipped: bool = False,
) -> tuple[Value, Layout]:
    """Of a value of that shape: [N, taps innermost] along z, the output's space along rows, channels along columns. The
    layout returned has the dimensions of the result [N, C, space...]; the taps are in its extent alone."""
    rank = len(shape)
    space = shape[2:]
    out = node.shape[2 - rank :]
    value = relayout(low, value, ordered(shape, [0], list(range(2, rank)), [1]))
    index = np.zeros((prod(kernel), prod(out)), np.int64)
    valid = np.ones(index.shape, bool)
    for place, picks in enumerate(window_taps((space, kernel, out), node.attrs, clamp, flipped)):
        form = [1] * (2 * len(kernel))
        form[place], form[len(kernel) + place] = picks.shape
        spread = np.broadcast_to(picks.reshape(form), (*kernel, *out)).reshape(index.shape)
        index = index * space[place] + np.maximum(spread, 0)
        valid &= spread >= 0
    n = shape[0]
    height = value.layout.extent[1]
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


def _depthwise(low: Lowering, value: Value, flat: Array, parts: int) -> Value:
    """Each channel by itself: tiles with the weights on their diagonals (FRONTEND 2, OPS 6.3). `flat`: kernels
    [channels, taps], `parts` slices of channels follow each other along t."""
    channels, count = flat.shape
    out = _conv_out(value.layout, channels // parts)
    t, height, width = out.extent
    held = np.zeros((parts, count, width // TILE, TILE, TILE), np.float32)
    part, column = np.divmod(np.arange(channels, dtype=np.int64), channels // parts)
    held[part, :, column // TILE, column % TILE, column % TILE] = flat
    rows = held.transpose(0, 1, 3, 2, 4).reshape(parts, count * TILE, width)
    if parts > 1:
        rows = np.tile(rows, (t // parts, 1, 1))
    weights = Use(low.constant(rows, "value", "weights"), over((t // len(rows), 1, 1)))
    name = low.op(
        "depthwise", [low.use(value), weights], (t, height // TILE, width // TILE), suffix="conv", inner=count
    )
    return Value(source=name, layout=out, tms=(), rows=None, clean_rows=value.clean_rows, clean_columns=True)


@lowers("max_pool")
def max_pool(low: Lowering, node: Node) -> Value:
    """Taps outside read again what is inside; the largest over the taps along z."""
    kernel = tuple(node.attrs["kernel"])
    value, layout = _tapped(low, node, low.values[node.inputs[0]], kernel, low.graph[node.inputs[0]].shape, clamp=True)
    count = prod(kernel)
    value = low.real(replace(value, layout=layout))
    t, r, c = value.tiles
    out = Layout(layout.dims, (t // count, *layout.extent[1:]))
    if count == 1:
        return replace(value, layout=out)
    name = low.op("reduce", [low.use(value)], (t // count, r, c), dim="z", type="max", z=count)
    return replace(value, source=name, tms=(), layout=out)
