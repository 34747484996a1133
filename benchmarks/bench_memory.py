#!/usr/bin/env python3
"""Memory of whole runs beside what has to be held, in MiB (docs/run/performance.md).

    python benchmarks/bench_memory.py                  # own netlists
    python benchmarks/bench_memory.py --vectors-heavy  # the big ones of the corpus
    python benchmarks/bench_memory.py -k resnet50 --vectors-heavy

`queues`: entries of queues and rams that were used. `cut`: the widest set of intermediate tensors that are alive at
once, for one input. `live`: both. `peak`: the most that a warm process held while it pushed and ran, above what it held
before (Python, libraries, compiled kernels, the inputs that are pushed). Linux only: it asks /proc.
"""

import argparse
from pathlib import Path

import buda_emu as be
from buda_emu.emulator.memory.memory_pool import POOL
from run import Job, add_selection, select_jobs

MIB = 1 << 20


def memory(field: str) -> int:
    """Return a field of the process status in bytes: VmRSS is the memory that the process holds, VmHWM the most since
    the peak was last set back."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) << 10
    raise SystemExit(f"the system does not tell {field}")


def measure(job: Job, threads: int) -> tuple[int, int, int]:
    """Return the bytes of `queues`, `cut` and `peak`."""
    netlist = be.load(job.path, arch=job.arch)
    inputs = job.inputs(netlist)
    queues = cut = peak = 0
    for _ in range(2):  # the first one warms up
        POOL.drop()
        before = memory("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # the peak is set back to what is held now
        with be.Emulator(netlist, threads=threads) as emulator:
            for name, array in inputs:
                emulator.push(name, array)
            for program in job.programs:
                emulator.run(program, job.parameters)
            peak = memory("VmHWM") - before
            queues = emulator.memory.queues
            cut = emulator.memory.widest_cut
    return queues, cut, peak


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_selection(parser)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    print(f"{'queues':>9} {'cut':>9} {'live':>9} {'peak':>9} {'ratio':>6}  netlist")
    for job in select_jobs(args):
        queues, cut, peak = measure(job, args.threads)
        live = queues + cut
        figures = " ".join(f"{value / MIB:9.1f}" for value in (queues, cut, live, peak))
        print(f"{figures} {peak / live:6.2f}  {job.name}", flush=True)


if __name__ == "__main__":
    main()
