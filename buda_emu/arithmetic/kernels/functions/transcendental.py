"""The SFPU functions that rest on the C library, in place on a region of every tile (OPS 5).

A region is `runs` runs of `length` elements that start 32 apart: (1, 1024) is a whole tile, (1, 128) its first four
rows, (32, 16) its first sixteen columns (OPS 5.2). Each function has a scalar form, which defines it, and a kernel of
its own, so that only what a program uses is compiled.

Some have a *short way*, in double precision and without branches, so that a loop becomes vector code. It encloses the
result between two numbers; where they round to the same single, that is the result of the definition, else the short
way returns NaN, and the definition is called.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from buda_emu.arithmetic.jit.kernel import helper, kernel
from buda_emu.arithmetic.jit.thread_team import claim_items
from buda_emu.arithmetic.kernels.fma import fma
from buda_emu.arithmetic.kernels.functions.elementary import Region
from buda_emu.arithmetic.kernels.functions.libm.exp import exp
from buda_emu.arithmetic.kernels.functions.libm.expf import STEPS, expf, steps_of_e
from buda_emu.arithmetic.kernels.functions.libm.logf import logf
from buda_emu.arithmetic.kernels.functions.libm.sincosf import LARGE, cosf, cosf_small, sinf, sinf_small
from buda_emu.arithmetic.kernels.functions.libm.tanh import tanh
from buda_emu.arithmetic.kernels.functions.libm.tanhf import tanhf
from buda_emu.arithmetic.kernels.tiles.tile_memory import Tensor

LARGEST: Final = np.finfo(np.float32).max
EXP_MARGIN: Final = 2.0**-48  # relative
_P1, _P2, _P4, _P8, _P16 = (2.0 ** (step / STEPS) for step in (1, 2, 4, 8, 16))


@helper
def exp_or_nan(x: np.float32) -> np.float32:
    """Return `exp_scalar` of x, computed in double precision without branches as two bounds; NaN where they round
    differently and so do not decide the last bit, and for NaN."""
    m, rest = steps_of_e(np.float64(x))
    low = _power_if_set(m, 1, _P1) * _power_if_set(m, 2, _P2)
    high = _power_if_set(m, 4, _P4) * _power_if_set(m, 8, _P8)
    entry = np.float64(low * (high * _power_if_set(m, 16, _P16)))
    y = rest * np.int64(entry.view(np.int64) + ((m >> 5) << 52)).view(np.float64)
    below = np.float32(y * (1.0 - EXP_MARGIN))
    above = np.float32(y * (1.0 + EXP_MARGIN))
    if (below != above) | (x != x):
        return np.float32(np.nan)
    if below < LARGEST:
        return below
    return LARGEST


@helper
def _power_if_set(m: np.int64, bit: int, power: float) -> float:
    """Return `power` if `bit` is set in `m`, else 1. A choice becomes vector code, reading a table does not."""
    if m & bit:
        return power
    return 1.0


GELU_MARGIN: Final = 2.0**-42  # relative, of 1 + tanh and of the bell

GELU_SCALE: Final = float.fromhex("0x1.9884533d4365p-1")  # sqrt(2 / pi)
_POWER_SCALE: Final = -2 * GELU_SCALE
_CUBE_SCALE: Final = 0.044715 * _POWER_SCALE
_LOG2_E: Final = float.fromhex("0x1.71547652b82fep+0")
_LN2: Final = float.fromhex("0x1.62e42fefa39efp-1")
_ROUNDER: Final = 1.5 * 2.0**52  # rounds what is added to it to an integer, in the low bits of the sum
_BIAS: Final = 1023  # of exponents of double precision
# e^r = 1 + r + C2 r^2 + ... + C9 r^9 for magnitudes up to ln 2 / 2: fitted for the smallest relative error.
_C2: Final = float.fromhex("0x1.ffffffffeca61p-2")
_C3: Final = float.fromhex("0x1.5555555569a69p-3")
_C4: Final = float.fromhex("0x1.55555585103c0p-5")
_C5: Final = float.fromhex("0x1.111110dedabacp-7")
_C6: Final = float.fromhex("0x1.6c162f31daa0dp-10")
_C7: Final = float.fromhex("0x1.a01a7a991b2fdp-13")
_C8: Final = float.fromhex("0x1.a17bf0ea13ce2p-16")
_C9: Final = float.fromhex("0x1.71f3d9e996ec7p-19")
_LEAST_POWER: Final = -60.0  # 1 less 2 e^-60 is 1
_LEAST_BELL: Final = -700.0  # from here on down x e^.. is the zero of its sign
_NO_BELL: Final = -745.0  # about here e^.. becomes 0 in the definition


@helper
def gelu_or_nan(x: np.float32) -> np.float32:
    """Return `gelu_scalar` of x, computed in double precision without branches as two bounds; NaN where they round
    differently and so do not decide the last bit."""
    wide = np.float64(x)
    low, high = _one_plus_tanh(wide)
    below = np.float32(0.5 * wide * low)
    above = np.float32(0.5 * wide * high)
    if below == above:
        return below
    return np.float32(np.nan)


@helper
def gelu_derivative_or_nan(x: np.float32) -> np.float32:
    """Return `gelu_derivative_scalar` of x, computed in double precision without branches as two bounds; NaN where they
    round differently and so do not decide the last bit."""
    wide = np.float64(x)
    half = -0.5 * (wide * wide)
    bell = _exp_nearly(_at_least(_LEAST_BELL, half))
    if not half > _NO_BELL:
        bell = np.float64(0.0)
    slope = 0.5 * GELU_SCALE * wide * bell
    size = abs(slope)
    low, high = _one_plus_tanh(wide)
    below = np.float32(fma(0.5, low, fma(size, -GELU_MARGIN, slope)))
    above = np.float32(fma(0.5, high, fma(size, GELU_MARGIN, slope)))
    if (below == above) & (abs(half - _NO_BELL) > 1.0):
        return below
    return np.float32(np.nan)


@helper
def _one_plus_tanh(x: np.float64) -> tuple[float, float]:
    """Return two numbers that enclose 1 + tanh u, where u is the argument of tanh in gelu's definition: 2 / (1 + p), or
    2 p / (1 + p) for x <= 0, with p = e^(-2 |u|)."""
    v = abs(x) * fma(x * x, _CUBE_SCALE, _POWER_SCALE)  # below 0
    p = _exp_nearly(_at_least(_LEAST_POWER, v))
    numerator = 2.0 * p
    if x > 0.0:
        numerator = 2.0
    d = numerator / (1.0 + p)
    return 1.0 - fma(d, GELU_MARGIN - 1.0, 1.0), 1.0 - fma(d, -GELU_MARGIN - 1.0, 1.0)


@helper
def _at_least(least: float, v: float) -> np.float64:
    """Return v, or `least` if v is less or NaN."""
    if v > least:
        return np.float64(v)
    return np.float64(least)


@helper
def _exp_nearly(v: np.float64) -> np.float64:
    """Return e^v for -700 <= v <= 700, as near as the margins GELU_MARGIN need."""
    rounded = np.float64(fma(v, _LOG2_E, _ROUNDER + _BIAS))
    n = rounded - (_ROUNDER + _BIAS)
    r = fma(n, -_LN2, v)
    r2 = r * r
    r4 = r2 * r2
    # in pairs, so that the processor may work on several at once
    a = fma(fma(_C3, r, _C2), r2, 1.0 + r)
    b = fma(fma(_C7, r, _C6), r2, fma(_C5, r, _C4))
    p = fma(fma(fma(_C9, r, _C8), r4, b), r4, a)
    return p * np.int64(rounded.view(np.int64) << 52).view(np.float64)


_EPSILON: Final = np.float32(2.0**-23)  # of single precision, the distance from 1 to the next number


@kernel
def exp_scalar(x: np.float32) -> np.float32:
    """Return e^x, at most the largest float32, which NaN gets as well."""
    power = expf(x)
    if power < LARGEST:
        return power
    return LARGEST


@kernel
def log_scalar(x: np.float32) -> np.float32:
    """Return the natural logarithm of x; a zero of either sign counts as 2^-23."""
    if x == np.float32(0):
        x = _EPSILON
    return logf(x)


@kernel
def sigmoid_scalar(x: np.float32) -> np.float32:
    """Return 1 / (1 + e^-x), computed in double precision; never 0, as e^-x is at most the largest float32."""
    return np.float32(1.0 / (1.0 + np.float64(exp_scalar(-x))))


@kernel
def gelu_scalar(x: np.float32) -> np.float32:
    """Return x times the distribution function of the normal distribution, by the tanh approximation, computed in
    double precision."""
    wide = np.float64(x)
    return np.float32(0.5 * wide * (1.0 + _gelu_tanh(wide)))


@kernel
def gelu_derivative_scalar(x: np.float32) -> np.float32:
    """Return the derivative of gelu: the distribution function by the tanh approximation, plus x times the exact
    density, computed in double precision."""
    wide = np.float64(x)
    return _gelu_derivative(wide, exp(np.float64(-0.5 * (wide * wide))))


@helper
def _gelu_derivative(x: np.float64, bell: np.float64) -> np.float32:
    """Return the derivative of gelu at x; `bell` is e^(-x^2 / 2)."""
    return np.float32(0.5 * (1.0 + _gelu_tanh(x)) + x * bell * (0.5 * GELU_SCALE))


@helper
def _gelu_tanh(x: np.float64) -> np.float64:
    """Return the tanh in gelu's approximation of the distribution function, tanh(sqrt(2 / pi) (x + 0.044715 x^3))."""
    # The reference's pow(x, 3) differs from this cube in the last bit of one float64 in 400; that shows in gelu and
    # gelu_derivative for none of the 2^32 float32.
    return tanh(np.float64(GELU_SCALE * (x + 0.044715 * (x * x * x))))


