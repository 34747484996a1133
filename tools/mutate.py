#!/usr/bin/env python3
"""Mutation testing: do the tests of a room fail when a line of its code changes?

    python tools/mutate.py arithmetic/formats                   30 mutants of the room, drawn by --seed
    python tools/mutate.py arithmetic/formats --sample 100 --seed 7
    python tools/mutate.py arithmetic/formats/floats.py --all  every mutant of one file
    python tools/mutate.py arithmetic/formats --keep            and its row of tools/mutants-tried.tsv

A mutant replaces one number, comparison, arithmetic or logical operator. Its tests run in a process of their own: a
copy of one that has imported everything, in which the function changes; where none of them notices, one that imports
the module changed, as do processes that tests start. Nothing is written. Which tests run which lines is recorded once
(`.mutants/`): those that run the line go first, those of the file of the same name before the others, the quick before
the slow; a run that takes longer than three times the unchanged one counts as noticed. With --likely only the files of
tests that name a mutant's source are recorded, and all of the room's if a mutant survives those. `kernels` runs
uncompiled, by the tests marked `tiny`; what compiles them is judged by tests that compile all anew.

What survives is printed; `tools/mutants.tsv` explains survivors that change no behaviour. Exit code 1 if more than a
tenth of a sample is neither noticed nor explained, with --all if anything is. Needs `os.fork`.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from mutation.judging import explanations, failing, first_noticing_test, preload_packages
from mutation.sites import PACKAGE, ROOT, Mutant, sample
from mutation.touched import COMPILED, UNCOMPILED, Touched, likely, record, room_of
from mutation.warm import Warm

TRIED = ROOT / "tools" / "mutants-tried.tsv"
ENOUGH = 0.9  # of the mutants, noticed or explained


@dataclass(frozen=True)
class Outcome:
    """The result of a sample of mutants."""

    noticed: int
    explained: list[Mutant]
    survived: list[Mutant]

    def __add__(self, other: "Outcome") -> "Outcome":
        return Outcome(self.noticed + other.noticed, self.explained + other.explained, self.survived + other.survived)

    @property
    def tried(self) -> int:
        """The number of mutants."""
        return self.noticed + len(self.explained) + len(self.survived)

    @property
    def good(self) -> bool:
        """True if enough of them are noticed or explained."""
        return self.tried - len(self.survived) >= ENOUGH * self.tried


def judge(
    mutants: Sequence[Mutant],
    tests: Touched,
    seconds: float | None = None,
    tell: Callable[[str], object] = lambda _text: None,
    noticing: Callable[[str], object] = lambda _text: None,
    *,
    quickly: bool = False,
) -> Outcome:
    """Run the tests on each mutant, no longer than `seconds`; `quickly` is an argument of `first_noticing_test`. Raises
    RuntimeError if a test that noticed a mutant fails without any mutant, too."""
    start = time.monotonic()
    by: list[str] = []
    known_survivors: list[Mutant] = []
    survived: list[Mutant] = []
    with closing(Warm({test.partition("::")[0] for test in tests.seconds})) as warm:
        for number, mutant in enumerate(mutants):
            if seconds is not None and time.monotonic() - start > seconds:
                tell(f"stopped after {number} of {len(mutants)}: {seconds:g} seconds are over")
                break
            if mutant.key in explanations():
                known_survivors.append(mutant)
            elif test := first_noticing_test(mutant, tests, warm, quickly=quickly):
                by.append(test)
                noticing(f"{mutant}\n    noticed by {test}")
            else:
                survived.append(mutant)
                tell(str(mutant))
    if failed := failing([test for test in dict.fromkeys(by) if test in tests.seconds], tests):
        raise RuntimeError(f"{failed} fails without any mutant")
    return Outcome(len(by), known_survivors, survived)


def files(name: str) -> list[Path]:
    """Return the sources of a room, or one file, by the name below the package."""
    path = PACKAGE / name
    return [path] if path.is_file() else sorted(path.rglob("*.py"))


def keep(room: str, seed: int, outcome: Outcome) -> None:
    """Write a room's row of the table of samples."""
    head, *rows = TRIED.read_text(encoding="utf-8").splitlines()
    rows = [row for row in rows if row.split("\t")[0] != room]
    figures = seed, outcome.tried, outcome.noticed, len(outcome.explained), len(outcome.survived)
    rows.append("\t".join([room, *map(str, figures)]))
    TRIED.write_text("\n".join([head, *sorted(rows)]) + "\n", encoding="utf-8")


def _tell(text: str) -> None:
    print(text, flush=True)


def _judge_room(room: str, mutants: Sequence[Mutant], args: argparse.Namespace) -> Outcome:
    """Judge mutants by the tests of a room; with `--likely` first by the tests that name the mutants' sources."""
    outcome = Outcome(0, [], [])
    noticing = _tell if args.verbose else lambda _text: None
    os.environ["NUMBA_DISABLE_JIT"] = str(int(room == UNCOMPILED))
    if mutants and args.likely:
        files_of_tests = set[str]().union(*(likely(mutant.path) for mutant in mutants))
        quick_outcome = judge(mutants, record(room, files_of_tests), args.seconds, _tell, noticing, quickly=True)
        if quick_outcome.survived:
            _tell("by all tests of the room:")
        outcome += Outcome(quick_outcome.noticed, quick_outcome.explained, [])
        mutants = quick_outcome.survived
    if mutants:
        outcome += judge(mutants, record(room), args.seconds, _tell, noticing)
    return outcome


def main() -> int:
    """Judge a sample, and print the mutants that survive."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", help="a room of the package, or a file in one")
    parser.add_argument("--sample", type=int, default=30, help="how many mutants (30)")
    parser.add_argument("--all", action="store_true", help="every mutant")
    parser.add_argument("--seed", type=int, default=0, help="which sample (0)")
    parser.add_argument("--seconds", type=float, help="stop after that time")
    parser.add_argument("--likely", action="store_true", help="first only tests that name a mutant's source")
    parser.add_argument("--keep", action="store_true", help="write the room's row of tools/mutants-tried.tsv")
    parser.add_argument("--verbose", action="store_true", help="also print what noticed the others")
    args = parser.parse_args()
    os.chdir(ROOT)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "tools"), *filter(None, [os.environ.get("PYTHONPATH")])])
    room = room_of(Path(args.what))
    mutants = sample(files(args.what), None if args.all else args.sample, args.seed)
    if not mutants:
        parser.error(f"{args.what}: no such room or file, or nothing to change in it")
    preload_packages(compiling=room != UNCOMPILED)
    outcome = _judge_room(room, [mutant for mutant in mutants if not mutant.compiles], args)
    compiling = COMPILED if room == UNCOMPILED else room
    outcome += _judge_room(compiling, [mutant for mutant in mutants if mutant.compiles], args)
    explained_count = f", {len(outcome.explained)} explained" if outcome.explained else ""
    print(f"{args.what}: {outcome.noticed} noticed{explained_count}, {len(outcome.survived)} survived")
    if args.keep:
        keep(args.what, args.seed, outcome)
    return int(bool(outcome.survived) if args.all else not outcome.good)


if __name__ == "__main__":
    sys.exit(main())
