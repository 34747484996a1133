#!/usr/bin/env python3
"""Makes the table of the 18 published models: compiled for the boards of its columns, correct, timed, beside silicon.

    python -m benchmarks.published                       # what is missing, cell after cell; Ctrl-C keeps what is there
    python -m benchmarks.published --only resnet50       # one row, again
    python -m benchmarks.published --boards n150 --forms torch --checks ideal
    python -m benchmarks.published --page                # only write docs/compile/published.md anew

Needs the extra `zoo` and, for YOLOv5 alone and in an environment of its own, the extra `yolo`. Rows whose library is
not installed are left as they are. Each cell runs in a process of its own; results stay in
benchmarks/published/results.json, and docs/compile/published.md is written from them.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from buda_emu.support.errors import HostError

from .extras import missing_library, require_library
from .table import PAGE, RESULTS, ROOT, keep, key, missing, page, read

if TYPE_CHECKING:
    from .measure import Cell
    from .models import Model


def main() -> int:
    """Measure the cells that are asked for, and write the page."""
    if problem := missing_library("torch"):
        print(f"published: {problem}", file=sys.stderr)
        return 2
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
        return _measure_here(args)
    waiting: list[tuple[str, str, str]] = []
    if not args.page:
        cells = missing(read(RESULTS), MODELS, args.boards, args.forms, again=args.only)
        waiting = _with_libraries(cells, MODELS)
    for number, (name, board, form) in enumerate(waiting, 1):
        print(f"[{number} of {len(waiting)}] {name} {board} {form}", file=sys.stderr, flush=True)
        begin = time.perf_counter()
        cell = _measure_in_process(args, name, board, form)
        keep(RESULTS, cell)
        summary = f"{cell['problem'] or _summarize(cell)}, {time.perf_counter() - begin:.0f} s"
        print(f"    {summary}", file=sys.stderr, flush=True)
    if not args.page:
        _model_vendor_netlists()
    PAGE.write_text(page(read(RESULTS), MODELS))
    print(f"wrote {PAGE}")
    return 0


def _with_libraries(cells: Sequence[tuple[str, str, str]], models: "Mapping[str, Model]") -> list[tuple[str, str, str]]:
    """Return the cells of models whose library is installed, and print which extra each of the other models needs."""
    problems: dict[str, str] = {}
    for name, _, form in cells:
        packages = [models[name].package, "onnx" if form == "onnx" else ""]
        for package in filter(None, packages):
            if problem := missing_library(package):
                problems[name] = problem
    for name, problem in problems.items():
        print(f"{name} is left out: {problem}", file=sys.stderr, flush=True)
    return [cell for cell in cells if cell[0] not in problems]


def _measure_in_process(args: argparse.Namespace, name: str, board: str, form: str) -> dict[str, object]:
    """Measure a cell in a process of its own and return it as JSON. If the process ends without a result, the cell's
    problem says so."""
    command = [sys.executable, "-m", "benchmarks.published", "--cell", name, board, form, "--effort", args.effort]
    process = subprocess.run([*command, "--checks", *args.checks], stdout=subprocess.PIPE, text=True, check=False)
    try:
        return json.loads(process.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        why = "killed: out of memory?" if process.returncode < 0 else f"ended with exit code {process.returncode}"
        return {"model": name, "board": board, "form": form, "problem": f"the process {why}"}


def _model_vendor_netlists() -> None:
    """Add modelled cells of the vendor's own netlists of these networks, where the netlists are beside the project and
    not modelled yet."""
    from placing import BENCHMARKS, vendor

    from .models import VENDOR

    cells = read(RESULTS)
    for name, netlists in VENDOR.items():
        for netlist in netlists:
            path = BENCHMARKS / f"{netlist}.yaml"
            if path.exists() and key(name, netlist, "vendor") not in cells:
                rate, epochs = vendor(path)
                cell = {"model": name, "board": netlist, "form": "vendor", "netlist": netlist, "problem": ""}
                keep(RESULTS, {**cell, "rate": rate, "epochs": epochs})


def _summarize(cell: dict[str, object]) -> str:
    """Return the figures of a measured cell as one line."""
    return f"{cell['rate']:.0f} a second, compiled in {cell['seconds']:.0f} s, PCC {cell['pcc']}"


def _measure_here(args: argparse.Namespace) -> int:
    """Measure the cell that `--cell` names in this process, and print it as JSON before each run and at the end."""
    from .measure import measure
    from .models import MODELS

    name, board, form = args.cell
    try:
        require_library(MODELS[name].package)
    except HostError as error:
        print(f"published: {error}", file=sys.stderr)
        return 2
    cell = measure(
        MODELS[name],
        board,
        form,
        args.checks,
        commit=_commit(),
        effort=args.effort,
        tell=lambda text: print(f"    {text}", file=sys.stderr, flush=True),
        show=_show,
    )
    _show(cell)
    return 0


def _commit() -> str:
    """Return the commit, with a `+` if anything but the results and their page was changed."""
    outputs = [f":(top,exclude){path.relative_to(ROOT)}" for path in (RESULTS, PAGE)]
    number = _git("rev-parse", "--short", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ":(top)", *outputs)
    return f"{number}{'+' if changed else ''}" if number else "unknown"


def _git(*words: str) -> str:
    """Return what git prints in this folder; empty outside of a repository."""
    return subprocess.run(
        ["git", *words], stdout=subprocess.PIPE, text=True, check=False, cwd=Path(__file__).parent
    ).stdout.strip()


def _show(cell: "Cell") -> None:
    """Print a cell as one line of JSON."""
    print(json.dumps(cell.as_json()), flush=True)


if __name__ == "__main__":
    sys.exit(main())
