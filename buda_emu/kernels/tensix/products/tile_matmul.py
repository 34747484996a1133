"""The matrix product of tiles as the matrix unit accumulates it (`buda_emu.tensix.products.tile_matmul`, `mvmul`).

Input 0 is SrcB, input 1 is SrcA. Two kernels make the same bits: one in singles, for what lies far enough from the ends
of their range, as nearly everything does; one in integers, several times slower, compiled when it is first needed.
"""

from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.kernels.tensix.products.matmul_by_integers import matmul_by_integers
from buda_emu.kernels.tensix.products.matmul_by_singles import matmul_by_singles, room_for
from buda_emu.kernels.tensix.products.spills import AS_IT_WAS, BLOCKS
from buda_emu.kernels.tensix.words import TILE, Index, Tensor

__all__ = ["matmul_blocks", "matmul_tiles", "runs"]

_NO_ENDS: Final = np.zeros(0, np.bool_)
_MOVED: Final = (-48, -96, 48)
"""What is added to exponents, one after the other, of tiles whose numbers are too large or too small for singles."""
_ROWS, _COLS, _EXPONENT_BITS = 9, 11, 17  # places among the arguments of a product from `dst` on


def matmul_tiles(
    start: int,
    stop: int,
    dst: Tensor,
    in0: Tensor,
    in0_index: Index,
    in0_pad: np.uint32,
    in1: Tensor,
    in1_index: Index,
    in1_pad: np.uint32,
    in1_transposed: bool,
    t: int,
    rows: int,
    inner: int,
    cols: int,
    first: int,
    last: int,
    faces: int,
    phases: int,
    mode: int,
    exponent_bits: int,
    blackhole: bool,
    faces_first: bool,
    fresh: bool = False,
) -> None:
    """dst += in0 x in1 over the inner tiles first to last - 1, in the chip's order.

    dst: uint32[w, t * rows * cols, 1024], Dst images of `mode`; in0: uint32[w or 1, tiles, 1024] words of SrcB, in1
    likewise of SrcA (1: the same entry for every w). in0_index: int32[t * rows * inner] is the source tile of each
    post-TM tile, negative for a tile full of the word `in0_pad`; in1_index: int32[t * inner * cols] and `in1_pad`
    likewise. `in1_transposed`: each of its tiles is transposed inside first. `faces`: how many faces the inner
    dimension of a tile has, 1 or 2. `phases`: bit p is set where phase p runs. `exponent_bits`: 5 for operands of
    family A, 8 for B. `faces_first`: the phases run inside a face, as on Grayskull. `fresh`: what is in those items of
    dst before is not looked at, as if it were zeros.
    Items: the w * t * rows * cols tiles of `dst`. An operand tile is prepared once for all items of a call, so several
    rows of tiles in one call are faster.
    """
    operands = (dst, in0, in0_index, in0_pad, in1, in1_index, in1_pad, in1_transposed)
    setting = (t, rows, inner, cols, first, last, faces, phases, mode, exponent_bits, blackhole, faces_first)
    for item in matmul_blocks(start, stop, AS_IT_WAS, _NO_ENDS, fresh, *operands, *setting):
        matmul_by_integers(item, item + 1, *operands, *setting)


def matmul_blocks(
    start: int, stop: int, spill: int, ends: NDArray[np.bool_], fresh: bool, *arguments: Any
) -> list[int]:  # fmt: skip
    """`matmul_tiles` of those other arguments, with the way `spill` (`spills`) after inner tiles where `ends` is set.

    Gives back the items that are not done, whose tiles are as they were, or zeros: what is in them singles cannot hold.
    """
    way = spill, ends, fresh
    left = _left_out(start, stop, *way, 0, arguments)
    if left and arguments[_EXPONENT_BITS] == 8:
        for moved in _MOVED:
            if moved < 0 or spill != BLOCKS:
                left = [
                    item for run in runs(left) for item in _left_out(*run, *way, moved, arguments)
                ]  # fmt: skip
    if fresh and left:
        arguments[0].reshape(-1, TILE)[left] = 0
    return left


def _left_out(
    start: int, stop: int, spill: int, ends: NDArray[np.bool_], fresh: bool, moved: int, arguments: tuple[Any, ...]
) -> list[int]:
    """What the kernel of singles leaves out of start..stop."""
    left_out = np.zeros(stop - start, np.bool_)
    memory = np.empty(room_for(start, stop, arguments[_ROWS], arguments[_COLS]), np.int32)
    every: list[Any] = [start, stop, *arguments, spill, ends, moved, fresh, left_out, memory]
    matmul_by_singles(*every)
    return [start + item for item in np.flatnonzero(left_out).tolist()] if left_out.any() else []


def runs(items: list[int]) -> list[tuple[int, int]]:
    """Rising numbers as runs of neighbours, from where to where."""
    cuts = [n for n in range(1, len(items)) if items[n] != items[n - 1] + 1]
    return [(items[first], items[last - 1] + 1) for first, last in pairwise([0, *cuts, len(items)] if items else [])]
