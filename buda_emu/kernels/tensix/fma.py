"""The vector unit's multiply-add on rows of lanes (DEVICE_NUMERICS 3.1); `buda_emu.tensix.fma` is the definition.

A row is done without branches, in 32-bit integers and single-precision steps that vectorise, on the assumption that no
lane holds an infinity or a NaN and no product overflows. Lanes for which that does not hold are done again one by one.
"""

from typing import Any, Final

import numpy as np

from buda_emu.kernels.fma import fma
from buda_emu.kernels.jit import helper

U = np.uint32
I = np.int32  # noqa: E741 # with U it keeps the arithmetic in 32 bits, where numba would widen it

LANES: Final = 256
"""Lanes of one row: a quarter of a tile, so that the registers of a program fit the first-level cache."""

_ROW: Final = np.uint64(LANES)
_INFINITY: Final = U(0x7F800000)
_FRACTION: Final = U(0x007FFFFF)
_HIDDEN: Final = U(0x00800000)
_SIGN: Final = U(0x80000000)
_MAGNITUDE: Final = U(0x7FFFFFFF)
_NAN: Final = U(0x7FC00000)
_NAN_SEED: Final = U(0x7F800001)
_ONE: Final = U(0x3F800000)
_TWO_TO_26: Final = U(0x4C800000)


@helper
def exponent(x: Any) -> Any:
    """The exponent field as int32."""
    return I(U(U(x >> U(23)) & U(255)))


@helper
def significand(x: Any) -> Any:
    """24 bits, 0 where the exponent is 0."""
    m = U(U(x & _FRACTION) | _HIDDEN)
    return m if U(x & _INFINITY) != U(0) else U(0)


@helper
def product(x: Any, y: Any) -> Any:
    """The product of two significands of 24 bits in units of 2^20, bit 0 sticky; x and y are fp32 patterns.

    As two floats of which the first is the rounded product and the second what it lacks, exactly.
    """
    a, b = U(U(x & _FRACTION) | _ONE).view(np.float32), U(U(y & _FRACTION) | _TWO_TO_26).view(np.float32)
    high = np.float32(a * b)
    low = fma(a, b, np.float32(-high))
    whole = np.floor(low)
    return U(U(I(high) + I(whole)) | (U(0) if low == whole else U(1)))


@helper
def aligned(value: Any, distance: Any) -> Any:
    """Shifted right, the lost bits ORed into bit 0 unless nothing else is left."""
    distance = U(U(min(distance, I(31))) & U(31))
    kept = U(value >> distance)
    lost = U(value - U(kept << distance))
    return U(kept | min(min(lost, kept), U(1)))


@helper
def signed_sum(p: Any, ep: Any, p_sign: Any, q: Any, ez: Any, q_sign: Any) -> Any:
    """Product and addend, aligned to the larger exponent, as one signed integer of up to 29 bits."""
    p_leads = ep >= ez
    lead, other = (p if p_leads else q), (q if p_leads else p)
    other = aligned(other, I(max(ep, ez) - min(ep, ez)))
    total = I(I(lead) - I(other)) if U(p_sign ^ q_sign) >= _SIGN else I(I(lead) + I(other))
    return I(-total) if (p_sign if p_leads else q_sign) >= _SIGN else total


@helper
def rounded(total: Any, er: Any, blackhole: Any) -> Any:
    """The pattern of total * 2^(er - 153); the conversion to a float normalises and rounds to even.

    Wormhole ignores bit 1 of a sum of 29 bits when it rounds. Holds for Blackhole where the exponent stays above 1.
    """
    size, shift = U(abs(total)), I(er - I(153))
    if not blackhole:
        size = U(size & ~U(U(size >> U(27)) & U(2)))
    bits = np.float32(I(size)).view(np.uint32)
    field = I(exponent(bits) + shift)
    pattern = U(bits + U(U(shift) << U(23)))
    pattern = U((_INFINITY if field >= I(255) else pattern) | U(U(total) & _SIGN))
    return U(0) if (field <= I(0)) | (total == I(0)) else pattern


def _fma_rows_of(blackhole: bool) -> Any:
    """The loop for one core: with a test of the core inside, it would be slower by a sixth."""

    @helper
    def fma_rows(lanes: Any, x: Any, y: Any, z: Any, out: Any) -> Any:
        """out = x * y + z for the rows of fp32 patterns at these places of `lanes`; `out` is none of the others.

        This, `multiply_rows` and `add_rows` give back whether a lane was special: then those that `may_be_special` are
        to be done again with `fma_any`.
        """
        special = I(0)
        for i in range(_ROW):
            a, b, c = lanes[x + i], lanes[y + i], lanes[z + i]
            ex, ey, ez = exponent(a), exponent(b), exponent(c)
            ep = I(I(ex + ey) - I(127))
            gone = (ex == I(0)) | (ey == I(0)) | (ep < I(0))
            p = product(a, b)
            p, ep = (U(0) if gone else p), (I(0) if gone else ep)
            total = signed_sum(p, ep, U(a ^ b), U(significand(c) << U(3)), ez, c)
            pattern = rounded(total, max(ep, ez), blackhole)
            special = I(special | I(I(254) - max(max(ex, ey), max(ez, ep))))
            if blackhole:  # zeros have signs, and small results rules of their own
                zero = total == I(0)
                special = I(special | (I(0) if zero else I(I(U(pattern & _MAGNITUDE)) - I(0x01000000))))
                pattern = U(U(U(a ^ b) & c) & _SIGN) if zero else pattern
            lanes[out + i] = pattern
        return special < I(0)

    return fma_rows


