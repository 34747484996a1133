"""Results of tests as findings, so that code forges and editors show them beside the netlist's lines."""

from collections.abc import Iterator, Mapping
from typing import Final

from buda_emu.checker import Diagnostic, Rule
from buda_emu.image.opened import check_file
from buda_emu.report.terminal.reason import reason
from buda_emu.report.terminal.testing import failure_line
from buda_emu.verify.result import STATUSES, CaseResult, TestRun

_NAME: Final = "test-{}"
RULES: Final[Mapping[str, Rule]] = {
    _NAME.format(status): Rule(_NAME.format(status), "error", meaning)
    for status, meaning in STATUSES.items()
    if status not in ("passed", "skipped")
}
"""What a netlist can break by not passing, one for each status."""


def annotations(run: TestRun) -> list[Diagnostic]:
    """One finding for each output that does not hold, at its queue, and for everything else that went wrong.

    Those of a netlist that was rejected are the checker's own.
    """
    return [item for case in run.cases if case.status not in ("passed", "skipped") for item in _of(case)]


def _of(case: CaseResult) -> Iterator[Diagnostic]:
    rule = _NAME.format(case.status)
    checked = check_file(case.netlist, case.arch or None)
    if case.status == "rejected" and not checked.ok:
        yield from (item for item in checked.diagnostics if item.severity == "error")
        return
    if not case.failed_outputs:
        yield Diagnostic(case.netlist, rule, "error", reason(case))
    for output in case.failed_outputs:
        message = " ".join(failure_line(output).split())
        queue = checked.netlist.queues.get(output.queue) if checked.netlist is not None else None
        if queue is None:
            yield Diagnostic(case.netlist, rule, "error", message)
        else:
            yield Diagnostic.at(queue.at(), case.netlist, rule, "error", message)
