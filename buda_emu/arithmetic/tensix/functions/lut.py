"""The piecewise linear tables of the vector unit: LUT8 with 3 ranges, LUT16 with 6 (DEVICE_NUMERICS 3.2)."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from buda_emu.arithmetic.formats.bits import to_bits
from buda_emu.support.errors import InternalError

_BREAKS_3 = (1.0, 2.0)
_BREAKS_6 = {1: (0.5, 1.0, 1.5, 2.0, 3.0), 2: (0.5, 1.0, 1.5, 2.0, 4.0)}


@dataclass(frozen=True, slots=True)
class Lut:
    """slope * |x| + offset by the range in which |x| lies.

    `breaks` are the lower ends of the second and later ranges, `slopes` and `offsets` one more each, all fp32
    patterns. `retain`: the sign of x is copied onto the result.
    """

    breaks: tuple[int, ...]
    slopes: tuple[int, ...]
    offsets: tuple[int, ...]
    retain: bool

    def __post_init__(self) -> None:
        if not len(self.breaks) + 1 == len(self.slopes) == len(self.offsets):
            raise InternalError(f"a table of {len(self.breaks) + 1} ranges needs as many slopes and offsets")
        if any(low >= high for low, high in pairwise(self.breaks)):
            raise InternalError("the ranges of a table ascend")


def lut8(coefficients: tuple[int, int, int]) -> Lut:
    """Return a table of 3 ranges from 16-bit words, slope byte above, offset byte below."""
    slopes, offsets = zip(*((_small(word >> 8), _small(word & 255)) for word in coefficients), strict=True)
    return Lut(_patterns(_BREAKS_3), slopes, offsets, retain=True)


def lut16(slopes: tuple[int, ...], offsets: tuple[int, ...], table: int, retain: bool) -> Lut:
    """Return a table of 6 ranges from fp16 coefficients; `table` 1 has its last range from 3, table 2 from 4. `retain`:
    see `Lut`."""
    return Lut(_patterns(_BREAKS_6[table]), tuple(map(_half, slopes)), tuple(map(_half, offsets)), retain)


def _small(byte: int) -> int:
    """Decode `s e3 m4`: (-1)^s * 2^-e * (1 + m/16); all ones is zero."""
    if byte == 0xFF:
        return 0
    return (byte >> 7) << 31 | (127 - (byte >> 4 & 7)) << 23 | (byte & 15) << 19


def _half(word: int) -> int:
    """Decode fp16 with its exponent moved by 112; exponent 31 is zero."""
    if word >> 10 & 31 == 31:
        return 0
    return (word >> 15) << 31 | ((word >> 10 & 31) + 112) << 23 | (word & 0x3FF) << 13


def _patterns(values: tuple[float, ...]) -> tuple[int, ...]:
    """Return the fp32 patterns of these numbers."""
    return tuple(int(pattern) for pattern in to_bits(np.array(values, dtype=np.float32)))
