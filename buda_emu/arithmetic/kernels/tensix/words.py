"""Tiles of register words and of Dst images as the kernels take them (`buda_emu.arithmetic.tensix.registers`), and
tiles as rows of 1024 datums.

Words and images are uint32[n, 1024]: each row of the array is a tile, its elements row by row. A kernel views them as
int32. A *word* has the layout of a single, whatever Dst holds; an *image* has the datums as Dst stores them, in the low
bits.
"""

from math import prod
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.jit.kernel import helper
from buda_emu.arithmetic.kernels.tiles.tile_memory import entry_in
from buda_emu.spec.blocking import TILE_EDGE, TILE_ELEMENTS
from buda_emu.spec.single import INFINITY, NEGATIVE_SIGN, SIGN
from buda_emu.support.errors import InternalError

Tiles: TypeAlias = NDArray[np.uint32]
Tensor: TypeAlias = NDArray[np.uint32]
"""uint32[w or 1, n, 1024] (1: the same entry for every w). What `fetch_words` reads may also be uint32[w or 1, n, 512]:
the upper halves of words whose lower ones are 0, as Float16_b lies in memory."""
Index: TypeAlias = NDArray[np.int32]
Lanes: TypeAlias = NDArray[np.int32]

EDGE: Final = TILE_EDGE
TILE: Final = TILE_ELEMENTS
FACE: Final = 16  # rows and columns of a face (LAYOUT 2)
GROUP: Final = 8
"""Products that the matrix unit sums under one exponent."""

BF16: Final = 0
FP16: Final = 1
FP32: Final = 2
MODES: Final = {"bf16": BF16, "fp16": FP16, "fp32": FP32}
"""What a float Dst holds, for the kernels' arguments."""

ROUNDING: Final = {BF16: (0x8000, -0x10000), FP16: (0x1000, -0x2000), FP32: (0, -1)}
"""By mode: half of the last place that a word of Dst has, and the mask of the bits from that place up."""

i32: Final = np.int32


class Setting(NamedTuple):
    """The settings of the matrix unit for floats: Dst holds data of `mode` (BF16, FP16 or FP32); `exponent_bits` are 5
    for operands of family A, 8 for B; `blackhole` selects that chip's arithmetic instead of Wormhole's."""

    mode: int
    exponent_bits: int
    blackhole: bool


@helper
def zero_if(condition: bool | np.bool_, word: np.int32) -> np.int32:
    """Return 0 if the condition holds, else the word. It chooses between two values without a branch, so that a loop
    over it becomes vector code."""
    if condition:
        word = i32(0)
    return word


@helper
def clip_infinity(word: np.int32) -> np.int32:
    """Return the bits of a single; with exponent field 255 (infinity, NaN) its fraction is cleared, which makes an
    infinity."""
    if i32(word & i32(INFINITY)) == i32(INFINITY):
        word = i32(word & i32(NEGATIVE_SIGN | INFINITY))
    return word


@helper
def flush(word: Any) -> Any:
    """Return the bits of a single, np.uint32; with exponent field 0 (zero, denormal) it becomes a zero of the same
    sign."""
    if np.uint32(word & np.uint32(INFINITY)) == np.uint32(0):
        return np.uint32(word & np.uint32(SIGN))
    return np.uint32(word)


@helper
def load_word(datum: np.int32, mode: int) -> np.int32:
    """Return the word of a datum of Dst, which holds data of `mode`: bf16 moves up by 16 bits, fp16 keeps its 5-bit
    exponent in the low bits of the 8-bit field, fp32 is unchanged."""
    if mode == BF16:
        return i32(datum << i32(16))
    if mode == FP16:
        return i32(i32(i32(datum & i32(0x8000)) << i32(16)) | i32(i32(datum & i32(0x7FFF)) << i32(13)))
    return datum


@helper
def store_word(word: np.int32, mode: int) -> np.int32:
    """Return the datum of Dst for a word, the inverse of `load_word`; bits that data of `mode` do not have are
    dropped."""
    if mode == BF16:
        return i32(i32(word >> i32(16)) & i32(0xFFFF))
    if mode == FP16:
        return i32(i32(i32(word >> i32(16)) & i32(0x8000)) | i32(i32(word >> i32(13)) & i32(0x7FFF)))
    return word


@helper
def clear_words(words: Lanes) -> None:
    """Write zeros to a tile's words, int32[1024]."""
    for n in range(TILE):
        words[n] = i32(0)


@helper
def load_words(words: Lanes, image: Lanes, mode: int) -> None:
    """Write to `words`, int32[1024], the words of a tile's Dst image."""
    for n in range(TILE):
        words[n] = load_word(image[n], mode)


@helper
def store_words(image: Lanes, words: Lanes, mode: int) -> None:
    """Write to `image`, int32[1024], the Dst image of a tile's words."""
    for n in range(TILE):
        image[n] = store_word(words[n], mode)


@helper
def fetch_words(out: Lanes, source: Tensor, entry: int, at: int, pad: np.uint32, transposed: bool) -> None:
    """Write to `out`, int32[1024], the words of tile `at` of entry `entry` of a tensor, transposed if asked; where `at`
    is negative, all are `pad`."""
    if at < 0:
        for n in range(TILE):
            out[n] = i32(pad)
        return
    tile = source[entry_in(source, entry), at].view(np.int32)
    if source.shape[2] == TILE // 2:
        if transposed:
            for i in range(EDGE):
                for j in range(EDGE):
                    n = EDGE * j + i
                    out[EDGE * i + j] = i32(i32(tile[n // 2] >> i32(16 * (n % 2))) << i32(16))
        else:
            for n in range(TILE // 2):
                out[2 * n] = i32(tile[n] << i32(16))
                out[2 * n + 1] = i32(tile[n] & i32(-1 << 16))
    elif transposed:
        for i in range(EDGE):
            for j in range(EDGE):
                out[EDGE * i + j] = tile[EDGE * j + i]
    else:
        for n in range(TILE):
            out[n] = tile[n]


@helper
def words_at(room: Lanes, source: Tensor, entry: int, at: int, pad: np.uint32, transposed: bool) -> Lanes:
    """Return the words of tile `at` of entry `entry` of a tensor: a view of the tensor, or `room`, int32[1024], which
    is filled where the tile is a pad, transposed or stored as halves."""
    if at < 0 or transposed or source.shape[2] < TILE:
        fetch_words(room, source, entry, at, pad, transposed)
        return room
    return source[entry_in(source, entry), at].view(np.int32)


T = TypeVar("T", bound=np.generic)


def as_rows(tiles: NDArray[T]) -> NDArray[T]:
    """Return datums [n, 32, 32] as [n, 1024], or exponents [n, 32, 2] as [n, 64], in the same memory. Raises
    InternalError for an array that is not C-contiguous, since results written to a copy of it would be lost."""
    if not tiles.flags.c_contiguous:
        raise InternalError(f"an image of {tiles.shape} is not C-contiguous")
    return tiles.reshape(len(tiles), prod(tiles.shape[1:]))


def no_tiles(kind: type[Any]) -> NDArray[Any]:
    """Return an array [0, 1024] of that type, for a parameter of a kernel that a call does not use."""
    return np.empty((0, TILE), dtype=kind)
