"""LLVM code of `kernels/tensix/elementwise.py`: sums and products of Src words in singles."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from numba.core import cgutils, types

from buda_emu.arithmetic.jit.llvm_code import (
    I32,
    SIZE,
    Builder,
    Value,
    Vectors,
    call_shared_function,
    intrinsic,
    lanes_for,
    llvm_fma,
    shared_intrinsic,
)
from buda_emu.arithmetic.kernels.tensix.elementwise import (
    AWAY,
    FP16_MOST,
    FRACTION_BITS,
    INVERSE,
    LEAST,
    LEAST_PRODUCT,
    LIFT,
    MAGIC,
    MOST,
    MOST_PRODUCT,
    ROUNDING,
    SRC_BITS,
    SRCA_CUTS,
    SRCB_CUTS,
    UPWARD,
    add_words,
    multiply_exactly,
    multiply_words,
)
from buda_emu.arithmetic.kernels.tensix.words import BF16, FP16, FP32, TILE
from buda_emu.spec.single import INFINITY, MAGNITUDE, NEGATIVE_SIGN

_WORDS: Final = (types.Array, types.Array, types.Array)


@intrinsic(add_words, types.none, *_WORDS, types.intp, types.intp, types.intp, types.Array)
def _add_words(context: Any, builder: Builder, *arguments: Value) -> None:
    """Emit `add_words`, a sum in singles: a call of the shared function for the mode of Dst."""
    _call_for_mode(context, builder, arguments, "add_words", _emit_add)


@intrinsic(multiply_words, types.none, *_WORDS, types.intp, types.intp, types.intp, types.Array)
def _multiply_words(context: Any, builder: Builder, *arguments: Value) -> None:
    """Emit `multiply_words`, one phase of a product in singles: a call of the shared function for the mode of Dst."""
    _call_for_mode(context, builder, arguments, "multiply_words", _emit_multiply)


def _call_for_mode(context: Any, builder: Builder, arguments: Sequence[Value], name: str, emit: Any) -> None:
    """Emit a call of the shared function that has the mode of Dst, the last argument but one, in its name after `name`;
    `emit` makes the bodies. Products in a Dst of 32 bits have none, as they are `multiply_exactly`."""
    width = lanes_for(context)
    (*others, mode, special) = arguments
    modes = [BF16, FP16]
    if emit is _emit_add:  # products in a Dst of 32 bits are `multiply_exactly`
        modes.append(FP32)
    for number in modes:
        with builder.if_then(builder.icmp_signed("==", mode, SIZE(number))):
            call_shared_function(builder, f"{name}_{number}", [*others, special], partial(emit, width, number))


class _Code(Vectors):
    """Vectors with the steps that sums and products share."""

    def lift(self, x: Value, lift: Value) -> Value:
        """Return Src words with `lift` added, 0 where the exponent is 0."""
        zero = self.builder.icmp_signed("==", self.builder.and_(x, self.word(INFINITY)), self.word(0))
        word = self.builder.add(self.builder.and_(x, self.word(SRC_BITS)), lift)
        return self.builder.select(zero, self.word(0), word)

    def exponent(self, x: Value) -> Value:
        """Return the exponent fields of words, in their place."""
        return self.builder.and_(x, self.word(INFINITY))

    def round_sum(self, total: Value, common: Value, mode: int) -> Value:
        """Return `total`, integral singles in units of 2^-10 of `common`, as words, rounded to the precision of a Dst
        of `mode` and for fp16 clamped to its range."""
        builder = self.builder
        half, mask = ROUNDING[mode]
        bits = builder.and_(builder.add(self.as_words(total), self.word(half)), self.word(mask))
        unit = self.as_floats(builder.sub(common, self.word(FRACTION_BITS << 23)))
        bits = self.as_words(builder.fmul(self.as_floats(bits), unit))
        if mode != FP16:
            return bits
        size = builder.and_(bits, self.word(MAGNITUDE))
        too_large = builder.icmp_signed(">=", size, self.word((LIFT + 32) << 23))
        size = builder.select(too_large, self.word(FP16_MOST), size)
        too_small = builder.icmp_signed("<", size, self.word((LIFT + 1) << 23))
        return builder.select(too_small, self.word(0), builder.or_(size, builder.and_(bits, self.word(NEGATIVE_SIGN))))

    def part(self, x: Value, mask: Value, without: Value) -> Value:
        """Return a part of the significands of words as singles: the words with the bits `mask`, minus those with the
        bits `without`."""
        builder = self.builder
        return builder.fsub(self.as_floats(builder.and_(x, mask)), self.as_floats(builder.and_(x, without)))

    def note(self, special_lanes: Value, special: Value) -> None:
        """Emit the setting of the lanes of `special`, an address, in which the condition `special_lanes` holds; none is
        cleared."""
        builder = self.builder
        seen = self.load(special, SIZE(0), self.words)
        self.store(builder.or_(seen, builder.sext(special_lanes, self.words)), special, SIZE(0))


def _emit_add(width: int, mode: int, builder: Builder, *arguments: Value) -> None:
    """Emit the body of `add_words` for a mode of Dst: a loop over vectors of `width` lanes."""
    word, a, b, flip, lift, special = arguments
    code = _Code(builder, width)
    flips = code.every_word(flip)
    lifts = code.every_word(lift)
    with cgutils.for_range(builder, SIZE(TILE // width)) as loop:
        place = builder.mul(loop.index, SIZE(width))
        first = code.lift(code.load(a, place, code.words), lifts)
        second = code.lift(builder.xor(code.load(b, place, code.words), flips), lifts)
        top = code.largest(code.exponent(first), code.exponent(second))
        unit = code.largest(top, code.word(LEAST))
        inverse = code.as_floats(builder.sub(code.word(INVERSE | AWAY), unit))
        magic = code.float(MAGIC)
        counts = [
            builder.fsub(llvm_fma(builder, code.floats, code.as_floats(x), inverse, magic), magic)
            for x in (first, second)
        ]
        code.store(code.round_sum(builder.fadd(*counts), unit, mode), word, place)
        weak = builder.and_(
            builder.icmp_signed("!=", top, code.word(0)), builder.icmp_signed("<", top, code.word(LEAST))
        )
        code.note(builder.or_(weak, builder.icmp_signed(">", top, code.word(MOST))), special)


def _emit_factors(
    code: "_Code", a: Value, b: Value, place: Value, lift: Value, special: Value
) -> tuple[Value, Value, Value]:
    """Return vectors of both factors, lifted, and half the sum of their exponents (in the place of the exponent field),
    0 where one is a zero; lanes out of range are noted in `special`."""
    builder = code.builder
    first, second = (code.lift(code.load(x, place, code.words), lift) for x in (a, b))
    exponents = [builder.lshr(code.exponent(x), code.word(1)) for x in (first, second)]
    weaker = code.least(*exponents)
    none = builder.icmp_signed("==", weaker, code.word(0))
    pair = builder.select(none, code.word(0), builder.add(*exponents))
    weak = builder.or_(
        builder.icmp_signed("<", pair, code.word(LEAST_PRODUCT >> 1)),
        builder.icmp_signed("<", weaker, code.word(LEAST >> 1)),
    )
    strong = builder.or_(
        builder.icmp_signed(">", pair, code.word(MOST_PRODUCT >> 1)),
        builder.icmp_signed(">", code.largest(*exponents), code.word(MOST >> 1)),
    )
    code.note(builder.or_(builder.and_(builder.not_(none), weak), strong), special)
    return first, second, pair


def _part_masks(code: "_Code", second: Value, cuts: tuple[int, int]) -> tuple[Value, Value]:
    """Return two vectors of masks: Src words under the first, minus those under the second, are as singles the part of
    the significands that a phase multiplies, the first or, if `second` holds, the second one. `cuts` are the masks of
    the first part and of both together."""
    builder = code.builder
    mask = builder.select(second, I32(cuts[1]), I32(cuts[0]))
    without = builder.select(second, I32(cuts[0]), I32(0))
    return code.every(mask), code.every(without)


def _phase_masks(code: "_Code", phase: Value) -> tuple[tuple[Value, Value], tuple[Value, Value]]:
    """Return the masks of the parts that a fidelity phase multiplies, two for SrcA and two for SrcB: words under the
    first, minus those under the second, are the part."""
    builder = code.builder
    low = builder.icmp_signed("!=", builder.and_(phase, SIZE(1)), SIZE(0))
    high = builder.icmp_signed(">=", phase, SIZE(2))
    return _part_masks(code, low, SRCA_CUTS), _part_masks(code, high, SRCB_CUTS)


def _emit_multiply(width: int, mode: int, builder: Builder, *arguments: Value) -> None:
    """Emit the body of `multiply_words` for a mode of Dst: a loop over vectors of `width` lanes."""
    word, a, b, phase, lift, special = arguments
    code = _Code(builder, width)
    lifts = code.every_word(lift)
    cuts_a, cuts_b = _phase_masks(code, phase)
    shift = builder.add(
        builder.mul(builder.and_(phase, SIZE(1)), SIZE(5)), builder.mul(builder.lshr(phase, SIZE(1)), SIZE(7))
    )
    bias = code.every_word(builder.shl(builder.add(shift, SIZE(127)), SIZE(23)))
    with cgutils.for_range(builder, SIZE(TILE // width)) as loop:
        place = builder.mul(loop.index, SIZE(width))
        first, second, pair = _emit_factors(code, a, b, place, lifts, special)
        none = builder.icmp_signed("==", pair, code.word(0))
        exponent = builder.select(none, code.word(0), builder.sub(builder.shl(pair, code.word(1)), bias))
        product = builder.fmul(code.part(first, *cuts_a), code.part(second, *cuts_b))
        if mode == FP16:
            positive = builder.icmp_signed(">", exponent, code.word(LIFT << 23))
            product = builder.select(positive, product, code.float(0.0))
        old = code.load(word, place, code.words)
        common = code.largest(code.largest(exponent, code.exponent(old)), code.word(LEAST))
        scale = code.as_floats(builder.sub(code.word(INVERSE), common))
        away = code.as_floats(builder.sub(code.word(INVERSE | AWAY), common))
        total = llvm_fma(builder, code.floats, code.as_floats(old), away, code.float(MAGIC))
        total = builder.fadd(total, code.floor(llvm_fma(builder, code.floats, product, scale, code.float(UPWARD))))
        code.store(code.round_sum(builder.fsub(total, code.float(MAGIC)), common, mode), word, place)


@shared_intrinsic(multiply_exactly, *_WORDS, types.intp, types.intp, types.Array, by_lanes=True)
def _emit_multiply_exactly(
    width: int, builder: Builder, word: Value, a: Value, b: Value, phase: Value, lift: Value, special: Value
) -> None:
    """Emit the body of `multiply_exactly`, a phase of a product in a 32-bit Dst: a loop over vectors of `width`
    lanes."""
    code = _Code(builder, width)
    lifts = code.every_word(lift)
    cuts_a, cuts_b = _phase_masks(code, phase)
    with cgutils.for_range(builder, SIZE(TILE // width)) as loop:
        place = builder.mul(loop.index, SIZE(width))
        first, second, _ = _emit_factors(code, a, b, place, lifts, special)
        parts = code.part(first, *cuts_a), code.part(second, *cuts_b)
        old = code.as_floats(code.load(word, place, code.words))
        code.store(llvm_fma(builder, code.floats, *parts, old), word, place)
