"""The code of `kernels/tensix/group_sums.py`. Vectors are neighbouring columns of a row."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import lower_builtin

from buda_emu.kernels.intrinsics.code import SIZE, Builder, Value, call_shared, changes_arrays, llvm_fma, on_data, splat
from buda_emu.kernels.intrinsics.vectors import I8, I16, WIDE, Vectors, lanes_for
from buda_emu.kernels.tensix.group_sums import (
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
    add_tile,
)
from buda_emu.kernels.tensix.prepared import COUNTS, HALVES, INFINITE
from buda_emu.kernels.tensix.words import EDGE, FACE, FP16, FP32, GROUP, TILE

Group = tuple[Value, Value]
"""The pattern of M, and M with the sum."""


# ------------------------------------------------------------------------------------------------------------ types
changes_arrays(add_tile)


@lower_builtin(add_tile, *[types.Array] * 6, *[types.intp] * 8)
def _lower_add_tile(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
    *plain, mode, blackhole = on_data(context, builder, call, arguments)
    lanes = lanes_for(context)
    with builder.if_else(builder.icmp_signed("==", mode, mode.type(FP32))) as (then, otherwise):
        with then:
            call_shared(builder, "add_tile_fp32", [*plain, blackhole], partial(_emit_add_tile, lanes, _Wide))
        with otherwise, builder.if_else(builder.icmp_signed("==", mode, mode.type(FP16))) as (fp16, bf16):
            with fp16:
                call_shared(builder, "add_tile_fp16", plain, partial(_emit_add_tile, lanes, _Fp16))
            with bf16:
                call_shared(builder, "add_tile_bf16", plain, partial(_emit_add_tile, lanes, _Bf16))
    return context.get_dummy_value()


# ------------------------------------------------------------------------------------------------------------- code
@dataclass(frozen=True, slots=True)
class _Block:
    """What is computed at once: `rows` rows of `vectors` vectors of `lanes` columns.

    A sum waits for the one before it: there are as many as products that a processor begins in that time, or more.
    """

    lanes: int
    rows: int
    vectors: int

    @property
    def cells(self) -> list[tuple[int, int]]:
        """(row, vector) of each vector."""
        return [(row, vector) for row in range(self.rows) for vector in range(self.vectors)]

    @property
    def across(self) -> int:
        """How many lie side by side in a tile."""
        return EDGE // (self.lanes * self.vectors)

    @property
    def count(self) -> int:
        """How many make a tile."""
        return EDGE // self.rows * self.across

    def corner(self, builder: Builder, number: Value) -> tuple[Value, Value]:
        """The first row and column of a block."""
        row = builder.mul(builder.udiv(number, SIZE(self.across)), SIZE(self.rows))
        return row, builder.mul(builder.urem(number, SIZE(self.across)), SIZE(self.lanes * self.vectors))


def _block_for(lanes: int) -> _Block:
    return _Block(lanes, rows=4 if lanes == WIDE else 2, vectors=2)


def _emit_add_tile(
    lanes: int, kind: type["_Bf16 | _Fp16 | _Wide"], builder: Builder, word: Value, exponent_b: Value,
    exponent_a: Value, b: Value, a: Value, steps: Value, count: Value, faces: Value, lowest: Value, least: Value,
    moved: Value, cut: Value, *more: Value,
) -> None:  # fmt: skip
    code, shape = Vectors(builder, lanes, 2 * lanes), _block_for(lanes)
    dst = kind(code, steps, count, moved, *more)
    cuts = builder.icmp_signed("!=", cut, SIZE(0))
    tops = _Tops(code, shape, exponent_b, exponent_a)
    with builder.if_else(builder.icmp_signed("!=", least, SIZE(0)), likely=True) as (near, far):
        with near:
            tops.find_in_bytes(least, lowest, clamps=kind.clamps)
        with far, cgutils.for_range(builder, faces) as face:
            tops.find(face.index, lowest)
    dst.enter(word)
    with cgutils.for_range(builder, count) as step:
        phase, face = (_step_at(builder, steps, step.index, n) for n in range(2))
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
            with builder.if_else(cuts, likely=False) as branches:
                for branch, cutting in zip(branches, (True, False), strict=True):
                    with branch:
                        for cell, totals in sums.items():
                            *each, most = patterns.load(cell)
                            place = SIZE(EDGE * cell[0] + lanes * cell[1])
                            old = code.load(corner, place, code.words)
                            new = dst.add(old, list(zip(each, totals, strict=True)), most, cut=cutting)
                            code.store(new, corner, place)


def _emit_sums(
    code: Vectors, shape: _Block, b: Value, a: Value, patterns: "_Patterns"
) -> dict[tuple[int, int], list[Value]]:  # fmt: skip
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


def _step_at(builder: Builder, steps: Value, number: Value, field: int) -> Value:
    place = builder.add(builder.shl(number, SIZE(1)), SIZE(field))
    return builder.sext(builder.load(builder.gep(steps, [place])), SIZE)


class _Patterns:
    """Those of M of one block."""

    def __init__(self, builder: Builder, shape: _Block, first: Value) -> None:
        self._builder, self._shape, self._first = builder, shape, first

    def load(self, cell: tuple[int, int]) -> list[Value]:
        """Of both groups, and that of the larger exponent. That of the second group has more bits of fraction than an
        M, but is one, too: sums lie in the same units, and are far from the ends of its binade."""
        return [self._builder.load(self.at(SIZE(self._shape.cells.index(cell) * 3), n)) for n in range(3)]

    def at(self, cell: Value, n: int) -> Value:
        """Where the pattern stands of a cell, given by the place of its first one."""
        return self._builder.gep(self._first, [self._builder.add(cell, SIZE(n))])


class _Tops:
    """The patterns of M of a tile, for all inner faces, in phase 0."""

    def __init__(self, code: Vectors, shape: _Block, exponent_b: Value, exponent_a: Value) -> None:
        self.code = code
        self._shape = shape
        self._b, self._a = exponent_b, exponent_a
        self._per_block = len(shape.cells) * 3
        self._found = cgutils.alloca_once(code.builder, code.words, size=2 * shape.count * self._per_block)

    def of(self, face: Value, block: Value) -> _Patterns:
        """Of a block."""
        builder = self.code.builder
        number = builder.add(builder.mul(face, SIZE(self._shape.count)), block)
        first = builder.gep(self._found, [builder.mul(number, SIZE(self._per_block))])
        return _Patterns(builder, self._shape, first)

    def find(self, face: Value, lowest: Value) -> None:
        """Of a face, from exponents in 16 bits."""
        code, builder = self.code, self.code.builder
        k = builder.mul(face, SIZE(GROUP))
        from_a = builder.gep(self._a, [builder.mul(k, SIZE(EDGE))])
        from_b = builder.gep(self._b, [k])
        none = splat(builder, builder.trunc(lowest, I16), code.halves)
        for top, put in self._tops(from_b, FACE, from_a, none):
            both = code.as_words(top)
            second = builder.add(both, both)
            first = builder.shl(second, code.word(16))
            most = builder.and_(code.larger_pattern(first, second), code.word(EXPONENT | M_FRACTION))
            put(face, [first, second, most])

    def find_in_bytes(self, least: Value, lowest: Value, *, clamps: bool) -> None:
        """Of both faces, from exponents in bytes; least: what the exponents of M are at least. `clamps`: these may be
        below `lowest`, and all are less than 128."""
        code, builder = self.code, self.code.builder
        kind = ir.VectorType(I8, 4 * code.width)
        lowest = splat(builder, builder.trunc(builder.lshr(lowest, SIZE(COUNTS.bit_length() - 1)), I8), kind)
        least = splat(builder, builder.trunc(least, I8), kind)
        none = ir.Constant(kind, [-1] * kind.count)
        from_a, from_b = (builder.gep(exponents, [SIZE(HALVES)]) for exponents in (self._a, self._b))
        for top, put in self._tops(from_b, GROUP, from_a, none):
            found = builder.select(builder.icmp_signed(">", top, none), builder.add(top, least), lowest)
            words = code.as_words(code.largest(found, lowest) if clamps else found)
            moved = [builder.shl(words, code.word(by)) for by in (23, 15, 7)] + [builder.lshr(words, code.word(1))]
            kept = [builder.and_(word, code.word(EXPONENT)) for word in moved]
            patterns = [builder.or_(word, code.word(M_FRACTION)) for word in kept]
            for face in range(2):
                first, second = patterns[2 * face : 2 * face + 2]
                put(SIZE(face), [first, second, code.larger_pattern(first, second)])

    def _tops(self, b: Value, per_row: int, a: Value, least: Value) -> Generator[tuple[Value, Callable[..., None]]]:
        """A loop over all vectors: gives the largest sums of exponents, of which those of SrcB take `per_row` words in
        a row, and what puts the patterns of a face where they belong."""
        code, builder, shape = self.code, self.code.builder, self._shape
        with cgutils.for_range(builder, SIZE(EDGE // shape.lanes)) as vector:
            above = builder.gep(a, [builder.mul(vector.index, SIZE(shape.lanes))])
            columns = [code.load(above, SIZE(EDGE * n), least.type) for n in range(GROUP)]
            with cgutils.for_range(builder, SIZE(EDGE)) as row:
                own = builder.gep(b, [builder.mul(row.index, SIZE(per_row))])
                top = least
                for n, column in enumerate(columns):
                    word = builder.load(builder.gep(own, [SIZE(n)]))
                    one = builder.bitcast(splat(builder, word, code.words), least.type)
                    top = code.largest(top, builder.add(one, column))

                def put(face: Value, patterns: list[Value]) -> None:
                    block, cell = self._cell(row.index, vector.index)
                    first = self.of(face, block)
                    for n, pattern in enumerate(patterns):
                        builder.store(pattern, first.at(cell, n))

                yield top, put

    def _cell(self, row: Value, vector: Value) -> tuple[Value, Value]:
        """The block, and the place in it."""
        builder, shape = self.code.builder, self._shape
        block = builder.mul(builder.udiv(row, SIZE(shape.rows)), SIZE(shape.across))
        block = builder.add(block, builder.udiv(vector, SIZE(shape.vectors)))
        cell = builder.mul(builder.urem(row, SIZE(shape.rows)), SIZE(shape.vectors))
        cell = builder.add(cell, builder.urem(vector, SIZE(shape.vectors)))
        return block, builder.mul(cell, SIZE(3))


class _Dst:
    """What the kinds of Dst have in common. `clamps`: exponents of products may be less than any of Dst."""

    clamps = False

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


class _Bf16(_Dst):
    """A Dst of bf16. All is computed as in phase 0, with words that are greater by the step's shift.

    A word is a single 2^ABOVE times as large, too: its exponent field is that of its M. The next step's shift is added
    to the field together with what rounds the word. Of a zero that makes 2^12 of the least single at most, which is
    less than half of the least unit: it adds nothing.
    """

    def enter(self, word: Value) -> None:
        """See `_Dst`. The first phase is seldom another one than 0."""
        code, builder = self.code, self.builder
        shift = self.shift_of(_step_at(builder, self.steps, SIZE(0), 0))
        more = code.every_word(builder.shl(shift, SIZE(23)))
        shifted = builder.icmp_signed("!=", shift, SIZE(0))
        with builder.if_then(shifted, likely=False), cgutils.for_range(builder, SIZE(TILE // code.width)) as loop:
            place = builder.mul(loop.index, SIZE(code.width))
            code.store(builder.add(code.load(word, place, code.words), more), word, place)

    def begin(self, step: Value, phase: Value) -> None:
        """See `_Dst`."""
        super().begin(step, phase)
        builder = self.builder
        after = builder.add(step, SIZE(1))
        ends = builder.icmp_signed("==", after, self.count)
        following = self.shift_of(_step_at(builder, self.steps, builder.select(ends, step, after), 0))
        more = builder.add(builder.select(ends, SIZE(0), following), SIZE(ABOVE))
        self._more = builder.sub(builder.shl(more, SIZE(23)), self._shifted)

    def add(self, old: Value, groups: list[Group], most: Value, *, cut: bool) -> Value:
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


class _Fp16(_Dst):
    """A Dst of fp16."""

    clamps = True

    def begin(self, step: Value, phase: Value) -> None:
        """See `_Dst`."""
        super().begin(step, phase)
        # An M of the least exponent that counts as none, and all that it may have of a fraction.
        self._none = self.plus_shift((OFFSET + ABOVE + 1 << 23) - 1)

    def add(self, old: Value, groups: list[Group], most: Value, *, cut: bool) -> Value:
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
        bits = builder.select(too_small, code.word(0), bits)
        return self.cut(bits) if cut else bits


class _Wide(_Dst):
    """A Dst of 32 bits."""

    def __init__(self, code: Vectors, steps: Value, count: Value, moved: Value, blackhole: Value) -> None:
        super().__init__(code, steps, count, moved)
        # What a sum must be for the chip's error: -1, on Blackhole what none is.
        wrong = self.builder.icmp_signed("==", blackhole, blackhole.type(0))
        self._wrong = code.every_word(self.builder.select(wrong, SIZE(-1), SIZE(SIGN)))

    def begin(self, step: Value, phase: Value) -> None:
        """See `_Dst`."""
        super().begin(step, phase)
        self._finer = self.from_(INVERSE_WIDE)

    def add(self, old: Value, groups: list[Group], most: Value, *, cut: bool) -> Value:
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
