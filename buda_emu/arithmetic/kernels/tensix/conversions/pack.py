"""The packer as a kernel (DEVICE_NUMERICS 4); `buda_emu.arithmetic.tensix.conversions.pack` is the definition.

Here every float of the intermediate format stands at the top of a 32-bit word, bf16 and fp16 in its upper half. That
makes the early conversions one loop with other constants, and the relu one for all formats.
"""

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.jit.kernel import helper, kernel
from buda_emu.arithmetic.kernels.tensix.conversions.blocks import assemble_row, block_position
from buda_emu.arithmetic.kernels.tensix.conversions.early import Early, early_groups, early_halves, early_words
from buda_emu.arithmetic.kernels.tensix.images import TILE, as_rows, none
from buda_emu.spec.formats import FORMATS, is_block, is_integer
from buda_emu.spec.single import HIDDEN, INFINITY, MAGNITUDE, SIGN
from buda_emu.support.errors import UnsupportedError

U = np.uint32

_ROW: Final = np.uint64(TILE)
_SIGN: Final = U(SIGN)
_MAGNITUDE: Final = U(MAGNITUDE)

_NARROW: Final = 1
_WIDEN: Final = 2
_WIDEN_KEEPING_DENORMALS: Final = 3
_FLUSH: Final = 4


_SMALLEST_HALF: Final = 0x04000000
_TF32: Final = Early(most=INFINITY, half=0x1000, mask=0x7FFFE000, least=HIDDEN)
_TF32_FOR_FP16: Final = Early(most=INFINITY, half=0x1000, mask=0x7FFFE000, least=113 << 23)

