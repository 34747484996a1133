"""How fast the dense matrix product is against numpy's sgemm on one thread, measured in turns in the same run.

    python benchmarks/kernels/bench_matmul.py [seconds per shape]

Times are processor time of the thread, the best of all repetitions: other work on the machine disturbs them least.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when numpy is imported
os.environ["MKL_NUM_THREADS"] = "1"

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.kernels.products.matmul import AS_IT_IS, Ending, Extent, Reading, matmul_blocks, matmul_tiles
from buda_emu.emulator.memory import memory_pool as pages

sys.path.insert(0, str(Path(__file__).parents[1]))
from conditions import conditions

SHAPES = [  # in tiles: rows, inner, cols
    (16, 16, 16),
    (32, 32, 32),
    (64, 64, 64),
    (12, 12, 12),
    (4, 32, 128),
    (98, 18, 4),
    (1, 16, 16),
    (4, 2, 2),
    (1, 1, 1),
]


def tilize(matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return a matrix as float32[1, tiles, 1024], in memory of the kind that queues have."""
    rows, cols = matrix.shape
    tiles = pages.fresh(matrix.size)
    tiles.reshape(rows // 32, cols // 32, 32, 32)[...] = matrix.reshape(rows // 32, 32, cols // 32, 32).swapaxes(1, 2)
    return tiles.reshape(1, -1, 1024)


def best_of(calls: dict[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    """Return the seconds of the fastest call of each; short ones are timed several at a time."""
    best: dict[str, float] = {}
    counts: dict[str, int] = {}
    for name, call in calls.items():
        start = time.perf_counter()
        call()
        counts[name] = 1 + int(1e-3 / (time.perf_counter() - start))
    end = time.perf_counter() + seconds
    while not best or time.perf_counter() < end:
        for name, call in calls.items():
            start = time.thread_time()
            for _ in range(counts[name]):
                call()
            best[name] = min(best.get(name, np.inf), (time.thread_time() - start) / counts[name])
    return best


def measure(rows: int, inner: int, cols: int, seconds: float) -> tuple[float, dict[str, float]]:
    """Return the time of the first call, and the best times of `sgemm`, `tiles`, and `transposed`, which reads in1
    transposed inside its tiles."""
    rng = np.random.default_rng(0)
    left = rng.standard_normal((32 * rows, 32 * inner)).astype(np.float32)
    right = rng.standard_normal((32 * inner, 32 * cols)).astype(np.float32)
    product = np.empty((32 * rows, 32 * cols), np.float32)
    a = tilize(left)
    b = tilize(right)
    out = tilize(product)
    operands = [(x, np.arange(x.shape[1], dtype=np.int32), np.float32(0)) for x in (a, b)]
    for _, index, _ in operands:
        index.flags.writeable = False  # as those of a tile map

    items, columns = matmul_blocks(1, 1, rows, cols)
    ending = Ending(AS_IT_IS, *operands[0])

    def tiles(transposed: bool) -> None:
        reading = Reading(*operands[0][1:], *operands[1][1:], transposed)
        matmul_tiles(
            0, items, out, a, b, reading, Extent(t=1, rows=rows, inner=inner, cols=cols, columns=columns), ending
        )

    start = time.perf_counter()
    tiles(False)
    first = time.perf_counter() - start
    np.matmul(left, right, product)
    assert np.allclose(tilize(product), out, atol=1e-2)
    calls: dict[str, Callable[[], object]] = {
        "sgemm": partial(np.matmul, left, right, product),
        "tiles": partial(tiles, False),
        "transposed": partial(tiles, True),
    }
    return first, best_of(calls, seconds)


def main() -> None:
    """Print the table."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 3.0
    first, _ = measure(1, 1, 1, 0)
    print(conditions())
    print(f"first call {first:.2f} s (compiled, or read from the cache)")
    print(f"{'tiles':>14} {'us':>9} {'GFLOP/s':>9} {'sgemm':>9} {'ratio':>7} {'in1 transposed':>16}")
    for rows, inner, cols in SHAPES:
        _, best = measure(rows, inner, cols, seconds)
        rate = {name: 2e-9 * 32**3 * rows * inner * cols / best[name] for name in best}
        print(
            f"{f'{rows}x{inner}x{cols}':>14} {1e6 * best['tiles']:>9.1f} {rate['tiles']:>9.1f} {rate['sgemm']:>9.1f}"
            f" {rate['tiles'] / rate['sgemm']:>7.2f} {rate['transposed'] / rate['sgemm']:>16.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
