"""Rounds of work on workers for as long as you like: does memory stay flat, and is anything left behind?

    python benchmarks/soak.py --minutes 60 --workers 4

A round is a sweep, a run in parts, tests of netlists, and a run in which a worker is killed. What this process holds is
printed at the end of every minute; at the end, after a first fifth for caches to fill, its growth by hour, and what is
left of processes, open files, temporary files and shared memory. Exit code 1 for anything that is left.
"""

import argparse
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))
import buda_emu as be
from buda_emu.app.api.run_netlist import run_netlist
from buda_emu.app.api.sweep import sweep
from buda_emu.support.workers.job import Workers

NETLISTS = Path(__file__).parent.parent / "netlists"


def children() -> set[int]:
    """Return the processes that this one has started."""
    numbers: set[int] = set()
    for task in Path("/proc/self/task").glob("*/children"):
        numbers.update(map(int, task.read_text().split()))
    return numbers


def leftovers() -> dict[str, set[str]]:
    """Return what a round could leave behind, by kind."""
    temporary = {path.name for path in Path(tempfile.gettempdir()).iterdir() if path.name.startswith("buda-emu-")}
    return {
        "processes": set(map(str, children())),
        "temporary files": temporary,
        "shared memory": {path.name for path in Path("/dev/shm").iterdir() if "buda" in path.name},
    }


def resident() -> float:
    """Return the memory that this process holds, in MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


class Killer:
    """Kills a worker when the second program of a run begins."""

    def __init__(self) -> None:
        self._programs = 0
        self.lost = 0

    def progress(self, text: str) -> None:
        """Take a message of the run, and kill a worker if it is the second program's."""
        self._programs += text.startswith("program")
        if self._programs == 2 and not self.lost:
            with suppress(ProcessLookupError):
                os.kill(min(children()), signal.SIGKILL)
            self.lost += 1


def rounds(workers: int) -> Iterator[int]:
    """Do rounds of work for ever, and yield how many workers each has killed."""
    path = str(NETLISTS / "training.yaml")
    netlist = be.load(path)
    expected = run_netlist(netlist).arrays
    axes = {"noc": ("0.5", "1", "2"), "dram": ("1", "2")}
    points = sweep(path, axes)
    netlists = [str(NETLISTS / f"{name}.yaml") for name in ("softmax", "attention", "training", "two_chips")]
    while True:
        assert sweep(path, axes, workers=workers) == points, "a sweep differs"
        killer = Killer()
        for progress in (lambda _: None, killer.progress):
            arrays = run_netlist(netlist, workers=Workers(workers), progress=progress).arrays
            assert all(np.array_equal(arrays[name], array) for name, array in expected.items()), "a run differs"
        assert all(case.status in ("passed", "no config") for case in be.test(netlists, workers=workers).cases)
        yield killer.lost


def open_files() -> int:
    """Return the number of files that this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def _print_leftovers(before: Mapping[str, set[str]], files: int) -> bool:
    """Print what is there now and was not there before, and return whether there is anything."""
    left = {kind: names - before[kind] for kind, names in leftovers().items()}
    left["open files"] = set()
    if open_files() > files + 4:
        left["open files"].add("more than before")
    for kind, names in left.items():
        print(f"left, {kind}: {', '.join(sorted(names)) or 'nothing'}")
    return any(left.values())


def _print_growth(minutes: Sequence[tuple[float, float]]) -> None:
    """Print the growth of memory (MiB, by minute); nothing if there are too few minutes for a slope."""
    if len(minutes) > 2:
        times, held = zip(*minutes, strict=True)
        slope = float(np.polyfit(times, held, 1)[0]) * 60
        print(f"growth after the first fifth: {slope:+.1f} MiB an hour")


def main() -> int:
    """Do rounds for the time asked for, and print memory and leftovers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--workers", type=int, default=4)
    args = parser.parse_args()
    before = leftovers()
    start = time.monotonic()
    files = open_files()
    minutes: list[tuple[float, float]] = []
    killed = 0
    for count, lost in enumerate(rounds(args.workers), 1):
        killed += lost
        elapsed = (time.monotonic() - start) / 60
        if not minutes or elapsed - minutes[-1][0] >= 1 or elapsed >= args.minutes:
            minutes.append((elapsed, resident()))
            print(f"{elapsed:6.1f} min  {count:5} rounds  {killed:4} killed  {minutes[-1][1]:7.1f} MiB", flush=True)
        if elapsed >= args.minutes:
            break
    _print_growth([(minute, memory) for minute, memory in minutes if minute >= args.minutes / 5])
    time.sleep(2)
    return 1 if _print_leftovers(before, files) else 0


if __name__ == "__main__":
    sys.exit(main())