_EARLY: Final[Mapping[tuple[str, str], Early]] = MappingProxyType(
    {
        ("fp32", "Float32"): Early(),
        ("fp32", "Float16_b"): Early(most=INFINITY, half=0x8000, mask=0x7FFF0000, least=HIDDEN),
        ("fp32", "Bfp8_b"): Early(0x7FFF0000, INFINITY, half=0x10000, mask=0x7FFE0000, least=HIDDEN),
        ("bf16", "Float16_b"): Early(most=INFINITY, least=HIDDEN),
        ("bf16", "Bfp8_b"): Early(most=INFINITY, first=HIDDEN, half=0x10000, mask=0x7FFE0000, least=HIDDEN),
        ("fp16", "Float16"): Early(least=_SMALLEST_HALF),
        ("fp16", "Bfp8"): Early(most=0x7FF70000, half=0x80000, mask=0x7FF00000, least=_SMALLEST_HALF),
    }
)
_NONE: Final[Mapping[int, Any]] = MappingProxyType({1: none(np.uint8), 2: none(np.uint16), 4: none(np.uint32)})
_NO_EXPONENTS: Final = np.empty((0, TILE // 16), np.uint8)
_LIMITS: Final[Mapping[str, int]] = MappingProxyType({"Int32": MAGNITUDE, "Int8": 127, "UInt8": 255, "UInt16": 65535})
_RAW_AS: Final[Mapping[str, str]] = MappingProxyType(
    {"RawUInt32": "Float32", "RawUInt16": "Float16", "RawUInt8": "Lf8"}
)


class Conversion(NamedTuple):
    """The settings of the packer: arguments of `buda_emu.arithmetic.tensix.conversions.pack.pack`."""

    mode: str
    held_as: str
    out_df: str
    relu_mode: int = 0
    threshold: int = 0
    core: str = "wormhole_b0"


class Late(NamedTuple):
    """The steps after the early conversion of floats. `small_sign`: the bits that stay of a word below its `least`;
    `width` is 32, 16, 8, or 4 for e4m3; `block_bits` is 0 for formats without blocks."""

    small_sign: int
    relu_mode: int
    limit: int
    change: int
    width: int
    block_bits: int
    narrow_block: bool


class Images(NamedTuple):
    """The output arrays: datums [n, 1024] of each size, and exponents [n, 64]; all but one or two are empty."""

    words: NDArray[np.uint32]
    halves: NDArray[np.uint16]
    bytes: NDArray[np.uint8]
    exponents: NDArray[np.uint8]


def pack(
    start: int,
    stop: int,
    dst: NDArray[np.uint32],
    by: Conversion,
    datums: NDArray[np.unsignedinteger[Any]],
    exponents: NDArray[np.uint8] | None = None,
) -> None:
    """Pack tiles start..stop of `dst` uint32[n, 32, 32] into `datums` [n, 32, 32] of the output format.

    `datums` is uint8, uint16 or uint32, `exponents` uint8[n, 32, 2] for block formats; all C-contiguous. Raises
    UnsupportedError for a conversion the packer lacks.
    """
    sized = {**_NONE, datums.itemsize: as_rows(datums)}
    images = Images(sized[4], sized[2], sized[1], as_rows(exponents) if exponents is not None else _NO_EXPONENTS)
    source = as_rows(dst)
    relu_mode = by.relu_mode
    if is_integer(by.held_as):
        signed = 8 * datums.itemsize - 1 if by.held_as in ("Int32", "Int8") and relu_mode == 0 else 0
        greatest = min(_LIMITS[by.held_as], by.threshold) if relu_mode == 3 else _LIMITS[by.held_as]
        above = by.threshold if relu_mode == 2 else 0
        pack_integers(start, stop, source, greatest, above, signed, images)
        return
    out = _RAW_AS.get(by.out_df, by.out_df)
    late = Late(
        small_sign=SIGN if (by.mode, out) == ("bf16", "Fp8_e4m3") else 0,
        relu_mode=relu_mode,
        limit=by.threshold << 16,
        change=_late_change(by.held_as, out),
        width=8 * datums.itemsize if out != "Fp8_e4m3" else 4,
        block_bits=FORMATS[out].mantissa_bits if is_block(out) else 0,
        narrow_block=FORMATS[out].family == "a",
    )
    up = 0 if by.mode in ("fp32", "int32") else 16
    pack_floats(start, stop, source, up, _early_conversion(by.mode, by.held_as, by.core), late, images)


@lru_cache(maxsize=256)
def _early_conversion(mode: str, held_as: str, core: str) -> Early:
    mode = "fp32" if mode == "int32" else mode
    if (mode, held_as) == ("fp32", "Tf32"):
        return _TF32 if core == "blackhole" else _TF32_FOR_FP16
    if (mode, held_as) in _EARLY:
        return _EARLY[mode, held_as]
    raise UnsupportedError(f"Dst in {mode} to intermediate {held_as}: the packer has no such conversion")


@lru_cache(maxsize=256)
def _late_change(held_as: str, out: str) -> int:
    """Return the change of the exponent on the way to the output format: its width, or denormals to zeros, or none."""
    narrow = held_as in ("Float16", "Bfp8")
    narrow_out = FORMATS[out].family != "b"
    if narrow == narrow_out:
        return _FLUSH if held_as == "Float32" and is_block(out) else 0
    if narrow_out:
        return _NARROW
    return _WIDEN_KEEPING_DENORMALS if out in ("Float32", "Tf32") else _WIDEN


@kernel
def pack_floats(
    start: int, stop: int, dst: NDArray[np.uint32], up: int, early: Early, late: Late, images: Images
) -> None:
    """Pack tiles of floats. `up` brings Dst to the top of a word."""
    small_sign, relu_mode, limit, change, width, block_bits, narrow_block = late
    words, halves, bytes_, exponents = images
    plain = relu_mode == 0 and change == 0
    down, greatest = block_position(narrow_block)
    row = np.empty(TILE, np.uint32)
    for tile in range(start, stop):
        source = dst[tile].view(np.int32)
        if plain and block_bits != 0:
            early_groups(source, up, early, (down, greatest, 7 - block_bits), bytes_[tile], exponents[tile])
            continue
        if plain and width == 16:
            early_halves(source, up, early, halves[tile].view(np.int16))
            continue
        early_words(source, up, early, small_sign, row.view(np.int32))
        if relu_mode != 0:
            _relu(row, relu_mode, U(limit))
        if change == _NARROW:
            _narrow(row)
        elif change == _FLUSH:
            _flush(row)
        elif change != 0:
            _widen(row, change == _WIDEN_KEEPING_DENORMALS)
        if block_bits != 0:
            assemble_row(row, block_bits, narrow_block, bytes_[tile], exponents[tile])
        elif width == 32:
            for i in range(_ROW):
                words[tile, i] = row[i]
        elif width == 16:
            for i in range(_ROW):
                halves[tile, i] = np.uint16(row[i] >> U(16))
        elif width == 8:
            for i in range(_ROW):
                bytes_[tile, i] = np.uint8(row[i] >> U(24))
        else:
            _e4m3(row, bytes_[tile])


@kernel
def pack_integers(
    start: int, stop: int, dst: NDArray[np.uint32], limit: int, above: int, sign_place: int, images: Images
) -> None:
    """Pack tiles of integers in sign and magnitude, clamped. A magnitude not above `above` becomes 0, and so do
    negatives where there is no place for the sign."""
    words, halves, bytes_, _ = images
    greatest = U(limit)
    least = U(above)
    place = U(sign_place)
    row = np.empty(TILE, np.uint32)
    for tile in range(start, stop):
        source = dst[tile]
        for i in range(_ROW):
            x = source[i]
            size = min(U(x & _MAGNITUDE), greatest)
            size = U(0) if size <= least else size
            negative = U(size | U(U(1) << place)) if sign_place != 0 else U(0)
            row[i] = negative if x >= _SIGN else size
        if words.size != 0:
            for i in range(_ROW):
                words[tile, i] = row[i]
        elif halves.size != 0:
            for i in range(_ROW):
                halves[tile, i] = np.uint16(row[i])
        else:
            for i in range(_ROW):
                bytes_[tile, i] = np.uint8(row[i])


@helper
def _relu(row: Any, mode: Any, limit: Any) -> None:
    """Apply relu: negatives become 0; in mode 2 also values not above the limit, mode 3 cuts above it, by 19 bits."""
    if mode == 3:
        for i in range(_ROW):
            x = row[i]
            y = limit if U(x & U(0xFFFFE000)) > limit else x
            row[i] = U(0) if x >= _SIGN else y
    else:
        bound = limit if mode == 2 else U(0)
        for i in range(_ROW):
            x = row[i]
            row[i] = U(0) if (x >= _SIGN) | (x <= bound) else x


@helper
def _widen(row: Any, denormals: Any) -> None:
    """Convert fp16 to fp32; exponent 0 keeps its sign and bits, or is +0."""
    for i in range(_ROW):
        x = row[i]
        size = U(U(x & _MAGNITUDE) >> U(3))
        wide = U(U(x & _SIGN) | U(size + U(0x38000000)))
        small = U(U(x & _SIGN) | size) if denormals else U(0)
        row[i] = small if size < U(0x00800000) else wide


@helper
def _flush(row: Any) -> None:
    """Replace words with exponent 0 by +0."""
    for i in range(_ROW):
        x = row[i]
        row[i] = U(0) if U(x & _MAGNITUDE) < U(HIDDEN) else x


@helper
def _narrow(row: Any) -> None:
    """Convert fp32 to fp16: below its exponents a signed zero, above them the last code."""
    for i in range(_ROW):
        x = row[i]
        size = U(x & _MAGNITUDE)
        code = U(U(size - U(0x38000000)) << U(3))
        code = U(0) if size < U(0x38000000) else code
        code = U(0x7FFF0000) if size >= U(0x48000000) else code
        row[i] = U(U(U(x & _SIGN) | code) & U(0xFFFF0000))


@helper
def _e4m3(row: Any, out: Any) -> None:
    """Convert fp16 to a 4-bit exponent."""
    for i in range(_ROW):
        x = U(row[i] >> U(16))
        e = U(U(x >> U(10)) & U(31))
        code = U(U(U(x >> U(7)) & U(0xFF)) - U(64))
        code = U(0) if e <= U(8) else code
        code = U(0x7F) if e >= U(24) else code
        out[i] = np.uint8(U(U(U(x >> U(8)) & U(0x80)) | code))
