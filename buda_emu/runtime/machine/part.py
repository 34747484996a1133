"""One of several machines that run a netlist together, as the runtime sees it.

Every machine walks through the whole program, so all of them know all pointers at any time; but each computes only the
ops that it owns, and keeps only the queues and rams that they read or write. A value that another one needs goes there
when it has been computed: both are at the same step then, so what is sent and what is received need no names.
"""

from collections.abc import Sequence
from typing import Any, Final, Protocol

from numpy.typing import NDArray

BUFFERED_BYTES: Final = 64 << 20
"""Of values that a machine has received from another one and not asked for; the other one waits then."""


class Part(Protocol):
    """The machine of this number, from 0."""

    @property
    def number(self) -> int:
        """Its own."""
        ...

    def owner(self, op: str) -> int:
        """Who computes an op."""
        ...

    def keepers(self, queue: str) -> frozenset[int]:
        """Who holds the entries of a queue or ram."""
        ...

    def at(self, op: str) -> None:
        """It begins with an op."""
        ...

    def send(self, to: int, arrays: Sequence[NDArray[Any]]) -> None:
        """Give a value to another one; waits while that one has BUFFERED_BYTES that it has not asked for."""
        ...

    def receive(self, source: int) -> list[NDArray[Any]]:
        """The next value that another one gives. Raises HostError when it is lost."""
        ...
