"""The multiply-add of the vector unit's lanes, partially fused (DEVICE_NUMERICS 3.1).

The product keeps three bits below the fraction, the last of them sticky, before the addend is aligned to it. Exponent 0
is zero on input and on output. Wormhole B0 and Blackhole differ in NaNs, in the sign of zeros, in the bits that a
shift to the right collects, and at the lower end of the exponents.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.formats.bits import U32, bit_length

_I64 = NDArray[np.int64]
_INFINITY: Final = 0x7F800000
_NAN_SEED: Final = 0x7F800001
_NAN: Final = 0x7FC00000
_LEADING_BIT: Final = 26
"""Where the leading one stands before rounding: 24 bits of significand and three more."""


def fma(x: U32, y: U32, z: U32, blackhole: bool = False) -> U32:
    """x * y + z of fp32 patterns, element by element; the arguments broadcast."""
    x64, y64, z64 = np.broadcast_arrays(*(np.asarray(a).astype(np.int64) for a in (x, y, z)))
    ex, ey, ez = ((a >> 23) & 255 for a in (x64, y64, z64))
    mx, my, mz = (np.where(e == 0, 0, (a & 0x7FFFFF) | 0x800000) for a, e in ((x64, ex), (y64, ey), (z64, ez)))
    sp, sz = (x64 ^ y64) >> 31 & 1, z64 >> 31 & 1
    # 1. The product in units of the addend's, with a sticky bit 0.
    wide = 8 * mx * my
    p, ep = (wide >> 23) | (wide & 0x7FFFFF != 0), ex + ey - 127
    # 2. Infinities and NaNs.
    x_nan, y_nan, z_nan = ((e == 255) & (a & 0x7FFFFF != 0) for a, e in ((x64, ex), (y64, ey), (z64, ez)))
    x_inf, y_inf, z_inf = ((e == 255) & (a & 0x7FFFFF == 0) for a, e in ((x64, ex), (y64, ey), (z64, ez)))
    bad = x_nan | y_nan | (x_inf & (my == 0)) | (y_inf & (mx == 0))
    infinite = ~bad & (x_inf | y_inf | (ep >= 255))
    against = z_inf & (sz != sp) & (x_inf | y_inf if blackhole else infinite)
    is_nan = bad | z_nan | against
    seed = np.where(bad | against, sp, sz) << 31 | _NAN_SEED
    special = np.where(z_inf, z64 & 0xFFFFFFFF, sp << 31 | _INFINITY)
    if blackhole:
        special = np.where(is_nan, _NAN, special)
    # What is special ends here, but for Wormhole's NaNs, which run on and are marked by the seed.
    ended = (is_nan | z_inf | infinite) if blackhole else (~is_nan & (z_inf | infinite))
    ep = np.minimum(ep, 255)
    finite = _finite(p, ep, sp, mz << 3, ez, sz, blackhole)
    marked = np.where(is_nan, seed | (finite & 0x7FFFFFFF), finite)  # the sign is the seed's
    return np.where(ended, special, marked).astype(np.uint32)


def _finite(p: _I64, ep: _I64, sp: _I64, q: _I64, ez: _I64, sz: _I64, blackhole: bool) -> _I64:
    """Steps 3 to 8: the rounded sum of product and addend, each given as magnitude, exponent and sign."""
    zero = (sp & sz) << 31 if blackhole else np.zeros_like(sp)
    # 3. A product that is zero or underflows leaves the addend, which is exact.
    gone = (p == 0) | (ep < 0)
    p, ep = np.where(gone, 0, p), np.where(gone, 0, ep)
    # 4. Align. What is shifted out completely leaves no sticky bit.
    er = np.maximum(ep, ez)
    p, q = _shifted(p, er - ep), _shifted(q, er - ez)
    # 5. Add.
    total = np.where(sp == sz, p + q, p - q)
    sign = np.where(total < 0, sz, sp)
    r = np.abs(total)
    sign = np.where(p == 0, sz, sign)
    nothing = r == 0
    # 6. Normalise.
    n = bit_length(r) - (_LEADING_BIT + 1)
    er = er + n
    overflow = er >= 255
    if blackhole:
        low = er <= 0
        n, er = np.where(low, n + 1, n), np.where(low, 0, er)
        sticky = r & (np.maximum(n, 0) | 1) != 0
    else:
        sticky = r & 1 != 0
    right, left = np.clip(n, 0, 31), np.clip(-n, 0, 31)
    r = np.where(n > 0, (r >> right) | sticky, r << left)
    underflow = er < 0
    # 7. Round to nearest even on the three extra bits; a carry runs into the exponent.
    pattern = (er << 23) + (r >> 3 & 0x7FFFFF)
    pattern = pattern + ((r & 7) + (pattern & 1) > 4)
    # 8. What has no exponent is zero.
    sign = sign << 31
    flushed = sign if blackhole else np.zeros_like(sign)
    result = np.where(underflow | (pattern >> 23 == 0), flushed, sign | pattern)
    result = np.where(overflow, sign | _INFINITY, result)
    return np.where(nothing, zero, result)


def _shifted(value: _I64, distance: _I64) -> _I64:
    """Shifted right, the lost bits ORed into bit 0 unless nothing else is left."""
    distance = np.minimum(distance, 40)
    kept = value >> distance
    lost = value != kept << distance
    return np.where(kept != 0, kept | lost, 0)
