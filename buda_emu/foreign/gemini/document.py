"""A schedule as a document: loaded, checked, summed up and timed, as documents of every kind are."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from buda_emu.foreign.gemini import rules
from buda_emu.foreign.gemini.model import IR
from buda_emu.foreign.gemini.reader import read
from buda_emu.support.checker import CheckResult, Diagnostic, Options
from buda_emu.support.errors import ScheduleError

if TYPE_CHECKING:
    from buda_emu.performance.timeline.picture import TimelinePicture


@dataclass(frozen=True, slots=True)
class Document(IR):
    """A schedule that was loaded."""

    def check(self, frontend: Any = None) -> list[Diagnostic]:
        """Every finding of rules G004 and on, sorted by place. `frontend`: path or decoded object of the network's
        front-end IR, for G080 to G082. Raises ScheduleError for a front-end IR that cannot be read."""
        return rules.check(self, frontend)

    def summary(self) -> dict[str, int | str]:
        """What it is, in figures by name."""
        works = self.workloads()
        mesh = f"{self.xlen}x{self.ylen}"
        return {
            "dialect": self.dialect,
            "mesh": mesh,
            "cores": len(self.cores),
            "workloads": len(works),
            "layers": len({work.layer_name for work in works}),
            "transfers": len(self.transfers),
        }

    def timeline(self) -> "TimelinePicture":
        """When everything happens, at the rates of the traces. Raises ProgramError for a deadlock."""
        from buda_emu.foreign.gemini.picture import timeline_picture
        from buda_emu.foreign.gemini.time.schedule import simulate

        times = simulate(self)
        return timeline_picture(self, times, f"{os.path.basename(self.path)}: {times.total} cycles")  # noqa: PTH119


def load(source: "str | os.PathLike[str] | Mapping[str, Any]") -> Document:
    """Read a schedule of either dialect: `reader.read` says of what, and what it raises."""
    ir = read(source)
    return Document(*(getattr(ir, item.name) for item in fields(ir)))


def check_file(path: str, options: Options) -> CheckResult[Document]:
    """Check a file. Raises OSError for one that cannot be read, ScheduleError for a malformed front-end IR."""
    try:
        document = load(path)
    except ScheduleError as error:
        return CheckResult(None, error.diagnostics)
    return CheckResult(document, tuple(document.check(options.frontend)))
