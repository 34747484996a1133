"""Work in steps of a few milliseconds, so that the caller can do something else between two of them."""

from collections.abc import Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")
Steps: TypeAlias = Generator[None, None, T]
"""What is iterated for its steps; its result is what it returns."""


def finished(steps: Steps[T]) -> T:
    """The result, all steps being made at once."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value
