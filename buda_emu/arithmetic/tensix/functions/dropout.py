"""Dropout: random words of the vector lanes, and what they do to a value (DEVICE_NUMERICS 3.3, 6.3).

Every lane has a 16-bit Galois shift register, stepped after each pass of 32 datums; its state runs on over faces, tiles
and epochs until it is seeded again.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.formats.bits import U32
from buda_emu.arithmetic.tensix.functions.elementary import multiply
from buda_emu.arithmetic.tensix.functions.vector_unit import V, VectorUnit
from buda_emu.arithmetic.tensix.lanes import VectorMode, lane_positions, touched_mask

LANES: Final = 32
TAPS: Final = 0xB400
State = NDArray[np.uint32]
"""uint32[32]: the shift register of each lane."""


def seed_registers(seed: int, placement: tuple[int, int] = (0, 0)) -> State:
    """Return the registers after `seed` was loaded on the core at NOC coordinates (x, y); only 16 bits of the seed
    count."""
    x, y = placement
    lane = np.arange(LANES, dtype=np.uint32)
    return (lane * np.uint32(2) << np.uint32(10)) ^ np.uint32((seed ^ x << y) & 0xFFFF)


def step_registers(state: State) -> State:
    """Return the registers one step further."""
    return state >> np.uint32(1) ^ np.where(state & np.uint32(1) != 0, np.uint32(TAPS), np.uint32(0))


def random_words(state: State, tiles: int, vector: VectorMode = "rc") -> tuple[U32, State]:
    """Return the random word of each datum, uint32[tiles, 32, 32] with rows and columns as usual, and the registers
    afterwards."""
    words = np.zeros((tiles, 32, 32), dtype=np.uint32)
    reached = touched_mask(vector)
    for tile in words:
        for rows, columns in passes():
            if reached[rows[0], columns[0]]:
                tile[rows, columns] = state
                state = step_registers(state)
    return words, state


def passes() -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Return rows and columns in the tile of the 32 lanes, for each of the 32 passes over the four faces in order."""
    places: list[tuple[NDArray[np.intp], NDArray[np.intp]]] = []
    for face in range(4):
        for rows, columns in map(lane_positions, range(8)):
            places.append((rows + 16 * (face >> 1), columns + 16 * (face & 1)))
    return places


def threshold(probability: float) -> int:
    """Return the random word below which a datum is dropped."""
    return int(probability * 65535)


def dropout(u: VectorUnit[V], x: V, random: V, scale: int, below: int) -> V:
    """Return x * scale, or 0 where the random word is less than `below`; `scale` is a pattern with the lower half
    zero."""
    return u.select(u.less(random, below), 0, multiply(u, x, scale))
