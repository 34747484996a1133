"""LLVM code of loads and stores: of whole tiles (`kernels/tiles/tile_memory.py`), and of rows of lanes with the vector
unit's instructions (`kernels/tensix/functions/lanes.py`).

Functions that return a value emit the instructions that compute it.
"""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from types import MappingProxyType
from typing import Any, Final

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import signature
from numba.extending import lower_builtin, type_callable

from buda_emu.arithmetic.jit.llvm_code import (
    FLOAT,
    I32,
    SIZE,
    Builder,
    Value,
    Vectors,
    call_shared_function,
    intrinsic,
    llvm_fma,
    prefetch,
    shared_intrinsic,
    splat,
    tile_pointer,
)
from buda_emu.arithmetic.kernels.tensix.functions import lanes as rows
from buda_emu.arithmetic.kernels.tensix.functions.fma import LANES
from buda_emu.arithmetic.kernels.tensix.functions.lanes import execute_row
from buda_emu.arithmetic.kernels.tiles.tile_memory import (
    CACHE_LINE,
    EDGE,
    NO_RELU,
    RELU_WITHIN,
    TILE,
    WORKING_TILES,
    add_row,
    add_tile,
    copy_tile,
    expect_tile,
    fill_tile,
    is_finite,
    is_same,
    is_zero,
    relu_tile,
    starts_cache_line,
    tile_at,
    transpose_tile,
    working_tiles,
)
from buda_emu.spec.single import FRACTION, HIDDEN, INFINITY, MAGNITUDE, SIGN

VECTOR: Final = ir.VectorType(FLOAT, 8)
WORDS: Final = ir.VectorType(ir.IntType(32), VECTOR.count)
LINES: Final = 4 * TILE // CACHE_LINE
QUAD: Final = 4  # the widest square of floats that is transposed by one instruction for each pair of rows, everywhere


@intrinsic(tile_at, types.uintp, types.uintp, types.intp, types.intp)
def _working_tile_at(_context: Any, builder: Builder, first: Value, _entry: Value, tile: Value) -> Value:
    """Return the address of a working tile, from the address of the first: `tile_at` for the value of
    `working_tiles`."""
    return builder.add(first, builder.mul(tile, SIZE(4 * TILE)))


@intrinsic(starts_cache_line, types.boolean, types.uintp)
def _starts_cache_line(_context: Any, builder: Builder, tile: Value) -> Value:
    """Emit `starts_cache_line`: return whether the address of a tile is that of a cache line."""
    return builder.icmp_unsigned("==", builder.and_(tile, SIZE(CACHE_LINE - 1)), SIZE(0))


@intrinsic(is_same, types.boolean, types.uintp, types.uintp)
def _is_same(_context: Any, builder: Builder, tile: Value, other: Value) -> Value:
    """Emit `is_same`: return whether two addresses of tiles are equal."""
    return builder.icmp_unsigned("==", tile, other)


@intrinsic(is_zero, types.boolean, types.uintp)
def _is_zero(_context: Any, builder: Builder, tile: Value) -> Value:
    """Emit `is_zero`: return whether all elements of a tile are zeros of either sign."""
    return _no_element_satisfies(
        builder, tile, lambda inside, magnitudes: inside.icmp_unsigned("!=", magnitudes, _constant_words(0))
    )


@intrinsic(is_finite, types.boolean, types.uintp)
def _is_finite(_context: Any, builder: Builder, tile: Value) -> Value:
    """Emit `is_finite`: return whether no element of a tile is infinite or NaN."""
    return _no_element_satisfies(
        builder, tile, lambda inside, sizes: inside.icmp_unsigned(">=", sizes, _constant_words(INFINITY))
    )


def _constant_words(word: int) -> Value:
    """Return a vector constant with the word in every lane."""
    return ir.Constant(WORDS, [word] * VECTOR.count)


