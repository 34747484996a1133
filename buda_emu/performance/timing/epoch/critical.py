"""The critical path of an epoch: the chain of work from its beginning to its end, in which the end of each link lets
the next one start.

An epoch starts each task when the last thing that it waits for is there, so the task that ends last depends on one
chain without gaps: its tasks' durations add up to the whole. Links of the chain that the same op, transfer or memory
channel works are one step.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from buda_emu.performance import timeline
from buda_emu.performance.timing.epoch.result import EpochTiming
from buda_emu.performance.timing.transfers.flows import CHANNEL, Flow, channel_name
from buda_emu.performance.timing.transfers.noc import Path

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
_SHORTER: Final = 0.9
_MOST_ALIKE: Final = 12


@dataclass(frozen=True, slots=True)
class CriticalStep:
    """What an op, transfer or memory channel adds to an epoch: `cycles` of all its inputs, `share` of the whole.

    `waits`: of these cycles, those of parts that began when (`CAUSE_WORDS`) it was so; they add up to `cycles`.
    `through`: of a channel, the streams that the chain takes. `alike`: of the first step, what is as long beside it:
    the epoch becomes shorter only where these do, too.
    """

    kind: Kind
    name: str
    cycles: float
    share: float
    waits: tuple[tuple[Cause, float], ...]
    through: tuple[str, ...] = ()
    alike: tuple[str, ...] = ()

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
    start = np.array([step.start for step in chain])
    end = np.array([step.end for step in chain])
    cause = np.array([_WORDS.index(step.category) for step in chain])
    cause[0] = 0
    weight = (end - start).astype(np.float64)
    beyond = timing.total - float(end[-1])
    if beyond > 0:  # the steady state goes on: its part of the chain is repeated
        steady = np.clip(end - np.maximum(start, timing.steady_from), 0, None).astype(np.float64)
        weight += steady * (beyond / float(steady.sum()))
    whole = max(float(weight.sum()), 1.0)
    ops = {item.op for item in timing.ops}
    members: dict[str, dict[str, list[int]]] = {}  # of each step its units, of each of them links of the chain
    for number, step in enumerate(chain):
        unit = tasks.units[int(tasks.unit[step.task])]
        members.setdefault(step_of(unit), {}).setdefault(unit, []).append(number)
    found: list[CriticalStep] = []
    for name, units in members.items():
        links = np.array([number for numbers in units.values() for number in numbers])
        by_cause = np.bincount(cause[links], weights=weight[links], minlength=len(_CAUSES)).tolist()
        waits: list[tuple[Cause, float]] = list(zip(_CAUSES, by_cause, strict=True))
        cycles = float(weight[links].sum())
        if cycles:
            by_length = sorted(units, key=lambda unit: -float(weight[units[unit]].sum()))
            through = tuple(unit.partition(": ")[2] for unit in by_length if unit != name)
            kept = tuple(wait for wait in waits if wait[1])
            found.append(
                CriticalStep(
                    kind=_kind(name, ops, through),
                    name=name,
                    cycles=cycles,
                    share=cycles / whole,
                    waits=kept,
                    through=through,
                )
            )
    found.sort(key=lambda step: (-step.cycles, step.name))
    return (replace(found[0], alike=_alike(timing, found[0].name)), *found[1:]) if found else ()


def step_of(unit: str) -> str:
    """The step to which a unit of an epoch's schedule belongs: all streams of a channel are one."""
    return unit.partition(": ")[0]


def shortened(timing: EpochTiming, names: "set[str] | frozenset[str]") -> timeline.Timing:
    """The epoch as modelled, if these steps took a tenth less time."""
    tasks = timing.timing
    chosen = np.array([step_of(unit) in names for unit in tasks.units])[tasks.unit]
    durations = timing.schedule.durations
    return timing.schedule.run(np.where(chosen, np.floor(durations * _SHORTER).astype(np.int64), durations))


def _alike(timing: EpochTiming, first: str) -> tuple[str, ...]:
    """What else has to become shorter before the epoch does: where several chains are equally long, one each."""
    names = [first]
    end = int(timing.timing.end[timing.last_task])
    while len(names) <= _MOST_ALIKE:
        other = shortened(timing, {*names})
        if int(other.end[timing.last_task]) < end:
            break
        held: dict[str, int] = {}
        for task in other.critical_path(timing.last_task):
            name = step_of(other.units[int(other.unit[task])])
            held[name] = held.get(name, 0) + int(other.end[task] - other.start[task])
        rest = [name for name in held if name not in names]
        if not rest:
            break
        names.append(max(rest, key=lambda name: held[name]))
    return tuple(names[1:])


def _kind(name: str, ops: set[str], through: tuple[str, ...]) -> Kind:
    if name in ops:
        return "op"
    return "memory" if through else "transfer"


