"""Writing the encodings of identity matmuls (OPS 6.2): what `buda_emu.emulator.ops.matmul_sparse` reads."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from buda_emu.emulator.ops.base import PlannedOp
from buda_emu.emulator.ops.matmul_sparse import Encoding, encoding, split

Position = tuple[int, int, int]  # row in the ublock, inner index, sparse tile


@dataclass
class Strip:
    """One strip: its index, its ublocks as (ublock row, tiles), and its two flags."""

    index: int
    ublocks: Sequence[tuple[int, Sequence[Position]]] = ()
    last_of_t: bool = False
    last_in_tile: bool = field(default=False, compare=False)

    def words(self, code: Encoding) -> list[int]:
        """The strip as 16-bit words."""
        head = self.index | self.last_of_t << 30 | self.last_in_tile << 31
        found = [head & 0xFFFF, head >> 16, len(self.ublocks)]
        for ublock, tiles in self.ublocks:
            count = len(tiles) % (1 << (16 - code.ublock_bits))
            found.append(count << code.ublock_bits | ublock)
            for row, inner, tile in tiles:
                found.append(tile << (16 - code.tile_bits) | row << code.inner_bits | inner)
        return found


def stream(strips: Sequence[Strip], code: Encoding, tiles: int) -> NDArray[np.uint16]:
    """The words of a core in `tiles` encoding tiles; a strip that would cross a tile's end starts the next one."""
    words: list[int] = []
    for number, strip in enumerate(strips):
        words += strip.words(code)
        following = strips[number + 1].words(code) if number + 1 < len(strips) else []
        room = -len(words) % 2048
        if len(following) > room or strip.last_in_tile:
            strip.last_in_tile = True
            words[-len(strip.words(code)) :] = strip.words(code)
            words += [0] * room
    assert len(words) <= tiles * 2048, "the encoding does not fit its tiles"
    return np.array(words + [0] * (tiles * 2048 - len(words)), np.uint16)


def random_strips(rng: np.random.Generator, code: Encoding, t: int, tiles: int) -> list[Strip]:
    """Strips for `t` slices, some empty, tiles and ublocks left out at random, for `tiles` tiles of words."""
    places = [(row, inner) for row in range(code.ublock_rows) for inner in range(code.u_kt)]
    strips: list[Strip] = []
    for _ in range(t):
        for _ in range(int(rng.integers(1, 4))):
            ublocks: list[tuple[int, list[Position]]] = []
            for ublock in np.flatnonzero(rng.integers(0, 3, code.mblock_rows)):
                chosen = [place for place in places if rng.integers(0, 2)] or places[-1:]
                terms = [(row, inner, int(rng.integers(code.weights))) for row, inner in chosen]
                ublocks.append((int(ublock), terms))
            index = int(rng.integers(code.act_rows // code.u_kt))
            strips.append(Strip(index, ublocks))
        strips[-1].last_of_t = True
    if tiles > 1:
        strips[int(rng.integers(len(strips)))].last_in_tile = True
    return strips


def encoding_tiles(call: PlannedOp, cores: dict[tuple[int, int], Sequence[Strip]]) -> NDArray[np.float32]:
    """One entry of in2, float32[t, R, C, 32, 32], from the strips of every (grid row, column group)."""
    parts, code = split(call), encoding(call)
    t, rows, cols = call.operands[2].map.shape
    words = np.zeros((t, rows, cols, 2048), np.uint16)
    for (grid_row, group), strips in cores.items():
        part = words[:, grid_row * parts.encoding_rows :, group * parts.encoding_cols :]
        part = part[:, : parts.encoding_rows, : parts.encoding_cols]
        part[:] = stream(strips, code, part[..., 0].size).reshape(part.shape)
    return words.view(np.float32).reshape(t, rows, cols, 32, 32)


def random_encodings(call: PlannedOp, rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """A different encoding for each entry of in2, float32[w, t, R, C, 32, 32]."""
    parts, code, t = split(call), encoding(call), call.blocking.t
    tiles = call.operands[2].map.shape[0] * parts.encoding_rows * parts.encoding_cols
    cells = [(grid_row, group) for grid_row in range(parts.grid_rows) for group in range(parts.groups)]
    entries = [
        encoding_tiles(call, {cell: random_strips(rng, code, t, tiles) for cell in cells}) for _ in range(shape[0])
    ]
    return np.stack(entries).reshape(shape)
