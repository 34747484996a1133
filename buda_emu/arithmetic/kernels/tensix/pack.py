"""The packer: Dst data become datums in L1, by an early conversion, relu, a late conversion and block formats, and are
added up there (DEVICE_NUMERICS 4).

A *row* is a tile as 1024 words in an array; a format of fewer than 32 bits lies in the upper bits of each word.
Functions without a decorator and with arrays to write define vector code, which kernels call by their names
(`intrinsics/conversions.py`).
"""

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.jit.kernel import helper, kernel
from buda_emu.arithmetic.kernels.tensix.words import TILE, as_rows, flush, no_tiles
from buda_emu.spec.formats import FORMATS, is_block, is_integer
from buda_emu.spec.single import HIDDEN, INFINITY, MAGNITUDE, SIGN
from buda_emu.support.errors import UnsupportedError

GROUP: Final = 16  # datums under one shared exponent
FRACTION: Final = 127  # mask of the 7 bits of fraction that count
LEADING: Final = 128  # the leading one above them
MOST: Final = 127  # the largest magnitude of 7 bits
FARTHEST: Final = 8  # from this distance of exponents on nothing is left: 255 + 256, shifted by 9, is 0


@helper
def assemble_row(row: Any, bits: Any, narrow: Any, codes: Any, exponents: Any) -> None:
    """Write a tile of 1024 words, bf16 or, with `narrow`, fp16 in the upper half of each, as block codes, uint8[1024]
    of `bits` magnitude bits, and shared exponents, uint8[64] (4.5)."""
    down, greatest = block_position(narrow)
    assemble_groups(row.view(np.int32), down, greatest, 7 - bits, codes, exponents)


@helper
def block_position(narrow: Any) -> Any:
    """Return how a block format reads the upper half of a word, bf16 or, with `narrow`, fp16: the bit at which its 7
    bits of fraction begin, and the largest exponent."""
    if narrow:
        return (19, 31)
    return (16, 255)


def assemble_groups(row: Any, down: int, greatest: int, cut: int, codes: Any, exponents: Any) -> None:
    """Write the words int32[1024] of `row` as block codes, uint8[1024], and shared exponents, uint8[64], one for 16
    words: the largest exponent of the group. A magnitude is rounded to 7 bits at that exponent, half up and at most
    127; then its `cut` lowest bits are dropped; zeros have no sign (4.5).

    7 bits of fraction begin at bit `down` of a word, the exponent above them; `greatest` is the largest exponent, 255
    or 31.
    """
    x = row.reshape(-1, GROUP)
    exponent = x >> (down + 7) & greatest
    significand = np.where(exponent == 0, 0, LEADING) | x >> down & FRACTION
    shared = exponent.max(axis=1)
    distance = np.minimum(shared[:, None] - exponent, FARTHEST)
    size = np.minimum((significand + (1 << distance)) >> (distance + 1), MOST) >> cut
    codes[:] = np.where(size == 0, 0, size | (x < 0) << (7 - cut)).reshape(-1)
    exponents[:] = shared


class Early(NamedTuple):
    """An early conversion of the packer, from Dst to the intermediate format (4.2):
    `magnitude = min(magnitude & kept, most)`, or 0 if below `first`; then `(magnitude + half) & mask`, or 0 without a
    sign if below `least`."""

    kept: int = MAGNITUDE
    most: int = MAGNITUDE
    first: int = 0
    half: int = 0
    mask: int = MAGNITUDE
    least: int = 0


def early_words(words: Any, up: int, by: Early, small: int, row: Any) -> None:
    """Write to `row`, int32[1024], Dst words converted to the intermediate format by `by`. A shift left by `up` first
    brings the words' bits to the top; of a word that becomes less than `by.least`, the bits `small` stay, such as its
    sign."""
    row[:] = _convert_early(words, up, by, small)


def early_halves(words: Any, up: int, by: Early, halves: Any) -> None:
    """Write to `halves`, int16[1024], the upper halves of Dst words converted to the intermediate format by `by`, after
    a shift left by `up` that brings their bits to the top; words that become less than `by.least` are 0."""
    halves[:] = _convert_early(words, up, by, 0) >> 16


def early_groups(words: Any, up: int, by: Early, position: tuple[int, int, int], codes: Any, exponents: Any) -> None:
    """Write Dst words, converted to the intermediate format by `by` after a shift left by `up`, as block codes,
    uint8[1024], and shared exponents, uint8[64]; `position` has the arguments `down`, `greatest` and `cut` of
    `assemble_groups`."""
    assemble_groups(_convert_early(words, up, by, 0), *position, codes, exponents)


