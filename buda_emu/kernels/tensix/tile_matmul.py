"""The matrix product of tiles as the matrix unit accumulates it (`buda_emu.tensix.tile_matmul`, `mvmul`).

Input 0 is SrcB, input 1 is SrcA. Two kernels make the same bits: one in singles, for what lies far enough from the ends
of their range, as nearly everything does; one in integers, several times slower, compiled when it is first needed.
"""

import numpy as np

from buda_emu.kernels.tensix.matmul_by_integers import matmul_by_integers
from buda_emu.kernels.tensix.matmul_by_singles import matmul_by_singles
from buda_emu.kernels.tensix.words import Index, Tensor

__all__ = ["matmul_tiles"]


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
) -> None:
    """dst += in0 x in1 over the inner tiles first to last - 1, in the chip's order.

    dst: uint32[w, t * rows * cols, 1024], Dst images of `mode`; in0: uint32[w or 1, tiles, 1024] words of SrcB, in1
    likewise of SrcA (1: the same entry for every w). in0_index: int32[t * rows * inner] is the source tile of each
    post-TM tile, negative for a tile full of the word `in0_pad`; in1_index: int32[t * inner * cols] and `in1_pad`
    likewise. `in1_transposed`: each of its tiles is transposed inside first. `faces`: how many faces the inner
    dimension of a tile has, 1 or 2. `phases`: bit p is set where phase p runs. `exponent_bits`: 5 for operands of
    family A, 8 for B. `faces_first`: the phases run inside a face, as on Grayskull.
    Items: the w * t * rows * cols tiles of `dst`. An operand tile is prepared once for all items of a call, so several
    rows of tiles in one call are faster.
    """
    operands = (dst, in0, in0_index, in0_pad, in1, in1_index, in1_pad, in1_transposed)
    setting = (t, rows, inner, cols, first, last, faces, phases, mode, exponent_bits, blackhole, faces_first)
    left_out = np.zeros(stop - start, np.bool_)
    matmul_by_singles(start, stop, *operands, *setting, left_out)
    for item in np.flatnonzero(left_out).tolist():
        matmul_by_integers(start + item, start + item + 1, *operands, *setting)
