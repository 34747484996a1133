"""The code of `kernels/tiles/tile_memory.py`: tiles are addresses, and move as vectors."""

from collections.abc import Callable
from typing import Any, Final

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import signature
from numba.extending import lower_builtin, type_callable

from buda_emu.jit.intrinsics.code import FLOAT, SIZE, Builder, Value, call_shared, prefetch, splat, tile_pointer
from buda_emu.kernels.tiles.tile_memory import (
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
    is_aligned,
    is_finite,
    is_same,
    is_zero,
    relu_tile,
    tile_at,
    transpose_tile,
    working_tiles,
)

INFINITY: Final = 0x7F800000
MAGNITUDE: Final = 0x7FFFFFFF
VECTOR: Final = ir.VectorType(FLOAT, 8)
WORDS: Final = ir.VectorType(ir.IntType(32), VECTOR.count)
LINES: Final = 4 * TILE // CACHE_LINE
QUAD: Final = 4  # the widest square of floats that is transposed by one instruction for each pair of rows, everywhere


@type_callable(tile_at)
def _type_tile_at(_context: Any) -> Any:
    def typer(tiles: Any, _entry: Any, _tile: Any) -> Any:
        if tiles == types.uintp or (tiles.dtype, tiles.ndim, tiles.layout) == (types.float32, 3, "C"):
            return signature(types.uintp, tiles, types.intp, types.intp)
        return None

    return typer


@lower_builtin(tile_at, types.uintp, types.intp, types.intp)
def _lower_working_tile_at(_context: Any, builder: Builder, _call: Any, arguments: Any) -> Value:
    first, _, tile = arguments
    return builder.add(first, builder.mul(tile, SIZE(4 * TILE)))


@type_callable(is_aligned)
def _type_is_aligned(_context: Any) -> Any:
    return lambda tile: types.boolean if tile == types.uintp else None


@lower_builtin(is_aligned, types.uintp)
def _lower_is_aligned(_context: Any, builder: Builder, _call: Any, arguments: Any) -> Value:
    return builder.icmp_unsigned("==", builder.and_(arguments[0], SIZE(CACHE_LINE - 1)), SIZE(0))


@type_callable(is_same)
def _type_is_same(_context: Any) -> Any:
    return lambda tile, other: types.boolean if tile == other == types.uintp else None


@lower_builtin(is_same, types.uintp, types.uintp)
def _lower_is_same(_context: Any, builder: Builder, _call: Any, arguments: Any) -> Value:
    return builder.icmp_unsigned("==", *arguments)


@type_callable(is_zero)
@type_callable(is_finite)
def _type_look(_context: Any) -> Any:
    return lambda tile: types.boolean if tile == types.uintp else None


@lower_builtin(is_zero, types.uintp)
def _lower_is_zero(_context: Any, builder: Builder, _call: Any, arguments: Any) -> Value:
    return _look(builder, arguments[0], lambda inside, magnitudes: inside.icmp_unsigned("!=", magnitudes, _every(0)))


@lower_builtin(is_finite, types.uintp)
def _lower_is_finite(_context: Any, builder: Builder, _call: Any, arguments: Any) -> Value:
    return _look(builder, arguments[0], lambda inside, sizes: inside.icmp_unsigned(">=", sizes, _every(INFINITY)))


def _every(word: int) -> Value:
    return ir.Constant(WORDS, [word] * VECTOR.count)


def _look(builder: Builder, address: Value, is_sought: Callable[[Builder, Value], Value]) -> Value:
    """Whether no element is sought, going by magnitudes; looks no further than the first row that has one."""
    nothing = cgutils.alloca_once_value(builder, cgutils.true_bit)
    data = tile_pointer(builder, address, WORDS)
    vectors = EDGE // VECTOR.count
    with cgutils.for_range(builder, SIZE(EDGE)) as loop:
        first = builder.mul(loop.index, SIZE(vectors))
        found: Value = None
        for number in range(vectors):
            words = builder.load(builder.gep(data, [builder.add(first, SIZE(number))]), align=4)
            sought = is_sought(builder, builder.and_(words, _every(MAGNITUDE)))
            found = sought if found is None else builder.or_(found, sought)
        mask = builder.bitcast(found, ir.IntType(VECTOR.count))
        with builder.if_then(builder.icmp_unsigned("!=", mask, mask.type(0)), likely=False):
            builder.store(cgutils.false_bit, nothing)
            loop.do_break()
    return builder.load(nothing)


