"""Handlers of losses and backward passes that torch does not decompose itself.

Elements are picked by an index with rows of zeros and a one (`one_hot_rows`), so that the gradient of a pick is a
product, too.
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
from buda_emu.compiler.importers.from_torch.operators.windows import mean_matrix, pool_options
from buda_emu.compiler.importers.operators import NotSupportedError, one_hot_rows


# -------------------------------------------------------------------------------------------------- losses by classes
def _weigh_targets(b: Builder, target: Node, x: Node, weight: Node | None, ignore: int) -> Node:
    """Return an array of the shape of x, [N, C, space...]: at each target's class its weight, elsewhere 0; targets
    equal to `ignore` have zeros only."""
    depth = x.shape[:2][-1]
    rows = one_hot_rows(b, target, depth, zero=None if 0 <= ignore < depth else ignore)
    rank = len(rows.shape)
    if rank > 2:
        rows = b.transpose(rows, perm=(0, rank - 1, *range(1, rank - 1)))
    if weight is None:
        return rows
    return b.multiply(rows, b.reshape(weight, shape=(depth, *(1,) * max(rank - 2, 0))))


@aten("nll_loss_forward", "nll_loss2d_forward", intact=True)
def nll_loss(b: Builder, x: Node, target: Node, weight: Any, reduction: int, ignore: int) -> Any:
    """-x at the target's class: each, their mean by weight, or their sum; and the sum of weights.

    `weight`: one number for each class, or None; `reduction`: 0 each, 1 mean, 2 sum; targets equal to `ignore` do not
    count.
    """
    classes = _weigh_targets(b, target, x, _weights_but_one(b, x, weight, ignore), ignore)
    picked = b.negative(b.multiply(x, classes))
    total = b.reduce_sum(classes, keepdims=False)
    if reduction == 0:
        return [b.reduce_sum(picked, axes=[1 if len(x.shape) > 1 else 0], keepdims=False), total]
    loss = b.reduce_sum(picked, keepdims=False)
    return [b.divide(loss, total) if reduction == 1 else loss, total]


@aten("nll_loss_backward", "nll_loss2d_backward", intact=True)
def nll_loss_backward(
    b: Builder, g: Node, x: Node, target: Node, weight: Any, reduction: int, ignore: int, total: Node
) -> Node:
    """-g at the target's class

    Gradient of `nll_loss` with respect to x, for the gradient g of its result; `total` is the sum of weights that it
    returned.
    """
    classes = _weigh_targets(b, target, x, _weights_but_one(b, x, weight, ignore), ignore)
    if reduction == 0 and len(x.shape) > 1:
        g = b.reshape(g, shape=(g.shape[0], 1, *g.shape[1:]))
    return b.negative(b.multiply(classes, b.divide(g, total) if reduction == 1 else g))


def _weights_but_one(b: Builder, x: Node, weight: Node | None, ignore: int) -> Node | None:
    """Return the weights of the classes of x with 0 for the class `ignore`; None if all weigh 1."""
    depth = x.shape[:2][-1]
    if not 0 <= ignore < depth:
        return weight
    counts = b.constant((np.arange(depth) != ignore).astype(np.float32))
    if weight is None:
        return counts
    return b.multiply(weight, counts)


@aten("threshold_backward", intact=True)
def threshold_backward(b: Builder, g: Node, x: Node, threshold: float) -> Node:
    """g where x is above the threshold: times min(max(1e30 (x - threshold), 0), 1)

    Gradient of a ReLU with a threshold.
    """
    if threshold == 0:
        above = x
    else:
        above = b.subtract(x, float(threshold))
    return b.multiply(g, b.relu(b.multiply(above, 1e30), threshold=1.0, mode="max"))


@aten("_weight_norm_interface_backward")
def weight_norm_backward(b: Builder, g: Node, v: Node, size: Node, norms: Node, dim: int) -> list[Node]:
    """of v size / |v|: (g - v sum(g v) / |v|^2) size / |v|, and sum(g v) / |v|

    Gradients of a normalised weight with respect to v and to `size`; `norms` are |v| over all dimensions but `dim`.
    """
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
    needed: Sequence[bool],
) -> list[Node | None]:
    """For x: the transposed convolution (or the convolution); for w: the elements that each tap read, times g

    Returns the gradients of operand, kernel and bias, None for those that are not `needed`.
    """
    rank = len(w.shape) - 2
    strides, pads, dilations = (
        tuple(option) * (rank if len(option) == 1 else 1) for option in (strides, pads, dilations)
    )
    options = {"strides": strides, "pads": tuple((pad, pad) for pad in pads), "dilations": dilations}
    gradients: list[Node | None] = [None, None, None]
    if needed[0] and transposed:
        gradient = b.convolution(g, w, groups=groups, **options)
        for dim in range(2, 2 + rank):  # more, where it was padded by a stride or more
            if gradient.shape[dim] > x.shape[dim]:
                gradient = b.take(gradient, dim=dim, index=np.arange(x.shape[dim]))
        gradients[0] = gradient
    elif needed[0]:
        extra = tuple(
            size - ((length - 1) * stride - 2 * pad + dilation * (kernel - 1) + 1)
            for size, length, stride, pad, dilation, kernel in zip(
                x.shape[2:], g.shape[2:], strides, pads, dilations, w.shape[2:], strict=True
            )
        )
        gradients[0] = b.conv_transpose(g, w, groups=groups, output_padding=extra, **options)
    if needed[1]:
        # A transposed convolution reads the small image where a plain one writes it.
        gradients[1] = _kernel_gradient(b, *((x, g) if transposed else (g, x)), w, groups, options)
    if needed[2]:
        gradients[2] = b.reduce_sum(g, axes=[0, *range(2, len(g.shape))], keepdims=False)
    return gradients


def _kernel_gradient(b: Builder, written: Node, read: Node, w: Node, groups: int, options: Mapping[str, Any]) -> Node:
    """Return the gradient of a convolution's kernel: for each tap, the sum over all windows of the element of `read`
    under the tap times the element of `written` that belongs to the window. One of the two is the gradient of the
    result: `read` if the convolution is transposed."""
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
    """g to the first largest element of each window

    Gradient of a max pool of x over two spatial dimensions.
    """
    return b.max_unpool(g, x, **pool_options(x, 2, kernel, stride, pad, dilation, ceil))


@aten("_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward")
def adaptive_backward(b: Builder, g: Node, x: Node) -> Node:
    """g distributed over each part: the transposed matrices of the means

    Gradient of an adaptive mean pool of x, which averages parts of about equal size.
    """
    for dim, (size, count) in enumerate(zip(x.shape, g.shape, strict=True)):
        if size != count:
            g = b.linear(g, dim=dim, matrix=mean_matrix(size, count).transpose())
    return g


@aten("avg_pool2d_backward", "avg_pool3d_backward")
def avg_pool_backward(
    b: Builder, g: Node, x: Node, kernel: Any, stride: Any, pad: Any, ceil: bool, count_pads: bool, divisor: Any
) -> Node:
    """g distributed over each window, by the elements that its mean counts

    Gradient of an average pool of x; with a `divisor` each element gets g over it instead.
    """
    options = pool_options(x, len(x.shape) - 2, kernel, stride, pad, [1], ceil)
    for place, size in enumerate(x.shape[2:]):
        window_options = (
            options["kernel"][place],
            options["strides"][place],
            1,
            options["pads"][place],
            options["out"][place],
        )
        index = tap_indices(size, *window_options)
        elements = count_window_elements(index, size, *window_options[1:4], count_pads)
        inside = index >= 0
        window_numbers = np.broadcast_to(np.arange(index.shape[1]), index.shape)
        weight = np.broadcast_to(1.0 if divisor else 1 / elements, index.shape)[inside]
        matrix = Sparse.of((size, index.shape[1]), index[inside], window_numbers[inside], weight)
        g = b.linear(g, dim=2 + place, matrix=matrix.merge_duplicates())
    if divisor:
        return b.multiply(g, 1.0 / divisor)
    return g


# ---------------------------------------------------------------------------------------------------- picks and places
@aten("embedding_dense_backward", intact=True)
def embedding_backward(b: Builder, g: Node, index: Node, rows: int, padding: int, by_frequency: bool) -> Node:
    """the sum of g over equal indices: hot' g

    Gradient of an embedding's table of `rows` rows; row `padding` gets 0. Raises NotSupportedError for gradients scaled
    `by_frequency`.
    """
    if by_frequency:
        raise NotSupportedError("scale_grad_by_freq")
    count = prod(index.shape)
    width = g.shape[-1]
    picked = b.reshape(one_hot_rows(b, index, rows), shape=(count, rows))
    gradient = b.matmul(b.transpose(picked, perm=(1, 0)), b.reshape(g, shape=(count, width)))
    if 0 <= padding < rows:
        gradient = b.multiply(gradient, b.constant((np.arange(rows) != padding).astype(np.float32)[:, None]))
    return gradient


# -------------------------------------------------------------------------------------------------- constants, refusals
@aten("new_zeros", "new_full", "new_empty")
def fill_new(b: Builder, _like: Node, shape: Any, value: float = 0.0) -> Node:
    """a constant of another shape

    The shape is `shape`, filled with `value`; the first operand only gave torch a type.
    """
    return b.constant(np.full(tuple(shape), value, np.float32))


@aten("new_ones")
def new_ones(b: Builder, _like: Node, shape: Any) -> Node:
    """a constant of another shape

    The shape is `shape`; the first operand only gave torch a type.
    """
    return fill_new(b, _like, shape, 1.0)


@aten("native_dropout", "bernoulli")
def refuse_random(_: Builder, *operands: Any) -> Any:
    """refused: random numbers that could not be compared

    Always raises NotSupportedError.
    """
    del operands  # any, and none is used
    raise NotSupportedError("random: call eval() on the module's dropouts, or give p=0")


@aten("dropout")
def dropout(_: Builder, x: Node, p: float, train: bool) -> Node:
    """The operand itself, without training

    Raises NotSupportedError in training, unless p is 0.
    """
    if train and p:
        raise NotSupportedError("random: call eval() on the module's dropouts, or give p=0")
    return x
