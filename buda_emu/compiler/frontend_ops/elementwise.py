"""Element by element: decompositions into core ops (FRONTEND 2)."""

from math import log, pi
from typing import Any, Final

import numpy as np

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node, is_positive, never_negative
from buda_emu.compiler.graph.registry import composite
from buda_emu.spec.precision import STAND_IN

_op = composite("elementwise")


@_op
def negative(b: Builder, x: Node) -> Node:
    """-x = x * -1"""
    return b.multiply(x, -1.0, dtype=x.dtype)


@_op
def divide(b: Builder, x: Node, y: Node) -> Node:
    """x / y = x * reciprocal(y)"""
    if x.op == y.op == "constant":
        return b.constant(np.divide(x.value, y.value))
    return b.multiply(x, b.reciprocal(y))


@_op
def minimum(b: Builder, x: Node, y: Node) -> Node:
    """min(x, y) = -max(-x, -y)"""
    return b.negative(b.maximum(b.negative(x), b.negative(y)))


@_op
def clip(b: Builder, x: Node, *, low: float | None = None, high: float | None = None) -> Node:
    """x between `low` and `high`: relu where low is 0, else maximum and minimum"""
    if low == 0 and high is not None and high > 0:
        return b.relu(x, threshold=float(high), mode="max", dtype=x.dtype)
    if low == 0 and high is None:
        return b.relu(x, dtype=x.dtype)
    if low is not None:
        x = b.maximum(x, float(low), dtype=x.dtype)
    if high is None:
        return x
    return b.minimum(x, float(high), dtype=x.dtype)


@_op
def rsqrt(b: Builder, x: Node) -> Node:
    """1 / sqrt(x)"""
    return b.reciprocal(b.sqrt(x))


@_op
def silu(b: Builder, x: Node, *, alpha: float = 1.0) -> Node:
    """x * sigmoid(alpha x)"""
    return b.multiply(x, b.sigmoid(x if alpha == 1 else b.multiply(x, alpha)))


@_op
def softplus(b: Builder, x: Node, *, beta: float = 1.0) -> Node:
    """log(1 + exp(beta x)) / beta = max(x, 0) + log(1 + exp(-|beta x|)) / beta"""
    if beta == 1:
        scaled = x
    else:
        scaled = b.multiply(x, beta)
    tail = b.log(b.add(b.exp(b.negative(b.abs(scaled))), 1.0))
    return b.add(b.relu(x), tail if beta == 1 else b.multiply(tail, 1 / beta))


@_op
def mish(b: Builder, x: Node) -> Node:
    """x * tanh(softplus(x))"""
    return b.multiply(x, b.tanh(b.softplus(x)))


@_op
def softsign(b: Builder, x: Node) -> Node:
    """x / (1 + |x|)"""
    return b.divide(x, b.add(b.abs(x), 1.0))


@_op
def hard_sigmoid(b: Builder, x: Node, *, alpha: float = 1 / 6, beta: float = 0.5) -> Node:
    """alpha x + beta between 0 and 1"""
    return b.clip(b.add(b.multiply(x, alpha), beta), low=0.0, high=1.0)


@_op
def hard_swish(b: Builder, x: Node) -> Node:
    """x * hard_sigmoid(x)"""
    return b.multiply(x, b.hard_sigmoid(x))


@_op
def elu(b: Builder, x: Node, *, alpha: float = 1.0, scale: float = 1.0, slope: float = 1.0) -> Node:
    """scale * (max(x, 0) + alpha (exp(slope min(x, 0)) - 1))"""
    low = b.subtract(x, b.relu(x))
    tail = b.multiply(b.subtract(b.exp(b.multiply(low, slope)), 1.0), alpha * scale)
    return b.add(b.multiply(b.relu(x), scale), tail)


@_op
def prelu(b: Builder, x: Node, slope: Node) -> Node:
    """max(x, 0) + slope * min(x, 0)"""
    high = b.relu(x)
    return b.add(high, b.multiply(b.subtract(x, high), slope))


@_op
def erf(b: Builder, x: Node) -> Node:
    """x P(x^2) / Q(x^2) for x between -4 and 4, within 6e-6"""
    x = b.clip(x, low=-4.0, high=4.0)
    z = b.square(x)
    top = _evaluate_polynomial(b, z, _ERF_P)
    return b.multiply(b.multiply(x, top), b.reciprocal(_evaluate_polynomial(b, z, _ERF_Q)))


