"""Handlers of pooling, resizing, and sampling at computed places."""

from collections.abc import Callable, Sequence
from functools import partial, wraps
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from buda_emu.compiler.frontend_ops.core import iterate_tap_indices
from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.compiler.importers.from_torch.declared import Handler, aten
from buda_emu.compiler.importers.operators import NotSupportedError
from buda_emu.compiler.importers.signals import cubic, triangle


def pool_options(x: Node, rank: int, kernel: Any, stride: Any, pad: Any, dilation: Any, ceil: bool) -> dict[str, Any]:
    """Return the options of a front-end pool, from the arguments of the operator. `rank`: the number of spatial
    dimensions. With `ceil` the last window may reach beyond the end, but it does not begin in the padding there."""

    def repeat_option(option: Any) -> tuple[int, ...]:
        """Return a pool argument, such as the kernel or the stride, as one number for each of the `rank` dimensions of
        the window; a sequence of one number is repeated."""
        if len(option) == 1:
            return tuple(option) * rank
        return tuple(option)

    kernel = repeat_option(kernel)
    pads = repeat_option(pad)
    dilations = repeat_option(dilation)
    if stride:
        strides = repeat_option(stride)
    else:
        strides = kernel
    out: list[int] = []
    for size, k, s, p, d in zip(x.shape[-rank:], kernel, strides, pads, dilations, strict=True):
        room = size + 2 * p - (k - 1) * d - 1
        count = (-(-room // s) if ceil else room // s) + 1
        out.append(count - 1 if ceil and (count - 1) * s >= size + p else count)
    pad_pairs = tuple((p, p) for p in pads)
    return {"kernel": kernel, "strides": strides, "pads": pad_pairs, "dilations": dilations, "out": tuple(out)}


def _refuse_integers(x: Node) -> None:
    """Raise NotSupportedError if means of the elements of x would be integers, which torch cuts or rounds."""
    if np.dtype(x.dtype).kind in "iu":
        raise NotSupportedError("a mean of integers: convert them to a float")


def _with_batch(b: Builder, x: Node, rank: int, pool: Callable[[Node], Node]) -> Node:
    """Run a pool, with a batch dimension of 1 around it if the operand has no batch dimension. `rank`: the number of
    spatial dimensions that the window covers."""
    if len(x.shape) == rank + 2:
        return pool(x)
    result = pool(b.reshape(x, shape=(1, *x.shape)))
    return b.reshape(result, shape=result.shape[1:])


def _make_max_pool_handler(rank: int) -> Handler:
    """Return the handler of a max pool over the last `rank` dimensions. It gives the values, and a function that builds
    the indices, which few models read."""

    def handler(
        b: Builder, x: Node, kernel: Any, stride: Any = (), pad: Any = (0,), dilation: Any = (1,), ceil: bool = False
    ) -> Any:
        """`max_pool`; indices of the largest for `max_unpool` alone"""
        options = pool_options(x, rank, kernel, list(stride), list(pad), list(dilation), ceil)
        pooled = _with_batch(b, x, rank, lambda y: b.max_pool(y, **options))
        return [
            pooled,
            lambda: _with_batch(b, x, rank, lambda y: b.max_pool_places(y, dtype="int64", **options)),
        ]

    return handler


def _make_average_pool_handler(rank: int) -> Handler:
    """Return the handler of an average pool over the last `rank` dimensions."""

    def handler(
        b: Builder,
        x: Node,
        kernel: Any,
        stride: Any = (),
        pad: Any = (0,),
        ceil: bool = False,
        count_pads: bool = True,
        divisor: int | None = None,
    ) -> Node:
        """`avg_pool`"""
        _refuse_integers(x)
        options = pool_options(x, rank, kernel, list(stride), list(pad), [1], ceil)
        if divisor:
            options |= {"total": False, "divisor": float(divisor)}
        return _with_batch(b, x, rank, lambda y: b.avg_pool(y, count_pads=count_pads, **options))

    return handler


def _drop_indices(handler: Handler) -> Handler:
    """Return a handler that gives the first result of a pool alone, without the indices."""

    @wraps(handler)
    def alone(*items: Any, **options: Any) -> Node:
        """`max_pool`"""
        return handler(*items, **options)[0]

    return alone


for _rank in (1, 2, 3):
    aten(f"max_pool{_rank}d_with_indices")(_make_max_pool_handler(_rank))
    aten(f"max_pool{_rank}d")(_drop_indices(_make_max_pool_handler(_rank)))
    aten(f"avg_pool{_rank}d")(_make_average_pool_handler(_rank))


@aten("max_unpool2d", "max_unpool3d", intact=True)
def max_unpool(b: Builder, values: Node, indices: Node, size: Sequence[int]) -> Node:
    """`max_unpool` by the indices of a `max_pool`; of several values for a place the last

    `size`: the last sizes of the result, in which the indices count. Raises NotSupportedError for other indices, and
    where some may lie beyond the result.
    """
    places = indices
    while places.op in ("reshape", "identity"):
        places = b.graph[places.inputs[0]]
    if places.op != "max_pool_places":
        raise NotSupportedError("by indices that are not those of a max pool of an input")
    x = b.graph[places.inputs[0]]
    reads = list(iterate_tap_indices((x.shape[2:], places.attrs["kernel"], places.attrs["out"]), places.attrs))
    overlap = any(np.unique(index[index >= 0]).size < (index >= 0).sum() for index in reads)
    spread = b.max_unpool(b.reshape(values, shape=places.shape), x, last=bool(overlap), **places.attrs)
    result_shape = (*values.shape[: len(values.shape) - len(size)], *size)
    if tuple(size) != x.shape[2:]:  # places count through the result as they did through x
        last = np.ravel_multi_index([int(index.max()) for index in reads], x.shape[2:])
        count = prod(size)
        if last >= count:
            raise NotSupportedError(f"to {list(size)}, beyond which the pool of {list(x.shape[2:])} has places")
        flat = b.reshape(spread, shape=(*x.shape[:2], prod(x.shape[2:])))
        spread = b.pad(flat, pads=((0, 0), (0, 0), (0, count - flat.shape[2])))
    return b.reshape(spread, shape=result_shape)


@aten("_adaptive_avg_pool2d", "adaptive_avg_pool2d", "adaptive_avg_pool1d", "_adaptive_avg_pool3d")
def adaptive(b: Builder, x: Node, out: Any) -> Node:
    """A matrix along each dimension: means of about equal parts

    `out`: the sizes of the result's last dimensions, each element of which is the mean of one part.
    """
    for place, count in enumerate(out):
        dim = len(x.shape) - len(out) + place
        size = x.shape[dim]
        if size != count:
            x = b.linear(x, dim=dim, matrix=mean_matrix(size, count))
    return x


def mean_matrix(size: int, count: int) -> Sparse:
    """Return the matrix [count, size] that averages `count` parts of about equal size of a dimension of `size`
    elements."""
    matrix = np.zeros((count, size), np.float32)
    for row in range(count):
        low = row * size // count
        high = -(-(row + 1) * size // count)
        matrix[row, low:high] = 1 / (high - low)
    return Sparse.dense(matrix)


class _Resized(NamedTuple):
    """A dimension `dim` that is resized from `size` to `length` elements.

    `step` is the distance in the operand between the places that neighbours of the result read, as torch's
    `area_pixel_compute_scale` computes it: 1 / the scale factor where there is one, else `size` / `length`. The two
    differ where the product of size and factor was rounded.
    """

    dim: int
    size: int
    length: int
    step: np.float32


def _resize_dims(x: Node, out: Sequence[int] | None, factors: Sequence[float | None]) -> list[_Resized]:
    """Return how each dimension behind the channels is resized; `factors` is empty, or None for a dimension, if
    torch was given sizes."""
    dims: list[_Resized] = []
    for place, size in enumerate(x.shape[2:]):
        if factors:
            factor = factors[place]
        else:
            factor = None
        if out is not None:
            count = int(out[place])
        else:
            assert factor is not None
            count = int(size * factor)
        if factor:
            step = np.float32(1 / factor)
        else:
            step = np.float32(size) / np.float32(count)
        dims.append(_Resized(2 + place, size, count, step))
    return dims


@aten("upsample_nearest1d", "upsample_nearest2d", intact=True)
def nearest(
    b: Builder,
    x: Node,
    out: Any,
    *,
    scale_factors: Sequence[float] | None = None,
    scales: float | None = None,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> Node:
    """`take`: each pixel several times

    `out`: the new sizes, None if torch was given scale factors.
    """
    is_image = len(x.shape) == 4
    factors = scale_factors or ([scales_h, scales_w] if is_image else [scales])
    for resized in _resize_dims(x, out, factors):
        x = b.take(x, dim=resized.dim, index=_nearest_places(resized, is_image=is_image))
    return x


def _nearest_places(resized: _Resized, *, is_image: bool) -> NDArray[np.int64]:
    """Return the number of the element that each place of the result reads. Positions are float32 as in torch, since
    the last digit decides between neighbours. An image that keeps or doubles its size is copied or doubled by torch
    without regard to the scale factor."""
    _, size, count, step = resized
    if is_image and count in (size, 2 * size):
        return np.arange(count) * size // count
    at = np.arange(count, dtype=np.float32) * step
    return np.minimum(np.floor(at).astype(np.int64), size - 1)


@aten("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", intact=True)
def linear(
    b: Builder,
    x: Node,
    out: Any,
    align: bool,
    *,
    scale_factors: Sequence[float] | None = None,
    scales: float | None = None,
    scales_d: float | None = None,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> Node:
    """A matrix along each dimension, between neighbours

    `out`: the new sizes, None if torch was given scale factors; `align`: corners of both images coincide.
    """
    _refuse_integers(x)
    factors = scale_factors or ([scales] if len(x.shape) == 3 else [scales_d, scales_h, scales_w][5 - len(x.shape) :])
    for dim, size, count, step in _resize_dims(x, out, factors):
        if size == count:  # torch copies, even where the scale factor is not exactly 1
            continue
        at = np.arange(count, dtype=np.float64)
        if align:
            at = at * (size - 1) / max(count - 1, 1)
        else:
            at = np.maximum((at + 0.5) * step - 0.5, 0)
        low = np.minimum(np.floor(at).astype(int), size - 1)
        high = np.minimum(low + 1, size - 1)
        matrix = np.zeros((count, size), np.float32)
        np.add.at(matrix, (np.arange(count), low), 1 - (at - low))
        np.add.at(matrix, (np.arange(count), high), at - low)
        x = b.linear(x, dim=dim, matrix=Sparse.dense(matrix))
    return x


def _declare_smooth_resize(
    name: str, kernel: Callable[[NDArray[np.float64]], NDArray[np.float64]], reach: float
) -> None:
    """Declare the handler of an antialiased resize with a kernel that is 0 beyond `reach` from its centre."""

    def handler(
        b: Builder,
        x: Node,
        out: Sequence[int],
        align: bool,
        scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> Node:
        """A matrix along each dimension: a kernel as wide as what becomes one pixel"""
        _refuse_integers(x)
        for dim, count, factor in ((2, out[0], scales_h), (3, out[1], scales_w)):
            size = x.shape[dim]
            if not factor:
                step = size / count
            else:
                step = 1 / factor
            if align:
                if count > 1:
                    step = (size - 1) / (count - 1)
                else:
                    step = 0.0
            width = max(step, 1.0)  # in elements of the operand; a result that is larger uses a kernel of width 1
            centre = step * (np.arange(count) + 0.5)
            first = np.maximum((centre - reach * width + 0.5).astype(int), 0)
            end = np.minimum((centre + reach * width + 0.5).astype(int), size)
            place = np.arange(size)
            weights = kernel((place + 0.5 - centre[:, None]) / width)
            weights = np.where((place >= first[:, None]) & (place < end[:, None]), weights, 0.0)
            weights /= weights.sum(1, keepdims=True)
            x = b.linear(x, dim=dim, matrix=Sparse.dense(weights.astype(np.float32)))
        return x

    aten(name)(handler)


_declare_smooth_resize("_upsample_bilinear2d_aa", triangle, 1.0)
_declare_smooth_resize("_upsample_bicubic2d_aa", partial(cubic, a=-0.5), 2.0)


@aten("adaptive_max_pool2d", "adaptive_max_pool3d")
def adaptive_max_pool(b: Builder, x: Node, out: Any) -> Any:
    """`take` of each window, and its largest; indices of the largest are not available"""
    first = len(x.shape) - len(out)
    for place, count in enumerate(out):
        dim = first + place
        size = x.shape[dim]
        shape = x.shape
        begin = np.arange(count) * size // count
        end = -(-(np.arange(1, count + 1) * size) // count)
        steps = np.arange((end - begin).max())
        index = np.minimum(begin[:, None] + steps, end[:, None] - 1)  # a shorter window repeats its last element
        x = b.reshape(b.take(x, dim=dim, index=index.ravel()), shape=(*shape[:dim], *index.shape, *shape[dim + 1 :]))
        x = b.reduce_largest(x, axes=(dim + 1,), keepdims=False)
    return [x, None]


@aten("grid_sampler_2d", "grid_sampler_3d")
def grid_sampler(b: Builder, x: Node, grid: Node, mode: int, padding: int, align: bool) -> Node:
    """`matmul` of the image and the weight of each of its pixels in each sample

    `grid` holds the places of samples, from -1 to 1; `mode`: 0 linear, 1 nearest; `padding`: 0 zeros beyond the edge, 1
    the edge. Raises NotSupportedError for others.
    """
    if mode > 1 or padding > 1:
        raise NotSupportedError("bicubic" if mode > 1 else "with places beyond the edge reflected")
    batch, channels, *sizes = x.shape
    places = prod(grid.shape[1:-1])
    shares: Node | None = None  # [batch, pixels so far, places]
    for dim, size in enumerate(sizes):
        coordinate = b.take(
            grid, dim=len(grid.shape) - 1, index=np.asarray([len(sizes) - 1 - dim])
        )  # the grid names x first, which is the last dimension of an image
        coordinate = b.reshape(coordinate, shape=(batch, 1, places))
        if align:
            span = (size - 1) / 2
        else:
            span = size / 2
        shift = (size - 1) / 2
        coordinate = b.add(b.multiply(coordinate, float(span)), float(shift))
        if padding == 1:
            coordinate = b.clip(coordinate, low=0.0, high=size - 1.0)
        if mode == 1:
            coordinate = b.round(coordinate)
        distance = b.abs(b.subtract(coordinate, b.constant(np.arange(size, dtype=np.float32).reshape(1, size, 1))))
        near = b.relu(b.subtract(1.0, distance))
        if shares is not None:
            before = b.reshape(shares, shape=(batch, shares.shape[1], 1, places))
            near = b.multiply(before, b.reshape(near, shape=(batch, 1, size, places)))
            near = b.reshape(near, shape=(batch, shares.shape[1] * size, places))
        shares = near
    assert shares is not None
    samples = b.matmul(b.reshape(x, shape=(batch, channels, prod(sizes))), shares)
    return b.reshape(samples, shape=(batch, channels, *grid.shape[1:-1]))
