"""`buda-emu reduce`: shrink a netlist as long as a command still fails on it."""

import argparse
import time
from pathlib import Path
from typing import Final

from buda_emu.app.api.reduce import reduce
from buda_emu.app.cli.output import Progress, say, write_json, write_text
from buda_emu.emulator.image.opened import netlist_of
from buda_emu.report.terminal.text import table
from buda_emu.support.checker.text import plural
from buda_emu.support.columns import Column, Columns
from buda_emu.support.errors import Exit
from buda_emu.support.interrupt import termination_as_interrupt
from buda_emu.testing.reduce.search import REDUCTION, Reduction, ReductionState

REDUCED: Final = Columns[tuple[str, Path, Reduction]](
    Column("file", str, lambda reduced: reduced[0]),
    Column("output", str, lambda reduced: str(reduced[1])),
    *REDUCTION.within(tuple[str, Path, Reduction], lambda reduced: reduced[2]),
)
"""The JSON of `reduce --json`: the two files, and the reduction."""


def main(args: argparse.Namespace) -> int:
    """Reduce a netlist. Exit code 0, or 130 if Ctrl-C or SIGTERM ended it; the smallest netlist up to then is written,
    and nothing is left of the command's folders and processes."""
    output = args.output or _default_output(Path(args.file))
    written = ""
    start = time.perf_counter()

    def save_progress(step: ReductionState) -> None:
        """Write the smallest netlist so far, if it is a new one, and show how the reduction gets on."""
        nonlocal written
        if step.steps and step.text != written:
            write_text(output, step.text)
            written = step.text
        progress.show(f"{_line_count(step.text)}, trying fewer {step.move}, {step.trials} trials")

    with Progress(args.quiet) as progress, termination_as_interrupt():
        reduction = reduce(
            netlist_of(args.file, args.arch),
            args.command,
            timeout=args.timeout,
            workers=args.workers,
            any_failure=args.any_failure,
            most_trials=args.trials,
            progress=save_progress,
        )
    write_text(output, reduction.text)
    if not args.quiet:
        _print_reduction(reduction, output, time.perf_counter() - start)
    if args.json is not None:
        write_json(args.json, REDUCED.document((args.file, output, reduction)))
    return Exit.INTERRUPTED if reduction.interrupted else Exit.OK


def _default_output(path: Path) -> Path:
    """Return the path of the reduced netlist beside the netlist."""
    return path.with_name(f"{path.stem}.reduced.yaml")


def _line_count(text: str) -> str:
    """Return the number of lines with its noun, such as "12 lines"."""
    return plural(text.count("\n"), "line")


def _print_reduction(reduction: Reduction, output: Path, seconds: float) -> None:
    """Print the sizes before and after, and how the search ended."""
    rows = [(name, f"{before:,}", f"{after:,}") for name, before, after in reduction.sizes()]
    say(table(("", "before", "after"), rows, right=(1, 2)))
    say()
    end = ""
    if not reduction.finished:
        end = "; interrupted" if reduction.interrupted else "; stopped by --trials"
    counts = f"{reduction.steps} steps of {reduction.trials} trials"
    say(f"{output}: still {reduction.outcome} after {counts}, {seconds:.1f} s{end}")
