"""Operators of the twin that work element by element or move elements: arithmetic, activations, softmax, shapes."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from buda_emu.foreign.darwinn.tflite import (
    AddOptions,
    ConcatenationOptions,
    LeakyReluOptions,
    MaximumMinimumOptions,
    MulOptions,
    ResizeBilinearOptions,
    SoftmaxOptions,
    SplitOptions,
    SquaredDifferenceOptions,
    SubOptions,
)
from buda_emu.foreign.darwinn.twin.graph import Array, Tensor, blank
from buda_emu.foreign.darwinn.twin.operators.base import Call, TensorValue, constant, limits, operator
from buda_emu.foreign.darwinn.twin.rounding import (
    Ints,
    Multiplier,
    apply_multiplier,
    exp,
    half_away,
    high,
    multiplier,
    recip,
    right,
)
from buda_emu.support.errors import PackageError

_SUM_HEADROOM = 20
"""Bits by which the operands of a sum are shifted left before they are rescaled."""
_SQUARE_HEADROOM = 7
"""Bits of headroom for operands whose difference is squared, as the square has to fit in 32 bits."""


class Operands(NamedTuple):
    """The two operands and the output of a binary operator; all of one 8-bit type, with one scale each."""

    first: TensorValue
    second: TensorValue
    output: Tensor


def _checked_operands(call: Call, *types: str) -> Operands:
    """Return the operands and the output. Raises UnsupportedError for types other than `types`, for types that
    differ, and for shapes that cannot be broadcast."""
    operands = Operands(call.input(0), call.input(1), call.output())
    first, second, y = operands
    call.types((first.tensor, second.tensor, y), *types)
    if not first.tensor.type == second.tensor.type == y.type:
        raise call.refuse(f"{first.tensor.type} and {second.tensor.type} to {y.type}")
    shapes = first.array.shape, second.array.shape
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        raise call.refuse(f"broadcasting {shapes[0]} and {shapes[1]}") from None
    return operands


def _twice_larger_scale(call: Call, operands: Operands) -> float:
    """Return twice the larger of the two operands' scales. Sums and squared differences bring both operands to this
    scale, divided by 2^headroom, before they combine them."""
    return 2 * max(call.scale_and_zero(value.tensor)[0] for value in (operands.first, operands.second))


def _rescale_operand(call: Call, value: TensorValue, headroom: int, twice: float, sign: int = 1) -> Ints:
    """Return an operand, less its zero point and times `sign`, at the scale `twice` / 2^headroom."""
    scale, zero = call.scale_and_zero(value.tensor)
    by = multiplier(scale / twice)
    # SUB's kernel negates the multiplier: a negated product is rounded otherwise than the product
    return apply_multiplier((value.array.astype(np.int64) - zero) << headroom, Multiplier(sign * by.q, by.e))


def _add_signed(call: Call, act: int, sign: int) -> list[Array]:
    """Return the first operand plus `sign` times the second one, at the output's scale."""
    operands = _checked_operands(call, "uint8", "int8")
    twice = _twice_larger_scale(call, operands)
    first = _rescale_operand(call, operands.first, _SUM_HEADROOM, twice)
    second = _rescale_operand(call, operands.second, _SUM_HEADROOM, twice, sign)
    sy, zy = call.scale_and_zero(operands.output)
    values = apply_multiplier(first + second, multiplier(twice / ((1 << _SUM_HEADROOM) * sy))) + zy
    return [call.check_shape(call.clamp(values, act))]


@operator(0, "uint8, int8")
def add(call: Call) -> list[Array]:
    """Both operands to one finer scale, their sum to the output's."""
    return _add_signed(call, call.option(AddOptions).act, 1)


@operator(41, "uint8, int8")
def subtract(call: Call) -> list[Array]:
    """Both operands to one finer scale, their difference to the output's."""
    return _add_signed(call, call.option(SubOptions).act, -1)


@operator(18, "uint8, int8")
def multiply(call: Call) -> list[Array]:
    """The product of both operands, rescaled with one multiplier, which is computed in float32."""
    options = call.option(MulOptions)
    first, second, y = _checked_operands(call, "uint8", "int8")
    s1, z1 = call.scale_and_zero(first.tensor)
    s2, z2 = call.scale_and_zero(second.tensor)
    sy, zy = call.scale_and_zero(y)
    real = np.float32(s1) * np.float32(s2) / np.float32(sy)
    product = (first.array.astype(np.int64) - z1) * (second.array.astype(np.int64) - z2)
    return [call.check_shape(call.clamp(apply_multiplier(product, multiplier(float(real))) + zy, options.act))]


