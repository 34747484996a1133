"""The results of a test as lines for a terminal, in the manner of pytest."""

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence

from buda_emu.report.terminal.case_columns import CHECKS, OPS, OUTPUTS, STATS, all_finite, reason
from buda_emu.report.terminal.text import column_table, correlation, number, percent, table
from buda_emu.support.checker.text import plural
from buda_emu.support.screen import lines_of
from buda_emu.testing.verify.result import CaseResult, OpResult, OutputResult, TestRun

MARKS = {
    "passed": ".", "failed": "F", "rejected": "R", "unsupported": "U", "stopped": "S", "timeout": "T", "crashed": "C",
    "error": "E", "skipped": "s",
}  # fmt: skip
"""One character for each status."""


def failure_line(output: OutputResult) -> str:
    """Return the figures of an output's comparison on one line, and the reason why it failed, if any, on a second
    one."""
    text = (
        f"{output.queue}: PCC {correlation(output.figures.pcc)}, match {percent(output.figures.match)}, "
        f"max error {number(output.figures.max_error)}{_non_finite_clause(output)}"
    )
    if output.figures.first_bad_tile is not None:
        text += f", first bad tile: {output.figures.first_bad_tile}"
    if output.reason:
        text += f"\n    {output.reason}"
    return text


def _non_finite_clause(output: OutputResult) -> str:
    """Return a clause on how many values are infinite or NaN, for `failure_line`; "" if all are finite."""
    if output.figures.not_finite_observed == output.figures.not_finite_expected == 0:
        return ""
    return f", not finite: {output.figures.not_finite_observed} observed, {output.figures.not_finite_expected} expected"


def case_lines(case: CaseResult) -> Iterator[str]:
    """Yield the lines about a netlist that did not pass: status, message, and outputs that differ."""
    yield f"{case.netlist}: {case.status}"
    for line in lines_of(case.message):
        yield f"  {line}"
    for output in case.failed_outputs:
        for line in lines_of(failure_line(output)):
            yield f"  {line}"


def outputs_table(case: CaseResult) -> str:
    """Return the table of all compared outputs of a netlist. The type of comparison stands below it if it is the same
    for all, else in a column."""
    kinds = {output.comparison.type for output in case.outputs}
    if len(kinds) != 1:
        return column_table(OUTPUTS, case.outputs)
    text = column_table(OUTPUTS, case.outputs, without=("comparison",))
    return f"{text}\ncompared by {kinds.pop()}"


def performance_table(case: CaseResult) -> str:
    """Return the table of `performance-check`: expected, modelled, verdict."""
    return column_table(CHECKS, case.performance)


def per_op_table(ops: Sequence[OpResult]) -> str:
    """Return the table of every op in execution order. The column of values that are not finite is left out if there
    are none."""
    if all(map(all_finite, ops)):
        return column_table(OPS, ops, without=("not finite",))
    return column_table(OPS, ops)


def first_bad_lines(case: CaseResult) -> Iterator[str]:
    """Yield lines about the first op past the threshold, with a table of its inputs; one line if ops were compared
    and none is past it.
    """
    bad = case.first_bad
    if bad is None:
        if case.ops:
            yield "no op is past the threshold"
        return
    op = case.ops[bad.index]
    yield f"first op past the threshold: {bad.op} ({op.type}, graph {op.graph}): {bad.reason}"
    yield "its inputs in the observed run:"
    yield column_table(STATS, bad.inputs)


def summary_lines(cases: Sequence[CaseResult]) -> Iterator[str]:
    """Yield one line for each netlist that did not pass, `STATUS path - reason`, whose path can be pasted into a
    command."""
    for case in cases:
        if case.status in ("passed", "skipped"):
            continue
        yield f"{case.status.upper()} {shlex.quote(case.netlist)} - {reason(case)}"


def skipped_lines(cases: Sequence[CaseResult]) -> Iterator[str]:
    """Yield one line for each reason for which netlists were skipped, with their number, or the name of a single
    one."""
    names_by_reason: dict[str, list[str]] = {}
    for case in cases:
        if case.status == "skipped":
            names_by_reason.setdefault(reason(case), []).append(case.netlist)
    for text, names in names_by_reason.items():
        subject = shlex.quote(names[0])
        if len(names) > 1:
            subject = plural(len(names), "netlist")
        yield f"SKIPPED {subject} - {text}"


def doubt_lines(cases: Sequence[CaseResult]) -> Iterator[str]:
    """Yield one line for each reason to doubt the verdict on a netlist that passed."""
    for case in cases:
        if case.status == "passed":
            for text in case.doubts:
                yield f"DOUBTFUL {shlex.quote(case.netlist)} - {text}"


def durations_table(cases: Sequence[CaseResult], limit: int) -> str:
    """Return the table of the netlists that took longest, longest first; `limit` is the most rows, 0 shows all."""
    longest = sorted(cases, key=lambda case: -case.seconds)[: limit or None]
    rows = ((f"{case.seconds:.2f} s", case.netlist, "from the cache" if case.from_cache else "") for case in longest)
    return table(("took", "netlist", ""), rows, right=(0,))


def closing_line(run: TestRun) -> str:
    """Return a line such as `3 failed, 300 passed in 12.3 s`, with the number of netlists that did not change since
    they were tested."""
    counts = Counter(case.status for case in run.cases)
    order = sorted(counts, key=lambda status: (status == "skipped", status == "passed", status))
    from_cache = sum(case.from_cache for case in run.cases)
    totals = ", ".join(f"{counts[status]} {status}" for status in order) or "nothing ran"
    text = f"{totals} in {run.seconds:.1f} s"
    if run.not_run:
        text += f", {plural(run.not_run, 'netlist')} not run"
    if from_cache:
        text += f", {from_cache} of them unchanged since they were tested"
    return text
