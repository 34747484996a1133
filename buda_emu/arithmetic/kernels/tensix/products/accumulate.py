"""What the kernels of products share: operands and sizes, operands taken apart for a fidelity phase, and ACC, the
accumulation in Dst (DEVICE_NUMERICS 2.3; `buda_emu.arithmetic.tensix.products` defines it), in 32-bit signed integers
without branches.

Two identities carry ACC. A sum in sign and magnitude that rounds its ties towards +inf is a signed integer plus half,
shifted down. And normalising and rounding away from zero is what adding half to the pattern of a single does, once the
exact integer is one.
"""

from typing import Final, NamedTuple

import numpy as np

from buda_emu.arithmetic.jit.kernel import helper
from buda_emu.arithmetic.jit.primitives import shift_left, shift_right
from buda_emu.arithmetic.kernels.tensix.words import FP32, TILE, Index, Lanes, Setting, Tensor, i32
from buda_emu.spec.single import FRACTION, HIDDEN, INFINITY, MAGNITUDE, NEGATIVE_SIGN

ZERO_EXPONENT: Final = -(1 << 20)
"""Exponent of a zero operand: far below all others."""


@helper
def phase_shift(phase: int) -> int:
    """Return by how much the exponents of products in a fidelity phase, 0 to 3, are less than those of phase 0
    (2.1)."""
    return 5 * (phase & 1) + 7 * (phase >> 1)


@helper
def exponent_bias(mode: int, exponent_bits: int, phase: int) -> np.int32:
    """Return what is added to the sum of both operands' exponent fields to get their product's exponent in a phase. The
    fields have 5 or 8 bits; operands of 5 bits get exponents of 8 bits in an fp32 Dst (2.1)."""
    bias = -127
    if exponent_bits == 5:
        bias = -15
        if mode == FP32:  # 112 more: exponents of 8 bits from here on
            bias = 97
    return i32(bias - phase_shift(phase))


@helper
def accumulate_narrow(
    word: np.int32, x0: np.int32, v0: np.int32, x1: np.int32, v1: np.int32, half_float: bool
) -> np.int32:
    """Return a word of a 16-bit Dst after two sums are added to it at once (2.3): v0 in units of 2^-10 of 2^x0, and v1
    likewise.

    |v| < 2^15; x is not negative, and v is 0 where x is. `half_float`: Dst holds fp16, not bf16.
    """
    # All terms are rounded to units of 2^-10 of the common exponent: 13 of the 23 bits are discarded.
    x = i32(i32(word >> i32(23)) & i32(255))
    n = i32(i32(i32(word & i32(FRACTION)) | i32(HIDDEN)) >> i32(13))
    if x == 0:
        n = i32(0)
    common = max(x, max(x0, x1))
    distance = min(i32(common - x), i32(20))  # from 12 on nothing is left of 11 bits
    n = shift_right(i32(n + i32(shift_left(i32(1), distance) >> i32(1))), distance)
    sign = i32(word >> i32(31))
    n = i32(i32(n ^ sign) - sign)
    n = i32(n + _narrow_term(v0, i32(common - x0)))
    n = i32(n + _narrow_term(v1, i32(common - x1)))
    bits = np.float32(n).view(np.int32)  # exact: less than 2^18
    magnitude = i32(bits & i32(MAGNITUDE))
    if half_float:
        magnitude = i32(i32(magnitude + i32(0x1000)) & i32(-0x2000))
        too_large = i32(32)
        saturated = i32(31 << 23 | 0x3FF << 13)
    else:
        magnitude = i32(i32(magnitude + i32(0x8000)) & i32(-0x10000))
        too_large = i32(255)
        saturated = i32(255 << 23)
    exponent = i32(i32(magnitude >> i32(23)) + i32(common - i32(127 + 10)))
    result = i32(i32(exponent << i32(23)) | i32(magnitude & i32(FRACTION)))
    if exponent >= too_large:
        result = saturated
    result = i32(result | i32(bits & i32(NEGATIVE_SIGN)))
    if (n == 0) | (exponent <= 0):
        result = i32(0)
    return result


