"""Accesses to memory that no order keeps apart, and reads of what nobody wrote."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from buda_emu.timeline.memory import Access, by_space
from buda_emu.timeline.order import Order
from buda_emu.timeline.ranges import ByteSet

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Hazard:
    """A "race": tasks `first` < `second`, which nothing orders, touch common bytes, and one of them writes. Or a read
    of "unwritten" bytes by task `second`; then `first` is -1. `address` is the first such byte, `size` their number.
    """

    kind: Literal["race", "unwritten"]
    first: int
    second: int
    space: str
    address: int
    size: int


def order_conflicts(order: Order, accesses: Iterable[Access]) -> list[Hazard]:
    """Races of every run: one for each pair of tasks and space, sorted by tasks and space.

    Takes the time of a sort, and a look at each pair of accesses that share bytes and of which one writes. Raises
    HostError for an access that is impossible, UnsupportedError for more than two million pairs that race.
    """
    spaces = sorted(by_space(accesses, order.tasks).items())
    rows = [
        (number, low, high, access.task, access.writes)
        for number, (_, own) in enumerate(spaces)
        for access in own
        for low, high in access.pieces()
    ]
    if not rows:
        return []
    rows.sort()
    table = np.array(rows, np.int64)
    columns = [np.ascontiguousarray(table[:, column]) for column in range(4)]
    pairs = order.unordered(columns[0], columns[1], columns[2], columns[3], table[:, 4].astype(np.bool_))
    meetings: dict[tuple[int, int, int], ByteSet] = {}
    lowest: dict[tuple[int, int, int], int] = {}
    indices: list[list[int]] = pairs.tolist()
    for one, other in indices:
        space, low, high, task, _ = rows[one]
        _, low2, high2, task2, _ = rows[other]
        key = (min(task, task2), max(task, task2), space)
        begin = max(low, low2)
        meetings.setdefault(key, ByteSet()).add(begin, min(high, high2))
        lowest[key] = min(begin, lowest.get(key, begin))
    found = [Hazard("race", *key[:2], spaces[key[2]][0], lowest[key], len(common)) for key, common in meetings.items()]
    return sorted(found, key=lambda item: (item.first, item.second, item.space))


def unwritten_reads(
    accesses: Iterable[Access], sequence: Sequence[int] | Ints, written: Iterable[tuple[str, int, int]] = ()
) -> list[Hazard]:
    """Reads of bytes that no task wrote before, one for each access, in order. `sequence`: all tasks in the order in
    which they take effect (`np.lexsort((numbers, timing.start))`); a task reads, then writes. `written`: (space,
    address, size) that hold data from the start. Raises HostError for an access that is impossible."""
    place = {int(task): number for number, task in enumerate(sequence)}
    known: dict[str, ByteSet] = {}
    for space, address, size in written:
        known.setdefault(space, ByteSet()).add(address, address + size)
    spaces: Mapping[str, list[Access]] = by_space(accesses, len(place))
    found: list[tuple[int, int, Hazard]] = []
    for space, own in spaces.items():
        have = known.get(space, ByteSet())
        for number, access in sorted(enumerate(own), key=lambda item: (place[item[1].task], item[1].writes, item[0])):
            ranges = access.pieces()
            if access.writes:
                for low, high in ranges:
                    have.add(low, high)
                continue
            gaps = [gap for low, high in ranges for gap in have.missing(low, high)]
            if gaps:
                size = sum(high - low for low, high in gaps)
                hazard = Hazard("unwritten", -1, access.task, space, gaps[0][0], size)
                found.append((place[access.task], number, hazard))
    return [hazard for _, _, hazard in sorted(found, key=lambda item: item[:2])]
