#!/usr/bin/env python3
"""Makes the table of the 18 published models: compiled for the boards of its columns, correct, timed, beside silicon.

    python -m benchmarks.published                       # what is missing, cell after cell; Ctrl-C keeps what is there
    python -m benchmarks.published --only resnet50       # one row, again
    python -m benchmarks.published --boards n150 --forms torch --checks ideal
    python -m benchmarks.published --page                # only write docs/compile/published.md anew

Needs the extra `zoo`. Each cell runs in a process of its own; results stay in benchmarks/published/results.json, and
docs/compile/published.md is written from them.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from .table import PAGE, RESULTS, ROOT, keep, key, missing, page, read

if TYPE_CHECKING:
    from .measure import Cell


def main() -> int:
    """Measure what is asked for, and write the page."""
    from .models import MODELS

    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.published", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", nargs="+", default=[], choices=tuple(MODELS), metavar="NAME", help="rows to make again"
    )
    parser.add_argument("--boards", nargs="+", default=[], metavar="NAME", help="default: n150, e150, then the others")
    parser.add_argument("--forms", nargs="+", default=["torch", "onnx"], choices=("torch", "onnx"))
    parser.add_argument("--checks", nargs="*", default=["ideal", "device"], choices=("ideal", "device"))
    parser.add_argument("--effort", default="default")
    parser.add_argument("--page", action="store_true", help="measure nothing")
    parser.add_argument("--cell", nargs=3, metavar=("NAME", "BOARD", "FORM"), help="measure it here, print it as JSON")
    args = parser.parse_args()
    if args.cell:
        return _cell(args)
    wanted = [] if args.page else missing(read(RESULTS), MODELS, args.boards, args.forms, again=args.only)
    for number, (name, board, form) in enumerate(wanted, 1):
        print(f"[{number} of {len(wanted)}] {name} {board} {form}", file=sys.stderr, flush=True)
        begin = time.perf_counter()
        found = _measured(args, name, board, form)
        keep(RESULTS, found)
        said = f"{found['problem'] or _said(found)}, {time.perf_counter() - begin:.0f} s"
        print(f"    {said}", file=sys.stderr, flush=True)
    if not args.page:
        _vendor()
    PAGE.write_text(page(read(RESULTS), MODELS))
    print(f"wrote {PAGE}")
    return 0


def _measured(args: argparse.Namespace, name: str, board: str, form: str) -> dict[str, object]:
    """What a process of its own says of a cell at last; what ends it before it says anything is the cell's problem."""
    command = [sys.executable, "-m", "benchmarks.published", "--cell", name, board, form, "--effort", args.effort]
    done = subprocess.run([*command, "--checks", *args.checks], stdout=subprocess.PIPE, text=True, check=False)
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        why = "killed: out of memory?" if done.returncode < 0 else f"ended with exit code {done.returncode}"
        return {"model": name, "board": board, "form": form, "problem": f"the process {why}"}


def _vendor() -> None:
    """Model the vendor's own netlists of these networks, where they are beside the project and not known yet."""
    from placing import BENCHMARKS, vendor

    from .models import VENDOR

    known = read(RESULTS)
    for name, netlists in VENDOR.items():
        for netlist in netlists:
            path = BENCHMARKS / f"{netlist}.yaml"
            if path.exists() and key(name, netlist, "vendor") not in known:
                rate, epochs = vendor(path)
                cell = {"model": name, "board": netlist, "form": "vendor", "netlist": netlist, "problem": ""}
                keep(RESULTS, {**cell, "rate": rate, "epochs": epochs})


def _said(cell: dict[str, object]) -> str:
    return f"{cell['rate']:.0f} a second, compiled in {cell['seconds']:.0f} s, PCC {cell['pcc']}"


def _cell(args: argparse.Namespace) -> int:
    from .measure import measure
    from .models import MODELS

    name, board, form = args.cell
    found = measure(
        MODELS[name],
        board,
        form,
        args.checks,
        _commit(),
        args.effort,
        lambda text: print(f"    {text}", file=sys.stderr, flush=True),
        _show,
    )
    _show(found)
    return 0


def _commit() -> str:
    """The commit, with a `+` where anything but the results and their page was changed."""
    own = [f":(top,exclude){path.relative_to(ROOT)}" for path in (RESULTS, PAGE)]
    number = _git("rev-parse", "--short", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ":(top)", *own)
    return f"{number}{'+' if changed else ''}" if number else "unknown"


def _git(*words: str) -> str:
    return subprocess.run(
        ["git", *words], stdout=subprocess.PIPE, text=True, check=False, cwd=Path(__file__).parent
    ).stdout.strip()


def _show(cell: "Cell") -> None:
    print(json.dumps(cell.as_json()), flush=True)


if __name__ == "__main__":
    sys.exit(main())