def _convert_early(words: Any, up: int, by: Early, small: int) -> Any:
    """Return Dst words after a shift left by `up` and the packer's early conversion `by`; of words below `by.least` the
    bits `small` stay."""
    word = words << up
    size = np.minimum(word & MAGNITUDE & by.kept, by.most)
    size = np.where(size < by.first, 0, size) + by.half & by.mask
    return np.where(size < by.least, word & small, size | word & ~MAGNITUDE).astype(np.int32)


U = np.uint32
L = np.int64

_TILE: Final = np.uint64(TILE)
_SIGN: Final = U(SIGN)
_INFINITY: Final = U(INFINITY)
_MAGNITUDE: Final = U(MAGNITUDE)
_LARGEST: Final = L(0x7FEFFFFFFFFFFFFF)
_INFINITE: Final = L(0x7FF0000000000000)


def accumulate(
    start: int, stop: int, out_df: str, old: NDArray[np.unsignedinteger[Any]], new: NDArray[np.unsignedinteger[Any]]
) -> None:
    """Add tiles start to stop - 1 of `new` to those of `old`, in place, as the packer accumulates in L1 (4.6):
    C-contiguous [n, 32, 32] datums of the format `out_df`, Float32, Float16_b or Float16. Raises UnsupportedError for
    other formats."""
    adders = {"Float32": add_fp32, "Float16_b": add_bf16, "Float16": add_fp16}
    if out_df not in adders:
        raise UnsupportedError(f"accumulation in L1 as {out_df}: Float32, Float16_b and Float16 are known")
    adders[out_df](start, stop, as_rows(old), as_rows(new))


@kernel
def add_fp32(start: int, stop: int, old: NDArray[np.uint32], new: NDArray[np.uint32]) -> None:
    """Add tiles start to stop - 1 of Float32 in `new` to those of `old`, in place: as IEEE addition, with denormals as
    signed zeros, and 0x7fc00000 for every NaN (4.6)."""
    for tile in range(start, stop):
        a = old[tile]
        b = new[tile]
        for i in range(_TILE):
            total = np.float32(U(flush(a[i])).view(np.float32) + U(flush(b[i])).view(np.float32)).view(np.uint32)
            total = flush(total)
            if U(total & _MAGNITUDE) > _INFINITY:
                total = U(0x7FC00000)
            a[i] = total


@kernel
def add_bf16(start: int, stop: int, old: NDArray[np.uint16], new: NDArray[np.uint16]) -> None:
    """Add tiles start to stop - 1 of Float16_b in `new` to those of `old`, in place: in double precision, rounded once
    to nearest even. A NaN in `old` counts as the largest double of its sign, a NaN in `new` as an ordinary number with
    exponent 255 (4.6)."""
    for tile in range(start, stop):
        add_bf16_tile(old[tile], new[tile])


@helper
def add_bf16_tile(a: Any, b: Any) -> None:
    """Add one tile of Float16_b, `b`, to another, `a`, in place, as `add_bf16` does; uint16[1024] each."""
    for i in range(_TILE):
        total = L(_bf16_as_double(L(a[i]), _LARGEST)).view(np.float64) + L(_bf16_as_double(L(b[i]), L(0))).view(
            np.float64
        )
        bits = np.float64(total).view(np.int64)
        size = bits & L(0x7FFFFFFFFFFFFFFF)
        exponent = (size >> L(52)) - L(1023 - 127)
        code = ((size + ((L(1) << L(44)) - L(1)) + ((size >> L(45)) & L(1))) >> L(45)) - (L(1023 - 127) << L(7))
        if exponent <= L(0):
            code = L(0)
        if exponent >= L(255):
            code = L(0x7F80)
        if bits < L(0):
            code |= L(0x8000)
        if size > _INFINITE:
            code = L(0x7FC0)
        a[i] = np.uint16(code)


