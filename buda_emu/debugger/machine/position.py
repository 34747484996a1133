"""Positions in a run as numbers that do not depend on how many inputs run together; going back means going to such a
number.
"""

from typing import Final, NamedTuple

BEFORE: Final = -1
"""As an input: the epoch has not begun."""
STORED: Final = 1 << 30
"""As a step: the input is through, and its results are in their queues."""


class Position(NamedTuple):
    """`instruction`: how many have begun, in all programs together; `input`: of the epoch, from 0; `step`: twice the
    number of the op in the order of the epoch, plus one when it has run. Positions are ordered as they are run."""

    instruction: int
    input: int = BEFORE
    step: int = 0

    @property
    def in_epoch(self) -> bool:
        """Is it within an epoch?"""
        return self.input != BEFORE

    def __str__(self) -> str:
        if not self.in_epoch:
            return f"{self.instruction}"
        step = "stored" if self.step == STORED else f"{self.step // 2}{'+' if self.step % 2 else ''}"
        return f"{self.instruction}.{self.input + 1}.{step}"


START: Final = Position(0)
"""Before the first program."""
