#!/usr/bin/env python3
"""Are bugs in kernels found by generated netlists, and how small does `reduce` make what shows them?

    python tools/planted_bugs.py                     20 mutants of the kernels of ops, drawn by --seed
    python tools/planted_bugs.py --count 5 --seconds 60
    python tools/planted_bugs.py --only 3,17         some of them again

One mutant at a time stands in for a module of the package. Tiny netlists that ask for every name of the language in
turn (`evenly`) run in it on awkward inputs by its kernels, on all three architectures and in both precisions that have
kernels of their own, until bits differ from those of the unchanged package's plain definitions, or a run fails; then
the netlist is reduced as long as it does so. A netlist on which the unchanged package's kernels differ, too, counts
nothing. Prints a line for each and the sums; exit code 1 where less than nine tenths are found, or a netlist keeps
more than three ops.

The definitions run in a process without the mutant because some functions have one implementation only, which kernel
and definition share. What a kernel has in compiled form by LLVM code of its own is searched uncompiled: the mutated
lines are the Python form. Drawn from files whose kernels netlists run: not from those of other documents, of timelines
and links, or that make kernels; nor what `tools/mutants.tsv` explains to change nothing, or `UNSEEN` to change nothing
that a netlist asks for.
"""

import argparse
import hashlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

from mutation.forked import environment_of
from mutation.judging import explanations
from mutation.sites import PACKAGE, ROOT, Mutant, sample

OTHERS = ("timeline.py", "intrinsics", "noc.py")
PRECISIONS = ("device", "format")
TRIED = "tried.yaml"
BUDGETS = {True: (2, 1, 6, 2), False: (1, 1, 1, 1)}
"""Sizes of a netlist for compiled kernels, and for kernels that run in Python: ops, graphs, tiles, inputs."""
_EXPONENT_OF_ZERO = "if large == 0:"
UNSEEN = {
    ("arithmetic/kernels/tensix/elementwise.py", _EXPONENT_OF_ZERO, "0 -> 1"):
        "a sum of two zeros is 0 with any exponent up to the least of what it is added to, and that comes out of a "
        "register of 16 bits: 0, or 113 at least",
}  # fmt: skip
"""Mutants that tests of the kernels alone can notice, and why no netlist does."""
MOST_SECONDS = 60  # of processor time for one netlist: a kernel without an end has shown its bug
MOST_TRIALS = {"in one process": 400, "a process each": 60}


