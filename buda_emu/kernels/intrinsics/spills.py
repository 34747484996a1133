"""The code of `kernels/tensix/products/spills.py`."""

from typing import Any

from numba.core import cgutils, types
from numba.core.typing.templates import signature
from numba.extending import lower_builtin, type_callable

from buda_emu.jit.intrinsics.code import SIZE, Builder, Value, call_shared, llvm_fma
from buda_emu.jit.intrinsics.vectors import I32, Vectors
from buda_emu.kernels.tensix.products.spills import (
    EXPONENT,
    FRACTION_BITS,
    GROUP,
    HALF,
    INVERSE,
    KEPT,
    LEAST,
    MAGNITUDE,
    MOST,
    SIGN,
    through_blocks,
)
from buda_emu.kernels.tensix.words import TILE


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
        size = builder.and_(bits, code.word(MAGNITUDE))
        size = builder.and_(builder.add(size, code.word(HALF)), code.word(KEPT))
        shared = code.every(builder.and_(code.largest_in(size), I32(EXPONENT)))
        shared = code.largest(shared, code.word(LEAST))
        inverse = code.as_floats(builder.sub(code.word(INVERSE), shared))
        count = code.floor(llvm_fma(builder, code.floats, code.as_floats(size), inverse, code.float(0.5)))
        count = builder.select(builder.fcmp_ordered("<", count, code.float(MOST)), count, code.float(MOST))
        unit = code.as_floats(builder.sub(shared, code.word(FRACTION_BITS << 23)))
        value = builder.or_(code.as_words(builder.fmul(count, unit)), builder.and_(bits, code.word(SIGN)))
        none = builder.fcmp_ordered("==", count, code.float(0.0))
        code.store(builder.select(none, code.word(0), value), word, place)
