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
from numpy.typing import NDArray

from buda_emu.performance import timeline
from buda_emu.performance.timeline.schedule import CriticalTask
from buda_emu.performance.timing.epoch.result import HOST_LINK, Busy, EpochTiming
from buda_emu.performance.timing.transfers.flows import CHANNEL, Flow, channel_name
from buda_emu.performance.timing.transfers.noc import Path
from buda_emu.support.checker.text import list_first

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
_SHORTER: Final = 0.9  # length of a step, to try whether a shorter one makes the epoch shorter
_MOST_ALIKE: Final = 12  # equally long steps that are looked for; each takes a run of the schedule


@dataclass(frozen=True, slots=True)
class CriticalStep:
    """The part that an op, transfer or memory channel has in the critical path: `cycles` for all inputs, and their
    `share` of the epoch.

    `waits` splits `cycles` by what the work had waited for before it began (see `CAUSE_WORDS`). `through` is set for a
    memory channel: the streams by which the path runs through it. `alike` is set for the first step: other steps that
    take equally long; the epoch becomes shorter only if these become shorter, too.
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
        """Return the cause for which most cycles of this step waited last."""
        return max(self.waits, key=lambda wait: wait[1])[0]


def critical_steps(timing: EpochTiming) -> tuple[CriticalStep, ...]:
    """Return the steps of an epoch's critical path, longest first. Their cycles add up to `timing.total`, their shares
    to 1. () if nothing runs.

    For inputs beyond the modelled ones the last quarter of the modelled inputs is repeated. Runs the schedule again to
    find equally long steps.
    """
    steps = path_steps(timing)
    if steps:
        return (replace(steps[0], alike=_equally_long_steps(timing, steps[0].name)), *steps[1:])
    return ()


def path_steps(timing: EpochTiming) -> tuple[CriticalStep, ...]:
    """Return the steps of `critical_steps`, but with `alike` empty, which takes longer to find."""
    tasks = timing.run.timing
    if timing.run.last_task < 0:
        return ()
    words: dict[int, str] = dict.fromkeys(range(len(tasks.objects)), "data") | dict.fromkeys(timing.run.rooms, "room")
    chain = timeline.critical_steps(tasks, words, timing.run.last_task)
    cause = np.array([_WORDS.index(step.category) for step in chain])
    cause[0] = 0
    weight = _link_cycles(timing, chain)
    members: dict[str, dict[str, list[int]]] = {}  # of each step its units, of each of them links of the chain
    for number, link in enumerate(chain):
        unit = tasks.units[int(tasks.unit[link.task])]
        members.setdefault(step_of(unit), {}).setdefault(unit, []).append(number)
    steps = [_make_step(timing, name, units, cause, weight) for name, units in members.items()]
    steps = [step for step in steps if step.cycles]
    return tuple(sorted(steps, key=lambda step: (-step.cycles, step.name)))


def _link_cycles(timing: EpochTiming, chain: Sequence[CriticalTask]) -> NDArray[np.float64]:
    """Return the cycles of each link (task) of the chain, as an array; those of the steady part are scaled up to stand
    for the inputs beyond the modelled ones."""
    start = np.array([link.start for link in chain])
    end = np.array([link.end for link in chain])
    cycles = (end - start).astype(np.float64)
    beyond = timing.total - float(end[-1])
    if beyond > 0:  # the steady state goes on: its part of the chain is repeated
        steady = np.clip(end - np.maximum(start, timing.run.steady_from), 0, None).astype(np.float64)
        cycles += steady * (beyond / float(steady.sum()))
    return cycles


def _make_step(
    timing: EpochTiming, name: str, units: dict[str, list[int]], cause: NDArray[np.int64], weight: NDArray[np.float64]
) -> CriticalStep:
    """Return the step `name` that all links of these units make up. `units` has the numbers of links by unit; `cause`
    and `weight` have the cause (index in `_CAUSES`) and the cycles of every link of the chain."""
    links = np.concatenate([np.array(numbers) for numbers in units.values()])
    by_cause = np.bincount(cause[links], weights=weight[links], minlength=len(_CAUSES)).tolist()
    waits: list[tuple[Cause, float]] = list(zip(_CAUSES, by_cause, strict=True))
    by_length = sorted(units, key=lambda unit: -float(weight[units[unit]].sum()))
    through = tuple(unit.partition(": ")[2] for unit in by_length if unit != name)
    cycles = float(weight[links].sum())
    return CriticalStep(
        kind=_kind_of_step(name, {op.op for op in timing.ops}, through),
        name=name,
        cycles=cycles,
        share=cycles / max(float(weight.sum()), 1.0),
        waits=tuple(wait for wait in waits if wait[1]),
        through=through,
    )


def step_of(unit: str) -> str:
    """Return the name of the step to which a unit of the schedule belongs: the unit's own, but for a stream of a memory
    channel the channel's."""
    return unit.partition(": ")[0]


