"""The results of a test as Markdown, for pull requests and chats: tables, no pictures."""

from collections.abc import Iterable, Iterator, Sequence

from buda_emu.checker.text import plural
from buda_emu.report.sides import sides
from buda_emu.report.terminal.reason import reason
from buda_emu.report.terminal.text import correlation, number, percent, shape
from buda_emu.screen import lines_of
from buda_emu.verify.result import CaseResult, TestRun


def markdown(run: TestRun, detailed: Sequence[CaseResult]) -> str:
    """All verdicts, then the `detailed` cases."""
    return "\n".join(_lines(run, detailed)) + "\n"


def _lines(run: TestRun, detailed: Sequence[CaseResult]) -> Iterator[str]:
    passed = sum(case.status == "passed" for case in run.cases)
    yield f"# buda-emu test: {passed} of {plural(len(run.cases), 'netlist')} passed"
    yield ""
    yield f"buda-emu {run.version}, {run.seconds:.1f} s, {sides(run.settings)}"
    yield ""
    verdicts = ((code(case.netlist), case.status, len(case.outputs), reason(case)) for case in run.cases)
    yield from _table(("netlist", "verdict", "outputs", "why"), verdicts)
    for case in detailed:
        yield from _case(case)


def _case(case: CaseResult) -> Iterator[str]:
    yield from ("", f"## {_text(case.netlist)}: {case.status}", "", "```sh", case.command, "```")
    if case.warnings:
        yield from ("", *(f"* {_text(warning)}" for warning in case.warnings))
    if case.message:
        yield from ("", "```text", *lines_of(case.message.replace("```", "'''")), "```")
    if case.outputs:
        yield ""
        yield from _table(
            ("output", "verdict", "format", "shape", "PCC", "match", "max error", "bad tiles", "why"),
            (
                (
                    code(output.queue),
                    "passed" if output.passed else "failed",
                    output.format,
                    shape(output.shape),
                    correlation(output.pcc),
                    percent(output.match),
                    number(output.max_error),
                    f"{output.bad_tiles}/{output.tiles}",
                    output.reason,
                )
                for output in case.outputs
            ),
        )
    bad = case.first_bad
    if bad is not None:
        yield from ("", f"The first op past the threshold is {code(bad.op)}: {_text(bad.reason)}. Its inputs:", "")
        yield from _table(
            ("input", "format", "min", "max", "mean", "not finite", "PCC"),
            (
                (
                    code(stats.name),
                    stats.format,
                    number(stats.min),
                    number(stats.max),
                    number(stats.mean),
                    percent(stats.not_finite),
                    correlation(stats.pcc),
                )
                for stats in bad.inputs
            ),
        )


def _table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    yield f"| {' | '.join(headers)} |"
    yield f"|{'---|' * len(headers)}"
    for row in rows:
        yield f"| {' | '.join(_text(str(cell)) for cell in row)} |"


def code(text: str) -> str:
    """A name in code type."""
    return f"`{text.replace('`', chr(39))}`"


def _text(text: str) -> str:
    """On one line, without what would end a table's cell."""
    return " ".join(text.split()).replace("|", "\\|")
