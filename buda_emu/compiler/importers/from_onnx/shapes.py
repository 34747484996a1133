"""Handlers of ONNX operators that move elements or make constants."""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from math import prod
from typing import NamedTuple

import numpy as np
import onnx
from onnx import numpy_helper

from buda_emu.compiler.graph.builder import check_constant_size, check_index_size
from buda_emu.compiler.graph.graph import Array, Node, dim_of
from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.compiler.importers.from_onnx.call import Call, is_float, onnx_op
from buda_emu.compiler.importers.from_onnx.decided import Decision
from buda_emu.compiler.importers.index_inputs import check_on_host, is_picked_by_host
from buda_emu.compiler.importers.operators import (
    Scatter,
    scatter_elements,
    scatter_slices,
    table_rows,
)
from buda_emu.compiler.importers.signals import cubic, triangle
from buda_emu.emulator.image.shape_rules import RESULT_SHAPES


def reshape_to(call: Call, x: Node, shape: tuple[int, ...]) -> Node:
    """Reshape a value, unless it has the shape already."""
    if shape == x.shape:
        return x
    return call.b.reshape(x, shape=tuple(int(size) for size in shape))


def shape_by_operand(
    call: Call, place: int, subject: str, shape: tuple[int, ...], *, keeps_zero: bool = False
) -> tuple[int, ...]:
    """Return the shape that the operator gives an operand of `shape` by the values of operand `place`, which are
    constants or come from inputs of the model; `keeps_zero`: a size of 0 keeps that of the operand. Raises ValueError
    for constants that mean no shape, and NotSupportedError, which names the `subject`, for inputs without a shape to
    compile for."""
    node = call[place]
    if node.op == "constant":
        return RESULT_SHAPES[call.op](shape, [int(value) for value in node.value.reshape(-1)], keeps_zero)
    decision = Decision(
        operator=call.op,
        result=call.results[0],
        shape=shape,
        stated=call.shapes[0],
        keeps_zero=keeps_zero,
        subject=subject,
    )
    return call.decided.shape_of(node, decision)


@onnx_op("Reshape", "Flatten", "Squeeze", "Unsqueeze")
def reshape(call: Call) -> Node:
    """`reshape`"""
    x = call[0]
    if call.op == "Flatten":
        return reshape_to(call, x, _flat_shape(call, x))
    if call.get(1) is None:
        return reshape_to(call, x, _shape_by_attribute(call, x.shape))
    keeps_zero = not call.attr("allowzero", 0)
    return reshape_to(call, x, shape_by_operand(call, 1, "shape or axes", x.shape, keeps_zero=keeps_zero))


