"""Tiles of register words and of Dst images as the kernels take them (`buda_emu.arithmetic.tensix.registers`), and
tiles as rows of 1024 datums.

Words and images are uint32[n, 1024], a tile in natural order of rows and columns in each row of the array. Inside a
kernel they are looked at as int32.
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
"""uint32[w, n, 1024]; an operand may have one entry for every w. What `fetch_words` reads may be uint32[w, n, 512]: the
upper halves of words whose lower ones are 0, as Float16_b lies in memory."""
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
    """The settings of the matrix unit for floats: a Dst of `mode`; exponents of 5 bits for operands of family A, 8 for
    B."""

    mode: int
    exponent_bits: int
    blackhole: bool


@helper
def zero_if(condition: bool | np.bool_, word: np.int32) -> np.int32:
    """Return 0 where the condition holds, else the word: a choice between two values, which becomes vector code."""
    if condition:
        word = i32(0)
    return word


@helper
def clip_infinity(word: np.int32) -> np.int32:
    """Return a word of a single, without its fraction where its exponent is that of infinities."""
    if i32(word & i32(INFINITY)) == i32(INFINITY):
        word = i32(word & i32(NEGATIVE_SIGN | INFINITY))
    return word


@helper
def flush(word: Any) -> Any:
    """Return a word of a single, np.uint32, with a denormal replaced by a zero of its sign."""
    if np.uint32(word & np.uint32(INFINITY)) == np.uint32(0):
        return np.uint32(word & np.uint32(SIGN))
    return np.uint32(word)


@helper
def load_word(datum: np.int32, mode: int) -> np.int32:
    """Return the word of a datum of a Dst image of this mode."""
    if mode == BF16:
        return i32(datum << i32(16))
    if mode == FP16:
        return i32(i32(i32(datum & i32(0x8000)) << i32(16)) | i32(i32(datum & i32(0x7FFF)) << i32(13)))
    return datum


@helper
def store_word(word: np.int32, mode: int) -> np.int32:
    """Return the datum of a Dst image of this mode that takes a word."""
    if mode == BF16:
        return i32(i32(word >> i32(16)) & i32(0xFFFF))
    if mode == FP16:
        return i32(i32(i32(word >> i32(16)) & i32(0x8000)) | i32(i32(word >> i32(13)) & i32(0x7FFF)))
    return word


@helper
def clear_words(words: Lanes) -> None:
    """Write zeros to a tile's words."""
    for n in range(TILE):
        words[n] = i32(0)


@helper
def load_words(words: Lanes, image: Lanes, mode: int) -> None:
    """Write the words of a tile's Dst image."""
    for n in range(TILE):
        words[n] = load_word(image[n], mode)


@helper
def store_words(image: Lanes, words: Lanes, mode: int) -> None:
    """Write the Dst image that takes a tile's words."""
    for n in range(TILE):
        image[n] = store_word(words[n], mode)


@helper
def fetch_words(out: Lanes, source: Tensor, entry: int, at: int, pad: np.uint32, transposed: bool) -> None:
    """Copy tile `at` of an entry of a tensor, or fill a tile with `pad` where `at` is negative."""
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
    """Return tile `at` of an entry in its own memory, or in `room` where it has to be made."""
    if at < 0 or transposed or source.shape[2] < TILE:
        fetch_words(room, source, entry, at, pad, transposed)
        return room
    return source[entry_in(source, entry), at].view(np.int32)


T = TypeVar("T", bound=np.generic)


def as_rows(tiles: NDArray[T]) -> NDArray[T]:
    """Return [n, 32, 32] datums as [n, 1024], or [n, 32, 2] exponents as [n, 64]: the same memory. Raises InternalError
    for what is not C-contiguous: results that are written to a copy would be lost."""
    if not tiles.flags.c_contiguous:
        raise InternalError(f"an image of {tiles.shape} is not C-contiguous")
    return tiles.reshape(len(tiles), prod(tiles.shape[1:]))


def none(kind: type[Any]) -> NDArray[Any]:
    """Return an image of no tiles, for a parameter that a call does not use."""
    return np.empty((0, TILE), dtype=kind)
