"""The code of `kernels/tensix/conversions/early.py`."""

from typing import Any

from numba.core import cgutils, types
from numba.extending import lower_builtin

from buda_emu.jit.intrinsics.code import SIZE, Builder, Value, call_shared, changes_arrays, on_data
from buda_emu.jit.intrinsics.vectors import Vectors
from buda_emu.kernels.intrinsics.blocks import Assembled
from buda_emu.kernels.tensix.conversions.blocks import GROUP
from buda_emu.kernels.tensix.conversions.early import MAGNITUDE, early_groups, early_halves, early_words
from buda_emu.kernels.tiles.tile_memory import TILE

changes_arrays(early_words)
changes_arrays(early_halves)
changes_arrays(early_groups)


class _Early:
    """An early conversion of the packer; `small`, the bits that stay of what is below the least, is 0 if not given."""

    def __init__(self, code: Vectors, *numbers: Value, small: Value | None = None) -> None:
        self.code = code
        self.numbers = [code.every_word(number) for number in numbers]
        self.small = None if small is None else code.every_word(small)

    def load(self, words: Value, place: Value) -> Value:
        """The words from there on, converted."""
        code, builder = self.code, self.code.builder
        up, kept, most, first, half, mask, least = self.numbers
        word = builder.shl(code.load(words, place, code.words), up)
        size = code.least(builder.and_(builder.and_(word, code.word(MAGNITUDE)), kept), most)
        size = builder.select(builder.icmp_signed("<", size, first), code.word(0), size)
        size = builder.and_(builder.add(size, half), mask)
        signed = builder.or_(size, builder.and_(word, code.word(~MAGNITUDE)))
        rest = code.word(0) if self.small is None else builder.and_(word, self.small)
        return builder.select(builder.icmp_signed("<", size, least), rest, signed)


@lower_builtin(early_words, types.Array, *(types.intp,) * 8, types.Array)
def _lower_early_words(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
    call_shared(builder, "early_words", on_data(context, builder, call, arguments), _emit_early_words)
    return context.get_dummy_value()


def _emit_early_words(builder: Builder, words: Value, *rest: Value) -> None:
    *numbers, small, row = rest
    code = Vectors(builder, GROUP)
    early = _Early(code, *numbers, small=small)
    with cgutils.for_range(builder, SIZE(TILE // GROUP)) as loop:
        place = builder.mul(loop.index, SIZE(GROUP))
        code.store(early.load(words, place), row, place)


@lower_builtin(early_groups, types.Array, *(types.intp,) * 10, types.Array, types.Array)
def _lower_early_groups(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
    call_shared(builder, "early_groups", on_data(context, builder, call, arguments), _emit_early_groups)
    return context.get_dummy_value()


def _emit_early_groups(builder: Builder, words: Value, *numbers: Value) -> None:
    code = Vectors(builder, GROUP)
    early, assembled = _Early(code, *numbers[:7]), Assembled(code, *numbers[7:])
    with cgutils.for_range(builder, SIZE(TILE // GROUP)) as loop:
        assembled.store(early.load(words, builder.mul(loop.index, SIZE(GROUP))), loop.index)


@lower_builtin(early_halves, types.Array, *(types.intp,) * 7, types.Array)
def _lower_early_halves(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
    call_shared(builder, "early_halves", on_data(context, builder, call, arguments), _emit_early_halves)
    return context.get_dummy_value()


def _emit_early_halves(builder: Builder, words: Value, *rest: Value) -> None:
    *numbers, halves = rest
    code = Vectors(builder, GROUP)
    early = _Early(code, *numbers)
    with cgutils.for_range(builder, SIZE(TILE // GROUP)) as loop:
        place = builder.mul(loop.index, SIZE(GROUP))
        word = builder.lshr(early.load(words, place), code.word(16))
        code.store(builder.trunc(word, code.halves), halves, place)