def _shape_by_attribute(call: Call, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of a Reshape, Squeeze or Unsqueeze that has its sizes or axes in an attribute, as in early
    versions of ONNX, or a Squeeze without axes, which removes all dimensions of size 1."""
    if call.op == "Reshape":
        values = call.attr("shape")
    else:
        values = call.attr("axes")
    if call.op == "Squeeze" and values is None:
        values = [place for place, size in enumerate(shape) if size == 1]
    return RESULT_SHAPES[call.op](shape, values, True)


def _flat_shape(call: Call, x: Node) -> tuple[int, int]:
    """Return the shape of `Flatten`: the sizes before its axis and those from it on, multiplied."""
    axis = call.attr("axis", 1)
    if axis != len(x.shape):
        axis = dim_of(axis, len(x.shape))
    return prod(x.shape[:axis]), prod(x.shape[axis:])


@onnx_op("Transpose")
def transpose(call: Call) -> Node:
    """`transpose`"""
    perm = call.attr("perm") or list(reversed(range(len(call[0].shape))))
    return call.b.transpose(call[0], perm=tuple(perm))


@onnx_op("Expand")
def expand(call: Call) -> Node:
    """`expand`: numpy's broadcast, both ways

    The shape is operand 1, which may be shorter than that of x. Raises NotSupportedError if it is computed."""
    x = call[0]
    shape = shape_by_operand(call, 1, "shape", x.shape)
    if shape == x.shape:
        return x
    return call.b.expand(reshape_to(call, x, (1,) * (len(shape) - len(x.shape)) + x.shape), shape=shape)


@onnx_op("Tile")
def tile(call: Call) -> Node:
    """`tile`"""
    x = call[0]
    shape = shape_by_operand(call, 1, "repeats", x.shape)
    repeats = [1 if size == before else size // before for size, before in zip(shape, x.shape, strict=True)]
    return call.b.tile(x, repeats=tuple(repeats))


@onnx_op("Concat")
def concat(call: Call) -> Node:
    """`concat`"""
    parts = [node for node in call.inputs if node is not None and 0 not in node.shape] or [call[0]]
    dim = dim_of(call.attr("axis"), len(parts[0].shape))
    if len(parts) == 1:
        return parts[0]
    return call.b.concat(*parts, dim=dim)


@onnx_op("Split")
def split(call: Call) -> tuple[Node, ...]:
    """Sizes given, or equal ones with a smaller last.

    Emits a `slice` for each part. Raises ValueError for sizes that do not add up.
    """
    x = call[0]
    dim = dim_of(call.attr("axis", 0), len(x.shape))
    sizes = call.constant(1, "sizes")
    if sizes is None:
        sizes = call.attr("split")
    if sizes is None:
        count = call.attr("num_outputs") or len(call.shapes)
        part_size = -(-x.shape[dim] // count)
        sizes = [min(part_size, x.shape[dim] - part_size * place) for place in range(count)]
    ends = np.cumsum([0, *[int(size) for size in sizes]])
    if sum(sizes) != x.shape[dim] or min(sizes) < 0:
        raise ValueError(f"parts of {[int(size) for size in sizes]} of {x.shape[dim]}")
    return tuple(call.b.slice(x, dim=dim, start=int(a), count=int(b - a)) for a, b in pairwise(ends))


@onnx_op("Slice")
def slice_(call: Call) -> Node:
    """`take` along some axes"""
    x = call[0]
    starts, ends = (call.constant(place, "bounds") for place in (1, 2))
    if starts is None or ends is None:
        starts = np.asarray(call.attr("starts"))
        ends = np.asarray(call.attr("ends"))
    axes = call.constant(3, "axes")
    steps = call.constant(4, "steps")
    if axes is None:
        axes = np.asarray(call.attr("axes", list(range(starts.size))))
    if steps is None:
        steps = np.ones(starts.size, np.int64)
    for start, end, axis, step in zip(starts.tolist(), ends.tolist(), axes.tolist(), steps.tolist(), strict=True):
        dim = dim_of(axis, len(x.shape))
        first, last, stride = slice(start, end, step).indices(x.shape[dim])
        check_index_size("Slice", len(range(first, last, stride)))
        index = np.arange(first, last, stride)
        x = call.b.take(x, dim=dim, index=index)
    return x


@onnx_op("Pad")
def pad(call: Call) -> Node:
    """`pad`: constant, edge, reflect or wrap"""
    x = call[0]
    pads_operand = call.constant(1, "pads")
    if pads_operand is not None:
        pads = pads_operand.tolist()
    else:
        pads = call.attr("pads") or call.attr("paddings")
    axes = call.constant(3, "axes")
    if axes is not None:
        places = [dim_of(axis, len(x.shape)) for axis in axes.tolist()]
    else:
        places = list(range(len(x.shape)))
    pad_pairs = [(0, 0)] * len(x.shape)
    for number, place in enumerate(places):
        pad_pairs[place] = (pads[number], pads[number + len(places)])
    value = call.constant(2, "value")
    if value is not None and value.size:
        number = float(value.reshape(-1)[0])
    else:
        number = float(call.attr("value", 0.0))
    return call.b.pad(x, pads=tuple(pad_pairs), mode=call.attr("mode", b"constant").decode(), value=number)


@onnx_op("Gather")
def gather(call: Call) -> Node:
    """By constants a move, from a constant table an embedding, else a product with one-hot rows."""
    x = call[0]
    index = call[1]
    dim = dim_of(call.attr("axis", 0), len(x.shape))
    if index.op == "constant":
        size = x.shape[dim]
        flat = np.where(index.value < 0, index.value + size, index.value)
        if flat.size and not 0 <= flat.min() <= flat.max() < size:
            raise ValueError(f"index {index.value.min()} or {index.value.max()} of {size} elements")
        elements = call.b.take(x, dim=dim, index=flat.reshape(-1))
        return reshape_to(call, elements, (*x.shape[:dim], *index.shape, *x.shape[dim + 1 :]))
    if x.op == "constant" and dim == 0 and is_picked_by_host(call.b, index):
        table = call.b.constant(x.value.reshape(x.shape[0], -1).astype(np.float32))
        elements = table_rows(call.b, table, index, from_end=True)
        return reshape_to(call, elements, (*index.shape, *x.shape[1:]))
    check_on_host(call.b, index, x.shape[dim], from_end=True)
    return call.b.gather(x, index, dim=dim)


@onnx_op("GatherElements")
def gather_elements(call: Call) -> Node:
    """One element per index along the axis: `gather_elements`, by a one-hot product"""
    dim = dim_of(call.attr("axis", 0), len(call[0].shape))
    check_on_host(call.b, call[1], call[0].shape[dim], from_end=True)
    return call.b.gather_elements(call[0], call[1], dim=dim)


@onnx_op("OneHot")
def one_hot(call: Call) -> Node:
    """off + (on - off) * hot

    `hot` is 1 where the new dimension counts the index, else 0; off and on are the two values of the operator.
    """
    depth = call.constant(1, "depth")
    values = call.get(2)
    assert depth is not None
    index = call[0]
    axis = dim_of(call.attr("axis", -1), len(index.shape) + 1)
    hot = call.b.one_hot(index, depth=int(depth.reshape(-1)[0]))
    rank = len(hot.shape)
    if axis != rank - 1:
        order = list(range(rank - 1))
        order.insert(axis, rank - 1)
        hot = call.b.transpose(hot, perm=tuple(order))
    assert values is not None
    off, on = (call.b.slice(values, dim=0, start=place, count=1) for place in (0, 1))
    return call.b.retype(call.b.add(call.b.multiply(hot, call.b.subtract(on, off)), off), values.dtype)


@onnx_op("GatherND")
def gather_nd(call: Call) -> Node:
    """By constant indices: a move of whole rows.

    Emits `take` of the rows of x, flattened, that the last dimension of the indices names. Raises NotSupportedError for
    indices that are computed."""
    x = call[0]
    index = call.constant(1, "indices")
    assert index is not None
    batch = call.attr("batch_dims", 0)
    depth = index.shape[-1]
    lead = x.shape[: batch + depth]
    if batch:
        places = np.indices(index.shape[:-1])[:batch]
    else:
        places = []
    parts = [*places, *(index[..., k] % lead[batch + k] for k in range(depth))]
    flat = np.ravel_multi_index([np.broadcast_to(part, index.shape[:-1]) for part in parts], lead)
    rows = reshape_to(call, x, (prod(lead), *x.shape[batch + depth :]))
    rows_taken = call.b.take(rows, dim=0, index=flat.reshape(-1))
    return reshape_to(call, rows_taken, (*index.shape[:-1], *x.shape[batch + depth :]))


_REDUCTIONS = {"none": "none", "add": "sum", "mul": "prod", "max": "amax", "min": "amin"}
"""The reductions of `scatter` by ONNX's names."""


def _read_reduction(call: Call) -> str:
    """Return the reduction of a scatter by the name that `Scatter` has for it. Raises NotSupportedError for one that it
    does not have."""
    word = call.attr("reduction", b"none").decode()
    if word not in _REDUCTIONS:
        raise call.refuse(f"reduction {word}")
    return _REDUCTIONS[word]


@onnx_op("ScatterElements", "Scatter")
def scatter_along_axis(call: Call) -> Node:
    """`scatter` along the axis: the last value for a place, or all of them reduced"""
    how = Scatter(call.attr("axis", 0), _read_reduction(call), from_end=True)
    return scatter_elements(call.b, call[0], call[1], call[2], how)


@onnx_op("ScatterND")
def scatter_nd(call: Call) -> Node:
    """`scatter` of whole slices; several indices become places in the row of all elements that they count"""
    b = call.b
    x = call[0]
    index = call[1]
    values = call[2]
    depth = index.shape[-1]
    lead = x.shape[:depth]
    slice_shape = x.shape[depth:]
    count = prod(index.shape[:-1])
    places: Node | None = None
    for dim, size in enumerate(lead):
        part = reshape_to(call, b.slice(index, dim=len(index.shape) - 1, start=dim, count=1), (count,))
        if part.op == "constant":
            part = b.constant(part.value % size)
        elif depth > 1:  # negative indices of a single dimension are counted from the end later
            part = b.add(part, b.multiply(b.less(part, 0.0), float(size), dtype="float32"), dtype="float32")
        if places is None:
            places = part
        else:
            places = b.add(b.multiply(places, float(size), dtype="float32"), part)
    if places is None:
        raise call.refuse("indices of no dimension")
    rows = reshape_to(call, x, (prod(lead), prod(slice_shape)))
    updates = reshape_to(call, values, (count, prod(slice_shape)))
    result = scatter_slices(b, rows, places, updates, Scatter(0, _read_reduction(call), from_end=depth == 1))
    return reshape_to(call, result, x.shape)


@onnx_op("Shape", "Size")
def shape(call: Call) -> Node:
    """A constant

    It holds the sizes of x from `start` to `end`, or for the operator Size the number of elements."""
    x = call[0]
    if call.op == "Size":
        return call.b.constant(np.int64(prod(x.shape)))
    return call.b.constant(np.asarray(x.shape[call.attr("start", 0) : call.attr("end")], np.int64))


@onnx_op("ConstantOfShape")
def constant_of_shape(call: Call) -> Node:
    """A constant of the shape that the model states

    The value is an attribute, 0 by default. Raises NotSupportedError for a shape that neither a constant, nor the model
    or its example inputs state.
    """
    shape = shape_by_operand(call, 0, "shape", ())
    if "value" in call.attrs:
        value = numpy_helper.to_array(call.attr("value"))
    else:
        value = np.zeros(1, np.float32)
    check_constant_size("ConstantOfShape", shape)
    return call.b.constant(np.full(shape, value[0]))


@onnx_op("EyeLike")
def eye_like(call: Call) -> Node:
    """A constant: an identity matrix of the shape"""
    kind = call.attr("dtype")
    if kind is None:
        dtype = call[0].dtype
    else:
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind)).name
    check_constant_size("EyeLike", call[0].shape)
    return call.b.constant(np.eye(*call[0].shape, k=call.attr("k", 0), dtype=dtype))


