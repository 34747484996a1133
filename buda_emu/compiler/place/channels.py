"""DRAM channels for an epoch of a single input: data that is due first lies in channels that move little else.

All that a channel moves in a phase shares it, so that all of it is there at one time. A channel may take as long as the
first due of what it moves allows, and some cycles more. Found are the fewest such cycles with which there is room for
all, filled in the order in which things are due; and with these, the least that the fullest channel moves.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from buda_emu.compiler.place.due import Due

STEPS = 20
"""Halvings of the cycles that an epoch waits for its memory."""

Channels = tuple[tuple[int, ...], ...]
"""Of each item, the channel of each of its buffers."""


class Moved(NamedTuple):
    """What a queue moves: when it is due, the cycles that one of its buffers keeps a channel busy, its buffers."""

    due: Due
    cycles: float
    buffers: int


class Shared(NamedTuple):
    """A channel as it is used already: cycles, and when what it moves is due."""

    cycles: float = 0.0
    dues: frozenset[Due] = frozenset()

    def limit(self, late: float) -> float:
        """As `Due.limit` of the first of them."""
        return min((due.limit(late) for due in self.dues), default=float("inf"))

    def also(self, due: Due, cycles: float) -> "Shared":
        """With one more buffer."""
        return Shared(self.cycles + cycles, self.dues | {due})


@lru_cache(4096)
def channels_in_time(items: tuple[Moved, ...], used: tuple[Shared, ...]) -> Channels:
    """The channel of each buffer of each item."""
    total = sum(item.cycles * item.buffers for item in items) + sum(channel.cycles for channel in used)
    dues = [item.due.cycle for item in items]
    known: dict[tuple[float, float], Channels] = {}

    def fits(late: float, most: float) -> bool:
        found = _filled(items, used, late, most)
        if found is not None:
            known[late, most] = found
        return found is not None

    late = _least(-max(dues) - 1.0, total - min(dues) + 1.0, lambda cycles: fits(cycles, total))
    most = _least(0.0, total, lambda cycles: fits(late, cycles))
    return known[late, most] if fits(late, most) else _filled(items, used, float("inf"), total) or ()


def _least(low: float, high: float, suits: Callable[[float], bool]) -> float:
    """The least figure that suits, nearly; the highest where no other does."""
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if suits(middle) else (middle, high)
    return high


def _filled(items: Sequence[Moved], used: Sequence[Shared], late: float, most: float) -> Channels | None:
    """The channels, with nothing later than so many cycles and no channel at work longer than `most`; None where that
    is not possible."""
    cycles = [channel.cycles for channel in used]
    limits = [min(most, channel.limit(late)) for channel in used]
    order = sorted(range(len(used)), key=lambda n: (limits[n], n))
    found: list[tuple[int, ...]] = [()] * len(items)
    for number in sorted(range(len(items)), key=lambda n: (items[n].due.limit(late), n)):
        item = items[number]
        limit, chosen = item.due.limit(late), list[int]()
        for _ in range(item.buffers):
            channel = next((n for n in order if cycles[n] + item.cycles <= min(limits[n], limit)), None)
            if channel is None:
                return None
            cycles[channel] += item.cycles
            limits[channel] = min(limits[channel], limit)
            chosen.append(channel)
        found[number] = tuple(chosen)
    return tuple(found)
