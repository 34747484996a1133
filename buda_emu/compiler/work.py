"""Counts the work of the placement search, bounds it, and reports progress. The unit is ops whose time was modelled,
not seconds, so that a result never depends on the machine.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from buda_emu.checker.text import plural
from buda_emu.workers.spread import JobPool

LIMITS = {"low": 0, "default": 40_000, "high": 120_000}
"""Ops that are modelled for one model with each effort; 0 is not a bound, where nothing is searched."""


class Trial(NamedTuple):
    """A placement that was searched with an effort, and the cycles of one input that it came to."""

    effort: str
    cycles: float


@dataclass(slots=True)
class Work:
    """`modelled` ops of at most `limit`; `cut`: whether something was left out for that; `at_bound`: whether the search
    ended because the placement is at a limit that no other undercuts."""

    limit: int = 0
    """0 is none."""
    modelled: int = 0
    cut: bool = False
    at_bound: bool = False
    epochs: dict[object, Any] = field(default_factory=dict[object, Any], repr=False)
    """Epochs whose time is known (`timing.model.KnownEpochs`): layers that are alike are modelled once."""
    trials: list[Trial] = field(default_factory=list[Trial])
    tried: list[Any] = field(default_factory=list[Any], repr=False)
    """What starts came to (`search.trials`): an effort that tries what another one did takes it from here."""
    pool: JobPool | None = None
    """Workers that share the search with this process; what they find does not depend on them."""
    side_by_side: Any = field(default=None, repr=False)
    """How they share it (`search.speculative`)."""
    effort: str = ""
    """That was asked for: high effort begins with the default."""
    begun: list[Any] = field(default_factory=list[Any], repr=False)
    """Starts that were made before they are tried (`search.trials`)."""
    tell: Callable[[str], None] | None = None
    """Is told from epoch to epoch how far the search is."""
    running: bool = False
    ended: bool = False
    """Whether the search was asked to end with the best so far."""

    @staticmethod
    def of(effort: str) -> "Work":
        """Nothing done yet."""
        return Work(LIMITS[effort], effort=effort)

    def spent(self) -> bool:
        """Whether no more is to be modelled; who asks leaves something out then."""
        self.cut = self.cut or self.modelled >= self.limit > 0
        return self.cut or self.ended

    def end(self) -> bool:
        """Let the search end with the best so far. False where there is none that could, or it was asked before."""
        asked, self.ended = self.running and not self.ended, self.ended or self.running
        return asked

    def at(self, epoch: int, epochs: int) -> None:
        """The search is at an epoch of the placement that it improves."""
        if self.tell is None:
            return
        parts = [f"placement {len(self.trials) + 1}, epoch {epoch + 1} of {epochs}"]
        if self.limit:
            parts.append(f"{self.modelled} of at most {self.limit} ops modelled")
        if self.trials:
            parts.append(f"best {min(trial.cycles for trial in self.trials):.0f} cycles")
        state = "ending the search" if self.ended else "searching, Ctrl-C keeps the best"
        self.tell(f"{state}: {', '.join(parts)}")

    def has_room(self, ops: int) -> bool:
        """Whether so many more ops end before the limit."""
        return not self.limit or self.modelled + ops < self.limit

    @property
    def told(self) -> bool:
        """Whether a user should hear of it unasked: more effort than usual was wished, or the bound was reached."""
        return self.cut or self.ended or len({trial.effort for trial in self.trials}) > 1 or self.at_bound

    def words(self) -> str:
        """What was searched and gained, in a sentence; "" where nothing was searched."""
        if not self.trials:
            return ""
        parts: list[str] = []
        before = float("inf")
        for effort in dict.fromkeys(trial.effort for trial in self.trials):
            own = [trial.cycles for trial in self.trials if trial.effort == effort]
            best, gained = min(own), 1 - min(*own, before) / before if before < float("inf") else 0.0
            found = f"{effort} effort searched {plural(len(own), 'placement')}"
            parts.append(f"{found}, the best takes {best:.0f} cycles an input" + ("" if not parts else _gain(gained)))
            before = min(best, before)
        if self.at_bound:
            parts.append("no more was tried: no placement undercuts the math of all cores or the host link")
        if self.ended:
            parts.append("the search was ended by Ctrl-C, with the best so far")
        if self.cut:
            parts.append(f"the search ended at its bound of {self.limit} modelled ops, with the best so far")
        return "; ".join(parts)


def _gain(share: float) -> str:
    return f", {100 * share:.1f} % fewer" if share > 0 else ", which gains nothing"