@onnx_op("DepthToSpace")
def depth_to_space(call: Call) -> Node:
    """`depth_to_space`: DCR or CRD"""
    mode = call.attr("mode", b"DCR").decode()
    return call.b.depth_to_space(call[0], block=call.attr("blocksize"), columns_first=mode == "DCR")


@onnx_op("SpaceToDepth")
def space_to_depth(call: Call) -> Node:
    """Blocks of pixels as channels: block first, or with mode CRD the channel."""
    mode = call.attr("mode", b"DCR").decode()
    return call.b.space_to_depth(call[0], block=call.attr("blocksize"), block_first=mode == "DCR")


@onnx_op("Trilu")
def trilu(call: Call) -> Node:
    """A mask of ones below or above a diagonal.

    Returns the last two dimensions with zeros on the other side of a diagonal; its number is a constant operand.
    """
    x = call[0]
    k = call.constant(1, "diagonal")
    if k is not None:
        number = int(k.reshape(-1)[0])
    else:
        number = 0
    check_constant_size("Trilu", x.shape[-2:])
    full = np.ones(x.shape[-2:], np.float32)
    if call.attr("upper", 1):
        mask = np.triu(full, number)
    else:
        mask = np.tril(full, number)
    return call.b.multiply(x, call.b.constant(mask), dtype=x.dtype)


