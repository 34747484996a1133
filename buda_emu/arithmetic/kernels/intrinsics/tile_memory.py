"""LLVM code of `kernels/tiles/tile_memory.py`: tiles are addresses, and move as vectors."""

from collections.abc import Callable
from typing import Any, Final

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import signature
from numba.extending import lower_builtin, type_callable

from buda_emu.arithmetic.jit.intrinsics.code import (
    FLOAT,
    SIZE,
    Builder,
    Value,
    call_shared,
    prefetch,
    splat,
    tile_pointer,
)
from buda_emu.arithmetic.jit.intrinsics.declare import intrinsic, shared_intrinsic
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
from buda_emu.spec.single import INFINITY, MAGNITUDE

VECTOR: Final = ir.VectorType(FLOAT, 8)
WORDS: Final = ir.VectorType(ir.IntType(32), VECTOR.count)
LINES: Final = 4 * TILE // CACHE_LINE
QUAD: Final = 4  # the widest square of floats that is transposed by one instruction for each pair of rows, everywhere


@intrinsic(tile_at, types.uintp, types.uintp, types.intp, types.intp)
def _working_tile_at(_context: Any, builder: Builder, first: Value, _entry: Value, tile: Value) -> Value:
    return builder.add(first, builder.mul(tile, SIZE(4 * TILE)))


@intrinsic(starts_cache_line, types.boolean, types.uintp)
def _is_aligned(_context: Any, builder: Builder, tile: Value) -> Value:
    return builder.icmp_unsigned("==", builder.and_(tile, SIZE(CACHE_LINE - 1)), SIZE(0))


@intrinsic(is_same, types.boolean, types.uintp, types.uintp)
def _is_same(_context: Any, builder: Builder, tile: Value, other: Value) -> Value:
    return builder.icmp_unsigned("==", tile, other)


@intrinsic(is_zero, types.boolean, types.uintp)
def _is_zero(_context: Any, builder: Builder, tile: Value) -> Value:
    return _look(builder, tile, lambda inside, magnitudes: inside.icmp_unsigned("!=", magnitudes, _every(0)))


@intrinsic(is_finite, types.boolean, types.uintp)
def _is_finite(_context: Any, builder: Builder, tile: Value) -> Value:
    return _look(builder, tile, lambda inside, sizes: inside.icmp_unsigned(">=", sizes, _every(INFINITY)))


def _every(word: int) -> Value:
    return ir.Constant(WORDS, [word] * VECTOR.count)


def _look(builder: Builder, address: Value, is_sought: Callable[[Builder, Value], Value]) -> Value:
    """Return whether no magnitude satisfies `is_sought`; stop at the first row that has one."""
    nothing = cgutils.alloca_once_value(builder, cgutils.true_bit)
    data = tile_pointer(builder, address, WORDS)
    vectors = EDGE // VECTOR.count
    with cgutils.for_range(builder, SIZE(EDGE)) as loop:
        first = builder.mul(loop.index, SIZE(vectors))
        match: Value = None
        for number in range(vectors):
            words = builder.load(builder.gep(data, [builder.add(first, SIZE(number))]), align=4)
            sought = is_sought(builder, builder.and_(words, _every(MAGNITUDE)))
            match = sought if match is None else builder.or_(match, sought)
        mask = builder.bitcast(match, ir.IntType(VECTOR.count))
        with builder.if_then(builder.icmp_unsigned("!=", mask, mask.type(0)), likely=False):
            builder.store(cgutils.false_bit, nothing)
            loop.do_break()
    return builder.load(nothing)


@intrinsic(working_tiles, types.uintp)
def _working_tiles(context: Any, builder: Builder) -> Value:
    with builder.goto_entry_block():
        memory = builder.alloca(ir.ArrayType(FLOAT, WORKING_TILES * TILE))
    memory.align = CACHE_LINE
    return builder.ptrtoint(memory, context.get_value_type(types.uintp))


@type_callable(tile_at)
def _type_tile_at(_context: Any) -> Any:
    def typer(tiles: Any, _entry: Any, _tile: Any) -> Any:
        of_tiles = isinstance(tiles, types.Array) and (tiles.dtype, tiles.ndim, tiles.layout) == (types.float32, 3, "C")
        return signature(types.uintp, tiles, types.intp, types.intp) if of_tiles else None

    return typer


