"""What an epoch's cycles are made of: the chain of work from its beginning to its end, each link of which let the next
one start.

An epoch starts each task when the last thing that it waits for is there, so the task that ends last hangs on one chain
without gaps: its tasks' durations add up to the whole. Links of the chain that the same unit works are one step.
"""

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from buda_emu import timeline
from buda_emu.timing.epoch import EpochTiming

Kind = Literal["op", "transfer", "memory"]
Cause = Literal["own work", "data", "room", "start"]

_CAUSES: Final[tuple[Cause, ...]] = ("start", "own work", "data", "room")
_WORDS: Final = ("", timeline.BUSY, "data", "room")  # as the timeline calls them
CAUSE_WORDS: Final[dict[Cause, str]] = {
    "start": "begins with the epoch",
    "own work": "its own part before",
    "data": "what it reads arrives",
    "room": "a buffer has room",
}
"""What a link of the chain waited for last."""


@dataclass(frozen=True, slots=True)
class CriticalStep:
    """What one unit adds to an epoch: `cycles` of all its inputs, `share` of the whole.

    `waits`: of these cycles, those of parts that began when (`CAUSE_WORDS`) it was so; they add up to `cycles`.
    """

    kind: Kind
    name: str
    cycles: float
    share: float
    waits: tuple[tuple[Cause, float], ...]

    @property
    def cause(self) -> Cause:
        """What most of its parts waited for last."""
        return max(self.waits, key=lambda item: item[1])[0]


def critical_steps(timing: EpochTiming) -> tuple[CriticalStep, ...]:
    """The chain of an epoch, the greatest share first; cycles add up to `timing.total`, shares to 1.

    Inputs that were extrapolated cost what the last quarter of the modelled ones does.
    """
    tasks = timing.timing
    if timing.last_task < 0:
        return ()
    words: dict[int, str] = dict.fromkeys(range(len(tasks.objects)), "data") | dict.fromkeys(timing.rooms, "room")
    chain = timeline.critical_steps(tasks, words, timing.last_task)
    start, end = np.array([step.start for step in chain]), np.array([step.end for step in chain])
    cause = np.array([_WORDS.index(step.category) for step in chain])
    cause[0] = 0
    weight = (end - start).astype(np.float64)
    beyond = timing.total - float(end[-1])
    if beyond > 0:  # the steady state goes on: its part of the chain is repeated
        steady = np.clip(end - np.maximum(start, timing.steady_from), 0, None).astype(np.float64)
        weight += steady * (beyond / float(steady.sum()))
    units = tasks.unit[[step.task for step in chain]]
    whole = max(float(weight.sum()), 1.0)
    ops = {item.op for item in timing.ops}
    found: list[CriticalStep] = []
    numbers: list[int] = np.unique(units).tolist()
    for unit in numbers:
        own = units == unit
        waits: list[tuple[Cause, float]] = [
            (word, float(weight[own & (cause == number)].sum()))
            for number, word in enumerate(_CAUSES)
            if bool((own & (cause == number)).any())
        ]
        cycles, name = float(weight[own].sum()), tasks.units[unit]
        if cycles:
            found.append(CriticalStep(_kind(name, ops), name, cycles, cycles / whole, tuple(waits)))
    return tuple(sorted(found, key=lambda step: (-step.cycles, step.name)))


def _kind(unit: str, ops: set[str]) -> Kind:
    if unit in ops:
        return "op"
    return "memory" if ": " in unit else "transfer"


def chain_sentence(steps: tuple[CriticalStep, ...], most: int = 3) -> str:
    """`the chain that makes up its cycles: op a 71 %, the transfer b > c 20 %, and 4 more`."""
    if not steps:
        return ""
    words = {"op": "op ", "transfer": "the transfer ", "memory": ""}
    shown = [f"{words[step.kind]}{step.name} {100 * step.share:.0f} %" for step in steps[:most]]
    rest = f", and {len(steps) - most} more" if len(steps) > most else ""
    return f"its cycles are, link by link: {', '.join(shown)}{rest}"
