"""Tiles as bytes: header, exponent section, datums in face order, trailer (FORMATS 2)."""

from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.formats.bits import F32, Codes
from buda_emu.arithmetic.formats.codecs import BLOCK_CODECS, SCALAR_CODECS, Rounding, pack_codec
from buda_emu.spec.formats import BLOCK_DATUMS, FORMATS, TILE_HEADER_BYTES, exponent_bytes, is_raw, tile_bytes
from buda_emu.support.errors import HostError

TILE_SIDE: Final = 32  # rows and columns of a full tile (LAYOUT 2)
FACE_SIDE: Final = 16  # of a face, four of which make a tile (LAYOUT 2)
Bytes = NDArray[np.uint8]
_T = TypeVar("_T", bound=np.generic)


def pack_tiles(
    name: str,
    tiles: F32,
    tile_dim: tuple[int, int] = (TILE_SIDE, TILE_SIDE),
    alignment: int = 32,
    header: bool = True,
    rounding: Rounding = "nearest",
) -> Bytes:
    """Return the memory image uint8[n, bytes of a tile] of each tile of float32[n, 32, 32] in the format `name`
    (FORMATS 2).

    Of a tile smaller than 32x32 the upper left part is stored. With `header` 16 bytes with the tile's size stand in
    front, and zeros fill the image up to a multiple of `alignment` bytes. RawUInt* tiles are one linear run (megarow)
    of the tile's first height*width datums, the others go face by face. `rounding` is for block formats.
    """
    datums = _to_memory_order(name, tiles, tile_dim)
    block = BLOCK_CODECS.get(name)
    if block is None:
        payload = _bytes_of(pack_codec(name).encode(datums))
    else:
        exponents, codes = block.encode(_exponent_groups(datums), rounding)
        section = np.zeros((len(tiles), exponent_bytes(name, *tile_dim)), dtype=np.uint8)
        section[:, : exponents.shape[1]] = exponents
        payload = np.concatenate((section, _join_subwords(codes.reshape(datums.shape), FORMATS[name].bits)), axis=1)
    if not header:
        return payload
    size = tile_bytes(name, *tile_dim, alignment, header=True)
    image = np.zeros((len(tiles), size), dtype=np.uint8)
    image[:, :4] = _header_word(size)
    image[:, TILE_HEADER_BYTES : TILE_HEADER_BYTES + payload.shape[1]] = payload
    return image