@operator(99, "int8")
def squared_difference(call: Call) -> list[Array]:
    """Both operands to one finer scale, the square of their difference to the output's."""
    call.option(SquaredDifferenceOptions)
    operands = _checked_operands(call, "int8")
    twice = _twice_larger_scale(call, operands)
    first = _rescale_operand(call, operands.first, _SQUARE_HEADROOM, twice)
    second = _rescale_operand(call, operands.second, _SQUARE_HEADROOM, twice)
    sy, zy = call.scale_and_zero(operands.output)
    by = multiplier(twice * twice / ((1 << (2 * _SQUARE_HEADROOM)) * sy))
    values = apply_multiplier((first - second) ** 2, by) + zy
    return [call.check_shape(np.clip(values, *limits(operands.output)).astype(operands.output.dtype))]


def _extreme(call: Call, choose: Callable[[Any, Any], Any]) -> list[Array]:
    """Return the elements that `choose` picks from the stored values of both operands. Like the kernel it does not
    look at scales."""
    call.option(MaximumMinimumOptions)
    first, second, _ = _checked_operands(call, "uint8", "int8")
    return [call.check_shape(choose(first.array, second.array))]


@operator(55, "uint8, int8")
def maximum(call: Call) -> list[Array]:
    """The greater of both stored values; scales are not looked at."""
    return _extreme(call, np.maximum)


@operator(57, "uint8, int8")
def minimum(call: Call) -> list[Array]:
    """The smaller of both stored values; scales are not looked at."""
    return _extreme(call, np.minimum)


def _apply_activation(call: Call, act: int) -> list[Array]:
    """Return the input at the output's scale, limited to the range of a fused activation, which `act` names by TFLite's
    number."""
    x = call.input(0)
    y = call.output()
    call.types((x.tensor, y), "uint8", "int8")
    call.types((y,), x.tensor.type)
    (sx, zx) = call.scale_and_zero(x.tensor)
    (sy, zy) = call.scale_and_zero(y)
    values = apply_multiplier(x.array.astype(np.int64) - zx, multiplier(sx / sy)) + zy
    return [call.check_shape(call.clamp(values, act))]


@operator(19, "uint8, int8")
def relu(call: Call) -> list[Array]:
    """The maximum of x and 0, rescaled."""
    return _apply_activation(call, 1)


@operator(21, "uint8, int8")
def relu6(call: Call) -> list[Array]:
    """The input limited to 0 to 6, rescaled."""
    return _apply_activation(call, 3)


def _rescale_leaky(call: Call, slope: Ints, slope_scale: float, x_value: TensorValue) -> list[Array]:
    """Return elements from 0 on rescaled, and those below 0 times `slope`, each with a multiplier of its own. Slopes
    are stored values less their zero point, which `slope_scale` makes real."""
    y = call.output()
    (sx, zx) = call.scale_and_zero(x_value.tensor)
    (sy, zy) = call.scale_and_zero(y)
    x = x_value.array.astype(np.int64) - zx
    above = apply_multiplier(x, multiplier(sx / sy))
    below = apply_multiplier(x * slope, multiplier(sx * slope_scale / sy))
    values = np.where(x >= 0, above, below) + zy
    return [call.check_shape(np.clip(values, *limits(y)).astype(y.dtype))]


@operator(54, "uint8, int8")
def prelu(call: Call) -> list[Array]:
    """x above 0, x times a tensor of slopes below, rescaled."""
    x, slopes, y = _checked_operands(call, "uint8", "int8")
    if x.array.shape != y.shape:
        raise call.refuse(f"input of shape {x.array.shape} to {y.shape}")
    scale, zero = call.scale_and_zero(slopes.tensor)
    return _rescale_leaky(call, slopes.array.astype(np.int64) - zero, scale, x)


@operator(98, "uint8, int8")
def leaky_relu(call: Call) -> list[Array]:
    """x above 0, x times one positive slope below, rescaled."""
    alpha = call.option(LeakyReluOptions).alpha
    x = call.input(0)
    y = call.output()
    call.types((x.tensor, y), "uint8", "int8")
    call.types((y,), x.tensor.type)
    if not (np.isfinite(alpha) and alpha > 0):
        raise call.refuse(f"a slope of {alpha}")
    return _rescale_leaky(call, np.ones((), np.int64), alpha, x)


@operator(114, "uint8, int8 to uint8, int8")
def quantize(call: Call) -> list[Array]:
    """The input at another scale and zero point."""
    x = call.input(0)
    y = call.output()
    call.types((x.tensor, y), "uint8", "int8")
    (sx, zx) = call.scale_and_zero(x.tensor)
    (sy, zy) = call.scale_and_zero(y)
    values = apply_multiplier(x.array.astype(np.int64) - zx, multiplier(sx / sy)) + zy
    return [call.check_shape(np.clip(values, *limits(y)).astype(y.dtype))]


