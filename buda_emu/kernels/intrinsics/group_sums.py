"""The code of `kernels/tensix/group_sums.py`. Vectors are neighbouring columns of a row."""

from collections.abc import Callable
from functools import partial
from typing import Any

from numba.core import cgutils, types
from numba.core.typing.templates import signature
from numba.extending import lower_builtin, type_callable

from buda_emu.kernels.intrinsics.code import SIZE, Builder, Value, call_shared, llvm_fma, splat
from buda_emu.kernels.intrinsics.vectors import I16, Vectors
from buda_emu.kernels.tensix.group_sums import (
    ABOVE,
    AWAY,
    EXPONENT,
    FP16_MOST,
    FRACTION_BITS,
    INVERSE,
    LOWEST_COMMON,
    M_FRACTION,
    MAGIC,
    OFFSET,
    UPWARD,
    add_face,
    find_tops,
    sum_face,
)
from buda_emu.kernels.tensix.words import EDGE, FACE, FP16, GROUP


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
    below = code.every_word(builder.add(shifted, SIZE(ABOVE << 23 | M_FRACTION)))
    none = code.every_word(builder.add(shifted, SIZE((OFFSET + ABOVE) << 23 | M_FRACTION)))
    half, kept = (0x1000, -0x2000) if fp16 else (0x8000, -0x10000)

    def put(place: Value, groups: list[tuple[Value, Value]]) -> None:
        old = code.load(word, place, code.floats)
        exponent = builder.and_(code.as_words(old), code.word(EXPONENT))
        common = builder.sub(code.largest(groups[0][0], groups[1][0]), below)
        common = code.largest(code.largest(common, exponent), code.word(LOWEST_COMMON << 23))
        inverse = builder.sub(code.word(INVERSE), common)
        scale = code.as_floats(builder.sub(inverse, finer))
        away = code.as_floats(builder.or_(inverse, code.word(AWAY)))
        total = llvm_fma(builder, code.floats, old, away, code.float(MAGIC))
        for m, group in groups:
            v = builder.fsub(group, code.as_floats(m))
            if fp16:
                v = builder.select(builder.icmp_signed(">", m, none), v, code.float(0.0))
            aligned = llvm_fma(builder, code.floats, v, scale, code.float(UPWARD))
            total = builder.fadd(total, code.floor(aligned))
        total = code.as_words(builder.fsub(total, code.float(MAGIC)))
        rounded = builder.and_(builder.add(total, code.word(half)), code.word(kept))
        unit = code.as_floats(builder.sub(common, code.word(FRACTION_BITS << 23)))
        result = builder.fmul(code.as_floats(rounded), unit)
        code.store(_fp16_ends(code, result) if fp16 else result, word, place)

    _emit_groups(code, tops, b, a, face, put)


def _fp16_ends(code: Vectors, value: Value) -> Value:
    """What an fp16 Dst makes of a number that is too large or too small for it."""
    builder = code.builder
    bits = code.as_words(value)
    size = builder.and_(bits, code.word(0x7FFFFFFF))
    too_large = builder.icmp_signed(">=", size, code.word((OFFSET + 32) << 23))
    size = builder.select(too_large, code.word(FP16_MOST), size)
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
