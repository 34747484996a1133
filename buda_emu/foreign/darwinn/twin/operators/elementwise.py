"""Element-wise operators: ADD, SUB, MUL, SQUARED_DIFFERENCE, MAXIMUM, MINIMUM, and the activations RELU, RELU6,
PRELU, LEAKY_RELU.

The two operands of a binary operator are broadcast against each other as numpy does. DARWINN_TWIN 4 gives ADD's
arithmetic; that of the others was held against the reference kernels of ai-edge-litert, bit for bit.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from buda_emu.foreign.darwinn.tflite import (
    AddOptions,
    LeakyReluOptions,
    MaximumMinimumOptions,
    MulOptions,
    SquaredDifferenceOptions,
    SubOptions,
)
from buda_emu.foreign.darwinn.twin.graph import Array, Tensor
from buda_emu.foreign.darwinn.twin.operators.base import Call, Value, limits, operator
from buda_emu.foreign.darwinn.twin.rounding import Ints, Multiplier, multiplier, scaled

_SUM_HEADROOM = 20
"""Bits by which the operands of a sum are shifted left before they are rescaled."""
_SQUARE_HEADROOM = 7
"""The same for operands whose difference is squared, which has to fit in 32 bits."""


class Operands(NamedTuple):
    """The two operands and the output of a binary operator; all of one 8-bit type, with one scale each."""

    first: Value
    second: Value
    output: Tensor


def _operands(call: Call, *types: str) -> Operands:
    """Read the operands. Refuses other types, and shapes that cannot be broadcast."""
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
    return 2 * max(call.quantised(value.tensor)[0] for value in (operands.first, operands.second))


def _rescale_operand(call: Call, value: Value, headroom: int, twice: float, sign: int = 1) -> Ints:
    """Bring an operand to the scale `twice` / 2^headroom, with its sign."""
    scale, zero = call.quantised(value.tensor)
    by = multiplier(scale / twice)
    # SUB's kernel negates the multiplier: a negated product is rounded otherwise than the product
    return scaled((value.array.astype(np.int64) - zero) << headroom, Multiplier(sign * by.q, by.e))


def _sum(call: Call, act: int, sign: int) -> list[Array]:
    """The first operand and `sign` times the second one."""
    operands = _operands(call, "uint8", "int8")
    twice = _twice_larger_scale(call, operands)
    first = _rescale_operand(call, operands.first, _SUM_HEADROOM, twice)
    second = _rescale_operand(call, operands.second, _SUM_HEADROOM, twice, sign)
    sy, zy = call.quantised(operands.output)
    values = scaled(first + second, multiplier(twice / ((1 << _SUM_HEADROOM) * sy))) + zy
    return [call.shaped(call.clamped(values, act))]


@operator(0, "uint8, int8")
def add(call: Call) -> list[Array]:
    """Both operands to one finer scale, their sum to the output's."""
    return _sum(call, call.option(AddOptions).act, 1)


@operator(41, "uint8, int8")
def subtract(call: Call) -> list[Array]:
    """Both operands to one finer scale, their difference to the output's."""
    return _sum(call, call.option(SubOptions).act, -1)


@operator(18, "uint8, int8")
def multiply(call: Call) -> list[Array]:
    """The product of both operands, rescaled with one multiplier, which is computed in float32."""
    options = call.option(MulOptions)
    first, second, y = _operands(call, "uint8", "int8")
    (s1, z1), (s2, z2), (sy, zy) = (call.quantised(item) for item in (first.tensor, second.tensor, y))
    real = np.float32(s1) * np.float32(s2) / np.float32(sy)
    product = (first.array.astype(np.int64) - z1) * (second.array.astype(np.int64) - z2)
    return [call.shaped(call.clamped(scaled(product, multiplier(float(real))) + zy, options.act))]


@operator(99, "int8")
def squared_difference(call: Call) -> list[Array]:
    """Both operands to one finer scale, the square of their difference to the output's."""
    call.option(SquaredDifferenceOptions)
    operands = _operands(call, "int8")
    twice = _twice_larger_scale(call, operands)
    first = _rescale_operand(call, operands.first, _SQUARE_HEADROOM, twice)
    second = _rescale_operand(call, operands.second, _SQUARE_HEADROOM, twice)
    sy, zy = call.quantised(operands.output)
    by = multiplier(twice * twice / ((1 << (2 * _SQUARE_HEADROOM)) * sy))
    values = scaled((first - second) ** 2, by) + zy
    return [call.shaped(np.clip(values, *limits(operands.output)).astype(operands.output.dtype))]


def _extreme(call: Call, choose: Callable[[Any, Any], Any]) -> list[Array]:
    """Choose among the stored values, as the kernel does: it looks at no scale."""
    call.option(MaximumMinimumOptions)
    first, second, _ = _operands(call, "uint8", "int8")
    return [call.shaped(choose(first.array, second.array))]


@operator(55, "uint8, int8")
def maximum(call: Call) -> list[Array]:
    """The greater of both stored values; scales are not looked at."""
    return _extreme(call, np.maximum)


@operator(57, "uint8, int8")
def minimum(call: Call) -> list[Array]:
    """The smaller of both stored values; scales are not looked at."""
    return _extreme(call, np.minimum)


def _activation(call: Call, act: int) -> list[Array]:
    """Rescale to the output's scale and limit to the range of a fused activation."""
    x, y = call.input(0), call.output()
    call.types((x.tensor, y), "uint8", "int8")
    call.types((y,), x.tensor.type)
    (sx, zx), (sy, zy) = call.quantised(x.tensor), call.quantised(y)
    values = scaled(x.array.astype(np.int64) - zx, multiplier(sx / sy)) + zy
    return [call.shaped(call.clamped(values, act))]


@operator(19, "uint8, int8")
def relu(call: Call) -> list[Array]:
    """max(x, 0), rescaled."""
    return _activation(call, 1)


@operator(21, "uint8, int8")
def relu6(call: Call) -> list[Array]:
    """x limited to 0 to 6, rescaled."""
    return _activation(call, 3)


def _leaky(call: Call, slope: Ints, slope_scale: float, x_value: Value) -> list[Array]:
    """Rescale what is above 0, and what is below times the slope; each with a multiplier of its own."""
    y = call.output()
    (sx, zx), (sy, zy) = call.quantised(x_value.tensor), call.quantised(y)
    x = x_value.array.astype(np.int64) - zx
    above = scaled(x, multiplier(sx / sy))
    below = scaled(x * slope, multiplier(sx * slope_scale / sy))
    values = np.where(x >= 0, above, below) + zy
    return [call.shaped(np.clip(values, *limits(y)).astype(y.dtype))]


@operator(54, "uint8, int8")
def prelu(call: Call) -> list[Array]:
    """x above 0, x times a tensor of slopes below, rescaled."""
    x, slopes, y = _operands(call, "uint8", "int8")
    if x.array.shape != y.shape:
        raise call.refuse(f"input of shape {x.array.shape} to {y.shape}")
    scale, zero = call.quantised(slopes.tensor)
    return _leaky(call, slopes.array.astype(np.int64) - zero, scale, x)


@operator(98, "uint8, int8")
def leaky_relu(call: Call) -> list[Array]:
    """x above 0, x times one positive slope below, rescaled."""
    alpha = call.option(LeakyReluOptions).alpha
    x, y = call.input(0), call.output()
    call.types((x.tensor, y), "uint8", "int8")
    call.types((y,), x.tensor.type)
    if not (np.isfinite(alpha) and alpha > 0):
        raise call.refuse(f"a slope of {alpha}")
    return _leaky(call, np.ones((), np.int64), alpha, x)
