"""How fast the matrix unit's kernels are on one thread: tile products against numpy's sgemm, the rest per datum.

    python benchmarks/kernels/bench_tensix.py [seconds per line]

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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.kernels.tensix.elementwise import (
    add_by_singles,
    copy_to_dst_tiles,
    elwadd_tiles,
    elwmul_tiles,
    multiply_by_singles,
    reduce_max_tiles,
)
from buda_emu.arithmetic.kernels.tensix.products.accumulate import Extent, Product, RegisterOperand
from buda_emu.arithmetic.kernels.tensix.products.tile_matmul import int_matmul_tiles, matmul_by_integers, matmul_tiles
from buda_emu.arithmetic.tensix.conversions.unpack import unpack, unpacker
from buda_emu.arithmetic.tensix.elementwise import KEPT
from buda_emu.arithmetic.tensix.lanes import DstMode
from buda_emu.arithmetic.tensix.products import phase_mask
from buda_emu.arithmetic.tensix.registers import kernel_setting

sys.path.insert(0, str(Path(__file__).parents[1]))
from conditions import conditions

EDGE = 16  # in tiles: products of 512 x 512 x 512
TILES = 256

PRODUCTS: list[tuple[str, str, DstMode]] = [  # math_fidelity, register format, what Dst holds
    ("LoFi", "Float16_b", "bf16"),
    ("LoFi", "Float16_b", "fp32"),
    ("LoFi", "Float16", "fp16"),
    ("HiFi2", "Float16_b", "bf16"),
    ("HiFi3", "Float16_b", "bf16"),
    ("HiFi4", "Float16_b", "bf16"),
    ("HiFi4", "Tf32", "fp32"),
]

Call = Callable[[], object]


def words(rng: np.random.Generator, tiles: int, register: str) -> NDArray[np.uint32]:
    """Return standard normal data as register words, uint32[tiles, 1024]."""
    singles = rng.standard_normal((tiles, 1024)).astype(np.float32).view(np.uint32)
    return unpack(singles, "Float32", register, "wormhole_b0")


def best_of(call: Call, seconds: float) -> float:
    """Return the seconds of the fastest call, after one that compiles."""
    call()
    best = np.inf
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.thread_time()
        call()
        best = min(best, time.thread_time() - start)
    return best


def products(rng: np.random.Generator, seconds: float) -> None:
    """Measure tile products, and print their table."""
    index = np.arange(EDGE * EDGE, dtype=np.int32)
    left, right = (rng.standard_normal((32 * EDGE, 32 * EDGE)).astype(np.float32) for _ in range(2))
    out = np.empty_like(left)
    macs = (32 * EDGE) ** 3
    sgemm = best_of(partial(np.matmul, left, right, out), seconds)
    print(f"{'sgemm':>8} {'':>10} {'':>6} {1e3 * sgemm:>9.2f} ms {1e-9 * macs / sgemm:>8.2f} GMAC/s")
    none = np.uint32(0)
    extent = Extent(t=1, rows=EDGE, inner=EDGE, cols=EDGE, first=0, last=EDGE, faces=2)
    dst = np.zeros((1, EDGE * EDGE, 1024), np.uint32)
    for fidelity, register, mode in PRODUCTS:
        in0, in1 = (words(rng, EDGE * EDGE, register)[None] for _ in range(2))
        setting = kernel_setting("a" if register == "Float16" else "b", mode, "wormhole_b0")
        operands = RegisterOperand(in0, index, none), RegisterOperand(in1, index, none)
        product = Product(*operands, extent=extent, phases=phase_mask(fidelity), faces_first=False, setting=setting)
        dst[:] = 0  # what another mode left may be anything
        for kernel, beside in ((matmul_tiles, ""), (matmul_by_integers, " by integers")):
            took = best_of(partial(kernel, 0, EDGE * EDGE, dst, product), seconds)
            print_product(fidelity, register, mode, macs, took, sgemm, beside)
    in0, in1 = (unpack(rng.integers(0, 256, dst.shape).astype(np.uint8), "Int8", "Int8", "wormhole_b0") for _ in "ab")
    setting = kernel_setting("b", "fp32", "wormhole_b0")
    product = Product(
        in0=RegisterOperand(in0, index, none),
        in1=RegisterOperand(in1, index, none),
        extent=extent,
        phases=0b1111,
        faces_first=False,
        setting=setting,
    )
    took = best_of(partial(int_matmul_tiles, 0, EDGE * EDGE, dst, product), seconds)
    print_product("HiFi4", "Int8", "int32", macs, took, sgemm)


def print_product(
    fidelity: str, register: str, mode: str, macs: int, took: float, sgemm: float, beside: str = ""
) -> None:
    """Print a line of the table."""
    rate = f"{1e-9 * macs / took:>8.2f} GMAC/s"
    print(
        f"{fidelity:>8} {register:>10} {mode:>6} {1e3 * took:>9.2f} ms {rate} {sgemm / took:>7.3f} of sgemm{beside}",
        flush=True,
    )


def per_datum(rng: np.random.Generator, seconds: float) -> None:
    """Measure everything else, and print its table."""
    dst = np.zeros((TILES, 1024), np.uint32)
    a = words(rng, TILES, "Float16_b")
    b = words(rng, TILES, "Float16_b")
    codes: dict[int, NDArray[Any]] = {8: rng.integers(0, 256, dst.shape).astype(np.uint8)}
    codes[16] = (a >> np.uint32(16)).astype(np.uint16)
    codes[32] = a
    shared = rng.integers(100, 140, (TILES, 64)).astype(np.uint8)
    index = np.arange(TILES, dtype=np.int32)
    left_out = np.zeros(TILES, np.bool_)
    calls: dict[str, Call] = {}
    for mode in ("bf16", "fp32"):
        setting = kernel_setting("b", mode, "wormhole_b0")
        calls[f"add, {mode}"] = partial(add_by_singles, 0, TILES, dst, a, b, False, setting, left_out)
        calls[f"add, {mode}, by integers"] = partial(elwadd_tiles, 0, TILES, dst, a, b, False, False, setting)
        for fidelity in ("LoFi", "HiFi3", "HiFi4"):
            factors = (0, TILES, dst, a, b, phase_mask(fidelity))
            calls[f"multiply {fidelity}, {mode}"] = partial(multiply_by_singles, *factors, setting, left_out)
            calls[f"multiply {fidelity}, {mode}, by integers"] = partial(elwmul_tiles, *factors, setting)
        calls[f"copy, {mode}"] = partial(copy_to_dst_tiles, 0, TILES, dst, a, *setting[:2])
        for dim in "rc":
            line = (KEPT["Float16_b"], setting, False)
            out = np.zeros((1, 1, 1024), np.uint32)
            source = RegisterOperand(a[None], index, np.uint32(0), dim == "c")
            calls[f"reduce {dim}, {mode}"] = partial(reduce_max_tiles, 0, 1, out, source, *line)
    for df, register in (("Float32", "Tf32"), ("Float16_b", "Float16_b"), ("Int8", "Int8")):
        bits = {"Float32": 32, "Float16_b": 16, "Int8": 8}[df]
        calls[f"unpack {df}"] = partial(unpacker(df, register, "wormhole_b0"), 0, TILES, dst, codes[bits])
    calls["unpack Bfp8_b"] = partial(unpacker("Bfp8_b", "Bfp8_b", "wormhole_b0"), 0, TILES, dst, codes[8], shared)
    for name, call in calls.items():
        took = best_of(call, seconds)
        print(f"{name:>34} {1e6 * took / TILES:>9.2f} us per tile {1e-6 * a.size / took:>9.0f} Melement/s", flush=True)


def main() -> None:
    """Print both tables."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    rng = np.random.default_rng(0)
    print(conditions())
    products(rng, seconds)
    per_datum(rng, seconds)


if __name__ == "__main__":
    main()
