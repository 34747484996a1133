"""The matrix unit's groups of 8 products, in fused multiply-adds of single precision, as LLVM vector code.

A group's sum counts units of 2^-10 of 2^X, X the largest exponent of its products, and each product is rounded to
that unit, ties away from zero, before it is added (DEVICE_NUMERICS 2.2). That is what adding it to M = 1.5 * 2^23 units
does: one fused multiply-add rounds the exact product to the last place of M, and the sum, less than 2^15 units, never
leaves M's binade. Ties, which the instruction rounds to even, do not occur: parts of SrcB are given with a little more
than their magnitude (`prepared`), less than a quarter of the last place of any product.

A 16-bit Dst holds single-precision numbers of 8 or 11 bits, so what follows is done with those, too: its rounding of
the sums, ties upward, is a floor, and that of the word another fused multiply-add. All of it is exact while exponents
stay well within those of a single: `matmul_by_singles` sees to that. Vectors are neighbouring columns of a row.

Called from Python the functions compute the same in numpy, and so define the code.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
from numba.core import cgutils, types
from numba.core.typing.templates import signature
from numba.extending import lower_builtin, type_callable
from numpy.typing import NDArray

from buda_emu.kernels.fma import fma_f32, llvm_fma
from buda_emu.kernels.tensix.vectors import I16, Vectors
from buda_emu.kernels.tensix.words import EDGE, FACE, FP16, GROUP, i32
from buda_emu.kernels.tile_memory import SIZE, Builder, Value, call_shared, splat

__all__ = ["ABOVE", "LOWEST_COMMON", "OFFSET", "add_face", "find_tops", "sum_face"]

ABOVE: Final = 13
"""The exponent field of M is X + ABOVE; its first bit of fraction is set, too."""
OFFSET: Final = 64
"""What is added to the exponents of an fp16 Dst, which would else lie at the end of those of a single."""
LOWEST_COMMON: Final = 11
"""The least common exponent of an accumulation: 10 below it is still a normal single."""

_FRACTION_BITS: Final = 10
_M_FRACTION: Final = 0x400000
_EXPONENT: Final = 0x7F800000
_MAGIC: Final = 1.5 * 2.0**23
_UPWARD: Final = 0.5 + 2.0**-14
"""Half a unit, and what the chip's first rounding adds (`accumulate`)."""
_AWAY: Final = 1 << 10  # in a power of two: a little more than it
_INVERSE: Final = (2 * 127 + _FRACTION_BITS) << 23
_FP16_MOST: Final = (OFFSET + 31) << 23 | 0x3FF << 13


