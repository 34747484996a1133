"""The X rules: numbered, each declared once with its function. `explain X014` prints one. No numpy."""

from dataclasses import fields

from buda_emu.foreign.vpux.elements import find_arch
from buda_emu.foreign.vpux.model import Function, VpuxDiagnostic, VpuxFile
from buda_emu.foreign.vpux.program import Program
from buda_emu.support.checker import Diagnostic

# their rules register while they are imported, in the order in which docs list them
from buda_emu.foreign.vpux.rules import names, buffers, tasks  # isort: skip
from buda_emu.foreign.vpux.rules.book import BOOK

__all__ = ["BOOK", "buffers", "check_document", "check_function", "names", "tasks"]


def check_document(document: VpuxFile, arch: str) -> list[VpuxDiagnostic]:
    """Return the findings of every split and function, in order of place. Raises HostError for an unknown
    architecture."""
    find_arch(arch)
    findings: list[VpuxDiagnostic] = []
    for split in document.splits:
        if split.error is not None:
            offset, message = split.error
            place = document.place(offset, offset + 1)
            findings.append(
                _to_vpux_diagnostic(document, BOOK.diagnostic(document.path, "X001", place, message), split.number, "")
            )
    for function in document.functions:
        findings += check_function(function, arch)
    return sorted(findings, key=lambda finding: finding.order)


def check_function(function: Function, arch: str) -> list[VpuxDiagnostic]:
    """Return the findings about one function on an architecture, 37XX or 40XX. Raises HostError for another."""
    document = function.document
    diagnostics = BOOK.run(Program(function, arch), path=document.path)
    return [_to_vpux_diagnostic(document, diagnostic, function.split, function.name) for diagnostic in diagnostics]


def _to_vpux_diagnostic(document: VpuxFile, diagnostic: Diagnostic, split: int, function: str) -> VpuxDiagnostic:
    """Return a diagnostic with its source line, its split and the name of its function."""
    values = {field.name: getattr(diagnostic, field.name) for field in fields(Diagnostic)}
    if 0 < diagnostic.line <= len(document.lines):
        values["source_line"] = document.lines[diagnostic.line - 1]
    return VpuxDiagnostic(**values, split=split, function=function)
