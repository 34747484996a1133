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

    def integer(self, least: int, most: int) -> int:
        """One of least, ..., most."""
        return self.random.randint(least, most)

    def pick(self, items: Sequence[T]) -> T:
        """One of them."""
        return items[self.random.randint(0, len(items) - 1)]

    def chance(self, percent: int) -> bool:
        """Yes in so many of a hundred cases."""
        return self.random.randint(0, 99) < percent

    def divisor(self, number: int, most: int | None = None) -> int:
        """One of the divisors of a number, none above `most`."""
        limit = number if most is None else min(number, most)
        return self.pick([item for item in range(1, limit + 1) if number % item == 0])