def find_tops(tops: Any, exponent_b: Any, exponent_a: Any, faces: int, lowest: int) -> None:
    """tops[g][i][j] = the largest of exponent_b[i][k] + exponent_a[k][j] and `lowest`, k going through group g.

    tops: int16[4 * 1024]; exponent_b: int32, each number twice, in both halves of its word; exponent_a: int16; a tile
    is the first 1024. The groups are those of the first `faces` inner faces.
    """
    b, a = _square(exponent_b).astype(np.int16), _square(exponent_a)
    for group, out in enumerate(tops.reshape(-1, EDGE, EDGE)[: faces * FACE // GROUP]):
        k = slice(group * GROUP, (group + 1) * GROUP)
        out[...] = np.maximum((b[:, k, None] + a[None, k]).max(axis=1), np.int16(lowest))


def sum_face(sums: Any, tops: Any, b: Any, a: Any, face: int) -> None:
    """sums[g][i][j] = the sum of group g of an inner face, in units of 2^-10 of 2^X.

    sums: int32[2 * 1024]; tops: of `find_tops`, 2 * (X + ABOVE) + 1; b, a: float32, parts
    from `prepared`, the first 1024.
    """
    for group, (m, total) in enumerate(_group_sums(tops, b, a, face)):
        sums.reshape(2, -1)[group] = total.view(np.int32) - m.view(np.int32)


def add_face(word: Any, tops: Any, b: Any, a: Any, face: int, shift: int, mode: int) -> None:
    """word += SrcB x SrcA over one inner face, in a 16-bit Dst of `mode`.

    word: float32[1024], words of Dst, those of FP16 with OFFSET added to their exponents; tops, b, a as for `sum_face`,
    with X that of phase 0, which is `shift` more than that of this phase.
    """
    (m0, total0), (m1, total1) = _group_sums(tops, b, a, face)
    with np.errstate(all="ignore"):
        patterns = [np.asarray(m.view(np.int32)) for m in (m0, m1)]
        below = np.int32((ABOVE + shift) << 23 | _M_FRACTION)
        common = np.maximum(np.maximum(*patterns) - below, word.view(np.int32) & np.int32(_EXPONENT))
        common = np.maximum(common, np.int32(LOWEST_COMMON << 23))
        inverse = np.asarray(np.array(_INVERSE, np.uint32) - common.view(np.uint32)).view(np.int32)
        scale = (inverse - np.int32(shift << 23)).view(np.float32)
        total = fma_f32(word, (inverse | np.int32(_AWAY)).view(np.float32), np.float32(_MAGIC))
        for m, pattern, group in ((m0, patterns[0], total0), (m1, patterns[1], total1)):
            v = np.asarray(group - m)
            if mode == FP16:  # an exponent of zero or less is none
                v = np.where(pattern > np.int32((OFFSET + ABOVE + shift) << 23 | _M_FRACTION), v, np.float32(0))
            total = total + np.floor(fma_f32(v, scale, np.float32(_UPWARD)))
        half, kept = (0x1000, -0x2000) if mode == FP16 else (0x8000, -0x10000)
        bits = (np.asarray(total - np.float32(_MAGIC)).view(np.int32) + np.int32(half)) & np.int32(kept)
        result = bits.view(np.float32) * (common - np.int32(_FRACTION_BITS << 23)).view(np.float32)
        if mode == FP16:
            bits = result.view(np.int32)
            size = bits & np.int32(0x7FFFFFFF)
            size = np.where(size >= (OFFSET + 32) << 23, np.int32(_FP16_MOST), size)
            bits = size | (bits & np.int32(-0x80000000))
            result = np.where(size < (OFFSET + 1) << 23, np.int32(0), bits).view(np.float32)
        word[:] = result


def _square(tile: Any) -> Any:
    """The tile that an array begins with."""
    return tile[: EDGE * EDGE].reshape(EDGE, EDGE)


def _group_sums(tops: Any, b: Any, a: Any, face: int) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """M, and M with the sum, of both groups of a face."""
    found: list[tuple[NDArray[np.float32], NDArray[np.float32]]] = []
    for group in range(2 * face, 2 * face + 2):
        top = tops.reshape(-1, EDGE * EDGE)[group].astype(np.int32)
        m = np.asarray(top << i32(22)).view(np.float32)
        total = m.reshape(EDGE, EDGE)
        for k in range(group * GROUP, (group + 1) * GROUP):
            total = fma_f32(_square(b)[:, k, None], _square(a)[None, k], total)
        found.append((m, total.reshape(-1)))
    return found


# ------------------------------------------------------------------------------------------------------------ types
@type_callable(find_tops)
def _type_find_tops(_context: Any) -> Any:
    def typer(tops: Any, exponent_b: Any, exponent_a: Any, faces: Any, lowest: Any) -> Any:
        del faces, lowest
        return signature(types.none, tops, exponent_b, exponent_a, types.intp, types.intp)

    return typer


@type_callable(sum_face)
def _type_sum_face(_context: Any) -> Any:
    def typer(sums: Any, tops: Any, b: Any, a: Any, face: Any) -> Any:
        del face
        return signature(types.none, sums, tops, b, a, types.intp)

    return typer


@type_callable(add_face)
def _type_add_face(_context: Any) -> Any:
    def typer(word: Any, tops: Any, b: Any, a: Any, face: Any, shift: Any, mode: Any) -> Any:
        del face, shift, mode
        return signature(types.none, word, tops, b, a, types.intp, types.intp, types.intp)

    return typer


@lower_builtin(find_tops, types.Array, types.Array, types.Array, types.intp, types.intp)
def _lower_find_tops(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
    return _call(context, builder, call, arguments, "find_tops", _emit_tops)


@lower_builtin(sum_face, types.Array, types.Array, types.Array, types.Array, types.intp)
def _lower_sum_face(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
    return _call(context, builder, call, arguments, "sum_face", _emit_sum_face)


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


def _call(
    context: Any, builder: Builder, call: Any, arguments: Any, name: str, emit: Callable[..., None]
) -> Value:  # fmt: skip
    """Arrays become the addresses of their first elements."""
    plain = [
        context.make_array(kind)(context, builder, value).data if isinstance(kind, types.Array) else value
        for kind, value in zip(call.args, arguments, strict=False)
    ]
    wide = "+avx512f" in context.codegen().magic_tuple()[2].split(",")
    call_shared(builder, name, plain, partial(emit, 16 if wide else 8))
    return context.get_dummy_value()


# ------------------------------------------------------------------------------------------------------------- code
def _emit_tops(
    width: int, builder: Builder, tops: Value, exponent_b: Value, exponent_a: Value, faces: Value, lowest: Value
) -> None:
    lanes = 2 * width
    code = Vectors(builder, width, lanes)
    least = splat(builder, builder.trunc(lowest, I16), code.halves)
    groups = builder.mul(faces, SIZE(FACE // GROUP))
    with cgutils.for_range(builder, groups) as group:
        k = builder.mul(group.index, SIZE(GROUP))
        for left in range(0, EDGE, lanes):
            first = builder.add(builder.mul(k, SIZE(EDGE)), SIZE(left))
            columns = [
                code.load(exponent_a, builder.add(first, SIZE(EDGE * n)), code.halves) for n in range(GROUP)
            ]  # fmt: skip
            with cgutils.for_range(builder, SIZE(EDGE)) as loop:
                row = builder.mul(loop.index, SIZE(EDGE))
                top = least
                for n in range(GROUP):
                    pair = builder.load(builder.gep(exponent_b, [builder.add(builder.add(row, k), SIZE(n))]))
                    one = builder.bitcast(splat(builder, pair, code.words), code.halves)
                    top = code.largest(top, builder.add(one, columns[n]))
                place = builder.add(builder.mul(group.index, SIZE(EDGE * EDGE)), builder.add(row, SIZE(left)))
                code.store(top, tops, place)


def _emit_sum_face(
    width: int, builder: Builder, sums: Value, tops: Value, b: Value, a: Value, face: Value
) -> None:  # fmt: skip
    code = Vectors(builder, width)

    def put(place: Value, groups: list[tuple[Value, Value]]) -> None:
        for number, (m, total) in enumerate(groups):
            value = builder.sub(code.as_words(total), m)
            code.store(value, sums, builder.add(place, SIZE(number * EDGE * EDGE)))

    _emit_groups(code, tops, b, a, face, put)


def _emit_add_face(
    width: int, builder: Builder, word: Value, tops: Value, b: Value, a: Value, face: Value, shift: Value, *, fp16: bool
) -> None:
    code = Vectors(builder, width)
    shifted = builder.shl(shift, SIZE(23))
    finer = code.every_word(shifted)
    below = code.every_word(builder.add(shifted, SIZE(ABOVE << 23 | _M_FRACTION)))
    none = code.every_word(builder.add(shifted, SIZE((OFFSET + ABOVE) << 23 | _M_FRACTION)))
    half, kept = (0x1000, -0x2000) if fp16 else (0x8000, -0x10000)

    def put(place: Value, groups: list[tuple[Value, Value]]) -> None:
        old = code.load(word, place, code.floats)
        exponent = builder.and_(code.as_words(old), code.word(_EXPONENT))
        common = builder.sub(code.largest(groups[0][0], groups[1][0]), below)
        common = code.largest(code.largest(common, exponent), code.word(LOWEST_COMMON << 23))
        inverse = builder.sub(code.word(_INVERSE), common)
        scale = code.as_floats(builder.sub(inverse, finer))
        away = code.as_floats(builder.or_(inverse, code.word(_AWAY)))
        total = llvm_fma(builder, code.floats, old, away, code.float(_MAGIC))
        for m, group in groups:
            v = builder.fsub(group, code.as_floats(m))
            if fp16:
                v = builder.select(builder.icmp_signed(">", m, none), v, code.float(0.0))
            aligned = llvm_fma(builder, code.floats, v, scale, code.float(_UPWARD))
            total = builder.fadd(total, code.floor(aligned))
        total = code.as_words(builder.fsub(total, code.float(_MAGIC)))
        rounded = builder.and_(builder.add(total, code.word(half)), code.word(kept))
        unit = code.as_floats(builder.sub(common, code.word(_FRACTION_BITS << 23)))
        result = builder.fmul(code.as_floats(rounded), unit)
        code.store(_fp16_ends(code, result) if fp16 else result, word, place)

    _emit_groups(code, tops, b, a, face, put)


def _fp16_ends(code: Vectors, value: Value) -> Value:
    """What an fp16 Dst makes of a number that is too large or too small for it."""
    builder = code.builder
    bits = code.as_words(value)
    size = builder.and_(bits, code.word(0x7FFFFFFF))
    too_large = builder.icmp_signed(">=", size, code.word((OFFSET + 32) << 23))
    size = builder.select(too_large, code.word(_FP16_MOST), size)
    bits = builder.or_(size, builder.and_(bits, code.word(0x80000000)))
    too_small = builder.icmp_signed("<", size, code.word((OFFSET + 1) << 23))
    return builder.select(too_small, code.word(0), bits)


def _emit_groups(
    code: Vectors,
    tops: Value,
    b: Value,
    a: Value,
    face: Value,
    put: Callable[[Value, list[tuple[Value, Value]]], None],
) -> None:
    """Gives `put` for each vector of the tile M as integers, and M with the sum, of both groups of an inner face."""
    builder = code.builder
    first_k = builder.mul(face, SIZE(FACE))
    first_top = builder.mul(first_k, SIZE(EDGE * EDGE // GROUP))
    for left in range(0, EDGE, code.width):
        above = builder.add(builder.mul(first_k, SIZE(EDGE)), SIZE(left))
        columns = [code.load(a, builder.add(above, SIZE(EDGE * n)), code.floats) for n in range(FACE)]
        with cgutils.for_range(builder, SIZE(EDGE)) as loop:
            row = builder.mul(loop.index, SIZE(EDGE))
            place = builder.add(row, SIZE(left))
            groups: list[tuple[Value, Value]] = []
            for group in range(FACE // GROUP):
                at = builder.add(builder.add(first_top, SIZE(group * EDGE * EDGE)), place)
                m = builder.shl(builder.zext(code.load(tops, at, code.halves), code.words), code.word(22))
                total = code.as_floats(m)
                for n in range(group * GROUP, (group + 1) * GROUP):
                    number = builder.load(builder.gep(b, [builder.add(builder.add(row, first_k), SIZE(n))]))
                    total = llvm_fma(builder, code.floats, splat(builder, number, code.floats), columns[n], total)
                groups.append((m, total))
            put(place, groups)
