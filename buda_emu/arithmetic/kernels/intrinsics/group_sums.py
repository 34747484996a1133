"""The code of `kernels/tensix/products/group_sums.py`. Vectors are neighbouring columns of a row."""

from functools import partial
from typing import Any, TypeAlias

from numba.core import cgutils, types

from buda_emu.arithmetic.jit.intrinsics.code import SIZE, Builder, Value, call_shared, llvm_fma, splat
from buda_emu.arithmetic.jit.intrinsics.declare import intrinsic
from buda_emu.arithmetic.jit.intrinsics.vectors import Vectors, lanes_for
from buda_emu.arithmetic.kernels.intrinsics.dst_words import Bf16, Fp16, Wide, step_at
from buda_emu.arithmetic.kernels.intrinsics.group_tops import Block, Patterns, Tops, block_for
from buda_emu.arithmetic.kernels.tensix.products.group_sums import add_tile
from buda_emu.arithmetic.kernels.tensix.words import EDGE, FACE, FP16, FP32, GROUP, TILE

Sums: TypeAlias = dict[tuple[int, int], list[Value]]
"""Of both groups, for each row and vector of a block."""


@intrinsic(add_tile, types.none, *[types.Array] * 6, types.BaseTuple)
def _add_tile(context: Any, builder: Builder, *given: Value) -> None:
    *plain, mode, blackhole = given
    lanes = lanes_for(context)
    with builder.if_else(builder.icmp_signed("==", mode, mode.type(FP32))) as (then, otherwise):
        with then:
            call_shared(builder, "add_tile_fp32", [*plain, blackhole], partial(_emit_add_tile, lanes, Wide))
        with otherwise, builder.if_else(builder.icmp_signed("==", mode, mode.type(FP16))) as (fp16, bf16):
            with fp16:
                call_shared(builder, "add_tile_fp16", plain, partial(_emit_add_tile, lanes, Fp16))
            with bf16:
                call_shared(builder, "add_tile_bf16", plain, partial(_emit_add_tile, lanes, Bf16))


def _emit_add_tile(lanes: int, kind: type[Bf16 | Fp16 | Wide], builder: Builder, *given: Value) -> None:
    word, exponent_b, exponent_a, b, a, steps, count, faces, lowest, least, moved, cut, *more = given
    code, shape = Vectors(builder, lanes, 2 * lanes), block_for(lanes)
    dst = kind(code, steps, count, moved, *more)
    tops = Tops(code, shape, exponent_b, exponent_a)
    with builder.if_else(builder.icmp_signed("!=", least, SIZE(0)), likely=True) as (near, far):
        with near:
            tops.find_in_bytes(least, lowest, clamps=kind.clamps)
        with far, cgutils.for_range(builder, faces) as face:
            tops.find(face.index, lowest)
    dst.enter(word)
    with cgutils.for_range(builder, count) as step:
        phase, face = (step_at(builder, steps, step.index, n) for n in range(2))
        dst.begin(step.index, phase)
        k = builder.mul(face, SIZE(FACE))
        second = builder.mul(builder.and_(phase, SIZE(1)), SIZE(TILE))
        from_a = builder.gep(a, [builder.add(second, builder.mul(k, SIZE(EDGE)))])
        second = builder.mul(builder.lshr(phase, SIZE(1)), SIZE(TILE))
        from_b = builder.gep(b, [builder.add(second, k)])
        with cgutils.for_range(builder, SIZE(shape.count)) as block:
            row, left = shape.corner(builder, block.index)
            above = builder.mul(row, SIZE(EDGE))
            patterns = tops.of(face, block.index)
            sums = _emit_sums(code, shape, builder.gep(from_b, [above]), builder.gep(from_a, [left]), patterns)
            # Emits nothing, but lets LLVM load the patterns again instead of keeping them.
            builder.fence("acquire", "singlethread")
            corner = builder.gep(word, [builder.add(above, left)])
            add = partial(_emit_words, code, dst, corner, sums, patterns)
            if kind.moves:
                with builder.if_else(builder.icmp_signed("!=", cut, SIZE(0)), likely=False) as (cutting, plain):
                    with cutting:
                        add(cut=True)
                    with plain:
                        add(cut=False)
            else:
                add(cut=False)


def _emit_sums(code: Vectors, shape: Block, b: Value, a: Value, patterns: Patterns) -> Sums:
    """The sums of both groups of a block, with their M; b and a: the first row and column of it in a face."""
    builder = code.builder
    sums = {cell: [code.as_floats(m) for m in patterns.load(cell)[:2]] for cell in shape.cells}
    for n in range(GROUP):
        for group in range(2):
            k = group * GROUP + n
            places = [SIZE(EDGE * k + shape.lanes * vector) for vector in range(shape.vectors)]
            columns = [code.load(a, place, code.floats) for place in places]
            for row in range(shape.rows):
                number = builder.load(builder.gep(b, [SIZE(EDGE * row + k)]))
                factor = splat(builder, number, code.floats)
                for vector, column in enumerate(columns):
                    total = sums[row, vector]
                    total[group] = llvm_fma(builder, code.floats, factor, column, total[group])
    return sums


def _emit_words(
    code: Vectors, dst: Bf16 | Fp16 | Wide, corner: Value, sums: Sums, patterns: Patterns, *, cut: bool
) -> None:
    """Adds the sums of a block to words of Dst, the first of which is at `corner`."""
    for cell, totals in sums.items():
        *each, most = patterns.load(cell)
        place = SIZE(EDGE * cell[0] + code.width * cell[1])
        old = code.load(corner, place, code.words)
        code.store(dst.add(old, list(zip(each, totals, strict=True)), most, cut), corner, place)
