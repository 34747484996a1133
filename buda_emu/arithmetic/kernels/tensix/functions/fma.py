"""The vector unit's multiply-add of one lane (DEVICE_NUMERICS 3.1), in 32-bit integers and steps in single precision;
`buda_emu.arithmetic.tensix.functions.vector_unit` defines it. `lanes.execute_row` computes whole rows of lanes; those
that it marks as special are computed one by one with the functions here."""

from typing import Any, Final

import numpy as np

from buda_emu.arithmetic.jit.kernel import helper
from buda_emu.arithmetic.kernels.fma import fma
from buda_emu.spec.single import FRACTION, HIDDEN, INFINITY, MAGNITUDE, SIGN

U = np.uint32
I = np.int32  # noqa: E741 # with U it keeps the arithmetic in 32 bits, where numba would widen it

LANES: Final = 256
"""Lanes of one row: a quarter of a tile, so that the registers of a program fit the first-level cache."""

_INFINITY: Final = U(INFINITY)
_FRACTION: Final = U(FRACTION)
_HIDDEN: Final = U(HIDDEN)
_SIGN: Final = U(SIGN)
_MAGNITUDE: Final = U(MAGNITUDE)
_NAN: Final = U(0x7FC00000)  # the only one of Blackhole
_NAN_SEED: Final = U(0x7F800001)  # ORed into Wormhole's NaNs, which it calculates on with (3.1 step 2)
_ONE: Final = U(0x3F800000)
_TWO_TO_26: Final = U(0x4C800000)


@helper
def exponent(x: Any) -> Any:
    """Return the exponent field of an fp32 pattern as int32."""
    return I(U(U(x >> U(23)) & U(255)))


@helper
def significand(x: Any) -> Any:
    """Return the 24 bits of the significand of an fp32 pattern, 0 where the exponent field is 0."""
    m = U(U(x & _FRACTION) | _HIDDEN)
    if U(x & _INFINITY) != U(0):
        return m
    return U(0)


@helper
def significand_product(x: Any, y: Any) -> Any:
    """Return the product of the significands of two fp32 patterns, as an integer in units of 2^20 (24 bits times 24
    bits), with bit 0 sticky: it is set if bits below it are lost (3.1 step 1). Exponent fields are not looked at.

    It is computed as two floats of which the first is the rounded product and the second its error, exactly.
    """
    a = U(U(x & _FRACTION) | _ONE).view(np.float32)
    b = U(U(y & _FRACTION) | _TWO_TO_26).view(np.float32)
    high = np.float32(a * b)
    low = fma(a, b, np.float32(-high))
    low_floor = np.floor(low)
    units = U(I(high) + I(low_floor))
    if low == low_floor:
        return units
    return U(units | U(1))


@helper
def shift_right_sticky(value: Any, distance: Any) -> Any:
    """Return a value shifted right by `distance`, with the lost bits ORed into bit 0, but 0 if the value is shifted out
    completely (3.1 step 4)."""
    distance = U(U(min(distance, I(31))) & U(31))
    shifted = U(value >> distance)
    lost = U(value - U(shifted << distance))
    return U(shifted | min(min(lost, shifted), U(1)))


@helper
def signed_sum(p: Any, ep: Any, p_sign: Any, q: Any, ez: Any, q_sign: Any) -> Any:
    """Return the sum of a product (p, exponent ep) and an addend (q, exponent ez), in units of the larger exponent, as
    a signed integer of up to 29 bits (3.1 step 5). The signs are bit 31 of `p_sign` and `q_sign`; of a sum of zero, the
    sign is lost."""
    lead = q
    lead_sign = q_sign
    other = p
    if ep >= ez:
        lead = p
        lead_sign = p_sign
        other = q
    other = shift_right_sticky(other, I(max(ep, ez) - min(ep, ez)))
    total = I(I(lead) + I(other))
    if U(p_sign ^ q_sign) >= _SIGN:
        total = I(I(lead) - I(other))
    if lead_sign >= _SIGN:
        return I(-total)
    return total


@helper
def round_sum(total: Any, er: Any, blackhole: Any) -> Any:
    """Return the fp32 pattern of total * 2^(er - 153), rounded to nearest even; +0 for an exponent field of 0 or less,
    an infinity from 255 on.

    Wormhole ignores bit 1 of a sum of 29 bits when it rounds (3.1 step 6). On Blackhole this holds where the exponent
    stays above 1.
    """
    size = U(abs(total))
    shift = I(er - I(153))
    if not blackhole:
        size = U(size & ~U(U(size >> U(27)) & U(2)))
    bits = np.float32(I(size)).view(np.uint32)
    field = I(exponent(bits) + shift)
    pattern = U(bits + U(U(shift) << U(23)))
    if field >= I(255):
        pattern = _INFINITY
    pattern = U(pattern | U(U(total) & _SIGN))
    if (field <= I(0)) | (total == I(0)):
        return U(0)
    return pattern


