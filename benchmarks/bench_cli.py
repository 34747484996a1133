#!/usr/bin/env python3
"""Whole-process times: `check` of the largest and of a median public netlist, `run` of a small one, `import buda_emu`.

    python benchmarks/bench_cli.py [--repeat 7]

Prints the least and the median of the repetitions, in seconds, beside the project's bound. Times hold the start of the
interpreter; `run` with an empty kernel cache is done once.
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


def seconds(command: Sequence[str], cache: Path) -> float:
    """Wall time of one process, which must succeed."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(cache)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # byte code is kept, as after an installation
    start = time.perf_counter()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def report(what: str, bound: float, times: Sequence[float]) -> None:
    """One line of the table."""
    print(f"{what:58} {min(times):8.3f} {statistics.median(times):8.3f} {bound:8.3f}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=7)
    repeat = parser.parse_args().repeat
    print(conditions())
    print(f"{'':58} {'least':>8} {'median':>8} {'bound':>8}")
    with tempfile.TemporaryDirectory() as directory:
        cache = Path(directory)
        report(f"run {SMALL.name}, empty kernel cache", 15.0, [seconds((*COMMAND, "run", str(SMALL)), cache)])
        warm = [seconds((*COMMAND, "run", str(SMALL)), cache) for _ in range(repeat)]
        report(f"run {SMALL.name}, warm", 1.0, warm)
        netlists = public_netlists()
        if not netlists:
            print("no corpus: `check` of public netlists is not measured (set BUDA_EMU_SHARED)")
        else:
            for what, path, bound in (("largest", netlists[-1], 0.8), ("median", netlists[len(netlists) // 2], 0.15)):
                command = (*COMMAND, "check", str(path))
                seconds(command, cache)  # the first writes byte code
                times = [seconds(command, cache) for _ in range(repeat)]
                report(f"check {what} public netlist ({path.stat().st_size >> 10} KiB)", bound, times)
        empty = statistics.median(seconds((sys.executable, "-c", "pass"), cache) for _ in range(repeat))
        imports = [seconds((sys.executable, "-c", "import buda_emu"), cache) - empty for _ in range(repeat)]
        report("import buda_emu (above an empty interpreter)", 0.06, imports)


if __name__ == "__main__":
    main()
