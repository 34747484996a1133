"""What an accumulation makes of words of Dst, for each kind of Dst (`kernels/tensix/products/group_sums.py`)."""

from typing import TypeAlias

from numba.core import cgutils

from buda_emu.arithmetic.jit.intrinsics.code import SIZE, Builder, Value, llvm_fma
from buda_emu.arithmetic.jit.intrinsics.vectors import WIDE, Vectors
from buda_emu.arithmetic.kernels.tensix.products.group_sums import (
    ABOVE,
    AWAY,
    BUG,
    EXPONENT,
    FP16_MOST,
    HALF,
    HALF_BELOW,
    HALF_OF_M,
    INVERSE,
    INVERSE_WIDE,
    LEAST_FP16,
    LEAST_WIDE,
    M_FRACTION,
    MAGNITUDE,
    OFFSET,
    SIGN,
    UNIT,
    UNIT_WIDE,
)
from buda_emu.arithmetic.kernels.tensix.products.prepared import INFINITE
from buda_emu.arithmetic.kernels.tensix.words import TILE

Group: TypeAlias = tuple[Value, Value]
"""The pattern of M, and M with the sum."""


def step_at(builder: Builder, steps: Value, number: Value, field: int) -> Value:
    """Field 0 of a step is its phase, field 1 its face."""
    place = builder.add(builder.shl(number, SIZE(1)), SIZE(field))
    return builder.sext(builder.load(builder.gep(steps, [place])), SIZE)


class Dst:
    """What the kinds of Dst have in common. `clamps`: exponents of products may be less than any of Dst; `moves`:
    exponents may be moved, so that words are cut."""

    clamps = False
    moves = True

    def __init__(self, code: Vectors, steps: Value, count: Value, moved: Value) -> None:
        builder = code.builder
        self.code, self.builder = code, builder
        self.steps, self.count = steps, count
        up = builder.icmp_signed(">", moved, SIZE(0))
        self._smallest = builder.shl(builder.select(up, builder.add(moved, SIZE(1)), SIZE(0)), SIZE(23))
        # Far above any sum where exponents are moved up, so that a shift may be added.
        largest = builder.select(up, SIZE(INFINITE - 2 * ABOVE), builder.add(SIZE(INFINITE), moved))
        self._largest = builder.shl(largest, SIZE(23))

    def enter(self, word: Value) -> None:
        """Before the first step, with the first word of a tile."""

    def begin(self, _step: Value, phase: Value) -> None:
        """Of a step."""
        self._shifted = self.builder.shl(self.shift_of(phase), SIZE(23))
        self.down = self.code.every_word(self._shifted)
        self.scale = self.code.as_floats(self.from_(127 << 23))

    def shift_of(self, phase: Value) -> Value:
        """`accumulate.shift_of`."""
        builder = self.builder
        low = builder.mul(builder.and_(phase, SIZE(1)), SIZE(5))
        return builder.add(low, builder.mul(builder.lshr(phase, SIZE(1)), SIZE(7)))

    def from_(self, number: int) -> Value:
        """A pattern with the exponent of the number, less by the shift."""
        return self.code.every_word(self.builder.sub(SIZE(number), self._shifted))

    def plus_shift(self, number: int) -> Value:
        """The same, more by the shift."""
        return self.code.every_word(self.builder.add(SIZE(number), self._shifted))

    def own_of(self, old: Value, above: int) -> Value:
        """The pattern of the M of words whose exponents are less by `above`."""
        code, builder = self.code, self.builder
        if above:
            old = builder.add(old, code.word(above << 23))
        return builder.or_(builder.and_(old, code.word(EXPONENT)), code.word(M_FRACTION))

    def common(self, old: Value, most: Value, least: int) -> Value:
        """The pattern of the M of the largest exponent, at least `least`."""
        code = self.code
        own = code.larger_pattern(self.own_of(old, ABOVE), code.word(least))
        return code.larger_pattern(self.builder.sub(most, self.down), own)

    def cut(self, bits: Value, shifted: Value | None = None) -> Value:
        """As `prepared.cut_words`; `shifted`: what has been added to the patterns."""
        code, builder = self.code, self.builder
        ends = (self._smallest, self._largest)
        smallest, largest = (code.every_word(builder.add(end, shifted) if shifted else end) for end in ends)
        size = code.least(builder.and_(bits, code.word(MAGNITUDE)), largest)
        found = builder.or_(size, builder.and_(bits, code.word(SIGN)))
        return builder.select(builder.icmp_signed("<", size, smallest), code.word(0), found)

    def sum_of(self, group: Group) -> Value:
        """A group's sum without its M."""
        return self.builder.fsub(group[1], self.code.as_floats(group[0]))