# Coefficients of this file: lowest power first, fitted by iterated least squares to the function itself in float64;
# those of GELU with greater weights where the error is largest, until the largest errors are alike.
_ERF_P = [1.128403902053833, 0.17230243980884552, 0.05005794018507004, 0.0015398464165627956]
_ERF_Q = [1.0, 0.48625448346138, 0.10585588961839676, 0.012534359470009804, 7.33793931431137e-05]
_GELU = [1.5950157642364502, 0.0740112960338593, -0.0007030343404039741]


def _evaluate_polynomial(b: Builder, x: Node, coefficients: list[float]) -> Node:
    """Evaluate a polynomial by Horner's scheme; coefficients begin with the constant term."""
    sum_: Any = b.constant(np.float32(coefficients[-1]))
    for value in reversed(coefficients[:-1]):
        sum_ = b.add(b.multiply(x, sum_), value)
    return sum_


@_op
def gelu(b: Builder, x: Node, *, approximate: str = "none") -> Node:
    """x times the normal distribution up to x, as x sigmoid(x P(x^2)), within 2.6e-5; or the device's own"""
    if approximate == "tanh":
        return b.gelu_tanh(x)
    z = b.relu(b.square(x), threshold=36.0, mode="max")  # P would turn far outside
    return b.multiply(x, b.sigmoid(b.multiply(x, _evaluate_polynomial(b, z, _GELU))))


# --------------------------------------------------------------------------------- logarithms and powers of other bases
@_op
def log2(b: Builder, x: Node) -> Node:
    """log(x) / log(2)"""
    return b.multiply(b.log(x), 1 / log(2))


@_op
def log10(b: Builder, x: Node) -> Node:
    """log(x) / log(10)"""
    return b.multiply(b.log(x), 1 / log(10))


@_op
def exp2(b: Builder, x: Node) -> Node:
    """exp(x log(2))"""
    return b.exp(b.multiply(x, log(2)))


# ----------------------------------------------------------------------------------------- integers, powers
@_op
def sign(b: Builder, x: Node) -> Node:
    """(x > 0) - (x < 0)"""
    return b.subtract(b.greater(x, 0.0, dtype=x.dtype), b.less(x, 0.0, dtype=x.dtype), dtype=x.dtype)


@_op
def round_decimals(b: Builder, x: Node, *, decimals: int) -> Node:
    """the nearest multiple of 10^-decimals, halves to even"""
    power = 10.0 ** abs(decimals)
    if decimals >= 0:
        return b.multiply(b.round(b.multiply(x, power)), 1 / power)
    share = b.multiply(x, 1 / power)
    error = b.subtract(x, b.multiply(share, power))  # the inverse of a power of ten is a little off
    return b.multiply(b.round(b.add(share, b.multiply(error, 1 / power))), power)


@_op
def modulo(b: Builder, x: Node, y: Node, *, truncated: bool = False) -> Node:
    """what is left of x when y is taken off as often as it goes; has the sign of y, truncated: that of x"""
    if truncated:
        _, remainder = _divide_with_remainder(b, b.abs(x), b.abs(y))
        return b.multiply(b.sign(x), remainder, dtype=x.dtype)
    sign, x, y = _make_divisor_positive(b, x, y)
    _, remainder = _divide_with_remainder(b, x, y)
    if sign is None:
        return b.identity(remainder, dtype=x.dtype)
    return b.multiply(sign, remainder, dtype=x.dtype)


@_op
def whole_quotient(b: Builder, x: Node, y: Node, *, below: bool = False) -> Node:
    """how often y goes into x as an integer, towards 0, or at or below x / y"""
    if below:
        _, x, y = _make_divisor_positive(b, x, y)
        quotient, _ = _divide_with_remainder(b, x, y)
        return b.identity(quotient, dtype=x.dtype)
    quotient, _ = _divide_with_remainder(b, b.abs(x), b.abs(y))
    return b.multiply(b.multiply(b.sign(x), b.sign(y)), quotient, dtype=x.dtype)


def _make_divisor_positive(b: Builder, x: Node, y: Node) -> tuple[Node | None, Node, Node]:
    """Return the sign of y, and both operands times it; the sign is None if y is a constant above 0."""
    if y.op == "constant" and (y.value > 0).all():
        return None, x, y
    sign = b.sign(y)
    return sign, b.multiply(sign, x, dtype=x.dtype), b.abs(y)


def _divide_with_remainder(b: Builder, x: Node, y: Node) -> tuple[Node, Node]:
    """Return the whole quotient and the remainder of x by y, which is above 0. The device's quotient may be slightly
    off, and its floor one too many or too few; the remainder shows that, and both are corrected."""
    quotient = b.floor(b.divide(x, y))
    remainder = x
    for part in _split_exactly(b, y):
        remainder = b.subtract(remainder, b.multiply(part, quotient), dtype="float32")
    correction = b.subtract(b.greater_equal(remainder, y), b.less(remainder, 0.0), dtype="float32")
    return b.add(quotient, correction, dtype="float32"), b.subtract(
        remainder, b.multiply(y, correction), dtype="float32"
    )


