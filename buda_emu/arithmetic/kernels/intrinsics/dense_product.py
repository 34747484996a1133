"""LLVM code of `add_dense_product` of `kernels/products/tile_product.py`.

A vector holds neighbouring columns j, a block is a few rows of a few vectors. The lanes of the definition are visited
in the order in which its tree of sums needs them, so few sums are alive at once; most of those wait in memory, which
beats what LLVM would spill by itself.
"""

from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, TypeAlias

from llvmlite import ir
from numba.core import cgutils, types

from buda_emu.arithmetic.jit.llvm_code import (
    FLOAT,
    SIZE,
    Builder,
    Value,
    call_shared_function,
    intrinsic,
    llvm_fma,
    prefetch,
    splat,
    tile_pointer,
)
from buda_emu.arithmetic.kernels.products.tile_product import LANE_TREE, LANES, Tree, add_dense_product
from buda_emu.arithmetic.kernels.tiles.tile_memory import CACHE_LINE, EDGE, TILE

Cell: TypeAlias = tuple[int, int]
Sums: TypeAlias = dict[Cell, Value]


@dataclass(frozen=True, slots=True)
class _Block:
    """The part of a tile that is computed at once: `rows` rows of `vectors` vectors of `width` columns.

    While the right half of a node of LANE_TREE is computed, kept[depth of the node] cells of its left half stay in
    registers, and the others wait in memory.
    """

    rows: int
    width: int
    vectors: int
    kept: tuple[int, int, int]

    @property
    def cells(self) -> list[Cell]:
        """The cells of a block, (row, vector), ordered so that a vector of b serves its rows one after the other."""
        return [(row, number) for number, row in product(range(self.vectors), range(self.rows))]


def block_for(features: str) -> _Block:
    """Return the part of a tile to compute at once, by the vector registers of the processor (32 with AVX-512, else
    16); the choice for each was the fastest when it was measured. `features` is LLVM's list of the processor's
    features, separated by commas."""
    if "+avx512f" in features.split(","):
        return _Block(rows=4, width=16, vectors=2, kept=(2, 8, 8))
    return _Block(rows=2, width=8, vectors=4, kept=(0, 0, 5))


class _BlockCode:
    """Emits accumulator += a x b for one block; `a` and `b` are pointers to the block's first row of a and first column
    of b, `parking` to the tile where sums wait."""

    def __init__(self, builder: Builder, block: _Block, a: Value, b: Value, parking: Value) -> None:
        self.builder = builder
        self.block = block
        self.a = a
        self.b = b
        self.parking = parking
        self.vector = ir.VectorType(FLOAT, block.width)

    def add_to(self, accumulator: Value) -> None:
        """Emit the addition of the block's products to the block that begins at the pointer `accumulator`."""
        for (row, column), total in self.tree(LANE_TREE, 0).items():
            place = EDGE * row + self.block.width * column
            self.store(self.builder.fadd(self.load(accumulator, place), total), accumulator, place)

    def tree(self, node: Tree, depth: int) -> Sums:
        """Return, by cell, the sums of a node of LANE_TREE, the order in which OPS 6.1 adds partial sums: those of its
        left half plus those of its right half, or of one lane. `depth` counts from the root, 0."""
        if not isinstance(node, tuple):
            return self.lane(node)
        left = self.tree(node[0], depth + 1)
        parked = self.block.cells[self.block.kept[depth] :]
        for cell in parked:
            self.store(left[cell], self.parking, self.parking_place(cell, depth))
        right = self.tree(node[1], depth + 1)
        for cell in parked:
            left[cell] = self.load(self.parking, self.parking_place(cell, depth))
        return {cell: self.builder.fadd(left[cell], right[cell]) for cell in self.block.cells}

    def lane(self, lane: int) -> Sums:
        """Return, by cell, the sums of every LANES-th product along k, from number `lane` on: one of the partial sums
        of OPS 6.1."""
        sums: Sums = {}
        for k in range(lane, EDGE, LANES):
            numbers = [self.builder.load(self.at(self.a, EDGE * row + k)) for row in range(self.block.rows)]
            factors = [splat(self.builder, number, self.vector) for number in numbers]
            columns = [self.load(self.b, EDGE * k + self.block.width * n) for n in range(self.block.vectors)]
            for row, n in self.block.cells:
                # The first product needs no addend: a zero of either sign added to +0 changes nothing (OPS 6.1).
                if k == lane:
                    sums[row, n] = self.builder.fmul(factors[row], columns[n])
                else:
                    sums[row, n] = llvm_fma(self.builder, self.vector, factors[row], columns[n], sums[row, n])
        # Emits nothing, but keeps LLVM from starting the next lane's loads here, and from forwarding parked sums.
        self.builder.fence("acquire", "singlethread")
        return sums

    def parking_place(self, cell: tuple[int, int], depth: int) -> int:
        """Return the index in the parking tile where the sum of a cell waits, in a node of LANE_TREE at that depth."""
        return ((depth * self.block.rows + cell[0]) * self.block.vectors + cell[1]) * self.block.width

    def at(self, pointer: Value, place: int) -> Value:
        """Return the pointer to element `place` after a pointer."""
        return self.builder.gep(pointer, [SIZE(place)])

    def load(self, pointer: Value, place: int) -> Value:
        """Return the vector from element `place` after a pointer on."""
        return self.builder.load(self.builder.bitcast(self.at(pointer, place), self.vector.as_pointer()), align=4)

    def store(self, value: Value, pointer: Value, place: int) -> None:
        """Emit the store of a vector from element `place` after a pointer on."""
        self.builder.store(value, self.builder.bitcast(self.at(pointer, place), self.vector.as_pointer()), align=4)


@intrinsic(add_dense_product, types.none, *[types.uintp] * 5, types.intp, types.intp)
def _add_dense_product(context: Any, builder: Builder, *arguments: Value) -> None:
    """Emit `add_dense_product`, accumulator += a x b of two tiles, as a call of one function, which all calls share."""
    block = block_for(context.codegen().magic_tuple()[2])
    # In a function of its own LLVM cannot know that nobody else reads the parking tile, and keeps it in memory.
    call_shared_function(builder, "dense_product", arguments, partial(_emit_product, block))


def _emit_product(block: _Block, builder: Builder, *arguments: Value) -> None:
    """Emit the body of `add_dense_product`, accumulator += a x b of two tiles: a loop over blocks, each of which also
    fetches its share of the lines of the tile `soon`."""
    accumulator, a, b, parking = (tile_pointer(builder, address) for address in arguments[:4])
    soon, part, parts = arguments[4:]
    down = EDGE // block.rows
    across = EDGE // (block.width * block.vectors)
    lines = builder.udiv(SIZE(4 * TILE // CACHE_LINE // (down * across)), parts)
    first_line = builder.mul(part, builder.mul(lines, SIZE(down * across)))
    with cgutils.for_range(builder, SIZE(down)) as i, cgutils.for_range(builder, SIZE(across)) as j:
        number = builder.add(builder.mul(i.index, SIZE(across)), j.index)
        with cgutils.for_range(builder, lines) as loop:
            line = builder.add(builder.add(first_line, builder.mul(number, lines)), loop.index)
            prefetch(builder, builder.add(soon, builder.mul(line, SIZE(CACHE_LINE))))
        first_row = builder.mul(i.index, SIZE(block.rows * EDGE))
        first_column = builder.mul(j.index, SIZE(block.width * block.vectors))
        code = _BlockCode(builder, block, builder.gep(a, [first_row]), builder.gep(b, [first_column]), parking)
        code.add_to(builder.gep(accumulator, [builder.add(first_row, first_column)]))
