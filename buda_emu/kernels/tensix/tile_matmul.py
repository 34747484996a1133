"""The matrix product of tiles as the matrix unit accumulates it (`buda_emu.tensix.tile_matmul`, `mvmul`).

Input 0 is SrcB, input 1 is SrcA. Vector lanes are neighbouring columns of one row of a face pair: each computes both
groups of 8 products and the accumulation that follows, all in integers of 32 bits.
"""

from typing import Final

import numpy as np

from buda_emu.kernels.jit import helper, kernel
from buda_emu.kernels.tensix.accumulate import accumulate_narrow, accumulate_wide, exponent_bias
from buda_emu.kernels.tensix.fidelity import exponents, srca_parts, srcb_parts
from buda_emu.kernels.tensix.shifts import shift_right
from buda_emu.kernels.tensix.words import (
    EDGE,
    FACE,
    FP16,
    FP32,
    TILE,
    Index,
    Lanes,
    Tensor,
    fetch_words,
    i32,
    load_words,
    store_words,
)

PHASES: Final = 4
ROWS: Final = 8  # of SrcB, in one MVMUL
GROUP: Final = 8  # products that are summed under one exponent


@kernel
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
    Items: the w * t * rows * cols tiles of `dst`.
    """
    per_entry = t * rows * cols
    word = np.empty(TILE, np.int32)
    srca = np.empty(TILE, np.int32)
    srcb = np.empty(TILE, np.int32)
    exponent_a = np.empty(TILE, np.int32)
    exponent_b = np.empty(TILE, np.int32)
    part_a = np.empty((PHASES, TILE), np.int32)
    part_b = np.empty((PHASES, TILE), np.int32)
    sums = np.empty((4, ROWS * EDGE), np.int32)
    for item in range(start, stop):
        entry = item // per_entry
        tile = item - entry * per_entry
        row = tile // cols
        col = tile - row * cols
        image = dst[entry, tile].view(np.int32)
        load_words(word, image, mode)
        for k in range(first, last):
            fetch_words(srcb, in0, entry, in0_index[row * inner + k], in0_pad, False)
            fetch_words(srca, in1, entry, in1_index[(row // rows * inner + k) * cols + col], in1_pad, in1_transposed)
            exponents(exponent_a, srca)
            exponents(exponent_b, srcb)
            for phase in range(PHASES):
                if phases >> phase & 1:
                    srca_parts(part_a[phase], srca, phase)
                    srcb_parts(part_b[phase], srcb, phase)
            for step in range(PHASES * faces):
                phase, face = (step % PHASES, step // PHASES) if faces_first else (step // faces, step % faces)
                if phases >> phase & 1:
                    bias = exponent_bias(mode, exponent_bits, phase)
                    down = face * FACE * EDGE
                    ea, pa = exponent_a[down:], part_a[phase, down:]
                    for row8 in range(0, TILE, ROWS * EDGE):
                        across = row8 + face * FACE
                        eb, pb = exponent_b[across:], part_b[phase, across:]
                        _mvmul(word[row8:], eb, pb, ea, pa, sums, bias, mode, blackhole)
        store_words(image, word, mode)


@helper
def _mvmul(
    word: Lanes,
    exponent_b: Lanes,
    part_b: Lanes,
    exponent_a: Lanes,
    part_a: Lanes,
    sums: Lanes,
    bias: np.int32,
    mode: int,
    blackhole: bool,
) -> None:
    """word[8, 32] += 16 columns of SrcB x 16 rows of SrcA; `sums` is int32[4, 256] to work in.

    The arrays of SrcB begin at the first datum of the 8 rows, those of SrcA at the first of the 16.
    """
    half = GROUP * EDGE
    _group_sums(sums[0], sums[1], exponent_b, part_b, exponent_a, part_a, bias)
    _group_sums(sums[2], sums[3], exponent_b[GROUP:], part_b[GROUP:], exponent_a[half:], part_a[half:], bias)
    x0, v0, x1, v1 = sums[0], sums[1], sums[2], sums[3]
    if mode == FP32:
        for n in range(ROWS * EDGE):
            word[n] = accumulate_wide(word[n], x0[n], v0[n], x1[n], v1[n], blackhole)
    else:
        for n in range(ROWS * EDGE):
            word[n] = accumulate_narrow(word[n], x0[n], v0[n], x1[n], v1[n], mode == FP16)


@helper
def _group_sums(x: Lanes, v: Lanes, eb: Lanes, pb: Lanes, ea: Lanes, pa: Lanes, bias: np.int32) -> None:
    """Exponents and signed sums of one group of 8 products each, for 8 rows and 32 columns."""
    for i in range(ROWS):
        k = i * EDGE
        e0, e1, e2, e3, e4, e5, e6, e7 = (
            eb[k],
            eb[k + 1],
            eb[k + 2],
            eb[k + 3],
            eb[k + 4],
            eb[k + 5],
            eb[k + 6],
            eb[k + 7],
        )
        p0, p1, p2, p3, p4, p5, p6, p7 = (
            pb[k],
            pb[k + 1],
            pb[k + 2],
            pb[k + 3],
            pb[k + 4],
            pb[k + 5],
            pb[k + 6],
            pb[k + 7],
        )
        for j in range(EDGE):
            x0, x1, x2, x3 = i32(e0 + ea[j]), i32(e1 + ea[32 + j]), i32(e2 + ea[64 + j]), i32(e3 + ea[96 + j])
            x4, x5, x6, x7 = i32(e4 + ea[128 + j]), i32(e5 + ea[160 + j]), i32(e6 + ea[192 + j]), i32(e7 + ea[224 + j])
            # A product with a zero has the exponent of the bias alone.
            top = max(max(max(max(x0, x1), max(x2, x3)), max(max(x4, x5), max(x6, x7))), i32(0))
            total = i32(_term(p0, pa[j], i32(top - x0)) + _term(p1, pa[32 + j], i32(top - x1)))
            total = i32(total + i32(_term(p2, pa[64 + j], i32(top - x2)) + _term(p3, pa[96 + j], i32(top - x3))))
            total = i32(total + i32(_term(p4, pa[128 + j], i32(top - x4)) + _term(p5, pa[160 + j], i32(top - x5))))
            total = i32(total + i32(_term(p6, pa[192 + j], i32(top - x6)) + _term(p7, pa[224 + j], i32(top - x7))))
            exponent = i32(top + bias)
            x[k + j] = max(exponent, i32(0))
            v[k + j] = total if exponent > 0 else i32(0)


@helper
def _term(p: np.int32, q: np.int32, distance: np.int32) -> np.int32:
    """p * q / 2^distance to the nearest integer, ties away from zero.

    Of a negative product one unit of the doubled value is taken off, which turns its ties downward.
    """
    v = i32(i32(p * q) << i32(1))
    v = shift_right(i32(v + i32(v >> i32(31))), min(distance, i32(30)))
    return i32(i32(v + i32(1)) >> i32(1))
