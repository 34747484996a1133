"""Convolutions and pooling: the elements that each tap reads are picked and put side by side (FRONTEND 2)."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from buda_emu.arithmetic.tensor.host import scattered
from buda_emu.compiler.frontend_ops.core import window_taps
from buda_emu.compiler.graph.graph import Array, Node
from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.compiler.lower.layout import TILE, Dim, Layout, Piece, ordered, padded, reshaped
from buda_emu.compiler.lower.lowering import Lowering, Value, lowers
from buda_emu.compiler.lower.relayout import relayout
from buda_emu.compiler.lower.tiles import Use, divisors, over
from buda_emu.compiler.target import Target


@lowers("conv")
def conv(low: Lowering, node: Node) -> Value:
    """Pick what each tap reads, put the taps side by side, times the weights (FRONTEND 2)."""
    weights = low.array(node.inputs[1])
    assert weights is not None
    groups, kernel, value = node.attrs.get("groups", 1), weights.shape[2:], low.values[node.inputs[0]]
    cout, (n, channels, *space) = weights.shape[0], low.graph[node.inputs[0]].shape
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
    count, (t, rows, width) = prod(kernel), layout.extent
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
    share_out, by_tap = cout // groups, flat.transpose(2, 1, 0)
    shape = (count, width, padded(cout))
    if groups == 1:
        held = scattered(by_tap, shape, (slice(0, count), slice(0, share_in), slice(0, cout)))
    else:
        held = np.zeros(shape, np.float32)
        for group in range(groups):
            ins, outs = (slice(group * size, (group + 1) * size) for size in (share_in, share_out))
            held[:, ins, outs] = by_tap[:, :, outs]
    return held.reshape(count * width, -1)


@lowers("windows")
def windows(low: Lowering, node: Node) -> Value:
    """What each tap reads: the taps along z, the output's space along rows, channels along columns."""
    kernel, attrs = tuple(node.attrs["kernel"]), node.attrs
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
    space, out = shape[2:], node.shape[2 - rank :]
    value = relayout(low, value, ordered(shape, [0], list(range(2, rank)), [1]))
    index = np.zeros((prod(kernel), prod(out)), np.int64)
    valid = np.ones(index.shape, bool)
    for place, picks in enumerate(window_taps((space, kernel, out), node.attrs, clamp, flipped)):
        form = [1] * (2 * len(kernel))
        form[place], form[len(kernel) + place] = picks.shape
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
    return Value(name, out, (), None, value.clean_rows, True)


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
