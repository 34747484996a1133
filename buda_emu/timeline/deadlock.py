"""Why the tasks that are left wait for ever."""

from collections.abc import Iterator

import numpy as np

from buda_emu.timeline.result import Timing
from buda_emu.timeline.tasks import Tasks

_SHOWN = 8


def explain(tasks: Tasks, timing: Timing) -> str:
    """Several lines: how many are left, then a circle of tasks that wait for each other, or the one nobody serves."""
    left = np.flatnonzero(timing.end < 0)
    heads = _heads(timing)
    lines = [f"deadlock: {len(left)} of {len(tasks)} tasks wait for ever"]
    lines += list(_chain(tasks, timing, heads))
    return "\n  ".join(lines)


def _heads(timing: Timing) -> dict[int, int]:
    """The first task of each unit that was not done."""
    found: dict[int, int] = {}
    for task in np.flatnonzero(timing.end < 0).tolist():
        found.setdefault(int(timing.unit[task]), task)
    return found


def _chain(tasks: Tasks, timing: Timing, heads: dict[int, int]) -> Iterator[str]:
    """From the first waiting task to the one it waits for, and on, until the circle is closed."""
    task = min(heads.values())
    seen: list[int] = []
    while task not in seen:
        seen.append(task)
        number = int(timing.held_by[task])
        wait = next(item for item in tasks.waits_of(task) if item.object == number)
        given = tasks.tokens_at_first(number) + _given(tasks, timing, number)
        have = int(timing.tokens[number]) if wait.takes else given
        text = f"{tasks.label(task)} waits for {wait.tokens} of {tasks.objects[number]}, which has {have}"
        servers = [item for item in np.flatnonzero(timing.end < 0).tolist() if _gives(tasks, item, number)]
        if not servers:
            yield f"{text}: no task that is left gives any"
            return
        server = servers[0]
        head = heads[int(timing.unit[server])]
        after = f", which comes after {tasks.label(head)}" if head != server else ""
        if len(seen) <= _SHOWN:
            yield f"{text}: {tasks.label(server)} would give it{after}"
        task = head
    yield f"and {tasks.label(task)} closes the circle"


def _gives(tasks: Tasks, task: int, number: int) -> bool:
    return any(item == number and count for item, count in tasks.signals_of(task))


def _given(tasks: Tasks, timing: Timing, number: int) -> int:
    done = np.flatnonzero(timing.end >= 0).tolist()
    return sum(count for task in done for item, count in tasks.signals_of(task) if item == number)
