#!/usr/bin/env python3
"""What the chip's own numbers cost: programs in precision `device` beside the same in `format`
(docs/run/performance.md).

    python benchmarks/kernels/bench_device.py                            # own netlists
    python benchmarks/kernels/bench_device.py --vectors-heavy            # the big ones of the corpus, two threads
    python benchmarks/kernels/bench_device.py --vectors-heavy -k resnet50 --threads 1
    python benchmarks/kernels/bench_device.py --vectors-heavy --limit 150     # and no netlist longer than 150 s

Each netlist is a process of its own and runs once in each precision to warm up (kernels compiled or loaded, memory in
place), then `--repeat` times in turns, each on a new machine. Seconds of the programs, the least of the repetitions,
and processor time of all threads, which other work on the machine disturbs less; a ratio is that of `device` over that
of `format`. `sys` is the share of the system in the processor time of `device`; `first` how many times of `device` a
cold program took, with planning; `MiB` the most memory that the process ever held, after the first run in `format` and
after that in `device`. With --repeat 0 the first runs are the figures. Exit code 1: a netlist is above --most or longer
than --limit, or all together above --together.
"""

import argparse
import multiprocessing
import resource
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import buda_emu as be

sys.path.insert(0, str(Path(__file__).parents[1]))
from conditions import conditions
from run import Job, add_selection, select_jobs  # sets up threads of numpy before it is imported

PRECISIONS = ("format", "device")  # in this order: the peak of memory never falls


@dataclass
class Times:
    """The seconds of one netlist in one precision, run by run, the first one cold: wall time, processor time, and the
    share of it that the system took. `peak` is in MiB."""

    wall: list[float] = field(default_factory=list[float])
    cpu: list[float] = field(default_factory=list[float])
    system: list[float] = field(default_factory=list[float])
    peak: float = 0.0

    def least(self) -> tuple[float, float]:
        """Return the least wall and processor time of the warm runs, or of the only run."""
        return min(self.wall[1:] or self.wall), min(self.cpu[1:] or self.cpu)

    def system_share(self) -> float:
        """Return the system's share of the processor time, of the warm run with the least processor time."""
        cpu, system = min(zip(self.cpu[1:] or self.cpu, self.system[1:] or self.system, strict=True))
        return system / max(cpu, 1e-9)


def run_once(job: Job, netlist: Any, inputs: list[tuple[str, Any]], precision: str, threads: int, took: Times) -> None:
    """Run the programs on a new machine, and add the times."""
    with be.Emulator(netlist, precision=precision, threads=threads) as emulator:  # type: ignore[arg-type]
        for name, array in inputs:
            emulator.push(name, array)
        start = time.perf_counter()
        cpu = time.process_time()
        system = _system()
        for program in job.programs:
            emulator.run(program, job.parameters)
        took.cpu.append(time.process_time() - cpu)
        took.system.append(_system() - system)
        took.wall.append(time.perf_counter() - start)


def _system() -> float:
    """Return the processor seconds that this process has spent in the system."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_stime


def measure(job: Job, threads: int, repeat: int) -> dict[str, Times]:
    """Measure both precisions in turns."""
    netlist = be.load(job.path, arch=job.arch)
    inputs = job.inputs(netlist)
    took = {precision: Times() for precision in PRECISIONS}
    for _ in range(1 + repeat):
        for precision in PRECISIONS:
            run_once(job, netlist, inputs, precision, threads, took[precision])
            if not took[precision].peak:
                took[precision].peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return took


def measure_apart(job: Job, threads: int, repeat: int, limit: float) -> dict[str, Times] | None:
    """Measure in a process of its own; return None if it takes longer than `limit` seconds, or fails."""
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    process = fork.Process(target=lambda: sender.send(measure(job, threads, repeat)))
    process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(limit or None) else None
    except EOFError:
        return None
    finally:
        process.kill()
        process.join()


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_selection(parser)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--limit", type=float, default=0.0, metavar="S", help="seconds of a netlist (default none)")
    parser.add_argument("--most", type=float, default=6.0, metavar="TIMES", help="of a netlist (default 6)")
    parser.add_argument("--together", type=float, default=4.0, metavar="TIMES", help="of all (default 4)")
    args = parser.parse_args()
    print(f"{conditions()}; {args.threads} threads")
    heads = ("device", 8), ("format", 8), ("times", 6), ("cpu", 8), ("cpu", 8), ("times", 6), ("sys", 6), ("first", 6)
    print(" ".join(f"{name:>{width}}" for name, width in (*heads, ("MiB", 6), ("MiB", 6))), " netlist", flush=True)
    sums = [0.0] * 4
    above = 0
    for job in select_jobs(args):
        took = measure_apart(job, args.threads, args.repeat, args.limit)
        if took is None:
            above += 1
            print(f"failed, or took more than {args.limit:g} s: {job.name}", flush=True)
            continue
        plain, device = (took[precision] for precision in PRECISIONS)
        wall, cpu = device.least()
        plain_wall, plain_cpu = plain.least()
        figures = [wall, plain_wall, cpu, plain_cpu]
        sums = [total + figure for total, figure in zip(sums, figures, strict=True)]
        above += figures[0] > args.most * figures[1]
        others = f"{device.system_share():6.0%} {device.wall[0] / figures[0]:6.2f} {plain.peak:6.0f} {device.peak:6.0f}"
        print(f"{_line(figures)} {others}  {job.name}", flush=True)
    if not sums[1]:
        return 1  # none was measured
    print(f"{_line(sums)} {'':27}  together")
    return int(bool(above) or sums[0] > args.together * sums[1])


def _line(figures: list[float]) -> str:
    """Return the seconds and ratios of a line of the table."""
    device, plain, device_cpu, plain_cpu = figures
    walls = f"{device:8.3f} {plain:8.3f} {device / plain:6.2f}"
    return f"{walls} {device_cpu:8.3f} {plain_cpu:8.3f} {device_cpu / max(plain_cpu, 1e-9):6.2f}"


if __name__ == "__main__":
    sys.exit(main())
