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
from mutation.judging import explained
from mutation.sites import PACKAGE, ROOT, Mutant, sample

OTHERS = ("timeline.py", "intrinsics", "noc.py")
PRECISIONS = ("device", "format")
TRIED = "tried.yaml"
BUDGETS = {True: (2, 1, 6, 2), False: (1, 1, 1, 1)}
"""Of a netlist for kernels that are compiled, and for those that run in Python: ops, graphs, tiles, inputs."""
_EXPONENT_OF_ZERO = "exponent = i32(97) if large == 0 else i32(exponent + i32(112))"
UNSEEN = {
    ("arithmetic/kernels/tensix/elementwise.py", _EXPONENT_OF_ZERO, "0 -> 1"):
        "a sum of two zeros is 0 with any exponent up to the least of what it is added to, and that comes out of a "
        "register of 16 bits: 0, or 113 at least",
}  # fmt: skip
"""Mutants that tests of the kernels alone can notice, and why no netlist does."""
MOST_SECONDS = 60  # of processor time for one netlist: a kernel without an end has shown its bug
MOST_TRIALS = {"in one process": 400, "a process each": 60}


def planted(count: int, seed: int) -> list[Mutant]:
    """Mutants of kernels that change what is computed: those that are known to change nothing there are left out."""
    root = PACKAGE / "arithmetic" / "kernels"
    files = [path for path in sorted(root.rglob("*.py")) if path.relative_to(root).parts[0] not in OTHERS]
    drawn = [item for item in sample(files, 3 * count, seed) if not item.at_import]
    apart = max(1, len(drawn) // count)
    parts = (drawn[first : first + apart] for first in range(0, len(drawn), apart))
    same = {*explained(), *UNSEEN}
    found = [next((item for item in part if item.key not in same), None) for part in parts]
    return [item for item in found if item is not None][:count]


# ------------------------------------------------------------------------------------- in a process with a mutant
def hunt(seconds: float, seed: int, most: Sequence[int]) -> dict[str, object]:
    """The first netlist that shows the mutant, and the smallest. Which one is tried is printed, and stands in `TRIED`:
    a mutant may end the process."""
    from buda_emu.testing.generator.netlist import Budget
    from buda_emu.testing.generator.steering import evenly

    number = 0
    clean = Clean()
    budget = Budget(*most)

    def spent() -> float:
        return time.process_time() + clean.seconds  # other work on the machine does not count

    while spent() < seconds:
        made = evenly(number, seed=seed, budget=budget)
        how = {"arch": made.netlist.arch_name, "precision": Random(number).choice(PRECISIONS)}
        how["inputs"] = number
        number += 1
        Path(TRIED).write_text(made.text)
        row = {"netlists": number, "seconds": spent(), "ops": len(made.netlist.ops), **how}
        print(json.dumps(row), flush=True)
        _bound()
        if shows(made.text, how, clean):
            row["seconds"] = took = spent()
            ops, text = _reduced(made.netlist, partial(shows, how=how, clean=clean))
            return {**row, "left": ops, "reduce": spent() - took, "text": text}
    return {"netlists": number, "seconds": spent(), "ops": None}


def shows(text: str, how: dict[str, Any], clean: "Clean") -> bool:
    """Whether a netlist gives other bits than the plain definitions, or fails, as the unchanged package does not."""
    try:
        found = _digest(text, how)
    except Exception as error:  # noqa: BLE001 - a kernel that fails shows its bug, too
        found = type(error).__name__
    expected = clean.digest(text, how)
    return expected != "" and found != expected


def _bound() -> None:
    """Ends this process where it takes too long from here on."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)


def _digest(text: str, how: dict[str, Any]) -> str:
    """Of all outputs of a run, and their names."""
    from plain_definitions import outputs

    found = outputs(text, how["precision"], how["arch"], how["inputs"])
    digest = hashlib.sha256()
    for name, words in sorted(found.items()):
        digest.update(f"{name} {words.shape}".encode())
        digest.update(words.tobytes())
    return digest.hexdigest()


class Clean:
    """The unchanged package in a process of its own. What it says is kept for the hunts after the first."""

    def __init__(self) -> None:
        self.seconds = 0.0
        """Of its processor time, also where somebody asked before."""
        self._process: subprocess.Popen[str] | None = None

    def digest(self, text: str, how: dict[str, Any]) -> str:
        """Of the definitions' outputs; "" where its kernels give others."""
        question = json.dumps({"text": text, "how": how})
        kept = Path(os.environ["PLANTED_ANSWERS"]) / hashlib.sha256(question.encode()).hexdigest()
        if not kept.exists():
            kept.write_text(self._asked(question))
        answer = json.loads(kept.read_text())
        self.seconds += answer["seconds"]
        return answer["digest"]

    def _asked(self, question: str) -> str:
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
    """What the unchanged package says, line by line."""
    from plain_definitions import definitions

    for line in sys.stdin:
        start = time.process_time()
        question = json.loads(line)
        with definitions():
            digest = _digest(**question)
        if digest != _digest(**question):
            digest = ""
        print(json.dumps({"digest": digest, "seconds": time.process_time() - start}), flush=True)


def _reduced(netlist, fails):
    """Ops of the smallest netlist that still fails, and its text."""
    from buda_emu.testing.reduce.search import Outcome, reduce_netlist

    class Here:
        """Trials in this process: a mutant's kernels are compiled once."""

        count = 0
        workers = 1

        def run(self, texts: list[str]) -> list[Outcome]:
            self.count += len(texts)
            _bound()
            return [Outcome(1 if fails(text) else 0) for text in texts]

    found = reduce_netlist(netlist, Here(), most_trials=MOST_TRIALS["in one process"])  # type: ignore[arg-type]
    return len({op.written_name for op in found.netlist.ops.values()}), found.text


# ---------------------------------------------------------------------------------------- which kernels have changed
def keep_changed_kernels_apart(path: str, line: int) -> None:
    """Machine code of kernels that call the mutated function gets names of its own; of all others it is what there is:
    the names of files say nothing of the helpers that a kernel calls."""
    from buda_emu.arithmetic.jit.machine_code import disk_cache

    place = disk_cache.place

    def placed(function: Any, variant: str) -> str | None:
        found = place(function, variant)
        changed = found is not None and any(is_of(code, path, line) for code in _called(function))
        return f"{found.removesuffix('.o')}-mutant.o" if found is not None and changed else found

    disk_cache.place = placed


def is_of(code: Any, path: str, line: int) -> bool:
    """Whether a function's code has the line."""
    lines = [number for *_, number in code.co_lines() if number is not None]
    return code.co_filename == path and min(lines) <= line <= max(lines)


def _called(function: Any) -> Iterator[Any]:
    """Codes of a function and of all that it may call, by the names in it."""
    left = [function]
    seen = set[int]()
    while left:
        one = left.pop()
        one = getattr(one, "py_func", one)
        if id(one) in seen or not hasattr(one, "__code__"):
            continue
        seen.add(id(one))
        yield one.__code__
        names = one.__code__.co_names
        found = [one.__globals__.get(name) for name in names] + [cell.cell_contents for cell in one.__closure__ or ()]
        modules = [item for item in found if isinstance(item, ModuleType)]
        left += found + [getattr(item, name, None) for item in modules for name in names]


def is_compiled(mutant: Mutant) -> bool:
    """Whether the mutated line is in a function that is compiled: a definition of LLVM code is not, nor what only
    Python calls."""
    import ast

    tree = ast.parse(mutant.path.read_text(encoding="utf-8"))
    return any(
        isinstance(item, ast.FunctionDef)
        and item.lineno <= mutant.line <= (item.end_lineno or 0)
        and any(isinstance(mark, ast.Name) and mark.id in ("kernel", "helper") for mark in item.decorator_list)
        for item in tree.body
    )


# -------------------------------------------------------------------------------------------------- one after the other
def main() -> int:
    """Plant, hunt, print."""
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
        path, line, most = args.hunt
        keep_changed_kernels_apart(path, int(line))
        if args.shows:
            _bound()
            return int(shows(Path(args.shows[0]).read_text(), json.loads(args.shows[1]), Clean()))
        print(json.dumps(hunt(args.seconds, args.seed, json.loads(most))))
        return 0
    mutants = planted(args.count, args.seed)
    chosen = [int(word) - 1 for word in args.only.split(",") if word] or range(len(mutants))
    rows = [_told(number, mutants[number], args) for number in chosen]
    found = [row for row in rows if row.get("ops")]
    small = [row for row in found if row["left"] is not None and row["left"] <= 3]
    print(f"{len(found)} of {len(rows)} found, {len(small)} of them reduced to 3 ops or fewer")
    return 0 if len(found) >= 0.9 * len(rows) and len(small) == len(found) else 1


def _told(number: int, mutant: Mutant, args: argparse.Namespace) -> dict[str, Any]:
    with _environment(mutant, args.answers or _answers()) as environment:
        row = _hunted(mutant, Path(environment["XDG_CACHE_HOME"]), environment, args)
    print(f"{number + 1:2} {mutant}\n   {_said(row)}", flush=True)
    return row


@cache
def _answers() -> str:
    """A folder for what the unchanged package says."""
    import atexit
    import tempfile

    folder = tempfile.TemporaryDirectory(prefix="planted-bugs-")
    atexit.register(folder.cleanup)
    return folder.name


@contextmanager
def _environment(mutant: Mutant, answers: str) -> Iterator[dict[str, str]]:
    """Of a hunt, which also knows that of a process without the mutant."""
    helpers = ROOT / "tests" / "helpers"
    path = os.pathsep.join(map(str, (ROOT, helpers, helpers / "bits", ROOT / "tools")))
    clean = {**os.environ, "PYTHONPATH": path}
    with environment_of(mutant, clean) as changed:
        changed |= {"PLANTED_CLEAN": json.dumps(clean), "PLANTED_ANSWERS": answers}
        yield changed if is_compiled(mutant) else {**changed, "NUMBA_DISABLE_JIT": "1"}


def _hunted(mutant: Mutant, folder: Path, environment: dict[str, str], args: argparse.Namespace) -> dict[str, Any]:
    site = [str(mutant.path), str(mutant.line), json.dumps(BUDGETS[is_compiled(mutant)])]
    words = [sys.executable, __file__, "--seed", str(args.seed), "--hunt", *site]
    searching = [*words, "--seconds", str(args.seconds)]
    done = subprocess.run(searching, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode < 0 and done.stdout:
        return _of_crash(json.loads(done.stdout.splitlines()[-1]), words, folder, environment)
    if done.returncode:
        said = done.stderr.strip()[-200:] or f"ended with {done.returncode}"
        return {"netlists": 0, "seconds": 0.0, "ops": None, "error": said}
    return json.loads(done.stdout.splitlines()[-1])


def _of_crash(row: dict[str, Any], words: list[str], folder: Path, environment: dict[str, str]) -> dict[str, Any]:
    """A mutant that ends the process has shown itself; each trial of the reduction is a process then. `left` is None
    where the netlist alone does not end one: what lies beside an array hangs on what ran before."""
    start = time.monotonic()
    how = json.dumps({name: row[name] for name in ("arch", "precision", "inputs")})
    clean = json.loads(environment["PLANTED_CLEAN"])
    own = [f"{name}={value}" for name, value in environment.items() if clean.get(name) != value]
    check = f"{shlex.join(['env', *own, *words, '--shows'])} {{}} {shlex.quote(how)}"
    command = [sys.executable, "-m", "buda_emu", "reduce", str(folder / TRIED), "--check", check, "--any-failure"]
    options = ["--arch", row["arch"], "--trials", str(MOST_TRIALS["a process each"]), "--timeout", "600", "-q"]
    done = subprocess.run([*command, *options, "--json", "small.json"], cwd=folder, check=False, env=clean)
    left = None if done.returncode else json.loads((folder / "small.json").read_text())["sizes"]["ops"]["after"]
    return {**row, "left": left, "reduce": time.monotonic() - start, "crash": True}


def _said(row: dict[str, Any]) -> str:
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