_SPLIT = 2.0**12 + 1
"""Veltkamp's factor for float32: the high part has 12 bits, and its products with numbers up to 2^12 are exact."""


def _split_exactly(b: Builder, y: Node) -> tuple[Node, ...]:
    """Return two summands of few bits each of a float, so that subtracting multiples of them from x is exact, even near
    a multiple; y alone if it has few bits itself or is of integers."""
    if np.dtype(y.dtype).kind != "f" and y.op != "constant":
        return (y,)
    if y.op == "constant":
        value = np.asarray(y.value, np.float32)
        wide = value * np.float32(_SPLIT)
        high = wide - (wide - value)
        if (high == value).all():
            return (y,)
        return (b.constant(high), b.constant(value - high))
    wide = b.multiply(y, _SPLIT)
    high = b.subtract(wide, b.subtract(wide, y))
    return high, b.subtract(y, high)


@_op
def pow_(b: Builder, x: Node, y: Node) -> Node:
    """exp(y log |x|), negative where x is and y is odd, NaN where y is no integer; 0 to the power y for 0; squares,
    powers and roots for some constant y"""
    if x.op == y.op == "constant":
        return b.constant(np.power(x.value.astype(np.float32), y.value.astype(np.float32)))
    exponent = _common_exponent(x, y)
    if exponent is None:
        return _general_power(b, x, y)
    simple = _simple_power(b, x, exponent)
    if simple is not None:
        return simple
    if exponent % 1 and (exponent > 0 or is_positive(b.graph, x.name)):
        return _fractional_power(b, x, exponent)
    return _general_power(b, x, y)


def _common_exponent(x: Node, y: Node) -> float | None:
    """Return the one number of which y consists, None where its elements differ, are no constants, or where it gives
    the power a larger shape than x has."""
    if y.op != "constant" or not y.value.size or len(y.shape) > len(x.shape):
        return None
    number = y.value.flat[0]
    if np.any(y.value != number) or np.broadcast_shapes(x.shape, y.shape) != x.shape:
        return None
    return float(number)


def _fractional_power(b: Builder, x: Node, exponent: float) -> Node:
    """Return x to a constant power that is no integer, and is above 0 unless x is: 0 of 0, NaN below 0, as a root of
    that has no result."""
    if is_positive(b.graph, x.name):
        return b.exp(b.multiply(b.log(x), exponent))
    power = b.exp(b.multiply(b.log(b.abs(x)), exponent))
    power = b.multiply(power, b.greater(x, 0.0, dtype="float32"))  # the reference's logarithm of 0 is finite
    if never_negative(b.graph, x.name):
        return power
    return b.add(power, b.sqrt(b.minimum(x, 0.0)))


_STEEP_EXPONENT: Final = 8.0
"""From here on also the reference's logarithm of 0, -15.94, times the exponent has the exponential 0, or infinity."""


def _general_power(b: Builder, x: Node, y: Node) -> Node:
    """Return x to the power y. The logarithm of 0 counts as -2^100, so that its products are infinite, or 0 for
    exponent 0; below 0 the result is negative for odd exponents, and NaN for those that are no integers."""
    size = b.log(b.abs(x))
    is_steep = y.op == "constant" and bool((np.abs(y.value) >= _STEEP_EXPONENT).all())
    if not is_steep and not is_positive(b.graph, x.name):
        zero = b.less_equal(b.abs(x), 0.0, dtype="float32")
        size = b.subtract(size, b.multiply(zero, STAND_IN))
    power = b.exp(b.multiply(size, y))
    if never_negative(b.graph, x.name):
        return power
    odd, fractional = _kinds_of_exponents(b, y)
    below = b.less(x, 0.0)
    flip = b.multiply(below, odd)
    power = b.multiply(power, b.subtract(1.0, b.multiply(flip, 2.0)))
    if fractional is None:
        return power
    return b.add(power, b.sqrt(b.negative(b.multiply(below, fractional, dtype="float32"))))


