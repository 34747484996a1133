#!/usr/bin/env python3
"""Compiles every model class of installed libraries in a small configuration, and compares it with its original.

    python -m benchmarks.census                                # all that has no row yet; Ctrl-C keeps what is there
    python -m benchmarks.census --library timm --limit 50      # the next 50 of timm
    python -m benchmarks.census --arch grayskull --effort default --onnx --limit 50
    python -m benchmarks.census --only bert: gpt2: --again     # cases whose names hold one of these words, again
    python -m benchmarks.census --verdicts wrong crash --again # what was wrong
    python -m benchmarks.census --report                       # only write docs/compile/census.md anew

Needs the extra `census`, or the libraries of it that are to be counted. Weights and inputs are random and hang on
--seed; nothing is downloaded. Each model runs in a process of its own with limits of time and memory. Rows stay in
benchmarks/census/rows.jsonl.gz, and docs/compile/census.md is written from them.
"""

import argparse
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

from .page import PAGE, ROWS, write_page
from .rows import VERDICTS, Case, Row, append_row, make_row, read_rows, write_gzip


def main() -> int:
    """Run the cases that are asked for, and write the page."""
    args = _parser().parse_args()
    rows = read_rows(ROWS)
    beside = args.rows
    if beside is not None:
        rows |= read_rows(beside)
    if not args.report:
        _run(args, rows, beside)
    write_gzip(ROWS, rows.values())
    write_page(rows.values())
    print(f"wrote {PAGE}")
    return 0


def _parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.census", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--library", nargs="+", default=[], metavar="NAME", help="default: all that are installed")
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="cases whose names hold one of these")
    parser.add_argument("--arch", default="wormhole_b0", choices=("wormhole_b0", "grayskull", "blackhole"))
    parser.add_argument("--effort", default="low", choices=("low", "default", "high"))
    parser.add_argument("--onnx", action="store_true", help="export each model as ONNX, and compile that")
    parser.add_argument("--limit", type=int, metavar="N", help="at most so many cases")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes at a time")
    parser.add_argument("--seconds", type=int, default=300, metavar="N", help="processor time that a model may take")
    parser.add_argument("--memory", type=int, default=16, metavar="GIB", help="memory that a model may take")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--again", action="store_true", help="also cases that have a row")
    parser.add_argument("--verdicts", nargs="+", default=[], choices=VERDICTS, help="of --again: only rows of these")
    parser.add_argument("--rows", type=Path, metavar="FILE", help="keeps each row as it comes, as a line of JSON")
    parser.add_argument("--report", action="store_true", help="run nothing")
    return parser


def _run(args: argparse.Namespace, rows: dict[str, Row], beside: Path | None) -> None:
    """Run the cases that are asked for, and put their rows among the others."""
    from .processes import Limits, run_rows

    waiting = list(_waiting(args, rows))
    limits = Limits(seconds=args.seconds, memory=args.memory << 30)
    counts: Counter[str] = Counter()
    for number, row in enumerate(run_rows(waiting, args.jobs, args.seed, limits), 1):
        rows[row.identity] = row
        if beside is not None:
            append_row(beside, row)
        counts[row.verdict] += 1
        title = f"{row.library} {row.name} {row.form} {row.arch} {row.effort}"
        seconds = sum(row.seconds.values())
        print(f"[{number} of {len(waiting)}] {row.verdict}: {title}, {seconds:.1f} s {row.why[:150]}", flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()) or "nothing to do")


def _waiting(args: argparse.Namespace, rows: dict[str, Row]) -> Iterator[Row]:
    """Yield empty rows for the cases that are to run, one of each family first."""
    from .libraries import declare_missing_operators, installed_libraries, library_version
    from .models import list_cases
    from .offline import stay_offline

    stay_offline()
    declare_missing_operators()
    commit = current_commit()
    common = {name: library_version(name) for name in ("torch",)}
    names = args.library or installed_libraries()
    count = 0
    for case in in_rounds([list(list_cases(name)) for name in names]):
        if args.limit is not None and count >= args.limit:
            return
        if not _matches(case, args.only):
            continue
        form = "onnx" if args.onnx else case.form
        case = replace(case, arch=args.arch, effort=args.effort, form=form)
        row = make_row(case, args.seed, {**common, case.library: library_version(case.library)}, commit)
        if _is_to_run(args, rows.get(row.identity)):
            count += 1
            yield row


def _matches(case: Case, words: Sequence[str]) -> bool:
    """Return whether the name of a case has one of the words of `--only` in it, if there are any."""
    return not words or any(word in case.name for word in words)


def _is_to_run(args: argparse.Namespace, earlier: Row | None) -> bool:
    """Return whether the options ask for a case: without a row, or again with a row of one of the verdicts."""
    if earlier is None:
        return not args.verdicts
    return args.again and (not args.verdicts or earlier.verdict in args.verdicts)


def in_rounds(libraries: Iterable[list[Case]]) -> Iterator[Case]:
    """Yield the first case of each family, then the second of each, and so on, library by library in turn."""
    rounds: dict[int, list[list[Case]]] = {}
    for cases in libraries:
        counts: Counter[str] = Counter()
        queues: dict[int, list[Case]] = {}
        for case in cases:
            queues.setdefault(counts[case.family], []).append(case)
            counts[case.family] += 1
        for number, queue in queues.items():
            rounds.setdefault(number, []).append(queue)
    for number in sorted(rounds):
        for group in zip_longest(*rounds[number]):
            yield from (case for case in group if case is not None)


def current_commit() -> str:
    """Return the commit, with a `+` where files of it were changed."""
    number = _git("rev-parse", "--short", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", "buda_emu")
    return f"{number}{'+' if changed else ''}" if number else "unknown"


def _git(*words: str) -> str:
    """Return what git prints in the project's folder."""
    command = ["git", *words]
    folder = Path(__file__).parents[2]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, cwd=folder).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
