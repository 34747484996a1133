"""The progress and the final output of `buda-emu test`."""

import argparse
import shlex
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from buda_emu.app.cli.output import Progress, bar_text, count_text, say, say_lines
from buda_emu.report.terminal import testing
from buda_emu.report.terminal.testing import MARKS
from buda_emu.report.terminal.text import MOST_LINES, first_lines
from buda_emu.support.screen import Style, current

if TYPE_CHECKING:
    from buda_emu.testing.verify.result import CaseResult, TestRun
    from buda_emu.testing.verify.runs.collect import Case

_LINE_LENGTH = 80  # characters for cases in a line: the usual width of a terminal
_COLOURS: Mapping[str, Style] = {"passed": "green", "skipped": "yellow"}


class Console:
    """The output of `buda-emu test`: while it runs a bar on a terminal, elsewhere a character or a line for each
    netlist, and every ten seconds a line on standard error; at the end everything that did not pass."""

    def __init__(self, cases: "list[Case]", args: argparse.Namespace, heading: str) -> None:
        self._cases = cases
        self._args = args
        self._progress = Progress(live=not args.quiet)
        self._compiling = ""
        self._compiled: list[tuple[str, float]] = []
        self._start = time.perf_counter()
        self._counts: Counter[str] = Counter()
        self._column = 0
        if not args.quiet:
            say(heading)
        self._redraw_bar()

    def result(self, _number: int, result: "CaseResult") -> None:
        """Count the result of one netlist and show the progress."""
        self._counts[result.status] += 1
        if self._progress.live:
            self._progress.clear()
        if self._args.verbose:
            say(f"{result.netlist} {self._paint(result.status)} ({result.seconds:.2f} s)")
        elif not self._args.quiet and not self._progress.live:
            self._print_mark(result)
        self._redraw_bar()

    def kernel(self, name: str, seconds: float | None) -> None:
        """Show that a kernel is being compiled, or count one that is done."""
        self._compiling = ""
        if seconds is None:
            self._compiling = f"compiling kernel {name} for this machine"
        else:
            self._compiled.append((name, seconds))
        self._redraw_bar()

    def end(self, run: "TestRun", known_netlists: "frozenset[str]") -> None:
        """Print everything that did not pass, except for `known_netlists` (those that fail as the baseline expects),
        then the summary and the closing line. With -q the first netlists stand for all."""
        self._end_progress()
        reported = [case for case in run.cases if case.netlist not in known_netlists]
        shown = [case for case in reported if self._is_shown_in_full(case, len(run.cases))]
        if self._args.quiet:
            shown = shown[:MOST_LINES]
        for case in shown:
            self._print_case(case)
        has_summary = self._print_summary(run, reported)
        if shown or has_summary or not self._args.quiet:
            say()
        has_failed = any(case.status not in ("passed", "skipped") for case in run.cases)
        colour: Style = "red" if has_failed else "green"
        say(current().paint(f"== {testing.closing_line(run)} ==", colour))

    def _end_progress(self) -> None:
        """Remove the bar, or end the line of marks, and print how many kernels were compiled."""
        self._progress.clear()
        if self._column:
            say()
        if self._compiled and not self._args.quiet:
            from buda_emu.app.cli.kernels import say_compilations  # with numpy

            say_compilations(self._progress, self._compiled)

    def _print_summary(self, run: "TestRun", reported: "Sequence[CaseResult]") -> bool:
        """Print the short summary of these cases: a line for each that did not pass, passed with doubts, or was
        skipped; then the longest durations if they were asked for. Return whether the summary had lines."""
        summary = [
            *testing.summary_lines(reported),
            *testing.doubt_lines(reported),
            *testing.skipped_lines(reported),
        ]
        if summary:
            say("\nshort summary")
            say_lines(first_lines(summary) if self._args.quiet else summary)
        if self._args.durations is not None:
            say(f"\n{testing.durations_table(run.cases, self._args.durations)}")
        return bool(summary)

    def _print_case(self, case: "CaseResult") -> None:
        """Print the result of one netlist in full."""
        say()
        if case.status == "passed":
            say(f"{case.netlist}: passed")
        else:
            say_lines(testing.case_lines(case))
        self._print_tables(case)

    def _is_shown_in_full(self, case: "CaseResult", count: int) -> bool:
        """Return whether a netlist's result is printed in full at the end; `count` is the number of all netlists."""
        if case.status in ("passed", "skipped"):
            is_requested = self._args.verbose or self._args.per_op or count == 1
            return not self._args.quiet and case.status == "passed" and is_requested
        return True

    def _print_tables(self, case: "CaseResult") -> None:
        """Print the warnings and tables about one netlist; nothing with --quiet."""
        if self._args.quiet:
            return
        for text in (*case.warnings, *case.doubts):
            say(f"warning: {text}")
        if case.outputs:
            say(f"\n{testing.outputs_table(case)}")
        for name, reason in case.not_compared.items():
            if reason.startswith("io-config lists it"):  # the user expects it to be compared
                say(f"not compared: {name}: {reason}")
        self._print_detail_tables(case)

    def _print_detail_tables(self, case: "CaseResult") -> None:
        """Print the figures of performance-check, the ops, and how to find out why an output differs."""
        if case.performance:
            say(f"\n{testing.performance_table(case)}")
        if case.ops and self._args.per_op:
            say(f"\n{testing.per_op_table(case.ops)}\n")
            say_lines(testing.first_bad_lines(case))
        if case.failed_outputs and case.precision == "device":
            say(f"\nwhy the chip's answer differs: buda-emu numerics {shlex.quote(case.netlist)}")

    def _print_mark(self, result: "CaseResult") -> None:
        """Print the mark of one netlist, and the share that is done at the end of a line."""
        done = sum(self._counts.values())
        say(MARKS[result.status], end="")
        self._column += 1
        if self._column == _LINE_LENGTH or done == len(self._cases):
            say(f" {100 * done // len(self._cases):3} %")
            self._column = 0

    def _redraw_bar(self) -> None:
        """Redraw the bar: the number of netlists done, how many did not pass, which kernel is being compiled, and the
        time left. If standard error is no terminal, give the same as text to the next of the lines that come every ten
        seconds."""
        done = sum(self._counts.values())
        wrong = done - self._counts["passed"] - self._counts["skipped"]
        notes = [f"{wrong} not passed"] if wrong else []
        if self._compiling:
            notes.append(self._compiling)
        text_of = bar_text if self._progress.live else count_text
        seconds = time.perf_counter() - self._start
        self._progress.show(text_of(done, len(self._cases), seconds, "netlists", ", ".join(notes)))

    def _paint(self, status: str) -> str:
        """Return a status in its colour."""
        return current().paint(status, _COLOURS.get(status, "red"))