fma_rows_wormhole: Final = _fma_rows_of(blackhole=False)
fma_rows_blackhole: Final = _fma_rows_of(blackhole=True)


@helper
def multiply_rows(lanes: Any, x: Any, y: Any, out: Any) -> Any:
    """out = x * y + 0, which is the rounded product where it is neither special nor tiny."""
    special = I(0)
    for i in range(_ROW):
        a, b = lanes[x + i], lanes[y + i]
        pattern = np.float32(U(a).view(np.float32) * U(b).view(np.float32)).view(np.uint32)
        zero = (U(a & _INFINITY) == U(0)) | (U(b & _INFINITY) == U(0))
        size = I(U(pattern & _MAGNITUDE))
        lanes[out + i] = U(0) if zero else pattern
        special = I(special | (I(0) if zero else I(size - I(0x00800001))))
        special = I(special | I(I(254) - max(exponent(a), exponent(b))))
    return special < I(0)


@helper
def add_rows(lanes: Any, x: Any, y: Any, flip: Any, out: Any, blackhole: Any) -> Any:
    """out = x + (y ^ flip), as one times x plus y: the rounded sum without denormals."""
    special = I(0)
    for i in range(_ROW):
        a, b = lanes[x + i], U(lanes[y + i] ^ flip)
        a0 = U(a & _SIGN) if U(a & _INFINITY) == U(0) else a
        b0 = U(b & _SIGN) if U(b & _INFINITY) == U(0) else b
        pattern = np.float32(U(a0).view(np.float32) + U(b0).view(np.float32)).view(np.uint32)
        sign = U(pattern & _SIGN) if blackhole else U(0)
        lanes[out + i] = sign if U(pattern & _INFINITY) == U(0) else pattern
        special = I(special | I(I(254) - max(exponent(a), exponent(b))))
    return special < I(0)


@helper
def may_be_special(x: Any, y: Any, z: Any, out: Any) -> Any:
    """Whether a lane has to be looked at again: its result is small, or an operand or the product is not finite."""
    ex, ey, ez = exponent(x), exponent(y), exponent(z)
    return max(max(ex, ey), ez) == I(255) or I(ex + ey) >= I(382) or U(out & _MAGNITUDE) <= U(0x01000000)


@helper
def fma_any(x: Any, y: Any, z: Any, blackhole: Any) -> Any:
    """x * y + z of fp32 patterns, whatever they are."""
    ex, ey, ez = exponent(x), exponent(y), exponent(z)
    sp, sz = U(U(x ^ y) & _SIGN), U(z & _SIGN)
    ep = I(ex + ey - 127)
    bad = (ex == 255 and (U(x & _FRACTION) != 0 or ey == 0)) or (ey == 255 and (U(y & _FRACTION) != 0 or ex == 0))
    from_infinity = not bad and (ex == 255 or ey == 255)
    infinite = not bad and (from_infinity or ep >= 255)
    z_nan, z_infinite = ez == 255 and U(z & _FRACTION) != 0, ez == 255 and U(z & _FRACTION) == 0
    against = z_infinite and sz != sp and (from_infinity if blackhole else infinite)
    if bad or against or z_nan:
        if blackhole:
            return _NAN
        # Wormhole calculates on and marks the result.
        seed = U((sp if bad or against else sz) | _NAN_SEED)
        return U(U(_finite(x, y, z, I(min(ep, 255)), blackhole) & _MAGNITUDE) | seed)
    if z_infinite:
        return z
    if infinite:
        return U(sp | _INFINITY)
    return _finite(x, y, z, ep, blackhole)


@helper
def _finite(x: Any, y: Any, z: Any, ep: Any, blackhole: Any) -> Any:
    """Steps 3 to 8 of the text, with the product's exponent given."""
    p, q, ez = product(x, y), U(significand(z) << U(3)), exponent(z)
    if exponent(x) == I(0) or exponent(y) == I(0) or ep < I(0):
        p, ep = U(0), I(0)
    total = signed_sum(p, ep, U(x ^ y), q, ez, z)
    er = I(max(ep, ez))
    if not blackhole:
        return rounded(total, er, blackhole)
    if total == I(0):
        return U(U(x ^ y) & U(z & _SIGN))
    length = I(0)
    while (I(abs(total)) >> length) != 0:
        length = I(length + 1)
    er = I(er + length - 27)
    if er > I(0):
        return rounded(total, I(er - length + 27), blackhole)
    return _below_normal(U(abs(total)), I(length - 26), U(total) & _SIGN)


@helper
def _below_normal(r: Any, n: Any, sign: Any) -> Any:
    """Blackhole's result under the smallest exponent: it may still round up to the smallest normal."""
    if n > 0:
        r = U(U(r >> U(n)) | (U(1) if U(r & U(n | 1)) != 0 else U(0)))
    else:
        r = U(r << U(-n))
    pattern = U(U(r + U(3) + U(U(r >> U(3)) & U(1))) >> U(3))
    return U(sign | pattern) if pattern >= _HIDDEN else U(sign)