def run_with_shorter_steps(timing: EpochTiming, names: "set[str] | frozenset[str]") -> timeline.Timing:
    """Run the epoch's schedule again with all tasks of the named steps a tenth shorter, and return the times."""
    tasks = timing.run.timing
    is_chosen = np.array([step_of(unit) in names for unit in tasks.units])[tasks.unit]
    durations = timing.run.schedule.durations
    return timing.run.schedule.run(np.where(is_chosen, np.floor(durations * _SHORTER).astype(np.int64), durations))


def _equally_long_steps(timing: EpochTiming, first: str) -> tuple[str, ...]:
    """Return up to twelve further steps that must become shorter together with step `first` before the epoch does: if
    several paths are equally long, one step of each. () if `first` alone is enough."""
    names = [first]
    end = int(timing.run.timing.end[timing.run.last_task])
    while len(names) <= _MOST_ALIKE:
        other = run_with_shorter_steps(timing, {*names})
        if int(other.end[timing.run.last_task]) < end:
            break
        held: dict[str, int] = {}
        for task in other.critical_path(timing.run.last_task):
            name = step_of(other.units[int(other.unit[task])])
            held[name] = held.get(name, 0) + int(other.end[task] - other.start[task])
        rest = [name for name in held if name not in names]
        if not rest:
            break
        names.append(max(rest, key=lambda name: held[name]))
    return tuple(names[1:])


def _kind_of_step(name: str, ops: set[str], through: tuple[str, ...]) -> Kind:
    """Return the kind of a step by its name: an op of the epoch, a memory channel if streams run through it
    (`through`), else a transfer."""
    if name in ops:
        return "op"
    if through:
        return "memory"
    return "transfer"


def step_words(step: CriticalStep) -> str:
    """Return a step as reports name it: `op a`, `the transfer b > c`, `DRAM channel 3`."""
    return {"op": "op ", "transfer": "the transfer ", "memory": ""}[step.kind] + step.name


def chain_sentence(steps: tuple[CriticalStep, ...], limit: int = 3, assumed: str = "") -> str:
    """Describe the critical path for a report: `its cycles are, link by link: op a 71 % (its own part before), the
    transfer b > c 20 % (...), and 4 more`; "" without steps. At most `limit` steps are named. `assumed` names
    assumptions that make the figures hypothetical."""
    if not steps:
        return ""
    shown = [f"{step_words(step)} {100 * step.share:.0f} % ({CAUSE_WORDS[step.cause]})" for step in steps[:limit]]
    if len(steps) > limit:
        remainder = f", and {len(steps) - limit} more"
    else:
        remainder = ""
    if steps[0].alike:
        alike = f"; as long as the first: {list_first(steps[0].alike, _NAMED)}"
    else:
        alike = ""
    if assumed:
        note = f" (hypothetical: {assumed})"
    else:
        note = ""
    return f"its cycles are, link by link: {', '.join(shown)}{remainder}{alike}{note}"


_NAMED: Final = 3
"""Names in a sentence, whose rest is a number: a cell of a table holds it."""


@dataclass(frozen=True, slots=True)
class User:
    """A stream `source > target`, and its share of the bytes that a channel or link carries for one input."""

    name: str
    share: float


