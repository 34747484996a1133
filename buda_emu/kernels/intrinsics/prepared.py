"""The code of `kernels/tensix/prepared.py`. Vectors are neighbouring columns of a row, of half a face for SrcB."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import lower_builtin

from buda_emu.kernels.intrinsics.code import SIZE, Builder, Value, call_shared, changes_arrays, on_data
from buda_emu.kernels.intrinsics.vectors import Vectors, lanes_for
from buda_emu.kernels.tensix.prepared import (
    COUNTS,
    MORE,
    MORE_OF_POWER,
    NO_EXPONENT,
    POWER,
    SRCA_BOTH,
    SRCA_FIRST,
    SRCB_FIRST,
    prepare_srca,
    prepare_srcb,
)
from buda_emu.kernels.tensix.words import GROUP, TILE

Place = Callable[[Value], Value]

_FIELD = 0x7F800000
_SHIFT = COUNTS.bit_length() - 1
_MOST = 255 * COUNTS
_ARRAYS = (types.Array,) * 4


# ------------------------------------------------------------------------------------------------------------ types
changes_arrays(prepare_srca)
changes_arrays(prepare_srcb)


@lower_builtin(prepare_srca, *_ARRAYS, types.intp, types.intp)
def _lower_prepare_srca(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
    plain = on_data(context, builder, call, arguments)
    call_shared(builder, "prepare_srca", plain, partial(_emit_prepare_srca, lanes_for(context)))
    return context.get_dummy_value()


@lower_builtin(prepare_srcb, *_ARRAYS, types.intp, types.intp, types.intp)
def _lower_prepare_srcb(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
    plain = on_data(context, builder, call, arguments)
    call_shared(builder, "prepare_srcb", plain, partial(_emit_prepare_srcb, lanes_for(context)))
    return context.get_dummy_value()


# ------------------------------------------------------------------------------------------------------------- code
def _emit_prepare_srca(
    lanes: int, builder: Builder, exponent: Value, parts: Value, words: Value, ends: Value, phases: Value, lift: Value
) -> None:  # fmt: skip
    code = Vectors(builder, lanes)
    more = code.every_word(builder.shl(lift, SIZE(23)))
    half = TILE // 4  # both groups of an inner face lie one behind the other

    def first_of(pair: Value) -> Value:
        return builder.add(pair, builder.and_(pair, SIZE(half)))

    def put(lifted: Value, place: Value) -> None:
        code.store(builder.and_(lifted, code.word(SRCA_FIRST)), parts, place)

    _emit_pairs(code, exponent, words, ends, (first_of, half, SIZE(0)), more, put)
    with _more_parts(code, words, phases, 0b1010, more, lanes) as (lifted, place):
        first, both = (code.as_floats(builder.and_(lifted, code.word(kept))) for kept in (SRCA_FIRST, SRCA_BOTH))
        code.store(builder.fmul(builder.fsub(both, first), code.float(float(1 << 5))), parts, place)


def _emit_prepare_srcb(
    lanes: int, builder: Builder, exponent: Value, parts: Value, words: Value, ends: Value, phases: Value, lift: Value,
    plus: Value,
) -> None:  # fmt: skip
    narrow, code = Vectors(builder, GROUP), Vectors(builder, lanes)
    shifted = builder.shl(lift, SIZE(23))

    def first_of(pair: Value) -> Value:
        return builder.shl(pair, SIZE(1))

    def put(lifted: Value, place: Value) -> None:
        first = builder.or_(builder.and_(lifted, narrow.word(SRCB_FIRST)), narrow.word(MORE))
        nothing = builder.icmp_signed("==", lifted, narrow.word(0))
        narrow.store(builder.select(nothing, narrow.word(0), first), parts, place)

    _emit_pairs(narrow, exponent, words, ends, (first_of, GROUP, plus), narrow.every_word(shifted), put)
    with _more_parts(code, words, phases, 0b1100, code.every_word(shifted), lanes) as (lifted, place):
        first, power = (code.as_floats(builder.and_(lifted, code.word(kept))) for kept in (SRCB_FIRST, POWER))
        second = builder.fmul(builder.fsub(code.as_floats(lifted), first), code.float(float(1 << 7)))
        code.store(builder.fadd(second, builder.fmul(power, code.float(float(MORE_OF_POWER)))), parts, place)


def _emit_pairs(
    code: Vectors, exponent: Value, words: Value, ends: Value, layout: tuple[Place, int, Value], more: Value,
    put: Callable[[Value, Value], None],
) -> None:  # fmt: skip
    """Exponents, their range, and `put` for all words.

    layout: where the word stands that belongs to a pair of exponents, how far behind it the other one is, and what is
    added to exponents.
    """
    builder = code.builder
    first_of, apart, plus = layout
    plus = code.every_word(plus)
    least = cgutils.alloca_once_value(builder, code.word(_MOST))
    most = cgutils.alloca_once_value(builder, code.word(0))
    with cgutils.for_range(builder, SIZE(TILE // 2 // code.width)) as loop:
        pair = builder.mul(loop.index, SIZE(code.width))
        first = first_of(pair)
        counted: list[Value] = []
        for place in (first, builder.add(first, SIZE(apart))):
            word = code.load(words, place, code.words)
            field = builder.and_(builder.lshr(word, code.word(23 - _SHIFT)), code.word(_MOST))
            none = builder.icmp_signed("==", field, code.word(0))
            builder.store(code.largest(builder.load(most), field), most)
            lowest = builder.select(none, code.word(_MOST), field)
            builder.store(code.least(builder.load(least), lowest), least)
            counted.append(builder.select(none, code.word(NO_EXPONENT), builder.add(field, plus)))
            put(builder.select(none, code.word(0), builder.add(word, more)), place)
        low, high = builder.and_(counted[0], code.word(0xFFFF)), builder.shl(counted[1], code.word(16))
        code.store(builder.or_(low, high), exponent, pair)
    for n, end in enumerate((code.least_in(builder.load(least)), code.largest_in(builder.load(most)))):
        builder.store(builder.lshr(end, ir.Constant(end.type, _SHIFT)), builder.gep(ends, [SIZE(n)]))


@contextmanager
def _more_parts(
    code: Vectors, words: Value, phases: Value, which: int, more: Value, lanes: int
) -> Generator[tuple[Value, Value]]:
    """Where one of `which` is among the phases: words, lifted, and where their other part belongs."""
    builder = code.builder
    needed = builder.icmp_signed("!=", builder.and_(phases, SIZE(which)), SIZE(0))
    with builder.if_then(needed), cgutils.for_range(builder, SIZE(TILE // lanes)) as loop:
        place = builder.mul(loop.index, SIZE(lanes))
        word = code.load(words, place, code.words)
        none = builder.icmp_signed("==", builder.and_(word, code.word(_FIELD)), code.word(0))
        yield builder.select(none, code.word(0), builder.add(word, more)), builder.add(place, SIZE(TILE))
