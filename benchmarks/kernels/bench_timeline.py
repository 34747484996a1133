#!/usr/bin/env python3
"""How long the timeline engine takes for a million tasks: a pipeline of 100 stages with buffers of two.

    python benchmarks/kernels/bench_timeline.py [TASKS]

Prints seconds to describe the schedule and to run it, best of three, kernels compiled before.
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from buda_emu.performance.timeline import Schedule

STAGES = 100


def pipeline(tasks: int) -> Schedule:
    """Return a schedule of stages, each of which waits for the one before and for room behind it."""
    schedule = Schedule()
    units = [schedule.unit(f"stage {i}") for i in range(STAGES)]
    full = [schedule.object(f"full {i}") for i in range(STAGES)]
    free = [schedule.object(f"free {i}", 2) for i in range(STAGES)]
    for _ in range(tasks // STAGES):
        for i, unit in enumerate(units):
            waits = ([(full[i - 1], 1)] if i else []) + ([(free[i], 1)] if i < STAGES - 1 else [])
            signals = ([(free[i - 1], 1)] if i else []) + ([(full[i], 1)] if i < STAGES - 1 else [])
            schedule.task(unit, 10 + 7 * i % 13, waits, signals)
    return schedule


def main() -> None:
    """Measure."""
    tasks = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    pipeline(10 * STAGES).run()
    describe = run = float("inf")
    for _ in range(3):
        begin = time.perf_counter()
        schedule = pipeline(tasks)
        middle = time.perf_counter()
        schedule.run()
        describe = min(describe, middle - begin)
        run = min(run, time.perf_counter() - middle)
    print(f"{tasks} tasks: {describe:.2f} s to describe, {run:.2f} s to run")


if __name__ == "__main__":
    main()