@onnx_op("ReverseSequence")
def reverse_sequence(call: Call) -> Node:
    """By constant lengths.

    Always raises NotSupportedError, with its own reason for lengths that are an input.
    """
    raise call.refuse("lengths that are an input") if call[1].op != "constant" else call.refuse("")


# ------------------------------------------------------------------------------------------------------ resizing
@onnx_op("Resize", "Upsample")
def resize(call: Call) -> Node:
    """Nearest, linear or cubic: a matrix along each dimension."""
    x = call[0]
    rank = len(x.shape)
    axes = [dim_of(axis, rank) for axis in call.attr("axes", list(range(rank)))]
    sampling = _read_sampling(call)
    if sampling.mode != "nearest" and not is_float(x):
        raise call.refuse(f"{sampling.mode} between integers, which runtimes round or cut: cast them to a float")
    if _is_resize_11(call):
        call.constant(1, "roi")  # read, and refused where it is computed, whether or not it matters
    out, ratio = _result_sizes(call, x, axes)
    crops = sampling.coordinates == "tf_crop_and_resize"
    matrices: list[tuple[int, Sparse]] = []
    for number, axis in enumerate(axes):
        if out[number] == x.shape[axis] and ratio[number] == 1 and not crops:
            continue
        at = _sample_positions(call, sampling, x.shape[axis], out[number], ratio[number])
        if crops:
            bounds = _crop_bounds(call, number, len(axes), is_scaled=ratio[number] != 1)
            at = _crop_positions_inside(call, sampling, (x.shape[axis], out[number]), bounds)
        matrices.append((axis, Sparse.dense(_resize_matrix(sampling, x.shape[axis], at, ratio[number]))))
    if matrices:
        return call.b.resize(x, matrices=tuple(matrices))
    return x


