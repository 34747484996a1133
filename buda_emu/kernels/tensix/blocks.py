"""Block formats as the packer assembles them (DEVICE_NUMERICS 4.5); `buda_emu.tensix.blocks` is the definition.

As LLVM vector code: a vector is the 16 datums that share an exponent. Called from Python it is the same in numpy.
"""

from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import signature
from numba.extending import lower_builtin, type_callable

from buda_emu.kernels.jit import helper
from buda_emu.kernels.tensix.vectors import Vectors
from buda_emu.kernels.tile_memory import SIZE, TILE, Builder, Value, call_shared

__all__ = ["assemble_groups", "assemble_row"]

_GROUP: Final = 16
_FRACTION: Final = 127
_LEADING: Final = 128
_MOST: Final = 127
_FARTHEST: Final = 8  # 255 + 256, shifted by 9: nothing is left


@helper
def assemble_row(row: Any, bits: Any, narrow: Any, codes: Any, exponents: Any) -> None:
    """A tile of 1024 words, bf16 or fp16 in the upper half, to codes of `bits` magnitude bits and shared exponents."""
    # What is looked at has 7 bits of fraction below the exponent.
    down, most = (19, 31) if narrow else (16, 255)
    assemble_groups(row.view(np.int32), down, most, 7 - bits, codes, exponents)


def assemble_groups(row: Any, down: int, most: int, cut: int, codes: Any, exponents: Any) -> None:
    """The exponents of int32[1024] begin 7 above bit `down` and are at most `most`; `cut` low bits of a magnitude of 7
    are left out. codes: uint8[1024]; exponents: uint8[64]."""
    x = row.reshape(-1, _GROUP)
    exponent = x >> (down + 7) & most
    significand = np.where(exponent == 0, 0, _LEADING) | x >> down & _FRACTION
    shared = exponent.max(axis=1)
    distance = np.minimum(shared[:, None] - exponent, _FARTHEST)
    size = np.minimum((significand + (1 << distance)) >> (distance + 1), _MOST) >> cut
    codes[:] = np.where(size == 0, 0, size | (x < 0) << (7 - cut)).reshape(-1)
    exponents[:] = shared


@type_callable(assemble_groups)
def _type_assemble_groups(_context: Any) -> Any:
    def typer(row: Any, down: Any, most: Any, cut: Any, codes: Any, exponents: Any) -> Any:
        del down, most, cut
        return signature(types.none, row, types.intp, types.intp, types.intp, codes, exponents)

    return typer


@lower_builtin(assemble_groups, types.Array, types.intp, types.intp, types.intp, types.Array, types.Array)
def _lower_assemble_groups(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
    plain = [
        context.make_array(kind)(context, builder, value).data if isinstance(kind, types.Array) else value
        for kind, value in zip(call.args, arguments, strict=False)
    ]
    call_shared(builder, "assemble_groups", plain, _emit)
    return context.get_dummy_value()


def _emit(builder: Builder, row: Value, down: Value, most: Value, cut: Value, codes: Value, exponents: Value) -> None:
    code = Vectors(builder, _GROUP)
    field = code.every_word(builder.add(down, SIZE(7)))
    down, most, cut, sign_place = (
        code.every_word(number) for number in (down, most, cut, builder.sub(SIZE(7), cut))
    )  # fmt: skip
    with cgutils.for_range(builder, SIZE(TILE // _GROUP)) as loop:
        place = builder.mul(loop.index, SIZE(_GROUP))
        x = code.load(row, place, code.words)
        exponent = builder.and_(builder.lshr(x, field), most)
        leading = builder.select(builder.icmp_signed("==", exponent, code.word(0)), code.word(0), code.word(_LEADING))
        significand = builder.or_(builder.and_(builder.lshr(x, down), code.word(_FRACTION)), leading)
        shared = code.largest_in(exponent)
        distance = code.least(builder.sub(code.every(shared), exponent), code.word(_FARTHEST))
        half = builder.shl(code.word(1), distance)
        size = builder.lshr(builder.add(significand, half), builder.add(distance, code.word(1)))
        size = builder.lshr(code.least(size, code.word(_MOST)), cut)
        signed = builder.or_(size, builder.shl(builder.lshr(x, code.word(31)), sign_place))
        signed = builder.select(builder.icmp_signed("==", size, code.word(0)), code.word(0), signed)
        byte = ir.IntType(8)
        code.store(builder.trunc(signed, ir.VectorType(byte, _GROUP)), codes, place, align=1)
        builder.store(builder.trunc(shared, byte), builder.gep(exponents, [loop.index]))

