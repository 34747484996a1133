#!/usr/bin/env python3
"""What a debugger costs who has none, and who has one and sets no breakpoint.

    python benchmarks/bench_debug.py [--repeat 15] [--before CHECKOUT]

Runs take turns, so that other work on the machine counts for both; figures are medians of ratios of processor time.
`debugged`: `cont` of a session beside `Emulator.run` of the same programs on the same inputs, bound 1.2. `plain`, with
`--before`: `Emulator.run` in this checkout beside the same in an earlier one, whose interpreter it takes too; 1 but for
noise.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import buda_emu as be
from buda_emu.app.debugger.machine.stop import START
from buda_emu.emulator.inputs.feed import push
from buda_emu.spec.precision import Precision
from conditions import ROOT, SHARED, conditions

NETLISTS = (
    ROOT / "netlists" / "attention.yaml",
    ROOT / "netlists" / "training.yaml",
    SHARED / "corpus/netlists/verif/directed_tests/netlist_bert_encoder.yaml",
)
BOUND = 1.2
_LEAST_SECONDS = 0.3  # of one measurement: short programs are run several times


def _seconds(work: Callable[[], None], before: Callable[[], object], times: int) -> float:
    """Return the processor seconds of `work` alone, which runs some times, each time after `before`."""
    total = 0.0
    for _ in range(times):
        before()
        start = time.process_time()
        work()
        total += time.process_time() - start
    return total


def debug_ratio(path: Path, precision: Precision, repeat: int) -> float:
    """Return the median ratio of a run under the debugger to a plain one."""
    netlist = be.load(path)
    with be.debug(netlist, precision=precision, threads=1) as run, be.Emulator(netlist, precision, 1) as plain:
        push(plain, run.feed.blocks())
        points = plain.checkpoints()
        start = points.take(None, running=False)

        def alone() -> None:
            for name, parameters in run.programs:
                plain.run(name, parameters)

        def within() -> None:
            run.cont()

        def both(times: int) -> tuple[float, float]:
            debugging = _seconds(within, lambda: run.seek(START), times)
            return debugging, _seconds(alone, lambda: points.back_to(start), times)

        both(2)
        if run.stop.reason != "end":
            raise RuntimeError(f"{path}: {run.stop}")
        times = max(1, round(_LEAST_SECONDS / max(both(1)[1], 1e-4)))
        return statistics.median(a / b for a, b in (both(times) for _ in range(repeat)))


_PLAIN = """
import statistics, sys, time
import buda_emu as be
from buda_emu.netlist.test_config import read_test_config
from buda_emu.emulator.inputs.default import default_inputs
from buda_emu.emulator.inputs.entries import default_parameters
from buda_emu.emulator.inputs.feed import push
net = be.load(sys.argv[1])
config, bodies = read_test_config(net.path, net.sections), list(net.programs.values())
values = default_parameters(bodies, config.args)
blocks = list(default_inputs(net, config, bodies, values, 0))
took = []
for _ in range(int(sys.argv[3])):
    with be.Emulator(net, sys.argv[2], 1) as emulator:
        push(emulator, blocks)
        start = time.process_time()
        for name in net.program_order:
            emulator.run(name, values)
        took.append(time.process_time() - start)
print(statistics.median(took[len(took) // 4:]))
"""


def plain_ratio(path: Path, precision: str, repeat: int, before: Path) -> float:
    """Return the median ratio of a run in this checkout to one in another."""

    def run(checkout: Path) -> float:
        environment = {**os.environ, "PYTHONPATH": str(checkout)}
        command = [sys.executable, "-c", _PLAIN, str(path), precision, "60"]
        return float(subprocess.run(command, env=environment, cwd="/", capture_output=True, check=True).stdout)

    return statistics.median(run(ROOT) / run(before) for _ in range(repeat))


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--before", type=Path, metavar="CHECKOUT")
    args = parser.parse_args()
    print(conditions())
    for path in NETLISTS:
        if not path.is_file():
            print(f"{path}: not there")
            continue
        precisions: tuple[Precision, ...] = "format", "device"
        for precision in precisions:
            ratio = debug_ratio(path, precision, args.repeat)
            print(f"debugged  {path.stem:24} {precision:7} {ratio:.3f}   bound {BOUND}", flush=True)
            if args.before is not None:
                ratio = plain_ratio(path, precision, max(3, args.repeat // 3), args.before)
                print(f"plain     {path.stem:24} {precision:7} {ratio:.3f}   bound about 1", flush=True)


if __name__ == "__main__":
    main()
