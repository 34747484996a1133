"""ELWMUL, ELWADD and ELWSUB over tiles (`buda_emu.tensix.elementwise.eltwise`)."""

import numpy as np

from buda_emu.jit.kernel import helper, kernel
from buda_emu.jit.shifts import shift_left, shift_right
from buda_emu.kernels.tensix.products.accumulate import accumulate_narrow, accumulate_wide, exponent_bias
from buda_emu.kernels.tensix.products.fidelity import exponent_of, srca_part, srcb_part
from buda_emu.kernels.tensix.words import FP16, FP32, TILE, Lanes, Setting, Tiles, i32, load_words, store_words


@kernel
def elwmul_tiles(start: int, stop: int, dst: Tiles, srca: Tiles, srcb: Tiles, phases: int, setting: Setting) -> None:
    """dst += srca * srcb, one accumulation for each phase. Items: the tiles.

    dst: uint32[n, 1024], Dst images of the setting's mode; srca and srcb: uint32[n, 1024] words. `phases`: bit p is set
    where phase p runs.
    """
    mode, exponent_bits, blackhole = setting
    word = np.empty(TILE, np.int32)
    x = np.empty(TILE, np.int32)
    v = np.empty(TILE, np.int32)
    for item in range(start, stop):
        image, a, b = dst[item].view(np.int32), srca[item].view(np.int32), srcb[item].view(np.int32)
        load_words(word, image, mode)
        for phase in range(4):
            if phases >> phase & 1:
                _multiply(x, v, a, b, phase, exponent_bias(mode, exponent_bits, phase))
                _accumulate(word, x, v, mode, blackhole)
        store_words(image, word, mode)


@kernel
def elwadd_tiles(
    start: int, stop: int, dst: Tiles, srca: Tiles, srcb: Tiles, subtract: bool, accumulate: bool, setting: Setting
) -> None:
    """dst = srca + srcb, or the difference; `accumulate`: added to what dst held. Items: the tiles.

    Arrays as for `elwmul_tiles`.
    """
    mode, exponent_bits, blackhole = setting
    word = np.zeros(TILE, np.int32)
    x = np.empty(TILE, np.int32)
    v = np.empty(TILE, np.int32)
    flip = i32(-0x80000000) if subtract else i32(0)
    wide_half = mode == FP32 and exponent_bits == 5
    for item in range(start, stop):
        image, a, b = dst[item].view(np.int32), srca[item].view(np.int32), srcb[item].view(np.int32)
        if accumulate:
            load_words(word, image, mode)
        else:
            for n in range(TILE):
                word[n] = i32(0)
        _add(x, v, a, b, flip, wide_half)
        _accumulate(word, x, v, mode, blackhole)
        store_words(image, word, mode)


@helper
def _accumulate(word: Lanes, x: Lanes, v: Lanes, mode: int, blackhole: bool) -> None:
    """One sum for each datum of a tile."""
    zero = i32(0)
    if mode == FP32:
        for n in range(TILE):
            word[n] = accumulate_wide(word[n], x[n], v[n], zero, zero, blackhole)
    else:
        for n in range(TILE):
            word[n] = accumulate_narrow(word[n], x[n], v[n], zero, zero, mode == FP16)


@helper
def _multiply(x: Lanes, v: Lanes, a: Lanes, b: Lanes, phase: int, bias: np.int32) -> None:
    """Exponents and signed products of one phase."""
    for n in range(TILE):
        # A product with a zero has the exponent of the bias alone.
        exponent = i32(max(i32(exponent_of(a[n]) + exponent_of(b[n])), i32(0)) + bias)
        product = i32(srca_part(a[n], phase) * srcb_part(b[n], phase))
        x[n] = max(exponent, i32(0))
        v[n] = product if exponent > 0 else i32(0)


@helper
def _add(x: Lanes, v: Lanes, a: Lanes, b: Lanes, flip: np.int32, wide_half: bool) -> None:
    """Exponents and signed sums; `flip` is XORed to b. `wide_half`: operands of family A, for an fp32 Dst."""
    for n in range(TILE):
        first, second = i32(a[n]), i32(b[n] ^ flip)
        size0, size1 = i32(first & i32(0x7FFFE000)), i32(second & i32(0x7FFFE000))
        size0 = i32(0) if size0 < 0x800000 else size0
        size1 = i32(0) if size1 < 0x800000 else size1
        ahead = size0 >= size1
        large, small = max(size0, size1), min(size0, size1)
        exponent = i32(large >> i32(23))
        distance = min(i32(exponent - i32(small >> i32(23))), i32(12))
        # Eleven bits each, or zero.
        high = i32(i32(i32(large >> i32(13)) & i32(0x3FF)) | i32(0x400))
        high = i32(0) if large == 0 else high
        low = i32(i32(i32(small >> i32(13)) & i32(0x3FF)) | i32(0x400))
        low = i32(0) if small == 0 else low
        low = shift_right(i32(low + i32(shift_left(i32(1), distance) >> i32(1))), distance)
        # A zero has no sign.
        sign0 = i32(0) if size0 == 0 else i32(first >> i32(31))
        sign1 = i32(0) if size1 == 0 else i32(second >> i32(31))
        sign = sign0 if ahead else sign1
        total = i32(high + low) if sign0 == sign1 else i32(high - low)
        if wide_half:
            exponent = i32(97) if large == 0 else i32(exponent + i32(112))
        x[n] = exponent
        v[n] = i32(i32(total ^ sign) - sign)
