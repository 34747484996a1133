"""When every task of a schedule was done, and what follows from it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Timing:
    """Arrays over tasks, in the schedule's unit of time.

    `cause`: the task whose end let a task start, -1 for those that start at once; `held_by`: the object that it waited
    for last, -1 where it waited for its unit alone. `tokens`: what the objects hold at the end.
    """

    units: tuple[str, ...]
    objects: tuple[str, ...]
    unit: Ints
    start: Ints
    end: Ints
    cause: Ints
    held_by: Ints
    tokens: Ints

    @property
    def makespan(self) -> int:
        """When the last task ends; 0 without tasks."""
        return int(self.end.max(initial=0))

    def busy(self) -> Ints:
        """Time that each unit works."""
        return np.bincount(self.unit, weights=self.end - self.start, minlength=len(self.units)).astype(np.int64)

    def utilisation(self) -> NDArray[np.float64]:
        """Share of the makespan that each unit works."""
        return self.busy() / max(self.makespan, 1)

    def waited(self) -> Ints:
        """How long each task was held by objects after its unit was free."""
        order = np.lexsort((self.start, self.unit))
        free = np.zeros(len(order), np.int64)
        same = self.unit[order[1:]] == self.unit[order[:-1]]
        free[1:] = np.where(same, self.end[order[:-1]], 0)
        result = np.empty(len(order), np.int64)
        result[order] = self.start[order] - free
        return result

    def critical_path(self, to: int | None = None) -> list[int]:
        """Tasks from the beginning to the end of a task, by default the last, each of which let the next one start."""
        if not len(self.end):
            return []
        path = [int(self.end.argmax()) if to is None else to]
        while self.cause[path[-1]] >= 0:
            path.append(int(self.cause[path[-1]]))
        return path[::-1]