@type_callable(working_tiles)
def _type_working_tiles(_context: Any) -> Any:
    return lambda: types.uintp


@lower_builtin(working_tiles)
def _lower_working_tiles(context: Any, builder: Builder, _call: Any, _arguments: Any) -> Value:
    with builder.goto_entry_block():
        memory = builder.alloca(ir.ArrayType(FLOAT, WORKING_TILES * TILE))
    memory.align = CACHE_LINE
    return builder.ptrtoint(memory, context.get_value_type(types.uintp))


@lower_builtin(tile_at, types.Array, types.intp, types.intp)
def _lower_tile_at(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
    tensor = context.make_array(call.args[0])(context, builder, arguments[0])
    per_entry = cgutils.unpack_tuple(builder, tensor.shape)[1]
    number = builder.add(builder.mul(arguments[1], per_entry), arguments[2])
    first = builder.gep(tensor.data, [builder.mul(number, number.type(TILE))])
    return builder.ptrtoint(first, context.get_value_type(types.uintp))


@type_callable(expect_tile)
def _type_expect_tile(_context: Any) -> Any:
    def typer(tile: Any, part: Any, parts: Any) -> Any:
        if tile == types.uintp and isinstance(part, types.Integer) and isinstance(parts, types.Integer):
            return signature(types.none, tile, types.intp, types.intp)
        return None

    return typer


def _emit_expect(builder: Builder, tile: Value, part: Value, parts: Value) -> None:
    lines = builder.udiv(builder.add(SIZE(LINES - 1), parts), parts)
    first = builder.mul(part, lines)
    with cgutils.for_range(builder, lines) as loop:
        place = builder.mul(builder.add(first, loop.index), SIZE(CACHE_LINE))
        prefetch(builder, builder.add(tile, place))


@type_callable(copy_tile)
@type_callable(transpose_tile)
def _type_move(_context: Any) -> Any:
    return lambda target, source: types.none if target == source == types.uintp else None


def _emit_copy(builder: Builder, target: Value, source: Value) -> None:
    to, data = (tile_pointer(builder, address, VECTOR) for address in (target, source))
    with cgutils.for_range(builder, SIZE(TILE // VECTOR.count)) as loop:
        value = builder.load(builder.gep(data, [loop.index]), align=4)
        builder.store(value, builder.gep(to, [loop.index]), align=4)


@type_callable(add_row)
@type_callable(add_tile)
def _type_add_tile(_context: Any) -> Any:
    return lambda target, first, second: types.none if target == first == second == types.uintp else None


def _emit_add(builder: Builder, target: Value, first: Value, second: Value) -> None:
    to, one, other = (tile_pointer(builder, address, VECTOR) for address in (target, first, second))
    with cgutils.for_range(builder, SIZE(TILE // VECTOR.count)) as loop:
        left, right = (builder.load(builder.gep(data, [loop.index]), align=4) for data in (one, other))
        builder.store(builder.fadd(left, right), builder.gep(to, [loop.index]), align=4)


def _emit_add_row(builder: Builder, target: Value, first: Value, second: Value) -> None:
    to, one, other = (tile_pointer(builder, address, VECTOR) for address in (target, first, second))
    vectors = EDGE // VECTOR.count
    row = [builder.load(builder.gep(other, [SIZE(n)]), align=4) for n in range(vectors)]
    with cgutils.for_range(builder, SIZE(EDGE)) as loop:
        for n in range(vectors):
            place = builder.add(builder.mul(loop.index, SIZE(vectors)), SIZE(n))
            value = builder.load(builder.gep(one, [place]), align=4)
            builder.store(builder.fadd(value, row[n]), builder.gep(to, [place]), align=4)


@type_callable(relu_tile)
def _type_relu_tile(_context: Any) -> Any:
    def typer(tile: Any, relu: Any, threshold: Any) -> Any:
        if isinstance(relu, types.Integer) and (tile, threshold) == (types.uintp, types.float32):
            return signature(types.none, tile, types.intp, threshold)
        return None

    return typer


@lower_builtin(relu_tile, types.uintp, types.intp, types.float32)
def _lower_relu_tile(context: Any, builder: Builder, _call: Any, arguments: Any) -> Value:
    with builder.if_then(builder.icmp_signed("!=", arguments[1], SIZE(NO_RELU))):
        call_shared(builder, "relu_tile", arguments, _emit_relu)
    return context.get_dummy_value()


def _emit_relu(builder: Builder, tile: Value, relu: Value, threshold: Value) -> None:
    data = tile_pointer(builder, tile, VECTOR)
    bound, zero = splat(builder, threshold, VECTOR), ir.Constant(VECTOR, [0.0] * VECTOR.count)
    within = builder.icmp_signed("==", relu, SIZE(RELU_WITHIN))
    least = builder.select(within, zero, bound)
    with cgutils.for_range(builder, SIZE(TILE // VECTOR.count)) as loop:
        place = builder.gep(data, [loop.index])
        value = builder.load(place, align=4)
        kept = builder.select(builder.fcmp_ordered(">=", value, least), value, zero)
        most = builder.select(within, bound, kept)
        builder.store(builder.select(builder.fcmp_ordered(">=", value, bound), most, kept), place, align=4)


@type_callable(fill_tile)
def _type_fill_tile(_context: Any) -> Any:
    return lambda target, value: types.none if (target, value) == (types.uintp, types.float32) else None


def _emit_fill(builder: Builder, target: Value, value: Value) -> None:
    to = tile_pointer(builder, target)
    with cgutils.for_range(builder, SIZE(TILE)) as loop:
        builder.store(value, builder.gep(to, [loop.index]))


def _emit_transpose(builder: Builder, target: Value, source: Value) -> None:
    """Two squares at once, one below the other in the source, beside each other as halves of vectors."""
    to, data = (tile_pointer(builder, address) for address in (target, source))
    quad, pair = ir.VectorType(FLOAT, QUAD), ir.VectorType(FLOAT, 2 * QUAD)
    places = ir.VectorType(ir.IntType(32), pair.count)
    join = ir.Constant(places, list(range(pair.count)))
    square = [[i // 2 + half * QUAD // 2 + i % 2 * pair.count for i in range(QUAD)] for half in range(2)]
    interleave = [ir.Constant(places, [*half, *(place + QUAD for place in half)]) for half in square]

    def row(tile: Value, first_row: Value, first_column: Value, number: int, kind: ir.Type) -> Value:
        place = builder.add(builder.mul(builder.add(first_row, SIZE(number)), SIZE(EDGE)), first_column)
        return builder.bitcast(builder.gep(tile, [place]), kind.as_pointer())

    steps = SIZE(EDGE // QUAD), SIZE(EDGE // pair.count)
    with cgutils.for_range(builder, steps[0]) as down, cgutils.for_range(builder, steps[1]) as across:
        i, j = builder.mul(down.index, SIZE(QUAD)), builder.mul(across.index, SIZE(pair.count))
        quads = [builder.load(row(data, j, i, number, quad), align=4) for number in range(pair.count)]
        rows = [builder.shuffle_vector(quads[number], quads[number + QUAD], join) for number in range(QUAD)]
        for _ in range(2):  # interleaving the first half of all elements with the second log2(QUAD) times transposes
            rows = [
                builder.shuffle_vector(rows[first], rows[first + QUAD // 2], half)
                for first in range(QUAD // 2)
                for half in interleave
            ]
        for number in range(QUAD):
            builder.store(rows[number], row(to, i, j, number, pair), align=4)


def _lower_shared(function: Callable[..., None], emit: Callable[..., None], *arguments: Any) -> None:
    """A call of `function` with arguments of these types is a call of the code that `emit` makes."""

    @lower_builtin(function, *arguments)
    def lower(context: Any, builder: Builder, _call: Any, values: Any) -> Value:  # pyright: ignore[reportUnusedFunction]
        call_shared(builder, function.__name__, values, emit)
        return context.get_dummy_value()


_lower_shared(copy_tile, _emit_copy, types.uintp, types.uintp)
_lower_shared(transpose_tile, _emit_transpose, types.uintp, types.uintp)
_lower_shared(fill_tile, _emit_fill, types.uintp, types.float32)
_lower_shared(add_tile, _emit_add, types.uintp, types.uintp, types.uintp)
_lower_shared(add_row, _emit_add_row, types.uintp, types.uintp, types.uintp)
_lower_shared(expect_tile, _emit_expect, types.uintp, types.intp, types.intp)