@dataclass(frozen=True, slots=True)
class Contention:
    """The streams that share a memory channel or NoC link. `cycles` is its work for one input; `users` begin with the
    greatest share.

    `spread` is the work of each of `places` channels if the load of all of them were distributed evenly, None if the
    name is not a DRAM channel. `rest` is the unit that would be busiest then, with its cycles.
    """

    name: str
    cycles: float
    users: tuple[User, ...]
    places: int
    spread: float | None
    rest: tuple[str, float]

    def sentence(self, pace: float | None) -> str:
        """Describe the contention to someone who places queues, and what less of it would bring. `pace` is the cycles
        of an input if this channel or link sets the pace, else None."""
        text = f"it carries {self._list_users()}"
        name, cycles = self.rest
        spread = self.spread or 0.0
        least = max(cycles, spread)
        if self.spread is not None and self.spread < self.cycles:
            text += f"; spread alike over {self.places} channels it would work {self.spread:,.0f} cycles"
        if pace is None or least >= pace or (self.spread is None and not name):
            return text
        limit = "the channels"
        if cycles >= spread:
            limit = f"{name}, {cycles:,.0f} cycles,"
        if self.spread is None:
            text += "; with less to carry"
        return f"{text}, and {limit} would set the pace: at best {100 * (1 - least / pace):.0f} % fewer cycles"

    def _list_users(self) -> str:
        """Return as text the streams with the greatest shares, and the number of the others."""
        return list_first([f"{user.name} {100 * user.share:.0f} %" for user in self.users], _NAMED)


def contention(
    timing: EpochTiming, edges: Sequence[Flow], paths: Sequence[Path], name: str, channels: int
) -> Contention | None:
    """Return which streams share a DRAM channel, the host link or a NoC link, by its name in `timing`; None for a unit
    that carries none, or of another kind. `channels` is the number of DRAM channels of the chip."""
    carried: dict[str, float] = {}
    for edge, path in zip(edges, paths, strict=True):
        size = _bytes_over(edge, path, name)
        if size:
            carried[edge.name] = carried.get(edge.name, 0.0) + size
    if not carried:
        return None
    total = sum(carried.values())
    users = [User(flow, size / total) for flow, size in carried.items()]
    users.sort(key=lambda user: (-user.share, user.name))
    spread = None
    places = 1
    aside = {name, *carried}  # a transfer is as slow as the fullest link on its way
    if name.startswith(CHANNEL):
        on_chip = _channels_beside(timing, name)
        spread = sum(unit.cycles for unit in on_chip) / channels
        places = channels
        aside = {unit.name for unit in on_chip}
    others = [(unit.name, unit.cycles) for _, unit in timing.busy() if unit.name not in aside]
    cycles = next(unit.cycles for unit in (*timing.shared.memory, *timing.shared.links) if unit.name == name)
    return Contention(
        name=name,
        cycles=cycles,
        users=tuple(users),
        places=places,
        spread=spread,
        rest=max(others, key=lambda other: other[1], default=("", 0.0)),
    )


def _channels_beside(timing: EpochTiming, name: str) -> list[Busy]:
    """Return the DRAM channels with work that belong to the same chip as the channel `name`, itself included; names
    differ in the number alone."""
    chip = name.partition(",")[2]
    return [
        unit for unit in timing.shared.memory if unit.name.startswith(CHANNEL) and unit.name.partition(",")[2] == chip
    ]


def _bytes_over(edge: Flow, path: Path, name: str) -> float:
    """Return the bytes of one input that an edge moves over the named channel or link; 0 for what is loaded once."""
    if edge.once:
        return 0.0
    if name == HOST_LINK:
        if edge.memory == "host":
            return sum(edge.memory_bytes.values())
        return 0.0
    if name.startswith(CHANNEL):
        if edge.memory != "dram":
            return 0.0
        return sum(size for number, size in edge.memory_bytes.items() if channel_name(number, edge.chip) == name)
    return sum(size for link, size in path.loads() if str(link) == name)
