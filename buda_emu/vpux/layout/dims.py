"""Two kinds of dimension that are never mixed: logical ones and positions in memory (VPUX 1)."""

from dataclasses import dataclass
from typing import Final

from buda_emu.errors import HostError

MOST_DIMS: Final = 15
"""Dimensions that an order's code has room for."""


@dataclass(frozen=True, slots=True)
class Dim:
    """A logical dimension, as an op means it: of N, C, H, W the first is 0. Raises HostError outside of 0..14."""

    index: int

    def __post_init__(self) -> None:
        _check(self.index)


@dataclass(frozen=True, slots=True)
class MemDim:
    """A position in memory: 0 is the outermost. Never equal to a Dim. Raises HostError outside of 0..14."""

    index: int

    def __post_init__(self) -> None:
        _check(self.index)


def _check(index: int) -> None:
    if not 0 <= index < MOST_DIMS:
        raise HostError(f"dimension {index} is not possible: 0 to {MOST_DIMS - 1} are")
