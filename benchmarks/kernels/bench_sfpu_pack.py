#!/usr/bin/env python3
"""How fast the units of the vector unit and the packer are, in millions of elements a second.

    python benchmarks/kernels/bench_sfpu_pack.py [--tiles 512] [--threads 1]

Beside each stands the time as a multiple of a numpy copy of the same bytes (Dst image read, result written) in the
same run, on one thread. Best of seven, kernels compiled before; data are N(0, 1), for log, sqrt and reciprocal their
magnitudes.
"""

import argparse
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.formats.bits import single
from buda_emu.arithmetic.kernels.tensix import pack as l1_acc
from buda_emu.arithmetic.kernels.tensix.functions.vector_unit import random_words
from buda_emu.arithmetic.kernels.tensix.pack import Conversion, pack
from buda_emu.arithmetic.tensix.conversions.pack import intermediate
from buda_emu.arithmetic.tensix.functions.elementary import seed_registers
from buda_emu.arithmetic.tensix.functions.table import FUNCTIONS, Bound, bf16_cut, bind, run
from buda_emu.arithmetic.tensix.lanes import store, touched_mask
from buda_emu.spec.formats import FORMATS, is_block
from conditions import conditions

ROUNDS = 7
PARAMETERS = {
    "exponent": 3,
    "slope": bf16_cut(0.1),
    "threshold": single(1.0),
    "scale": bf16_cut(1.25),
    "below": 13107,
    "zero_point": single(3.0),
    "minus_zero_point": single(-3.0),
}
POSITIVE = ("log", "sqrt", "reciprocal")


def best(work: Callable[[], object]) -> float:
    """Return the seconds of the fastest round, after one that does not count."""
    work()
    times: list[float] = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


class Bench:
    """Measures work on `tiles` tiles that threads share, and prints it."""

    def __init__(self, tiles: int, threads: int) -> None:
        self._bounds = [tiles * n // threads for n in range(threads + 1)]
        self._pool = ThreadPoolExecutor(threads)

    def show(self, title: str, elements: int, work: Callable[[int, int], object], copied: NDArray[np.uint8]) -> None:
        """Measure some work and print its line. `work` does the tiles from its first argument to before its second."""
        target = np.empty_like(copied)
        seconds = best(partial(self._run_on_threads, work))
        copy = best(lambda: np.copyto(target, copied))
        print(f"{title:44} {elements / seconds / 1e6:8.0f} M/s  {seconds / copy:6.1f} copies")

    def _run_on_threads(self, work: Callable[[int, int], object]) -> None:
        """Do the work, a part of the tiles on each thread."""
        list(self._pool.map(work, self._bounds, self._bounds[1:]))


def functions(bench: Bench, values: NDArray[np.uint32]) -> None:
    """Measure every function in a 32-bit Dst, and one in a 16-bit Dst, where all are the same table."""
    out = np.empty_like(values)
    moved = np.empty(values.nbytes, np.uint8)
    for name, function in FUNCTIONS.items():
        for approximate in (False, True) if "approximate" in function.parameters else (None,):
            chosen: dict[str, Any] = {
                key: approximate if key == "approximate" else PARAMETERS[key] for key in function.parameters
            }
            bound = bind(name, **chosen)
            sign = np.uint32(0x7FFFFFFF if name in POSITIVE else 0xFFFFFFFF)
            images = [values & sign] * len(function.reads)
            label = f"{name}{' approximate' if approximate else ''}, fp32"

            def work(start: int, stop: int, b: Bound = bound, i: list[NDArray[np.uint32]] = images) -> None:
                run(b, "fp32", out, *i, tiles=(start, stop))

            bench.show(label, values.size, work, moved)
    narrow = store(values, "bf16")
    bound = bind("exp", approximate=False)
    bench.show(
        "any function of one bf16 datum",
        values.size,
        lambda start, stop: run(bound, "bf16", out, narrow, tiles=(start, stop)),
        moved,
    )
    words = np.empty_like(values)
    state = seed_registers(1)

    def draw(start: int, _stop: int) -> None:
        if start == 0:  # one generator: its words follow one another
            random_words(state, words, touched_mask("rc"))

    bench.show("random words of dropout", values.size, draw, moved)


def packer(bench: Bench, values: NDArray[np.uint32]) -> None:
    """Measure the packer from each mode of Dst to each kind of format."""
    types = {32: np.uint32, 16: np.uint16}
    for mode in ("bf16", "fp16", "fp32", "int32"):
        image = store(values, mode)
        for out_df in ("Int32", "Int8") if mode == "int32" else ("Float32", "Float16_b", "Float16", "Bfp8_b", "Bfp4_b"):
            stored = np.empty(image.shape, types.get(FORMATS[out_df].bits, np.uint8))
            exponents = np.empty((len(image), 32, 2), np.uint8) if is_block(out_df) else None
            setting = (Conversion(mode, intermediate(mode, out_df), out_df, 2), stored, exponents)
            moved = np.empty((image.nbytes + stored.nbytes) // 2, np.uint8)
            bench.show(
                f"pack {mode} to {out_df}, relu",
                image.size,
                lambda start, stop, i=image, s=setting: pack(start, stop, i, *s),
                moved,
            )
    for out_df, datums in (
        ("Float32", values),
        ("Float16_b", store(values, "bf16").astype(np.uint16)),
        ("Float16", store(values, "fp16").astype(np.uint16)),
    ):
        old = datums.copy()
        moved = np.empty(2 * datums.nbytes * 3 // 4, np.uint8)
        bench.show(
            f"add in L1, {out_df}",
            datums.size,
            lambda start, stop, f=out_df, o=old, d=datums: l1_acc.accumulate(start, stop, f, o, d),
            moved,
        )


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiles", type=int, default=512)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    print(f"{args.tiles} tiles, {args.threads} threads. {conditions()}")
    values = np.random.default_rng(0).standard_normal((args.tiles, 32, 32)).astype(np.float32).view(np.uint32)
    bench = Bench(args.tiles, args.threads)
    functions(bench, values)
    packer(bench, values)


if __name__ == "__main__":
    main()
