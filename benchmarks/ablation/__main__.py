"""Leaves out each part of the search for a placement by itself, and says what it gains and costs.

    python -m benchmarks.ablation                        # what is missing, case after case; Ctrl-C keeps what is there
    python -m benchmarks.ablation --only "bert, one input" "resnet50 n150"
    python -m benchmarks.ablation --parts turns "share 0.8"
    python -m benchmarks.ablation --parts "turns + share 0.8"   # both at once
    python -m benchmarks.ablation --list                 # names of cases, in their order
    python -m benchmarks.ablation --page                 # only write the table of docs/compile/placing.md anew

Throughput is modelled, and the search is counted, not timed: rows are the same on any machine, but for their processor
seconds. Each case runs in a process of its own and adds its rows to benchmarks/ablation/rows.jsonl. Published models
need the extra `zoo`, and YOLOv5 the extra `yolo` instead.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from buda_emu.support.errors import HostError

from .table import RESULTS, keep, read, table, write_page


def main() -> int:
    """Measure the cases that are asked for, and write the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ablation", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", default=[], metavar="CASE")
    parser.add_argument("--parts", nargs="+", default=[], metavar="PART", help="default: all")
    parser.add_argument("--list", action="store_true", help="measure nothing")
    parser.add_argument("--page", action="store_true", help="measure nothing")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FILE")
    parser.add_argument("--case", help="measure this one here")
    args = parser.parse_args()
    if args.page:
        write_page(read(args.results))
        return 0
    from .cases import CASES

    if args.case:
        try:
            _measure(args.case, args.parts, args.results)
        except HostError as error:
            print(f"ablation: {args.case}: {error}", file=sys.stderr)
            return 2
        return 0
    if args.list:
        print("\n".join(CASES))
        return 0
    for name in args.only or CASES:
        print(name, file=sys.stderr, flush=True)
        command = [sys.executable, "-m", "benchmarks.ablation", "--results", str(args.results), "--case", name]
        subprocess.run([*command, "--parts", *args.parts] if args.parts else command, check=False)
    print(table(read(args.results)))
    return 0


def _measure(name: str, parts: list[str], results: Path) -> None:
    """Measure a case, as it is and without each of some parts (all if none is named), and add the missing rows."""
    from buda_emu.compiler.search_parts import ALL_PARTS

    from .cases import CASES
    from .measure import rows

    measured_parts = read(results).get(name, {})
    missing = [part for part in parts or ALL_PARTS if part not in measured_parts]
    if not missing:
        return
    commit = _commit()
    for row in rows(CASES[name], missing, with_base="" not in measured_parts):
        keep({"model": name, "commit": commit, **row}, results)


def _commit() -> str:
    """Return the commit, with a `+` where the product was changed."""
    number = _git("rev-parse", "--short", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ":(top)buda_emu")
    return f"{number}{'+' if changed else ''}"


def _git(*words: str) -> str:
    """Return what git prints in this folder."""
    folder = Path(__file__).parent
    return subprocess.run(["git", *words], stdout=subprocess.PIPE, text=True, check=False, cwd=folder).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
