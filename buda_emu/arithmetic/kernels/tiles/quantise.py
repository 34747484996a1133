"""Quantisation of tiles in place, to the bits that `buda_emu.arithmetic.formats.quantise` defines (FORMATS 3 and 4).

It is integer arithmetic on the bit patterns; infinities, NaN payloads and denormals come out as the definition says on
every machine. There is one kernel for each kind of format, so that a run compiles only the kinds it meets. Each works
on tiles start to stop - 1 of float32[n, 1024], in place.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.jit.kernel import kernel
from buda_emu.arithmetic.jit.primitives import shift_left, shift_right
from buda_emu.arithmetic.jit.thread_team import claim_items
from buda_emu.spec.blocking import TILE_ELEMENTS
from buda_emu.spec.formats import FORMATS
from buda_emu.spec.single import FRACTION, HIDDEN, INFINITY, MAGNITUDE, SIGN
from buda_emu.support.errors import UnsupportedError

Tiles = NDArray[np.float32]

_TILE: Final = TILE_ELEMENTS
_GROUP: Final = 16  # datums under one shared exponent (FORMATS)
_I: Final = np.int32


def quantisers(format_name: str, truncate: bool) -> Sequence["Quantiser"]:
    """Return the kernels that quantise to a format, to be run in that order, each with what it takes after (start,
    stop, tiles). `truncate`: cut the magnitudes of block formats, as conversions inside a graph do, instead of rounding
    them, as a host push does (FORMATS 4). Raises UnsupportedError for an unknown format."""
    block = _BLOCKS.get(format_name)
    if block is not None:
        return ((quantise_blocks, (*block, truncate)),)
    if format_name not in _SCALARS:
        raise UnsupportedError(f"unknown number format {format_name!r}")
    return _SCALARS[format_name]


@kernel
def mask_bits(start: int, stop: int, tiles: Tiles, mask: int) -> None:
    """Keep of every word in tiles start to stop - 1 only the bits `mask`: truncation to Float16_b or Tf32, the low bits
    for RawUInt* (FORMATS 3.2, 3.3, 3.9)."""
    words = tiles.view(np.uint32)
    word_mask = np.uint32(mask)
    for index in claim_items(start, stop):
        for k in range(_TILE):
            words[index, k] &= word_mask


@kernel
def quantise_small_floats(start: int, stop: int, tiles: Tiles, fraction_bits: int) -> None:
    """Truncate tiles start to stop - 1, in place, to a format with a 5-bit exponent, no infinities and `fraction_bits`:
    Float16, Lf8 (FORMATS 3.4, 3.5). Magnitudes below 2^-14 become signed zeros, those from 2^17 on the largest
    number."""
    words = tiles.view(np.uint32)
    smallest = (127 - 14) << 23
    beyond = (127 + 17) << 23
    mask = MAGNITUDE & ~((1 << (23 - fraction_bits)) - 1)
    largest = (beyond - 1) & mask
    for index in claim_items(start, stop):
        for k in range(_TILE):
            word = np.int64(words[index, k])
            magnitude = word & MAGNITUDE
            cut = magnitude & mask
            if magnitude < smallest:
                cut = 0
            if magnitude >= beyond:
                cut = largest
            words[index, k] = (word & SIGN) | cut


@kernel
def reread_lf8_as_e4m3(start: int, stop: int, tiles: Tiles) -> None:
    """Replace Lf8 values in tiles start to stop - 1 by the Fp8_e4m3 values of the same bytes, since a tile of Fp8_e4m3
    is written by the packer of Lf8 (FORMATS 3.6)."""
    words = tiles.view(np.uint32)
    for index in claim_items(start, stop):
        for k in range(_TILE):
            word = np.int64(words[index, k])
            magnitude = word & MAGNITUDE
            code = 0  # the seven bits below the sign
            if magnitude != 0:
                code = (magnitude >> 21) - (112 << 2)
            value = code << 20
            if code >= 8:
                value += 120 << 23
            words[index, k] = (word & SIGN) | value


@kernel
def quantise_integers(start: int, stop: int, tiles: Tiles, low: int, high: int) -> None:
    """Round tiles start to stop - 1, in place, to integers within low..high, ties away from zero; NaN and -0 become 0:
    Int8, UInt8, UInt16 (FORMATS 3.7)."""
    lowest = np.float32(low)
    highest = np.float32(high)
    half = np.float32(0.5)
    for index in claim_items(start, stop):
        for k in range(_TILE):
            x = tiles[index, k]
            if x != x:
                x = np.float32(0)
            value = min(max(x, lowest), highest)
            truncated = np.int32(value)
            fraction = value - np.float32(truncated)
            away = np.int32(fraction >= half) - np.int32(fraction <= -half)
            tiles[index, k] = np.float32(np.int32(truncated + away))


@kernel
def quantise_int32(start: int, stop: int, tiles: Tiles) -> None:
    """Quantise tiles start to stop - 1, in place, to Int32 in sign and magnitude: positive values are truncated,
    negative ones rounded half away from zero. Nothing is clamped: of positive values beyond the range the low 32 bits
    remain, as sign and magnitude; those from 2^63 on, -2^31 and less, NaN and infinities become 0 (FORMATS 3.8, OPS
    4.4)."""
    words = tiles.view(np.uint32)
    for index in claim_items(start, stop):
        for k in range(_TILE):
            code = np.int64(0)
            if np.int64(words[index, k]) & MAGNITUDE <= INFINITY:
                value = tiles[index, k]
                if value < np.float32(0):
                    magnitude = min(-value, np.float32(2147483648.0))
                    code = np.int64(magnitude)
                    if magnitude - np.float32(code) >= np.float32(0.5):
                        code += 1
                    code |= SIGN
                elif value < np.float32(9223372036854775808.0):
                    code = np.int64(value)
            result = np.float32(code & MAGNITUDE)
            if code & SIGN and result != np.float32(0):
                result = -result
            tiles[index, k] = result


@kernel
def quantise_blocks(start: int, stop: int, tiles: Tiles, magnitude_bits: int, narrow: bool, truncate: bool) -> None:
    """Quantise tiles start to stop - 1, in place, to a block format with `magnitude_bits`, Bfp8, Bfp4 or Bfp2
    (`narrow`: 5-bit exponents) or a sibling with _b: 16 neighbours share an exponent, that of the largest (FORMATS 4).
    `truncate`: magnitudes are cut instead of rounded."""
    words = tiles.view(np.int32)
    drop = _I(24 - magnitude_bits)
    up = _I(7 - magnitude_bits)
    rounding = _I(0)
    if not truncate:
        rounding = _I(1 << (23 - magnitude_bits))
    largest = _I((1 << magnitude_bits) - 1)
    shift = _I(0)
    top = _I(255)
    if narrow:
        shift = _I(112)  # the bias of 5-bit exponents is 15, that of 8-bit ones 127
        top = _I(31)
    halves = np.empty(_GROUP // 2, np.int32)
    hidden = _I(HIDDEN)
    fraction_mask = _I(FRACTION)
    magnitude_mask = _I(MAGNITUDE)
    for index in claim_items(start, stop):
        for group in range(_TILE // _GROUP):
            row = words[index, _GROUP * group : _GROUP * group + _GROUP]
            for k in range(_GROUP // 2):  # the largest magnitude, by halves: that becomes vector code
                halves[k] = max(_I(row[k] & magnitude_mask), _I(row[k + 8] & magnitude_mask))
            for k in range(_GROUP // 4):
                halves[k] = max(halves[k], halves[k + 4])
            greatest = max(max(halves[0], halves[1]), max(halves[2], halves[3]))
            shared = min(max(_I(_I(greatest >> _I(23)) - shift), _I(0)), top)
            for k in range(_GROUP):
                word = row[k]
                exponent = _I(_I(_I(word >> _I(23)) & _I(255)) - shift)
                fraction = _I(word & fraction_mask)
                if exponent > top:
                    fraction = fraction_mask
                if exponent < _I(0):
                    fraction = _I(0)
                exponent = min(max(exponent, _I(0)), top)
                aligned = shift_right(_I(fraction | hidden), min(_I(shared - exponent), _I(31)))
                magnitude = min(shift_right(_I(aligned + rounding), drop), largest)
                # As a number of seven bits with a leading one; the float of it has normalised them.
                wide = np.float32(shift_left(magnitude, up)).view(np.int32)
                field = _I(_I(_I(_I(wide >> _I(23)) + _I(shared + shift)) - _I(127 + 6)) & _I(255))
                value = _I(_I(word & ~magnitude_mask) | _I(_I(field << _I(23)) | _I(wide & fraction_mask)))
                if (magnitude == _I(0)) | (_I(word & magnitude_mask) == _I(0)):
                    value = _I(0)
                row[k] = value


Quantiser: TypeAlias = tuple[Callable[..., None], tuple[int, ...]]
_SCALARS: Final[Mapping[str, tuple[Quantiser, ...]]] = MappingProxyType(
    {
        "Float32": (),
        "Tf32": ((mask_bits, (0xFFFFE000,)),),
        "Float16_b": ((mask_bits, (0xFFFF0000,)),),
        "Float16": ((quantise_small_floats, (10,)),),
        "Lf8": ((quantise_small_floats, (2,)),),
        "Fp8_e4m3": ((quantise_small_floats, (2,)), (reread_lf8_as_e4m3, ())),
        "Int8": ((quantise_integers, (-127, 127)),),
        "UInt8": ((quantise_integers, (0, 255)),),
        "UInt16": ((quantise_integers, (0, 65535)),),
        "Int32": ((quantise_int32, ()),),
        "RawUInt8": ((mask_bits, (0xFF,)),),
        "RawUInt16": ((mask_bits, (0xFFFF,)),),
        "RawUInt32": (),
    }
)
"""The kernels that make up each format without shared exponents, in order, with their arguments."""

_BLOCKS: Final[Mapping[str, tuple[int, bool]]] = MappingProxyType(
    {name: (spec.mantissa_bits, spec.family == "a") for name, spec in FORMATS.items() if spec.kind == "block"}
)
"""Magnitude bits and narrowness of each block format."""