@operator(56, "uint8, int8 to int32, int64")
def arg_max(call: Call) -> list[Array]:
    """The place of the first greatest element along a dimension."""
    x = call.input(0)
    y = call.output()
    call.types((x.tensor,), "uint8", "int8")
    call.types((y,), "int32", "int64")
    axes = constant(call, 1).reshape(-1)
    if len(axes) != 1 or not -x.array.ndim <= axes[0] < x.array.ndim or not x.array.size:
        raise call.refuse(f"dimension {axes.tolist()} of {x.array.ndim}")
    return [call.check_shape(np.argmax(x.array, int(axes[0])).astype(y.dtype))]


_BITS = 32  # of the argument of exp (DARWINN_TWIN 4, softmax)
_INTEGER_BITS = 5  # of them, likewise
_SUM_BITS = 12  # by which terms are shifted before they are summed, likewise


@operator(25, "uint8, int8")
def softmax(call: Call) -> list[Array]:
    """The exponential of each element over their sum along the last dimension, in fixed point."""
    beta = call.option(SoftmaxOptions).beta
    x = call.input(0)
    y = call.output()
    call.types((x.tensor, y), "uint8", "int8")
    call.types((y,), x.tensor.type)
    sx, _ = call.scale_and_zero(x.tensor)
    call.scale_and_zero(y)
    if not (np.isfinite(beta) and beta > 0) or not x.array.size:
        raise call.refuse(f"beta {beta} of an input of shape {x.array.shape}")
    fraction = _BITS - 1 - _INTEGER_BITS
    by = multiplier(min(beta * sx * (1 << fraction), float((1 << 31) - 1)))
    least = -int(np.floor(((1 << _INTEGER_BITS) - 1) * 2.0**fraction / 2.0**by.e))
    rows = x.array.reshape(-1, x.array.shape[-1]).astype(np.int64)
    d = rows - rows.max(axis=1, keepdims=True)
    counts = d >= least
    e = np.where(counts, exp(apply_multiplier(np.where(counts, d, 0), by), _INTEGER_BITS, _BITS), 0)
    total = np.where(counts, right(e, _SUM_BITS), 0).sum(axis=1, keepdims=True)
    zeros = _BITS - np.ceil(np.log2(total + 1)).astype(np.int64)
    r = recip(((total << zeros) & ((1 << _BITS) - 1)) - (1 << (_BITS - 1)), _BITS)
    top = limits(y)[1] - limits(y)[0]
    values = np.where(counts, np.minimum(right(high(r, e), 35 - zeros), top), 0) + limits(y)[0]
    return [call.check_shape(values.astype(y.dtype).reshape(x.array.shape))]


Floats = NDArray[np.float32]


@operator(2, "any; another scale than the output's: uint8")
def concatenation(call: Call) -> list[Array]:
    """Inputs one after the other; those of another scale or zero point are rescaled in float32."""
    options = call.option(ConcatenationOptions)
    y = call.output()
    if options.act:
        raise call.refuse(f"activation {options.act}")
    values = [call.input(number) for number in range(len(call.inputs))]
    call.types([value.tensor for value in values], y.type)
    axis = options.axis
    if not values or not -len(y.shape) <= axis < len(y.shape):
        raise call.refuse(f"dimension {axis} of {len(y.shape)}")
    try:
        return [call.check_shape(np.concatenate([_rescale_to_output(call, value) for value in values], axis))]
    except ValueError as error:
        raise PackageError(f"{call.name}: {error}") from None


def _rescale_to_output(call: Call, value: TensorValue) -> Array:
    """Return an input of a concatenation at the scale and zero point of the output; unchanged where it has them
    already. Raises UnsupportedError where they differ and the output is not uint8."""
    x = value.tensor
    y = call.output()
    if x.scale == y.scale and x.zero_point == y.zero_point:
        return value.array
    if y.type != "uint8":
        raise call.refuse(f"{x.type} {x.name!r} of another scale than the output's")
    (sx, zx) = call.scale_and_zero(x)
    (sy, zy) = call.scale_and_zero(y)
    k = np.float32(sx) * (np.float32(1) / np.float32(sy))
    b = np.float32(-zx) * k
    return np.clip(half_away(value.array.astype(np.float32) * k + b) + zy, *limits(y)).astype(y.dtype)