@helper
def _run_of_region(tiles: Tensor, index: int, runs: int, length: int) -> Tensor:
    """Return a view of one run of the region of a tile of float32[w, n, 1024]; `index` counts all runs of all w * n
    tiles."""
    n = tiles.shape[1]
    tile = index // runs
    run = index % runs
    return tiles[tile // n, tile % n, 32 * run : 32 * run + length]


@helper
def _all_below(limit: np.float32, run: Tensor) -> bool:
    """Return whether all magnitudes of a run are below `limit`: sine and cosine then use their form without branches.
    The loop has no early exit, so that it becomes vector code."""
    below = True
    for k in range(run.shape[0]):
        below &= abs(run[k]) < limit
    return below


@helper
def _apply_by_short_way(run: Tensor, line: Tensor, short_way: Any, definition: Any) -> None:
    """Replace all elements of a run by their function, in place: by `short_way`, a loop that becomes vector code, and
    by `definition` where that gives NaN. `line`, as long as the run, is memory to work in."""
    doubtful = False
    for k in range(run.shape[0]):
        y = short_way(run[k])
        line[k] = y
        doubtful |= y != y
    if doubtful:
        for k in range(run.shape[0]):
            if line[k] != line[k]:
                line[k] = definition(run[k])
    for k in range(run.shape[0]):
        run[k] = line[k]


@kernel
def exp_tiles(start: int, stop: int, tiles: Tensor, region: Region) -> None:
    """Apply `exp_scalar` in place to the region of tiles start to stop - 1 of float32[w, n, 1024], counted over all
    w."""
    runs, length = region
    line = np.empty(length, np.float32)
    for tile in claim_items(start, stop):
        for index in range(tile * runs, (tile + 1) * runs):
            run = _run_of_region(tiles, index, runs, length)
            _apply_by_short_way(run, line, exp_or_nan, exp_scalar)


@kernel
def log_tiles(start: int, stop: int, tiles: Tensor, region: Region) -> None:
    """Apply `log_scalar` in place to the region of tiles start to stop - 1 of float32[w, n, 1024], counted over all
    w."""
    runs, length = region
    for tile in claim_items(start, stop):
        for index in range(tile * runs, (tile + 1) * runs):
            run = _run_of_region(tiles, index, runs, length)
            for k in range(length):
                run[k] = log_scalar(run[k])


@helper
def _sigmoid_or_nan(x: np.float32) -> np.float32:
    """Return `sigmoid_scalar` of x without branches, or NaN where `exp_or_nan` does not decide the last bit of e^-x."""
    return np.float32(1.0 / (1.0 + np.float64(exp_or_nan(-x))))


@kernel
def sigmoid_tiles(start: int, stop: int, tiles: Tensor, region: Region) -> None:
    """Apply `sigmoid_scalar` in place to the region of tiles start to stop - 1 of float32[w, n, 1024], counted over all
    w."""
    runs, length = region
    line = np.empty(length, np.float32)
    for tile in claim_items(start, stop):
        for index in range(tile * runs, (tile + 1) * runs):
            run = _run_of_region(tiles, index, runs, length)
            _apply_by_short_way(run, line, _sigmoid_or_nan, sigmoid_scalar)


@kernel
def tanh_tiles(start: int, stop: int, tiles: Tensor, region: Region) -> None:
    """Apply `tanhf` in place to the region of tiles start to stop - 1 of float32[w, n, 1024], counted over all w."""
    runs, length = region
    for tile in claim_items(start, stop):
        for index in range(tile * runs, (tile + 1) * runs):
            run = _run_of_region(tiles, index, runs, length)
            for k in range(length):
                run[k] = tanhf(run[k])


@kernel
def gelu_tiles(start: int, stop: int, tiles: Tensor, region: Region) -> None:
    """Apply `gelu_scalar` in place to the region of tiles start to stop - 1 of float32[w, n, 1024], counted over all
    w."""
    runs, length = region
    line = np.empty(length, np.float32)
    for tile in claim_items(start, stop):
        for index in range(tile * runs, (tile + 1) * runs):
            run = _run_of_region(tiles, index, runs, length)
            _apply_by_short_way(run, line, gelu_or_nan, gelu_scalar)


@kernel
def gelu_derivative_tiles(start: int, stop: int, tiles: Tensor, region: Region) -> None:
    """Apply `gelu_derivative_scalar` in place to the region of tiles start to stop - 1 of float32[w, n, 1024], counted
    over all w."""
    runs, length = region
    line = np.empty(length, np.float32)
    for tile in claim_items(start, stop):
        for index in range(tile * runs, (tile + 1) * runs):
            run = _run_of_region(tiles, index, runs, length)
            _apply_by_short_way(run, line, gelu_derivative_or_nan, gelu_derivative_scalar)


@kernel
def sine_tiles(start: int, stop: int, tiles: Tensor, region: Region) -> None:
    """Apply `sinf` in place to the region of tiles start to stop - 1 of float32[w, n, 1024], counted over all w."""
    runs, length = region
    for tile in claim_items(start, stop):
        for index in range(tile * runs, (tile + 1) * runs):
            run = _run_of_region(tiles, index, runs, length)
            if _all_below(LARGE, run):
                for k in range(length):
                    run[k] = sinf_small(run[k])
            else:
                for k in range(length):
                    run[k] = sinf(run[k])


@kernel
def cosine_tiles(start: int, stop: int, tiles: Tensor, region: Region) -> None:
    """Apply `cosf` in place to the region of tiles start to stop - 1 of float32[w, n, 1024], counted over all w."""
    runs, length = region
    for tile in claim_items(start, stop):
        for index in range(tile * runs, (tile + 1) * runs):
            run = _run_of_region(tiles, index, runs, length)
            if _all_below(LARGE, run):
                for k in range(length):
                    run[k] = cosf_small(run[k])
            else:
                for k in range(length):
                    run[k] = cosf(run[k])


FUNCTIONS: Final[Mapping[str, tuple[Callable[..., None], Callable[[np.float32], np.float32]]]] = MappingProxyType(
    {
        "exp": (exp_tiles, exp_scalar),
        "log": (log_tiles, log_scalar),
        "sigmoid": (sigmoid_tiles, sigmoid_scalar),
        "tanh": (tanh_tiles, tanhf),
        "gelu": (gelu_tiles, gelu_scalar),
        "gelu_derivative": (gelu_derivative_tiles, gelu_derivative_scalar),
        "sine": (sine_tiles, sinf),
        "cosine": (cosine_tiles, cosf),
    }
)