@kernel
def add_fp16(start: int, stop: int, old: NDArray[np.uint16], new: NDArray[np.uint16]) -> None:
    """Add tiles start to stop - 1 of Float16 in `new` to those of `old`, in place: in single precision, with exponent
    31 as an ordinary one, rounded to nearest even, at most 0x7fff. Sums from 2^-15 up to 2^-14 become zeros. By an
    error of the chip smaller sums become 0x7fff, and so does an exact zero where the old datum has exponent 30 or 31
    (4.6); all keep the sign."""
    for tile in range(start, stop):
        a = old[tile]
        b = new[tile]
        for i in range(_TILE):
            before = U(a[i])
            x = _fp16_as_single(before)
            y = _fp16_as_single(U(b[i]))
            total = np.float32(U(x).view(np.float32) + U(y).view(np.float32)).view(np.uint32)
            size = U(total & _MAGNITUDE)
            code = U(U(U(size + U(0xFFF)) + U(U(size >> U(13)) & U(1))) >> U(13))
            code = min(U(code - U(112 << 10)), U(0x7FFF))
            # Exponent 0 is a zero. What is smaller becomes the last code, and so does an exact zero where the old datum
            # was large (DEVICE_NUMERICS 4.6).
            if U(size >> U(23)) == U(112):
                code = U(0)
            if U(size >> U(23)) < U(112):
                code = U(0x7FFF)
            cancelled = U(0)
            if U(U(before >> U(10)) & U(31)) >= U(30):
                cancelled = U(0x7FFF)
            if size == U(0):
                code = cancelled
            a[i] = np.uint16(U(U(U(total & _SIGN) >> U(16)) | code))


@helper
def _bf16_as_double(code: Any, nan: Any) -> Any:
    """Return the bits of the double that equals a bf16 code. Exponent 0 counts as a signed zero. A NaN becomes the
    double with the bits `nan` and its sign, or, if `nan` is 0, an ordinary number with exponent 255."""
    size = code & L(0x7FFF)
    number = (size << L(45)) + (L(1023 - 127) << L(52))
    if size < L(0x80):
        number = L(0)
    if size == L(0x7F80):
        number = _INFINITE
    if (size > L(0x7F80)) & (nan != L(0)):
        number = nan
    if code >= L(0x8000):
        number |= L(-0x8000000000000000)
    return number


@helper
def _fp16_as_single(code: Any) -> Any:
    """Return the bits of the single that equals an fp16 code. Exponent 0 counts as a signed zero, exponent 31 as an
    ordinary one."""
    size = U(code & U(0x7FFF))
    wide = U(U(size << U(13)) + U(0x38000000))
    if size < U(0x400):
        wide = U(0)
    return U(U(U(code & U(0x8000)) << U(16)) | wide)


_ROW: Final = np.uint64(TILE)

# Changes of a word between Dst and the packer; 0 is none.
_NARROW: Final = 1
_WIDEN: Final = 2
_WIDEN_KEEPING_DENORMALS: Final = 3
_FLUSH: Final = 4


