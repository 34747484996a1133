"""The code of `kernels/tensix/group_sums.py`. Vectors are neighbouring columns of a row."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import lower_builtin

from buda_emu.kernels.intrinsics.code import SIZE, Builder, Value, call_shared, changes_arrays, llvm_fma, on_data, splat
from buda_emu.kernels.intrinsics.vectors import I16, WIDE, Vectors, lanes_for
from buda_emu.kernels.tensix.group_sums import (
    ABOVE,
    AWAY,
    BUG,
    EXPONENT,
    FP16_MOST,
    HALF,
    HALF_BELOW,
    INVERSE,
    INVERSE_WIDE,
    LEAST,
    LEAST_FP16,
    LEAST_WIDE,
    M_FRACTION,
    MAGNITUDE,
    OFFSET,
    SIGN,
    UNIT,
    UNIT_WIDE,
    add_face,
    add_face_wide,
    find_tops,
)
from buda_emu.kernels.tensix.words import EDGE, FACE, FP16, GROUP

Group = tuple[Value, Value]
"""The pattern of M, and M with the sum."""


# ------------------------------------------------------------------------------------------------------------ types
changes_arrays(find_tops)
changes_arrays(add_face)
changes_arrays(add_face_wide)


@lower_builtin(find_tops, types.Array, types.Array, types.Array, types.intp, types.intp)
def _lower_find_tops(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
    return _call(context, builder, call, arguments, "find_tops", _emit_tops)


@lower_builtin(add_face, types.Array, types.Array, types.Array, types.Array, types.intp, types.intp, types.intp)
def _lower_add_face(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
    *others, mode = arguments
    fp16 = builder.icmp_signed("==", mode, mode.type(FP16))
    with builder.if_else(fp16) as (then, otherwise):
        with then:
            _call(context, builder, call, others, "add_face_fp16", partial(_emit_add_face, fp16=True))
        with otherwise:
            _call(context, builder, call, others, "add_face_bf16", partial(_emit_add_face, fp16=False))
    return context.get_dummy_value()


@lower_builtin(add_face_wide, types.Array, types.Array, types.Array, types.Array, types.intp, types.intp, types.intp)
def _lower_add_face_wide(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
    return _call(context, builder, call, arguments, "add_face_wide", _emit_add_face_wide)


def _call(
    context: Any, builder: Builder, call: Any, arguments: Any, name: str, emit: Callable[..., None]
) -> Value:  # fmt: skip
    """Arrays become the addresses of their first elements."""
    plain = on_data(context, builder, call, arguments)
    call_shared(builder, name, plain, partial(emit, lanes_for(context)))
    return context.get_dummy_value()


# ------------------------------------------------------------------------------------------------------------- code
def _emit_tops(
    lanes: int, builder: Builder, tops: Value, exponent_b: Value, exponent_a: Value, faces: Value, lowest: Value
) -> None:
    code = Vectors(builder, lanes, 2 * lanes)
    least = splat(builder, builder.trunc(lowest, I16), code.halves)
    with _vectors_of_columns(builder, faces, lanes) as (face, left):
        k = builder.mul(face, SIZE(GROUP))
        first = builder.add(builder.mul(k, SIZE(EDGE)), left)
        columns = [code.load(exponent_a, builder.add(first, SIZE(EDGE * n)), code.halves) for n in range(GROUP)]
        above = builder.add(builder.mul(face, SIZE(EDGE * EDGE)), left)
        with cgutils.for_range(builder, SIZE(EDGE)) as loop:
            own = builder.add(builder.mul(loop.index, SIZE(FACE)), k)
            top = least
            for n in range(GROUP):
                pair = builder.load(builder.gep(exponent_b, [builder.add(own, SIZE(n))]))
                one = builder.bitcast(splat(builder, pair, code.words), code.halves)
                top = code.largest(top, builder.add(one, columns[n]))
            top = builder.shl(top, ir.Constant(code.halves, [6] * 2 * lanes))
            code.store(top, tops, builder.add(above, builder.mul(loop.index, SIZE(EDGE))))


class _Steps:
    """What both kinds of Dst have in common of an accumulation."""

    def __init__(self, code: Vectors, shift: Value) -> None:
        self.code = code
        self._shifted = code.builder.shl(shift, SIZE(23))
        self.down = code.every_word(self._shifted)
        self.scale = code.as_floats(self.from_(127 << 23))

    def from_(self, number: int) -> Value:
        """A pattern with the exponent of the number, less by the shift."""
        return self.code.every_word(self.code.builder.sub(SIZE(number), self._shifted))

    def plus_shift(self, number: int) -> Value:
        """The same, more by the shift."""
        return self.code.every_word(self.code.builder.add(SIZE(number), self._shifted))

    def common(self, old: Value, groups: list[Group], least: int) -> Value:
        """The pattern of the M of the largest exponent, at least `least`."""
        code, builder = self.code, self.code.builder
        own = builder.and_(builder.add(code.as_words(old), code.word(ABOVE << 23)), code.word(EXPONENT))
        own = builder.or_(own, code.word(M_FRACTION))
        own = code.largest(own, code.word(least))
        return code.largest(builder.sub(code.largest(groups[0][0], groups[1][0]), self.down), own)

    def sum_of(self, group: Group) -> Value:
        """A group's sum without its M."""
        return self.code.builder.fsub(group[1], self.code.as_floats(group[0]))


