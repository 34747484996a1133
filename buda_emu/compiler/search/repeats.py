"""Where the ops of a model repeat, as those of its layers do."""

from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

SHORTEST: Final = 8
"""Ops of a layer, at least: shorter repetitions are within one."""


class Repeated(NamedTuple):
    """Items from `start` on that come in `times` equal groups of `period` items, one after the other."""

    start: int
    period: int
    times: int

    @property
    def stop(self) -> int:
        """The item after the last group."""
        return self.start + self.period * self.times


def repeated(items: Sequence[Hashable]) -> list[Repeated]:
    """The longest repetitions, in their order, none in another: of equally long ones the shortest groups."""
    numbers: dict[Hashable, int] = {}
    return _within(np.array([numbers.setdefault(item, len(numbers)) for item in items], np.int64), 0)


def _within(keys: NDArray[np.int64], start: int) -> list[Repeated]:
    best = Repeated(0, 0, 0)
    for period in range(SHORTEST, len(keys) // 2 + 1):
        same = np.concatenate([[0], keys[:-period] == keys[period:], [0]])
        edges = np.flatnonzero(np.diff(same)).reshape(-1, 2)
        if len(edges):
            begin, end = edges[np.argmax(edges[:, 1] - edges[:, 0])].tolist()
            count = (end - begin) // period + 1
            if count > 1 and period * count > best.period * best.times:
                best = Repeated(begin, period, count)
    if not best.times:
        return []
    own = best._replace(start=start + best.start)
    return [*_within(keys[: best.start], start), own, *_within(keys[best.stop :], start + best.stop)]
