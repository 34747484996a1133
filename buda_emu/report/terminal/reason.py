"""Why a netlist did not pass, in a line: the same words on a terminal, in Markdown and in the page."""

from buda_emu.checker.text import plural
from buda_emu.report.terminal.text import number
from buda_emu.screen import lines_of
from buda_emu.verify.result import CaseResult


def reason(case: CaseResult) -> str:
    """The first output that does not hold and how many more, else the first missed figure of performance-check, else
    the first line of what happened; empty for one that passed."""
    failed = list(case.failed_outputs)
    if failed:
        more = f" (and {plural(len(failed) - 1, 'more output')})" if len(failed) > 1 else ""
        return f"{failed[0].queue}: {failed[0].reason}{more}"
    missed = next((item for item in case.performance if not item.passed), None)
    if missed is not None:
        return f"performance-check {missed.config}: {missed.metric} is modelled as {number(missed.modelled, 6)}"
    return next(iter(lines_of(case.message)), "")