def _emit_add_face(
    lanes: int, builder: Builder, word: Value, tops: Value, b: Value, a: Value, face: Value, shift: Value, *, fp16: bool
) -> None:
    code = Vectors(builder, lanes)
    steps = _Steps(code, shift)
    none = steps.plus_shift((OFFSET + ABOVE) << 23 | M_FRACTION)
    rounding, kept = (0x1000, -0x2000) if fp16 else (0x8000, -0x10000)

    def put(place: Value, groups: list[Group]) -> None:
        old = code.load(word, place, code.floats)
        common = steps.common(old, groups, LEAST_FP16 if fp16 else LEAST)
        half = code.as_floats(builder.sub(common, code.word(HALF)))
        total = llvm_fma(builder, code.floats, old, code.float(AWAY), code.as_floats(common))
        for group in groups:
            v = steps.sum_of(group)
            if fp16:
                v = builder.select(builder.icmp_signed(">", group[0], none), v, code.float(0.0))
            total = _add_down(code, total, llvm_fma(builder, code.floats, v, steps.scale, half), common)
        bits = code.as_words(builder.fsub(total, code.as_floats(common)))
        bits = builder.and_(builder.add(bits, code.word(rounding)), code.word(kept))
        code.store(_fp16_ends(code, bits) if fp16 else bits, word, place)

    _emit_groups(code, tops, b, a, face, put)


def _add_down(code: Vectors, total: Value, value: Value, common: Value) -> Value:
    """The sum rounded down to a multiple of the unit, which is the last place of `total`."""
    builder = code.builder
    if code.width == WIDE:
        return code.sum_down(total, value)
    unit = code.as_floats(builder.sub(common, code.word(UNIT)))
    inverse = code.as_floats(builder.sub(code.word(INVERSE), common))
    return llvm_fma(builder, code.floats, code.floor(builder.fmul(value, inverse)), unit, total)


def _fp16_ends(code: Vectors, bits: Value) -> Value:
    """What an fp16 Dst makes of a number that is too large or too small for it."""
    builder = code.builder
    size = builder.and_(bits, code.word(MAGNITUDE))
    too_large = builder.icmp_signed(">=", size, code.word((OFFSET + 32) << 23))
    size = builder.select(too_large, code.word(FP16_MOST), size)
    bits = builder.or_(size, builder.and_(bits, code.word(SIGN)))
    too_small = builder.icmp_signed("<", size, code.word((OFFSET + 1) << 23))
    return builder.select(too_small, code.word(0), bits)


