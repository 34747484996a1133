"""The Ethernet links of a cluster, chosen as net2pipe does: in the order of its hash tables, and along the way of least
use."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Final

from buda_emu.performance.routing.pipes.library_order import table_order
from buda_emu.spec.boards import Cluster, End

NO_WAY: Final = (1 << 31) - 1
"""The weight of a step that cannot be gone."""

_CHILDREN: Final = 4  # of a place of Boost's heap
_UP: Final = (0, 1)  # a step on the grid of chips
_SIDES: Final = ((-1, 0), (1, 0), (0, -1), _UP)  # in the order in which net2pipe tries them


@dataclass(slots=True)
class Links:
    """The Ethernet links of a cluster: `ends` has the channels of each chip with the (chip, channel) that they lead to,
    in the order of net2pipe's tables."""

    cluster: Cluster
    ends: dict[int, dict[int, End]] = field(default_factory=dict[int, dict[int, End]])

    def __post_init__(self) -> None:
        unordered: dict[int, dict[int, End]] = {}
        for near, far in self.cluster.links:
            unordered.setdefault(near[0], {})[near[1]] = far
            unordered.setdefault(far[0], {})[far[1]] = near
        for chip, channels in unordered.items():
            self.ends[chip] = {channel: channels[channel] for channel in table_order(channels, int)}

    def between(self, near: int, far: int) -> list[tuple[int, int]]:
        """Return the links between two chips, as pairs (channel of `near`, channel of `far`); [] if there are none."""
        return [(channel, end[1]) for channel, end in self.ends.get(near, {}).items() if end[0] == far]

    def connects(self, end: End, other_end: End) -> bool:
        """Return whether two ends, each as (chip, channel), belong to one link."""
        return self.ends.get(end[0], {}).get(end[1]) == other_end

    def of_copy(self, near: int, far: int, cells: int) -> tuple[list[int], list[int]]:
        """Return the channels that a copy between chips gets if it names none, for each of its `cells`: those of
        `near`, the chip of its operand, and of `far`, its destination. Each chip uses its channels towards the other
        chip in turn, from the one that was inserted first into its table. ([], []) if one of the chips has no link."""
        channels = self._towards(near, far)
        other_channels = self._towards(far, near)
        if not channels or not other_channels:
            return [], []
        return [channels[cell % len(channels)] for cell in range(cells)], [
            other_channels[cell % len(other_channels)] for cell in range(cells)
        ]

    def _towards(self, chip: int, other: int) -> list[int]:
        """Return the channels of a chip in the direction of the chip `other`, by their places in the cluster, columns
        first; if it has none there, those of the first direction of `_SIDES` in which it has some; [] if it has no
        links."""
        by_side: dict[tuple[int, int], list[int]] = {}
        ends = self.ends.get(chip, dict[int, End]())
        for channel in reversed(ends):
            by_side.setdefault(self._side(chip, ends[channel][0]), []).append(channel)
        side = self._side(chip, other)
        if any(side):
            direction = side
        else:
            direction = _UP
        return next((by_side[candidate] for candidate in (direction, *_SIDES) if candidate in by_side), list[int]())

    def _side(self, chip: int, other: int) -> tuple[int, int]:
        """Return the direction of another chip: one step along x, else along y; (0, 0) if both have one place."""
        x, y, *_ = self.cluster.places[chip]
        other_x, other_y, *_ = self.cluster.places[other]
        if other_x != x:
            return (1 if other_x > x else -1, 0)
        return (0, (other_y > y) - (other_y < y))

    def way(self, start: int, end: int, weight: Callable[[int, int], int]) -> list[tuple[int, int]]:
        """Return the steps (from chip, to chip) from `start` to `end` with the least sum of weights, as Boost's
        Dijkstra finds them; [] if there is no way, or both are the same. `weight` returns the weight of the step
        between two neighbours, NO_WAY for one that cannot be taken."""
        distance = {start: 0}
        before = dict[int, int]()
        heap = _Heap(distance)
        heap.push(start)
        done: set[int] = set()
        while heap.items:
            chip = heap.pop()
            done.add(chip)
            for far in sorted({far for far, _ in self.ends.get(chip, {}).values()}):
                new_distance = distance[chip] + weight(chip, far)
                if far in done or new_distance >= min(distance.get(far, NO_WAY), NO_WAY):
                    continue
                has_distance = far in distance
                distance[far] = new_distance
                before[far] = chip
                (heap.raise_ if has_distance else heap.push)(far)
        steps: list[tuple[int, int]] = []
        while end != start:
            if end not in before:
                return []
            steps.append((before[end], end))
            end = before[end]
        return steps[::-1]


class _Heap:
    """Boost's heap of four children. It decides which of equally distant chips comes first."""

    def __init__(self, keys: dict[int, int]) -> None:
        self.items: list[int] = []
        self._keys = keys

    def push(self, chip: int) -> None:
        """Add a chip whose key is set."""
        self.items.append(chip)
        self._up(len(self.items) - 1)

    def raise_(self, chip: int) -> None:
        """Move a chip up the heap after its key became smaller."""
        self._up(self.items.index(chip))

    def pop(self) -> int:
        """Remove and return the chip with the smallest key."""
        first = self.items[0]
        last = self.items.pop()
        if self.items:
            self.items[0] = last
            self._down()
        return first

    def _up(self, place: int) -> None:
        """Move the chip at a place towards the root as long as its key is smaller than its parent's."""
        items = self.items
        keys = self._keys
        while place and keys[items[place]] < keys[items[parent := (place - 1) // _CHILDREN]]:
            items[place], items[parent] = items[parent], items[place]
            place = parent

    def _down(self) -> None:
        """Move the chip at the root down as long as a child's key is smaller."""
        items = self.items
        keys = self._keys
        place = 0
        while children := range(place * _CHILDREN + 1, min(place * _CHILDREN + 1 + _CHILDREN, len(items))):
            least = min(children, key=lambda child: keys[items[child]])
            if keys[items[least]] >= keys[items[place]]:
                return
            items[place], items[least] = items[least], items[place]
            place = least


_COLUMNS: Final = (9, 1, 8, 2, 7, 3, 6, 4)  # NoC columns of the channels 0 to 7, and of the next eight

ETHERNET_CORES: Final[Mapping[str, tuple[tuple[int, int], ...]]] = {
    "grayskull": (),
    "wormhole_b0": tuple(product((0, 6), _COLUMNS)),
}
"""For each architecture the row and column of the NoC for each channel's core."""
