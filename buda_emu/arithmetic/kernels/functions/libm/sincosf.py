"""sinf and cosf: sine and cosine of radians in single precision.

x = n * pi/2 + r with r within about -pi/4 and pi/4; n mod 4 says which of sin r, cos r, -sin r, -cos r is the result.
Below 120 the remainder comes from one multiplication by pi/2; above, from an integer product with the bits of 4/pi that
matter for x's exponent. The polynomials are evaluated in double precision.
"""

from typing import Final

import numpy as np

from buda_emu.arithmetic.jit.kernel import helper, kernel
from buda_emu.arithmetic.kernels.fma import fma
from buda_emu.spec.single import FRACTION, HIDDEN

_HALF_PI: Final = float.fromhex("0x1.921fb54442d18p+0")
_QUADRANTS_PER_RADIAN: Final = float.fromhex("0x1.45f306dc9c883p+23")  # 2/pi in units of 2^-24
_INTEGER: Final = 1.5 * 2.0**52  # an integer added to it stands in the low bits of the sum
LARGE: Final = np.float32(120)  # from it on the argument is reduced with the bits of 4/pi below

# The leading 192 bits of 4/pi, and the 32-bit words that start at each eighth bit of them (24 zero bits in front).
_FOUR_OVER_PI: Final = 0xA2F9836E_4E441529_FC2757D1_F534DDC0_DB629599_3C439041
_WORDS: Final = np.array([(_FOUR_OVER_PI >> (184 - 8 * i)) & 0xFFFFFFFF for i in range(24)], np.int64)

# sin r = r + S1 r^3 + S2 r^5 + S3 r^7
_S1: Final = float.fromhex("-0x1.555545995a603p-3")
_S2: Final = float.fromhex("0x1.1107605230bc4p-7")
_S3: Final = float.fromhex("-0x1.994eb3774cf24p-13")

# cos r = 1 + C1 r^2 + C2 r^4 + C3 r^6 + C4 r^8
_C1: Final = float.fromhex("-0x1.ffffffd0c621cp-2")
_C2: Final = float.fromhex("0x1.55553e1068f19p-5")
_C3: Final = float.fromhex("-0x1.6c087e89a359dp-10")
_C4: Final = float.fromhex("0x1.99343027bf8c3p-16")

_INVALID: Final = 0xFFC00000  # bits of the NaN of an invalid operation


@kernel
def sinf(x: np.float32) -> np.float32:
    """Return sin x in single precision, bit for bit as the C library does; NaN for an infinite x."""
    if abs(x) < LARGE:
        return sinf_small(x)
    if not abs(x) < np.float32(np.inf):
        return _not_finite(x)
    r, n = _reduce_large(x)
    return np.float32(_quarter_wave(r, n))


@kernel
def cosf(x: np.float32) -> np.float32:
    """Return cos x in single precision, bit for bit as the C library does; NaN for an infinite x."""
    if abs(x) < LARGE:
        return cosf_small(x)
    if not abs(x) < np.float32(np.inf):
        return _not_finite(x)
    r, n = _reduce_large(x)
    return np.float32(_quarter_wave(r, n + 1))


@helper
def sinf_small(x: np.float32) -> np.float32:
    """Return `sinf` of x for |x| < LARGE. It has no branches, so that a loop over it becomes vector code."""
    r, n = _reduce_small(x)
    wave = np.float32(_quarter_wave(r, n))
    if x != np.float32(0):  # the polynomial loses the sign of -0
        return wave
    return x


@helper
def cosf_small(x: np.float32) -> np.float32:
    """Return `cosf` of x for |x| < LARGE. It has no branches, so that a loop over it becomes vector code."""
    r, n = _reduce_small(x)
    return np.float32(_quarter_wave(r, n + 1))


@helper
def _not_finite(x: np.float32) -> np.float32:
    """Return the sine or cosine of an x that is NaN or infinite: a quiet NaN."""
    if x != x:
        return x + x
    return np.uint32(_INVALID).view(np.float32)


@helper
def _reduce_small(x: np.float32) -> tuple[np.float64, np.int64]:
    """Return r and n with x = n pi/2 + r for |x| < LARGE; of n only the low 2 bits count. n is 2/pi * x, cut to a
    multiple of 2^-24, then rounded with halves upward."""
    wide = np.float64(x)
    cut = np.trunc(wide * _QUADRANTS_PER_RADIAN)
    n = np.floor((cut + 2.0**23) * 2.0**-24)
    return fma(-n, _HALF_PI, wide), np.float64(n + _INTEGER).view(np.int64)


@helper
def _reduce_large(x: np.float32) -> tuple[np.float64, np.int64]:
    """Return r and n with x = n pi/2 + r for a large x; of n only the low 2 bits count. 2/pi * x is computed in fixed
    point, with two bits of integer and 62 of fraction; higher bits are dropped."""
    bits = np.int64(np.float32(x).view(np.uint32))
    mantissa = ((bits & FRACTION) | HIDDEN) << ((bits >> 23) & 7)
    first = (bits >> 26) & 15
    high = (mantissa * _WORDS[first]) << 32
    middle = mantissa * _WORDS[first + 4]
    low = (mantissa * _WORDS[first + 8]) >> 32
    quadrants = (high | low) + middle
    n = (quadrants + (1 << 61)) >> 62
    r = np.float64(quadrants - (n << 62)) * (_HALF_PI * 2.0**-62)
    if x < np.float32(0):
        return (-r, -n)
    return (r, n)


@helper
def _quarter_wave(r: np.float64, n: np.int64) -> np.float64:
    """Return sin r, cos r, -sin r or -cos r for n mod 4 = 0, 1, 2, 3."""
    sine = _sine(r)
    cosine = _cosine(r)
    wave = sine
    if n & 1:
        wave = cosine
    if n & 2:
        return -wave
    return wave


@helper
def _sine(r: np.float64) -> np.float64:
    """Return sin r for |r| up to about pi/4, by its polynomial."""
    r2 = r * r
    r3 = r2 * r
    return fma(fma(_S3, r2, _S2), r2 * r3, fma(r3, _S1, r))


@helper
def _cosine(r: np.float64) -> np.float64:
    """Return cos r for |r| up to about pi/4, by its polynomial."""
    r2 = r * r
    r4 = r2 * r2
    return fma(fma(_C4, r2, _C3), r2 * r4, fma(r4, _C2, fma(_C1, r2, 1.0)))
