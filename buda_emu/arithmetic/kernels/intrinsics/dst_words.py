"""LLVM code of `add_tile` of `kernels/tensix/products/group_sums.py`, the matrix unit's product of two tiles in
singles; by kind of Dst, the words after an accumulation.

M and its patterns are explained there. Functions that return a value emit the instructions that compute it.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, TypeAlias

from llvmlite import ir
from numba.core import cgutils, types

from buda_emu.arithmetic.jit.llvm_code import (
    I8,
    I16,
    SIZE,
    WIDE,
    Builder,
    Value,
    Vectors,
    call_shared_function,
    intrinsic,
    lanes_for,
    llvm_fma,
    splat,
)
from buda_emu.arithmetic.kernels.tensix.products.group_sums import (
    ABOVE,
    AWAY,
    BUG,
    FP16_MOST,
    HALF,
    HALF_BELOW,
    HALF_OF_M,
    INVERSE,
    INVERSE_WIDE,
    LEAST_FP16,
    LEAST_WIDE,
    M_FRACTION,
    OFFSET,
    UNIT,
    UNIT_WIDE,
    add_tile,
)
from buda_emu.arithmetic.kernels.tensix.products.prepared import COUNTS, HALVES, INFINITE
from buda_emu.arithmetic.kernels.tensix.words import EDGE, FACE, FP16, FP32, GROUP, TILE
from buda_emu.spec.single import INFINITY, MAGNITUDE, NEGATIVE_SIGN

Group: TypeAlias = tuple[Value, Value]
"""The pattern of M, and M with the sum."""


def step_at(builder: Builder, steps: Value, number: Value, field: int) -> Value:
    """Return a field of step number `number` in the array `steps`: field 0 is its fidelity phase, field 1 its inner
    face."""
    place = builder.add(builder.shl(number, SIZE(1)), SIZE(field))
    return builder.sext(builder.load(builder.gep(steps, [place])), SIZE)


class Dst:
    """The code that all kinds of Dst share. `clamps`: exponents of products may be less than any of Dst. `moves`:
    exponents may be moved by the number `moved`, so that words must be cut. `steps` and `count` are the accumulation
    steps."""

    clamps = False
    moves = True

    def __init__(self, code: Vectors, steps: Value, count: Value, moved: Value) -> None:
        builder = code.builder
        self.code = code
        self.builder = builder
        self.steps = steps
        self.count = count
        up = builder.icmp_signed(">", moved, SIZE(0))
        self._smallest = builder.shl(builder.select(up, builder.add(moved, SIZE(1)), SIZE(0)), SIZE(23))
        # Far above any sum where exponents are moved up, so that a shift may be added.
        largest = builder.select(up, SIZE(INFINITE - 2 * ABOVE), builder.add(SIZE(INFINITE), moved))
        self._largest = builder.shl(largest, SIZE(23))

    def enter(self, word: Value) -> None:
        """Emit what is done to a tile's words before the first step, by default nothing; `word` is the address of the
        first one."""

    def begin(self, _step: Value, phase: Value) -> None:
        """Emit the constants of step number `_step`, whose fidelity phase is `phase`."""
        self._shifted = self.builder.shl(self.shift_of(phase), SIZE(23))
        self.down = self.code.every_word(self._shifted)
        self.scale = self.code.as_floats(self.single_less_shift(127 << 23))

    def shift_of(self, phase: Value) -> Value:
        """Return by how much the exponents of a phase's products are less than those of phase 0
        (`accumulate.phase_shift`)."""
        builder = self.builder
        low = builder.mul(builder.and_(phase, SIZE(1)), SIZE(5))
        return builder.add(low, builder.mul(builder.lshr(phase, SIZE(1)), SIZE(7)))

    def single_less_shift(self, number: int) -> Value:
        """Return in every lane the single with the bits `number`, its exponent reduced by the shift of the step. Of 1.0
        that is the factor which brings sums computed with exponents of phase 0 to this phase."""
        return self.code.every_word(self.builder.sub(SIZE(number), self._shifted))

    def plus_shift(self, number: int) -> Value:
        """Return in every lane the bits `number`, the exponent in them increased by the shift of the step."""
        return self.code.every_word(self.builder.add(SIZE(number), self._shifted))

    def pattern_of_m(self, old: Value, above: int) -> Value:
        """Return, for words of Dst, the bits of the constants M = 1.5 * 2^k that have the words' exponents plus
        `above`. M rounds what is added to it and subtracted from again."""
        code = self.code
        builder = self.builder
        if above:
            old = builder.add(old, code.word(above << 23))
        return builder.or_(builder.and_(old, code.word(INFINITY)), code.word(M_FRACTION))

    def common(self, old: Value, top: Value, least: int) -> Value:
        """Return the patterns of the M = 1.5 * 2^k at which old words and sums are added: those of the larger of the
        exponents of the words `old` and of the sums, but at least the pattern `least`. `top` has the patterns of the
        larger M of both groups in phase 0."""
        code = self.code
        old_pattern = code.larger_pattern(self.pattern_of_m(old, ABOVE), code.word(least))
        return code.larger_pattern(self.builder.sub(top, self.down), old_pattern)

    def cut(self, bits: Value, shifted: Value | None = None) -> Value:
        """Return words cut to what Dst can hold, where exponents were moved: 0 below its least normal number, an
        infinity (or, where they were moved up, a number far above all sums) above its largest. `shifted` is what was
        added to the words' patterns, None for nothing."""
        code = self.code
        builder = self.builder
        ends = (self._smallest, self._largest)
        if shifted is not None:
            ends = builder.add(ends[0], shifted), builder.add(ends[1], shifted)
        smallest, largest = map(code.every_word, ends)
        size = code.least(builder.and_(bits, code.word(MAGNITUDE)), largest)
        clipped = builder.or_(size, builder.and_(bits, code.word(NEGATIVE_SIGN)))
        return builder.select(builder.icmp_signed("<", size, smallest), code.word(0), clipped)

    def sum_of(self, group: Group) -> Value:
        """Return the sums of a group of 8 products, which stand in singles that contain the constant M, too: M plus
        sum, minus M."""
        return self.builder.fsub(group[1], self.code.as_floats(group[0]))