def step_words(step: CriticalStep) -> str:
    """`op a`, `the transfer b > c`, `DRAM channel 3`."""
    return {"op": "op ", "transfer": "the transfer ", "memory": ""}[step.kind] + step.name


def chain_sentence(steps: tuple[CriticalStep, ...], most: int = 3, assumed: str = "") -> str:
    """`its cycles are, link by link: op a 71 % (its own part before), the transfer b > c 20 % (...), and 4 more`; and
    that they are hypothetical, where something is assumed."""
    if not steps:
        return ""
    shown = [f"{step_words(step)} {100 * step.share:.0f} % ({CAUSE_WORDS[step.cause]})" for step in steps[:most]]
    rest = f", and {len(steps) - most} more" if len(steps) > most else ""
    alike = f"; as long as the first: {', '.join(steps[0].alike)}" if steps[0].alike else ""
    note = f" (hypothetical: {assumed})" if assumed else ""
    return f"its cycles are, link by link: {', '.join(shown)}{rest}{alike}{note}"


_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class User:
    """A stream `source > target` and its share of the bytes that a channel or link carries for one input."""

    name: str
    share: float


@dataclass(frozen=True, slots=True)
class Contention:
    """A channel or link: `cycles` that it works for each input, `users` with the greatest share first.

    `spread`: cycles of every one of `places` channels if they shared the load of all of them alike, None where there is
    no such choice. `rest`: what would be the busiest then, and its cycles.
    """

    name: str
    cycles: float
    users: tuple[User, ...]
    places: int
    spread: float | None
    rest: tuple[str, float]

    def sentence(self, pace: float | None) -> str:
        """For whoever has to place queues; `pace`: cycles of an input that it sets, None where it does not."""
        named = ", ".join(f"{user.name} {100 * user.share:.0f} %" for user in self.users[:_NAMED])
        more = f" and {len(self.users) - _NAMED} more" if len(self.users) > _NAMED else ""
        text = f"it carries {named}{more}"
        name, cycles = self.rest
        least = max(cycles, self.spread or 0.0)
        if self.spread is not None and self.spread < self.cycles:
            text += f"; spread alike over {self.places} channels it would work {self.spread:,.0f} cycles"
        if pace is None or least >= pace or (self.spread is None and not name):
            return text
        what = f"{name}, {cycles:,.0f} cycles," if cycles >= (self.spread or 0.0) else "the channels"
        if self.spread is None:
            text += "; with less to carry"
        return f"{text}, and {what} would set the pace: at best {100 * (1 - least / pace):.0f} % fewer cycles"


def contention(
    timing: EpochTiming, edges: Sequence[Flow], paths: Sequence[Path], name: str, channels: int
) -> Contention | None:
    """Of a DRAM channel, the host link or a NoC link by its name in `timing`; None for anything else. `channels`: DRAM
    channels of the chip."""
    carried: dict[str, float] = {}
    for edge, path in zip(edges, paths, strict=True):
        size = _carries(edge, path, name)
        if size:
            carried[edge.name] = carried.get(edge.name, 0.0) + size
    if not carried:
        return None
    total = sum(carried.values())
    users = [User(flow, size / total) for flow, size in carried.items()]
    users.sort(key=lambda user: (-user.share, user.name))
    is_dram = name.startswith(CHANNEL)
    chip = name.partition(",")[2]  # its channels have one name but for the number
    dram = [item for item in timing.memory if item.name.startswith(CHANNEL) and item.name.partition(",")[2] == chip]
    spread = sum(item.cycles for item in dram) / channels if is_dram else None
    aside = {item.name for item in dram} if is_dram else {name}
    if not is_dram:  # a transfer is as slow as the fullest link on its way
        aside |= set(carried)
    others = [item for _, item in timing.busy() if item.name not in aside]
    rest = max(others, key=lambda item: item.cycles, default=None)
    cycles = next(item.cycles for item in (*timing.memory, *timing.links) if item.name == name)
    return Contention(
        name=name,
        cycles=cycles,
        users=tuple(users),
        places=channels if is_dram else 1,
        spread=spread,
        rest=(rest.name, rest.cycles) if rest else ("", 0.0),
    )


def _carries(edge: Flow, path: Path, name: str) -> float:
    """Bytes of one input."""
    if edge.once:
        return 0.0
    if name == "host link":
        return sum(edge.memory_bytes.values()) if edge.memory == "host" else 0.0
    if name.startswith(CHANNEL):
        if edge.memory != "dram":
            return 0.0
        return sum(size for number, size in edge.memory_bytes.items() if channel_name(number, edge.chip) == name)
    return sum(size for way, size in path.loads() if str(way) == name)
