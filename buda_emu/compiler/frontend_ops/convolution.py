"""Convolutions, pooling and resizing of [N, C, space...] (FRONTEND 2)."""

from collections.abc import Sequence
from itertools import chain
from math import prod
from typing import Any

import numpy as np

from buda_emu.compiler.frontend_ops.core import iterate_tap_indices, tap_indices, window_count, window_counts
from buda_emu.compiler.graph.builder import Builder, check_index_size
from buda_emu.compiler.graph.graph import Array, Node
from buda_emu.compiler.graph.registry import composite
from buda_emu.compiler.graph.sparse import Sparse

_op = composite("convolution")
Pads = Sequence[tuple[int, int]]


@_op
def convolution(
    b: Builder,
    x: Node,
    w: Node,
    *bias: Node,
    strides: Sequence[int],
    pads: Pads,
    dilations: Sequence[int],
    groups: int = 1,
    flipped: bool = False,
) -> Node:
    """conv plus a bias for each channel; computed weights: a product of all windows and all kernels

    `flipped` reverses computed kernels along every spatial dimension.
    """
    rank = len(w.shape) - 2
    if w.op == "constant":
        y = b.conv(x, w, strides=tuple(strides), pads=tuple(pads), dilations=tuple(dilations), groups=groups)
    else:
        y = _convolve_computed_weights(b, x, w, strides, pads, dilations, groups, flipped)
    if bias:
        return b.add(y, b.reshape(bias[0], shape=(w.shape[0], *[1] * rank)))
    return y


