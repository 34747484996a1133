"""Operators of losses and backward passes; torch takes all others of them apart itself.

What picks elements by an index reads a row of zeros and a one for each (`hot`), so that its gradient is a product, too.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from buda_emu.compiler.frontend_ops.convolution import arrange_windows_as_rows, count_window_elements
from buda_emu.compiler.frontend_ops.core import tap_indices
from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.compiler.importers.from_torch.declared import aten
from buda_emu.compiler.importers.from_torch.operators.windows import means, window
from buda_emu.compiler.importers.operators import NotSupportedError, one_hot_rows


# -------------------------------------------------------------------------------------------------- losses by classes
def _classes(b: Builder, target: Node, x: Node, weight: Node | None, ignore: int) -> Node:
    """Return [N, C, space...]: the weight of each target's class at its place, nowhere of one that is ignored."""
    depth = x.shape[:2][-1]
    found = one_hot_rows(b, target, depth, zero=None if 0 <= ignore < depth else ignore)
    rank = len(found.shape)
    if rank > 2:
        found = b.transpose(found, perm=(0, rank - 1, *range(1, rank - 1)))
    if weight is None:
        return found
    return b.multiply(found, b.reshape(weight, shape=(depth, *(1,) * max(rank - 2, 0))))


@aten("nll_loss_forward", "nll_loss2d_forward", whole=True)
def nll_loss(b: Builder, x: Node, target: Node, weight: Any, reduction: int, ignore: int) -> Any:
    """-x at the target's class: each, their mean by weight, or their sum; and the sum of weights."""
    classes = _classes(b, target, x, _counting(b, x, weight, ignore), ignore)
    picked = b.negative(b.multiply(x, classes))
    total = b.reduce_sum(classes, keepdims=False)
    if reduction == 0:
        return [b.reduce_sum(picked, axes=[1 if len(x.shape) > 1 else 0], keepdims=False), total]
    found = b.reduce_sum(picked, keepdims=False)
    return [b.divide(found, total) if reduction == 1 else found, total]


@aten("nll_loss_backward", "nll_loss2d_backward", whole=True)
def nll_loss_backward(
    b: Builder, g: Node, x: Node, target: Node, weight: Any, reduction: int, ignore: int, total: Node
) -> Node:
    """-g at the target's class"""
    classes = _classes(b, target, x, _counting(b, x, weight, ignore), ignore)
    if reduction == 0 and len(x.shape) > 1:
        g = b.reshape(g, shape=(g.shape[0], 1, *g.shape[1:]))
    return b.negative(b.multiply(classes, b.divide(g, total) if reduction == 1 else g))


def _counting(b: Builder, x: Node, weight: Node | None, ignore: int) -> Node | None:
    """Return the weights of classes, of which one that is ignored weighs nothing."""
    depth = x.shape[:2][-1]
    if not 0 <= ignore < depth:
        return weight
    counts = b.constant((np.arange(depth) != ignore).astype(np.float32))
    if weight is None:
        return counts
    return b.multiply(weight, counts)


@aten("threshold_backward", whole=True)
def threshold_backward(b: Builder, g: Node, x: Node, threshold: float) -> Node:
    """g where x is above the threshold: times min(max(1e30 (x - threshold), 0), 1)"""
    if threshold == 0:
        above = x
    else:
        above = b.subtract(x, float(threshold))
    return b.multiply(g, b.relu(b.multiply(above, 1e30), threshold=1.0, mode="max"))


@aten("_weight_norm_interface_backward")
def weight_norm_backward(b: Builder, g: Node, v: Node, size: Node, norms: Node, dim: int) -> list[Node]:
    """of v size / |v|: (g - v sum(g v) / |v|^2) size / |v|, and sum(g v) / |v|"""
    others = tuple(axis for axis in range(len(v.shape)) if axis != dim % len(v.shape))
    along = b.divide(b.reduce_sum(b.multiply(g, v), axes=others, keepdims=True), norms)
    across = b.subtract(g, b.multiply(v, b.divide(along, norms)))
    return [b.multiply(across, b.divide(size, norms)), along]


