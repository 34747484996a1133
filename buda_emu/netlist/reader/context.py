"""What the readers share: where findings go, what they are about, and the architecture known so far."""

from typing import TypeAlias

from buda_emu.checker.checks import require_few
from buda_emu.checker.diagnostic import Diagnostic, Severity
from buda_emu.netlist.nodes import Mark, Node

Place: TypeAlias = Node | Mark


class Context:
    """State of one reading. Sections are read in document order and look at what was read before (NETLIST 1.1)."""

    __slots__ = ("arch", "archs", "diagnostics", "findings", "path", "requested_arch", "subject")

    def __init__(self, path: str, requested_arch: str | None) -> None:
        self.path = path
        self.requested_arch = requested_arch
        self.arch = ""  # "" is unknown: neither grayskull nor blackhole (NETLIST 1.1, 11.3 C3)
        self.archs: tuple[str, ...] = ()
        self.subject = ""  # the object that is being read, as it starts a message: "queue q0"
        self.diagnostics: list[Diagnostic] = []
        self.findings = 0  # errors so far; an object during whose reading it grew is broken

    def report(self, rule: str, place: Place, message: str, hint: str = "", severity: Severity = "error") -> None:
        """Add a finding about the object that is being read. Raises TooManyFindingsError."""
        require_few(self.diagnostics, place, self.path, rule, "error")
        text = f"{self.subject}: {message}" if self.subject else message
        self.diagnostics.append(Diagnostic.at(place, self.path, rule, severity, text, hint))
        self.findings += severity == "error"
