"""Options and results of a check: the same for every kind of document; which findings are reported and which of them
are errors.
"""

from collections.abc import Callable, Generator, Iterable
from dataclasses import replace
from typing import Generic, TypeAlias, TypeVar

from buda_emu.support.checker.diagnostic import Diagnostic
from buda_emu.support.checker.text import plural
from buda_emu.support.html_table import html_table
from buda_emu.support.records import dataclass

D = TypeVar("D", covariant=True)
_MOST_SHOWN = 20  # findings that `print` shows: a screen


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a check; each kind of document looks at those that apply to it.

    `arch`: one of the kind's architectures; `cache`: read a parsed netlist from the user's caches, and keep it there;
    `cluster`: path of the description of a netlist's chips, for `strict` alone; `frontend`: path of the network that a
    schedule computes; `runtime`: the driver's version that judges a package.
    """

    strict: bool = False
    arch: str | None = None
    cache: bool = True
    frontend: str | None = None
    runtime: int | None = None
    cluster: str | None = None


@dataclass(frozen=True, slots=True)
class CheckResult(Generic[D]):
    """The findings of a check, sorted by place. `document`: the parsed document; None where it could not be read, and
    for netlists that a rule refuses."""

    document: D | None
    diagnostics: tuple[Diagnostic, ...]

    @property
    def ok(self) -> bool:
        """True where the document is accepted: no finding is an error."""
        return not any(diagnostic.severity == "error" for diagnostic in self.diagnostics)

    @property
    def verdict(self) -> str:
        """The verdict in the words of the program that takes such documents, a driver for instance; "" where accepted
        or not says all."""
        return ""

    def __str__(self) -> str:
        lines = [self._sentence()]
        for entry in self.diagnostics[:_MOST_SHOWN]:
            lines.append(str(entry))
        if len(self.diagnostics) > _MOST_SHOWN:
            lines.append(f"and {len(self.diagnostics) - _MOST_SHOWN} more in diagnostics")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._sentence()}>"

    def _repr_html_(self) -> str:
        """Return a table of the findings, for notebooks."""
        rows = [(entry.where, entry.severity, entry.rule, entry.message, entry.hint) for entry in self.diagnostics]
        return html_table(self._sentence(), ("place", "severity", "rule", "finding", "hint"), rows)

    def _sentence(self) -> str:
        """Return whether the document is accepted, and how many findings there are."""
        state = "refused"
        if self.ok:
            state = "accepted"
        return f"{state}, {plural(len(self.diagnostics), 'finding')}"


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice of findings by ids of rules, or by beginnings of ids.

    `select`: report only these, or all where it is empty; `ignore`: do not report these; `error`: report these as
    errors. A finding for which a document is refused is reported in any case.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    error: tuple[str, ...] = ()

    def filter_findings(self, diagnostics: Iterable[Diagnostic], refuses: Callable[[str], bool]) -> list[Diagnostic]:
        """Return the findings to report, with their severity. `refuses` tells of a rule's id whether its findings are
        errors even in a check that is not strict."""
        if not (self.select or self.ignore or self.error):
            return list(diagnostics)
        reported: list[Diagnostic] = []
        for diagnostic in diagnostics:
            rule = diagnostic.rule
            selected = not self.select or _begins(rule, self.select)
            if not refuses(rule) and (not selected or _begins(rule, self.ignore)):
                continue
            if _begins(rule, self.error):
                diagnostic = replace(diagnostic, severity="error")
            reported.append(diagnostic)
        return reported


def _begins(rule: str, beginnings: Iterable[str]) -> bool:
    """Return whether the id of a rule begins with one of these words."""
    return any(rule.startswith(word) for word in beginnings)


T = TypeVar("T")
Steps: TypeAlias = Generator[None, None, T]
"""What is iterated for its steps; its result is what it returns."""


def run_steps(steps: Steps[T]) -> T:
    """Run all steps of a generator and return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value