class Bf16(Dst):
    """A Dst of bf16. A step is computed as if it were of phase 0: its words' exponents are increased by the step's
    shift instead.

    A word is also a single 2^ABOVE times as large as in Dst, so that its exponent field is that of its M. The shift of
    the next step is added to the field together with what rounds the word. Of a zero that makes 2^12 of the least
    single at most, which is less than half of the least unit: it adds nothing.
    """

    def enter(self, word: Value) -> None:
        """Emit the addition of the first step's shift to the words' exponents, skipped for phase 0, which is nearly
        always the first."""
        code = self.code
        builder = self.builder
        shift = self.shift_of(step_at(builder, self.steps, SIZE(0), 0))
        increment = code.every_word(builder.shl(shift, SIZE(23)))
        shifted = builder.icmp_signed("!=", shift, SIZE(0))
        with builder.if_then(shifted, likely=False), cgutils.for_range(builder, SIZE(TILE // code.width)) as loop:
            place = builder.mul(loop.index, SIZE(code.width))
            code.store(builder.add(code.load(word, place, code.words), increment), word, place)

    def begin(self, step: Value, phase: Value) -> None:
        """Emit the constants of a step, among them what is added to the words' exponents for the step after it."""
        super().begin(step, phase)
        builder = self.builder
        after = builder.add(step, SIZE(1))
        ends = builder.icmp_signed("==", after, self.count)
        following = self.shift_of(step_at(builder, self.steps, builder.select(ends, step, after), 0))
        increment = builder.add(builder.select(ends, SIZE(0), following), SIZE(ABOVE))
        self._more = builder.sub(builder.shl(increment, SIZE(23)), self._shifted)

    def add(self, old: Value, groups: list[Group], top: Value, cut: bool) -> Value:
        """Return the words after one accumulation step. `old`: the words before it; `groups`: M and sum of each group
        of products; `top`: the pattern of the larger M; `cut`: whether words are cut to the range of Dst."""
        code = self.code
        builder = self.builder
        common = code.larger_pattern(self.pattern_of_m(old, 0), top)
        m = code.as_floats(common)
        total = llvm_fma(builder, code.floats, code.as_floats(old), code.float(AWAY * 2.0**-ABOVE), m)
        for group in groups:
            value = llvm_fma(builder, code.floats, m, code.float(HALF_OF_M), self.sum_of(group))
            total = _add_down(code, total, value, common)
        bits = code.as_words(builder.fsub(total, m))
        half = SIZE(0x8000)
        mask = code.word(-0x10000)
        if cut:
            bits = builder.and_(builder.add(bits, code.every_word(half)), mask)
            return builder.add(self.cut(bits, self._shifted), code.every_word(self._more))
        return builder.and_(builder.add(bits, code.every_word(builder.add(self._more, half))), mask)


class Fp16(Dst):
    """A Dst of fp16. Its words' exponents are OFFSET higher, are never moved otherwise, and end within those of
    singles."""

    clamps = True
    moves = False

    def begin(self, step: Value, phase: Value) -> None:
        """Emit the constants of a step, among them the pattern up to which an M belongs to a sum that the chip takes
        for a zero."""
        super().begin(step, phase)
        # An M of the least exponent that counts as none, and all that it may have of a fraction.
        self._none = self.plus_shift((OFFSET + ABOVE + 1 << 23) - 1)

    def add(self, old: Value, groups: list[Group], top: Value, _cut: bool) -> Value:
        """Return the words after one accumulation step, with arguments as `Bf16.add` has them; words are always cut to
        the range of fp16."""
        code = self.code
        builder = self.builder
        common = self.common(old, top, LEAST_FP16)
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
        bits = builder.or_(size, builder.and_(bits, code.word(NEGATIVE_SIGN)))
        too_small = builder.icmp_signed("<", size, code.word((OFFSET + 1) << 23))
        return builder.select(too_small, code.word(0), bits)


class Wide(Dst):
    """A Dst of 32 bits. `blackhole`: the value that selects that chip's arithmetic, without the error for a sum of
    -1."""

    def __init__(self, code: Vectors, steps: Value, count: Value, moved: Value, blackhole: Value) -> None:
        super().__init__(code, steps, count, moved)
        # What a sum must be for the chip's error: -1, on Blackhole what none is.
        wrong = self.builder.icmp_signed("==", blackhole, blackhole.type(0))
        self._wrong = code.every_word(self.builder.select(wrong, SIZE(-1), SIZE(NEGATIVE_SIGN)))

    def begin(self, step: Value, phase: Value) -> None:
        """Emit the constants of a step, among them the factor from sums to units of a 32-bit Dst, but for the common
        exponent."""
        super().begin(step, phase)
        self._finer = self.single_less_shift(INVERSE_WIDE)

    def add(self, old: Value, groups: list[Group], top: Value, cut: bool) -> Value:
        """Return the words after one accumulation step, with arguments as `Bf16.add` has them, computed in integers; a
        sum of -1 has the error of the chip, except on Blackhole (DEVICE_NUMERICS 2.3 step 5)."""
        code = self.code
        builder = self.builder
        common = self.common(old, top, LEAST_WIDE)
        inverse = code.as_floats(builder.sub(code.word(INVERSE_WIDE), common))
        scale = code.as_floats(builder.sub(self._finer, common))
        half = code.as_floats(builder.or_(builder.and_(old, code.word(NEGATIVE_SIGN)), code.word(HALF_BELOW)))
        n = builder.fptosi(llvm_fma(builder, code.floats, code.as_floats(old), inverse, half), code.words)
        for group in groups:
            n = builder.add(
                n, code.integers_down(llvm_fma(builder, code.floats, self.sum_of(group), scale, code.float(0.5)))
            )
        size = code.magnitude(n)
        one_more = code.least(builder.lshr(size, code.word(23)), code.word(1))
        quadruple = builder.uitofp(builder.add(builder.shl(size, code.word(2)), one_more), code.floats)
        result = builder.fmul(quadruple, code.as_floats(builder.sub(common, code.word(UNIT_WIDE))))
        bits = builder.or_(code.as_words(result), builder.and_(n, code.word(NEGATIVE_SIGN)))
        error = builder.or_(builder.sub(common, code.word(BUG)), code.word(NEGATIVE_SIGN))
        bits = builder.select(builder.icmp_signed("==", n, self._wrong), error, bits)
        if cut:
            return self.cut(bits)
        return bits


def _add_down(code: Vectors, total: Value, value: Value, common: Value) -> Value:
    """Return total + value, the value rounded down to a multiple of the unit, the last place of `total`; `common` is
    the pattern of the M that `total` contains. With AVX-512 that is one addition that rounds down."""
    builder = code.builder
    if code.width == WIDE:
        return code.sum_down(total, value)
    unit = code.as_floats(builder.sub(common, code.word(UNIT)))
    inverse = code.as_floats(builder.sub(code.word(INVERSE), common))
    return llvm_fma(builder, code.floats, code.floor(builder.fmul(value, inverse)), unit, total)


@dataclass(frozen=True, slots=True)
class Block:
    """The part of a tile whose sums are computed at once: `rows` rows of `vectors` vectors of `lanes` columns.

    A sum waits for the one before it: a block has as many sums as a processor begins multiply-adds in that time, or
    more.
    """

    lanes: int
    rows: int
    vectors: int

    @property
    def cells(self) -> list[tuple[int, int]]:
        """The cells of a block, (row, vector), one for each vector of sums."""
        return list(product(range(self.rows), range(self.vectors)))

    @property
    def across(self) -> int:
        """The number of blocks side by side in a tile."""
        return EDGE // (self.lanes * self.vectors)

    @property
    def count(self) -> int:
        """The number of blocks in a tile."""
        return EDGE // self.rows * self.across

    def corner(self, builder: Builder, number: Value) -> tuple[Value, Value]:
        """Return the first row and column of block number `number` in a tile."""
        row = builder.mul(builder.udiv(number, SIZE(self.across)), SIZE(self.rows))
        return row, builder.mul(builder.urem(number, SIZE(self.across)), SIZE(self.lanes * self.vectors))


def block_for(lanes: int) -> Block:
    """Return the block that suits vectors of this many lanes, 16 or 8: AVX-512 has 32 registers, other processors
    16."""
    if lanes == WIDE:
        return Block(lanes, rows=4, vectors=2)
    return Block(lanes, rows=2, vectors=2)


class Patterns:
    """The bits of the constants M = 1.5 * 2^k of one block in one face, by which the sums of groups of products are
    rounded: in memory from the address `first` on, three for each cell."""

    def __init__(self, builder: Builder, shape: Block, first: Value) -> None:
        self._builder = builder
        self._shape = shape
        self._first = first

    def load(self, cell: tuple[int, int]) -> list[Value]:
        """Return the bits of M for both groups of a cell, and for the larger exponent of both. Those of the second
        group may have more bits of fraction than an M, but serve as one: sums have the same units, and are far from the
        ends of its binade."""
        return [self._builder.load(self.at(SIZE(self._shape.cells.index(cell) * 3), n)) for n in range(3)]

    def at(self, cell: Value, n: int) -> Value:
        """Return the address of pattern `n` of a cell, whose first pattern has the index `cell`."""
        return self._builder.gep(self._first, [self._builder.add(cell, SIZE(n))])


class Tops:
    """The bits of the constants M = 1.5 * 2^k for all groups of products of two tiles, by which sums are rounded, in
    phase 0: for all blocks and inner faces, in memory on the stack, written by the code of `find` or `find_in_bytes`,
    read through `of`. `exponent_b` and `exponent_a` are the addresses of the operands' exponents
    (`prepared.Exponents`)."""

    def __init__(self, code: Vectors, shape: Block, exponent_b: Value, exponent_a: Value) -> None:
        self.code = code
        self._shape = shape
        self._b = exponent_b
        self._a = exponent_a
        self._per_block = len(shape.cells) * 3
        self._found = cgutils.alloca_once(code.builder, code.words, size=2 * shape.count * self._per_block)

    def of(self, face: Value, block: Value) -> Patterns:
        """Return the bits of M of a block in an inner face."""
        builder = self.code.builder
        number = builder.add(builder.mul(face, SIZE(self._shape.count)), block)
        first = builder.gep(self._found, [builder.mul(number, SIZE(self._per_block))])
        return Patterns(builder, self._shape, first)

    def find(self, face: Value, lowest: Value) -> None:
        """Emit the computation of the bits of M of one face, from the largest sums of both operands' exponents, which
        are given in 16 bits. `lowest` is the least value that counts for the sum of two exponents."""
        code = self.code
        builder = self.code.builder
        k = builder.mul(face, SIZE(GROUP))
        from_a = builder.gep(self._a, [builder.mul(k, SIZE(EDGE))])
        from_b = builder.gep(self._b, [k])
        none = splat(builder, builder.trunc(lowest, I16), code.halves)
        for top, put in self._tops(from_b, FACE, from_a, none):
            sums = code.as_words(top)
            second = builder.add(sums, sums)
            first = builder.shl(second, code.word(16))
            top_pattern = builder.and_(code.larger_pattern(first, second), code.word(INFINITY | M_FRACTION))
            put(face, [first, second, top_pattern])

    def find_in_bytes(self, least: Value, lowest: Value, *, clamps: bool) -> None:
        """Emit the computation of the bits of M of both faces at once, from the largest sums of both operands'
        exponents, which are given in bytes. `least` is the least exponent of an M for products that are not zeros,
        `lowest`, in units of COUNTS, that of an M for all others. `clamps`: M may not be below `lowest` either, and all
        exponents are less than 128."""
        code = self.code
        builder = self.code.builder
        kind = ir.VectorType(I8, 4 * code.width)
        lowest = splat(builder, builder.trunc(builder.lshr(lowest, SIZE(COUNTS.bit_length() - 1)), I8), kind)
        least = splat(builder, builder.trunc(least, I8), kind)
        none = ir.Constant(kind, [-1] * kind.count)
        from_a, from_b = (builder.gep(exponents, [SIZE(HALVES)]) for exponents in (self._a, self._b))
        for top, put in self._tops(from_b, GROUP, from_a, none):
            raised = builder.select(builder.icmp_signed(">", top, none), builder.add(top, least), lowest)
            if clamps:
                raised = code.largest(raised, lowest)
            words = code.as_words(raised)
            moved = [builder.shl(words, code.word(by)) for by in (23, 15, 7)] + [builder.lshr(words, code.word(1))]
            exponents = [builder.and_(word, code.word(INFINITY)) for word in moved]
            patterns = [builder.or_(word, code.word(M_FRACTION)) for word in exponents]
            for face in range(2):
                first, second = patterns[2 * face : 2 * face + 2]
                put(SIZE(face), [first, second, code.larger_pattern(first, second)])

    def _tops(self, b: Value, per_row: int, a: Value, least: Value) -> Generator[tuple[Value, Callable[..., None]]]:
        """Emit a loop over all vectors of a tile; within it yield the largest sums of exponents over a group, at least
        `least`, and a function that emits the store of the patterns of a face. `b` and `a` are the addresses of the
        exponents; those of SrcB take `per_row` words in a row."""
        code = self.code
        builder = self.code.builder
        shape = self._shape
        with cgutils.for_range(builder, SIZE(EDGE // shape.lanes)) as vector:
            above = builder.gep(a, [builder.mul(vector.index, SIZE(shape.lanes))])
            columns = [code.load(above, SIZE(EDGE * n), least.type) for n in range(GROUP)]
            with cgutils.for_range(builder, SIZE(EDGE)) as row:
                row_address = builder.gep(b, [builder.mul(row.index, SIZE(per_row))])
                top = least
                for n, column in enumerate(columns):
                    word = builder.load(builder.gep(row_address, [SIZE(n)]))
                    operand = builder.bitcast(splat(builder, word, code.words), least.type)
                    top = code.largest(top, builder.add(operand, column))

                def put(face: Value, patterns: list[Value]) -> None:
                    """Emit the store of the patterns of a face for the current vector."""
                    block, cell = self._cell(row.index, vector.index)
                    first = self.of(face, block)
                    for n, pattern in enumerate(patterns):
                        builder.store(pattern, first.at(cell, n))

                yield top, put

    def _cell(self, row: Value, vector: Value) -> tuple[Value, Value]:
        """Return the block in which a vector of a row lies, and the index of its first pattern among those of the
        block."""
        builder = self.code.builder
        shape = self._shape
        block = builder.mul(builder.udiv(row, SIZE(shape.rows)), SIZE(shape.across))
        block = builder.add(block, builder.udiv(vector, SIZE(shape.vectors)))
        cell = builder.mul(builder.urem(row, SIZE(shape.rows)), SIZE(shape.vectors))
        cell = builder.add(cell, builder.urem(vector, SIZE(shape.vectors)))
        return block, builder.mul(cell, SIZE(3))


Sums: TypeAlias = dict[tuple[int, int], list[Value]]
"""Of both groups, for each row and vector of a block."""


@intrinsic(add_tile, types.none, *[types.Array] * 6, types.BaseTuple)
def _add_tile(context: Any, builder: Builder, *arguments: Value) -> None:
    """Emit `add_tile`: a call of the shared function for the kind of Dst that the mode names."""
    *plain, mode, blackhole = arguments
    lanes = lanes_for(context)
    with builder.if_else(builder.icmp_signed("==", mode, mode.type(FP32))) as (then, otherwise):
        with then:
            call_shared_function(builder, "add_tile_fp32", [*plain, blackhole], partial(_emit_add_tile, lanes, Wide))
        with otherwise, builder.if_else(builder.icmp_signed("==", mode, mode.type(FP16))) as (fp16, bf16):
            with fp16:
                call_shared_function(builder, "add_tile_fp16", plain, partial(_emit_add_tile, lanes, Fp16))
            with bf16:
                call_shared_function(builder, "add_tile_bf16", plain, partial(_emit_add_tile, lanes, Bf16))


def _emit_add_tile(lanes: int, kind: type[Bf16 | Fp16 | Wide], builder: Builder, *arguments: Value) -> None:
    """Emit the body of `add_tile` for one kind of Dst: first the patterns of M, then step by step and block by block
    the sums and the words."""
    word, exponent_b, exponent_a, b, a, steps, count, faces, lowest, least, moved, cut, *options = arguments
    code = Vectors(builder, lanes, 2 * lanes)
    shape = block_for(lanes)
    dst = kind(code, steps, count, moved, *options)
    tops = Tops(code, shape, exponent_b, exponent_a)
    with builder.if_else(builder.icmp_signed("!=", least, SIZE(0)), likely=True) as (near, far):
        with near:
            tops.find_in_bytes(least, lowest, clamps=kind.clamps)
        with far, cgutils.for_range(builder, faces) as face:
            tops.find(face.index, lowest)
    dst.enter(word)
    with cgutils.for_range(builder, count) as step:
        phase, face = (step_at(builder, steps, step.index, n) for n in range(2))
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
            add = partial(_emit_words, code, dst, corner, sums, patterns)
            if kind.moves:
                with builder.if_else(builder.icmp_signed("!=", cut, SIZE(0)), likely=False) as (cutting, plain):
                    with cutting:
                        add(cut=True)
                    with plain:
                        add(cut=False)
            else:
                add(cut=False)


def _emit_sums(code: Vectors, shape: Block, b: Value, a: Value, patterns: Patterns) -> Sums:
    """Return the sums of both groups of 8 products of a block, each with its constant M in it; `b` and `a` are the
    addresses of the parts in the block's first row and first column of a face."""
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


def _emit_words(
    code: Vectors, dst: Bf16 | Fp16 | Wide, corner: Value, sums: Sums, patterns: Patterns, *, cut: bool
) -> None:
    """Emit the addition of the sums of a block to the words of Dst, the first of which is at the address `corner`;
    `cut`: words are cut to the range of Dst."""
    for cell, totals in sums.items():
        *pair, top = patterns.load(cell)
        place = SIZE(EDGE * cell[0] + code.width * cell[1])
        old = code.load(corner, place, code.words)
        code.store(dst.add(old, list(zip(pair, totals, strict=True)), top, cut), corner, place)