# ------------------------------------------------------------------------------------------------- convolutions, pools
@aten("convolution_backward")
def convolution_backward(
    b: Builder,
    g: Node,
    x: Node,
    w: Node,
    _bias_sizes: Any,
    strides: Any,
    pads: Any,
    dilations: Any,
    transposed: bool,
    _output_padding: Any,
    groups: int,
    wanted: Sequence[bool],
) -> list[Node | None]:
    """For x: the transposed convolution (or the convolution); for w: the elements that each tap read, times g"""
    rank = len(w.shape) - 2
    strides, pads, dilations = (tuple(item) * (rank if len(item) == 1 else 1) for item in (strides, pads, dilations))
    options = {"strides": strides, "pads": tuple((pad, pad) for pad in pads), "dilations": dilations}
    found: list[Node | None] = [None, None, None]
    if wanted[0] and transposed:
        back = b.convolution(g, w, groups=groups, **options)
        for dim in range(2, 2 + rank):  # more, where it was padded by a stride or more
            if back.shape[dim] > x.shape[dim]:
                back = b.take(back, dim=dim, index=np.arange(x.shape[dim]))
        found[0] = back
    elif wanted[0]:
        extra = tuple(
            size - ((own - 1) * stride - 2 * pad + dilation * (kernel - 1) + 1)
            for size, own, stride, pad, dilation, kernel in zip(
                x.shape[2:], g.shape[2:], strides, pads, dilations, w.shape[2:], strict=True
            )
        )
        found[0] = b.conv_transpose(g, w, groups=groups, output_padding=extra, **options)
    if wanted[1]:
        # A transposed convolution reads the small image where a plain one writes it.
        found[1] = _kernel_gradient(b, *((x, g) if transposed else (g, x)), w, groups, options)
    if wanted[2]:
        found[2] = b.reduce_sum(g, axes=[0, *range(2, len(g.shape))], keepdims=False)
    return found


