"""The instructions of the vector unit (SFPU), and the unit that executes them in plain numpy (DEVICE_NUMERICS 3).

Functions of this room are written once against `VectorUnit`. `NumpyUnit` computes them, which is their definition;
`buda_emu.arithmetic.tensix.functions.programs` records them for the kernel that runs the same steps fast.
"""

from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.formats.bits import U32, bit_length
from buda_emu.arithmetic.tensix import lanes
from buda_emu.spec.single import FRACTION, HIDDEN, INFINITY, MAGNITUDE

_I64 = NDArray[np.int64]
_NAN_SEED: Final = 0x7F800001  # an infinity with the lowest bit of fraction set
_NAN: Final = 0x7FC00000  # the quiet NaN
_LEADING_BIT: Final = 26
"""Where the leading one stands before rounding: 24 bits of significand and three more."""


def fma(x: U32, y: U32, z: U32, blackhole: bool = False) -> U32:
    """Return x * y + z of fp32 patterns, element by element, as the chip's vector unit rounds it (DEVICE_NUMERICS 3.1):
    subnormals count as 0; the arguments broadcast. Blackhole differs from Wormhole in NaNs, in the signs of zeros, and
    in which lost bits count when a result is rounded."""
    x64, y64, z64 = np.broadcast_arrays(*(np.asarray(a).astype(np.int64) for a in (x, y, z)))
    ex, ey, ez = ((a >> 23) & 255 for a in (x64, y64, z64))
    mx, my, mz = (np.where(e == 0, 0, (a & FRACTION) | HIDDEN) for a, e in ((x64, ex), (y64, ey), (z64, ez)))
    sp = (x64 ^ y64) >> 31 & 1
    sz = z64 >> 31 & 1
    # 1. The product in units of the addend's, with a sticky bit 0.
    wide = 8 * mx * my
    p = (wide >> 23) | (wide & FRACTION != 0)
    ep = ex + ey - 127
    # 2. Infinities and NaNs.
    x_nan, y_nan, z_nan = ((e == 255) & (a & FRACTION != 0) for a, e in ((x64, ex), (y64, ey), (z64, ez)))
    x_inf, y_inf, z_inf = ((e == 255) & (a & FRACTION == 0) for a, e in ((x64, ex), (y64, ey), (z64, ez)))
    bad = x_nan | y_nan | (x_inf & (my == 0)) | (y_inf & (mx == 0))
    infinite = ~bad & (x_inf | y_inf | (ep >= 255))
    meets_infinity = infinite
    if blackhole:  # only infinite factors count there, no product that overflows
        meets_infinity = x_inf | y_inf
    against = z_inf & (sz != sp) & meets_infinity
    is_nan = bad | z_nan | against
    seed = np.where(bad | against, sp, sz) << 31 | _NAN_SEED
    special = np.where(z_inf, z64 & 0xFFFFFFFF, sp << 31 | INFINITY)
    if blackhole:
        special = np.where(is_nan, _NAN, special)
    # Special results are final here, but for Wormhole's NaNs, which run on and are marked by the seed.
    ended = ~is_nan & (z_inf | infinite)
    if blackhole:
        ended = is_nan | z_inf | infinite
    ep = np.minimum(ep, 255)
    finite = _sum_finite(p, ep, sp, mz << 3, ez, sz, blackhole)
    marked = np.where(is_nan, seed | (finite & MAGNITUDE), finite)  # the sign is the seed's
    return np.where(ended, special, marked).astype(np.uint32)


