"""What a tile in Dst is after it went to intermed_df and back between two blocks of a product (DEVICE_NUMERICS 2.8):
packed, unpacked and copied, without leaving the cache. `spilled` says what a pair of formats does to a word.

The words are those of `matmul_by_singles`: no exponent is 0 but that of +0, and in 16 bits none is near 255.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numba.core import cgutils, types
from numba.core.typing.templates import signature
from numba.extending import lower_builtin, type_callable

from buda_emu.kernels.fma import fma_f32, llvm_fma
from buda_emu.kernels.jit import helper
from buda_emu.kernels.tensix.vectors import I32, Vectors
from buda_emu.kernels.tensix.words import BF16, FP16, FP32, TILE, Lanes, i32
from buda_emu.kernels.tile_memory import SIZE, Builder, Value, call_shared

__all__ = ["AS_IT_WAS", "SPILLS", "spill_words", "through_blocks"]

AS_IT_WAS: Final = 0
BLOCKS: Final = 1
TF32: Final = 2
SPILLS: Final[Mapping[tuple[int, str, str, str], int]] = MappingProxyType(
    {
        (BF16, "Float16_b", "Float16_b", "Float16_b"): AS_IT_WAS,
        (FP16, "Float16", "Float16", "Float16"): AS_IT_WAS,
        (BF16, "Bfp8_b", "Bfp8_b", "Bfp8_b"): BLOCKS,
        (FP32, "Float32", "Float32", "Tf32"): TF32,
    }
)
"""By what Dst holds, the packer's intermediate format, intermed_df, and its register format."""

GROUP: Final = 16  # datums under one exponent
_EXPONENT: Final = 0x7F800000
_MAGNITUDE: Final = 0x7FFFFFFF
_SIGN: Final = -0x80000000
_HALF: Final = 0x10000  # of the last bit of the packer's source, which has 6 bits of fraction (4.2)
_KEPT: Final = 0x7FFE0000
_FRACTION_BITS: Final = 6  # of a magnitude of 7 bits, relative to the shared exponent
_MOST: Final = 127.0
_INVERSE: Final = (2 * 127 + _FRACTION_BITS) << 23
_LEAST: Final = 11 << 23  # as `group_sums.LOWEST_COMMON`; a group of zeros has none


@helper
def spill_words(word: Lanes, kind: int) -> None:
    """The words of a tile after the way of that kind."""
    if kind == BLOCKS:
        through_blocks(word.view(np.float32))
    elif kind == TF32:
        for n in range(TILE):
            exponent = i32(word[n] & i32(_EXPONENT))
            kept = i32(word[n] & i32(-0x2000))
            kept = i32(word[n] & i32(-0x800000)) if exponent == i32(_EXPONENT) else kept
            word[n] = i32(0) if exponent == 0 else kept


def through_blocks(word: Any) -> None:
    """float32[1024] words of a bf16 Dst to Bfp8_b and back: rounded to 6 bits of fraction, then in groups of 16 to 7
    bits below the largest exponent, halves away from zero both times (4.2, 4.5, 1.2)."""
    bits = word.view(np.int32)
    size = np.asarray((bits & i32(_MAGNITUDE)) + i32(_HALF)) & i32(_KEPT)
    shared = np.maximum(size.reshape(-1, GROUP).max(axis=1) & i32(_EXPONENT), i32(_LEAST)).repeat(GROUP)
    inverse = np.asarray(np.array(_INVERSE, np.uint32) - shared.view(np.uint32)).view(np.float32)
    count = np.minimum(np.floor(fma_f32(size.view(np.float32), inverse, np.float32(0.5))), np.float32(_MOST))
    value = np.asarray(count * (shared - i32(_FRACTION_BITS << 23)).view(np.float32)).view(np.int32)
    bits[:] = np.where(count == 0, i32(0), value | (bits & i32(_SIGN)))


@type_callable(through_blocks)
def _type_through_blocks(_context: Any) -> Any:
    def typer(word: Any) -> Any:
        return signature(types.none, word)

    return typer


@lower_builtin(through_blocks, types.Array)
def _lower_through_blocks(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
    word = context.make_array(call.args[0])(context, builder, arguments[0]).data
    call_shared(builder, "through_blocks", [word], _emit_through_blocks)
    return context.get_dummy_value()


def _emit_through_blocks(builder: Builder, word: Value) -> None:
    code = Vectors(builder, GROUP)
    with cgutils.for_range(builder, SIZE(TILE // GROUP)) as loop:
        place = builder.mul(loop.index, SIZE(GROUP))
        bits = code.load(word, place, code.words)
        size = builder.and_(bits, code.word(_MAGNITUDE))
        size = builder.and_(builder.add(size, code.word(_HALF)), code.word(_KEPT))
        shared = code.every(builder.and_(code.largest_in(size), I32(_EXPONENT)))
        shared = code.largest(shared, code.word(_LEAST))
        inverse = code.as_floats(builder.sub(code.word(_INVERSE), shared))
        count = code.floor(llvm_fma(builder, code.floats, code.as_floats(size), inverse, code.float(0.5)))
        count = builder.select(builder.fcmp_ordered("<", count, code.float(_MOST)), count, code.float(_MOST))
        unit = code.as_floats(builder.sub(shared, code.word(_FRACTION_BITS << 23)))
        value = builder.or_(code.as_words(builder.fmul(count, unit)), builder.and_(bits, code.word(_SIGN)))
        none = builder.fcmp_ordered("==", count, code.float(0.0))
        code.store(builder.select(none, code.word(0), value), word, place)
