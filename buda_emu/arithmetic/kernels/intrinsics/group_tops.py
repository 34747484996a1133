"""Where the sums of a product's groups begin: patterns of M of the largest exponents
(`kernels/tensix/products/group_sums.py`).

A tile is computed in blocks, and the patterns stand in memory as the blocks use them.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass

from llvmlite import ir
from numba.core import cgutils

from buda_emu.arithmetic.jit.intrinsics.code import SIZE, Builder, Value, splat
from buda_emu.arithmetic.jit.intrinsics.vectors import I8, I16, WIDE, Vectors
from buda_emu.arithmetic.kernels.tensix.products.group_sums import EXPONENT, M_FRACTION
from buda_emu.arithmetic.kernels.tensix.products.prepared import COUNTS, HALVES
from buda_emu.arithmetic.kernels.tensix.words import EDGE, FACE, GROUP


@dataclass(frozen=True, slots=True)
class Block:
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


def block_for(lanes: int) -> Block:
    """What suits 32 vector registers of 16 lanes, and 16 of 8."""
    return Block(lanes, rows=4 if lanes == WIDE else 2, vectors=2)


class Patterns:
    """Those of M of one block."""

    def __init__(self, builder: Builder, shape: Block, first: Value) -> None:
        self._builder, self._shape, self._first = builder, shape, first

    def load(self, cell: tuple[int, int]) -> list[Value]:
        """Of both groups, and that of the larger exponent. That of the second group has more bits of fraction than an
        M, but is one, too: sums lie in the same units, and are far from the ends of its binade."""
        return [self._builder.load(self.at(SIZE(self._shape.cells.index(cell) * 3), n)) for n in range(3)]

    def at(self, cell: Value, n: int) -> Value:
        """Where the pattern stands of a cell, given by the place of its first one."""
        return self._builder.gep(self._first, [self._builder.add(cell, SIZE(n))])


class Tops:
    """The patterns of M of a tile, for all inner faces, in phase 0."""

    def __init__(self, code: Vectors, shape: Block, exponent_b: Value, exponent_a: Value) -> None:
        self.code = code
        self._shape = shape
        self._b, self._a = exponent_b, exponent_a
        self._per_block = len(shape.cells) * 3
        self._found = cgutils.alloca_once(code.builder, code.words, size=2 * shape.count * self._per_block)

    def of(self, face: Value, block: Value) -> Patterns:
        """Of a block."""
        builder = self.code.builder
        number = builder.add(builder.mul(face, SIZE(self._shape.count)), block)
        first = builder.gep(self._found, [builder.mul(number, SIZE(self._per_block))])
        return Patterns(builder, self._shape, first)

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
