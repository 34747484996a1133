"""Tiles as the bits of a declared format: what queues and rams hold in precision "device" (DEVICE_NUMERICS 6.1)."""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.formats.bits import F32
from buda_emu.arithmetic.formats.codecs import BLOCK_CODECS, SCALAR_CODECS, pack_codec
from buda_emu.spec.blocking import TILE_ELEMENTS
from buda_emu.spec.formats import BLOCK_DATUMS, FORMATS, is_block
from buda_emu.support.records import dataclass

GROUPS = TILE_ELEMENTS // BLOCK_DATUMS
"""Groups of 16 datums of a tile that share an exponent: the rows of its faces."""


def datum_type(df: str) -> type[np.unsignedinteger[Any]]:
    """Return the type that holds one datum: uint32, uint16 or uint8; the narrower codes of Bfp4 and Bfp2 take a byte
    each."""
    return {32: np.uint32, 16: np.uint16}.get(FORMATS[df].bits, np.uint8)


def stored_tile_bytes(df: str) -> int:
    """Return how many bytes of memory one tile of the format `df` takes as `Bits`, without header or alignment."""
    datums = TILE_ELEMENTS * np.dtype(datum_type(df)).itemsize
    if is_block(df):
        return datums + GROUPS  # a byte for each shared exponent
    return datums


def floats_for(df: str, tiles: int) -> int:
    """Return the number of float32, rounded up, whose memory has room for that many tiles as `Bits`: for pools that
    lend memory in float32."""
    return -(-tiles * stored_tile_bytes(df) // 4)


@dataclass(frozen=True, slots=True)
class Bits:
    """Tiles in the codes of the format `df`: datums [..., 1024] in natural order of rows and columns, one code each in
    the low bits, and for block formats the shared exponents uint8[..., 64] of each 16 neighbours, else None. The
    leading axes of datums and exponents are the same."""

    df: str
    datums: NDArray[np.unsignedinteger[Any]]
    exponents: NDArray[np.uint8] | None = None

    @staticmethod
    def empty(df: str, *leading: int) -> "Bits":
        """Return newly allocated tiles of the format `df` with undefined contents and these leading axes."""
        datums = np.empty((*leading, TILE_ELEMENTS), datum_type(df))
        if not is_block(df):
            return Bits(df, datums)
        return Bits(df, datums, np.empty((*leading, GROUPS), np.uint8))

    @staticmethod
    def on(memory: NDArray[Any], df: str, *leading: int) -> "Bits":
        """Return tiles with these leading axes that are views of the first bytes of flat `memory`, with its present
        contents: all datums, then all exponents."""
        memory = memory.view(np.uint8)
        tiles = prod(leading)
        kind = np.dtype(datum_type(df))
        size = tiles * TILE_ELEMENTS * kind.itemsize
        datums = memory[:size].view(kind).reshape(*leading, TILE_ELEMENTS)
        if not is_block(df):
            return Bits(df, datums)
        return Bits(df, datums, memory[size : size + tiles * GROUPS].reshape(*leading, GROUPS))

    @staticmethod
    def encode(df: str, values: F32) -> "Bits":
        """Return float32[..., 1024] in the codes of a format, as the host encodes them, block formats rounded to
        nearest (FORMATS 3, 4); of raw words their low bits."""
        with np.errstate(all="ignore"):
            block = BLOCK_CODECS.get(df)
            if block is None:
                return Bits(df, pack_codec(df).encode(values).astype(datum_type(df), copy=False))
            groups = values.reshape(*values.shape[:-1], GROUPS, BLOCK_DATUMS)
            exponents, codes = block.encode(groups, "nearest")
            return Bits(df, codes.reshape(values.shape).astype(np.uint8, copy=False), exponents.astype(np.uint8))

    def values(self) -> F32:
        """Return the values that the host reads: float32 of the datums' shape (FORMATS 3, 4); raw words viewed as
        float32."""
        if self.exponents is None:
            return SCALAR_CODECS[self.df].decode(self.datums)
        groups = self.datums.astype(np.uint8, copy=False).reshape(*self.datums.shape[:-1], GROUPS, BLOCK_DATUMS)
        return BLOCK_CODECS[self.df].decode(self.exponents, groups).reshape(self.datums.shape)

    def __len__(self) -> int:
        return len(self.datums)

    @property
    def shape(self) -> tuple[int, ...]:
        """The leading axes of datums and exponents."""
        return self.datums.shape[:-1]

    @property
    def nbytes(self) -> int:
        """The bytes of datums and exponents."""
        if self.exponents is None:
            return self.datums.nbytes
        return self.datums.nbytes + self.exponents.nbytes

    def __getitem__(self, index: Any) -> "Bits":
        """Return a part along the leading axes; a view where numpy gives one."""
        if self.exponents is None:
            return Bits(self.df, self.datums[index])
        return Bits(self.df, self.datums[index], self.exponents[index])

    def assign(self, index: Any, other: "Bits") -> None:
        """Write `other`, tiles of the same format, into the part at `index` along the leading axes."""
        self.datums[index] = other.datums
        if self.exponents is not None and other.exponents is not None:
            self.exponents[index] = other.exponents

    def rows(self) -> "Bits":
        """Return the tiles one after the other, datums [n, 1024]: views where the memory is contiguous, else copies."""
        datums = self.datums.reshape(-1, TILE_ELEMENTS)
        if self.exponents is None:
            return Bits(self.df, datums)
        return Bits(self.df, datums, self.exponents.reshape(-1, GROUPS))

    def copy(self) -> "Bits":
        """Return the same tiles in memory of their own."""
        if self.exponents is None:
            return Bits(self.df, self.datums.copy())
        return Bits(self.df, self.datums.copy(), self.exponents.copy())
