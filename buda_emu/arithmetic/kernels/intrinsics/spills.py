"""LLVM code of `through_blocks` of `kernels/tensix/products/spills.py`."""

from numba.core import cgutils, types

from buda_emu.arithmetic.jit.llvm_code import I32, SIZE, Builder, Value, Vectors, llvm_fma, shared_intrinsic
from buda_emu.arithmetic.kernels.tensix.products.spills import (
    FRACTION_BITS,
    GROUP,
    HALF,
    INVERSE,
    KEPT,
    LEAST,
    MOST,
    through_blocks,
)
from buda_emu.arithmetic.kernels.tensix.words import TILE
from buda_emu.spec.single import INFINITY, MAGNITUDE, NEGATIVE_SIGN


@shared_intrinsic(through_blocks, types.Array)
def _emit_through_blocks(builder: Builder, word: Value) -> None:
    """Emit the body of `through_blocks`, bf16 to Bfp8_b and back: a loop over groups of 16 words, each of which is one
    vector and is rounded to the exponent of its largest word."""
    code = Vectors(builder, GROUP)
    with cgutils.for_range(builder, SIZE(TILE // GROUP)) as loop:
        place = builder.mul(loop.index, SIZE(GROUP))
        bits = code.load(word, place, code.words)
        size = builder.and_(bits, code.word(MAGNITUDE))
        size = builder.and_(builder.add(size, code.word(HALF)), code.word(KEPT))
        shared = code.every(builder.and_(code.largest_in(size), I32(INFINITY)))
        shared = code.largest(shared, code.word(LEAST))
        inverse = code.as_floats(builder.sub(code.word(INVERSE), shared))
        count = code.floor(llvm_fma(builder, code.floats, code.as_floats(size), inverse, code.float(0.5)))
        count = builder.select(builder.fcmp_ordered("<", count, code.float(MOST)), count, code.float(MOST))
        unit = code.as_floats(builder.sub(shared, code.word(FRACTION_BITS << 23)))
        value = builder.or_(code.as_words(builder.fmul(count, unit)), builder.and_(bits, code.word(NEGATIVE_SIGN)))
        none = builder.fcmp_ordered("==", count, code.float(0.0))
        code.store(builder.select(none, code.word(0), value), word, place)