@operator(49, "any")
def split(call: Call) -> list[Array]:
    """Equal parts of the input along a dimension."""
    number = call.option(SplitOptions).number
    x = call.input(1).array
    axes = constant(call, 0).reshape(-1)
    if len(axes) != 1 or not -x.ndim <= axes[0] < x.ndim or number != len(call.outputs) or number < 1:
        raise call.refuse(f"dimension {axes.tolist()} of {x.ndim} into {number} for {len(call.outputs)} outputs")
    if x.shape[axes[0]] % number:
        raise call.refuse(f"{x.shape[axes[0]]} into {number} equal parts")
    parts = np.split(x, number, int(axes[0]))
    call.types(call.outputs, call.input(1).tensor.type)
    return [call.check_shape(np.ascontiguousarray(part), place) for place, part in enumerate(parts)]


@operator(22, "any")
def reshape(call: Call) -> list[Array]:
    """The elements of the input in the output's shape."""
    x = call.input(0)
    y = call.output()
    call.types((y,), x.tensor.type)
    if x.array.size != int(np.prod(y.shape)):
        raise PackageError(f"{call.name}: {x.array.shape} cannot take the shape {y.shape}")
    return [x.array.reshape(y.shape)]


@operator(34, "uint8, int8")
def pad(call: Call) -> list[Array]:
    """The input with the output's zero point around it."""
    x = call.input(0)
    y = call.output()
    call.types((x.tensor, y), "uint8", "int8")
    call.types((y,), x.tensor.type)
    ends = constant(call, 1)
    if ends.shape != (x.array.ndim, 2) or ends.min(initial=0) < 0:
        raise call.refuse(f"padding {ends.tolist()} of {x.array.ndim} dimensions")
    _, zero = call.scale_and_zero(y)
    if y.shape != tuple(n + int(a) + int(b) for n, (a, b) in zip(x.array.shape, ends, strict=True)):
        raise PackageError(f"{call.name}: {x.array.shape} padded by {ends.tolist()} is not {y.shape}")
    out = blank(y.shape, y.dtype, f"{call.name} {y.name!r}")
    out[...] = zero
    out[tuple(slice(int(a), int(a) + n) for n, (a, _) in zip(x.array.shape, ends, strict=True))] = x.array
    return [out]


@operator(23, "uint8")
def resize_bilinear(call: Call) -> list[Array]:
    """The mean of the four nearest elements, weighted by their distances, in float32."""
    options = call.option(ResizeBilinearOptions)
    x = call.input(0)
    y = call.output()
    call.types((x.tensor, y), "uint8")
    size = constant(call, 1).reshape(-1)
    if x.array.ndim != 4 or len(size) != 2 or min(*size, *x.array.shape) < 1:
        raise call.refuse(f"input of shape {x.array.shape} to {size.tolist()}")
    if options.align_corners and options.half_pixel:
        raise call.refuse("align_corners with half_pixel")
    if y.shape != (x.array.shape[0], int(size[0]), int(size[1]), x.array.shape[3]):
        raise PackageError(f"{call.name}: {x.array.shape} resized to {size.tolist()} is not {y.shape}")
    out = blank(y.shape, y.dtype, f"{call.name} {y.name!r}")
    p0, p1, dp = _neighbours(x.array.shape[1], int(size[0]), options)
    r0, r1, dr = _neighbours(x.array.shape[2], int(size[1]), options)
    dr = dr[:, None]
    unit = np.float32(1)
    half = np.float32(0.5)
    values = x.array.astype(np.float32)
    for row in range(len(p0)):  # a row at a time, so that temporary arrays are small
        low = values[:, p0[row]]
        high = values[:, p1[row]]
        d = dp[row]
        total = low[:, r0] * (unit - d) * (unit - dr)
        total += high[:, r0] * d * (unit - dr)
        total += low[:, r1] * (unit - d) * dr
        total += high[:, r1] * d * dr
        out[:, row] = (total + half).astype(np.int32)
    return [out]


def _neighbours(size: int, out: int, options: ResizeBilinearOptions) -> tuple[Any, Any, Floats]:
    """Return, for each of `out` positions along a dimension of `size` elements, the numbers of the elements below and
    above it, and its distance from the one below."""
    step = np.float32(size) / np.float32(out)
    if options.align_corners and out > 1:
        step = np.float32(size - 1) / np.float32(out - 1)
    number = np.arange(out, dtype=np.float32)
    half = np.float32(0.5)
    v = number * step
    if options.half_pixel:
        v = (number + half) * step - half
    low = np.maximum(np.floor(v).astype(np.int64), 0)
    high = np.minimum(np.ceil(v).astype(np.int64), size - 1)
    return np.minimum(low, size - 1), np.maximum(high, 0), v - low.astype(np.float32)