class Bf16(Dst):
    """A Dst of bf16. All is computed as in phase 0, with words that are greater by the step's shift.

    A word is a single 2^ABOVE times as large, too: its exponent field is that of its M. The next step's shift is added
    to the field together with what rounds the word. Of a zero that makes 2^12 of the least single at most, which is
    less than half of the least unit: it adds nothing.
    """

    def enter(self, word: Value) -> None:
        """See `Dst`. The first phase is seldom another one than 0."""
        code, builder = self.code, self.builder
        shift = self.shift_of(step_at(builder, self.steps, SIZE(0), 0))
        more = code.every_word(builder.shl(shift, SIZE(23)))
        shifted = builder.icmp_signed("!=", shift, SIZE(0))
        with builder.if_then(shifted, likely=False), cgutils.for_range(builder, SIZE(TILE // code.width)) as loop:
            place = builder.mul(loop.index, SIZE(code.width))
            code.store(builder.add(code.load(word, place, code.words), more), word, place)

    def begin(self, step: Value, phase: Value) -> None:
        super().begin(step, phase)
        builder = self.builder
        after = builder.add(step, SIZE(1))
        ends = builder.icmp_signed("==", after, self.count)
        following = self.shift_of(step_at(builder, self.steps, builder.select(ends, step, after), 0))
        more = builder.add(builder.select(ends, SIZE(0), following), SIZE(ABOVE))
        self._more = builder.sub(builder.shl(more, SIZE(23)), self._shifted)

    def add(self, old: Value, groups: list[Group], most: Value, cut: bool) -> Value:
        """The word after a step."""
        code, builder = self.code, self.builder
        common = code.larger_pattern(self.own_of(old, 0), most)
        m = code.as_floats(common)
        total = llvm_fma(builder, code.floats, code.as_floats(old), code.float(AWAY * 2.0**-ABOVE), m)
        for group in groups:
            value = llvm_fma(builder, code.floats, m, code.float(HALF_OF_M), self.sum_of(group))
            total = _add_down(code, total, value, common)
        bits = code.as_words(builder.fsub(total, m))
        half, kept = SIZE(0x8000), code.word(-0x10000)
        if cut:
            bits = builder.and_(builder.add(bits, code.every_word(half)), kept)
            return builder.add(self.cut(bits, self._shifted), code.every_word(self._more))
        return builder.and_(builder.add(bits, code.every_word(builder.add(self._more, half))), kept)


class Fp16(Dst):
    """A Dst of fp16."""

    clamps = True
    moves = False

    def begin(self, step: Value, phase: Value) -> None:
        super().begin(step, phase)
        # An M of the least exponent that counts as none, and all that it may have of a fraction.
        self._none = self.plus_shift((OFFSET + ABOVE + 1 << 23) - 1)

    def add(self, old: Value, groups: list[Group], most: Value, _cut: bool) -> Value:
        """The word after a step."""
        code, builder = self.code, self.builder
        common = self.common(old, most, LEAST_FP16)
        half = code.as_floats(builder.sub(common, code.word(HALF)))
        total = llvm_fma(builder, code.floats, code.as_floats(old), code.float(AWAY), code.as_floats(common))
        for group in groups:
            v = builder.select(builder.icmp_signed(">", group[0], self._none), self.sum_of(group), code.float(0.0))
            total = _add_down(code, total, llvm_fma(builder, code.floats, v, self.scale, half), common)
        bits = code.as_words(builder.fsub(total, code.as_floats(common)))
        bits = builder.and_(builder.add(bits, code.word(0x1000)), code.word(-0x2000))
        size = builder.and_(bits, code.word(MAGNITUDE))
        too_large = builder.icmp_signed(">=", size, code.word((OFFSET + 32) << 23))
        size = builder.select(too_large, code.word(FP16_MOST), size)
        bits = builder.or_(size, builder.and_(bits, code.word(SIGN)))
        too_small = builder.icmp_signed("<", size, code.word((OFFSET + 1) << 23))
        return builder.select(too_small, code.word(0), bits)


class Wide(Dst):
    """A Dst of 32 bits."""

    def __init__(self, code: Vectors, steps: Value, count: Value, moved: Value, blackhole: Value) -> None:
        super().__init__(code, steps, count, moved)
        # What a sum must be for the chip's error: -1, on Blackhole what none is.
        wrong = self.builder.icmp_signed("==", blackhole, blackhole.type(0))
        self._wrong = code.every_word(self.builder.select(wrong, SIZE(-1), SIZE(SIGN)))

    def begin(self, step: Value, phase: Value) -> None:
        super().begin(step, phase)
        self._finer = self.from_(INVERSE_WIDE)

    def add(self, old: Value, groups: list[Group], most: Value, cut: bool) -> Value:
        """The word after a step."""
        code, builder = self.code, self.builder
        common = self.common(old, most, LEAST_WIDE)
        inverse = code.as_floats(builder.sub(code.word(INVERSE_WIDE), common))
        scale = code.as_floats(builder.sub(self._finer, common))
        half = code.as_floats(builder.or_(builder.and_(old, code.word(SIGN)), code.word(HALF_BELOW)))
        n = builder.fptosi(llvm_fma(builder, code.floats, code.as_floats(old), inverse, half), code.words)
        for group in groups:
            n = builder.add(
                n, code.integers_down(llvm_fma(builder, code.floats, self.sum_of(group), scale, code.float(0.5)))
            )
        size = code.magnitude(n)
        one_more = code.least(builder.lshr(size, code.word(23)), code.word(1))
        quadruple = builder.uitofp(builder.add(builder.shl(size, code.word(2)), one_more), code.floats)
        result = builder.fmul(quadruple, code.as_floats(builder.sub(common, code.word(UNIT_WIDE))))
        bits = builder.or_(code.as_words(result), builder.and_(n, code.word(SIGN)))
        error = builder.or_(builder.sub(common, code.word(BUG)), code.word(SIGN))
        bits = builder.select(builder.icmp_signed("==", n, self._wrong), error, bits)
        return self.cut(bits) if cut else bits


def _add_down(code: Vectors, total: Value, value: Value, common: Value) -> Value:
    """The sum rounded down to a multiple of the unit, which is the last place of `total`."""
    builder = code.builder
    if code.width == WIDE:
        return code.sum_down(total, value)
    unit = code.as_floats(builder.sub(common, code.word(UNIT)))
    inverse = code.as_floats(builder.sub(code.word(INVERSE), common))
    return llvm_fma(builder, code.floats, code.floor(builder.fmul(value, inverse)), unit, total)