def _sum_finite(p: _I64, ep: _I64, sp: _I64, q: _I64, ez: _I64, sz: _I64, blackhole: bool) -> _I64:
    """Return the patterns of the rounded sum of product (magnitude p, exponent ep, sign sp) and addend (q, ez, sz), for
    finite operands: aligned, added, normalised, rounded to nearest even, and flushed to zero below the least exponent
    (steps 3 to 8 of DEVICE_NUMERICS 3.1). Magnitudes have three bits below the last one of a significand."""
    zero = (sp & sz) << 31 if blackhole else np.zeros_like(sp)
    # 3. A product that is zero or underflows leaves the addend, which is exact.
    gone = (p == 0) | (ep < 0)
    p = np.where(gone, 0, p)
    ep = np.where(gone, 0, ep)
    # 4. Align. What is shifted out completely leaves no sticky bit.
    er = np.maximum(ep, ez)
    p = _shift_right(p, er - ep)
    q = _shift_right(q, er - ez)
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
        n = np.where(low, n + 1, n)
        er = np.where(low, 0, er)
        sticky = r & (np.maximum(n, 0) | 1) != 0
    else:
        sticky = r & 1 != 0
    right = np.clip(n, 0, 31)
    left = np.clip(-n, 0, 31)
    r = np.where(n > 0, (r >> right) | sticky, r << left)
    underflow = er < 0
    # 7. Round to nearest even on the three extra bits; a carry runs into the exponent.
    pattern = (er << 23) + (r >> 3 & FRACTION)
    pattern = pattern + ((r & 7) + (pattern & 1) > 4)
    # 8. What has no exponent is zero.
    sign = sign << 31
    flushed = sign if blackhole else np.zeros_like(sign)
    result = np.where(underflow | (pattern >> 23 == 0), flushed, sign | pattern)
    result = np.where(overflow, sign | INFINITY, result)
    return np.where(nothing, zero, result)


def _shift_right(value: _I64, distance: _I64) -> _I64:
    """Return `value` shifted right, with the lost bits ORed into bit 0 (sticky), but 0 where nothing is left above
    them."""
    distance = np.minimum(distance, 40)
    upper = value >> distance
    lost = value != upper << distance
    return np.where(upper != 0, upper | lost, 0)


V = TypeVar("V")
"""Whatever stands for the 32 lanes of a register: words, or the truth values of a condition."""


class VectorUnit(Protocol[V]):
    """The instructions of the vector unit, on values V that stand for registers of 32 lanes or for conditions.
    Functions of the unit are written against it once, and executed or recorded by its implementations. A plain int is a
    constant: the same 32 bits in every lane."""

    def fma(self, x: V | int, y: V | int, z: V | int) -> V:
        """Return x * y + z of fp32 patterns, as the chip rounds it (DEVICE_NUMERICS 3.1)."""
        ...

    def merge(self, a: V, mask: int, added: V | int) -> V:
        """Return (a & mask) | added: the bits of `a` within the mask, with those of `added`."""
        ...

    def exponent(self, a: V) -> V:
        """Return the exponent field of a float, as an integer."""
        ...

    def bit_and(self, a: V, b: V | int) -> V:
        """Return the bits that are set in both operands."""
        ...

    def bit_or(self, a: V, b: V | int) -> V:
        """Return the bits that are set in either operand."""
        ...

    def shift_left(self, a: V, places: int) -> V:
        """Return the word shifted towards the high bits, without the bits that leave it."""
        ...

    def shift_right(self, a: V, places: int) -> V:
        """Return the word shifted towards the low bits, with zeros at the top."""
        ...

    def add(self, a: V | int, b: V | int) -> V:
        """Return the integer sum modulo 2^32."""
        ...

    def subtract(self, a: V | int, b: V | int) -> V:
        """Return the integer difference modulo 2^32."""
        ...

    def negative(self, a: V) -> V:
        """Return the condition that the sign bit is set, as "x < 0" is tested; -0 and negative NaNs are negative."""
        ...

    def equal(self, a: V, b: V | int) -> V:
        """Return the condition that all 32 bits agree; -0 is not equal to 0."""
        ...

    def less(self, a: V, b: V | int) -> V:
        """Return the condition that a < b, both read as 32-bit integers in two's complement (not as floats)."""
        ...

    def select(self, condition: V, a: V | int, b: V | int) -> V:
        """Return `a` in the lanes where the condition holds, `b` in the others."""
        ...

    def lookup(self, breaks: tuple[int, ...], values: tuple[int, ...], a: V) -> V:
        """Return `values[i]`, where i is the number of the ascending `breaks` that do not exceed `a`, compared as
        unsigned integers: one value more than breaks."""
        ...

    def to_integer(self, a: V, limit: int) -> V:
        """Return fp32 rounded to the nearest integer in sign and magnitude, with a magnitude of at most `limit`
        (DEVICE_NUMERICS 3.2)."""
        ...

    def to_float(self, a: V) -> V:
        """Return an integer in sign and magnitude as fp32 (DEVICE_NUMERICS 3.2)."""
        ...

    def greater(self, a: V | int, b: V | int) -> V:
        """Return the larger of two words in the order of sign and magnitude, which is that of floats."""
        ...


