"""Load, check, summarise and time MLIR text through the interface that documents of every kind have."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from buda_emu.foreign.vpux import model
from buda_emu.foreign.vpux.reader import read_into
from buda_emu.foreign.vpux.rules import check_document
from buda_emu.support.checker import CheckResult, Options
from buda_emu.support.files import read_whole

if TYPE_CHECKING:
    from buda_emu.performance.timeline.picture import TimelinePicture

MOST_MIB: Final = 64
"""The size of the largest file that is read. The whole text is held in memory while it is parsed: a larger limit lets a
forged file take more of it."""


class VpuxDocument(model.VpuxFile):
    """A file of MLIR text with the methods of a document: check, summary and timeline."""

    def check(self, arch: str = "37XX") -> list[model.VpuxDiagnostic]:
        """Check every function against the rules of an architecture (37XX, 40XX), and return findings in order of
        place. Raises HostError for an unknown architecture."""
        return check_document(self, arch)

    def summary(self) -> dict[str, int | str]:
        """Return the number of splits, functions, ops and tasks by name."""
        ops = [op for function in self.functions for op in function.walk()]
        tasks = sum(op.name == "VPURT.Task" for op in ops)
        return {"splits": len(self.splits), "functions": len(self.functions), "ops": len(ops), "tasks": tasks}

    def timeline(self) -> "TimelinePicture":
        """Return when each task of the main function runs, one step each, on made-up inputs. Raises what `vpux.run`
        raises."""
        from buda_emu.foreign.vpux.execute.run import run
        from buda_emu.foreign.vpux.report import run_picture

        return run_picture(run(self), "one step for each task, no durations")


def load(path: str | Path, split: int | None = None) -> VpuxDocument:
    """Read a file, or one split of it (its number, and lines, are those of the file).

    Never raises for bad text: `document.check()` reports it as X001. Raises OSError, and HostError for a file that is
    too large and for a split that is not there.
    """
    return read(read_whole(path, MOST_MIB).decode("utf-8", "replace"), str(path), split)


def read(text: str, path: str = "<text>", split: int | None = None) -> VpuxDocument:
    """Read a text, or one split of it, as `load` reads a file: bad text raises nothing, `document.check()` reports it.
    `path` is its name in messages. Raises HostError for a split that is not there."""
    document = VpuxDocument(path, text)
    read_into(document, split)
    return document


def check_file(path: str, options: Options) -> CheckResult[VpuxDocument]:
    """Check a file, for 37XX unless `options` name another architecture. With `strict`, warnings become errors. Raises
    OSError, HostError."""
    document = load(path)
    findings = document.check(options.arch or "37XX")
    if options.strict:
        findings = [
            replace(finding, severity="error") if finding.severity == "warning" else finding for finding in findings
        ]
    return CheckResult(document, tuple(findings))
