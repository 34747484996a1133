#!/usr/bin/env python3
"""Where the time of a warm run goes: kernels by name, and Python by room (docs/run/performance.md).

    python benchmarks/profile_run.py                            # own netlists
    python benchmarks/profile_run.py -k bert_mha --vectors      # of the corpus
    python benchmarks/profile_run.py -k resnet50 --vectors-heavy

One thread. Programs are run again and again on new machines until `--seconds` have passed. The profiler makes Python
slower and leaves kernels as they are, so the share of Python is an upper bound.
"""

import argparse
import cProfile
import pstats
import re
import time
from collections import Counter
from pathlib import Path

import buda_emu as be
from conditions import conditions
from run import Job, add_selection, select_jobs

PACKAGE = Path(be.__file__).parent
SHOWN = 6


def profile_job(job: Job, seconds: float) -> tuple[Counter[str], Counter[str], int]:
    """Return seconds and calls of each part, and how often the programs were run."""
    netlist = be.load(job.path, arch=job.arch)
    inputs = job.inputs(netlist)
    profile = cProfile.Profile()
    rounds = 0
    end = 0.0
    while not rounds or time.perf_counter() < end:
        with be.Emulator(netlist, threads=1) as emulator:
            for name, array in inputs:
                emulator.push(name, array)
            if end:
                profile.enable()
            for program in job.programs:
                emulator.run(program, job.parameters)
            profile.disable()
        rounds += bool(end)
        end = end or time.perf_counter() + seconds  # the first one warms up
    took = Counter[str]()
    calls = Counter[str]()
    for (file, _, function), (_, count, seconds_inside, _, _) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        name = part(file, function)
        took[name] += seconds_inside
        calls[name] += count
    return took, calls, rounds


def part(file: str, function: str) -> str:
    """Return the name of a kernel, or the package part of Python code."""
    kernel = re.fullmatch(r"<built-in method buda_emu\.kernels\.(?:\w+\.)*(\w+)>", function)
    if kernel is not None:
        return kernel[1]
    path = Path(file)
    if not path.is_relative_to(PACKAGE):
        return "Python: elsewhere"
    return f"Python: {path.relative_to(PACKAGE).parts[0]}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_selection(parser)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each netlist, at least (default 2)")
    args = parser.parse_args()
    print(conditions())
    for job in select_jobs(args):
        took, calls, rounds = profile_job(job, args.seconds)
        total = sum(took.values())
        print(f"\n{job.name}: {1e3 * total / rounds:.2f} ms a run, {rounds} runs")
        for name, seconds in took.most_common(SHOWN):
            calls_per_run = calls[name] / rounds
            print(f"  {seconds / total:6.1%} {1e3 * seconds / rounds:10.3f} ms {calls_per_run:10.0f} calls  {name}")


if __name__ == "__main__":
    main()
