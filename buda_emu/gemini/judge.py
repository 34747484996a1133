"""A file against the rules, with what is wrong in it as findings: what commands that check documents need."""

from dataclasses import dataclass

from buda_emu.checker import Diagnostic
from buda_emu.errors import ScheduleError


@dataclass(frozen=True, slots=True)
class Verdict:
    """`readable`: it is a schedule (no finding of G001 to G003)."""

    diagnostics: tuple[Diagnostic, ...]
    readable: bool

    @property
    def ok(self) -> bool:
        """There is no error."""
        return not any(item.severity == "error" for item in self.diagnostics)


def judge(path: str, frontend: str | None = None) -> Verdict:
    """Check a file. Raises OSError for one that cannot be read, ScheduleError for a front-end IR that is none."""
    from buda_emu.gemini.reader import load

    try:
        ir = load(path)
    except ScheduleError as error:
        return Verdict(error.diagnostics, readable=False)
    return Verdict(tuple(ir.check(frontend)), readable=True)
