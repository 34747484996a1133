"""LLVM code of `kernels/tensix/conversions.py`."""

from numba.core import cgutils, types

from buda_emu.arithmetic.jit.intrinsics import SIZE, Builder, Value, Vectors, shared_intrinsic
from buda_emu.arithmetic.kernels.intrinsics.blocks import Assembled
from buda_emu.arithmetic.kernels.tensix.conversions import GROUP, early_groups, early_halves, early_words
from buda_emu.arithmetic.kernels.tiles.tile_memory import TILE
from buda_emu.spec.single import MAGNITUDE


class _Early:
    """An early conversion of the packer; `small`, the bits that stay of what is below the least, is 0 if not given."""

    def __init__(self, code: Vectors, *numbers: Value, small: Value | None = None) -> None:
        self.code = code
        self.numbers = [code.every_word(number) for number in numbers]
        self.small = None if small is None else code.every_word(small)

    def load(self, words: Value, place: Value) -> Value:
        """Load and convert the words from `place` on."""
        code = self.code
        builder = self.code.builder
        up, mask_in, greatest, first, half, mask, least = self.numbers
        word = builder.shl(code.load(words, place, code.words), up)
        size = code.least(builder.and_(builder.and_(word, code.word(MAGNITUDE)), mask_in), greatest)
        size = builder.select(builder.icmp_signed("<", size, first), code.word(0), size)
        size = builder.and_(builder.add(size, half), mask)
        signed = builder.or_(size, builder.and_(word, code.word(~MAGNITUDE)))
        small_word = code.word(0) if self.small is None else builder.and_(word, self.small)
        return builder.select(builder.icmp_signed("<", size, least), small_word, signed)


@shared_intrinsic(early_words, types.Array, types.intp, types.BaseTuple, types.intp, types.Array)
def _emit_early_words(builder: Builder, words: Value, *rest: Value) -> None:
    """Emit `early_words` of `kernels/tensix/conversions.py`: Dst to words of the packer's intermediate format."""
    *numbers, small, row = rest
    code = Vectors(builder, GROUP)
    early = _Early(code, *numbers, small=small)
    with cgutils.for_range(builder, SIZE(TILE // GROUP)) as loop:
        place = builder.mul(loop.index, SIZE(GROUP))
        code.store(early.load(words, place), row, place)


@shared_intrinsic(early_groups, types.Array, types.intp, types.BaseTuple, types.BaseTuple, types.Array, types.Array)
def _emit_early_groups(builder: Builder, words: Value, *numbers: Value) -> None:
    """Emit `early_groups` (`kernels/tensix/conversions.py`) when numba compiles a kernel that calls it: Dst becomes
    blocks of codes with shared exponents in one pass, without an array of converted words."""
    code = Vectors(builder, GROUP)
    early = _Early(code, *numbers[:7])
    assembled = Assembled(code, *numbers[7:])
    with cgutils.for_range(builder, SIZE(TILE // GROUP)) as loop:
        assembled.store(early.load(words, builder.mul(loop.index, SIZE(GROUP))), loop.index)


@shared_intrinsic(early_halves, types.Array, types.intp, types.BaseTuple, types.Array)
def _emit_early_halves(builder: Builder, words: Value, *rest: Value) -> None:
    """Emit `early_halves` of `kernels/tensix/conversions.py`: Dst to the upper halves of words of the packer's
    intermediate format."""
    *numbers, halves = rest
    code = Vectors(builder, GROUP)
    early = _Early(code, *numbers)
    with cgutils.for_range(builder, SIZE(TILE // GROUP)) as loop:
        place = builder.mul(loop.index, SIZE(GROUP))
        word = builder.lshr(early.load(words, place), code.word(16))
        code.store(builder.trunc(word, code.halves), halves, place)
