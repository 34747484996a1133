"""LLVM code of `kernels/tensix/products/prepared.py`. The lanes of a vector are neighbouring columns of a row, or, for
SrcB's exponents, of half a row of a face."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from llvmlite import ir
from numba.core import cgutils, types

from buda_emu.arithmetic.jit.llvm_code import I16, SIZE, Builder, Value, Vectors, shared_intrinsic, splat
from buda_emu.arithmetic.kernels.tensix.products.prepared import (
    COUNTS,
    HALVES,
    MORE,
    MORE_OF_POWER,
    NO_EXPONENT,
    POWER,
    SPAN,
    SRCA_BOTH,
    SRCA_FIRST,
    SRCB_FIRST,
    prepare_srca,
    prepare_srcb,
)
from buda_emu.arithmetic.kernels.tensix.words import GROUP, TILE
from buda_emu.spec.single import INFINITY

Place = Callable[[Value], Value]

_SHIFT = COUNTS.bit_length() - 1
_MOST = 255 * COUNTS
_ARRAYS = (types.Array,) * 4


@shared_intrinsic(prepare_srca, *_ARRAYS, types.intp, types.intp, by_lanes=True)
def _emit_prepare_srca(
    lanes: int, builder: Builder, exponent: Value, parts: Value, words: Value, ends: Value, phases: Value, lift: Value
) -> None:
    """Emit the body of `prepare_srca`: one loop for exponents and first parts, one for the exponents as bytes, and one
    for the second parts where a phase needs them."""
    code = Vectors(builder, lanes, 2 * lanes)
    increment = code.every_word(builder.shl(lift, SIZE(23)))
    half = TILE // 4  # both groups of an inner face lie one after the other

    def first_of(pair: Value) -> Value:
        """Return the index in the tile of the word whose exponent stands first in pair number `pair`."""
        return builder.add(pair, builder.and_(pair, SIZE(half)))

    def store_first_part(lifted: Value, place: Value) -> None:
        """Emit the store of the first parts of SrcA words whose exponents were raised (`lifted`)."""
        code.store(builder.and_(lifted, code.word(SRCA_FIRST)), parts, place)

    least = _emit_pairs(code, exponent, words, ends, (first_of, half, SIZE(0)), increment, store_first_part)

    def faces_of(place: Value) -> tuple[Value, Value]:
        """Return the indices, in `exponent`, of the exponents of both faces that `_emit_bytes` puts into the word of
        bytes `place`."""
        return place, builder.add(place, SIZE(HALVES // 2))

    _emit_bytes(code, exponent, faces_of, builder.mul(least, SIZE(COUNTS)), 0x80808080)
    with _loop_over_second_parts(code, words, phases, 0b1010, increment, lanes) as (lifted, place):
        first, parts_sum = (code.as_floats(builder.and_(lifted, code.word(mask))) for mask in (SRCA_FIRST, SRCA_BOTH))
        code.store(builder.fmul(builder.fsub(parts_sum, first), code.float(float(1 << 5))), parts, place)


@shared_intrinsic(prepare_srcb, *_ARRAYS, types.intp, types.intp, types.intp, by_lanes=True)
def _emit_prepare_srcb(lanes: int, builder: Builder, *arguments: Value) -> None:
    """Emit the body of `prepare_srcb`, in three loops as that of `prepare_srca`."""
    exponent, parts, words, ends, phases, lift, plus = arguments
    narrow = Vectors(builder, GROUP, 2 * GROUP)
    code = Vectors(builder, lanes)
    shifted = builder.shl(lift, SIZE(23))

    def first_of(pair: Value) -> Value:
        """Return the index in the tile of the word whose exponent stands first in pair number `pair`."""
        return builder.shl(pair, SIZE(1))

    def store_first_part(lifted: Value, place: Value) -> None:
        """Emit the store of the first parts of SrcB words whose exponents were raised (`lifted`), with the bit MORE;
        zeros stay zeros."""
        first = builder.or_(builder.and_(lifted, narrow.word(SRCB_FIRST)), narrow.word(MORE))
        nothing = builder.icmp_signed("==", lifted, narrow.word(0))
        narrow.store(builder.select(nothing, narrow.word(0), first), parts, place)

    least = _emit_pairs(
        narrow, exponent, words, ends, (first_of, GROUP, plus), narrow.every_word(shifted), store_first_part
    )

    def faces_of(place: Value) -> tuple[Value, Value]:
        """Return the indices, in `exponent`, of the exponents of both faces that `_emit_bytes` puts into the word of
        bytes `place`."""
        return builder.shl(place, SIZE(1)), builder.add(builder.shl(place, SIZE(1)), SIZE(GROUP))

    _emit_bytes(narrow, exponent, faces_of, builder.add(builder.mul(least, SIZE(COUNTS)), plus), 0)
    with _loop_over_second_parts(code, words, phases, 0b1100, code.every_word(shifted), lanes) as (lifted, place):
        first, power = (code.as_floats(builder.and_(lifted, code.word(mask))) for mask in (SRCB_FIRST, POWER))
        second = builder.fmul(builder.fsub(code.as_floats(lifted), first), code.float(float(1 << 7)))
        code.store(builder.fadd(second, builder.fmul(power, code.float(float(MORE_OF_POWER)))), parts, place)


def _emit_pairs(
    code: Vectors,
    exponent: Value,
    words: Value,
    ends: Value,
    layout: tuple[Place, int, Value],
    increment: Value,
    put: Callable[[Value, Value], None],
) -> Value:
    """Emit the loop that writes the first HALVES words of `Exponents` and the range of the exponents (`ends`); return
    the least exponent. It calls `put(lifted, place)`, which emits a store, for all words, with `increment` added to
    their exponents and 0 for zeros.

    layout: the function that returns the index of the word of the first exponent of a pair, how many words further that
    of the second is, and what is added to the exponents, counted in COUNTS.
    """
    builder = code.builder
    first_of, apart, plus = layout
    plus = code.every_word(plus)
    least = cgutils.alloca_once_value(builder, code.word(_MOST))
    greatest = cgutils.alloca_once_value(builder, code.word(0))
    with cgutils.for_range(builder, SIZE(TILE // 2 // code.width)) as loop:
        pair = builder.mul(loop.index, SIZE(code.width))
        first = first_of(pair)
        counted: list[Value] = []
        for place in (first, builder.add(first, SIZE(apart))):
            word = code.load(words, place, code.words)
            field = builder.and_(builder.lshr(word, code.word(23 - _SHIFT)), code.word(_MOST))
            none = builder.icmp_signed("==", field, code.word(0))
            builder.store(code.largest(builder.load(greatest), field), greatest)
            lowest = builder.select(none, code.word(_MOST), field)
            builder.store(code.least(builder.load(least), lowest), least)
            counted.append(builder.select(none, code.word(NO_EXPONENT), builder.add(field, plus)))
            put(builder.select(none, code.word(0), builder.add(word, increment)), place)
        low = builder.and_(counted[0], code.word(0xFFFF))
        high = builder.shl(counted[1], code.word(16))
        code.store(builder.or_(low, high), exponent, pair)
    range_ends = [code.least_in(builder.load(least)), code.largest_in(builder.load(greatest))]
    range_ends = [builder.lshr(end, ir.Constant(end.type, _SHIFT)) for end in range_ends]
    for n, end in enumerate(range_ends):
        builder.store(end, builder.gep(ends, [SIZE(n)]))
    return builder.zext(range_ends[0], SIZE)


def _emit_bytes(
    code: Vectors, exponent: Value, faces_of: Callable[[Value], tuple[Value, Value]], least: Value, flip: int
) -> None:
    """Emit the loop that writes the exponents as bytes. faces_of: the function that returns the indices of both faces'
    exponents for a word of bytes; least: the least exponent, as the halves count it; flip: the bits that are inverted
    in each word."""
    builder = code.builder
    below = builder.sub(least, SIZE(COUNTS * (SPAN + 1)))
    base = splat(builder, builder.trunc(below, I16), code.halves)
    nothing, shift = (ir.Constant(code.halves, [number] * code.halves.count) for number in (NO_EXPONENT, _SHIFT))
    with cgutils.for_range(builder, SIZE(TILE // 4 // code.width)) as loop:
        place = builder.mul(loop.index, SIZE(code.width))
        pairs: list[Value] = []
        for face in faces_of(place):
            halves = code.load(exponent, face, code.halves)
            byte = builder.lshr(builder.sub(halves, base), shift)
            byte = builder.select(builder.icmp_signed("==", halves, nothing), ir.Constant(code.halves, None), byte)
            words = code.as_words(byte)
            pairs.append(builder.and_(builder.or_(words, builder.lshr(words, code.word(8))), code.word(0xFFFF)))
        packed_bytes = builder.or_(pairs[0], builder.shl(pairs[1], code.word(16)))
        code.store(builder.xor(packed_bytes, code.word(flip)), exponent, builder.add(place, SIZE(HALVES)))


@contextmanager
def _loop_over_second_parts(
    code: Vectors, words: Value, phases: Value, phase_mask: int, increment: Value, lanes: int
) -> Generator[tuple[Value, Value]]:
    """Emit a loop over all words of a tile, skipped where no phase of `phase_mask` runs; within it yield the words with
    `increment` added to their exponents, 0 for zeros, and the index of their second part."""
    builder = code.builder
    needed = builder.icmp_signed("!=", builder.and_(phases, SIZE(phase_mask)), SIZE(0))
    with builder.if_then(needed), cgutils.for_range(builder, SIZE(TILE // lanes)) as loop:
        place = builder.mul(loop.index, SIZE(lanes))
        word = code.load(words, place, code.words)
        none = builder.icmp_signed("==", builder.and_(word, code.word(INFINITY)), code.word(0))
        yield builder.select(none, code.word(0), builder.add(word, increment)), builder.add(place, SIZE(TILE))
