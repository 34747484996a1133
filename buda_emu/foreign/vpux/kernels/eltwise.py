"""Kernels of two or three inputs, element by element, with numpy's broadcasting."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from buda_emu.foreign.vpux.kernels import elementary as el
from buda_emu.foreign.vpux.kernels.declare import Array, Call, Kernel, fail_op, family

Two = Callable[[Any, Any], Any]


def _are_integers(*arrays: Array) -> bool:
    return all(array.dtype.kind == "i" for array in arrays)


def _div(a: Array, b: Array) -> Array:
    if not _are_integers(a, b):
        return np.divide(a, b)
    # infinite where b is 0, NaN where a is 0, too: the largest, the smallest, 0 of a whole type (VPUX 5)
    return np.where(b == 0, np.sign(a) * np.iinfo(np.int64).max, _divide_towards_zero(a, np.where(b == 0, 1, b)))


def _divide_towards_zero(a: Array, b: Array) -> Array:
    """Return the quotient of integers, rounded towards 0."""
    quotient = np.abs(a) // np.abs(b)
    return np.where((a < 0) != (b < 0), -quotient, quotient)


def _mod(a: Array, b: Array) -> Array:
    if _are_integers(a, b):
        safe = np.where(b == 0, 1, b)
        return np.where(b == 0, 0, a - _divide_towards_zero(a, safe) * safe)
    return np.fmod(a, b)


def _floor_mod(a: Array, b: Array) -> Array:
    if _are_integers(a, b):
        safe = np.where(b == 0, 1, b)
        return np.where(b == 0, 0, np.mod(a, safe))
    return np.mod(a, b)


def _power(a: Array, b: Array) -> Array:
    return el.power(a.astype(np.float64), b.astype(np.float64))


def _bits(function: Two) -> Two:
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
    ("bitwise_and", True, "bits of both", _bits(np.bitwise_and)),
    ("bitwise_or", True, "bits of one", _bits(np.bitwise_or)),
    ("bitwise_xor", True, "bits of exactly one", _bits(np.bitwise_xor)),
)


def broadcast(*arrays: Array) -> list[Array]:
    """Broadcast the arrays to one shape. Raises ProgramError (X046) for shapes that do not fit."""
    try:
        return list(np.broadcast_arrays(*arrays))
    except ValueError:
        fail_op(f"shapes {', '.join(str(list(array.shape)) for array in arrays)} cannot be broadcast")


def _two(function: Two) -> Callable[[Call], Array]:
    return lambda call: np.asarray(function(*broadcast(*(operand.values for operand in call.inputs))))


def _prelu(call: Call) -> Array:
    x, slope = (operand.floats for operand in call.inputs)
    a, s = broadcast(x, slope.reshape((1,) * max(x.ndim - slope.ndim, 0) + slope.shape))
    return np.where(a > 0, a, s * a)


def _bitwise_not(call: Call) -> Array:
    x = call.inputs[0]
    inverted = ~x.values.astype(np.int64)
    if x.raw.dtype.kind == "u":
        return inverted & np.iinfo(x.raw.dtype).max
    return inverted


def _select(call: Call) -> Array:
    condition, a, b = broadcast(*(operand.values for operand in call.inputs))
    return np.where(condition != 0, a, b)


def _all() -> Iterator[Kernel]:
    for name, exact, text, function in _TWO:
        yield Kernel(f"eltwise_{name}", 2, _two(function), text, exact=exact, keeps_shape=True)
    yield Kernel("prelu_fp16", 2, _prelu, "x > 0: x, else slope·x; leading 1s are added to slope", keeps_shape=True)
    yield Kernel("eltwise_select", 3, _select, "cond ≠ 0: a, else b", keeps_shape=True)
    yield Kernel("eltwise_logical_not", 1, lambda call: call.inputs[0].values == 0, "1 where x = 0", keeps_shape=True)
    yield Kernel("eltwise_bitwise_not", 1, _bitwise_not, "all bits", keeps_shape=True)


KERNELS: Final = family("element by element", tuple(_all()))
