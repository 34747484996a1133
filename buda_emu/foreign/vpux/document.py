"""MLIR text as a document: loaded, checked, summed up and timed, as documents of every kind are."""

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
"""Of a file; a larger one is refused."""


class Document(model.Document):
    """A file that was read."""

    def check(self, arch: str = "37XX") -> list[model.VpuxDiagnostic]:
        """Hold every function against the rules of an architecture (37XX, 40XX); findings in order of place."""
        return check_document(self, arch)

    def summary(self) -> dict[str, int | str]:
        """What it is, in figures by name."""
        ops = [op for function in self.functions for op in function.walk()]
        tasks = sum(op.name == "VPURT.Task" for op in ops)
        return {"splits": len(self.splits), "functions": len(self.functions), "ops": len(ops), "tasks": tasks}

    def timeline(self) -> "TimelinePicture":
        """When each task of the main function runs, one step each, on made-up inputs. Raises as `vpux.run`."""
        from buda_emu.foreign.vpux.execute.run import run
        from buda_emu.foreign.vpux.picture import run_picture

        return run_picture(run(self), "one step for each task, no durations")


def load(path: str | Path, split: int | None = None) -> Document:
    """Read a file, or one split of it (its number, and lines, are those of the file).

    Never raises for bad text: `document.check()` reports it as X001. Raises OSError, and HostError for a file that is
    too large and for a split that is not there.
    """
    return read(read_whole(path, MOST_MIB).decode("utf-8", "replace"), str(path), split)


def read(text: str, path: str = "<text>", split: int | None = None) -> Document:
    """Read text as `load` reads a file."""
    document = Document(path, text)
    read_into(document, split)
    return document


def check_file(path: str, options: Options) -> CheckResult[Document]:
    """Check a file, for 37XX unless another is given; `strict`: warnings are errors. Raises OSError, HostError."""
    document = load(path)
    found = document.check(options.arch or "37XX")
    if options.strict:
        found = [replace(item, severity="error") if item.severity == "warning" else item for item in found]
    return CheckResult(document, tuple(found))