_Words = NDArray[Any]


@dataclass(frozen=True, slots=True)
class NumpyUnit:
    """A `VectorUnit` that executes at once on arrays of lanes, uint32 of any shape; conditions are arrays of bool."""

    blackhole: bool = False

    def fma(self, x: _Words | int, y: _Words | int, z: _Words | int) -> _Words:
        """Return x * y + z as the chip's vector unit rounds it (module function `fma`), on patterns of fp32."""
        return fma(_words(x), _words(y), _words(z), self.blackhole)

    def merge(self, a: _Words, mask: int, added: _Words | int) -> _Words:
        """Return (a & mask) | added."""
        return a & _words(mask) | _words(added)

    def exponent(self, a: _Words) -> _Words:
        """Return bits 23 to 30 as an integer."""
        return a >> np.uint32(23) & np.uint32(255)

    def bit_and(self, a: _Words, b: _Words | int) -> _Words:
        """Return a & b."""
        return a & _words(b)

    def bit_or(self, a: _Words, b: _Words | int) -> _Words:
        """Return a | b."""
        return a | _words(b)

    def shift_left(self, a: _Words, places: int) -> _Words:
        """Return the words shifted towards the high bits."""
        return a << np.uint32(places)

    def shift_right(self, a: _Words, places: int) -> _Words:
        """Return the words shifted towards the low bits, with zeros at the top."""
        return a >> np.uint32(places)

    def add(self, a: _Words | int, b: _Words | int) -> _Words:
        """Return the integer sum modulo 2^32."""
        return _words(a) + _words(b)

    def subtract(self, a: _Words | int, b: _Words | int) -> _Words:
        """Return the integer difference modulo 2^32."""
        return _words(a) - _words(b)

    def negative(self, a: _Words) -> _Words:
        """Return where the sign bit is set."""
        return a >> np.uint32(31) != 0

    def equal(self, a: _Words, b: _Words | int) -> _Words:
        """Return where all 32 bits agree."""
        return a == _words(b)

    def less(self, a: _Words, b: _Words | int) -> _Words:
        """Return where a < b, both read as 32-bit integers in two's complement."""
        return a.view(np.int32) < _words(b).view(np.int32)

    def select(self, condition: _Words, a: _Words | int, b: _Words | int) -> _Words:
        """Return `a` where the condition holds, else `b`."""
        return np.where(condition, _words(a), _words(b))

    def lookup(self, breaks: tuple[int, ...], values: tuple[int, ...], a: _Words) -> _Words:
        """Return the value of the range in which each word lies: `values[i]`, where i is the number of `breaks` that do
        not exceed it as unsigned integers."""
        return np.array(values, dtype=np.uint32)[np.searchsorted(np.array(breaks, dtype=np.uint32), a, side="right")]

    def to_integer(self, a: _Words, limit: int) -> _Words:
        """Convert fp32 to integers of at most `limit` in magnitude (`lanes.to_integer`)."""
        return lanes.to_integer(a, limit)

    def to_float(self, a: _Words) -> _Words:
        """Convert integers in sign and magnitude to fp32 (`lanes.to_float`)."""
        return lanes.to_float(a)

    def greater(self, a: _Words | int, b: _Words | int) -> _Words:
        """Return the larger in the order of sign and magnitude (`lanes.greater`)."""
        return lanes.greater(_words(a), _words(b))


def _words(value: _Words | int) -> U32:
    """Return words as they are, or a constant as a uint32 array of no dimensions, which wraps around silently where a
    scalar would warn."""
    return np.asarray(value, dtype=np.uint32)
