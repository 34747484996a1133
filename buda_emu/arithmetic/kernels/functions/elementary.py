"""The SFPU functions that need nothing but arithmetic, in place on a region of every tile (OPS 5).

A region is `runs` runs of `length` elements that start 32 apart: (1, 1024) is a whole tile, (1, 128) its first four
rows, (32, 16) its first sixteen columns (OPS 5.2). Dropout has a fixed pattern (OPS 5.1): every tile draws from a fresh
std::mt19937 with its default seed.
"""

from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.jit.kernel import kernel
from buda_emu.arithmetic.jit.thread_team import claim_items
from buda_emu.arithmetic.kernels.tiles.tile_memory import TILE, Tensor

# Codes of the functions; only that they differ counts.
ABS: Final = 0
SQUARE: Final = 1
SQRT: Final = 2
RECIPROCAL: Final = 3
POWER: Final = 4
LRELU: Final = 5

_LARGEST_INVERSE: Final = np.float32(8388608.0)  # 1 / eps, the inverse of zero
_NAN: Final = np.float32(np.nan)


Region: TypeAlias = tuple[int, int]
"""Runs, and their length."""


@kernel
def elementary_tiles(
    start: int,
    stop: int,
    tiles: Tensor,
    region: Region,
    failed: NDArray[np.bool_],
    code: int,
    slope: np.float32,
    exponent: int,
) -> None:
    """Apply the function of `code`, ABS to LRELU, in place to the region of tiles start to stop - 1 of float32[w, n,
    1024], counted over all w. `slope` is that of LRELU for elements of 0 and less, `exponent` that of POWER.

    failed: bool[w * n], set for a tile with an element that the reference would abort on: a square root of NaN or of a
    negative value, a reciprocal that is NaN or -inf. Square roots and reciprocals that are NaN have always the same
    bits. The reciprocal of a zero is 2^23.
    """
    n = tiles.shape[1]
    (runs, length) = region
    for index in claim_items(start, stop):
        entry = index // n
        tile = tiles[entry, index - entry * n]
        failures = 0
        # The loops stand here: helpers that take a part of a tile count references, half the time of the quick ones.
        for run in range(runs):
            part = tile[32 * run : 32 * run + length]
            if code == ABS:
                for k in range(length):
                    part[k] = abs(part[k])
            elif code == SQUARE:
                for k in range(length):
                    part[k] = part[k] * part[k]
            elif code == SQRT:
                for k in range(length):
                    x = part[k]
                    failures += not x >= np.float32(0)
                    part[k] = np.sqrt(x) if x >= np.float32(0) else _NAN
            elif code == RECIPROCAL:
                for k in range(length):
                    x = part[k]
                    inverse = np.float32(1) / x if x != np.float32(0) else _LARGEST_INVERSE
                    failures += not inverse > np.float32(-np.inf)
                    part[k] = inverse if inverse == inverse else _NAN
            elif code == POWER:
                for k in range(length):
                    power = np.float32(1)
                    for _ in range(exponent):
                        power = part[k] * power
                    part[k] = power
            else:
                for k in range(length):
                    x = part[k]
                    factor = slope
                    if x > np.float32(0):
                        factor = np.float32(1)
                    part[k] = x * factor
        if failures:
            failed[index] = True


@kernel
def dropout_tiles(
    start: int, stop: int, tiles: Tensor, region: Region, keep: NDArray[np.float32], scale: np.float32
) -> None:
    """Compute (keep * x) * scale in place on the region of tiles start to stop - 1 of float32[w, n, 1024], counted over
    all w. keep: float32[1024], 1 for elements that are kept, 0 for others; scale: `keep_scale` (OPS 5.1)."""
    n = tiles.shape[1]
    (runs, length) = region
    for index in claim_items(start, stop):
        entry = index // n
        tile = tiles[entry, index - entry * n]
        for run in range(runs):
            part = tile[32 * run : 32 * run + length]
            factors = keep[32 * run : 32 * run + length]
            for k in range(length):
                part[k] = factors[k] * part[k] * scale


@kernel
def clear_outside(start: int, stop: int, tiles: Tensor, region: Region) -> None:
    """Write +0 outside the region of tiles start to stop - 1 of float32[w, n, 1024], counted over all w."""
    n = tiles.shape[1]
    (runs, length) = region
    for index in claim_items(start, stop):
        entry = index // n
        tile = tiles[entry, index - entry * n]
        for run in range(runs):
            for k in range(32 * run + length, 32 * run + 32):
                tile[k] = np.float32(0)
        for k in range(max(32 * runs, length), TILE):
            tile[k] = np.float32(0)


DEFAULT_SEED = 5489  # of std::mt19937; the netlist's `seed` is ignored


@lru_cache(maxsize=64)
def keep_mask(p: float, rows: int, columns: int) -> NDArray[np.float32]:
    """Return float32[1024], read-only, for one tile: 1 where dropout keeps an element, 0 where it drops one, 1 outside
    rows x columns. Draws go row by row over rows x columns; each takes two 32-bit outputs of the generator, low word
    first. `p`, the probability of a drop, is rounded to float32 first (OPS 5.1)."""
    # RandomState seeds MT19937 with the reference's init_genrand, and full-range 32-bit integers are its raw outputs.
    raw = np.random.RandomState(DEFAULT_SEED).randint(0, 1 << 32, size=(rows, columns, 2), dtype=np.uint32)
    low = raw[..., 0].astype(np.float64)
    high = raw[..., 1].astype(np.float64)
    u = (low + high * 2.0**32) / 2.0**64
    mask = np.ones((32, 32), np.float32)
    mask[:rows, :columns] = np.where(u < float(np.float32(p)), np.float32(0), np.float32(1))
    mask.flags.writeable = False
    return mask.reshape(-1)


def keep_scale(p: float, has_p: bool) -> np.float32:
    """Return the factor of elements that dropout keeps, 1 / (1 - p), and 1 for p = 1; 0 where the netlist has no `p`
    (`has_p`), so that everything becomes zero (OPS 5.1)."""
    if not has_p:
        return np.float32(0)
    rounded = float(np.float32(p))
    if rounded == 1.0:
        return np.float32(1)
    return np.float32(1.0 / (1.0 - rounded))
