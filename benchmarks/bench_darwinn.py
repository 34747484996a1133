#!/usr/bin/env python3
"""Edge TPU packages: loading and checking, the CPU twin, a replay.

    python benchmarks/bench_darwinn.py [--models DIR] [--repeat 7]

`--models` is a folder with compiled models in `models/` and uncompiled ones in `cpu_twins/`, by default the shared one
beside the project; without it, the two packages that the project makes itself are measured. Prints the least
processor time of the repetitions, in seconds, once everything is imported and compiled.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from buda_emu.foreign import darwinn
from buda_emu.foreign.darwinn.example import example_files
from conditions import SHARED, conditions


def least(call: Callable[[], object], repeat: int) -> float:
    """Return the least processor time of a call, in seconds."""
    call()
    times: list[float] = []
    for _ in range(repeat):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, default=SHARED / "darwinn")
    parser.add_argument("--repeat", type=int, default=7)
    args = parser.parse_args()
    print(conditions())
    models = {path.name: path.read_bytes() for path in sorted((args.models / "models").glob("*.tflite"))}
    twins = {path.name: path.read_bytes() for path in sorted((args.models / "cpu_twins").glob("*.tflite"))}
    if not models:
        files = example_files()
        models = {name: data for name, data in files.items() if "edgetpu" in name}
        twins = {name: data for name, data in files.items() if "edgetpu" not in name}
    for name, data in models.items():
        seconds = least(lambda data=data: (darwinn.load(data), darwinn.check(data)), args.repeat)
        print(f"{seconds:8.4f} s  load and check {len(data):>9,} bytes  {name}")
    for name, data in twins.items():
        twin = darwinn.Twin(data)
        feeds = {n: np.zeros(shape, dtype) for n, dtype, shape in twin.inputs}
        print(f"{least(lambda twin=twin, feeds=feeds: twin.run(feeds), args.repeat):8.4f} s  twin {name}")
    packages = [darwinn.load(data) for data in models.values()]
    requests = list(range(len(packages))) * 20
    seconds = least(lambda: darwinn.replay(packages, requests, link="usb3", frequency_hz="max"), args.repeat)
    print(f"{seconds:8.4f} s  replay of {len(requests)} requests of {len(packages)} packages")


if __name__ == "__main__":
    main()