def _kernel_gradient(b: Builder, written: Node, read: Node, w: Node, groups: int, options: Mapping[str, Any]) -> Node:
    """The sum over all windows of what a tap read times what was written for the window."""
    out = written.shape[2:]
    n = read.shape[0]
    columns = arrange_windows_as_rows(b, read, groups, kernel=w.shape[2:], out=out, **options)
    rows = b.reshape(written, shape=(n, groups, w.shape[0] // groups, prod(out)))
    total = b.reduce_sum(b.matmul(rows, columns), axes=[0])
    apart = b.reshape(total, shape=(w.shape[0], prod(w.shape[2:]), w.shape[1]))
    return b.reshape(b.transpose(apart, perm=(0, 2, 1)), shape=w.shape)


@aten("max_pool2d_with_indices_backward")
def max_pool_backward(
    b: Builder, g: Node, x: Node, kernel: Any, stride: Any, pad: Any, dilation: Any, ceil: bool
) -> Node:
    """g to the first largest element of each window"""
    options = window(x, 2, kernel, stride, pad, dilation, ceil)
    rank = len(options["kernel"])
    count = prod(options["kernel"])
    read = b.windows(x, clamp=True, **options)
    flat = b.reshape(read, shape=(*x.shape[:2], count, *options["out"]))
    top = b.reduce_largest(flat, axes=[2])
    hit = b.greater_equal(flat, top, dtype="float32")
    earlier = b.cumsum(hit, dim=2, exclusive=True)
    first = b.multiply(hit, b.subtract(1.0, b.relu(earlier, threshold=1.0, mode="max")))
    given = b.multiply(first, b.reshape(g, shape=(*g.shape[:2], 1, *g.shape[2:])))
    back = b.reshape(given, shape=(*x.shape[:2], *options["kernel"], *options["out"]))
    order = (0, 1, *(dim for place in range(rank) for dim in (2 + place, 2 + rank + place)))
    back = b.transpose(back, perm=order)  # N, C, k1, o1, k2, o2
    for place in range(rank):
        shape = back.shape
        size = x.shape[2 + place]
        own = (
            options["kernel"][place],
            options["strides"][place],
            options["dilations"][place],
            options["pads"][place],
            options["out"][place],
        )
        index = tap_indices(size, *own, clamp=True)
        matrix = Sparse.gather(index, size).transposed()
        dim = 2 + place
        back = b.reshape(back, shape=(*shape[:dim], shape[dim] * shape[dim + 1], *shape[dim + 2 :]))
        back = b.linear(back, dim=dim, matrix=matrix)
    return back


@aten("_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward")
def adaptive_backward(b: Builder, g: Node, x: Node) -> Node:
    """g distributed over each part: the transposed matrices of the means"""
    for dim, (size, count) in enumerate(zip(x.shape, g.shape, strict=True)):
        if size != count:
            g = b.linear(g, dim=dim, matrix=means(size, count).transposed())
    return g


@aten("avg_pool2d_backward", "avg_pool3d_backward")
def avg_pool_backward(
    b: Builder, g: Node, x: Node, kernel: Any, stride: Any, pad: Any, ceil: bool, count_pads: bool, divisor: Any
) -> Node:
    """g distributed over each window, by the elements that its mean counts"""
    options = window(x, len(x.shape) - 2, kernel, stride, pad, [1], ceil)
    for place, size in enumerate(x.shape[2:]):
        own = (options["kernel"][place], options["strides"][place], 1, options["pads"][place], options["out"][place])
        index = tap_indices(size, *own)
        counted = count_window_elements(index, size, *own[1:4], count_pads)
        inside = index >= 0
        where = np.broadcast_to(np.arange(index.shape[1]), index.shape)
        weight = np.broadcast_to(1.0 if divisor else 1 / counted, index.shape)[inside]
        matrix = Sparse.of((size, index.shape[1]), index[inside], where[inside], weight)
        g = b.linear(g, dim=2 + place, matrix=matrix.merge_duplicates())
    if divisor:
        return b.multiply(g, 1.0 / divisor)
    return g


# ---------------------------------------------------------------------------------------------------- picks and places
@aten("embedding_dense_backward", whole=True)
def embedding_backward(b: Builder, g: Node, index: Node, rows: int, padding: int, by_frequency: bool) -> Node:
    """the sum of g over equal indices: hot' g"""
    if by_frequency:
        raise NotSupportedError("scale_grad_by_freq")
    count = prod(index.shape)
    width = g.shape[-1]
    picked = b.reshape(one_hot_rows(b, index, rows), shape=(count, rows))
    found = b.matmul(b.transpose(picked, perm=(1, 0)), b.reshape(g, shape=(count, width)))
    if 0 <= padding < rows:
        found = b.multiply(found, b.constant((np.arange(rows) != padding).astype(np.float32)[:, None]))
    return found


# -------------------------------------------------------------------------------------------------- constants, refusals
@aten("new_zeros", "new_full", "new_empty")
def new(b: Builder, _like: Node, shape: Any, value: float = 0.0) -> Node:
    """a constant of another shape"""
    return b.constant(np.full(tuple(shape), value, np.float32))


@aten("new_ones")
def new_ones(b: Builder, _like: Node, shape: Any) -> Node:
    """a constant of another shape"""
    return new(b, _like, shape, 1.0)


@aten("native_dropout", "bernoulli")
def random(_: Builder, *operands: Any) -> Any:
    """refused: random numbers that could not be compared"""
    del operands  # any, and none is used
    raise NotSupportedError("random: call eval() on the module's dropouts, or give p=0")


@aten("dropout")
def dropout(_: Builder, x: Node, p: float, train: bool) -> Node:
    """The operand itself, without training"""
    if train and p:
        raise NotSupportedError("random: call eval() on the module's dropouts, or give p=0")
    return x
