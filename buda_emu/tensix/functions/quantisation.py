"""The quantization family and the integer functions of the vector unit (DEVICE_NUMERICS 3.3, 5).

Integers are in sign and magnitude, as Dst holds them. Scales and zero points are fp32 patterns; a scale may be one
constant or a word for each lane.
"""

from buda_emu.tensix.functions.elementary import SIGN, from_sign_magnitude, multiply, plus, to_sign_magnitude
from buda_emu.tensix.functions.vector_unit import V, VectorUnit

INT8_LIMIT = 127


def quantization(u: VectorUnit[V], a: V, scale: V | int, zero_point: int) -> V:
    """fp32 to Int8: a * scale + zero point, rounded ties away and clamped to +-127."""
    return u.to_integer(u.fma(a, scale, zero_point), INT8_LIMIT)


def requantization(u: VectorUnit[V], a: V, scale: V | int, zero_point: int) -> V:
    """Int32 to Int8."""
    return u.to_integer(u.fma(u.to_float(a), scale, zero_point), INT8_LIMIT)


def dequantization(u: VectorUnit[V], a: V, scale: V | int, minus_zero_point: int) -> V:
    """Int32 to fp32: (a - zero point) * scale in two steps; takes the zero point negated."""
    return multiply(u, plus(u, u.to_float(a), minus_zero_point), scale)


def integer_add(u: VectorUnit[V], a: V, b: V) -> V:
    """Sum modulo 2^32, not saturated; minus zero counts as 0."""
    return to_sign_magnitude(u, u.add(from_sign_magnitude(u, a), from_sign_magnitude(u, b)))


def integer_maximum(u: VectorUnit[V], a: V, b: V) -> V:
    """The larger by the sign of the difference modulo 2^32. The first stays as it is in Dst, the second is stored: of
    minus zero that leaves +0 (10: 5)."""
    other = from_sign_magnitude(u, b)
    difference = u.subtract(from_sign_magnitude(u, a), other)
    return u.select(u.negative(difference), to_sign_magnitude(u, other), a)


def integer_add_blackhole(u: VectorUnit[V], a: V, b: V) -> V:
    """As `integer_add`, but minus zero is -2^31 (10: 5)."""
    return to_sign_magnitude(u, u.add(_cast(u, a), _cast(u, b)))


def integer_maximum_blackhole(u: VectorUnit[V], a: V, b: V) -> V:
    """As `integer_maximum`, but minus zero is -2^31, and stays what it is."""
    return u.select(u.negative(u.subtract(_cast(u, a), _cast(u, b))), b, a)


def _cast(u: VectorUnit[V], x: V) -> V:
    """Sign and magnitude to two's complement by the cast of Blackhole: the sign bit itself counts -2^31."""
    return u.select(u.equal(x, SIGN), SIGN, from_sign_magnitude(u, x))
