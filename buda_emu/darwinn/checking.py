"""Hold a file against the rules: findings and the verdict of the driver (DARWINN 8)."""

from dataclasses import dataclass
from typing import NamedTuple

from buda_emu.checker import Diagnostic, Severity
from buda_emu.darwinn.model import Package
from buda_emu.darwinn.reading import RUNTIME, Source, contents, read_source
from buda_emu.darwinn.rules.book import Verdict
from buda_emu.darwinn.rules.catalogue import CATALOGUE
from buda_emu.darwinn.rules.subject import Subject


class Finding(NamedTuple):
    """A finding in short. `where`: byte offset in the file, table and field."""

    rule: str
    severity: Severity
    where: str
    message: str


@dataclass(frozen=True, slots=True)
class Report:
    """What was found, sorted by place, and the package as far as it can be read."""

    path: str
    diagnostics: tuple[Diagnostic, ...]
    package: Package | None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """In short."""
        return tuple(Finding(item.rule, item.severity, item.where, item.message) for item in self.diagnostics)

    @property
    def ok(self) -> bool:
        """Whether the driver takes it and nothing is wrong with running it."""
        return self.verdict == "ok"

    @property
    def verdict(self) -> Verdict:
        """What the driver does: refuses to register it, fails or worse on it, or nothing of that."""
        stages = {CATALOGUE.rules[item.rule].stage for item in self.diagnostics}
        return "rejected" if "E" in stages else "faulty" if "F" in stages else "ok"


def check(source: Source, *, runtime: int = RUNTIME, path: str = "") -> Report:
    """Every finding about a `.tflite`, a bare package or their bytes, whatever they are.

    `runtime`: the version of the driver that judges; `path`: what to call bytes. Raises OSError for a file that cannot
    be opened.
    """
    data, path = contents(source, path)
    reading = read_source(data, path, runtime)
    found = list(reading.diagnostics)
    if reading.package is not None:
        found += CATALOGUE.run(Subject(reading.package), path=path)
    return Report(path, tuple(sorted(found, key=lambda item: item.order)), reading.package)