def _emit_add_face_wide(
    lanes: int, builder: Builder, word: Value, tops: Value, b: Value, a: Value, face: Value, shift: Value,
    blackhole: Value,
) -> None:  # fmt: skip
    code = Vectors(builder, lanes)
    steps = _Steps(code, shift)
    finer = steps.from_(INVERSE_WIDE)
    # What a sum must be for the chip's error: -1, on Blackhole what none is.
    wrong = builder.icmp_signed("==", blackhole, blackhole.type(0))
    wrong = code.every_word(builder.select(wrong, SIZE(-1), SIZE(SIGN)))

    def put(place: Value, groups: list[Group]) -> None:
        old = code.load(word, place, code.floats)
        common = steps.common(old, groups, LEAST_WIDE)
        inverse = code.as_floats(builder.sub(code.word(INVERSE_WIDE), common))
        scale = code.as_floats(builder.sub(finer, common))
        half = builder.or_(builder.and_(code.as_words(old), code.word(SIGN)), code.word(HALF_BELOW))
        n = builder.fptosi(llvm_fma(builder, code.floats, old, inverse, code.as_floats(half)), code.words)
        for group in groups:
            n = builder.add(
                n, code.integers_down(llvm_fma(builder, code.floats, steps.sum_of(group), scale, code.float(0.5)))
            )
        size = code.magnitude(n)
        one_more = code.least(builder.lshr(size, code.word(23)), code.word(1))
        quadruple = builder.uitofp(builder.add(builder.shl(size, code.word(2)), one_more), code.floats)
        result = builder.fmul(quadruple, code.as_floats(builder.sub(common, code.word(UNIT_WIDE))))
        bits = builder.or_(code.as_words(result), builder.and_(n, code.word(SIGN)))
        error = builder.or_(builder.sub(common, code.word(BUG)), code.word(SIGN))
        bits = builder.select(builder.icmp_signed("==", n, wrong), error, bits)
        code.store(bits, word, place)

    _emit_groups(code, tops, b, a, face, put)


def _emit_groups(
    code: Vectors, tops: Value, b: Value, a: Value, face: Value, put: Callable[[Value, list[Group]], None]
) -> None:
    """Gives `put` both groups of an inner face for each vector of the tile.

    A sum waits for the one before it: those of several rows take turns.
    """
    builder = code.builder
    rows = 4 if code.width == WIDE else 2
    first_k = builder.mul(face, SIZE(FACE))
    first_top = builder.mul(face, SIZE(EDGE * EDGE))
    with _vectors_of_columns(builder, SIZE(1), code.width) as (_, left):
        above = builder.add(builder.mul(first_k, SIZE(EDGE)), left)
        with cgutils.for_range(builder, SIZE(EDGE // rows)) as loop:
            top_row = builder.mul(loop.index, SIZE(EDGE * rows))
            places = [builder.add(builder.add(top_row, left), SIZE(EDGE * row)) for row in range(rows)]
            tops_of = [code.load(tops, builder.add(first_top, place), code.words) for place in places]
            patterns = [(builder.shl(top, code.word(16)), builder.and_(top, code.word(-0x10000))) for top in tops_of]
            totals = [[code.as_floats(pattern) for pattern in of_row] for of_row in patterns]
            own = builder.add(top_row, first_k)
            for n in range(GROUP):
                for group in range(2):
                    k = group * GROUP + n
                    column = code.load(a, builder.add(above, SIZE(EDGE * k)), code.floats)
                    for row in range(rows):
                        number = builder.load(builder.gep(b, [builder.add(own, SIZE(EDGE * row + k))]))
                        factor = splat(builder, number, code.floats)
                        totals[row][group] = llvm_fma(builder, code.floats, factor, column, totals[row][group])
            for place, of_row, sums in zip(places, patterns, totals, strict=True):
                put(place, list(zip(of_row, sums, strict=True)))


@contextmanager
def _vectors_of_columns(builder: Builder, faces: Value, lanes: int) -> Generator[tuple[Value, Value]]:
    """A loop over `faces` and the vectors of a row: gives the face and the first column."""
    per_row = SIZE(EDGE // lanes)
    with cgutils.for_range(builder, builder.mul(faces, per_row)) as loop:
        left = builder.mul(builder.urem(loop.index, per_row), SIZE(lanes))
        yield builder.udiv(loop.index, per_row), left