def _no_element_satisfies(builder: Builder, address: Value, is_sought: Callable[[Builder, Value], Value]) -> Value:
    """Return whether no element of the tile at an address satisfies `is_sought`, which emits a condition on a vector of
    the elements' magnitudes, as words. The emitted loop stops at the first row that has one."""
    nothing = cgutils.alloca_once_value(builder, cgutils.true_bit)
    data = tile_pointer(builder, address, WORDS)
    vectors = EDGE // VECTOR.count
    with cgutils.for_range(builder, SIZE(EDGE)) as loop:
        first = builder.mul(loop.index, SIZE(vectors))
        match: Value = None
        for number in range(vectors):
            words = builder.load(builder.gep(data, [builder.add(first, SIZE(number))]), align=4)
            sought = is_sought(builder, builder.and_(words, _constant_words(MAGNITUDE)))
            if match is None:
                match = sought
            else:
                match = builder.or_(match, sought)
        mask = builder.bitcast(match, ir.IntType(VECTOR.count))
        with builder.if_then(builder.icmp_unsigned("!=", mask, mask.type(0)), likely=False):
            builder.store(cgutils.false_bit, nothing)
            loop.do_break()
    return builder.load(nothing)


@intrinsic(working_tiles, types.uintp)
def _working_tiles(context: Any, builder: Builder) -> Value:
    """Emit `working_tiles`: memory on the stack of the calling kernel, whose address is returned."""
    with builder.goto_entry_block():
        memory = builder.alloca(ir.ArrayType(FLOAT, WORKING_TILES * TILE))
    memory.align = CACHE_LINE
    return builder.ptrtoint(memory, context.get_value_type(types.uintp))


@type_callable(tile_at)
def _make_typer_of_tile_at(_context: Any) -> Any:
    """Return the function with which numba types a call of `tile_at` on a tensor: its result is an address."""

    def typer(tiles: Any, _entry: Any, _tile: Any) -> Any:
        """Return the signature for a contiguous float32[w, n, 1024], None for other arguments."""
        of_tiles = isinstance(tiles, types.Array) and (tiles.dtype, tiles.ndim, tiles.layout) == (types.float32, 3, "C")
        if of_tiles:
            return signature(types.uintp, tiles, types.intp, types.intp)
        return None

    return typer


