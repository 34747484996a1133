"""Results of tests as JUnit XML and as findings, for CI systems and code forges."""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import PurePath
from typing import Final
from xml.etree import ElementTree

from buda_emu.emulator.image.opened import check_file
from buda_emu.report.terminal.case_columns import reason
from buda_emu.report.terminal.testing import failure_line
from buda_emu.support.checker import Diagnostic, Rule
from buda_emu.support.screen import lines_of
from buda_emu.testing.verify.result import STATUSES, CaseResult, TestRun

_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(run: TestRun, known_netlists: Set[str] = frozenset()) -> str:
    """Return the content of a JUnit file. A netlist with outputs that differ from those expected is a failure,
    everything else that goes wrong an error. `known_netlists` fail as a baseline expects: they count as skipped, and
    say why."""
    suites = ElementTree.Element("testsuites")
    judged = [case for case in run.cases if case.netlist not in known_netlists]
    skipped = sum(case.status == "skipped" for case in judged)
    counts = {
        "tests": len(run.cases),
        "failures": sum(case.status == "failed" for case in judged),
        "errors": sum(case.status not in ("passed", "failed", "skipped") for case in judged),
        "skipped": skipped + len(run.cases) - len(judged),
    }
    attributes = {"name": "buda-emu test", **{key: str(value) for key, value in counts.items()}}
    suite = ElementTree.SubElement(suites, "testsuite", attributes, time=f"{run.seconds:.3f}")
    properties = ElementTree.SubElement(suite, "properties")
    for name in ("precision", "expected"):
        ElementTree.SubElement(properties, "property", name=name, value=str(run.settings[name]))
    if run.not_run:
        ElementTree.SubElement(properties, "property", name="not_run", value=str(run.not_run))
    for case in run.cases:
        _add_case(suite, case, is_known=case.netlist in known_netlists)
    ElementTree.indent(suites)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(suites, encoding="unicode")}\n'


def _add_case(suite: ElementTree.Element, case: CaseResult, *, is_known: bool) -> None:
    """Add the JUnit element of one netlist to a suite: passed, failed, skipped, or an error. With `is_known`, a failure
    that the baseline expects, it is skipped."""
    path = PurePath(case.netlist)
    folder = ".".join(part for part in path.parent.parts if part not in ("/", "..", "."))
    names = {
        "classname": _without_non_xml(folder or "netlists"),
        "name": _without_non_xml(path.name),
        "time": f"{case.seconds:.3f}",
    }
    element = ElementTree.SubElement(suite, "testcase", names)
    first = next(iter(lines_of(case.message)), case.status)
    if is_known:
        message = f"expected by the baseline: {case.status}: {reason(case)}"
        ElementTree.SubElement(element, "skipped", message=_without_non_xml(message)).text = _without_non_xml(
            case.command
        )
    elif case.status == "skipped":
        ElementTree.SubElement(element, "skipped", message=_without_non_xml(first))
    elif case.status == "failed":
        text = "\n".join(failure_line(output) for output in case.failed_outputs)
        failure = ElementTree.SubElement(element, "failure", message=_without_non_xml(reason(case)), type="mismatch")
        sides = f"precision {case.precision}, expected {case.expected}"
        failure.text = _without_non_xml(f"{text}\n\n{sides}\n{case.command}")
    elif case.status != "passed":
        error = ElementTree.SubElement(element, "error", message=_without_non_xml(first), type=case.status)
        error.text = _without_non_xml(f"{case.message}\n\n{case.command}")
    if case.doubts:
        ElementTree.SubElement(element, "system-out").text = _without_non_xml("\n".join(case.doubts))


def _without_non_xml(text: str) -> str:
    """Return a text without the characters that XML cannot hold."""
    return _NOT_XML.sub("", text)


_NAME: Final = "test-{}"
_DOUBT: Final = _NAME.format("doubtful")
RULES: Final[Mapping[str, Rule]] = {
    **{
        _NAME.format(status): Rule(_NAME.format(status), "error", meaning)
        for status, meaning in STATUSES.items()
        if status not in ("passed", "skipped")
    },
    _DOUBT: Rule(_DOUBT, "warning", "the verdict says less than it seems"),
}
"""One rule for each status of a netlist that does not pass, and one for a verdict that shows little."""


def annotations(run: TestRun, known_netlists: Set[str] = frozenset()) -> list[Diagnostic]:
    """Return a finding for each output that differs from the one expected, placed at its queue in the netlist, for
    everything else that went wrong, and a warning for each reason to doubt a verdict. Failures of `known_netlists`,
    which a baseline expects, have none. A netlist that the checker rejects has the checker's errors."""
    findings: list[Diagnostic] = []
    for case in run.cases:
        if case.status not in ("passed", "skipped") and case.netlist not in known_netlists:
            findings += _case_findings(case)
        findings += [Diagnostic(case.netlist, _DOUBT, "warning", text) for text in case.doubts]
    return findings


def _case_findings(case: CaseResult) -> Iterator[Diagnostic]:
    """Check the file of a netlist that did not pass, and yield the findings about it: the checker's errors if it was
    rejected, else one for each output that differs, else one with the reason."""
    rule = _NAME.format(case.status)
    checked = check_file(case.netlist, case.arch or None)
    refusals = _findings_of_rejection(case, checked.diagnostics)
    if refusals:
        yield from refusals
        return
    if not case.failed_outputs:
        yield _reason_finding(case, rule)
    for output in case.failed_outputs:
        message = "; ".join(line.strip() for line in failure_line(output).splitlines())
        queue = None
        if checked.netlist is not None:
            queue = checked.netlist.queues.get(output.queue)
        if queue is None:
            yield Diagnostic(case.netlist, rule, "error", message)
        else:
            yield Diagnostic.at(queue.at(), case.netlist, rule, "error", message)


def _reason_finding(case: CaseResult, rule: str) -> Diagnostic:
    """Return the finding of a netlist without an output that differs: the reason, and of a program that stopped its
    likely cause, at the instruction."""
    message = reason(case)
    stopped = case.stopped
    if stopped is None:
        return Diagnostic(case.netlist, rule, "error", message)
    if stopped["cause"]:
        message = f"{message}; likely cause: {stopped['cause']}"
    return Diagnostic(case.netlist, rule, "error", message, line=stopped["line"], column=stopped["column"])


def _findings_of_rejection(case: CaseResult, findings: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Return the findings for which a netlist was rejected: the checker's errors, else, as errors, the warnings that
    the run quoted when it refused; [] if it was not rejected."""
    if case.status != "rejected":
        return []
    errors = [finding for finding in findings if finding.severity == "error"]
    quoted = [finding for finding in findings if f"[{finding.rule}]: {finding.message}" in case.message]
    return errors or [replace(finding, severity="error") for finding in quoted]
