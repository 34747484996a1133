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

from mutation.judging import explained, failing, import_what_all_need, noticed_by
from mutation.sites import PACKAGE, ROOT, Mutant, sample
from mutation.touched import COMPILED, UNCOMPILED, Touched, likely, room_of, touched
from mutation.warm import Warm

TRIED = ROOT / "tools" / "mutants-tried.tsv"
ENOUGH = 0.9  # of the mutants, noticed or explained


@dataclass(frozen=True)
class Outcome:
    """What became of a sample of mutants."""

    noticed: int
    explained: list[Mutant]
    survived: list[Mutant]

    def __add__(self, other: "Outcome") -> "Outcome":
        return Outcome(self.noticed + other.noticed, self.explained + other.explained, self.survived + other.survived)

    @property
    def tried(self) -> int:
        """How many."""
        return self.noticed + len(self.explained) + len(self.survived)

    @property
    def good(self) -> bool:
        """Enough of them are noticed or explained."""
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
    """Run the tests on each mutant, no longer than `seconds`; `quickly`: as `noticed_by`. Raises RuntimeError where a
    test that noticed fails without any mutant, too."""
    begun = time.monotonic()
    by: list[str] = []
    known: list[Mutant] = []
    survived: list[Mutant] = []
    with closing(Warm({test.partition("::")[0] for test in tests.seconds})) as warm:
        for number, one in enumerate(mutants):
            if seconds is not None and time.monotonic() - begun > seconds:
                tell(f"stopped after {number} of {len(mutants)}: {seconds:g} seconds are over")
                break
            if one.key in explained():
                known.append(one)
            elif test := noticed_by(one, tests, warm, quickly=quickly):
                by.append(test)
                noticing(f"{one}\n    noticed by {test}")
            else:
                survived.append(one)
                tell(str(one))
    if failed := failing([test for test in dict.fromkeys(by) if test in tests.seconds], tests):
        raise RuntimeError(f"{failed} fails without any mutant")
    return Outcome(len(by), known, survived)


def files(what: str) -> list[Path]:
    """The sources of a room, or one file: as they are named below the package."""
    path = PACKAGE / what
    return [path] if path.is_file() else sorted(path.rglob("*.py"))


def keep(room: str, seed: int, found: Outcome) -> None:
    """Write a room's row of the table of what was tried."""
    head, *rows = TRIED.read_text(encoding="utf-8").splitlines()
    rows = [row for row in rows if row.split("\t")[0] != room]
    figures = seed, found.tried, found.noticed, len(found.explained), len(found.survived)
    rows.append("\t".join([room, *map(str, figures)]))
    TRIED.write_text("\n".join([head, *sorted(rows)]) + "\n", encoding="utf-8")


def main() -> int:
    """Print what survives."""
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
    drawn = sample(files(args.what), None if args.all else args.sample, args.seed)
    if not drawn:
        parser.error(f"{args.what}: no such room or file, or nothing to change in it")

    def tell(text: str) -> None:
        print(text, flush=True)

    import_what_all_need(compiling=room != UNCOMPILED)
    noticing = tell if args.verbose else lambda _text: None
    found = Outcome(0, [], [])
    compiling = COMPILED if room == UNCOMPILED else room
    for name, part in ((room, [m for m in drawn if not m.compiles]), (compiling, [m for m in drawn if m.compiles])):
        os.environ["NUMBA_DISABLE_JIT"] = str(int(name == UNCOMPILED))
        if part and args.likely:
            first = touched(name, set().union(*(likely(item.path) for item in part)))
            one = judge(part, first, args.seconds, tell, noticing, quickly=True)
            if one.survived:
                tell("by all tests of the room:")
            found += Outcome(one.noticed, one.explained, [])
            part = one.survived
        if part:
            found += judge(part, touched(name), args.seconds, tell, noticing)
    known = f", {len(found.explained)} explained" if found.explained else ""
    print(f"{args.what}: {found.noticed} noticed{known}, {len(found.survived)} survived")
    if args.keep:
        keep(args.what, args.seed, found)
    return int(bool(found.survived) if args.all else not found.good)


if __name__ == "__main__":
    sys.exit(main())
