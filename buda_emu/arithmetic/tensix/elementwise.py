"""ELWMUL, ELWADD, ELWSUB, max pool and moves between Src registers and Dst (DEVICE_NUMERICS 2)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.formats.bits import U32
from buda_emu.arithmetic.tensix.lanes import FAMILY_SHIFT, DstMode
from buda_emu.arithmetic.tensix.products import Sum, accumulate, product
from buda_emu.arithmetic.tensix.registers import (
    REGISTERS,
    SIGN,
    SRC_BITS,
    Core,
    exponent_of,
    require_pairing,
    sign_of,
    significand_of,
    to_image,
    to_word,
)
from buda_emu.spec.formats import Family
from buda_emu.support.errors import UnsupportedError


def elwmul(dst: U32, srca: U32, srcb: U32, phase: int, family: Family, mode: DstMode, core: Core) -> U32:
    """Return the float Dst image after srca * srcb, element by element, is added in one phase: the instruction ELWMUL
    (DEVICE_NUMERICS 2.4). All shapes are the same. Raises UnsupportedError for a 16-bit Dst of another family than the
    operands'."""
    require_pairing(family, mode)
    terms = product(srca, srcb, phase, family, mode)
    # A term with a zero operand is +0 with an exponent of the bias alone (`product`). Any term whose exponent is not
    # positive is dropped.
    dropped = terms.exponent <= 0
    products = Sum(
        sign=np.where(dropped, 0, terms.sign),
        exponent=np.maximum(terms.exponent, 0),
        magnitude=np.where(dropped, 0, terms.magnitude << 13),
    )
    return accumulate(dst, [products], family, mode, core)


def elwadd(dst: U32 | None, srca: U32, srcb: U32, family: Family, mode: DstMode, core: Core) -> U32:
    """Return the float Dst image of srca + srcb, added to `dst` unless it is None (DEVICE_NUMERICS 2.5); all shapes are
    the same. The smaller operand is rounded to the last of the larger one's 11 bits, and the sum to what Dst holds.
    Raises UnsupportedError for a 16-bit Dst of another family than the operands'."""
    require_pairing(family, mode)
    a, b = (np.where(exponent_of(x) == 0, np.uint32(0), x & SRC_BITS) for x in (srca, srcb))
    a_larger = a & ~SIGN >= b & ~SIGN
    larger = np.where(a_larger, a, b)
    smaller = np.where(a_larger, b, a)
    zero = smaller & ~SIGN == 0
    exponent = exponent_of(larger)
    distance = exponent - exponent_of(smaller)
    large = np.where(larger & ~SIGN == 0, 0, significand_of(larger))
    small = np.where(zero, 0, significand_of(smaller))
    right = np.clip(distance, 1, 12)
    aligned = np.where(distance == 0, small, np.where(distance < 12, (small + (1 << (right - 1))) >> right, 0))
    total = np.where(sign_of(larger) == sign_of(smaller), large + aligned, large - aligned)
    if (family, mode) == ("a", "fp32"):
        exponent = np.where(exponent == 0, 97, exponent + 112)
    sums = Sum(sign_of(larger), exponent, total << 13)
    if dst is None:
        dst = np.zeros_like(a)
    return accumulate(dst, [sums], family, mode, core)


def elwsub(dst: U32 | None, srca: U32, srcb: U32, family: Family, mode: DstMode, core: Core) -> U32:
    """Return the float Dst image of srca - srcb, added to `dst` unless it is None, rounded as `elwadd` does; all shapes
    are the same. Raises UnsupportedError for a 16-bit Dst of another family than the operands'."""
    return elwadd(dst, srca, srcb ^ SIGN, family, mode, core)


def move_to_dst(srca: U32, mode: DstMode) -> U32:
    """Return the Dst image of SrcA words that the chip moves: words with exponent 0 become +0, an fp32 Dst takes the 19
    bits as they are (DEVICE_NUMERICS 2.7)."""
    return to_image(np.where(exponent_of(srca) == 0, np.uint32(0), srca & SRC_BITS), mode)


def copy_to_dst(srca: U32, family: Family, mode: DstMode, core: Core) -> U32:
    """Return the Dst image of a float operand that an op copies to Dst: moved (`move_to_dst`), but for an fp32 Dst,
    where the chip's kernels add zero to it instead, and data with exponent 255 lose their fraction (DEVICE_NUMERICS
    2.7)."""
    if mode == "fp32":
        return elwadd(None, srca, np.zeros_like(srca), family, mode, core)
    return move_to_dst(srca, mode)


