"""A package as a document: loaded, checked (findings and the verdict of the driver, DARWINN 8), summed up and timed."""

from dataclasses import fields
from typing import TYPE_CHECKING

from buda_emu.foreign.darwinn.model import Package, Verdict
from buda_emu.foreign.darwinn.reading import RUNTIME, Source, contents, read_source
from buda_emu.foreign.darwinn.rules import BOOK
from buda_emu.foreign.darwinn.rules.subject import Subject
from buda_emu.support.checker import CheckResult, Diagnostic, Options
from buda_emu.support.checker.render import render
from buda_emu.support.errors import PackageError
from buda_emu.support.records import dataclass

if TYPE_CHECKING:
    from buda_emu.performance.timeline.picture import TimelinePicture


@dataclass(frozen=True, slots=True)
class Report(CheckResult[Package]):
    """What was found, and the package as far as it can be read."""

    path: str

    @property
    def package(self) -> Package | None:
        """The document."""
        return self.document

    @property
    def findings(self) -> tuple[Diagnostic, ...]:
        """The diagnostics, by the name that packages had for them first."""
        return self.diagnostics

    @property
    def verdict(self) -> Verdict:
        """What the driver does: refuses to register it, fails or worse on it, or nothing of that."""
        stages = {BOOK.rules[item.rule].stage for item in self.diagnostics}
        return "rejected" if "E" in stages else "faulty" if "F" in stages else "ok"


@dataclass(frozen=True, slots=True, eq=False)
class Document(Package):
    """A package that was loaded."""

    def check(self) -> Report:
        """Hold it, and what wraps it, against the rules."""
        return check(self.source or self.raw, path=self.path)

    def summary(self) -> dict[str, int | str]:
        """What it is, in figures by name."""
        table = self.table
        main = self.main if self.executables else None
        layers = {} if main is None else {"inputs": len(main.inputs), "outputs": len(main.outputs)}
        return {
            "bytes": len(self.raw),
            "compiler": table.compiler_version or "",
            "least runtime": table.min_runtime_version,
            "chips": len(self.parts) or 1,
            "executables": ", ".join(item.kind for item in self.executables),
            **layers,
        }

    def timeline(self) -> "TimelinePicture":
        """One request, replayed with no link or clock assumed. Raises PackageError for a package of several chips."""
        from buda_emu.foreign.darwinn.picture import replay_picture
        from buda_emu.foreign.darwinn.replaying import replay

        return replay_picture(replay([self], [0]))


def load(source: Source) -> Document:
    """A package from a `.tflite`, a bare package or their bytes.

    Raises PackageError, with every finding, for what cannot be read (D001, D002, D011, D015 to D018), and OSError for a
    file that cannot be opened. What can be read is not checked further: `Document.check` does that.
    """
    data, path = contents(source)
    reading = read_source(data, path)
    package = reading.package
    if package is None or package.unread:
        raise PackageError(render(reading.diagnostics), reading.diagnostics)
    return Document(*(getattr(package, item.name) for item in fields(package)))


def check(source: Source, *, runtime: int = RUNTIME, path: str = "") -> Report:
    """Every finding about a `.tflite`, a bare package or their bytes, whatever they are.

    `runtime`: the version of the driver that judges; `path`: what to call bytes. Raises OSError for a file that cannot
    be opened.
    """
    data, path = contents(source, path)
    reading = read_source(data, path, runtime)
    found = list(reading.diagnostics)
    if reading.package is not None:
        found += BOOK.run(Subject(reading.package), path=path)
    return Report(reading.package, tuple(sorted(found, key=lambda item: item.order)), path)


def check_file(path: str, options: Options) -> Report:
    """Check a file, for the newest driver unless another is given. Raises OSError."""
    return check(path, runtime=RUNTIME if options.runtime is None else options.runtime)
