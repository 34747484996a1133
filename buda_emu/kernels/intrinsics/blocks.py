"""The code of `kernels/tensix/blocks.py`: a vector is the 16 datums that share an exponent."""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import lower_builtin

from buda_emu.kernels.intrinsics.code import SIZE, Builder, Value, call_shared, changes_arrays, on_data
from buda_emu.kernels.intrinsics.vectors import Vectors
from buda_emu.kernels.tensix.blocks import (
    FARTHEST,
    FRACTION,
    GROUP,
    LEADING,
    MOST,
    assemble_groups,
)
from buda_emu.kernels.tile_memory import TILE

changes_arrays(assemble_groups)


@lower_builtin(assemble_groups, types.Array, types.intp, types.intp, types.intp, types.Array, types.Array)
def _lower_assemble_groups(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
    plain = on_data(context, builder, call, arguments)
    call_shared(builder, "assemble_groups", plain, _emit)
    return context.get_dummy_value()


def _emit(builder: Builder, row: Value, down: Value, most: Value, cut: Value, codes: Value, exponents: Value) -> None:
    code = Vectors(builder, GROUP)
    field = code.every_word(builder.add(down, SIZE(7)))
    down, most, cut, sign_place = (
        code.every_word(number) for number in (down, most, cut, builder.sub(SIZE(7), cut))
    )  # fmt: skip
    with cgutils.for_range(builder, SIZE(TILE // GROUP)) as loop:
        place = builder.mul(loop.index, SIZE(GROUP))
        x = code.load(row, place, code.words)
        exponent = builder.and_(builder.lshr(x, field), most)
        leading = builder.select(builder.icmp_signed("==", exponent, code.word(0)), code.word(0), code.word(LEADING))
        significand = builder.or_(builder.and_(builder.lshr(x, down), code.word(FRACTION)), leading)
        shared = code.largest_in(exponent)
        distance = code.least(builder.sub(code.every(shared), exponent), code.word(FARTHEST))
        half = builder.shl(code.word(1), distance)
        size = builder.lshr(builder.add(significand, half), builder.add(distance, code.word(1)))
        size = builder.lshr(code.least(size, code.word(MOST)), cut)
        signed = builder.or_(size, builder.shl(builder.lshr(x, code.word(31)), sign_place))
        signed = builder.select(builder.icmp_signed("==", size, code.word(0)), code.word(0), signed)
        byte = ir.IntType(8)
        code.store(builder.trunc(signed, ir.VectorType(byte, GROUP)), codes, place, align=1)
        builder.store(builder.trunc(shared, byte), builder.gep(exponents, [loop.index]))