class _Sampling(NamedTuple):
    """The attributes of `Resize`: how elements of a resized dimension are sampled from the operand."""

    mode: str
    coordinates: str
    rounding: str
    cubic: float
    inside_only: bool
    smooths: bool
    beyond: float


def _is_resize_11(call: Call) -> bool:
    """Return whether the operator is a Resize of opset 11 or later, which has an attribute for coordinates and an
    operand `roi`. Before, and in Upsample, coordinates are asymmetric."""
    return call.op == "Resize" and call.opset >= 11


def _read_sampling(call: Call) -> _Sampling:
    """Return the attributes of the operator, with the defaults of its opset."""
    new = _is_resize_11(call)
    return _Sampling(
        mode=call.attr("mode", b"nearest").decode(),
        coordinates=call.attr("coordinate_transformation_mode", b"half_pixel" if new else b"asymmetric").decode(),
        rounding=call.attr("nearest_mode", b"round_prefer_floor" if new else b"floor").decode(),
        cubic=call.attr("cubic_coeff_a", -0.75),
        inside_only=bool(call.attr("exclude_outside", 0)),
        smooths=bool(call.attr("antialias", 0)),
        beyond=call.attr("extrapolation_value", 0.0),
    )


def _read_scales_and_sizes(call: Call) -> tuple[Array | None, Array | None]:
    """Return the scales and the sizes of a Resize or an Upsample, None where they are left out."""
    new = _is_resize_11(call)
    scales = call.constant(2 if new else 1, "scales")
    if scales is None and call.attr("scales") is not None:
        scales = np.asarray(call.attr("scales"))
    if new:
        sizes = call.constant(3, "sizes")
    else:
        sizes = None
    return scales, sizes


def _stretch_to_sizes(before: Sequence[int], sizes: Sequence[int], policy: str) -> tuple[list[int], list[float]]:
    """Return the sizes that a resize to requested `sizes` gives, and the factors: the requested ones, or with a policy
    that keeps the ratio of the sides one factor for all."""
    ratio = [size / old for size, old in zip(sizes, before, strict=True)]
    if policy == "stretch":
        return list(sizes), ratio
    if policy == "not_larger":
        common = min(ratio)
    else:
        common = max(ratio)
    return [int(old * common + 0.5) for old in before], [common] * len(before)


def _result_sizes(call: Call, x: Node, axes: Sequence[int]) -> tuple[list[int], list[float]]:
    """Return the size of the result along each of `axes`, and the factor by which that axis is scaled. Raises
    NotSupportedError if the operator has neither sizes nor scales."""
    scales, sizes = _read_scales_and_sizes(call)
    policy = call.attr("keep_aspect_ratio_policy", b"stretch").decode()
    if sizes is not None and sizes.size:
        return _stretch_to_sizes([x.shape[axis] for axis in axes], [int(size) for size in sizes], policy)
    if scales is not None and scales.size:
        ratio = [float(scale) for scale in scales]
        grown = [np.float32(x.shape[axis]) * np.float32(scale) for axis, scale in zip(axes, ratio, strict=True)]
        return [int(np.floor(size)) for size in grown], ratio
    raise call.refuse("without sizes and scales")


