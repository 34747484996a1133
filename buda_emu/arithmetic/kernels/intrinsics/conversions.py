"""LLVM code of `kernels/tensix/pack.py` and `unpack.py`: block formats, in which a vector holds the 16 datums that
share an exponent, and the early conversions of the packer."""

from collections.abc import Callable
from typing import Any, Final

from llvmlite import ir
from numba.core import cgutils, types

from buda_emu.arithmetic.jit.llvm_code import (
    I8,
    I32,
    SIZE,
    Builder,
    Value,
    Vectors,
    call_shared_function,
    intrinsic,
    shared_intrinsic,
)
from buda_emu.arithmetic.kernels.tensix.pack import (
    FARTHEST,
    FRACTION,
    GROUP,
    LEADING,
    MOST,
    assemble_groups,
    early_groups,
    early_halves,
    early_words,
)
from buda_emu.arithmetic.kernels.tensix.unpack import SHARED_ONE, spread_groups
from buda_emu.arithmetic.kernels.tiles.tile_memory import TILE
from buda_emu.spec.single import MAGNITUDE

_EXPONENT: Final = 23  # where that of a single begins


@shared_intrinsic(assemble_groups, types.Array, types.intp, types.intp, types.intp, types.Array, types.Array)
def _emit_assemble_groups(
    builder: Builder, row: Value, down: Value, limit: Value, cut: Value, codes: Value, exponents: Value
) -> None:
    """Emit the body of `assemble_groups`, words to block codes and shared exponents: a loop with a vector for each
    group."""
    code = Vectors(builder, GROUP)
    assembled = BlockAssembler(code=code, down=down, limit=limit, cut=cut, codes=codes, exponents=exponents)
    with cgutils.for_range(builder, SIZE(TILE // GROUP)) as loop:
        x = code.load(row, builder.mul(loop.index, SIZE(GROUP)), code.words)
        assembled.store(x, loop.index)


class BlockAssembler:
    """Emits the conversion of groups of 16 words to block codes and shared exponents, with the arguments of
    `assemble_groups` (`limit` is its `greatest`)."""

    def __init__(self, code: Vectors, down: Value, limit: Value, cut: Value, codes: Value, exponents: Value) -> None:
        builder = code.builder
        self.code = code
        self.codes = codes
        self.exponents = exponents
        self.field = code.every_word(builder.add(down, SIZE(7)))
        self.sign_place = code.every_word(builder.sub(SIZE(7), cut))
        self.down, self.limit, self.cut = (code.every_word(number) for number in (down, limit, cut))

    def store(self, x: Value, group: Value) -> None:
        """Emit the conversion of the words `x`, a vector, and the store of their codes and exponent as those of group
        number `group`."""
        code = self.code
        builder = self.code.builder
        exponent = builder.and_(builder.lshr(x, self.field), self.limit)
        leading = builder.select(builder.icmp_signed("==", exponent, code.word(0)), code.word(0), code.word(LEADING))
        significand = builder.or_(builder.and_(builder.lshr(x, self.down), code.word(FRACTION)), leading)
        shared = code.largest_in(exponent)
        distance = code.least(builder.sub(code.every(shared), exponent), code.word(FARTHEST))
        half = builder.shl(code.word(1), distance)
        size = builder.lshr(builder.add(significand, half), builder.add(distance, code.word(1)))
        size = builder.lshr(code.least(size, code.word(MOST)), self.cut)
        signed = builder.or_(size, builder.shl(builder.lshr(x, code.word(31)), self.sign_place))
        signed = builder.select(builder.icmp_signed("==", size, code.word(0)), code.word(0), signed)
        place = builder.mul(group, SIZE(GROUP))
        code.store(builder.trunc(signed, ir.VectorType(I8, GROUP)), self.codes, place, align=1)
        builder.store(builder.trunc(shared, I8), builder.gep(self.exponents, [group]))


@intrinsic(spread_groups, types.none, types.Array, types.Array, types.Array, types.intp, types.intp)
def _spread_groups(_context: Any, builder: Builder, *arguments: Value) -> None:
    """Emit `spread_groups`, block codes to words: a call of the shared function for the exponents' bits and the width
    of a word."""
    *plain, exponent_bits = arguments
    name = f"spread_groups_{plain[0].type.pointee.width}"
    wide = builder.icmp_signed("==", exponent_bits, SIZE(8))
    with builder.if_else(wide) as (then, otherwise):
        with then:
            call_shared_function(builder, f"{name}_wide", plain, _emit_wide_spread)
        with otherwise:
            call_shared_function(builder, f"{name}_narrow", plain, _emit_narrow_spread)


def _emit_wide_spread(builder: Builder, words: Value, codes: Value, exponents: Value, align: Value) -> None:
    """Emit the body of `spread_groups`, block codes to words, for shared exponents of 8 bits."""

    def shift_exponent(code: Vectors, pattern: Value, shared: Value) -> Value:
        """Return patterns with the shared exponent added to theirs, modulo 256."""
        added = builder.add(pattern, code.every(builder.shl(shared, I32(_EXPONENT))))
        return builder.and_(added, code.word(MAGNITUDE))

    _emit_spread(builder, words, codes, exponents, align, 255, shift_exponent)


def _emit_narrow_spread(builder: Builder, words: Value, codes: Value, exponents: Value, align: Value) -> None:
    """Emit the body of `spread_groups`, block codes to words, for shared exponents of 5 bits."""

    def shift_exponent(code: Vectors, pattern: Value, shared: Value) -> Value:
        """Return patterns with the shared exponent added to theirs, which become 0 where the sum is negative."""
        exponent = builder.add(builder.lshr(pattern, code.word(_EXPONENT)), code.every(shared))
        exponent = builder.shl(code.largest(exponent, code.word(0)), code.word(_EXPONENT))
        return builder.or_(exponent, builder.and_(pattern, code.word((1 << _EXPONENT) - 1)))

    _emit_spread(builder, words, codes, exponents, align, 31, shift_exponent)


def _emit_spread(
    builder: Builder,
    words: Value,
    codes: Value,
    exponents: Value,
    align: Value,
    infinite: int,
    shift_exponent: Callable[[Vectors, Value, Value], Value],
) -> None:
    """Emit the body of `spread_groups`. `infinite` is the exponent that a code of the sign alone gets;
    `shift_exponent(code, pattern, shared)` emits the addition of a shared exponent, reduced by SHARED_ONE, to the
    exponents of patterns."""
    code = Vectors(builder, GROUP)
    align = code.every_word(align)
    with cgutils.for_range(builder, SIZE(TILE // GROUP)) as loop:
        place = builder.mul(loop.index, SIZE(GROUP))
        shared = builder.zext(builder.load(builder.gep(exponents, [loop.index])), I32)
        x = builder.zext(code.load(codes, place, ir.VectorType(I8, GROUP), align=1), code.words)
        x = builder.shl(x, align)
        magnitude = builder.and_(x, code.word(FRACTION))
        pattern = code.as_words(builder.sitofp(magnitude, code.floats))
        word = shift_exponent(code, pattern, builder.sub(shared, I32(SHARED_ONE)))
        none = builder.icmp_signed("==", x, code.word(0))
        word = builder.select(
            builder.icmp_signed("==", magnitude, code.word(0)), code.word(infinite << _EXPONENT), word
        )
        word = builder.select(none, code.word(0), word)
        sign = builder.shl(builder.lshr(x, code.word(7)), code.word(31))
        word = builder.or_(word, sign)
        if words.type.pointee.width == 16:
            word = builder.trunc(builder.lshr(word, code.word(16)), code.halves)
        code.store(word, words, place)


class _EarlyConversion:
    """Emits an early conversion of the packer: `numbers` are the shift `up` and the fields of `Early`. `small` is a
    mask of the bits that stay of words below the least one; without it these become 0."""

    def __init__(self, code: Vectors, *numbers: Value, small: Value | None = None) -> None:
        self.code = code
        self.numbers = [code.every_word(number) for number in numbers]
        self.small: Value | None = None
        if small is not None:
            self.small = code.every_word(small)

    def load(self, words: Value, place: Value) -> Value:
        """Return the vector of words from `place` on, loaded and converted."""
        code = self.code
        builder = self.code.builder
        up, mask_in, greatest, first, half, mask, least = self.numbers
        word = builder.shl(code.load(words, place, code.words), up)
        size = code.least(builder.and_(builder.and_(word, code.word(MAGNITUDE)), mask_in), greatest)
        size = builder.select(builder.icmp_signed("<", size, first), code.word(0), size)
        size = builder.and_(builder.add(size, half), mask)
        signed = builder.or_(size, builder.and_(word, code.word(~MAGNITUDE)))
        small_word = code.word(0)
        if self.small is not None:
            small_word = builder.and_(word, self.small)
        return builder.select(builder.icmp_signed("<", size, least), small_word, signed)


@shared_intrinsic(early_words, types.Array, types.intp, types.BaseTuple, types.intp, types.Array)
def _emit_early_words(builder: Builder, words: Value, *rest: Value) -> None:
    """Emit the body of `early_words`, Dst to words of the packer's intermediate format: a loop over vectors of 16."""
    *numbers, small, row = rest
    code = Vectors(builder, GROUP)
    early = _EarlyConversion(code, *numbers, small=small)
    with cgutils.for_range(builder, SIZE(TILE // GROUP)) as loop:
        place = builder.mul(loop.index, SIZE(GROUP))
        code.store(early.load(words, place), row, place)


@shared_intrinsic(early_groups, types.Array, types.intp, types.BaseTuple, types.BaseTuple, types.Array, types.Array)
def _emit_early_groups(builder: Builder, words: Value, *numbers: Value) -> None:
    """Emit the body of `early_groups`, Dst to block codes with shared exponents: one loop, without an array of
    converted words."""
    code = Vectors(builder, GROUP)
    early = _EarlyConversion(code, *numbers[:7])
    assembled = BlockAssembler(code, *numbers[7:])
    with cgutils.for_range(builder, SIZE(TILE // GROUP)) as loop:
        assembled.store(early.load(words, builder.mul(loop.index, SIZE(GROUP))), loop.index)


@shared_intrinsic(early_halves, types.Array, types.intp, types.BaseTuple, types.Array)
def _emit_early_halves(builder: Builder, words: Value, *rest: Value) -> None:
    """Emit the body of `early_halves`, Dst to the upper halves of words of the packer's intermediate format: a loop
    over vectors of 16."""
    *numbers, halves = rest
    code = Vectors(builder, GROUP)
    early = _EarlyConversion(code, *numbers)
    with cgutils.for_range(builder, SIZE(TILE // GROUP)) as loop:
        place = builder.mul(loop.index, SIZE(GROUP))
        word = builder.lshr(early.load(words, place), code.word(16))
        code.store(builder.trunc(word, code.halves), halves, place)