@helper
def _narrow_term(v: np.int32, distance: np.int32) -> np.int32:
    """Return v / 2^distance rounded to the nearest integer, ties upward.

    The chip rounds twice, first to 13 bits more (2.3 steps 2 and 3). So what lies less than 2^-14 below a tie is
    rounded up here, too.
    """
    distance = min(distance, i32(20))
    unit = shift_left(i32(1), distance)
    return shift_right(i32(i32(v + i32(unit >> i32(1))) + i32(unit >> i32(14))), distance)


@helper
def accumulate_wide(
    word: np.int32, x0: np.int32, v0: np.int32, x1: np.int32, v1: np.int32, blackhole: bool
) -> np.int32:
    """Return a word of an fp32 Dst after two sums are added to it at once (2.3): v0 in units of 2^-10 of 2^x0, and v1
    likewise; |v| < 2^15. `blackhole`: without Wormhole's error for a sum of -1 (2.3 step 5)."""
    x = i32(i32(word >> i32(23)) & i32(255))
    n = i32(i32(word & i32(FRACTION)) | i32(HIDDEN))
    if x == 0:
        n = i32(0)
    common = max(x, max(x0, x1))
    distance = min(i32(common - x), i32(25))  # from there on nothing is left of 24 bits
    n = shift_right(i32(n + i32(shift_left(i32(1), distance) >> i32(1))), distance)
    sign = i32(word >> i32(31))
    n = i32(i32(n ^ sign) - sign)
    n = i32(n + _wide_term(v0, i32(common - x0)))
    n = i32(n + _wide_term(v1, i32(common - x1)))
    sign = i32(n >> i32(31))
    magnitude = i32(i32(n ^ sign) - sign)
    # With the bit below the leading one cleared, the conversion cannot round up to the next power of two.
    lead = np.float32(i32(magnitude & i32(~i32(magnitude >> i32(1))))).view(np.int32)
    surplus = i32(i32(lead >> i32(23)) - i32(127 + 23))
    surplus = max(surplus, i32(-31))
    exponent = i32(common + surplus)
    right = max(surplus, i32(0))
    left = max(i32(-surplus), i32(0))
    rounded = shift_right(i32(magnitude + i32(shift_left(i32(1), right) >> i32(1))), right)
    rounded = shift_left(rounded, left)
    exponent = i32(exponent + i32(rounded >> i32(24)))
    if not blackhole:
        exponent = _with_error_of_minus_one(exponent, n, common)
    result = i32(i32(exponent << i32(23)) | i32(rounded & i32(FRACTION)))
    if exponent >= 255:
        result = i32(255 << 23)
    result = i32(result | i32(sign & i32(NEGATIVE_SIGN)))
    if (n == 0) | (exponent <= 0):
        result = i32(0)
    return result


@helper
def _with_error_of_minus_one(exponent: np.int32, n: np.int32, common: np.int32) -> np.int32:
    """Return the exponent of the result, which Wormhole gets wrong where the sum `n` is -1 in its least units: 4 above
    `common`, the common exponent of the terms (2.3 step 5)."""
    if n == -1:
        exponent = i32(common + i32(4))
    return exponent


@helper
def _wide_term(v: np.int32, distance: np.int32) -> np.int32:
    """Return v * 2^13 / 2^distance rounded to the nearest integer, ties upward."""
    distance = min(distance, i32(29))
    return shift_right(i32(i32(v << i32(13)) + i32(shift_left(i32(1), distance) >> i32(1))), distance)


class RegisterOperand(NamedTuple):
    """An operand in a register file: words uint32[w or 1, tiles, 1024] (1: the same entry for every w), read through
    `places`: the source tile of each tile after TMs, negative for a tile full of the word `pad`. Each tile is
    `transposed` first, if set."""

    words: Tensor
    places: Index
    pad: np.uint32
    transposed: bool = False


