"""Results as JUnit XML, which CI systems read: one test case for each netlist."""

import re
from pathlib import PurePath
from xml.etree import ElementTree

from buda_emu.report.terminal.reason import reason
from buda_emu.report.terminal.testing import failure_line
from buda_emu.screen import lines_of
from buda_emu.verify.result import CaseResult, TestRun

_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(run: TestRun) -> str:
    """The whole file. Outputs that do not hold are failures, everything else that is not right an error."""
    suites = ElementTree.Element("testsuites")
    counts = {
        "tests": len(run.cases),
        "failures": sum(case.status == "failed" for case in run.cases),
        "errors": sum(case.status not in ("passed", "failed", "skipped") for case in run.cases),
        "skipped": sum(case.status == "skipped" for case in run.cases),
    }
    attributes = {"name": "buda-emu test", **{key: str(value) for key, value in counts.items()}}
    suite = ElementTree.SubElement(suites, "testsuite", attributes, time=f"{run.seconds:.3f}")
    properties = ElementTree.SubElement(suite, "properties")
    for name in ("precision", "expected"):
        ElementTree.SubElement(properties, "property", name=name, value=str(run.settings[name]))
    for case in run.cases:
        _case(suite, case)
    ElementTree.indent(suites)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(suites, encoding="unicode")}\n'


def _case(suite: ElementTree.Element, case: CaseResult) -> None:
    path = PurePath(case.netlist)
    folder = ".".join(part for part in path.parent.parts if part not in ("/", "..", "."))
    names = {"classname": _clean(folder or "netlists"), "name": _clean(path.name), "time": f"{case.seconds:.3f}"}
    element = ElementTree.SubElement(suite, "testcase", names)
    first = next(iter(lines_of(case.message)), case.status)
    if case.status == "skipped":
        ElementTree.SubElement(element, "skipped", message=_clean(first))
    elif case.status == "failed":
        text = "\n".join(failure_line(output) for output in case.failed_outputs)
        failure = ElementTree.SubElement(element, "failure", message=_clean(reason(case)), type="mismatch")
        sides = f"precision {case.precision}, expected {case.expected}"
        failure.text = _clean(f"{text}\n\n{sides}\n{case.command}")
    elif case.status != "passed":
        error = ElementTree.SubElement(element, "error", message=_clean(first), type=case.status)
        error.text = _clean(f"{case.message}\n\n{case.command}")


def _clean(text: str) -> str:
    """Characters that XML cannot hold are left out."""
    return _NOT_XML.sub("", text)
