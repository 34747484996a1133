"""Load, check, summarise and time a schedule through the interface that documents of every kind have."""

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
class ScheduleDocument(IR):
    """A schedule with the methods of a document: check, summary and timeline."""

    def check(self, frontend: Any = None) -> list[Diagnostic]:
        """Return the findings of rules G004 and later, sorted by place. `frontend` is the path or the decoded object of
        the network's front-end IR, which G080 to G082 need. Raises ScheduleError for a front-end IR that cannot be
        read."""
        return rules.check(self, frontend)

    def summary(self) -> dict[str, int | str]:
        """Return the schedule's dialect, mesh and counts by name."""
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
        """Simulate the schedule at the rates of the traces and return the picture of it. Raises ProgramError for a
        deadlock."""
        from buda_emu.foreign.gemini.report import timeline_picture
        from buda_emu.foreign.gemini.time.schedule import simulate

        times = simulate(self)
        return timeline_picture(self, times, f"{os.path.basename(self.path)}: {times.total} cycles")  # noqa: PTH119


def load(source: "str | os.PathLike[str] | Mapping[str, Any]") -> ScheduleDocument:
    """Read a schedule of either dialect from a file (`.json` or `.json.gz`) or a decoded object. Raises
    ScheduleError, with its findings, for one that cannot be read."""
    ir = read(source)
    return ScheduleDocument(*(getattr(ir, record_field.name) for record_field in fields(ir)))


def check_file(path: str, options: Options) -> CheckResult[ScheduleDocument]:
    """Check one file against all rules; G080 to G082 need the network in the options. Raises OSError for a file
    that cannot be read, ScheduleError for a malformed front-end IR."""
    try:
        document = load(path)
    except ScheduleError as error:
        return CheckResult(None, error.diagnostics)
    return CheckResult(document, tuple(document.check(options.frontend)))