def _kinds_of_exponents(b: Builder, y: Node) -> tuple[Node, Node | None]:
    """Return 1 where an exponent is odd, and 1 where it is no integer, or None if all are integers."""
    if y.op == "constant":
        exponents = np.nan_to_num(y.value.astype(np.float64), posinf=STAND_IN, neginf=-STAND_IN)
        odd = b.constant((np.abs(exponents % 2) == 1).astype(np.float32))
        fractional = exponents % 1 != 0
        return odd, b.constant(fractional.astype(np.float32)) if fractional.any() else None
    odd = b.abs(b.modulo(y, b.constant(np.float32(2))))
    if np.dtype(y.dtype).kind != "f":
        return odd, None
    return odd, b.not_equal(b.floor(y), y, dtype="float32")


def _simple_power(b: Builder, x: Node, exponent: float) -> Node | None:
    """Return x to a constant power as products, roots and reciprocals; None for other exponents."""
    if exponent < 0:
        inner = _simple_power(b, x, -exponent)
        if inner is None:
            return None
        return b.reciprocal(inner)
    if exponent == 0:
        return b.add(b.multiply(x, 0.0), 1.0)
    if exponent == 1:
        return x
    if exponent == 2:
        return b.square(x)
    if exponent == int(exponent) and exponent <= 8:
        return b.power(x, exp=int(exponent))
    if exponent == 0.5:
        return b.sqrt(x)
    if exponent in (1.5, 2.5, 3.5):
        return b.multiply(b.sqrt(x), _simple_power(b, x, exponent - 0.5))
    return None


# -------------------------------------------------------------------------------------------------- trigonometry
@_op
def tan(b: Builder, x: Node) -> Node:
    """sin x / cos x"""
    return b.divide(b.sine(x), b.cosine(x))


@_op
def atan(b: Builder, x: Node) -> Node:
    """t P(t^2) under the sign of x; t is |x|, above 1 its reciprocal and pi/2 less; within 3e-6"""
    size = b.abs(x)
    large = b.greater(size, 1.0)
    t = b.where(large, b.reciprocal(b.maximum(size, 1e-30)), size)
    inner = b.multiply(t, _evaluate_polynomial(b, b.square(t), _ATAN))
    return b.multiply(b.sign(x), b.where(large, b.subtract(pi / 2, inner), inner))


_ATAN = [
    0.9999802112579346, -0.3326978385448456, 0.19403856992721558, -0.11772868037223816, 0.05409753695130348,
    -0.01229448989033699,
]  # fmt: skip


@_op
def atan2(b: Builder, y: Node, x: Node) -> Node:
    """the angle of (x, y): atan of the smaller over the larger magnitude, turned to its octant; -0 counts as 0"""
    high, wide = (b.minimum(b.abs(operand), STAND_IN) for operand in (y, x))
    steep = b.greater(high, wide)
    larger = b.maximum(b.maximum(high, wide), 2.0**-120)
    t = b.divide(b.minimum(high, wide), larger)
    angle = b.multiply(t, _evaluate_polynomial(b, b.square(t), _ATAN))
    angle = b.where(steep, b.subtract(pi / 2, angle), angle)
    angle = b.where(b.less(x, 0.0), b.subtract(pi, angle), angle)
    return b.where(b.less(y, 0.0), b.negative(angle), angle)


@_op
def asin(b: Builder, x: Node) -> Node:
    """atan(x / sqrt(1 - x^2))"""
    return b.atan(b.divide(x, b.sqrt(b.maximum(b.subtract(1.0, b.square(x)), 1e-14))))


@_op
def acos(b: Builder, x: Node) -> Node:
    """pi/2 - asin(x)"""
    return b.subtract(pi / 2, b.asin(x))


@_op
def sinh(b: Builder, x: Node) -> Node:
    """(exp(x) - exp(-x)) / 2"""
    return b.multiply(b.subtract(b.exp(x), b.exp(b.negative(x))), 0.5)


@_op
def cosh(b: Builder, x: Node) -> Node:
    """(exp(x) + exp(-x)) / 2"""
    return b.multiply(b.add(b.exp(x), b.exp(b.negative(x))), 0.5)


@_op
def asinh(b: Builder, x: Node) -> Node:
    """log(|x| + sqrt(x^2 + 1)) with the sign of x"""
    size = b.abs(x)
    return b.multiply(b.sign(x), b.log(b.add(size, b.sqrt(b.add(b.square(x), 1.0)))))


@_op
def acosh(b: Builder, x: Node) -> Node:
    """log(x + sqrt(x^2 - 1))"""
    return b.log(b.add(x, b.sqrt(b.maximum(b.subtract(b.square(x), 1.0), 0.0))))


@_op
def atanh(b: Builder, x: Node) -> Node:
    """log((1 + x) / (1 - x)) / 2"""
    return b.multiply(b.log(b.divide(b.add(x, 1.0), b.subtract(1.0, x))), 0.5)