def _sample_positions(call: Call, sampling: _Sampling, size: int, out: int, factor: float) -> Array:
    """Return the position of each of `out` elements of a resized dimension among its `size` elements; `factor`: how
    much longer it gets. It is computed in float32 as in onnxruntime: between two elements, the last digit decides which
    is nearest. Raises NotSupportedError for an unknown transformation of coordinates."""
    check_constant_size("Resize", (out, size))
    at = np.arange(out, dtype=np.float32)
    scale = np.float32(factor)
    if sampling.coordinates == "half_pixel" or (sampling.coordinates == "pytorch_half_pixel" and out > 1):
        return (at + 0.5) / scale - 0.5
    if sampling.coordinates == "half_pixel_symmetric":
        adjust = np.float32(out) / (scale * np.float32(size))
        return np.float32(size / 2) * (np.float32(1) - adjust) + (at + 0.5) / scale - 0.5
    if sampling.coordinates == "align_corners" and out > 1:
        return at * (size - 1) / (out - 1)
    if sampling.coordinates == "asymmetric":
        return at / scale
    if sampling.coordinates == "tf_half_pixel_for_nn":
        return (at + 0.5) / scale
    if sampling.coordinates in ("pytorch_half_pixel", "align_corners", "tf_crop_and_resize"):
        return np.zeros(out, np.float32)
    raise call.refuse(f"coordinate_transformation_mode={sampling.coordinates}")


def _crop_bounds(call: Call, number: int, count: int, *, is_scaled: bool) -> tuple[float, float]:
    """Return begin and end of the part of axis `number`, of `count`, that `Resize` crops, relative to its length.
    Raises NotSupportedError for a `roi` of another length, and for less than the whole of an axis that is not
    scaled."""
    area = call.constant(1, "roi")
    if area is None or area.size != 2 * count:
        raise call.refuse("a roi that is not two numbers for each axis")
    low = float(area[number])
    high = float(area[number + count])
    if not is_scaled and (low, high) != (0, 1):  # the standard crops, onnxruntime does not
        raise call.refuse("a roi along an axis that is not scaled")
    return low, high


def _crop_positions_inside(
    call: Call, sampling: _Sampling, sizes: tuple[int, int], bounds: tuple[float, float]
) -> Array:
    """Return the positions that a crop of `bounds` samples for the sizes of a dimension before and after. Raise
    NotSupportedError if some lie beyond the elements and stand for another number than 0."""
    size, out = sizes
    at = _crop_positions(size, out, *bounds)
    if sampling.beyond and ((at < 0) | (at > size - 1)).any():
        raise call.refuse(f"extrapolation_value={sampling.beyond}")
    return at


def _crop_positions(size: int, out: int, low: float, high: float) -> Array:
    """Return the position, among `size` elements, of each of `out` elements that are sampled from the part `low` to
    `high` of a dimension, whose whole length is 0 to 1."""
    if out == 1:
        return np.full(1, 0.5 * (low + high) * (size - 1), np.float32)
    first = np.float32(low)
    length = np.float32(high) - np.float32(low)
    return first * (size - 1) + np.arange(out, dtype=np.float32) * length * (size - 1) / (out - 1)


def _resize_matrix(sampling: _Sampling, size: int, at: Array, scale: float) -> Array:
    """Return the weights [out, size] with which the ONNX reference resizes a dimension whose results are sampled at the
    positions `at`; `scale`: how much longer the dimension gets."""
    matrix = np.zeros((at.size, size))
    if sampling.mode == "nearest":
        nearest = {
            "round_prefer_floor": np.ceil(at - 0.5),
            "round_prefer_ceil": np.floor(at + 0.5),
            "floor": np.floor(at),
            "ceil": np.ceil(at),
        }[sampling.rounding]
        matrix[np.arange(at.size), np.clip(nearest, 0, size - 1).astype(int)] = 1
    else:
        # An image that shrinks is smoothed by a kernel that is as wide as what becomes one pixel.
        if sampling.smooths:
            shrink = min(scale, 1.0)
        else:
            shrink = 1.0
        if sampling.mode == "linear":
            kernel = triangle
            reach = 1
        else:
            kernel = partial(cubic, a=sampling.cubic)
            reach = 2
        first = int(np.floor(-reach / shrink)) + 1
        places = np.floor(at)[:, None] + np.arange(first, 2 - first)
        weights = kernel((places - at[:, None]).astype(np.float64) * shrink)
        weights = weights / weights.sum(1, keepdims=True)
        if sampling.inside_only:
            weights = np.where((places < 0) | (places >= size), 0, weights)
            weights = weights / weights.sum(1, keepdims=True)
        rows = np.repeat(np.arange(at.size), weights.shape[1])
        np.add.at(matrix, (rows, np.clip(places, 0, size - 1).astype(int).ravel()), weights.ravel())
    if sampling.coordinates == "tf_crop_and_resize":
        matrix[(at < 0) | (at > size - 1)] = 0
    return matrix.astype(np.float32)
