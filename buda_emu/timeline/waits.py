"""Where time goes: what units waited for in every idle cycle, and the chain of tasks that makes a run so long."""

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from buda_emu.timeline.result import Timing

BUSY: Final = "busy"
END: Final = "end"


class Gap(NamedTuple):
    """Idle time of a unit from `start` to `end`: `task` waited for `object`. After its last task both are -1."""

    unit: int
    start: int
    end: int
    task: int
    object: int
    category: str


class Step(NamedTuple):
    """A task of the critical path, which starts when the one before it ends: it waited for `object`, or, where that is
    -1, for its unit. `category` is that of the object, "busy" for the unit."""

    task: int
    start: int
    end: int
    object: int
    category: str


def idle(timing: Timing, categories: Mapping[int, str] | None = None) -> list[Gap]:
    """Every stretch in which a unit does nothing, by unit and time.

    All of it is put down to what was there last of the things that the next task needed. `categories`: a word for each
    counted object (`load`, `weights`, `producer`, `room`, ...); an object without one stands for itself, by its name.
    What is left after the last task of a unit is "end".
    """
    words = categories or {}
    order = np.lexsort((np.arange(len(timing.unit)), timing.unit))
    free = [0] * len(timing.units)
    gaps: list[Gap] = []
    columns = (timing.unit, timing.start, timing.end, timing.held_by)
    unit, start, end, held = (column[order].tolist() for column in columns)
    for task, own, begin, finish, number in zip(order.tolist(), unit, start, end, held, strict=True):
        if begin > free[own]:
            gaps.append(Gap(own, free[own], begin, task, number, _category(timing, words, number)))
        free[own] = finish
    last = timing.makespan
    gaps += [Gap(own, at, last, -1, -1, END) for own, at in enumerate(free) if at < last]
    return sorted(gaps)


def time_by_category(timing: Timing, categories: Mapping[int, str] | None = None) -> list[dict[str, int]]:
    """Of each unit: "busy", what it waited for (`idle`), "end" after its last task. They add up to the makespan."""
    busy = timing.busy().tolist()
    found: list[dict[str, int]] = [{BUSY: time} for time in busy]
    for gap in idle(timing, categories):
        found[gap.unit][gap.category] = found[gap.unit].get(gap.category, 0) + gap.end - gap.start
    return found


def critical_steps(timing: Timing, categories: Mapping[int, str] | None = None, to: int | None = None) -> list[Step]:
    """The critical path with its causes, from time 0 to the makespan, or to the end of task `to`, without a hole."""
    words = categories or {}
    steps: list[Step] = []
    for task in timing.critical_path(to):
        number = int(timing.held_by[task])
        category = _category(timing, words, number)
        steps.append(Step(task, int(timing.start[task]), int(timing.end[task]), number, category))
    return steps


def _category(timing: Timing, words: Mapping[int, str], number: int) -> str:
    if number < 0:
        return BUSY
    return words.get(number) or timing.objects[number]
