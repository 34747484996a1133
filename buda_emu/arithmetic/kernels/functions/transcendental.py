"""The SFPU functions that rest on the C library, in place on a region of every tile (OPS 5).

A region is `runs` runs of `length` elements, the starts 32 apart: (1, 1024) a whole tile, (1, 128) its first four
rows, (32, 16) its first sixteen columns (OPS 5.2). Each function has a scalar, which defines it, and a kernel of its
own, so that only what a program uses is compiled.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from buda_emu.arithmetic.jit.kernel import helper, kernel
from buda_emu.arithmetic.jit.thread_team import claimed
from buda_emu.arithmetic.kernels.functions.elementary import Region
from buda_emu.arithmetic.kernels.functions.fast import (
    GELU_SCALE,
    LARGEST,
    exp_or_nan,
    gelu_derivative_or_nan,
    gelu_or_nan,
)
from buda_emu.arithmetic.kernels.functions.libm.exp import exp
from buda_emu.arithmetic.kernels.functions.libm.expf import expf
from buda_emu.arithmetic.kernels.functions.libm.logf import logf
from buda_emu.arithmetic.kernels.functions.libm.sincosf import LARGE, cosf, cosf_small, sinf, sinf_small
from buda_emu.arithmetic.kernels.functions.libm.tanh import tanh
from buda_emu.arithmetic.kernels.functions.libm.tanhf import tanhf
from buda_emu.arithmetic.kernels.tiles.gather import Tensor

_EPSILON: Final = np.float32(2.0**-23)


@kernel
def exp_scalar(x: np.float32) -> np.float32:
    """Compute e^x, at most the largest number; that number also for NaN."""
    power = expf(x)
    return power if power < LARGEST else LARGEST


@kernel
def log_scalar(x: np.float32) -> np.float32:
    """Compute log x; for a zero of either sign log 2^-23."""
    return logf(x if x != np.float32(0) else _EPSILON)


@kernel
def sigmoid_scalar(x: np.float32) -> np.float32:
    """1 / (1 + e^-x) in double precision; never 0, as e^-x is at most the largest number."""
    return np.float32(1.0 / (1.0 + np.float64(exp_scalar(-x))))


@kernel
def gelu_scalar(x: np.float32) -> np.float32:
    """x times the distribution function of the normal distribution, by the tanh approximation, in double precision."""
    wide = np.float64(x)
    return np.float32(0.5 * wide * (1.0 + _gelu_tanh(wide)))


@kernel
def gelu_derivative_scalar(x: np.float32) -> np.float32:
    """The distribution function by the tanh approximation, plus x times the exact density, in double precision."""
    wide = np.float64(x)
    return _gelu_derivative(wide, exp(np.float64(-0.5 * (wide * wide))))


@helper
def _gelu_derivative(x: np.float64, bell: np.float64) -> np.float32:
    return np.float32(0.5 * (1.0 + _gelu_tanh(x)) + x * bell * (0.5 * GELU_SCALE))


@helper
def _gelu_tanh(x: np.float64) -> np.float64:
    # The reference's pow(x, 3) differs from this cube in the last bit of one float64 in 400; that shows in gelu and
    # gelu_derivative for none of the 2^32 float32.
    return tanh(np.float64(GELU_SCALE * (x + 0.044715 * (x * x * x))))


@helper
def _run(tiles: Tensor, index: int, runs: int, length: int) -> Tensor:
    """Return one run of the region of a tile of float32[w, n, 1024]; `index` counts all runs of all w*n tiles."""
    n = tiles.shape[1]
    tile = index // runs
    run = index % runs
    return tiles[tile // n, tile % n, 32 * run : 32 * run + length]


@helper
def _all_below(limit: np.float32, run: Tensor) -> bool:
    """Return whether all magnitudes are below the limit of a branchless form, which becomes vector code."""
    below = True
    for k in range(run.shape[0]):
        below &= abs(run[k]) < limit
    return below


@helper
def _replace(run: Tensor, line: Tensor, short_way: Any, definition: Any) -> None:
    """All elements by the short way, which becomes vector code, and by the definition where it gives a NaN."""
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
    """Apply `exp_scalar` in place to the region of each tile. Threads share the w*n tiles."""
    runs, length = region
    line = np.empty(length, np.float32)
    for tile in claimed(start, stop):
        for index in range(tile * runs, (tile + 1) * runs):
            run = _run(tiles, index, runs, length)
            _replace(run, line, exp_or_nan, exp_scalar)


@kernel
def log_tiles(start: int, stop: int, tiles: Tensor, region: Region) -> None:
    """Apply `log_scalar` in place to the region of each tile. Threads share the w*n tiles."""
    runs, length = region
    for tile in claimed(start, stop):
        for index in range(tile * runs, (tile + 1) * runs):
            run = _run(tiles, index, runs, length)
            for k in range(length):
                run[k] = log_scalar(run[k])


@helper
def _sigmoid_or_nan(x: np.float32) -> np.float32:
    return np.float32(1.0 / (1.0 + np.float64(exp_or_nan(-x))))


@kernel
def sigmoid_tiles(start: int, stop: int, tiles: Tensor, region: Region) -> None:
    """Apply `sigmoid_scalar` in place to the region of each tile. Threads share the w*n tiles."""
    runs, length = region
    line = np.empty(length, np.float32)
    for tile in claimed(start, stop):
        for index in range(tile * runs, (tile + 1) * runs):
            run = _run(tiles, index, runs, length)
            _replace(run, line, _sigmoid_or_nan, sigmoid_scalar)


@kernel
def tanh_tiles(start: int, stop: int, tiles: Tensor, region: Region) -> None:
    """Apply `tanhf` in place to the region of each tile. Threads share the w*n tiles."""
    runs, length = region
    for tile in claimed(start, stop):
        for index in range(tile * runs, (tile + 1) * runs):
            run = _run(tiles, index, runs, length)
            for k in range(length):
                run[k] = tanhf(run[k])


@kernel
def gelu_tiles(start: int, stop: int, tiles: Tensor, region: Region) -> None:
    """Apply `gelu_scalar` in place to the region of each tile. Threads share the w*n tiles."""
    runs, length = region
    line = np.empty(length, np.float32)
    for tile in claimed(start, stop):
        for index in range(tile * runs, (tile + 1) * runs):
            run = _run(tiles, index, runs, length)
            _replace(run, line, gelu_or_nan, gelu_scalar)


@kernel
def gelu_derivative_tiles(start: int, stop: int, tiles: Tensor, region: Region) -> None:
    """Apply `gelu_derivative_scalar` in place to the region of each tile. Threads share the w*n tiles."""
    runs, length = region
    line = np.empty(length, np.float32)
    for tile in claimed(start, stop):
        for index in range(tile * runs, (tile + 1) * runs):
            run = _run(tiles, index, runs, length)
            _replace(run, line, gelu_derivative_or_nan, gelu_derivative_scalar)


@kernel
def sine_tiles(start: int, stop: int, tiles: Tensor, region: Region) -> None:
    """Apply `sinf` in place to the region of each tile. Threads share the w*n tiles."""
    runs, length = region
    for tile in claimed(start, stop):
        for index in range(tile * runs, (tile + 1) * runs):
            run = _run(tiles, index, runs, length)
            if _all_below(LARGE, run):
                for k in range(length):
                    run[k] = sinf_small(run[k])
            else:
                for k in range(length):
                    run[k] = sinf(run[k])


@kernel
def cosine_tiles(start: int, stop: int, tiles: Tensor, region: Region) -> None:
    """Apply `cosf` in place to the region of each tile. Threads share the w*n tiles."""
    runs, length = region
    for tile in claimed(start, stop):
        for index in range(tile * runs, (tile + 1) * runs):
            run = _run(tiles, index, runs, length)
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
