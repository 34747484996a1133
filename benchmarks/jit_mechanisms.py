#!/usr/bin/env python3
"""What each mechanism of the JIT saves: commands with and without it, in turns.

    python benchmarks/jit_mechanisms.py [--pairs 9] [--cold-pairs 3] [--only NAME ...]

Prints for each mechanism of `buda_emu/arithmetic/jit` that exists for speed the milliseconds of processor time (user
and system, all processes) that a command takes more without it: the median of the differences of pairs, beside the
command's own time. `warm`: kernels are in the cache; `cold`: the cache is empty. Processor time counts what else the
machine does only little. `docs/jit.md` shows the table. With `--without NAME`, run one command of buda-emu without the
mechanism and do nothing else.
"""

import argparse
import contextlib
import gc
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from conditions import ROOT, conditions

RUN: Final = ("run", "netlists/matmul.yaml")
TEST: Final = ("test", "netlists/softmax.yaml", "-n", "1")


def keep_nothing_on_disk() -> None:
    """Compile each kernel in each process."""
    from buda_emu.arithmetic.jit.machine_code import disk_cache

    disk_cache.machine_code_file = lambda *_: None


def import_numba() -> None:
    """Import numba, as each process does whose kernels numba itself keeps and calls."""
    __import__("numba")


def keep_all_steps() -> None:
    """Run the steps of numba's that look for what kernels do not have."""
    from buda_emu.arithmetic.jit.compiling import by_numba

    by_numba._LEFT_OUT.clear()


def keep_lifetimes() -> None:
    """Analyse lifetimes of variables."""
    from buda_emu.arithmetic.jit.compiling import by_numba

    for step in [*by_numba._OWN]:
        if by_numba._OWN[step] is not by_numba._Lowering:
            del by_numba._OWN[step]


def optimise_declarations() -> None:
    """Begin LLVM's passes for functions that are only declared, too."""
    from buda_emu.arithmetic.jit.compiling import by_numba

    del by_numba._Library._optimize_functions


def record_steps() -> None:
    """Let numba record the arguments of each step."""
    from buda_emu.arithmetic.jit.compiling import by_numba

    del by_numba._Passes._runPass


def try_whole_arrays() -> None:
    """Let numba try its rules for whole arrays at each operator."""
    from buda_emu.arithmetic.jit.compiling import by_numba

    by_numba._own_types = lambda context: context


def collect_garbage() -> None:
    """Leave Python's garbage collector on while numba compiles."""
    from buda_emu.support import garbage

    garbage.no_collections = _NothingPaused


class _NothingPaused(contextlib.ContextDecorator):
    """A decorator that changes nothing."""

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, *_: object) -> None:
        """Do nothing."""


def compile_helpers() -> None:
    """Make machine code of each helper by itself, as numba does."""
    from buda_emu.arithmetic.jit.compiling import by_numba

    del by_numba._Library._finalize_final_module


@dataclass(frozen=True)
class Mechanism:
    """A mechanism of the JIT, a function that undoes it in a process, and whether it matters in a cold start, in which
    kernels are compiled, or in a warm one."""

    title: str
    undo: Callable[[], None]
    cold: bool = True


MECHANISMS: Final[Mapping[str, Mechanism]] = {
    "numba": Mechanism("entry points: no numba", import_numba, cold=False),
    "disk": Mechanism("machine code kept on disk", keep_nothing_on_disk, cold=False),
    "steps": Mechanism("steps of numba left out", keep_all_steps),
    "lifetimes": Mechanism("no lifetimes of variables", keep_lifetimes),
    "declarations": Mechanism("no passes over declarations", optimise_declarations),
    "records": Mechanism("steps not recorded", record_steps),
    "arrays": Mechanism("no rules for whole arrays", try_whole_arrays),
    "garbage": Mechanism("no garbage collections", collect_garbage),
    "helpers": Mechanism("no machine code of helpers alone", compile_helpers),
}
COMMANDS: Final = {False: (RUN,), True: (RUN, TEST)}
"""The commands of warm and of cold starts. `check` calls no kernel; a worker of `test` is a process like `run`."""


def seconds(without: str, command: tuple[str, ...], cache: Path) -> float:
    """Return the processor seconds of a command and its children."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(cache)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # byte code is kept, as after an installation
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        (sys.executable, __file__, "--without", without, *command),
        env=environment,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure_saving(name: str, command: tuple[str, ...], cache: Path, pairs: int, *, cold: bool) -> str:
    """Return the milliseconds that a command takes more without a mechanism, with quartiles, and those that it takes
    with it."""
    differences: list[float] = []
    plain: list[float] = []
    for number in range(pairs + 1):
        if cold:
            shutil.rmtree(cache / "buda-emu", ignore_errors=True)
        with_it = seconds("nothing", command, cache)
        if cold:
            shutil.rmtree(cache / "buda-emu", ignore_errors=True)
        without = seconds(name, command, cache)
        if number or cold:  # the first pair of warm ones fills the caches
            plain.append(with_it)
            differences.append(without - with_it)
    low, middle, high = (1e3 * value for value in statistics.quantiles(differences, n=4, method="inclusive"))
    return f"{middle:7.0f} ({low:.0f} to {high:.0f}) of {1e3 * statistics.median(plain):.0f}"


def main() -> None:
    """Measure and print, or run one command."""
    if sys.argv[1:2] == ["--without"]:
        _, _, name, *command = sys.argv
        gc.set_threshold(20_000, 10, 10)  # as the command does, before anything is imported
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        if name in MECHANISMS:
            MECHANISMS[name].undo()
        sys.argv[1:] = command
        from buda_emu.app.cli.entry import entry

        entry()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--cold-pairs", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=list(MECHANISMS))
    args = parser.parse_args()
    print(conditions())
    with tempfile.TemporaryDirectory() as directory:
        for name in args.only:
            mechanism = MECHANISMS[name]
            pairs = args.cold_pairs if mechanism.cold else args.pairs
            start = "cold" if mechanism.cold else "warm"
            for command in COMMANDS[mechanism.cold]:
                figure = measure_saving(name, command, Path(directory), pairs, cold=mechanism.cold)
                print(f"{mechanism.title:36} {command[0]:6} {start} {figure}", flush=True)


if __name__ == "__main__":
    main()