@lower_builtin(tile_at, types.Array, types.intp, types.intp)
def _lower_tile_at(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
    """Emit `tile_at` for a tensor: return the address of the tile that the call names."""
    tensor = context.make_array(call.args[0])(context, builder, arguments[0])
    per_entry = cgutils.unpack_tuple(builder, tensor.shape)[1]
    number = builder.add(builder.mul(arguments[1], per_entry), arguments[2])
    first = builder.gep(tensor.data, [builder.mul(number, number.type(TILE))])
    return builder.ptrtoint(first, context.get_value_type(types.uintp))


@shared_intrinsic(expect_tile, types.uintp, types.intp, types.intp)
def _emit_expect_tile(builder: Builder, tile: Value, part: Value, parts: Value) -> None:
    """Emit the body of `expect_tile`: a prefetch of each cache line of part number `part` of a tile."""
    lines = builder.udiv(builder.add(SIZE(LINES - 1), parts), parts)
    first = builder.mul(part, lines)
    with cgutils.for_range(builder, lines) as loop:
        place = builder.mul(builder.add(first, loop.index), SIZE(CACHE_LINE))
        prefetch(builder, builder.add(tile, place))


@shared_intrinsic(copy_tile, types.uintp, types.uintp)
def _emit_copy_tile(builder: Builder, target: Value, source: Value) -> None:
    """Emit the body of `copy_tile`: a loop over the vectors of a tile."""
    to, data = (tile_pointer(builder, address, VECTOR) for address in (target, source))
    with cgutils.for_range(builder, SIZE(TILE // VECTOR.count)) as loop:
        value = builder.load(builder.gep(data, [loop.index]), align=4)
        builder.store(value, builder.gep(to, [loop.index]), align=4)


@shared_intrinsic(add_tile, types.uintp, types.uintp, types.uintp)
def _emit_add_tile(builder: Builder, target: Value, first: Value, second: Value) -> None:
    """Emit the body of `add_tile`, the sum of two tiles: a loop over the vectors of a tile."""
    to, left_tile, right_tile = (tile_pointer(builder, address, VECTOR) for address in (target, first, second))
    with cgutils.for_range(builder, SIZE(TILE // VECTOR.count)) as loop:
        left, right = (builder.load(builder.gep(data, [loop.index]), align=4) for data in (left_tile, right_tile))
        builder.store(builder.fadd(left, right), builder.gep(to, [loop.index]), align=4)


@shared_intrinsic(add_row, types.uintp, types.uintp, types.uintp)
def _emit_add_row(builder: Builder, target: Value, first: Value, second: Value) -> None:
    """Emit the body of `add_row`, a tile plus row 0 of another in every row: a loop over rows, with row 0 in
    registers."""
    to, tile, row_tile = (tile_pointer(builder, address, VECTOR) for address in (target, first, second))
    vectors = EDGE // VECTOR.count
    row = [builder.load(builder.gep(row_tile, [SIZE(n)]), align=4) for n in range(vectors)]
    with cgutils.for_range(builder, SIZE(EDGE)) as loop:
        for n in range(vectors):
            place = builder.add(builder.mul(loop.index, SIZE(vectors)), SIZE(n))
            value = builder.load(builder.gep(tile, [place]), align=4)
            builder.store(builder.fadd(value, row[n]), builder.gep(to, [place]), align=4)


@intrinsic(relu_tile, types.none, types.uintp, types.intp, types.float32)
def _relu_tile(_context: Any, builder: Builder, *arguments: Value) -> None:
    """Emit `relu_tile`: a call of the shared function, skipped where the code is NO_RELU."""
    with builder.if_then(builder.icmp_signed("!=", arguments[1], SIZE(NO_RELU))):
        call_shared_function(builder, "relu_tile", arguments, _emit_relu_tile)


def _emit_relu_tile(builder: Builder, tile: Value, relu: Value, threshold: Value) -> None:
    """Emit the body of `relu_tile` for both kinds of relu: values below the least, which is 0 with RELU_WITHIN and the
    threshold with RELU_FROM, become +0, and with RELU_WITHIN values above the threshold become it."""
    data = tile_pointer(builder, tile, VECTOR)
    bound = splat(builder, threshold, VECTOR)
    zero = ir.Constant(VECTOR, [0.0] * VECTOR.count)
    within = builder.icmp_signed("==", relu, SIZE(RELU_WITHIN))
    least = builder.select(within, zero, bound)
    with cgutils.for_range(builder, SIZE(TILE // VECTOR.count)) as loop:
        place = builder.gep(data, [loop.index])
        value = builder.load(place, align=4)
        above_least = builder.select(builder.fcmp_ordered(">=", value, least), value, zero)
        upper = builder.select(within, bound, above_least)
        builder.store(builder.select(builder.fcmp_ordered(">=", value, bound), upper, above_least), place, align=4)


@shared_intrinsic(fill_tile, types.uintp, types.float32)
def _emit_fill_tile(builder: Builder, target: Value, value: Value) -> None:
    """Emit the body of `fill_tile`: a loop that stores one value to every element."""
    to = tile_pointer(builder, target)
    with cgutils.for_range(builder, SIZE(TILE)) as loop:
        builder.store(value, builder.gep(to, [loop.index]))


@shared_intrinsic(transpose_tile, types.uintp, types.uintp)
def _emit_transpose_tile(builder: Builder, target: Value, source: Value) -> None:
    """Emit the body of `transpose_tile`: squares of 4 x 4 are transposed, two at once, which lie one below the other in
    the source and become the halves of each vector, beside each other in the target."""
    to, data = (tile_pointer(builder, address) for address in (target, source))
    quad = ir.VectorType(FLOAT, QUAD)
    pair = ir.VectorType(FLOAT, 2 * QUAD)
    places = ir.VectorType(ir.IntType(32), pair.count)
    join = ir.Constant(places, list(range(pair.count)))
    square = [[i // 2 + half * QUAD // 2 + i % 2 * pair.count for i in range(QUAD)] for half in range(2)]
    interleave = [ir.Constant(places, [*half, *(place + QUAD for place in half)]) for half in square]

    def row(tile: Value, first_row: Value, first_column: Value, number: int, kind: ir.Type) -> Value:
        """Return the address of row `number` of a square, as that of a vector of type `kind`."""
        place = builder.add(builder.mul(builder.add(first_row, SIZE(number)), SIZE(EDGE)), first_column)
        return builder.bitcast(builder.gep(tile, [place]), kind.as_pointer())

    steps = SIZE(EDGE // QUAD), SIZE(EDGE // pair.count)
    with cgutils.for_range(builder, steps[0]) as down, cgutils.for_range(builder, steps[1]) as across:
        i = builder.mul(down.index, SIZE(QUAD))
        j = builder.mul(across.index, SIZE(pair.count))
        quads = [builder.load(row(data, j, i, number, quad), align=4) for number in range(pair.count)]
        rows = [builder.shuffle_vector(quads[number], quads[number + QUAD], join) for number in range(QUAD)]
        for _ in range(2):  # interleaving the first half of all elements with the second log2(QUAD) times transposes
            rows = [
                builder.shuffle_vector(rows[first], rows[first + QUAD // 2], half)
                for first, half in product(range(QUAD // 2), interleave)
            ]
        for number in range(QUAD):
            builder.store(rows[number], row(to, i, j, number, pair), align=4)


FIELDS: Final = 6  # words of a step: operation, four places, number
ONE: Final = 0x3F800000  # the bits of the single 1.0
TWO_TO_26: Final = 0x4C800000  # the bits of the single 2^26

Body = Callable[[Value, Value, Value], Value]
"""The result's vector from those of the operands."""


@shared_intrinsic(
    execute_row, types.Array, types.intp, types.Array, types.Array, types.Array, types.intp, by_lanes=True
)
def _emit_execute_row(
    lanes_of_vector: int,
    builder: Builder,
    code: Value,
    step: Value,
    lanes: Value,
    tables: Value,
    special: Value,
    blackhole: Value,
) -> None:
    """Emit the body of `execute_row`: a switch over the instructions of the vector unit, each a loop over a row of
    lanes."""
    first = builder.mul(step, SIZE(FIELDS))
    operation, *places, number = [builder.load(builder.gep(code, [builder.add(first, SIZE(n))])) for n in range(FIELDS)]
    places = [builder.mul(builder.sext(place, SIZE(0).type), SIZE(LANES)) for place in places]
    row = _RowLoop(builder, lanes_of_vector, lanes, places, special)
    builder.store(I32(0), special)
    blackhole = builder.icmp_signed("!=", blackhole, blackhole.type(0))
    end: Value = builder.append_basic_block("end")
    switch: Value = builder.switch(operation, end)

    def case(number: int, emit: Callable[[], None]) -> None:
        """Emit the code of one instruction, by `emit`, as the switch's case `number`."""
        block = builder.append_basic_block()
        switch.add_case(I32(number), block)
        builder.position_at_end(block)
        emit()
        builder.branch(end)

    case(rows.FMA, lambda: _emit_multiply_add(row, blackhole))
    case(rows.MULTIPLY, lambda: _emit_multiply(row, number))
    for sum_, flip in ((rows.ADD_FLOATS, 0), (rows.SUBTRACT_FLOATS, SIGN)):
        case(sum_, partial(_emit_add_floats, row, flip, blackhole))
    case(rows.LOOKUP, lambda: _emit_lookup(row, builder.gep(tables, [_table_place(builder, number)])))
    case(rows.TO_INTEGER, lambda: _emit_to_integer(row, number))
    case(rows.SHIFT_LEFT, lambda: row.each(lambda a, _b, _c: builder.shl(a, row.code.every(number))))
    case(rows.SHIFT_RIGHT, lambda: row.each(lambda a, _b, _c: builder.lshr(a, row.code.every(number))))
    for simple, body in _SIMPLE.items():
        case(simple, partial(row.each, partial(body, row.code)))
    builder.position_at_end(end)


def _table_place(builder: Builder, number: Value) -> Value:
    """Return the index of the first word of table number `number` in the array of all tables."""
    return builder.mul(builder.sext(number, SIZE(0).type), SIZE(2 * rows.TABLE_BREAKS + 1))


class _RowLoop:
    """Emits loops over the vectors of one row of lanes: three registers of operands, one of results. `places` are the
    first words of the result's and the operands' registers in `lanes`; `special` is the address of the flag for lanes
    that must be computed again."""

    def __init__(self, builder: Builder, count: int, lanes: Value, places: list[Value], special: Value) -> None:
        self.code = Vectors(builder, count)
        self._lanes = lanes
        self._out, *self._operands = places
        self._special = special
        self._found: Value = builder.alloca(ir.VectorType(ir.IntType(1), count))

    def each(self, body: Body) -> None:
        """Emit the loop that computes the row of results by `body`, which emits a vector of results from those of the
        operands."""
        builder = self.code.builder
        with cgutils.for_range(builder, SIZE(LANES // self.code.width)) as loop:
            at = builder.mul(loop.index, SIZE(self.code.width))
            operands = [
                self.code.load(self._lanes, builder.add(place, at), self.code.words) for place in self._operands
            ]
            self.code.store(body(*operands), self._lanes, builder.add(self._out, at))

    def each_finite(self, body: Callable[[Value, Value, Value], tuple[Value, Value]]) -> None:
        """Emit the loop of `each` for a body that also returns a condition, in which lanes its results may be wrong;
        set the flag `special` to -1 if there is one, else to 0."""
        builder = self.code.builder
        builder.store(self._none(), self._found)

        def note_special(a: Value, b: Value, c: Value) -> Value:
            """Return the body's results, and note the lanes in which they may be wrong."""
            result, special = body(a, b, c)
            builder.store(builder.or_(builder.load(self._found), special), self._found)
            return result

        self.each(note_special)
        builder.store(builder.sext(self._any(), I32), self._special)

    def all_negative(self) -> Value:
        """Return whether the third operand, as signed words, is negative in every lane of the row."""
        code = self.code
        builder = self.code.builder
        builder.store(self._none(), self._found)
        with cgutils.for_range(builder, SIZE(LANES // code.width)) as loop:
            at = builder.add(self._operands[2], builder.mul(loop.index, SIZE(code.width)))
            other = builder.icmp_signed(">=", code.load(self._lanes, at, code.words), code.word(0))
            builder.store(builder.or_(builder.load(self._found), other), self._found)
        return builder.not_(self._any())

    def _none(self) -> ir.Constant:
        """Return a vector of conditions that are all false."""
        return ir.Constant(self._found.type.pointee, [False] * self.code.width)

    def _any(self) -> Value:
        """Return whether any lane was noted, as special or as not negative."""
        bits = self.code.builder.bitcast(self.code.builder.load(self._found), ir.IntType(self.code.width))
        return self.code.builder.icmp_unsigned("!=", bits, bits.type(0))


# ------------------------------------------------------------------------------------------------------- arithmetic
def _emit_multiply_add(row: _RowLoop, blackhole: Value) -> None:
    """Emit x * y + z for a row of lanes (DEVICE_NUMERICS 3.1), with a loop for each architecture."""
    builder = row.code.builder
    with builder.if_else(blackhole) as (then, otherwise):
        with then:
            row.each_finite(partial(_fma_of_vectors, row.code, True))
        with otherwise:
            row.each_finite(partial(_fma_of_vectors, row.code, False))


def _fma_of_vectors(code: Vectors, blackhole: bool, x: Value, y: Value, z: Value) -> tuple[Value, Value]:
    """Return x * y + z of vectors of float32 patterns, and the lanes in which that may be wrong: an operand or the
    product is not finite, or on Blackhole the result is small but not 0."""
    b = code.builder
    zero = code.word(0)
    ex, ey, ez = (_exponent(code, word) for word in (x, y, z))
    ep = b.sub(b.add(ex, ey), code.word(127))
    # A product that is zero or underflows leaves the addend.
    gone = b.icmp_signed("<", code.least(b.sub(code.least(ex, ey), code.word(1)), ep), zero)
    p = b.select(gone, zero, _significand_product(code, x, y))
    ep = b.select(gone, zero, ep)
    q = b.shl(b.or_(b.and_(z, code.word(FRACTION)), code.word(HIDDEN)), code.word(3))
    q = b.select(b.icmp_signed("==", ez, zero), zero, q)
    # Aligned to the larger exponent; the lost bits are ORed into bit 0 unless nothing else is left.
    p_leads = b.icmp_signed(">=", ep, ez)
    lead = b.select(p_leads, p, q)
    other = b.select(p_leads, q, p)
    distance = code.least(code.magnitude(b.sub(ep, ez)), code.word(31))
    shifted = b.lshr(other, distance)
    lost = b.sub(other, b.shl(shifted, distance))
    other = b.or_(shifted, code.least(code.least(lost, shifted), code.word(1)))
    product_sign = b.xor(x, y)
    differ = b.icmp_signed("<", b.xor(product_sign, z), zero)
    total = b.select(differ, b.sub(lead, other), b.add(lead, other))
    negative = b.icmp_signed("<", b.select(p_leads, product_sign, z), zero)
    total = b.select(negative, b.sub(zero, total), total)
    pattern = _round_sum(code, total, code.largest(ep, ez), blackhole)
    largest = code.largest(code.largest(ex, ey), code.largest(ez, ep))
    special = b.icmp_signed(">", largest, code.word(254))
    if blackhole:  # zeros have signs, and small results rules of their own
        nothing = b.icmp_signed("==", total, zero)
        small = b.icmp_signed("<", b.and_(pattern, code.word(MAGNITUDE)), code.word(0x01000000))
        special = b.or_(special, b.and_(small, b.not_(nothing)))
        signed_zero = b.and_(b.and_(product_sign, z), code.word(SIGN))
        pattern = b.select(nothing, signed_zero, pattern)
    return pattern, special


def _significand_product(code: Vectors, x: Value, y: Value) -> Value:
    """Return the products of the significands of two vectors of float32 patterns, in units of 2^20, with bit 0 sticky,
    as `fma.significand_product` defines it."""
    b = code.builder
    first = code.as_floats(b.or_(b.and_(x, code.word(FRACTION)), code.word(ONE)))
    second = code.as_floats(b.or_(b.and_(y, code.word(FRACTION)), code.word(TWO_TO_26)))
    high = b.fmul(first, second)
    low = llvm_fma(b, code.floats, first, second, b.fneg(high))
    low_integer = code.integers_down(low)
    exact = b.fcmp_ordered("==", low, b.sitofp(low_integer, code.floats))
    p = b.add(b.fptosi(high, code.words), low_integer)
    return b.select(exact, p, b.or_(p, code.word(1)))


def _round_sum(code: Vectors, total: Value, exponent: Value, blackhole: bool) -> Value:
    """Return the float32 patterns of total * 2^(exponent - 153), rounded to nearest even, as `fma.round_sum` defines
    it."""
    b = code.builder
    size = code.magnitude(total)
    shift = b.sub(exponent, code.word(153))
    if not blackhole:
        size = b.and_(size, b.xor(b.and_(b.lshr(size, code.word(27)), code.word(2)), code.word(-1)))
    bits = code.as_words(b.sitofp(size, code.floats))
    field = b.add(b.lshr(bits, code.word(23)), shift)
    pattern = b.add(bits, b.shl(shift, code.word(23)))
    pattern = b.select(b.icmp_signed(">=", field, code.word(255)), code.word(INFINITY), pattern)
    pattern = b.or_(pattern, b.and_(total, code.word(SIGN)))
    none = b.or_(b.icmp_signed("<=", field, code.word(0)), b.icmp_signed("==", total, code.word(0)))
    return b.select(none, code.word(0), pattern)


def _emit_multiply(row: _RowLoop, number: Value) -> None:
    """Emit x * y + 0 for a row of lanes, which is the rounded product where it is neither special nor tiny. If `number`
    is UNLESS, nothing is computed where the third operand, a condition, holds in every lane, as the product is not
    needed then."""
    code = row.code
    b = row.code.builder

    def multiply(x: Value, y: Value, _: Value) -> tuple[Value, Value]:
        """Return the products of two vectors of float32 patterns, and the lanes in which the chip's product may differ:
        it overflows or is tiny there, or an operand is not finite."""
        pattern = code.as_words(b.fmul(code.as_floats(x), code.as_floats(y)))
        size, *sizes = (b.and_(word, code.word(MAGNITUDE)) for word in (pattern, x, y))
        zero = b.icmp_signed("<", code.least(*sizes), code.word(HIDDEN))
        usual = b.sub(size, code.word(HIDDEN + 2))
        unusual = b.icmp_unsigned(">=", usual, code.word(INFINITY - HIDDEN - 2))
        infinite = b.icmp_signed(">=", code.largest(*sizes), code.word(INFINITY))  # a zero times it is none
        return b.select(zero, code.word(0), pattern), b.or_(b.and_(unusual, b.not_(zero)), infinite)

    not_needed = b.and_(b.icmp_signed("==", number, I32(rows.UNLESS)), row.all_negative())
    with b.if_then(b.not_(not_needed)):
        row.each_finite(multiply)


def _emit_add_floats(row: _RowLoop, flip: int, blackhole: Value) -> None:
    """Emit x + y for a row of lanes, or x - y if `flip` is the sign bit instead of 0, as the chip computes it: one
    times x, plus y. Subnormal operands count as zeros; a zero or subnormal result becomes a zero, with a sign on
    Blackhole only."""
    code = row.code
    b = row.code.builder
    sign_mask = code.every(b.select(blackhole, I32(SIGN), I32(0)))

    def add(x: Value, y: Value, _: Value) -> tuple[Value, Value]:
        """Return the sums or differences of two vectors of float32 patterns, and the lanes in which the chip's result
        may differ: an operand is not finite there."""
        y = b.xor(y, code.word(flip))
        operands = [b.select(_is_zero_exponent(code, word), b.and_(word, code.word(SIGN)), word) for word in (x, y)]
        pattern = code.as_words(b.fadd(*map(code.as_floats, operands)))
        special = b.icmp_signed(">", code.largest(_exponent(code, x), _exponent(code, y)), code.word(254))
        return b.select(_is_zero_exponent(code, pattern), b.and_(pattern, sign_mask), pattern), special

    row.each_finite(add)


def _exponent(code: Vectors, word: Value) -> Value:
    """Return the biased exponents of a vector of float32 patterns."""
    return code.builder.and_(code.builder.lshr(word, code.word(23)), code.word(255))


def _is_zero_exponent(code: Vectors, word: Value) -> Value:
    """Return the lanes of a vector of float32 patterns whose exponent field is 0: zeros and subnormals, which count as
    zeros."""
    return code.builder.icmp_signed("==", code.builder.and_(word, code.word(INFINITY)), code.word(0))


# ------------------------------------------------------------------------------------------------------- the others
def _emit_lookup(row: _RowLoop, table: Value) -> None:
    """Emit the LOOKUP of a row of lanes: each gets the value of the range in which its word lies. `table` is the
    address of the ascending breaks, which one value more follows."""
    code = row.code
    b = row.code.builder
    every = [code.every(b.load(b.gep(table, [SIZE(n)]))) for n in range(2 * rows.TABLE_BREAKS + 1)]
    breaks = every[: rows.TABLE_BREAKS]
    values = every[rows.TABLE_BREAKS :]

    def body(x: Value, _b: Value, _c: Value) -> Value:
        """Return for a vector of words the values of the ranges in which they lie."""
        result = values[-1]
        for bound, value in zip(reversed(breaks), reversed(values[:-1]), strict=True):
            result = b.select(b.icmp_unsigned("<", x, bound), value, result)
        return result

    row.each(body)


def _emit_to_integer(row: _RowLoop, limit: Value) -> None:
    """Emit for a row of lanes the conversion of fp32 to the nearest integer in sign and magnitude, ties away from zero,
    of at most `limit` in magnitude."""
    code = row.code
    b = row.code.builder
    largest = code.every(limit)

    def convert(x: Value, _b: Value, _c: Value) -> Value:
        """Return a vector of float32 patterns as the nearest integers in sign and magnitude."""
        e = b.sub(_exponent(code, x), code.word(127))
        drop = code.least(code.largest(b.sub(code.word(23), e), code.word(1)), code.word(25))
        size = b.or_(b.and_(x, code.word(FRACTION)), code.word(HIDDEN))
        size = b.lshr(b.add(size, b.shl(code.word(1), b.sub(drop, code.word(1)))), drop)
        size = b.select(b.icmp_signed(">=", e, code.word(16)), largest, code.least(size, largest))
        size = b.select(b.icmp_signed("<", e, code.word(-1)), code.word(0), size)
        signed = b.or_(b.and_(x, code.word(SIGN)), size)
        return b.select(b.icmp_signed("==", size, code.word(0)), code.word(0), signed)

    row.each(convert)


def _as_mask(code: Vectors, condition: Value) -> Value:
    """Return a vector of conditions as words: all bits set where it holds, else 0."""
    return code.builder.sext(condition, code.words)


def _to_float(code: Vectors, x: Value, _b: Value, _c: Value) -> Value:
    """Return a vector of integers in sign and magnitude as float32 patterns, rounded to nearest even; the sign of 0
    stays."""
    size = code.builder.sitofp(code.builder.and_(x, code.word(MAGNITUDE)), code.floats)
    return code.builder.or_(code.builder.and_(x, code.word(SIGN)), code.as_words(size))


def _greater_in_order(code: Vectors, x: Value, y: Value, _: Value) -> Value:
    """Return in each lane the larger of x and y as numbers in sign and magnitude, which is the order of float32
    patterns, too; x if they are equal."""
    b = code.builder
    keys = [b.xor(word, b.lshr(b.ashr(word, code.word(31)), code.word(1))) for word in (x, y)]
    return b.select(b.icmp_signed(">=", *keys), x, y)


_SIMPLE: Final[Mapping[int, Callable[[Vectors, Value, Value, Value], Value]]] = MappingProxyType(
    {
        rows.MERGE: lambda code, a, b, c: code.builder.or_(code.builder.and_(a, b), c),
        rows.AND: lambda code, a, b, _: code.builder.and_(a, b),
        rows.OR: lambda code, a, b, _: code.builder.or_(a, b),
        rows.EXPONENT: lambda code, a, _b, _c: _exponent(code, a),
        rows.ADD: lambda code, a, b, _: code.builder.add(a, b),
        rows.SUBTRACT: lambda code, a, b, _: code.builder.sub(a, b),
        rows.EQUAL: lambda code, a, b, _: _as_mask(code, code.builder.icmp_signed("==", a, b)),
        rows.LESS: lambda code, a, b, _: _as_mask(code, code.builder.icmp_signed("<", a, b)),
        rows.SELECT: lambda code, a, b, c: code.builder.select(code.builder.icmp_signed("<", a, code.word(0)), b, c),
        rows.TO_FLOAT: _to_float,
        rows.GREATER: _greater_in_order,
    }
)
