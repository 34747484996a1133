"""Convolutions and pooling: what each tap of a window reads is picked, and put side by side (FRONTEND 2)."""

from dataclasses import replace
from math import prod

import numpy as np

from buda_emu.compiler.frontend_ops.core import taps
from buda_emu.compiler.graph.graph import Array, Node
from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.compiler.lower.layout import TILE, Dim, Index, Layout, Piece, ordered, padded
from buda_emu.compiler.lower.lowering import Lowering, Value, lowers
from buda_emu.compiler.lower.relayout import relayout
from buda_emu.compiler.lower.tiles import Use, over
from buda_emu.tensor.referenced import scattered


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
    return low.times(value, _matrix(flat, groups, width), out, suffix="conv")


def _matrix(flat: Array, groups: int, width: int) -> Array:
    """Kernels [out, in, taps] as a matrix of rows [taps, in], each tap's padded to `width`, and columns [out]: each
    group of outputs has the rows of its own inputs."""
    cout, share_in, count = flat.shape
    share_out, turned = cout // groups, flat.transpose(2, 1, 0)
    shape = (count, width, padded(cout))
    if groups == 1:
        held = scattered(turned, shape, (slice(0, count), slice(0, share_in), slice(0, cout)))
    else:
        held = np.zeros(shape, np.float32)
        for group in range(groups):
            ins, outs = (slice(group * size, (group + 1) * size) for size in (share_in, share_out))
            held[:, ins, outs] = turned[:, :, outs]
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
        clamp=attrs.get("clamp", False),
        turned=attrs.get("turned", False),
    )
    taps_dims: list[Dim] = []
    stride = prod(kernel)
    for size in kernel:
        stride //= size
        taps_dims.append((Piece(size, "z", stride),) if size > 1 else ())
    n, channels, *out = layout.dims
    inner = tuple(replace(piece, stride=piece.stride * prod(kernel)) for piece in n)
    return replace(value, layout=Layout((inner, channels, *taps_dims, *out), layout.extent))


def node_channels(low: Lowering, node: Node) -> int:
    """Of the input."""
    return low.graph[node.inputs[0]].shape[1]


def _tapped(
    low: Lowering, node: Node, value: Value, kernel: tuple[int, ...], *, clamp: bool, turned: bool = False
) -> tuple[Value, Layout]:
    """[N, taps innermost] along z, the output's space along rows, channels along columns. The layout returned has the
    dimensions of the result [N, C, space...]; the taps are in its extent alone."""
    shape = low.graph[node.inputs[0]].shape
    rank = len(shape)
    space, out = shape[2:], node.shape[2 - rank :]
    value = relayout(low, value, ordered(shape, [0], list(range(2, rank)), [1]))
    attrs = node.attrs
    index = np.zeros((prod(kernel), prod(out)), np.int64)
    valid = np.ones(index.shape, bool)
    for place, k in enumerate(kernel):
        picks = taps(space[place], k, attrs["strides"][place], attrs["dilations"][place], attrs["pads"][place],
                     out[place], clamp=clamp)  # fmt: skip
        picks = picks[::-1] if turned else picks
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
    weights = Use(low.constant(rows, "value", "weights"), over((t, 1, 1)))
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
