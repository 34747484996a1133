"""A sparse matrix of rows as the operands of an identity matmul: distinct tiles and an encoding (OPS 6.2)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.compiler.lower.tiles import Shape, divisors
from buda_emu.compiler.target import Target
from buda_emu.errors import UnsupportedError

_TILE_WORDS = 2048
PICKER_PAIRS = 700
"""Pairs of tiles that one row of cores takes, if there are more rows."""


@dataclass(frozen=True, slots=True)
class Picker:
    """`tiles` float32[1, grid_r * 32, n * 32] and `words` uint32[1, grid_r * 32, m * 32] for each row of cores."""

    tiles: NDArray[np.float32]
    words: NDArray[np.uint32]
    tile_bits: int
    ublock_bits: int


def make_picker(matrix: Sparse, t: int, rows: int, grid_rows: int) -> Picker:
    """For a result of t slices of `rows` tile rows, divided over `grid_rows` rows of cores; ublocks are one tile high
    and u_kt is 1. Rows of the matrix count through t. Raises UnsupportedError when it does not fit 16-bit words."""
    block = rows // grid_rows
    out_tile, in_tile = matrix.row // 32, matrix.col // 32
    b, row = out_tile // rows, out_tile % rows
    core = row // block
    # Entries by core, slice, activation row, row of the result: the order of the stream.
    order = np.lexsort((matrix.col, matrix.row, row, in_tile, b, core))
    key = np.stack([core, b, in_tile, row % block])[:, order]
    place = ((matrix.row % 32) * 32 + matrix.col % 32)[order]
    weight = matrix.weight[order]
    first = np.ones(order.size, bool)
    first[1:] = (key[:, 1:] != key[:, :-1]).any(0)
    starts = np.flatnonzero(first)
    group = np.cumsum(first) - 1
    dense = np.zeros((starts.size, 1024), np.float32 if (weight != 1).any() else np.uint8)
    np.add.at(dense, (group, place), weight.astype(dense.dtype))
    heads = key[:, starts]
    found_tiles: list[NDArray[np.float32]] = []
    streams: list[list[int]] = []
    ublock_bits = max(1, (block - 1).bit_length())
    for number in range(grid_rows):
        mine = np.flatnonzero(heads[0] == number)
        tiles, which = _distinct(dense[mine])
        found_tiles.append(tiles)
        streams.append([])
        tile_bits = max(1, (len(tiles) - 1).bit_length())
        if tile_bits + 1 > 16 or ublock_bits > 15:
            raise UnsupportedError(f"a picker of {len(tiles)} tiles and {block} rows does not fit 16-bit words")
        found_tiles[-1] = tiles
        streams[-1] = [number, *which.tolist()]
    count = max(len(tiles) for tiles in found_tiles)
    tile_bits = max(1, (count - 1).bit_length())
    words = [_stream(heads[1:, heads[0] == stream[0]], stream[1:], t, tile_bits, ublock_bits) for stream in streams]
    longest = -(-max(len(stream) for stream in words) // _TILE_WORDS)
    out_words = np.zeros((grid_rows, longest * _TILE_WORDS), np.uint16)
    out_tiles = np.zeros((grid_rows, count, 32, 32), np.float32)
    for number, (stream, tiles) in enumerate(zip(words, found_tiles, strict=True)):
        out_words[number, : len(stream)] = stream
        out_tiles[number, : len(tiles)] = tiles
    # Raw words keep the order of the host's array: tile after tile (OPS 6.10).
    return Picker(
        out_tiles.transpose(0, 2, 1, 3).reshape(1, grid_rows * 32, count * 32),
        out_words.view("<u4").reshape(1, grid_rows * 32, longest * 32),
        tile_bits,
        ublock_bits,
    )


def _distinct(dense: NDArray[np.generic]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Different tiles, and which of them each is."""
    if not len(dense):
        return np.zeros((1, 32, 32), np.float32), np.zeros(0, np.int64)
    rows = np.packbits(dense.astype(bool), axis=1) if dense.dtype == np.uint8 else dense
    rows = np.ascontiguousarray(rows)
    as_bytes = rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize))).ravel()
    _, index, which = np.unique(as_bytes, return_index=True, return_inverse=True)
    return dense[index].astype(np.float32).reshape(-1, 32, 32), which.ravel()


def _stream(heads: NDArray[np.int64], which: list[int], t: int, tile_bits: int, ublock_bits: int) -> list[int]:
    """The 16-bit words of one core. `heads`: (slice, activation row, ublock) of each tile product, in order."""
    words: list[int] = []
    strips: list[tuple[int, int, list[tuple[int, int]]]] = []
    for (b, act, ublock), tile in zip(heads.T.tolist(), which, strict=True):
        if not strips or strips[-1][:2] != (b, act) or len(strips[-1][2]) == 1000:
            strips.append((b, act, []))
        strips[-1][2].append((ublock, tile))
    used = {strip[0] for strip in strips}
    strips += [(b, 0, []) for b in range(t) if b not in used]
    strips.sort(key=lambda strip: strip[:2])
    position = 0
    last_head = -1
    for number, (b, act, entries) in enumerate(strips):
        size = 3 + 2 * len(entries)
        if position % _TILE_WORDS + size > _TILE_WORDS and last_head >= 0:
            words[last_head] |= 1 << 15
            words += [0] * (-position % _TILE_WORDS)
            position = len(words)
        last = number + 1 == len(strips) or strips[number + 1][0] != b
        last_head = len(words) + 1
        words += [act & 0xFFFF, (act >> 16) | (last << 14), len(entries)]
        for ublock, tile in entries:
            words += [(1 << ublock_bits) | ublock, tile << (16 - tile_bits)]
        position = len(words)
    return words


def picker_rows(target: Target, matrix: Sparse, shape: Shape) -> int:
    """Rows of cores for an identity matmul: each holds its own tiles and encoding, so many pairs need many."""
    pairs = np.unique((matrix.row // 32) * (matrix.shape[1] // 32 + 1) + matrix.col // 32).size
    fits = [n for n in divisors(shape[1]) if n <= target.arch.grid[0]]
    return next((n for n in fits if pairs / n <= PICKER_PAIRS), fits[-1])
