"""Ids of buffers and pipes: they leave room for the places of a buffer's pieces, as those of net2pipe do."""

from itertools import count
from typing import Final

ID_STEP: Final = 1_000_000_000
_FIRST: Final = 100 * ID_STEP


class Ids:
    """Gives ids, in rising order."""

    def __init__(self) -> None:
        self._next = count(_FIRST, ID_STEP)

    def new(self) -> int:
        """The next one."""
        return next(self._next)

    def several(self, number: int) -> list[int]:
        """The next ones."""
        return [next(self._next) for _ in range(number)]


def base_of(id: int) -> int:
    """The buffer of a piece."""
    return id - id % ID_STEP
