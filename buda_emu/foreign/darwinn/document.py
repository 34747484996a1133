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


@dataclass(frozen=True, slots=True, repr=False)
class Report(CheckResult[Package]):
    """The findings about a package, and the package as far as it can be read."""

    path: str

    @property
    def package(self) -> Package | None:
        """The package, or None where nothing could be read."""
        return self.document

    @property
    def findings(self) -> tuple[Diagnostic, ...]:
        """The diagnostics, under an older name."""
        return self.diagnostics

    @property
    def verdict(self) -> Verdict:
        """The driver's reaction: "rejected" at registration, "faulty" where it fails or worse later, else "ok"."""
        stages = {BOOK.rules[diagnostic.rule].stage for diagnostic in self.diagnostics}
        if "E" in stages:
            return "rejected"
        if "F" in stages:
            return "faulty"
        return "ok"


@dataclass(frozen=True, slots=True, eq=False)
class PackageDocument(Package):
    """A package that was loaded from a file or from bytes."""

    def check(self) -> Report:
        """Check the package, and the file around it, against the rules."""
        return check(self.source or self.raw, path=self.path)

    def summary(self) -> dict[str, int | str]:
        """Return the package's main figures by name, for a table."""
        table = self.table
        main = self.main if self.executables else None
        layers: dict[str, int] = {}
        if main is not None:
            layers = {"inputs": len(main.inputs), "outputs": len(main.outputs)}
        return {
            "bytes": len(self.raw),
            "compiler": table.compiler_version or "",
            "least runtime": table.min_runtime_version,
            "chips": len(self.parts) or 1,
            "executables": ", ".join(executable.kind for executable in self.executables),
            **layers,
        }

    def timeline(self) -> "TimelinePicture":
        """Replay one request with no link or clock assumed and return its timeline. Raises PackageError for a package
        of several chips."""
        from buda_emu.foreign.darwinn.picture import replay_picture
        from buda_emu.foreign.darwinn.replaying import replay

        return replay_picture(replay([self], [0]))


def load(source: Source) -> PackageDocument:
    """Load a package from a `.tflite`, a bare package or their bytes.

    Raises PackageError, with every finding, where the package cannot be read (D001, D002, D011, D015 to D018), and
    OSError for a file that cannot be opened. A package that can be read is not checked further: `Document.check` does
    that.
    """
    data, path = contents(source)
    reading = read_source(data, path)
    package = reading.package
    if package is None or package.unread:
        raise PackageError(render(reading.diagnostics), reading.diagnostics)
    return PackageDocument(*(getattr(package, record_field.name) for record_field in fields(package)))


def check(source: Source, *, runtime: int = RUNTIME, path: str = "") -> Report:
    """Find every problem of a `.tflite`, a bare package or their bytes, whatever they hold.

    `runtime` is the version of the driver that judges, `path` a name for bytes. Raises OSError for a file that cannot
    be opened.
    """
    data, path = contents(source, path)
    reading = read_source(data, path, runtime)
    diagnostics = list(reading.diagnostics)
    if reading.package is not None:
        diagnostics += BOOK.run(Subject(reading.package), path=path)
    return Report(reading.package, tuple(sorted(diagnostics, key=lambda diagnostic: diagnostic.order)), path)


def check_file(path: str, options: Options) -> Report:
    """Check a file for the driver version in the options, or else for the newest. Raises OSError for a file that
    cannot be opened."""
    return check(path, runtime=RUNTIME if options.runtime is None else options.runtime)
