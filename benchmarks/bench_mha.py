#!/usr/bin/env python3
"""One BERT attention layer (netlist_bert_mha of the corpus, else netlists/attention.yaml), in process.

    python benchmarks/bench_mha.py [--repeat 200] [--threads 1 2]

Prints the least and the median time of `Emulator.run` in milliseconds. Inputs are pushed again before each run, and the
output is popped after it; neither is timed. The first runs, which compile and plan, are left out.
"""

import argparse
import statistics
import time
from collections.abc import Iterable

import numpy as np

import buda_emu as be
from buda_emu.emulator.inputs.default import InputBlock, default_inputs
from buda_emu.emulator.inputs.entries import default_parameters
from buda_emu.netlist.test_config import read_test_config
from conditions import ROOT, SHARED, conditions

BOUND_MS = 1.5
WARM_UP = 3
"""Runs that are not measured, in which kernels are compiled and plans made."""


def times(netlist_path: str, threads: int, repeat: int) -> list[float]:
    """Return the seconds of each timed run of all programs."""
    netlist = be.load(netlist_path)
    config = read_test_config(netlist.path, netlist.sections)
    programs = list(netlist.programs.values())
    parameters = default_parameters(programs, config.args)
    blocks = list(default_inputs(netlist, config, programs, parameters, seed=0))
    outputs = [queue.name for queue in netlist.queues.values() if not queue.host_fed and not queue.is_ram]
    measured: list[float] = []
    with be.Emulator(netlist, threads=threads) as emulator:
        for _ in range(repeat + WARM_UP):
            _push_inputs(emulator, blocks)
            start = time.perf_counter()
            for program in programs:
                emulator.run(program.name, parameters)
            measured.append(time.perf_counter() - start)
            for name in outputs:
                left = len(emulator.peek(name))
                if left:
                    assert np.isfinite(emulator.pop(name, left)).all()
    return measured[WARM_UP:]


def _push_inputs(emulator: be.Emulator, blocks: Iterable[InputBlock]) -> None:
    """Push the inputs again; a queue that still has its entries, as one of parameters has, is left as it is."""
    for block in blocks:
        if block.slot is not None or not len(emulator.peek(block.queue)):
            emulator.push(block.queue, block.array, block.slot)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=200)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    arguments = parser.parse_args()
    public = SHARED / "corpus" / "netlists" / "verif" / "graph_tests" / "netlists" / "netlist_bert_mha.yaml"
    path = public if public.exists() else ROOT / "netlists" / "attention.yaml"
    print(conditions())
    print(f"{path.name:32} {'least ms':>9} {'median ms':>10} {'bound ms':>9}")
    for threads in arguments.threads:
        measured = [1e3 * value for value in times(str(path), threads, arguments.repeat)]
        print(f"  threads {threads:<22} {min(measured):9.2f} {statistics.median(measured):10.2f} {BOUND_MS:9.2f}")


if __name__ == "__main__":
    main()