@helper
def may_be_special(x: Any, y: Any, z: Any, out: Any) -> Any:
    """Return whether `out`, computed by the short way, may not be the chip's x * y + z: it is small, or an operand or
    the product is not finite. Such a lane must be computed again."""
    ex = exponent(x)
    ey = exponent(y)
    ez = exponent(z)
    # 382 = 255 + 127: the product overflows. Up to 2^-125 a result may have been flushed or rounded as a subnormal.
    return max(max(ex, ey), ez) == I(255) or I(ex + ey) >= I(382) or U(out & _MAGNITUDE) <= U(0x01000000)


@helper
def _makes_product_nan(factor: Any, other_exponent: Any) -> Any:
    """Return whether a factor makes the product NaN: it is NaN, or it is infinite and the other factor has exponent
    0."""
    return exponent(factor) == 255 and (U(factor & _FRACTION) != 0 or other_exponent == 0)


@helper
def fma_any(x: Any, y: Any, z: Any, blackhole: Any) -> Any:
    """Return x * y + z of any fp32 patterns, as the vector unit computes it; `blackhole` selects that chip's rules
    instead of Wormhole's (3.1)."""
    ex = exponent(x)
    ey = exponent(y)
    ez = exponent(z)
    sp = U(U(x ^ y) & _SIGN)
    sz = U(z & _SIGN)
    ep = I(ex + ey - 127)
    bad = _makes_product_nan(x, ey) or _makes_product_nan(y, ex)
    from_infinity = not bad and (ex == 255 or ey == 255)
    infinite = not bad and (from_infinity or ep >= 255)
    z_nan = ez == 255 and U(z & _FRACTION) != 0
    z_infinite = ez == 255 and U(z & _FRACTION) == 0
    meets_infinity = infinite
    if blackhole:  # only infinite factors count there, no product that overflows (3.1 step 2)
        meets_infinity = from_infinity
    against = z_infinite and sz != sp and meets_infinity
    if bad or against or z_nan:
        if blackhole:
            return _NAN
        # Wormhole calculates on and marks the result.
        sign = sz
        if bad or against:
            sign = sp
        return U(U(_fma_of_finite(x, y, z, I(min(ep, 255)), blackhole) & _MAGNITUDE) | U(sign | _NAN_SEED))
    if z_infinite:
        return z
    if infinite:
        return U(sp | _INFINITY)
    return _fma_of_finite(x, y, z, ep, blackhole)


@helper
def _fma_of_finite(x: Any, y: Any, z: Any, ep: Any, blackhole: Any) -> Any:
    """Return x * y + z, rounded, where product and addend are finite: steps 3 to 8 of DEVICE_NUMERICS 3.1. `ep` is the
    product's exponent."""
    p = significand_product(x, y)
    q = U(significand(z) << U(3))
    ez = exponent(z)
    if exponent(x) == I(0) or exponent(y) == I(0) or ep < I(0):
        p = U(0)
        ep = I(0)
    total = signed_sum(p, ep, U(x ^ y), q, ez, z)
    er = I(max(ep, ez))
    if not blackhole:
        return round_sum(total, er, blackhole)
    if total == I(0):
        return U(U(x ^ y) & U(z & _SIGN))
    length = I(0)
    while (I(abs(total)) >> length) != 0:
        length = I(length + 1)
    er = I(er + length - 27)  # the leading one belongs at bit 26 (3.1 step 6)
    if er > I(0):
        return round_sum(total, I(er - length + 27), blackhole)
    return _round_below_normal(U(abs(total)), I(length - 26), U(total) & _SIGN)


@helper
def _round_below_normal(r: Any, n: Any, sign: Any) -> Any:
    """Return Blackhole's result where the exponent is 0 or less: `r` is shifted right by `n`, with lost bits kept in
    bit 0, and rounded; what does not round up to the smallest normal number becomes a zero with the sign (3.1 steps 6
    to 8)."""
    if n > 0:
        sticky = U(0)
        if U(r & U(n | 1)) != 0:
            sticky = U(1)
        r = U(U(r >> U(n)) | sticky)
    else:
        r = U(r << U(-n))
    pattern = U(U(r + U(3) + U(U(r >> U(3)) & U(1))) >> U(3))
    if pattern >= _HIDDEN:
        return U(sign | pattern)
    return U(sign)
