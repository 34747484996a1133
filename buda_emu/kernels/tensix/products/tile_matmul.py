"""The matrix product of tiles as the matrix unit accumulates it (`buda_emu.tensix.products.tile_matmul`, `mvmul`).

Input 0 is SrcB, input 1 is SrcA. Two kernels make the same bits: one in singles, for what lies far enough from the ends
of their range, as nearly everything does; one in integers, several times slower, compiled when it is first needed.
"""

from itertools import pairwise
from typing import Final

import numpy as np

from buda_emu.kernels.tensix.products.matmul_by_integers import matmul_by_integers
from buda_emu.kernels.tensix.products.matmul_by_singles import Way, matmul_by_singles, room_for
from buda_emu.kernels.tensix.products.product import Product
from buda_emu.kernels.tensix.products.spills import AS_IT_WAS, BLOCKS
from buda_emu.kernels.tensix.words import TILE, Tensor

_NO_ENDS: Final = np.zeros(0, np.bool_)
_MOVED: Final = (-48, -96, 48)
"""What is added to exponents, one after the other, of tiles whose numbers are too large or too small for singles."""


def matmul_tiles(start: int, stop: int, dst: Tensor, product: Product, fresh: bool = False) -> None:
    """dst += the product, in the chip's order.

    dst: uint32[w, t * rows * cols, 1024], Dst images of the setting's mode. `fresh`: what is in those items of dst
    before is not looked at, as if it were zeros.
    Items: the w * t * rows * cols tiles of `dst`. An operand tile is prepared once for all items of a call, so several
    rows of tiles in one call are faster.
    """
    for item in matmul_blocks(start, stop, dst, product, Way(AS_IT_WAS, _NO_ENDS, fresh)):
        matmul_by_integers(item, item + 1, dst, product)


def matmul_blocks(start: int, stop: int, dst: Tensor, product: Product, way: Way) -> list[int]:
    """`matmul_tiles`, with the way that tiles go between inner tiles; nothing is moved yet.

    Gives back the items that are not done, whose tiles are as they were, or zeros: what is in them singles cannot hold.
    """
    left = _left_out(start, stop, dst, product, way)
    if left and product.setting.exponent_bits == 8:
        for moved in _MOVED:
            if moved < 0 or way.spill != BLOCKS:
                there = way._replace(moved=moved)
                left = [item for run in runs(left) for item in _left_out(*run, dst, product, there)]
    if way.fresh and left:
        dst.reshape(-1, TILE)[left] = 0
    return left


def _left_out(start: int, stop: int, dst: Tensor, product: Product, way: Way) -> list[int]:
    """What the kernel of singles leaves out of start..stop."""
    left_out = np.zeros(stop - start, np.bool_)
    memory = np.empty(room_for(start, stop, product.extent.rows, product.extent.cols), np.int32)
    matmul_by_singles(start, stop, dst, product, way, left_out, memory)
    return [start + item for item in np.flatnonzero(left_out).tolist()] if left_out.any() else []


def runs(items: list[int]) -> list[tuple[int, int]]:
    """Rising numbers as runs of neighbours, from where to where."""
    cuts = [n for n in range(1, len(items)) if items[n] != items[n - 1] + 1]
    return [(items[first], items[last - 1] + 1) for first, last in pairwise([0, *cuts, len(items)] if items else [])]