@lower_builtin(tile_at, types.Array, types.intp, types.intp)
def _lower_tile_at(context: Any, builder: Builder, call: Any, arguments: Any) -> Value:
    tensor = context.make_array(call.args[0])(context, builder, arguments[0])
    per_entry = cgutils.unpack_tuple(builder, tensor.shape)[1]
    number = builder.add(builder.mul(arguments[1], per_entry), arguments[2])
    first = builder.gep(tensor.data, [builder.mul(number, number.type(TILE))])
    return builder.ptrtoint(first, context.get_value_type(types.uintp))


@shared_intrinsic(expect_tile, types.uintp, types.intp, types.intp)
def _emit_expect(builder: Builder, tile: Value, part: Value, parts: Value) -> None:
    lines = builder.udiv(builder.add(SIZE(LINES - 1), parts), parts)
    first = builder.mul(part, lines)
    with cgutils.for_range(builder, lines) as loop:
        place = builder.mul(builder.add(first, loop.index), SIZE(CACHE_LINE))
        prefetch(builder, builder.add(tile, place))


@shared_intrinsic(copy_tile, types.uintp, types.uintp)
def _emit_copy(builder: Builder, target: Value, source: Value) -> None:
    to, data = (tile_pointer(builder, address, VECTOR) for address in (target, source))
    with cgutils.for_range(builder, SIZE(TILE // VECTOR.count)) as loop:
        value = builder.load(builder.gep(data, [loop.index]), align=4)
        builder.store(value, builder.gep(to, [loop.index]), align=4)


@shared_intrinsic(add_tile, types.uintp, types.uintp, types.uintp)
def _emit_add(builder: Builder, target: Value, first: Value, second: Value) -> None:
    to, left_tile, right_tile = (tile_pointer(builder, address, VECTOR) for address in (target, first, second))
    with cgutils.for_range(builder, SIZE(TILE // VECTOR.count)) as loop:
        left, right = (builder.load(builder.gep(data, [loop.index]), align=4) for data in (left_tile, right_tile))
        builder.store(builder.fadd(left, right), builder.gep(to, [loop.index]), align=4)


@shared_intrinsic(add_row, types.uintp, types.uintp, types.uintp)
def _emit_add_row(builder: Builder, target: Value, first: Value, second: Value) -> None:
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
    with builder.if_then(builder.icmp_signed("!=", arguments[1], SIZE(NO_RELU))):
        call_shared(builder, "relu_tile", arguments, _emit_relu)


def _emit_relu(builder: Builder, tile: Value, relu: Value, threshold: Value) -> None:
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
def _emit_fill(builder: Builder, target: Value, value: Value) -> None:
    to = tile_pointer(builder, target)
    with cgutils.for_range(builder, SIZE(TILE)) as loop:
        builder.store(value, builder.gep(to, [loop.index]))


@shared_intrinsic(transpose_tile, types.uintp, types.uintp)
def _emit_transpose(builder: Builder, target: Value, source: Value) -> None:
    """Emit a transposition by two squares at once, one below the other in the source, beside each other as halves of
    vectors."""
    to, data = (tile_pointer(builder, address) for address in (target, source))
    quad = ir.VectorType(FLOAT, QUAD)
    pair = ir.VectorType(FLOAT, 2 * QUAD)
    places = ir.VectorType(ir.IntType(32), pair.count)
    join = ir.Constant(places, list(range(pair.count)))
    square = [[i // 2 + half * QUAD // 2 + i % 2 * pair.count for i in range(QUAD)] for half in range(2)]
    interleave = [ir.Constant(places, [*half, *(place + QUAD for place in half)]) for half in square]

    def row(tile: Value, first_row: Value, first_column: Value, number: int, kind: ir.Type) -> Value:
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
                for first in range(QUAD // 2)
                for half in interleave
            ]
        for number in range(QUAD):
            builder.store(rows[number], row(to, i, j, number, pair), align=4)
