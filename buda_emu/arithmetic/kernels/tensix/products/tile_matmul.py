"""The matrix product of tiles as the matrix unit accumulates it, of floats and of 8-bit integers, with element-wise ops
of integers (`tile_matmul`, `int_tile_matmul`, `int_elwmul` and others of `buda_emu.arithmetic.tensix.products`).

Input 0 is SrcB, input 1 is SrcA (DEVICE_NUMERICS 2.8). Two kernels make the same bits for floats: one in singles, for
numbers far enough from the ends of their range, as nearly all are; one in integers, several times slower, compiled when
it is first needed. The kernels of integers keep Dst in two's complement while they compute.
"""

from itertools import pairwise
from typing import Final

import numpy as np

from buda_emu.arithmetic.jit.kernel import helper, kernel
from buda_emu.arithmetic.jit.primitives import shift_right
from buda_emu.arithmetic.kernels.tensix.products.accumulate import (
    PHASES,
    Product,
    accumulate_narrow,
    accumulate_wide,
    exponent_bias,
    phase_and_face,
    with_sign,
    write_exponents,
    write_srca_parts,
    write_srcb_parts,
)
from buda_emu.arithmetic.kernels.tensix.products.matmul_by_singles import Traversal, matmul_by_singles, room_for
from buda_emu.arithmetic.kernels.tensix.products.spills import AS_IT_WAS, BLOCKS
from buda_emu.arithmetic.kernels.tensix.words import (
    EDGE,
    FACE,
    FP16,
    FP32,
    GROUP,
    TILE,
    Lanes,
    Tensor,
    Tiles,
    fetch_words,
    i32,
    load_words,
    store_words,
    zero_if,
)
from buda_emu.spec.single import MAGNITUDE, NEGATIVE_SIGN

ROWS: Final = 8  # of SrcB, in one MVMUL


