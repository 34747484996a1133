"""The record of a search for a placement: what was tried, how much of its bound is used up, and how it goes on."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from buda_emu.support.checker.text import plural
from buda_emu.support.progress import Activity, Report
from buda_emu.support.workers.spread import JobPool

LIMITS = {"low": 0, "default": 40_000, "high": 120_000}
"""Bound of the ops that are modelled for one model with each effort; 0 stands for no bound, because nothing is
searched."""


class Trial(NamedTuple):
    """The result of a searched placement: the effort, and the cycles of one input."""

    effort: str
    cycles: float


@dataclass(slots=True)
class SearchRecord:
    """The record of a search: `modelled` ops of at most `limit`; `cut`: whether that limit made it leave something out;
    `bound_by`: which limit the placement reached that no placement undercuts, in words, "" for none."""

    limit: int = 0
    """Bound of `modelled`; 0 stands for none."""
    modelled: int = 0
    cut: bool = False
    bound_by: str = ""
    trials: list[Trial] = field(default_factory=list[Trial])
    gained: set[str] = field(default_factory=set[str])
    """Parts of the search (`search_parts.TRACKED`) that made some epoch or placement quicker. Any other part can be
    left out without a change of the result, unless the search ended at its limit."""
    pool: JobPool | None = None
    """Workers that share the search with this process; they do not change its result."""
    effort: str = ""
    """The effort that was asked for; high effort begins with the default one."""
    tell: Callable[[str], None] | None = None
    """Callback that gets the progress of the search at each epoch, for somebody who can end the search by Ctrl-C."""
    report: Report | None = None
    """Callback that gets the same as an Activity."""
    running: bool = False
    ended: bool = False
    """Whether the search was asked to end with the best placement so far."""

    @staticmethod
    def begin(effort: str) -> "SearchRecord":
        """Return the record of a search of this effort that has not begun."""
        return SearchRecord(LIMITS[effort], effort=effort)

    def stop_modelling(self) -> bool:
        """Return whether the search must model no more ops, and note that it leaves something out for the limit."""
        self.cut = self.cut or self.modelled >= self.limit > 0
        return self.cut or self.ended

    def end(self) -> bool:
        """Ask the search to end with the best placement so far. Returns False if no search is running or it was asked
        before."""
        asked = self.running and not self.ended
        self.ended = self.ended or self.running
        return asked

    def report_epoch(self, epoch: int, epochs: int) -> None:
        """Report that the search is improving epoch `epoch` of a placement."""
        if self.tell is None and self.report is None:
            return
        parts = [f"placement {len(self.trials) + 1}, epoch {epoch + 1} of {epochs}"]
        if self.limit:
            parts.append(f"{self.modelled} of at most {self.limit} ops modelled")
        if self.trials:
            parts.append(f"best {min(trial.cycles for trial in self.trials):.0f} cycles")
        progress = ", ".join(parts)
        if self.report is not None:
            self.report(Activity(f"searching: {progress}", "search", self.modelled, self.limit))
        if self.tell is None:
            return
        if self.ended:
            state = "ending the search"
        else:
            state = "searching, Ctrl-C keeps the best"
        self.tell(f"{state}: {progress}")

    def has_room(self, ops: int) -> bool:
        """Return whether modelling `ops` more ops stays below the limit."""
        return not self.limit or self.modelled + ops < self.limit

    @property
    def at_bound(self) -> bool:
        """Return whether the search ended because the placement reached a limit that no placement undercuts."""
        return bool(self.bound_by)

    @property
    def is_notable(self) -> bool:
        """Return whether the search is reported to a user who did not ask for it: it was cut or ended, several efforts
        were tried, or the bound was reached."""
        return self.cut or self.ended or len({trial.effort for trial in self.trials}) > 1 or self.at_bound

    def _effort_texts(self) -> list[str]:
        """Return for each effort a text with the number of placements and the cycles of the best one."""
        texts: list[str] = []
        before = float("inf")
        for effort in dict.fromkeys(trial.effort for trial in self.trials):
            cycles = [trial.cycles for trial in self.trials if trial.effort == effort]
            best = min(cycles)
            text = f"{effort} effort searched {plural(len(cycles), 'placement')}"
            if effort != self.effort == "high":
                text = f"{effort} effort, with which high effort begins, searched {plural(len(cycles), 'placement')}"
            text = f"{text}, the best takes {best:,.0f} cycles an input"
            gained = 0.0
            if before < float("inf"):
                gained = 1 - min(best, before) / before
            if texts:
                text += _gain_text(gained)
            texts.append(text)
            before = min(best, before)
        return texts

    def summary(self) -> str:
        """Describe in a sentence what was searched and gained; "" if nothing was searched."""
        if not self.trials:
            return ""
        parts = self._effort_texts()
        if self.at_bound:
            parts.append(
                f"this is as long as {self.bound_by} takes, which no placement undercuts, so {self.effort} effort had "
                "nothing left to try"
            )
        if self.ended:
            parts.append("the search was ended by Ctrl-C, with the best so far")
        if self.cut:
            parts.append(f"the search ended at its bound of {self.limit} modelled ops, with the best so far")
        return "; ".join(parts)


def _gain_text(share: float) -> str:
    """Return the words for the share of cycles that a greater effort saved, ", 3.0 % fewer" or ", which gains
    nothing"."""
    if share > 0:
        return f", {100 * share:.1f} % fewer"
    return ", which gains nothing"
