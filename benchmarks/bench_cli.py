#!/usr/bin/env python3
"""Whole-process times: `check` of the largest and of a median public netlist, `run` of small ones, `import buda_emu`.

    python benchmarks/bench_cli.py [--repeat 7]

Prints the least and the median of the repetitions, in seconds, beside the project's bound. Times hold the start of the
interpreter; `run` with an empty kernel cache is done once. Imports are beside them: every `run` has those of numpy and
llvmlite, one that compiles a kernel that of numba, too.
The largest netlist is taken from the cache of netlists (docs/run/cache.md) but for one line.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from conditions import ROOT, conditions, public_netlists

COMMAND = (sys.executable, "-m", "buda_emu")
SMALL = ROOT / "netlists" / "attention.yaml"
_QUEUE = "type: queue, entries: 1, df: Float16_b, target_device: 0, loc: dram"
_SIZES = "grid_size: [1, 1], t: 1, mblock: [1, 1], ublock: [1, 1]"
_SETTINGS = "prologue: false, epilogue: false, zero: false, rd_ptr_local: $zero, rd_ptr_global: $zero"
ONE_OP = f"""
devices: {{arch: wormhole_b0}}
queues:
  a: {{input: HOST, {_QUEUE}, {_SIZES}, dram: [[0, 0x10000000]]}}
  b: {{input: copy, {_QUEUE}, {_SIZES}, dram: [[0, 0x20000000]]}}
graphs:
  fwd:
    target_device: 0
    input_count: 1
    copy: {{type: nop, grid_loc: [0, 0], inputs: [a], {_SIZES}, in_df: [Float16_b], out_df: Float16_b,
           intermed_df: Float16_b, acc_df: Float16_b, ublock_order: r, buf_size_mb: 2, math_fidelity: HiFi4}}
programs:
  - run:
    - var: {{$zero: 0}}
    - execute: {{graph_name: fwd, queue_settings: {{a: {{{_SETTINGS}}}}}}}
"""


def seconds(command: Sequence[str], cache: Path) -> float:
    """Return the wall time of one process, which must succeed."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(cache)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # byte code is kept, as after an installation
    start = time.perf_counter()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def report(title: str, bound: float, times: Sequence[float]) -> None:
    """Print one line of the table."""
    print(f"{title:58} {min(times):8.3f} {statistics.median(times):8.3f} {bound:8.3f}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=7)
    repeat = parser.parse_args().repeat
    print(conditions())
    print(f"{'':58} {'least':>8} {'median':>8} {'bound':>8}")
    with tempfile.TemporaryDirectory() as directory:
        cache = Path(directory)
        _measure_runs(cache, repeat)
        for package in ("numpy", "llvmlite.binding", "numba"):
            command = (sys.executable, "-c", f"import {package}")
            report(f"import {package}", 0.0, [seconds(command, cache) for _ in range(repeat)])
        _measure_checks(cache, repeat)
        empty = statistics.median(seconds((sys.executable, "-c", "pass"), cache) for _ in range(repeat))
        imports = [seconds((sys.executable, "-c", "import buda_emu"), cache) - empty for _ in range(repeat)]
        report("import buda_emu (above an empty interpreter)", 0.06, imports)


def _measure_runs(cache: Path, repeat: int) -> None:
    """Measure `run` of small netlists, first with an empty kernel cache."""
    one_op = cache / "one_op.yaml"
    one_op.write_text(ONE_OP, encoding="utf-8")
    for path, cold, warm in ((one_op, 6.0, 0.25), (SMALL, 15.0, 0.4)):
        command = (*COMMAND, "run", str(path))
        seconds((*COMMAND, "cache", "clear"), cache)  # and byte code is written
        report(f"run {path.name}, empty kernel cache", cold, [seconds(command, cache)])
        report(f"run {path.name}, warm", warm, [seconds(command, cache) for _ in range(repeat)])


def _measure_checks(cache: Path, repeat: int) -> None:
    """Measure `check` of the largest and of the median public netlist."""
    netlists = public_netlists()
    if not netlists:
        print("no corpus: `check` of public netlists is not measured (set BUDA_EMU_SHARED)")
        return
    for rank, path, bound in (("largest", netlists[-1], 0.8), ("median", netlists[len(netlists) // 2], 0.15)):
        command = (*COMMAND, "check", str(path))
        seconds(command, cache)  # the first writes byte code
        times = [seconds(command, cache) for _ in range(repeat)]
        size = f"({path.stat().st_size >> 10} KiB)"
        report(f"check {rank} public netlist {size}", bound, times)
        if path == netlists[-1]:
            times = [seconds((*command, "--no-cache"), cache) for _ in range(repeat)]
            report(f"check {rank} public netlist {size} --no-cache", bound, times)


if __name__ == "__main__":
    main()
