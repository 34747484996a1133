"""Choices at random, all from one `random.Random`, so that a seed, or Hypothesis, decides everything."""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from buda_emu.records import dataclass

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Draw:
    """A source of choices."""

    random: Random
    wanted: frozenset[str] = frozenset()
    """What is taken more often than not where it is among the choices: what coverage lacks."""

    def integer(self, least: int, most: int) -> int:
        """One of least, ..., most."""
        return self.random.randint(least, most)

    def pick(self, items: Sequence[T]) -> T:
        """One of them."""
        liked = [item for item in items if isinstance(item, str) and item in self.wanted] if self.wanted else []
        if liked and self.chance(80):
            items = liked
        return items[self.random.randint(0, len(items) - 1)]

    def chance(self, percent: int) -> bool:
        """Yes in so many of a hundred cases."""
        return self.random.randint(0, 99) < percent

    def sometimes(self, percent: int, *words: str) -> bool:
        """Yes in so many of a hundred cases, mostly where one of the words is wanted."""
        return self.chance(70 if self.wanted.intersection(words) else percent)

    def divisor(self, number: int, most: int | None = None) -> int:
        """One of the divisors of a number, none above `most`."""
        limit = number if most is None else min(number, most)
        return self.pick([item for item in range(1, limit + 1) if number % item == 0])