@kernel
def matmul_by_integers(start: int, stop: int, dst: Tensor, product: Product) -> None:
    """Add in0 x in1 to items start to stop - 1 of dst with integer arithmetic, one after the other, for numbers of any
    size. dst: uint32[w, t * rows * cols, 1024], Dst images of the setting's mode; its tiles are the items."""
    in0, in0_index, in0_pad, _ = product.in0
    in1, in1_index, in1_pad, in1_transposed = product.in1
    t, rows, inner, cols, first, last, faces = product.extent
    phases = product.phases
    faces_first = product.faces_first
    mode, exponent_bits, blackhole = product.setting
    per_entry = t * rows * cols
    word = np.empty(TILE, np.int32)
    srca = np.empty(TILE, np.int32)
    srcb = np.empty(TILE, np.int32)
    exponent_a = np.empty(TILE, np.int32)
    exponent_b = np.empty(TILE, np.int32)
    part_a = np.empty((2, TILE), np.int32)
    part_b = np.empty((2, TILE), np.int32)
    for index in range(start, stop):
        entry = index // per_entry
        tile = index - entry * per_entry
        row = tile // cols
        col = tile - row * cols
        image = dst[entry, tile].view(np.int32)
        load_words(word, image, mode)
        for k in range(first, last):
            fetch_words(srcb, in0, entry, in0_index[row * inner + k], in0_pad, False)
            fetch_words(srca, in1, entry, in1_index[(row // rows * inner + k) * cols + col], in1_pad, in1_transposed)
            write_exponents(exponent_a, srca)
            write_exponents(exponent_b, srcb)
            # Phases 0 and 2 share a part of SrcA, 1 and 3 the other; 0 and 1 one of SrcB, 2 and 3 the other.
            for half in range(2):
                if phases & 0b0101 << half:
                    write_srca_parts(part_a[half], srca, half)
                if phases & 0b0011 << 2 * half:
                    write_srcb_parts(part_b[half], srcb, 2 * half)
            for step in range(PHASES * faces):
                phase, face = phase_and_face(step, faces, faces_first)
                if phases >> phase & 1:
                    bias = exponent_bias(mode, exponent_bits, phase)
                    b = part_b[phase >> 1]
                    a = part_a[phase & 1]
                    _multiply_face(word, exponent_b, b, exponent_a, a, face, (bias, mode, blackhole))
        store_words(image, word, mode)


@helper
def _multiply_face(
    word: Lanes,
    exponent_b: Lanes,
    part_b: Lanes,
    exponent_a: Lanes,
    part_a: Lanes,
    face: int,
    setting: tuple[np.int32, int, bool],
) -> None:
    """Add SrcB x SrcA over one inner face to the words of a tile, in place: four MVMUL, each of 8 rows of SrcB and all
    32 columns. Exponents and parts are those of whole tiles. `setting`: the exponents' bias, Dst's mode, whether it is
    a Blackhole."""
    bias, mode, blackhole = setting
    x0 = np.empty(ROWS * EDGE, np.int32)
    v0 = np.empty(ROWS * EDGE, np.int32)
    x1 = np.empty(ROWS * EDGE, np.int32)
    v1 = np.empty(ROWS * EDGE, np.int32)
    k = face * FACE
    for at in range(0, TILE, ROWS * EDGE):
        _group_sums(x0, v0, exponent_b, part_b, exponent_a, part_a, (at, k, bias))
        _group_sums(x1, v1, exponent_b, part_b, exponent_a, part_a, (at, k + GROUP, bias))
        if mode == FP32:
            for n in range(ROWS * EDGE):
                word[at + n] = accumulate_wide(word[at + n], x0[n], v0[n], x1[n], v1[n], blackhole)
        else:
            for n in range(ROWS * EDGE):
                word[at + n] = accumulate_narrow(word[at + n], x0[n], v0[n], x1[n], v1[n], mode == FP16)


@helper
def _group_sums(
    x: Lanes,
    v: Lanes,
    exponent_b: Lanes,
    part_b: Lanes,
    exponent_a: Lanes,
    part_a: Lanes,
    place: tuple[int, int, np.int32],
) -> None:
    """Write the exponents `x` and signed sums `v` of groups of 8 products, int32[ROWS * 32] each, for 8 rows of SrcB
    and all columns (2.2 steps 1 to 3); a sum with an exponent of 0 or less is 0. `place`: the first row's place in the
    tile, the first inner index k of the group, and the exponents' bias."""
    first, k, bias = place
    eb = exponent_b[first + k :]
    pb = part_b[first + k :]
    ea = exponent_a[EDGE * k :]
    pa = part_a[EDGE * k :]
    for i in range(ROWS):
        at = i * EDGE
        for j in range(EDGE):
            top = i32(0)  # a product with a zero has the exponent of the bias alone
            for n in range(GROUP):
                top = max(top, i32(eb[at + n] + ea[EDGE * n + j]))
            total = i32(0)
            for n in range(GROUP):
                distance = i32(top - i32(eb[at + n] + ea[EDGE * n + j]))
                total = i32(total + _rounded_product(pb[at + n], pa[EDGE * n + j], distance))
            exponent = i32(top + bias)
            x[at + j] = max(exponent, i32(0))
            v[at + j] = zero_if(exponent <= 0, total)


@helper
def _rounded_product(p: np.int32, q: np.int32, distance: np.int32) -> np.int32:
    """Return p * q / 2^distance rounded to the nearest integer, ties away from zero (2.2 step 2)."""
    v = i32(i32(p << i32(1)) * q)
    v = shift_right(i32(v + i32(v >> i32(31))), min(distance, i32(30)))
    return i32(i32(v + i32(1)) >> i32(1))


_NO_ENDS: Final = np.zeros(0, np.bool_)
_MOVED: Final = (-48, -96, 48)
"""What is added to exponents, one after the other, of tiles whose numbers are too large or too small for singles: even,
as `Traversal.moved` has to be, and apart by less than the range that singles serve, so that the ranges overlap."""


def matmul_tiles(start: int, stop: int, dst: Tensor, product: Product, fresh: bool = False) -> None:
    """Add in0 x in1 to dst in the chip's order, for numbers of any size: in singles, and in integers where those do not
    suffice.

    dst: uint32[w, t * rows * cols, 1024], Dst images of the setting's mode; its tiles are the items, of which start to
    stop - 1 are computed. `fresh`: these are taken for zeros, whatever they hold. An operand tile is prepared once for
    all items of a call, so several rows of tiles in one call are faster.
    """
    for index in matmul_where_singles_suffice(start, stop, dst, product, Traversal(AS_IT_WAS, _NO_ENDS, fresh)):
        matmul_by_integers(index, index + 1, dst, product)


def matmul_where_singles_suffice(
    start: int, stop: int, dst: Tensor, product: Product, traversal: Traversal
) -> list[int]:
    """Add in0 x in1 to items start to stop - 1 of dst by the kernel of singles, with the spills of `traversal`, whose
    `moved` is 0; items out of range are tried again with other offsets to exponents. Return the items that singles
    cannot compute exactly, for the caller to compute by a slower way; their tiles are unchanged, or zeros with
    `fresh`."""
    left = _try_singles(start, stop, dst, product, traversal)
    if left and product.setting.exponent_bits == 8:
        for moved in _MOVED:
            if moved < 0 or traversal.spill != BLOCKS:
                retry = traversal._replace(moved=moved)
                still_left: list[int] = []
                for run in runs(left):
                    still_left += _try_singles(*run, dst, product, retry)
                left = still_left
    if traversal.fresh and left:
        dst.reshape(-1, TILE)[left] = 0
    return left


def _try_singles(start: int, stop: int, dst: Tensor, product: Product, traversal: Traversal) -> list[int]:
    """Run the kernel of singles on items start to stop - 1, and return the items that it leaves out."""
    left_out = np.zeros(stop - start, np.bool_)
    memory = np.empty(room_for(start, stop, product.extent.rows, product.extent.cols), np.int32)
    matmul_by_singles(start, stop, dst, product, traversal, left_out, memory)
    if left_out.any():
        return [start + index for index in np.flatnonzero(left_out).tolist()]
    return []


def runs(items: list[int]) -> list[tuple[int, int]]:
    """Return ascending numbers as runs of consecutive ones, each as its first and one past its last; [] for no
    numbers."""
    if not items:
        return []
    cuts = [n for n in range(1, len(items)) if items[n] != items[n - 1] + 1]
    return [(items[first], items[last - 1] + 1) for first, last in pairwise([0, *cuts, len(items)])]


LIMIT: Final = (1 << 31) - 1  # at which an integer Dst saturates (DEVICE_NUMERICS 5)


@kernel
def int_matmul_tiles(start: int, stop: int, dst: Tensor, product: Product) -> None:
    """Add in0 x in1 of 8-bit integers to dst over the inner tiles first to last - 1, in all four phases, saturating
    after each MVMUL at +-(2^31 - 1) (DEVICE_NUMERICS 5).

    dst: uint32[w, t * rows * cols, 1024] in sign and magnitude; its tiles are the items, of which start to stop - 1 are
    computed. Of `product` phases, setting and pads are not looked at: a negative place is a tile of zeros.
    """
    in0, in0_index, _, _ = product.in0
    in1, in1_index, _, in1_transposed = product.in1
    t, rows, inner, cols, first, last, faces = product.extent
    faces_first = product.faces_first
    per_entry = t * rows * cols
    value = np.empty(TILE, np.int32)
    srca = np.empty(TILE, np.int32)
    srcb = np.empty(TILE, np.int32)
    a = np.empty(TILE, np.int32)
    b = np.empty(TILE, np.int32)
    line = np.empty(EDGE, np.int32)
    for index in range(start, stop):
        entry = index // per_entry
        tile = index - entry * per_entry
        row = tile // cols
        col = tile - row * cols
        image = dst[entry, tile].view(np.int32)
        _from_sign_magnitude(value, image)
        for k in range(first, last):
            fetch_words(srcb, in0, entry, in0_index[row * inner + k], np.uint32(0), False)
            in1_at = in1_index[(row // rows * inner + k) * cols + col]
            fetch_words(srca, in1, entry, in1_at, np.uint32(0), in1_transposed)
            for step in range(PHASES * faces):
                phase, face = phase_and_face(step, faces, faces_first)
                _write_masked_integers(a, srca, srca_mask(phase))
                _write_masked_integers(b, srcb, srcb_mask(phase))
                _mvmul(value, b, a, face * FACE, line)
        _to_sign_magnitude(image, value)


@kernel
def int_elwmul_tiles(start: int, stop: int, dst: Tiles, srca: Tiles, srcb: Tiles) -> None:
    """Add srca * srcb, element by element, to tiles start to stop - 1 of dst, in all four phases, saturating after each
    (DEVICE_NUMERICS 5): uint32[n, 1024] each, dst in sign and magnitude, the others Src words of 8-bit integers."""
    value = np.empty(TILE, np.int32)
    for index in range(start, stop):
        image = dst[index].view(np.int32)
        a = srca[index].view(np.int32)
        b = srcb[index].view(np.int32)
        _from_sign_magnitude(value, image)
        for phase in range(PHASES):
            mask_a = srca_mask(phase)
            mask_b = srcb_mask(phase)
            for n in range(TILE):
                value[n] = _add_saturating(value[n], i32(_masked_integer(a[n], mask_a) * _masked_integer(b[n], mask_b)))
        _to_sign_magnitude(image, value)


@kernel
def int_elwadd_tiles(
    start: int, stop: int, dst: Tiles, srca: Tiles, srcb: Tiles, subtract: bool, accumulate: bool
) -> None:
    """Write srca + srcb, or srca - srcb with `subtract`, to tiles start to stop - 1 of dst, saturating; with
    `accumulate` it is added to the old dst. Arrays as for `int_elwmul_tiles`."""
    value = np.zeros(TILE, np.int32)
    factor = i32(1)
    if subtract:
        factor = i32(-1)
    for index in range(start, stop):
        image = dst[index].view(np.int32)
        a = srca[index].view(np.int32)
        b = srcb[index].view(np.int32)
        if accumulate:
            _from_sign_magnitude(value, image)
        for n in range(TILE):
            old = i32(0)
            if accumulate:
                old = value[n]
            value[n] = _add_saturating(
                old, i32(_masked_integer(a[n], i32(0x3FF)) + i32(factor * _masked_integer(b[n], i32(0x3FF))))
            )
        _to_sign_magnitude(image, value)


@kernel
def int_copy_tiles(start: int, stop: int, dst: Tiles, srca: Tiles) -> None:
    """Write tiles start to stop - 1 of `srca`, uint32[n, 1024] Src words of 8-bit integers, to `dst` in sign and
    magnitude, with +0 for zeros."""
    value = np.empty(TILE, np.int32)
    for index in range(start, stop):
        _write_masked_integers(value, srca[index].view(np.int32), i32(0x3FF))
        _to_sign_magnitude(dst[index].view(np.int32), value)


@helper
def srca_mask(phase: int) -> np.int32:
    """Return the bits of an 8-bit integer's magnitude in SrcA that a phase multiplies (DEVICE_NUMERICS 5)."""
    if phase & 1:
        return i32(0x1F)
    return i32(0xE0)


@helper
def srcb_mask(phase: int) -> np.int32:
    """Return the bits of a magnitude in SrcB that a phase multiplies (DEVICE_NUMERICS 5)."""
    if phase & 2:
        return i32(0x00F)
    return i32(0x3F0)


@helper
def _mvmul(value: Lanes, b: Lanes, a: Lanes, first: int, line: Lanes) -> None:
    """Add b x a over the 16 inner indices from `first` on to `value`, int32[1024] each, saturating. `line`, int32[32],
    is memory to work in."""
    for i in range(EDGE):
        for j in range(EDGE):
            line[j] = i32(0)
        for k in range(first, first + FACE):
            factor = b[i * EDGE + k]
            for j in range(EDGE):
                line[j] = i32(line[j] + i32(factor * a[k * EDGE + j]))
        for j in range(EDGE):
            value[i * EDGE + j] = _add_saturating(value[i * EDGE + j], line[j])


@helper
def _add_saturating(value: np.int32, addend: np.int32) -> np.int32:
    """Return value + addend, at least -LIMIT and at most LIMIT, without overflow."""
    low = i32(i32(-LIMIT) - min(addend, i32(0)))
    high = i32(i32(LIMIT) - max(addend, i32(0)))
    return i32(min(max(value, low), high) + addend)


@helper
def _write_masked_integers(out: Lanes, words: Lanes, mask: np.int32) -> None:
    """Write to `out`, int32[1024], the integers of a tile's Src words, of whose magnitudes only the bits `mask`
    count."""
    for n in range(TILE):
        out[n] = _masked_integer(words[n], mask)


@helper
def _masked_integer(word: np.int32, mask: np.int32) -> np.int32:
    """Return the integer of a Src word, of whose magnitude only the bits `mask` count; 0 where the word's exponent is
    0."""
    return with_sign(i32(i32(word >> i32(13)) & mask), word)


@helper
def _from_sign_magnitude(values: Lanes, image: Lanes) -> None:
    """Write to `values` the two's complement of a tile in sign and magnitude."""
    for n in range(TILE):
        sign = i32(image[n] >> i32(31))
        values[n] = i32(i32(i32(image[n] & i32(MAGNITUDE)) ^ sign) - sign)


@helper
def _to_sign_magnitude(image: Lanes, values: Lanes) -> None:
    """Write to `image` the sign and magnitude of a tile in two's complement."""
    for n in range(TILE):
        sign = i32(values[n] >> i32(31))
        image[n] = i32(i32(i32(values[n] ^ sign) - sign) | i32(sign & i32(NEGATIVE_SIGN)))