def unpack_tiles(
    name: str,
    image: Bytes,
    tile_dim: tuple[int, int] = (TILE_SIDE, TILE_SIDE),
    alignment: int = 32,
    header: bool = True,
) -> F32:
    """Return the tiles float32[n, 32, 32] of memory images uint8[n, bytes of a tile], as `pack_tiles` makes them;
    elements outside of a small tile are +0.

    Raises HostError when an image has another size than the format's tile, or a header that states another size.
    """
    size = tile_bytes(name, *tile_dim, alignment, header)
    if image.ndim != 2 or image.shape[1] != size:
        raise HostError(f"a {name} tile of {_dim_text(tile_dim)} has {size} bytes, not an image of {image.shape}")
    start = 0
    if header:
        if (image[:, :4] != _header_word(size)).any():
            raise HostError(f"the header of a {name} tile does not state its size of {size} bytes")
        start = TILE_HEADER_BYTES
    first_datum = start + exponent_bytes(name, *tile_dim)
    stored = image[:, first_datum : first_datum + tile_dim[0] * tile_dim[1] * FORMATS[name].bits // 8]
    block = BLOCK_CODECS.get(name)
    if block is None:
        return _from_memory_order(name, SCALAR_CODECS[name].decode(_codes_of(stored, FORMATS[name].bits)), tile_dim)
    groups = _exponent_groups(_split_subwords(stored, FORMATS[name].bits))
    exponents = image[:, start : start + groups.shape[1]]
    return _from_memory_order(
        name, block.decode(exponents, groups).reshape(len(image), tile_dim[0] * tile_dim[1]), tile_dim
    )


def pack_datums(name: str, values: F32) -> Bytes:
    """Return the bytes, uint8[size], of float32 elements of any shape in row-major order, as flat and untilized queues
    hold them (LAYOUT 3.3, 3.4). Only formats with whole bytes for each element (`FormatSpec.flat_bytes`) have them."""
    return _bytes_of(SCALAR_CODECS[name].encode(values)).reshape(-1)


def unpack_datums(name: str, stored: Bytes) -> F32:
    """Return the elements float32[count] of bytes that `pack_datums` wrote, in their order."""
    return SCALAR_CODECS[name].decode(_codes_of(stored, FORMATS[name].bits))


def _to_memory_order(name: str, tiles: F32, tile_dim: tuple[int, int]) -> F32:
    """Return tiles float32[n, 32, 32] of format `name` as datums float32[n, height*width] in the order of memory: face
    by face, raw words in one run."""
    height, width = tile_dim
    if is_raw(name):
        return tiles.reshape(len(tiles), TILE_SIDE * TILE_SIDE)[:, : height * width]
    face_h = min(FACE_SIDE, height)
    face_w = min(FACE_SIDE, width)
    part = tiles[:, :height, :width].reshape(len(tiles), height // face_h, face_h, width // face_w, face_w)
    return part.swapaxes(2, 3).reshape(len(tiles), height * width)


def _from_memory_order(name: str, datums: F32, tile_dim: tuple[int, int]) -> F32:
    """Return datums float32[n, height*width] of format `name` in the order of memory as tiles float32[n, 32, 32], with
    +0 outside of a small tile."""
    height, width = tile_dim
    tiles = np.zeros((len(datums), TILE_SIDE, TILE_SIDE), dtype=np.float32)
    if is_raw(name):
        tiles.reshape(len(datums), TILE_SIDE * TILE_SIDE)[:, : height * width] = datums
        return tiles
    face_h = min(FACE_SIDE, height)
    face_w = min(FACE_SIDE, width)
    faces = datums.reshape(len(datums), height // face_h, width // face_w, face_h, face_w)
    tiles[:, :height, :width] = faces.swapaxes(2, 3).reshape(len(datums), height, width)
    return tiles


def _exponent_groups(datums: NDArray[_T]) -> NDArray[_T]:
    """Return datums [n, k] as [n, k/16, 16]: groups that share an exponent."""
    return datums.reshape(len(datums), datums.shape[1] // BLOCK_DATUMS, BLOCK_DATUMS)


def _join_subwords(codes: Bytes, bits: int) -> Bytes:
    """Return codes uint8[n, k] of 8, 4 or 2 `bits` joined to bytes uint8[n, k*bits/8], the first code in the lowest
    bits."""
    per_byte = 8 // bits
    lanes = codes.reshape(len(codes), codes.shape[1] // per_byte, per_byte)
    joined = lanes[:, :, 0].copy()
    for lane in range(1, per_byte):
        joined |= lanes[:, :, lane] << (lane * bits)
    return joined


def _split_subwords(stored: Bytes, bits: int) -> Bytes:
    """Return the codes of 8, 4 or 2 `bits` in bytes uint8[n, k], the first code from the lowest bits: uint8[n,
    k*8/bits]."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    codes = (stored[:, :, np.newaxis] >> shifts) & np.uint8((1 << bits) - 1)
    return codes.reshape(len(stored), stored.shape[1] * len(shifts))


def _bytes_of(codes: Codes) -> Bytes:
    """Return codes uint8/16/32[n, k] as little-endian bytes uint8[n, k times the bytes of a code]."""
    little = np.ascontiguousarray(codes, dtype=codes.dtype.newbyteorder("<"))
    return little.view(np.uint8)


def _codes_of(stored: Bytes, bits: int) -> Codes:
    """Return little-endian bytes as codes of `bits` bits, uint8/16/32, along the last axis."""
    dtype = np.dtype(f"<u{bits // 8}")
    return np.ascontiguousarray(stored).view(dtype).astype(dtype.newbyteorder("="))


def _header_word(size: int) -> Bytes:
    """Return word 0 of the header of a tile of `size` bytes, as bytes; words 1 to 3 are zero."""
    return np.frombuffer((size // 16).to_bytes(4, "little"), dtype=np.uint8)


def _dim_text(tile_dim: tuple[int, int]) -> str:
    """Return a tile dim as text, rows first."""
    return f"{tile_dim[0]}x{tile_dim[1]}"