class Extent(NamedTuple):
    """Sizes of a product in tiles: `t` slices of [rows, inner] x [inner, cols], of which the inner tiles first to last
    - 1 are added. `faces`: how many faces the inner dimension of a tile has, 1 or 2."""

    t: int
    rows: int
    inner: int
    cols: int
    first: int
    last: int
    faces: int


class Product(NamedTuple):
    """The product in0 x in1 on the matrix unit: in0 goes to SrcB and has t * rows * inner places, in1 goes to SrcA and
    has t * inner * cols. Bit p of `phases` is set where fidelity phase p runs. `faces_first`: all phases run in one
    inner face before the next, as on Grayskull; otherwise all faces in one phase (2.8)."""

    in0: RegisterOperand
    in1: RegisterOperand
    extent: Extent
    phases: int
    faces_first: bool
    setting: Setting


PHASES: Final = 4  # fidelity phases of HiFi4 (DEVICE_NUMERICS 2.1)


@helper
def phase_and_face(step: int, faces: int, faces_first: bool) -> tuple[int, int]:
    """Return the fidelity phase and the inner face of step 0 to PHASES * faces - 1 of a tile's product. `faces_first`:
    all phases run in one face before the next face; otherwise all faces in one phase."""
    if faces_first:
        return step % PHASES, step // PHASES
    return step // faces, step % faces


@helper
def src_exponent(word: np.int32) -> np.int32:
    """Return the exponent field of a Src word; for a zero ZERO_EXPONENT, which lies far below all others."""
    exponent = i32(i32(word >> i32(23)) & i32(255))
    if exponent == 0:
        return i32(ZERO_EXPONENT)
    return exponent


@helper
def srca_part(word: np.int32, phase: int) -> np.int32:
    """Return the 5 bits of the significand of a SrcA word that a phase multiplies (2.1), as an integer with the word's
    sign; 0 for a zero."""
    m = i32(i32(i32(word >> i32(13)) & i32(0x3FF)) | i32(0x400))
    part = i32(m >> i32(6))
    if phase & 1:
        part = i32(i32(m >> i32(1)) & i32(31))
    return with_sign(part, word)


@helper
def srcb_part(word: np.int32, phase: int) -> np.int32:
    """Return the 7 bits of the significand of a SrcB word that a phase multiplies (2.1), as an integer with the word's
    sign; 0 for a zero."""
    m = i32(i32(i32(word >> i32(13)) & i32(0x3FF)) | i32(0x400))
    part = i32(m >> i32(4))
    if phase & 2:
        part = i32(i32(m & i32(15)) << i32(3))
    return with_sign(part, word)


@helper
def with_sign(part: np.int32, word: np.int32) -> np.int32:
    """Return `part`, an unsigned part of the significand of a Src word, with the word's sign; 0 if the word's exponent
    is 0."""
    if i32(word & i32(INFINITY)) == 0:
        part = i32(0)
    sign = i32(word >> i32(31))
    return i32(i32(part ^ sign) - sign)


@helper
def write_exponents(out: Lanes, words: Lanes) -> None:
    """Write to `out`, int32[1024], the exponents of a tile's Src words, as `src_exponent` returns them."""
    for n in range(TILE):
        out[n] = src_exponent(words[n])


@helper
def write_srca_parts(out: Lanes, words: Lanes, phase: int) -> None:
    """Write to `out`, int32[1024], the parts of a tile in SrcA that a phase multiplies."""
    for n in range(TILE):
        out[n] = srca_part(words[n], phase)


@helper
def write_srcb_parts(out: Lanes, words: Lanes, phase: int) -> None:
    """Write to `out`, int32[1024], the parts of a tile in SrcB that a phase multiplies."""
    for n in range(TILE):
        out[n] = srcb_part(words[n], phase)