def move_to_src(dst: U32, mode: DstMode, register: str) -> U32:
    """Return a Dst image as words of SrcA or SrcB, for ops that take Dst as an operand: those of a 32-bit Dst are
    truncated to the bits of the format `register` (DEVICE_NUMERICS 2.7). Raises UnsupportedError for a format into
    which a 32-bit Dst is not moved."""
    if mode in ("bf16", "fp16"):
        return to_word(dst, mode)
    if register == "Tf32":
        return dst & SRC_BITS
    if register in ("Float16_b", "Bfp8_b"):
        return dst & np.uint32(0xFFFF0000)
    # For the other formats the vector unit first rounds into a 16-bit Dst (2.8), so that they do not come here.
    raise UnsupportedError(f"a Dst of {mode} is not moved to a register of {register}")


Dim = Literal["r", "c"]
"""The dimension of a reduction: "r" leaves row 0 of a tile, "c" column 0."""

KEPT: Final[Mapping[str, np.uint32]] = MappingProxyType(
    {
        **dict.fromkeys(("Float16_b", "Bfp8_b"), np.uint32(0xFFFF0000)),
        **dict.fromkeys(("Tf32", "Float16", "Bfp8", "Lf8"), SRC_BITS),
    }
)
"""Mask of the bits of a SrcA word that max pool compares, by format of the register."""

LOWEST: Final = np.uint32(0xFFFFFFFF)
"""The word that a cleared Dst counts as in a max pool: smaller than all others."""


def max_pool(dst: U32 | None, srca: U32, register: str, mode: DstMode) -> U32:
    """Return row 0 of the Dst image, [..., cols], after the maximum over the rows of srca [..., rows, cols]
    (DEVICE_NUMERICS 2.6).

    `dst` is row 0 before, None for a cleared Dst, which is less than any number. A value replaces the maximum only
    where it is strictly greater in the order of sign and magnitude, by the bits that the format `register` has. Raises
    UnsupportedError for integers, whose pooling is undocumented.
    """
    if register not in KEPT:
        raise UnsupportedError(f"max pool of {register} is not known")
    data = np.where(exponent_of(srca) == 0, np.uint32(0), srca & KEPT[register])
    if mode == "fp32" and REGISTERS[register] == "a":
        # Assumed, since it is not documented: exponents of 5 bits become those of a single, as in the adder.
        data = np.where(data == 0, data, data + np.uint32(FAMILY_SHIFT << 23))
    if dst is None:
        running = np.full_like(data[..., 0, :], LOWEST)
    else:
        running = to_word(dst, mode) & (SRC_BITS if mode == "fp32" else LOWEST)
    for row in range(srca.shape[-2]):
        running = np.where(_sort_key(data[..., row, :]) > _sort_key(running), data[..., row, :], running)
    return to_image(running, mode)


def reduce_max(tiles: U32, dim: Dim, register: str, mode: DstMode, core: Core) -> U32:
    """Return the Dst image [..., 32, 32] of the maximum over tiles [..., n, 32, 32] of SrcA words and over one
    dimension of a tile (DEVICE_NUMERICS 2.8).

    `r` pools down the columns into row 0. `c` pools transposed faces into a row, over all tiles, and then carries this
    row through SrcB and the adder into column 0. All other elements are zeros, as the packer writes them. Raises
    UnsupportedError for integers.
    """
    rows = tiles
    if dim == "c":
        rows = tiles.swapaxes(-1, -2)
    flat = rows.reshape(*rows.shape[:-3], -1, rows.shape[-1])
    pooled = max_pool(None, flat, register, mode)
    out = np.zeros((*flat.shape[:-2], *tiles.shape[-2:]), np.uint32)
    if dim == "r":
        out[..., 0, :] = pooled
    else:
        out[..., :, 0] = _carry_over(pooled, register, mode, core)
    return out


def _carry_over(pooled: U32, register: str, mode: DstMode, core: Core) -> U32:
    """Return the Dst image of a pooled row after its way through SrcB and ELWADD with zeros, by which the chip
    transposes it: data with exponent 255 lose their fraction (DEVICE_NUMERICS 10)."""
    family = REGISTERS[register] or "b"
    if (family, mode) == ("a", "fp32"):  # the way rounds to 10 bits of fraction, and no word has more
        return pooled
    return copy_to_dst(move_to_src(pooled, mode, register), family, mode, core)


def _sort_key(words: U32) -> NDArray[np.int32]:
    """Return words as integers that sort as the words do by sign and magnitude: -0 below +0, NaNs outermost."""
    return np.where(words & SIGN != 0, words ^ ~SIGN, words).astype(np.uint32).view(np.int32)
