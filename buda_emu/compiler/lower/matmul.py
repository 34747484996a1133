"""Lowerings of products and of windows (convolution, pooling), which become products."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from buda_emu.arithmetic.tensor.host import scatter
from buda_emu.compiler.frontend_ops.core import iterate_tap_indices
from buda_emu.compiler.graph.graph import Array, Node
from buda_emu.compiler.graph.registry import front_op
from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.compiler.lower.elementwise import expand_layout
from buda_emu.compiler.lower.layout import TILE, Dim, Layout, Piece, dense_layout, padded_size, reshape_layout
from buda_emu.compiler.lower.linear import along
from buda_emu.compiler.lower.lowering import LoweredValue, Lowering, lowers, swap_rows_and_columns
from buda_emu.compiler.lower.relayout import relayout
from buda_emu.compiler.lower.tiles import Use, divisors, over
from buda_emu.compiler.target import Target
from buda_emu.performance.timing.epoch.tasks import parts_of_blocks

WIDE = 256 * TILE
"""Largest number of columns of a product with a constant that are computed at once."""
SHARING = 8
"""Number of core columns that share a slice of them evenly."""


@lowers("matmul")
def matmul(low: Lowering, node: Node) -> LoweredValue:
    """Lower a product: by a constant matrix on the columns, by a constant matrix on the rows, or of two values."""
    left, right = (low.array(name) for name in node.inputs)
    if right is not None and prod(right.shape[:-2]) == 1:
        value = expand_layout(low.values[node.inputs[0]], (*node.shape[:-1], low.graph[node.inputs[0]].shape[-1]))
        return multiply_by_constant(low, value, right.reshape(right.shape[-2:]), node)
    if left is not None and prod(left.shape[:-2]) == 1:
        value = expand_layout(low.values[node.inputs[1]], (*node.shape[:-2], *low.graph[node.inputs[1]].shape[-2:]))
        return along(low, value, len(node.shape) - 2, Sparse.dense(left.reshape(left.shape[-2:]).astype(np.float32)))
    return _product_of_values(low, node)


def multiply_by_constant(low: Lowering, value: LoweredValue, matrix: Array, node: Node) -> LoweredValue:
    """Multiply the last dimension of a value by a constant matrix [before, after], and return the product, which has
    the shape of `node`. That dimension goes along the columns, all other dimensions stay."""
    dim = len(node.shape) - 1
    width = matrix.shape[1]
    if padded_size(width) > WIDE:
        return _product_in_slices(low, value, matrix, dim, _slices_go_to_host(low, node))
    value = columns_of(low, value, (dim,))
    layout = value.layout
    places = Layout((layout.dims[dim],), layout.extent).place("c").ravel()
    if (np.diff(places) == 1).all():
        rows = slice(places[0], places[0] + len(places))
    else:
        rows = places
    weights = scatter(matrix, (layout.extent[2], padded_size(width)), (rows, slice(0, width)))
    dims = list(layout.dims)
    dims[dim] = (Piece(width, "c", 1),) if width > 1 else ()
    return low.times(value, weights, Layout(tuple(dims), (*layout.extent[:2], padded_size(width))), suffix="matmul")


def _slices_go_to_host(low: Lowering, node: Node) -> bool:
    """Return whether slices of the columns of a node's value are slices of an output: the value is an output, or only
    element-wise ops with single numbers and reshapes come behind it."""
    if any(output.value == node.name for output in low.graph.outputs):
        return True
    readers = [low.graph[name] for name in low.graph.users()[node.name]]
    return len(readers) == 1 and _keeps_columns(low, node, readers[0]) and _slices_go_to_host(low, readers[0])


def _keeps_columns(low: Lowering, node: Node, reader: Node) -> bool:
    """Return whether a reader computes each element of a node's value by itself, with single numbers, and keeps its
    columns."""
    if reader.shape[-1] != node.shape[-1] or prod(reader.shape) != prod(node.shape):
        return False
    if reader.op != "reshape" and front_op(reader.op).family != "elementwise":
        return False
    others = [low.array(name) for name in reader.inputs if name != node.name]
    return all(other is not None and other.size == 1 for other in others)


def _product_in_slices(low: Lowering, value: LoweredValue, matrix: Array, dim: int, out: bool) -> LoweredValue:
    """Multiply dimension `dim` by more columns than the cores have room for: slices of them along t, one after the
    other, all other dimensions along the rows. Readers put the slices side by side (FRONTEND 4.5: streaming in C),
    except for an output (`out`)."""
    shape = value.layout.shape
    rest = [place for place in range(len(shape)) if place != dim]
    value = relayout(low, value, dense_layout(shape, [], rest, [dim]))
    _, rows, inner = value.layout.extent
    width = matrix.shape[1]
    count, columns = _count_slices(padded_size(width), out)
    weights = scatter(matrix, (inner, columns), (slice(0, matrix.shape[0]), slice(0, width)))
    slices = weights.reshape(inner, count, columns // count).transpose(1, 0, 2)
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
    return LoweredValue(
        source=name,
        layout=Layout(tuple(dims), (1, rows, columns)),
        tms=(("hstack", count),),
        rows=None,
        clean_rows=value.clean_rows,
        clean_columns=True,
    )


def _count_slices(columns: int, out: bool) -> tuple[int, int]:
    """Return the number of slices into which so many columns are cut, and the columns of all of them together. Slices
    that eight cores share evenly are preferred, if they add at most a thirty-second: those with the fewest columns, and
    for an output (`out`), whose slices go to the host one by one, those with the fewest columns including those of one
    part, which nothing overlaps (`parts_of_blocks`). Otherwise it is the smallest number of slices that adds no
    columns."""
    widest = WIDE // 2
    least = -(-columns // widest)
    even = {n: -(-columns // (n * SHARING * TILE)) * n * SHARING * TILE for n in range(least, 2 * least + 1)}
    few = {n: size for n, size in even.items() if size // n <= widest and size <= columns + columns // TILE}
    if few:
        count = min(few, key=lambda n: few[n] * (1 + 1 / parts_of_blocks(n, (1, 1)) if out else 1))
        return count, few[count]
    return next(
        n for n in range(1, columns // TILE + 1) if columns % (n * TILE) == 0 and columns // n <= widest
    ), columns


def columns_of(low: Lowering, value: LoweredValue, dims: tuple[int, ...]) -> LoweredValue:
    """Return the value with just the dimensions `dims` along the columns, with or without gaps; the others are dense
    along z and rows, where they are. Adds the ops that move it there."""
    layout = value.layout
    if _are_the_columns(layout, dims):
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
    z.sort(key=lambda place: (-_stride_along_z(layout, place), place))
    return relayout(low, value, dense_layout(shape, z, rows, list(dims)), loose=True)


def _are_the_columns(layout: Layout, dims: tuple[int, ...]) -> bool:
    """Return whether just the pieces of these dimensions lie along the columns, and none is repeated."""
    column_pieces: set[Piece] = set()
    for dim in dims:
        column_pieces.update(layout.dims[dim])
    return all(piece.axis != "-" and (piece.axis == "c") == (piece in column_pieces) for piece in layout.pieces)


def _stride_along_z(layout: Layout, place: int) -> int:
    """Return the stride of dimension `place` along z, 0 for one on another axis."""
    dim = layout.dims[place]
    if dim and dim[-1].axis == "z":
        return dim[-1].stride
    return 0


def _product_of_values(low: Lowering, node: Node) -> LoweredValue:
    """Lower a product of two values for each slice of t; the second one may be read transposed."""
    shapes = [low.graph[name].shape for name in node.inputs]
    batch = node.shape[:-2]
    (m, k) = shapes[0][-2:]
    n = shapes[1][-1]
    lead = list(range(len(batch)))
    rank = len(batch) + 2
    layouts = [
        dense_layout((*batch, m, k), lead, [rank - 2], [rank - 1]),
        dense_layout((*batch, k, n), lead, [rank - 2], [rank - 1]),
    ]
    uses: list[Use] = []
    clean: list[tuple[bool, bool]] = []
    values: list[LoweredValue | None] = []
    for number, (name, layout) in enumerate(zip(node.inputs, layouts, strict=True)):
        array = low.array(name)
        if array is not None:
            use, _ = _padded_constant(low, np.broadcast_to(array, (*batch, *array.shape[-2:])), layout)
            uses.append(use)
            clean.append((True, True))
            values.append(None)
            continue
        value = low.values[name]
        own_batch = value.layout.shape[:-2]
        if number == 1 and prod(own_batch) == 1:
            layout = dense_layout((*(1,) * len(batch), k, n), lead, [rank - 2], [rank - 1])
            value = expand_layout(value, layout.shape)
        else:
            value = expand_layout(value, layout.shape)
        swap = number == 1 and _rows_along_columns(value.layout, rank)
        if swap:
            swapped = dense_layout(layout.shape, lead, [rank - 1], [rank - 2])
            value = swap_rows_and_columns(low, relayout(low, value, swapped))
        else:
            value = relayout(low, value, layout)
        values.append(value)
        uses.append(Use(""))
        clean.append((value.clean_rows, value.clean_columns))
    if not (clean[0][1] or clean[1][0]):
        assert values[0] is not None
        values[0] = low.mask_padding(values[0], columns=True)
    t = prod(batch)
    for number, value in enumerate(values):
        if value is not None:
            use = low.use(value, transpose=number == 1)
            have = value.layout.extent[0]
            uses[number] = use if have == t else Use(use.source, (*use.tms, ("broadcast", "z", t)))
    layout = dense_layout(node.shape, lead, [rank - 2], [rank - 1])
    _, rows, columns = layout.extent
    name = low.op("matmul", uses, (t, rows // TILE, columns // TILE), inner=padded_size(k) // TILE)
    first, second = values
    return LoweredValue(
        source=name,
        layout=layout,
        tms=(),
        rows=None,
        clean_rows=first.clean_rows if first else True,
        clean_columns=second.clean_columns if second else True,
    )


def _rows_along_columns(layout: Layout, rank: int) -> bool:
    """Return whether the second operand of a product, of `rank` dimensions, has its rows along the columns."""
    return any(piece.axis == "c" for piece in layout.dims[rank - 2])


def _padded_constant(low: Lowering, array: Array, layout: Layout) -> tuple[Use, tuple[bool, bool]]:
    """Add a constant with zeros in its padding, one slice if all slices are equal, and return it as an operand, and
    (True, True): the padding of its rows and of its columns is zero."""
    values = np.zeros(layout.extent, np.float32)
    full = layout.place("zrc")
    values.reshape(-1)[full.ravel()] = np.asarray(array, np.float32).reshape(-1)
    if len(values) > 1 and (values == values[:1]).all():
        return Use(low.constant(values[:1]), (("broadcast", "z", len(values)),)), (True, True)
    return Use(low.constant(values)), (True, True)


@lowers("conv")
def conv(low: Lowering, node: Node) -> LoweredValue:
    """Lower a convolution: pick the elements for each tap, put the taps side by side, multiply by the weights (FRONTEND
    2)."""
    weights = low.array(node.inputs[1])
    assert weights is not None
    groups = node.attrs.get("groups", 1)
    kernel = weights.shape[2:]
    value = low.values[node.inputs[0]]
    cout = weights.shape[0]
    (n, channels, *space) = low.graph[node.inputs[0]].shape
    flat = weights.reshape(cout, channels // groups, prod(kernel)).astype(np.float32)
    if not groups == channels == cout or channels == 1:
        value = _put_taps_side_by_side(low, node, value, kernel, (n, channels, *space))
        matrix = _weight_matrix(flat, groups, value.layout.extent[2] // prod(kernel))
        return low.times(value, matrix, _conv_result_layout(value.layout, cout), suffix="conv")
    parts = _count_channel_slices(low.target, channels)
    if parts > 1:
        value = relayout(low, value, dense_layout((n, channels, *space), [0], list(range(2, 2 + len(space))), [1]))
        value = _reshape(value, (n * parts, channels // parts, *space))
    value = _put_taps_side_by_side(low, node, value, kernel, (n * parts, channels // parts, *space))
    return _reshape(_depthwise(low, value, flat[:, 0], parts), node.shape)


def _put_taps_side_by_side(
    low: Lowering, node: Node, value: LoweredValue, kernel: tuple[int, ...], shape: tuple[int, ...]
) -> LoweredValue:
    """Pick the elements for the taps of a convolution from a value seen in `shape`, and return them with the taps side
    by side in columns."""
    value, layout = _pick_taps(low, node, value, kernel, shape)
    count = prod(kernel)
    (t, rows, width) = layout.extent
    if count == 1:
        return value
    return low.through(
        replace(value, layout=layout), ("hstack", count), replace(layout, extent=(t // count, rows, width * count))
    )


def _reshape(value: LoweredValue, shape: Sequence[int]) -> LoweredValue:
    """Return the value with another shape, without moving data; the layout must allow it."""
    layout = reshape_layout(value.layout, shape)
    assert layout is not None, "dimensions that are cut in whole pieces"
    return replace(value, layout=layout)


def _count_channel_slices(target: Target, channels: int) -> int:
    """Return the number of slices of whole tiles into which the channels of a depthwise convolution are cut, so that a
    core has room for each: cores do not share its columns (OPS 6.3)."""
    if channels % TILE == 0:
        tiles = channels // TILE
    else:
        tiles = 1
    return next((parts for parts in divisors(tiles) if tiles // parts <= target.widest_block), 1)


def _weight_matrix(flat: Array, groups: int, width: int) -> Array:
    """Return kernels [out, in, taps] as a matrix of rows [taps, in], each tap's padded to `width`, and columns [out];
    each group of outputs has the rows of its own inputs."""
    cout, share_in, count = flat.shape
    share_out = cout // groups
    by_tap = flat.transpose(2, 1, 0)
    shape = (count, width, padded_size(cout))
    if groups == 1:
        rows_by_tap = scatter(by_tap, shape, (slice(0, count), slice(0, share_in), slice(0, cout)))
    else:
        rows_by_tap = np.zeros(shape, np.float32)
        for group in range(groups):
            ins, outs = (slice(group * size, (group + 1) * size) for size in (share_in, share_out))
            rows_by_tap[:, ins, outs] = by_tap[:, :, outs]
    return rows_by_tap.reshape(count * width, -1)


@lowers("windows")
def windows(low: Lowering, node: Node) -> LoweredValue:
    """Lower windows: the taps along z, the output's space along rows, channels along columns."""
    kernel = tuple(node.attrs["kernel"])
    attrs = node.attrs
    value, layout = _pick_taps(
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


def _pick_taps(
    low: Lowering,
    node: Node,
    value: LoweredValue,
    kernel: tuple[int, ...],
    shape: tuple[int, ...],
    *,
    clamp: bool = False,
    flipped: bool = False,
) -> tuple[LoweredValue, Layout]:
    """Pick the elements of windows from a value seen in `shape`: [N, taps innermost] along z, the output's space along
    rows, channels along columns. The returned layout has the dimensions of the result [N, C, space...]; the taps are in
    its extent alone. With `clamp`, taps outside read what the first tap inside reads; `flipped` puts the last tap
    first."""
    rank = len(shape)
    space = shape[2:]
    out = node.shape[2 - rank :]
    value = relayout(low, value, dense_layout(shape, [0], list(range(2, rank)), [1]))
    index = np.zeros((prod(kernel), prod(out)), np.int64)
    valid = np.ones(index.shape, bool)
    for place, picks in enumerate(iterate_tap_indices((space, kernel, out), node.attrs, clamp, flipped)):
        form = [1] * (2 * len(kernel))
        form[place], form[len(kernel) + place] = picks.shape
        spread = np.broadcast_to(picks.reshape(form), (*kernel, *out)).reshape(index.shape)
        index = index * space[place] + np.maximum(spread, 0)
        valid &= spread >= 0
    n = shape[0]
    height = value.layout.extent[1]
    new_height = padded_size(prod(out))
    tap, position = np.nonzero(valid)
    rows = ((np.arange(n)[:, None] * index.shape[0] + tap[None, :]) * new_height + position[None, :]).ravel()
    columns = (np.arange(n)[:, None] * height + index[tap, position][None, :]).ravel()
    extent = (n * index.shape[0], new_height, value.layout.extent[2])
    result = dense_layout((n, shape[1], *out), [0], list(range(2, rank)), [1])
    layout = Layout(result.dims, extent)
    matrix = Sparse.of((extent[0] * new_height, n * height), rows, columns)
    if index.shape[0] == 1 and new_height == height and matrix.row.size == n * prod(out) and (rows == columns).all():
        return replace(value, layout=layout), layout
    return low.real(low.move_rows(value, matrix, layout)), layout


def _conv_result_layout(layout: Layout, cout: int) -> Layout:
    """Return the layout of a convolution's result: as `layout`, with `cout` channels in the columns."""
    dims = list(layout.dims)
    dims[1] = (Piece(cout, "c", 1),) if cout > 1 else ()
    return Layout(tuple(dims), (*layout.extent[:2], padded_size(cout)))


def _depthwise(low: Lowering, value: LoweredValue, flat: Array, parts: int) -> LoweredValue:
    """Convolve each channel by itself, with weights on the diagonals of tiles (FRONTEND 2, OPS 6.3). `flat`: kernels
    [channels, taps]; `parts` slices of channels lie behind each other along t."""
    channels, count = flat.shape
    out = _conv_result_layout(value.layout, channels // parts)
    t, height, width = out.extent
    diagonals = np.zeros((parts, count, width // TILE, TILE, TILE), np.float32)
    part, column = np.divmod(np.arange(channels, dtype=np.int64), channels // parts)
    diagonals[part, :, column // TILE, column % TILE, column % TILE] = flat
    rows = diagonals.transpose(0, 1, 3, 2, 4).reshape(parts, count * TILE, width)
    if parts > 1:
        rows = np.tile(rows, (t // parts, 1, 1))
    weights = Use(low.constant(rows, "value", "weights"), over((t // len(rows), 1, 1)))
    name = low.op(
        "depthwise", [low.use(value), weights], (t, height // TILE, width // TILE), suffix="conv", inner=count
    )
    return LoweredValue(source=name, layout=out, tms=(), rows=None, clean_rows=value.clean_rows, clean_columns=True)


@lowers("max_pool")
def max_pool(low: Lowering, node: Node) -> LoweredValue:
    """Lower a maximum of windows: the largest over the taps along z. Taps outside the image read an inner element
    again."""
    kernel = tuple(node.attrs["kernel"])
    value, layout = _pick_taps(
        low, node, low.values[node.inputs[0]], kernel, low.graph[node.inputs[0]].shape, clamp=True
    )
    count = prod(kernel)
    value = low.real(replace(value, layout=layout))
    t, r, c = value.shape_in_tiles
    out = Layout(layout.dims, (t // count, *layout.extent[1:]))
    if count == 1:
        return replace(value, layout=out)
    name = low.op("reduce", [low.use(value)], (t // count, r, c), dim="z", type="max", z=count)
    return replace(value, source=name, tms=(), layout=out)