def draw_mutants(count: int, seed: int) -> list[Mutant]:
    """Return mutants of kernels that change what is computed; mutants known to change nothing are left out."""
    root = PACKAGE / "arithmetic" / "kernels"
    files = [path for path in sorted(root.rglob("*.py")) if path.relative_to(root).parts[0] not in OTHERS]
    candidates = [mutant for mutant in sample(files, 3 * count, seed) if not mutant.at_import]
    size = max(1, len(candidates) // count)
    without_effect = {*explanations(), *UNSEEN}
    mutants: list[Mutant] = []
    for first in range(0, len(candidates), size):
        part = candidates[first : first + size]
        mutants += [mutant for mutant in part if mutant.key not in without_effect][:1]
    return mutants[:count]


# ------------------------------------------------------------------------------------- in a process with a mutant
def hunt(seconds: float, seed: int, sizes: Sequence[int]) -> dict[str, object]:
    """Return the first netlist that shows the mutant, and the smallest. The netlist that is tried is printed, and
    written to `TRIED`, since a mutant may end the process."""
    from buda_emu.testing.generator.netlist import Budget
    from buda_emu.testing.generator.steering import evenly

    number = 0
    clean = Clean()
    budget = Budget(*sizes)

    def spent() -> float:
        return time.process_time() + clean.seconds  # other work on the machine does not count

    while spent() < seconds:
        generated = evenly(number, seed=seed, budget=budget)
        how = {"arch": generated.netlist.arch_name, "precision": Random(number).choice(PRECISIONS)}
        how["inputs"] = number
        number += 1
        Path(TRIED).write_text(generated.text)
        row = {"netlists": number, "seconds": spent(), "ops": len(generated.netlist.ops), **how}
        print(json.dumps(row), flush=True)
        _limit_time()
        if shows(generated.text, how, clean):
            row["seconds"] = took = spent()
            ops, text = _reduce(generated.netlist, partial(shows, how=how, clean=clean))
            return {**row, "left": ops, "reduce": spent() - took, "text": text}
    return {"netlists": number, "seconds": spent(), "ops": None}


def shows(text: str, how: dict[str, Any], clean: "Clean") -> bool:
    """Return whether a netlist gives other bits than the plain definitions, or fails, where the unchanged package does
    neither."""
    try:
        result = _digest(text, how)
    except Exception as error:  # noqa: BLE001 - a kernel that fails shows its bug, too
        result = type(error).__name__
    expected = clean.digest(text, how)
    return expected != "" and result != expected


def _limit_time() -> None:
    """End this process if it takes too long from here on."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)


def _digest(text: str, how: dict[str, Any]) -> str:
    """Return a digest of all outputs of a run and their names."""
    from plain_definitions import outputs

    arrays = outputs(text, how["precision"], how["arch"], how["inputs"])
    digest = hashlib.sha256()
    for name, words in sorted(arrays.items()):
        digest.update(f"{name} {words.shape}".encode())
        digest.update(words.tobytes())
    return digest.hexdigest()


class Clean:
    """The unchanged package in a process of its own. Its answers are stored for further hunts."""

    def __init__(self) -> None:
        self.seconds = 0.0
        """The processor time of all answers, also of stored ones."""
        self._process: subprocess.Popen[str] | None = None

    def digest(self, text: str, how: dict[str, Any]) -> str:
        """Return the digest of the definitions' outputs; "" if the kernels of the unchanged package give others."""
        question = json.dumps({"text": text, "how": how})
        stored = Path(os.environ["PLANTED_ANSWERS"]) / hashlib.sha256(question.encode()).hexdigest()
        if not stored.exists():
            stored.write_text(self._ask(question))
        answer = json.loads(stored.read_text())
        self.seconds += answer["seconds"]
        return answer["digest"]

    def _ask(self, question: str) -> str:
        """Send a question to the process, which is started first, and return its answer."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, __file__, "--clean"],
                env=json.loads(os.environ["PLANTED_CLEAN"]),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(question + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()


def _answer() -> None:
    """Answer the questions on standard input with the unchanged package, line by line."""
    from plain_definitions import definitions

    for line in sys.stdin:
        start = time.process_time()
        question = json.loads(line)
        with definitions():
            digest = _digest(**question)
        if digest != _digest(**question):
            digest = ""
        print(json.dumps({"digest": digest, "seconds": time.process_time() - start}), flush=True)


def _reduce(netlist, fails):
    """Return the number of ops of the smallest netlist that still fails, and its text."""
    from buda_emu.testing.reduce.search import Outcome, reduce_netlist

    class Here:
        """Trials in this process: a mutant's kernels are compiled once."""

        count = 0
        workers = 1

        def run(self, texts: list[str]) -> list[Outcome]:
            self.count += len(texts)
            _limit_time()
            return [Outcome(1 if fails(text) else 0) for text in texts]

    smallest = reduce_netlist(netlist, Here(), most_trials=MOST_TRIALS["in one process"])  # type: ignore[arg-type]
    return len({op.written_name for op in smallest.netlist.ops.values()}), smallest.text


# ---------------------------------------------------------------------------------------- which kernels have changed
def keep_changed_kernels_apart(path: str, line: int) -> None:
    """Give the machine code of kernels that call the mutated function names of their own. All other kernels are loaded
    as they are: the names of files do not tell of the helpers that a kernel calls."""
    from buda_emu.arithmetic.jit.machine_code import disk_cache

    place = disk_cache.machine_code_file

    def place_apart(function: Any, variant: str) -> str | None:
        file_name = place(function, variant)
        if file_name is not None and any(has_line(code, path, line) for code in _callees(function)):
            return f"{file_name.removesuffix('.o')}-mutant.o"
        return file_name

    disk_cache.machine_code_file = place_apart


def has_line(code: Any, path: str, line: int) -> bool:
    """Return whether a function's code has a line."""
    lines = [number for *_, number in code.co_lines() if number is not None]
    return code.co_filename == path and min(lines) <= line <= max(lines)


def _callees(function: Any) -> Iterator[Any]:
    """Yield the codes of a function and of all functions that it may call, by the names in it."""
    left = [function]
    seen = set[int]()
    while left:
        caller = left.pop()
        caller = getattr(caller, "py_func", caller)
        if id(caller) in seen or not hasattr(caller, "__code__"):
            continue
        seen.add(id(caller))
        yield caller.__code__
        names = caller.__code__.co_names
        objects = [caller.__globals__.get(name) for name in names]
        objects += [cell.cell_contents for cell in caller.__closure__ or ()]
        left += objects
        for module in objects:
            if isinstance(module, ModuleType):
                left += [getattr(module, name, None) for name in names]


def is_in_kernel(mutant: Mutant) -> bool:
    """Return whether the mutated line is in a function that is compiled. A definition of LLVM code is not, nor is a
    function that only Python calls."""
    import ast

    tree = ast.parse(mutant.path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.lineno <= mutant.line <= (node.end_lineno or 0):
            marks = [mark.id for mark in node.decorator_list if isinstance(mark, ast.Name)]
            return not {"kernel", "helper"}.isdisjoint(marks)
    return False


# -------------------------------------------------------------------------------------------------- one after the other
def main() -> int:
    """Plant mutants, hunt each of them, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--seconds", type=float, default=300.0, help="processor time for each, to find it (default 300)"
    )
    parser.add_argument("--only", default="", help="numbers of those that are planted, from 1")
    parser.add_argument(
        "--answers", metavar="FOLDER", help="what the unchanged package said, kept for further runs of the same sources"
    )
    parser.add_argument("--hunt", nargs=3, metavar=("FILE", "LINE", "BUDGET"), help=argparse.SUPPRESS)
    parser.add_argument("--shows", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--clean", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.clean:
        _answer()
        return 0
    if args.hunt is not None:
        return _hunt_here(args)
    mutants = draw_mutants(args.count, args.seed)
    chosen = [int(word) - 1 for word in args.only.split(",") if word] or range(len(mutants))
    rows = [_hunt_and_print(number, mutants[number], args) for number in chosen]
    successes = [row for row in rows if row.get("ops")]
    small = [row for row in successes if row["left"] is not None and row["left"] <= 3]
    print(f"{len(successes)} of {len(rows)} found, {len(small)} of them reduced to 3 ops or fewer")
    return 0 if len(successes) >= 0.9 * len(rows) and len(small) == len(successes) else 1


def _hunt_here(args: argparse.Namespace) -> int:
    """Hunt in this process, which has a mutant, or with `--shows` try a single netlist; return the exit status."""
    path, line, sizes = args.hunt
    keep_changed_kernels_apart(path, int(line))
    if args.shows:
        _limit_time()
        return int(shows(Path(args.shows[0]).read_text(), json.loads(args.shows[1]), Clean()))
    print(json.dumps(hunt(args.seconds, args.seed, json.loads(sizes))))
    return 0


def _hunt_and_print(number: int, mutant: Mutant, args: argparse.Namespace) -> dict[str, Any]:
    """Hunt a mutant in a process of its own, print the result and return it."""
    with _environment(mutant, args.answers or _answers()) as environment:
        row = _hunt_in_process(mutant, Path(environment["XDG_CACHE_HOME"]), environment, args)
    print(f"{number + 1:2} {mutant}\n   {_summarize(row)}", flush=True)
    return row


@cache
def _answers() -> str:
    """Return a folder for the answers of the unchanged package."""
    import atexit
    import tempfile

    folder = tempfile.TemporaryDirectory(prefix="planted-bugs-")
    atexit.register(folder.cleanup)
    return folder.name


@contextmanager
def _environment(mutant: Mutant, answers: str) -> Iterator[dict[str, str]]:
    """Provide the environment of a hunt, which also knows that of a process without the mutant."""
    helpers = ROOT / "tests" / "helpers"
    path = os.pathsep.join(map(str, (ROOT, helpers, helpers / "bits", ROOT / "tools")))
    clean = {**os.environ, "PYTHONPATH": path}
    with environment_of(mutant, clean) as changed:
        changed |= {"PLANTED_CLEAN": json.dumps(clean), "PLANTED_ANSWERS": answers}
        yield changed if is_in_kernel(mutant) else {**changed, "NUMBA_DISABLE_JIT": "1"}


def _hunt_in_process(
    mutant: Mutant, folder: Path, environment: dict[str, str], args: argparse.Namespace
) -> dict[str, Any]:
    """Return the result of a hunt in a process that imports the mutant."""
    site = [str(mutant.path), str(mutant.line), json.dumps(BUDGETS[is_in_kernel(mutant)])]
    words = [sys.executable, __file__, "--seed", str(args.seed), "--hunt", *site]
    searching = [*words, "--seconds", str(args.seconds)]
    process = subprocess.run(searching, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    if process.returncode < 0 and process.stdout:
        return _of_crash(json.loads(process.stdout.splitlines()[-1]), words, folder, environment)
    if process.returncode:
        message = process.stderr.strip()[-200:] or f"ended with {process.returncode}"
        return {"netlists": 0, "seconds": 0.0, "ops": None, "error": message}
    return json.loads(process.stdout.splitlines()[-1])


def _of_crash(row: dict[str, Any], words: list[str], folder: Path, environment: dict[str, str]) -> dict[str, Any]:
    """Reduce the netlist with which a mutant ended the process; each trial is a process. `left` is None if the netlist
    alone does not end one, since the memory beside an array depends on earlier runs."""
    start = time.monotonic()
    how = json.dumps({name: row[name] for name in ("arch", "precision", "inputs")})
    clean = json.loads(environment["PLANTED_CLEAN"])
    changes = [f"{name}={value}" for name, value in environment.items() if clean.get(name) != value]
    check = f"{shlex.join(['env', *changes, *words, '--shows'])} {{}} {shlex.quote(how)}"
    command = [sys.executable, "-m", "buda_emu", "reduce", str(folder / TRIED), "--check", check, "--any-failure"]
    options = ["--arch", row["arch"], "--trials", str(MOST_TRIALS["a process each"]), "--timeout", "600", "-q"]
    process = subprocess.run([*command, *options, "--json", "small.json"], cwd=folder, check=False, env=clean)
    left = None if process.returncode else json.loads((folder / "small.json").read_text())["sizes"]["ops"]["after"]
    return {**row, "left": left, "reduce": time.monotonic() - start, "crash": True}


def _summarize(row: dict[str, Any]) -> str:
    """Return the result of a hunt as a sentence."""
    if row.get("error"):
        return f"no hunt: {row['error']}"
    if not row["ops"]:
        return f"not found by {row['netlists']} netlists in {row['seconds']:.0f} s"
    left = "not reduced: alone it does not" if row["left"] is None else f"reduced to {row['left']}"
    return (
        f"netlist {row['netlists']} {'ends the process' if row.get('crash') else 'shows it'} after "
        f"{row['seconds']:.1f} s ({row['arch']}, {row['precision']}): {row['ops']} ops, {left} in "
        f"{row['reduce']:.1f} s"
    )


if __name__ == "__main__":
    sys.exit(main())