def arrange_windows_as_rows(
    b: Builder, x: Node, groups: int, *, kernel: Sequence[int], flipped: bool = False, **options: Any
) -> Node:
    """Return [N, groups, windows, taps x channels of a group]: the elements that each window reads as one row, with the
    channels of a tap side by side."""
    read = b.windows(x, kernel=tuple(kernel), flipped=flipped, **options)
    n, channels = x.shape[:2]
    out = prod(read.shape[2 + len(kernel) :])
    grouped = b.reshape(read, shape=(n, groups, channels // groups, prod(kernel), out))
    taps_last = b.transpose(grouped, perm=(0, 1, 4, 3, 2))
    return b.reshape(taps_last, shape=(n, groups, out, prod(kernel) * channels // groups))


def _convolve_computed_weights(
    b: Builder,
    x: Node,
    w: Node,
    strides: Sequence[int],
    pads: Pads,
    dilations: Sequence[int],
    groups: int,
    flipped: bool,
) -> Node:
    """Convolve by weights that are not constant, as a product of all windows and all kernels."""
    kernel = w.shape[2:]
    cout = w.shape[0]
    share = w.shape[1]
    options = {"strides": tuple(strides), "pads": tuple(pads), "dilations": tuple(dilations)}
    rows = arrange_windows_as_rows(b, x, groups, kernel=kernel, flipped=flipped, **options)
    grouped = b.reshape(w, shape=(1, groups, cout // groups, share, prod(kernel)))
    columns = b.reshape(
        b.transpose(grouped, perm=(0, 1, 4, 3, 2)), shape=(1, groups, prod(kernel) * share, cout // groups)
    )
    products = b.transpose(b.matmul(rows, columns), perm=(0, 1, 3, 2))
    out = [window_count(x.shape[2 + dim], k, strides[dim], dilations[dim], pads[dim]) for dim, k in enumerate(kernel)]
    return b.reshape(products, shape=(x.shape[0], cout, *out))


@_op
def conv_transpose(
    b: Builder,
    x: Node,
    w: Node,
    *bias: Node,
    strides: Sequence[int],
    pads: Pads,
    dilations: Sequence[int],
    groups: int = 1,
    output_padding: Sequence[int] = (),
) -> Node:
    """zeros between the elements, then a convolution by the flipped kernel"""
    rank = len(w.shape) - 2
    added_at_end = tuple(output_padding) or (0,) * rank
    for place in range(rank):
        size = x.shape[2 + place]
        reach = (w.shape[2 + place] - 1) * dilations[place]
        low = reach - pads[place][0]
        high = reach - pads[place][1] + added_at_end[place]
        check_index_size("conv_transpose", (size - 1) * strides[place] + 1 + abs(low) + abs(high))
        with_gaps = np.full((size - 1) * strides[place] + 1, -1)  # -1 takes a zero
        with_gaps[:: strides[place]] = np.arange(size)
        index = np.concatenate([np.full(max(low, 0), -1), with_gaps, np.full(max(high, 0), -1)])
        index = index[max(-low, 0) : index.size - max(-high, 0)]
        x = b.take(x, dim=2 + place, index=index)
    cin, cout = w.shape[:2]
    kernel = b.reshape(w, shape=(groups, cin // groups, cout, *w.shape[2:]))
    is_constant = w.op == "constant"
    if is_constant:
        for dim in range(3, 3 + rank):
            kernel = b.take(kernel, dim=dim, index=np.arange(kernel.shape[dim])[::-1])
    kernel = b.transpose(kernel, perm=(0, 2, 1, *range(3, 3 + rank)))
    kernel = b.reshape(kernel, shape=(groups * cout, cin // groups, *w.shape[2:]))
    unit_steps = (1,) * rank
    return b.convolution(
        x,
        kernel,
        *bias,
        strides=unit_steps,
        pads=((0, 0),) * rank,
        dilations=tuple(dilations),
        groups=groups,
        flipped=not is_constant,
    )


def count_window_elements(
    index: Array, size: int, stride: int, dilation: int, pad: tuple[int, int], count_pads: bool
) -> Array:
    """Return by how many elements, counted along one dimension, the sum of each window is divided for its mean; with
    `count_pads` elements of the padding count, too. `index` holds the `tap_indices` of the dimension, [kernel,
    windows]."""
    if not count_pads:
        return (index >= 0).sum(0)
    k, count = (int(edge) for edge in index.shape)
    positions = np.arange(count)[None, :] * stride + np.arange(k)[:, None] * dilation
    return (positions < size + sum(pad)).sum(0)


@_op
def avg_pool(
    b: Builder,
    x: Node,
    *,
    kernel: Sequence[int],
    strides: Sequence[int],
    pads: Pads,
    dilations: Sequence[int],
    out: Sequence[int] = (),
    count_pads: bool = False,
    total: bool = False,
    divisor: float = 0.0,
) -> Node:
    """mean of each window: a matrix of ones along every dimension, then a division by the number of elements"""
    counts: Array = np.ones((1,) * len(kernel), np.float32)
    options = {"strides": strides, "pads": pads, "dilations": dilations, "out": out}
    sizes = window_counts(x.shape[2:], kernel, options)
    for place, k in enumerate(kernel):
        dim = 2 + place
        size = x.shape[dim]
        pad = pads[place]
        stride = strides[place]
        dilation = dilations[place]
        count = sizes[place]
        index = tap_indices(size, k, stride, dilation, pad, count)
        row = np.broadcast_to(np.arange(count), index.shape)
        inside = index >= 0
        elements = count_window_elements(index, size, stride, dilation, pad, count_pads)
        shape = [1] * len(kernel)
        shape[place] = count
        counts = counts * elements.reshape(shape).astype(np.float32)
        is_mean = not total and not divisor
        weight = 1.0
        if is_mean and counts.size and (elements == elements[0]).all():
            # All windows divide by the same number here: the matrix does it.
            weight = 1 / elements[0]
            counts = counts / elements.reshape(shape).astype(np.float32)
        x = b.linear(x, dim=dim, matrix=Sparse.of((count, size), row[inside], index[inside], weight))
    if divisor:
        return b.multiply(x, 1 / divisor)
    if total or np.all(counts == 1):
        return x
    return b.multiply(x, b.constant(1 / counts))


def _first_largest(b: Builder, x: Node, *, kernel: Sequence[int], **options: Any) -> Node:
    """Return [N, C, taps, out...]: 1 at the first tap of each window that reads its largest element, else 0."""
    read = b.windows(x, kernel=kernel, clamp=True, **options)
    out = read.shape[2 + len(kernel) :]
    flat = b.reshape(read, shape=(*x.shape[:2], prod(kernel), *out))
    hit = b.greater_equal(flat, b.reduce_largest(flat, axes=[2]), dtype="float32")
    filled = b.constant(np.ones((1, 1, *x.shape[2:]), np.float32))
    inside = b.reshape(b.windows(filled, kernel=kernel, **options), shape=(1, 1, prod(kernel), *out))
    if not inside.value.all():
        hit = b.multiply(hit, inside)
    return _first_of_taps(b, hit)


def _first_of_taps(b: Builder, hit: Node) -> Node:
    """Return 1 at the first 1 along dimension 2 of a value of ones and zeros, and 0 elsewhere."""
    earlier = b.cumsum(hit, dim=2, exclusive=True)
    return b.multiply(hit, b.subtract(1.0, b.relu(earlier, threshold=1.0, mode="max")))


@_op
def max_pool_places(b: Builder, x: Node, *, kernel: Sequence[int], **options: Any) -> Node:
    """place of the first largest element of each window, counted through all spatial dimensions

    Windows are those of `max_pool`.
    """
    first = _first_largest(b, x, kernel=kernel, **options)
    places = b.constant(np.arange(prod(x.shape[2:])).reshape(1, 1, *x.shape[2:]))
    read = b.windows(places, kernel=kernel, clamp=True, **options)
    flat = b.reshape(read, shape=(1, 1, *first.shape[2:]))
    return b.reduce_sum(b.multiply(first, flat, dtype="float32"), axes=[2], keepdims=False)


@_op
def max_unpool(b: Builder, values: Node, x: Node, *, kernel: Sequence[int], last: bool = False, **options: Any) -> Node:
    """zeros of the shape of x, with the value of each window of x at the place of its first largest element

    Where several windows give an element a value, the values are added, or with `last` the last window counts. Windows
    are those of `max_pool`, and this is also the gradient of `max_pool`.
    """
    first = _first_largest(b, x, kernel=kernel, **options)
    spread = b.multiply(first, b.reshape(values, shape=(*x.shape[:2], 1, *first.shape[3:])))
    if not last:
        return _spread_taps(b, spread, x, kernel, options, apart=False)
    hit = _spread_taps(b, first, x, kernel, options, apart=True)
    # Where two windows read the same element, the later window reads it by the earlier tap.
    winner = b.multiply(_first_of_taps(b, hit), _spread_taps(b, spread, x, kernel, options, apart=True))
    return b.reduce_sum(winner, axes=[2], keepdims=False)


def _spread_taps(
    b: Builder, taps: Node, x: Node, kernel: Sequence[int], options: dict[str, Any], *, apart: bool
) -> Node:
    """Move the values of taps, [N, C, taps, out...], to the elements of x that the taps read, and return the sums of
    each element; with `apart` return the values of each tap by itself, [N, C, taps, space...]."""
    rank = len(kernel)
    out = taps.shape[3:]
    spread = b.reshape(taps, shape=(*x.shape[:2], *kernel, *out))
    order = (0, 1, *chain.from_iterable((2 + place, 2 + rank + place) for place in range(rank)))
    spread = b.transpose(spread, perm=order)  # N, C, k1, o1, k2, o2
    indices = iterate_tap_indices((x.shape[2:], kernel, out), options, clamp=True)
    for dim, index in enumerate(indices, 2):
        shape = spread.shape
        spread = b.reshape(spread, shape=(*shape[:dim], shape[dim] * shape[dim + 1], *shape[dim + 2 :]))
        size = x.shape[dim]
        if apart:
            index = index + np.arange(kernel[dim - 2])[:, None] * size
            size *= kernel[dim - 2]
        spread = b.linear(spread, dim=dim, matrix=Sparse.gather(index, size).transpose())
    if not apart:
        return spread
    pairs = [size for pair in zip(kernel, x.shape[2:], strict=True) for size in pair]
    spread = b.reshape(spread, shape=(*x.shape[:2], *pairs))  # N, C, k1, s1, k2, s2
    order = (0, 1, *range(2, 2 + 2 * rank, 2), *range(3, 3 + 2 * rank, 2))
    return b.reshape(b.transpose(spread, perm=order), shape=(*x.shape[:2], prod(kernel), *x.shape[2:]))


@_op
def lp_pool(
    b: Builder,
    x: Node,
    *,
    kernel: Sequence[int],
    p: int,
    strides: Sequence[int],
    pads: Pads,
    dilations: Sequence[int],
    out: Sequence[int] = (),
) -> Node:
    """p-th root of the sum of |x|^p in each window

    Windows are those of `max_pool`; elements in the padding count as 0.
    """
    if p == 1:
        powered = b.abs(x)
    elif p == 2:
        powered = b.square(x)
    else:
        powered = b.power(b.abs(x), exp=p)
    sums = b.avg_pool(powered, kernel=kernel, strides=strides, pads=pads, dilations=dilations, out=out, total=True)
    if p == 1:
        return sums
    if p == 2:
        return b.sqrt(sums)
    return b.pow(sums, b.constant(np.float32(1 / p)))


@_op
def resize(b: Builder, x: Node, *, matrices: Sequence[tuple[int, Sparse]]) -> Node:
    """an interpolation matrix along each dimension that changes

    `matrices`: pairs of a dimension and the sparse matrix that gives its new elements.
    """
    for dim, matrix in matrices:
        x = b.linear(x, dim=dim, matrix=matrix, dtype=x.dtype)
    return x
