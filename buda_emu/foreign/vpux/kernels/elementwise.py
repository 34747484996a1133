"""Kernels that compute element by element: activations, operations of two inputs, and the elementary functions they
are made of.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.foreign.vpux.kernels.declare import Array, Call, Kernel, fail_op, family

Floats = NDArray[np.float64]

_LN2_HIGH: Final = float.fromhex("0x1.62e42fee00000p-1")
_LN2_LOW: Final = float.fromhex("0x1.a39ef35793c76p-33")
_PER_LN2: Final = float.fromhex("0x1.71547652b82fep+0")
# pi/2 in three parts: products of the first two with integers below 2^20 are exact
_HALF_PI: Final = (
    float.fromhex("0x1.921fb54400000p+0"),
    float.fromhex("0x1.0b4611a600000p-34"),
    float.fromhex("0x1.3198a2e037073p-69"),
)
_PI: Final = float.fromhex("0x1.921fb54442d18p+1")
_TAN_EIGHTH: Final = 0.41421356237309503  # tan(pi/8): beyond, the argument is turned by pi/4


def _polynomial(x: Floats, coefficients: tuple[float, ...]) -> Floats:
    """Return the value of a polynomial whose coefficients begin with the constant."""
    result = np.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = result * x + coefficient
    return result


def _factorials(start: int, step: int, count: int, signs: int = 1) -> tuple[float, ...]:
    """Return the coefficients 1/start!, signs/(start + step)!, ... of a power series."""
    coefficients: list[float] = []
    product = 1
    at = 1
    for n in range(count):
        while at <= start + n * step:
            product *= at
            at += 1
        coefficients.append(float(signs**n) / product)
    return tuple(coefficients)


_EXP: Final = _factorials(0, 1, 14)
_SIN: Final = _factorials(1, 2, 9, -1)
_COS: Final = _factorials(0, 2, 9, -1)
_SINH: Final = _factorials(1, 2, 10)
_LOG: Final = tuple(2.0 / (2 * n + 1) for n in range(11))
_ATAN: Final = tuple((-1.0) ** n / (2 * n + 1) for n in range(24))


def exp(x: Floats) -> Floats:
    """Return e to the power x."""
    inside = np.clip(np.nan_to_num(x), -746.0, 710.0)
    steps = np.rint(inside * _PER_LN2)
    rest = (inside - steps * _LN2_HIGH) - steps * _LN2_LOW
    # in two steps, so that results below the normal range are rounded once
    half = np.floor(steps / 2)
    result = np.ldexp(np.ldexp(_polynomial(rest, _EXP), half.astype(np.int64)), (steps - half).astype(np.int64))
    return np.where(np.isnan(x), x, np.where(x > 709.9, np.inf, np.where(x < -745.5, 0.0, result)))


def log(x: Floats) -> Floats:
    """Return the natural logarithm; NaN below 0."""
    mantissa, exponent = np.frexp(np.where((x > 0) & np.isfinite(x), x, 1.0))
    low = mantissa < 0.7071067811865476
    mantissa = np.where(low, mantissa * 2, mantissa)
    exponent = exponent - low
    part = (mantissa - 1) / (mantissa + 1)
    result = exponent * _LN2_HIGH + (part * _polynomial(part * part, _LOG) + exponent * _LN2_LOW)
    special = np.where(x == 0, -np.inf, np.where(x < 0, np.nan, x))
    return np.where((x > 0) & np.isfinite(x), result, special)


def sin_cos(x: Floats) -> tuple[Floats, Floats]:
    """Return sine and cosine. They have full precision up to about a million; beyond, the error grows with x."""
    inside = np.where(np.isfinite(x), x, 0.0)
    quarters = np.rint(inside / _HALF_PI[0])
    rest = ((inside - quarters * _HALF_PI[0]) - quarters * _HALF_PI[1]) - quarters * _HALF_PI[2]
    square = rest * rest
    sine = rest * _polynomial(square, _SIN)
    cosine = _polynomial(square, _COS)
    quarter = np.mod(quarters, 4)
    odd = np.mod(quarter, 2) == 1
    first = np.where(odd, cosine, sine)
    other = np.where(odd, sine, cosine)
    bad = ~np.isfinite(x)
    return (
        np.where(bad, np.nan, np.where(quarter >= 2, -first, first)),
        np.where(bad, np.nan, np.where((quarter == 1) | (quarter == 2), -other, other)),
    )


def sinh(x: Floats) -> Floats:
    """Return the hyperbolic sine."""
    small = np.clip(np.nan_to_num(x), -1.0, 1.0)
    near = small * _polynomial(small * small, _SINH)
    half = exp(np.abs(x) / 2)  # squared, so that nothing overflows early
    far = np.copysign(half * (half / 2) - 0.5 / (half * half), x)
    return np.where(np.abs(x) < 1, near, far)


def cosh(x: Floats) -> Floats:
    """Return the hyperbolic cosine."""
    half = exp(np.abs(x) / 2)
    return half * (half / 2) + 0.5 / (half * half)


def tanh(x: Floats) -> Floats:
    """Return the hyperbolic tangent."""
    small = np.clip(np.nan_to_num(x), -1.0, 1.0)
    near = small * _polynomial(small * small, _SINH) / cosh(small)
    far = np.copysign(1 - 2 / (exp(2 * np.abs(x)) + 1), x)
    return np.where(np.abs(x) < 1, near, far)


def atan(x: Floats) -> Floats:
    """Return the arc tangent."""
    size = np.abs(x)
    inverted = size > 1
    part = np.where(inverted, 1 / np.where(inverted, size, 1.0), size)
    shifted = part > _TAN_EIGHTH
    part = np.where(shifted, (part - 1) / (part + 1), part)
    result = part * _polynomial(part * part, _ATAN) + np.where(shifted, _PI / 4, 0.0)
    return np.copysign(np.where(inverted, _PI / 2 - result, result), x)


def asin(x: Floats) -> Floats:
    """Return the arc sine; NaN outside of -1 to 1."""
    return np.where(np.abs(x) == 1, np.copysign(_PI / 2, x), atan(x / np.sqrt((1 - x) * (1 + x))))


def acos(x: Floats) -> Floats:
    """Return the arc cosine; NaN outside of -1 to 1."""
    return np.where(x == -1, _PI, 2 * atan(np.sqrt((1 - x) / (1 + x))))


def asinh(x: Floats) -> Floats:
    """Return the inverse hyperbolic sine."""
    size = np.abs(x)
    far = log(size + np.sqrt(size * size + 1))
    square = size * size
    near = size * (1 - square / 6 + 3 * square * square / 40)
    return np.copysign(np.where(size < 1e-3, near, far), x)


def acosh(x: Floats) -> Floats:
    """Return the inverse hyperbolic cosine; NaN below 1."""
    return np.where(x < 1, np.nan, log(x + np.sqrt(x * x - 1)))


def atanh(x: Floats) -> Floats:
    """Return the inverse hyperbolic tangent; NaN outside of -1 to 1."""
    square = x * x
    near = x * (1 + square / 3 + square * square / 5)
    return np.where(np.abs(x) < 1e-3, near, log((1 + x) / (1 - x)) / 2)


def erf(x: Floats) -> Floats:
    """Return the error function, by a series of positive terms up to 3 and by a continued fraction beyond."""
    size = np.minimum(np.where(np.isnan(x), 0.0, np.abs(x)), 6.5)
    square = size * size
    near_square = np.minimum(square, 9.0)
    term = np.ones_like(size)
    total = np.ones_like(size)
    for n in range(1, 70):
        term = term * (2 * near_square / (2 * n + 1))
        total = total + term
    bell = exp(-square) * (2 / np.sqrt(_PI))
    fraction = np.zeros_like(size)
    far_size = np.maximum(size, 3.0)
    for n in range(40, 0, -1):
        fraction = (n / 2) / (far_size + fraction)
    far = 1 - bell / (2 * (far_size + fraction))
    near: Floats = size * bell * total
    return np.where(np.isnan(x), x, np.copysign(np.where(size < 3, near, far), x))


def power(x: Floats, y: Floats) -> Floats:
    """Return x to the power y; whole exponents up to 64 by multiplication, so that whole results are exact."""
    x, y = np.broadcast_arrays(x, y)
    integral = np.isfinite(y) & (np.rint(y) == y)
    few = integral & (np.abs(y) <= 64)
    count = np.where(few, np.abs(y), 0).astype(np.int64)
    product = np.ones_like(x)
    base = x.astype(np.float64)
    for bit in range(7):
        product = np.where(count >> bit & 1 == 1, product * base, product)
        base = base * base
    multiplied = np.where(y < 0, 1 / product, product)
    size = exp(y * log(np.abs(x)))
    size = np.where(y == 0, 1.0, np.where(x == 0, np.where(y < 0, np.inf, 0.0), size))
    odd = integral & (np.mod(y, 2) == 1)
    general = np.where(x < 0, np.where(integral, np.where(odd, -size, size), np.nan), size)
    return np.where(few, multiplied, general)


def _gelu(x: Floats) -> Floats:
    """Return x/2 * (1 + erf(x/√2))."""
    return x / 2 * (1 + erf(x / np.sqrt(2.0)))


def _softplus(x: Floats) -> Floats:
    """Return ln(1 + e^x), by a sum that does not overflow above 30."""
    return np.where(x > 30, x + exp(-np.maximum(x, 30.0)), log(1 + exp(np.minimum(x, 30.0))))


def _sigmoid(x: Floats) -> Floats:
    """Return 1/(1 + e^-x)."""
    return 1 / (1 + exp(-x))


_PLAIN: Final[tuple[tuple[str, bool, str, Callable[[Floats], Floats]], ...]] = (
    ("relu", True, "max(x, 0)", lambda x: np.maximum(x, 0.0)),
    ("sigmoid", False, "1/(1 + e^-x)", _sigmoid),
    ("hswish", False, "x·clip(x + 3, 0, 6)/6", lambda x: x * np.clip(x + 3, 0, 6) / 6),
    ("hsigmoid", False, "clip(x + 3, 0, 6)/6", lambda x: np.clip(x + 3, 0, 6) / 6),
    ("tanh", False, "tanh x", tanh),
    ("exp", False, "e^x", exp),
    ("log", False, "ln x", log),
    ("abs", True, "|x|", np.abs),
    ("floor", True, "the next integer below", np.floor),
    ("ceil", True, "the next integer above", np.ceil),
    ("sqrt", False, "√x", np.sqrt),
    ("erf", False, "erf x", erf),
    ("sin", False, "sin x", lambda x: sin_cos(x)[0]),
    ("cos", False, "cos x", lambda x: sin_cos(x)[1]),
    ("tan", False, "tan x", lambda x: np.divide(*sin_cos(x))),
    ("sinh", False, "sinh x", sinh),
    ("cosh", False, "cosh x", cosh),
    ("asin", False, "arcsin x", asin),
    ("acos", False, "arccos x", acos),
    ("atan", False, "arctan x", atan),
    ("asinh", False, "arsinh x", asinh),
    ("acosh", False, "arcosh x", acosh),
    ("atanh", False, "artanh x", atanh),
    ("sign", True, "-1, 0 or 1", np.sign),
    ("negative", True, "-x", np.negative),
    ("softplus", False, "ln(1 + e^x)", _softplus),
    ("mish", False, "x·tanh(softplus x)", lambda x: x * tanh(_softplus(x))),
    ("gelu", False, "x/2·(1 + erf(x/√2))", _gelu),
)


def _apply_to_elements(function: Callable[[Floats], Floats]) -> Callable[[Call], Array]:
    """Return the definition of a kernel that applies a function to each element of its input."""
    return lambda call: function(call.inputs[0].floats)


def _clamp(call: Call) -> Array:
    """Return each element limited to the attributes lo and hi."""
    return np.minimum(np.maximum(call.inputs[0].floats, call.number("lo")), call.number("hi"))


def _elu(call: Call) -> Array:
    """Return x above 0, else a * (e^x - 1)."""
    x = call.inputs[0].floats
    return np.where(x > 0, x, call.number("a") * (exp(np.minimum(x, 0.0)) - 1))


def _selu(call: Call) -> Array:
    """Return l times the `elu` of x."""
    return call.number("l") * _elu(call)


def _hardsigmoid(call: Call) -> Array:
    """Return a * x + b, limited to 0 to 1."""
    return np.clip(call.number("a") * call.inputs[0].floats + call.number("b"), 0.0, 1.0)


def _swish(call: Call) -> Array:
    """Return x * sigmoid(b * x)."""
    x = call.inputs[0].floats
    return x * _sigmoid(call.number("b") * x)


def _leaky(call: Call) -> Array:
    """Return x above 0, else s * x."""
    x = call.inputs[0].floats
    return np.where(x > 0, x, call.number("s") * x)


def _round(call: Call) -> Array:
    """Return the elements rounded to integers, halves to even for mode 0 and away from 0 for mode 1. Raises
    ProgramError (X046) for another mode."""
    mode = call.integer("mode")
    if mode not in (0, 1):
        fail_op(f"round mode {mode}: 0 and 1 are known")
    x = call.inputs[0].floats
    if mode == 0:
        return np.rint(x)
    return np.trunc(x + np.copysign(0.5, x))


def _activations() -> Iterator[Kernel]:
    """Yield the kernels of activations."""
    for name, exact, text, function in _PLAIN:
        yield Kernel(f"activation_{name}", 1, _apply_to_elements(function), text, exact=exact, keeps_shape=True)
    relu = _apply_to_elements(_PLAIN[0][3])
    yield Kernel("relu_fp16", 1, relu, "max(x, 0)", keeps_shape=True)
    for name, compute, text, attributes, exact in (
        ("activation_clamp", _clamp, "min(max(x, lo), hi)", ("lo", "hi"), True),
        ("activation_elu", _elu, "x > 0: x, else a·(e^x - 1)", ("a",), False),
        ("activation_selu", _selu, "l·elu(x, a)", ("a", "l"), False),
        ("activation_hardsigmoid", _hardsigmoid, "clip(a·x + b, 0, 1)", ("a", "b"), False),
        ("activation_swish", _swish, "x·sigmoid(b·x)", ("b",), False),
        ("leaky_relu_fp16", _leaky, "x > 0: x, else s·x", ("s",), False),
        ("round_fp16", _round, "0 half to even, 1 half away from 0", ("mode",), True),
    ):
        yield Kernel(
            name=name, inputs=1, compute=compute, summary=text, attributes=attributes, exact=exact, keeps_shape=True
        )


ACTIVATIONS: Final = family("activations", tuple(_activations()))


Two = Callable[[Any, Any], Any]


def _are_integers(*arrays: Array) -> bool:
    """Return whether all arrays hold signed integers, as `Tensor.values` has those of all integer types."""
    return all(array.dtype.kind == "i" for array in arrays)


def _div(a: Array, b: Array) -> Array:
    """Return a / b, of integers rounded towards 0. An integer divided by 0 is the largest int64 with the sign of a,
    0 for a = 0."""
    if not _are_integers(a, b):
        return np.divide(a, b)
    # infinite where b is 0, NaN where a is 0, too: the largest, the smallest, 0 of a whole type (VPUX 5)
    return np.where(b == 0, np.sign(a) * np.iinfo(np.int64).max, _divide_towards_zero(a, np.where(b == 0, 1, b)))


def _divide_towards_zero(a: Array, b: Array) -> Array:
    """Return the quotient of integers, rounded towards 0."""
    quotient = np.abs(a) // np.abs(b)
    return np.where((a < 0) != (b < 0), -quotient, quotient)


def _mod(a: Array, b: Array) -> Array:
    """Return the remainder of a / b with the sign of a; 0 for an integer divided by 0."""
    if _are_integers(a, b):
        safe = np.where(b == 0, 1, b)
        return np.where(b == 0, 0, a - _divide_towards_zero(a, safe) * safe)
    return np.fmod(a, b)


def _floor_mod(a: Array, b: Array) -> Array:
    """Return the remainder of a / b with the sign of b; 0 for an integer divided by 0."""
    if _are_integers(a, b):
        safe = np.where(b == 0, 1, b)
        return np.where(b == 0, 0, np.mod(a, safe))
    return np.mod(a, b)


def _power(a: Array, b: Array) -> Array:
    """Return a to the power b, computed in float64 also for integers."""
    return power(a.astype(np.float64), b.astype(np.float64))


def _bitwise(function: Two) -> Two:
    """Return the function of two arrays that applies a bitwise `function` to them as int64."""
    return lambda a, b: function(a.astype(np.int64), b.astype(np.int64))


_TWO: Final[tuple[tuple[str, bool, str, Two], ...]] = (
    ("add", True, "a + b", np.add),
    ("sub", True, "a - b", np.subtract),
    ("mul", True, "a·b", np.multiply),
    ("div", True, "a/b", _div),
    ("min", True, "the smaller one", np.minimum),
    ("max", True, "the larger one", np.maximum),
    ("power", False, "a^b", _power),
    ("squared_difference", True, "(a - b)²", lambda a, b: (a - b) * (a - b)),
    ("mod", True, "the rest, with the sign of a", _mod),
    ("floor_mod", True, "the rest, with the sign of b", _floor_mod),
    ("equal", True, "a = b", np.equal),
    ("not_equal", True, "a ≠ b", np.not_equal),
    ("greater", True, "a > b", np.greater),
    ("greater_equal", True, "a ≥ b", np.greater_equal),
    ("less", True, "a < b", np.less),
    ("less_equal", True, "a ≤ b", np.less_equal),
    ("and", True, "both are not 0", lambda a, b: (a != 0) & (b != 0)),
    ("logical_or", True, "one is not 0", lambda a, b: (a != 0) | (b != 0)),
    ("logical_xor", True, "exactly one is not 0", lambda a, b: (a != 0) ^ (b != 0)),
    ("bitwise_and", True, "bits of both", _bitwise(np.bitwise_and)),
    ("bitwise_or", True, "bits of one", _bitwise(np.bitwise_or)),
    ("bitwise_xor", True, "bits of exactly one", _bitwise(np.bitwise_xor)),
)


def broadcast(*arrays: Array) -> list[Array]:
    """Return the arrays broadcast to one shape. Raises ProgramError (X046) for shapes that do not fit."""
    try:
        return list(np.broadcast_arrays(*arrays))
    except ValueError:
        fail_op(f"shapes {', '.join(str(list(array.shape)) for array in arrays)} cannot be broadcast")


def _apply_to_two(function: Two) -> Callable[[Call], Array]:
    """Return the definition of a kernel that applies a function to its two inputs, broadcast to one shape."""
    return lambda call: np.asarray(function(*broadcast(*(operand.values for operand in call.inputs))))


def _prelu(call: Call) -> Array:
    """Return x above 0, else slope * x. The slope, the second input, gets leading dimensions of 1."""
    x, slope = (operand.floats for operand in call.inputs)
    a, s = broadcast(x, slope.reshape((1,) * max(x.ndim - slope.ndim, 0) + slope.shape))
    return np.where(a > 0, a, s * a)


def _bitwise_not(call: Call) -> Array:
    """Return each element with all bits inverted, those of unsigned types within their width."""
    x = call.inputs[0]
    inverted = ~x.values.astype(np.int64)
    if x.raw.dtype.kind == "u":
        return inverted & np.iinfo(x.raw.dtype).max
    return inverted


def _select(call: Call) -> Array:
    """Return elements of the second input where the first is not 0, else of the third."""
    condition, a, b = broadcast(*(operand.values for operand in call.inputs))
    return np.where(condition != 0, a, b)


def _operations_of_two() -> Iterator[Kernel]:
    """Yield the kernels of operations of two inputs, and the few of one or three that belong to them."""
    for name, exact, text, function in _TWO:
        yield Kernel(f"eltwise_{name}", 2, _apply_to_two(function), text, exact=exact, keeps_shape=True)
    yield Kernel("prelu_fp16", 2, _prelu, "x > 0: x, else slope·x; leading 1s are added to slope", keeps_shape=True)
    yield Kernel("eltwise_select", 3, _select, "cond ≠ 0: a, else b", keeps_shape=True)
    yield Kernel("eltwise_logical_not", 1, lambda call: call.inputs[0].values == 0, "1 where x = 0", keeps_shape=True)
    yield Kernel("eltwise_bitwise_not", 1, _bitwise_not, "all bits", keeps_shape=True)


OPERATIONS_OF_TWO: Final = family("element by element", tuple(_operations_of_two()))
