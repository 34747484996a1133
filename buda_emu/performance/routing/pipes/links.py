"""The Ethernet links of a cluster, as net2pipe chooses among them: in the order of its hash tables, and along the way
of least use.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from buda_emu.performance.routing.pipes.library_order import table_order
from buda_emu.spec.boards import Cluster, End

NO_WAY: Final = (1 << 31) - 1
"""The weight of a step that cannot be gone."""

_CHILDREN: Final = 4  # of a place of Boost's heap
_UP: Final = (0, 1)
_SIDES: Final = ((-1, 0), (1, 0), (0, -1), _UP)


@dataclass(slots=True)
class Links:
    """Channels of each chip with the ends that they lead to, in the order of net2pipe's tables."""

    cluster: Cluster
    ends: dict[int, dict[int, End]] = field(default_factory=dict[int, dict[int, End]])

    def __post_init__(self) -> None:
        own: dict[int, dict[int, End]] = {}
        for near, far in self.cluster.links:
            own.setdefault(near[0], {})[near[1]] = far
            own.setdefault(far[0], {})[far[1]] = near
        for chip, channels in own.items():
            self.ends[chip] = {channel: channels[channel] for channel in table_order(channels, int)}

    def between(self, near: int, far: int) -> list[tuple[int, int]]:
        """The links between two chips: the channel of each."""
        return [(channel, end[1]) for channel, end in self.ends.get(near, {}).items() if end[0] == far]

    def connects(self, one: End, other: End) -> bool:
        """Whether they are the ends of a link."""
        return self.ends.get(one[0], {}).get(one[1]) == other

    def of_copy(self, near: int, far: int, cells: int) -> tuple[list[int], list[int]]:
        """Channels of a copy that names none, cell by cell, of the chip that its operand is on and of the one that it
        goes to: each chip's own towards the other in turn, from the one that was put first into its table. Empty where
        one of them has no link."""
        here = self._towards(near, far)
        there = self._towards(far, near)
        if not here or not there:
            return [], []
        return [here[cell % len(here)] for cell in range(cells)], [there[cell % len(there)] for cell in range(cells)]

    def _towards(self, chip: int, other: int) -> list[int]:
        """Channels of a chip in the direction of another one, by their places in the cluster, columns first; if it has
        none there, those of the first of `_SIDES` where it has some."""
        by_side: dict[tuple[int, int], list[int]] = {}
        ends = self.ends.get(chip, dict[int, End]())
        for channel in reversed(ends):
            by_side.setdefault(self._side(chip, ends[channel][0]), []).append(channel)
        side = self._side(chip, other)
        wanted = side if any(side) else _UP
        return next((by_side[one] for one in (wanted, *_SIDES) if one in by_side), list[int]())

    def _side(self, chip: int, other: int) -> tuple[int, int]:
        """Where another chip is: one step along x, else along y; none where both have one place."""
        (x, y, *_), (other_x, other_y, *_) = self.cluster.places[chip], self.cluster.places[other]
        return (1 if other_x > x else -1, 0) if other_x != x else (0, (other_y > y) - (other_y < y))

    def way(self, start: int, end: int, weight: Callable[[int, int], int]) -> list[tuple[int, int]]:
        """Steps from chip to chip by which the sum of weights is least, as Boost's Dijkstra finds it; empty where there
        is none."""
        distance = {start: 0}
        before = dict[int, int]()
        heap = _Heap(distance)
        heap.push(start)
        done: set[int] = set()
        while heap.items:
            chip = heap.pop()
            done.add(chip)
            for far in sorted({far for far, _ in self.ends.get(chip, {}).values()}):
                found = distance[chip] + weight(chip, far)
                if far in done or found >= min(distance.get(far, NO_WAY), NO_WAY):
                    continue
                known = far in distance
                distance[far] = found
                before[far] = chip
                (heap.raise_ if known else heap.push)(far)
        steps: list[tuple[int, int]] = []
        while end != start:
            if end not in before:
                return []
            steps.append((before[end], end))
            end = before[end]
        return steps[::-1]


class _Heap:
    """Boost's heap of four children: which of equal chips comes first follows from it."""

    def __init__(self, keys: dict[int, int]) -> None:
        self.items: list[int] = []
        self._keys = keys

    def push(self, item: int) -> None:
        self.items.append(item)
        self._up(len(self.items) - 1)

    def raise_(self, item: int) -> None:
        self._up(self.items.index(item))

    def pop(self) -> int:
        first = self.items[0]
        last = self.items.pop()
        if self.items:
            self.items[0] = last
            self._down()
        return first

    def _up(self, place: int) -> None:
        items = self.items
        keys = self._keys
        while place and keys[items[place]] < keys[items[parent := (place - 1) // _CHILDREN]]:
            items[place], items[parent] = items[parent], items[place]
            place = parent

    def _down(self) -> None:
        items = self.items
        keys = self._keys
        place = 0
        while children := range(place * _CHILDREN + 1, min(place * _CHILDREN + 1 + _CHILDREN, len(items))):
            least = min(children, key=lambda one: keys[items[one]])
            if keys[items[least]] >= keys[items[place]]:
                return
            items[place], items[least] = items[least], items[place]
            place = least


_COLUMNS: Final = (9, 1, 8, 2, 7, 3, 6, 4)

ETHERNET_CORES: Final[Mapping[str, tuple[tuple[int, int], ...]]] = {
    "grayskull": (),
    "wormhole_b0": tuple((row, column) for row in (0, 6) for column in _COLUMNS),
}
"""For each architecture the row and column of the NoC for each channel's core."""
