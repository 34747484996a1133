"""The matrix unit on 8-bit integers over tiles (`buda_emu.arithmetic.tensix.products`). Inside, Dst is in two's
complement."""

from typing import Final

import numpy as np

from buda_emu.arithmetic.jit.kernel import helper, kernel
from buda_emu.arithmetic.kernels.tensix.products.fidelity import PHASES, phase_and_face
from buda_emu.arithmetic.kernels.tensix.products.product import Product
from buda_emu.arithmetic.kernels.tensix.words import EDGE, FACE, TILE, Lanes, Tensor, Tiles, fetch_words, i32
from buda_emu.spec.single import INFINITY, MAGNITUDE, NEGATIVE_SIGN

LIMIT: Final = (1 << 31) - 1


@kernel
def int_matmul_tiles(start: int, stop: int, dst: Tensor, product: Product) -> None:
    """Compute dst += in0 x in1 over the inner tiles first to last - 1, in all four phases.

    Arguments as for `tile_matmul.matmul_tiles`, without its phases, setting and pads; dst is in sign and magnitude, and
    a negative index is a tile of zeros. Items: the w * t * rows * cols tiles of `dst`.
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
        _decode(value, image)
        for k in range(first, last):
            fetch_words(srcb, in0, entry, in0_index[row * inner + k], np.uint32(0), False)
            in1_at = in1_index[(row // rows * inner + k) * cols + col]
            fetch_words(srca, in1, entry, in1_at, np.uint32(0), in1_transposed)
            for step in range(PHASES * faces):
                phase, face = phase_and_face(step, faces, faces_first)
                _parts(a, srca, srca_mask(phase))
                _parts(b, srcb, srcb_mask(phase))
                _mvmul(value, b, a, face * FACE, line)
        _encode(image, value)


@kernel
def int_elwmul_tiles(start: int, stop: int, dst: Tiles, srca: Tiles, srcb: Tiles) -> None:
    """Compute dst += srca * srcb in all four phases: uint32[n, 1024] each, dst in sign and magnitude. Items: the
    tiles."""
    value = np.empty(TILE, np.int32)
    for index in range(start, stop):
        image = dst[index].view(np.int32)
        a = srca[index].view(np.int32)
        b = srcb[index].view(np.int32)
        _decode(value, image)
        for phase in range(PHASES):
            mask_a = srca_mask(phase)
            mask_b = srcb_mask(phase)
            for n in range(TILE):
                value[n] = _add_saturating(value[n], i32(_part(a[n], mask_a) * _part(b[n], mask_b)))
        _encode(image, value)


@kernel
def int_elwadd_tiles(
    start: int, stop: int, dst: Tiles, srca: Tiles, srcb: Tiles, subtract: bool, accumulate: bool
) -> None:
    """Compute dst = srca + srcb, or the difference; `accumulate`: added to the old dst. Arrays as for
    `int_elwmul_tiles`."""
    value = np.zeros(TILE, np.int32)
    factor = i32(-1) if subtract else i32(1)
    for index in range(start, stop):
        image = dst[index].view(np.int32)
        a = srca[index].view(np.int32)
        b = srcb[index].view(np.int32)
        if accumulate:
            _decode(value, image)
        for n in range(TILE):
            old = value[n] if accumulate else i32(0)
            value[n] = _add_saturating(old, i32(_part(a[n], i32(0x3FF)) + i32(factor * _part(b[n], i32(0x3FF)))))
        _encode(image, value)


@kernel
def int_copy_tiles(start: int, stop: int, dst: Tiles, srca: Tiles) -> None:
    """Copy srca to dst, as an op copies an 8-bit operand: uint32[n, 1024] each. Items: the tiles."""
    value = np.empty(TILE, np.int32)
    for index in range(start, stop):
        _parts(value, srca[index].view(np.int32), i32(0x3FF))
        _encode(dst[index].view(np.int32), value)


@helper
def srca_mask(phase: int) -> np.int32:
    """Return the bits of the magnitudes in SrcA that a phase uses."""
    return i32(0x1F) if phase & 1 else i32(0xE0)


@helper
def srcb_mask(phase: int) -> np.int32:
    """Return the bits of the magnitudes in SrcB that a phase uses."""
    return i32(0x00F) if phase & 2 else i32(0x3F0)


@helper
def _mvmul(value: Lanes, b: Lanes, a: Lanes, first: int, line: Lanes) -> None:
    """value += the 16 columns of b from `first` on x the same rows of a."""
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
    """Return value + addend, held between -LIMIT and LIMIT."""
    low = i32(i32(-LIMIT) - min(addend, i32(0)))
    high = i32(i32(LIMIT) - max(addend, i32(0)))
    return i32(min(max(value, low), high) + addend)


@helper
def _parts(out: Lanes, words: Lanes, mask: np.int32) -> None:
    for n in range(TILE):
        out[n] = _part(words[n], mask)


@helper
def _part(word: np.int32, mask: np.int32) -> np.int32:
    """Return the value of a Src word with the bits `mask` of its magnitude."""
    magnitude = i32(i32(word >> i32(13)) & mask)
    magnitude = i32(0) if i32(word & i32(INFINITY)) == 0 else magnitude
    sign = i32(word >> i32(31))
    return i32(i32(magnitude ^ sign) - sign)


@helper
def _decode(values: Lanes, image: Lanes) -> None:
    """Sign and magnitude to two's complement."""
    for n in range(TILE):
        sign = i32(image[n] >> i32(31))
        values[n] = i32(i32(i32(image[n] & i32(MAGNITUDE)) ^ sign) - sign)


@helper
def _encode(image: Lanes, values: Lanes) -> None:
    """Two's complement to sign and magnitude."""
    for n in range(TILE):
        sign = i32(values[n] >> i32(31))
        image[n] = i32(i32(i32(values[n] ^ sign) - sign) | i32(sign & i32(NEGATIVE_SIGN)))
