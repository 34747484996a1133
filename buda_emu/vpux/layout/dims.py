"""Positions of dimensions in memory, which no logical dimension can stand for (VPUX 1)."""

from dataclasses import dataclass
from typing import Final

from buda_emu.errors import HostError

MOST_DIMS: Final = 15
"""Dimensions that an order's code has room for."""


@dataclass(frozen=True, slots=True)
class MemDim:
    """A position in memory: 0 is the outermost. Raises HostError outside of 0..14."""

    index: int

    def __post_init__(self) -> None:
        if not 0 <= self.index < MOST_DIMS:
            raise HostError(f"dimension {self.index} is not possible: 0 to {MOST_DIMS - 1} are")