_SMALLEST_HALF: Final = 0x04000000  # the least normal fp16, in the upper half of a word: exponent 1
# Wormhole's kernel sets a threshold for outputs of family A: exponents below 113 have no room (4.2).
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
_NONE: Final[Mapping[int, Any]] = MappingProxyType(
    {1: no_tiles(np.uint8), 2: no_tiles(np.uint16), 4: no_tiles(np.uint32)}
)
_NO_EXPONENTS: Final = np.empty((0, TILE // 16), np.uint8)
_LIMITS: Final[Mapping[str, int]] = MappingProxyType({"Int32": MAGNITUDE, "Int8": 127, "UInt8": 255, "UInt16": 65535})
_RAW_AS: Final[Mapping[str, str]] = MappingProxyType(
    {"RawUInt32": "Float32", "RawUInt16": "Float16", "RawUInt8": "Lf8"}
)


class Conversion(NamedTuple):
    """The packer's steps for a tile: Dst holds data of `mode` ("fp32", "bf16", "fp16" or "int32"), which become the
    intermediate format `held_as`, pass relu and become `out_df`. `relu_mode`: 0 for no relu, 1 for 0 instead of
    negatives, 2 also for 0 up to `threshold`, 3 for at most `threshold` (4.3); `threshold` is a 16-bit code, of
    integers a number. `core` is the architecture."""

    mode: str
    held_as: str
    out_df: str
    relu_mode: int = 0
    threshold: int = 0
    core: str = "wormhole_b0"


class Late(NamedTuple):
    """The packer's steps for floats after the early conversion. `small_sign`: the bits that stay of a word below the
    least of that conversion; `relu_mode`; `limit`: the relu's threshold as a word; `change`: how exponents change;
    `width`: 32, 16 or 8 bits of a datum, 4 for Fp8_e4m3; `block_bits`: magnitude bits of a block format, else 0;
    `narrow_block`: whether its exponents have 5 bits."""

    small_sign: int
    relu_mode: int
    limit: int
    change: int
    width: int
    block_bits: int
    narrow_block: bool


class Images(NamedTuple):
    """The output arrays of the packer: datums [n, 1024] of each size and shared exponents [n, 64]; those that the
    output format does not use are empty."""

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
    """Write tiles start to stop - 1 of the Dst images `dst`, uint32[n, 32, 32], to `datums` [n, 32, 32] in the output
    format, as the packer converts them (4).

    `datums` is uint8, uint16 or uint32; `exponents` is uint8[n, 32, 2] for block formats, else None; all are
    C-contiguous. Raises UnsupportedError for a conversion that the packer lacks.
    """
    sized = {**_NONE, datums.itemsize: as_rows(datums)}
    shared = _NO_EXPONENTS
    if exponents is not None:
        shared = as_rows(exponents)
    images = Images(words=sized[4], halves=sized[2], bytes=sized[1], exponents=shared)
    source = as_rows(dst)
    if is_integer(by.held_as):
        pack_integers(start, stop, source, *_integer_bounds(by, datums.itemsize), images)
        return
    up = 16
    if by.mode in ("fp32", "int32"):
        up = 0
    late = _late_steps(by, datums.itemsize)
    pack_floats(start, stop, source, up, _early_conversion(by.mode, by.held_as, by.core), late, images)


def _integer_bounds(by: Conversion, item_bytes: int) -> tuple[int, int, int]:
    """Return the last arguments of `pack_integers` but one: the greatest magnitude, to which larger ones are clamped;
    the magnitude up to which numbers become 0; and the bit of the sign, 0 for unsigned results. `item_bytes` is the
    size of a datum."""
    greatest = _LIMITS[by.held_as]
    above = 0
    sign_place = 0
    if by.relu_mode == 3:
        greatest = min(greatest, by.threshold)
    if by.relu_mode == 2:
        above = by.threshold
    if by.held_as in ("Int32", "Int8") and by.relu_mode == 0:
        sign_place = 8 * item_bytes - 1
    return greatest, above, sign_place


def _late_steps(by: Conversion, item_bytes: int) -> Late:
    """Return the steps of a conversion of floats that follow the early one, to datums of `item_bytes` bytes. To
    Fp8_e4m3, bf16 keeps the sign of zeros (section 10)."""
    out = _RAW_AS.get(by.out_df, by.out_df)
    small_sign = 0
    width = 8 * item_bytes
    block_bits = 0
    if (by.mode, out) == ("bf16", "Fp8_e4m3"):
        small_sign = SIGN
    if out == "Fp8_e4m3":
        width = 4
    if is_block(out):
        block_bits = FORMATS[out].mantissa_bits
    return Late(
        small_sign=small_sign,
        relu_mode=by.relu_mode,
        limit=by.threshold << 16,
        change=_exponent_change(by.held_as, out),
        width=width,
        block_bits=block_bits,
        narrow_block=FORMATS[out].family == "a",
    )


@lru_cache(maxsize=256)
def _early_conversion(mode: str, held_as: str, core: str) -> Early:
    """Return the conversion from Dst of a mode to the packer's intermediate format `held_as`, on the architecture
    `core`. Raises UnsupportedError for one that the packer lacks."""
    if mode == "int32":
        mode = "fp32"
    if (mode, held_as) == ("fp32", "Tf32"):
        if core == "blackhole":
            return _TF32
        return _TF32_FOR_FP16
    if (mode, held_as) in _EARLY:
        return _EARLY[mode, held_as]
    raise UnsupportedError(f"Dst in {mode} to intermediate {held_as}: the packer has no such conversion")


@lru_cache(maxsize=256)
def _exponent_change(held_as: str, out: str) -> int:
    """Return how exponents change from the intermediate format `held_as` to the output format `out`: `_NARROW` (8 to 5
    bits), `_WIDEN` or `_WIDEN_KEEPING_DENORMALS` (5 to 8), `_FLUSH` (denormals become zeros), or 0 for not at all
    (4.4)."""
    narrow = held_as in ("Float16", "Bfp8")
    narrow_out = FORMATS[out].family != "b"
    if narrow == narrow_out:
        if held_as == "Float32" and is_block(out):
            return _FLUSH
        return 0
    if narrow_out:
        return _NARROW
    if out in ("Float32", "Tf32"):
        return _WIDEN_KEEPING_DENORMALS
    return _WIDEN


@kernel
def pack_floats(
    start: int, stop: int, dst: NDArray[np.uint32], up: int, early: Early, late: Late, images: Images
) -> None:
    """Write tiles start to stop - 1 of floats in Dst, uint32[n, 1024], to `images`, by the steps `early` and `late` of
    the packer. A shift left by `up` first brings a datum to the top of its word."""
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
            _apply_relu(row, relu_mode, U(limit))
        if change == _NARROW:
            _narrow_to_fp16(row)
        elif change == _FLUSH:
            _flush_denormals(row)
        elif change != 0:
            _widen_from_fp16(row, change == _WIDEN_KEEPING_DENORMALS)
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
            _write_e4m3(row, bytes_[tile])


@kernel
def pack_integers(
    start: int, stop: int, dst: NDArray[np.uint32], limit: int, above: int, sign_place: int, images: Images
) -> None:
    """Write tiles start to stop - 1 of integers in Dst, uint32[n, 1024] in sign and magnitude, to `images`. Magnitudes
    are clamped to `limit`; those up to `above` become 0. `sign_place` is the sign's bit in a datum; where it is 0,
    negatives become 0."""
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
            if size <= least:
                size = U(0)
            negative = U(0)
            if sign_place != 0:
                negative = U(size | U(U(1) << place))
            if x >= _SIGN:
                size = negative
            row[i] = size
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
def _apply_relu(row: Any, mode: Any, limit: Any) -> None:
    """Apply relu to a row of words in place: negatives become 0; in mode 2 also words up to `limit`; in mode 3 words
    whose upper 19 bits are above `limit` become `limit` (4.3)."""
    if mode == 3:
        for i in range(_ROW):
            x = row[i]
            clipped = x
            if U(x & U(0xFFFFE000)) > limit:
                clipped = limit
            if x >= _SIGN:
                clipped = U(0)
            row[i] = clipped
    else:
        bound = U(0)
        if mode == 2:
            bound = limit
        for i in range(_ROW):
            x = row[i]
            if (x >= _SIGN) | (x <= bound):
                x = U(0)
            row[i] = x


@helper
def _widen_from_fp16(row: Any, denormals: Any) -> None:
    """Convert a row of fp16, in the upper half of each word, to fp32 in place. A datum with exponent 0 becomes a
    denormal of the same bits with `denormals`, else +0 (4.4)."""
    for i in range(_ROW):
        x = row[i]
        size = U(U(x & _MAGNITUDE) >> U(3))
        wide = U(U(x & _SIGN) | U(size + U(0x38000000)))
        small = U(0)
        if denormals:
            small = U(U(x & _SIGN) | size)
        if size < U(0x00800000):
            wide = small
        row[i] = wide


@helper
def _flush_denormals(row: Any) -> None:
    """Replace the words of a row that have exponent 0 by +0, in place."""
    for i in range(_ROW):
        x = row[i]
        if U(x & _MAGNITUDE) < U(HIDDEN):
            x = U(0)
        row[i] = x


@helper
def _narrow_to_fp16(row: Any) -> None:
    """Convert a row of fp32 to fp16 in the upper half of each word, in place and truncated: below fp16's exponents to a
    signed zero, above them to 0x7fff with the sign (4.4)."""
    for i in range(_ROW):
        x = row[i]
        size = U(x & _MAGNITUDE)
        code = U(U(size - U(0x38000000)) << U(3))
        if size < U(0x38000000):
            code = U(0)
        if size >= U(0x48000000):
            code = U(0x7FFF0000)
        row[i] = U(U(U(x & _SIGN) | code) & U(0xFFFF0000))


@helper
def _write_e4m3(row: Any, out: Any) -> None:
    """Write to `out`, uint8[1024], a row of fp16, in the upper half of each word, as Fp8_e4m3, truncated: exponents too
    small give a signed zero, those too large 0x7f with the sign (4.4)."""
    for i in range(_ROW):
        x = U(row[i] >> U(16))
        e = U(U(x >> U(10)) & U(31))
        code = U(U(U(x >> U(7)) & U(0xFF)) - U(64))
        if e <= U(8):
            code = U(0)
        if e >= U(24):
            code = U(0x7F)
        out[i] = np.uint8(U(U(U(x >> U(8)) & U(0x80)) | code))
