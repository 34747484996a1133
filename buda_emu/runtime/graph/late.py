"""Values of other machines that this one only stores: it goes on without them, and takes them when the epoch ends.

So a machine need not wait in every input for those behind it in the chain, whose results it reads in a later epoch:
it computes the next inputs while they compute this one.
"""

from collections import Counter, deque
from collections.abc import Callable
from typing import Any, Final

from numpy.typing import NDArray

from buda_emu.runtime.graph.topology import Topology
from buda_emu.runtime.machine.memory import Memory
from buda_emu.runtime.machine.part import BUFFERED_BYTES, Part

LATE_BYTES: Final = BUFFERED_BYTES // 2
"""Of values put off from one machine, at most. They stay below what may wait here, so that machine is never kept from
sending what this one, or any other, needs first."""
_Store = Callable[[list[NDArray[Any]]], None]


class Late:
    """What is put off in one epoch. Values from a machine come in the order in which it sends them, so what was put
    off is taken before the next that is needed at once."""

    def __init__(self, part: Part, memory: Memory, topology: Topology) -> None:
        def memory_of(queue: str) -> int:
            return id(memory.channels[queue].view.store)

        uses = Counter(map(memory_of, (*topology.reads, *topology.local, *topology.writes)))
        self.queues: Final = frozenset(queue for queue in topology.writes if uses[memory_of(queue)] == 1)
        """Those that may be written late: nothing else of the epoch reads or writes their memory."""
        self._part = part
        self._waiting: dict[int, deque[tuple[int, _Store]]] = {}
        self._held: Counter[int] = Counter()

    def receive(self, source: int) -> list[NDArray[Any]]:
        """The value that another machine gives at this step."""
        while self._waiting.get(source):
            self._take(source)
        return self._part.receive(source)

    def put_off(self, source: int, most_bytes: int, store: _Store) -> None:
        """Let the value of this step be stored later; one of more bytes than may wait, now."""
        while self._waiting.get(source) and self._held[source] + most_bytes > LATE_BYTES:
            self._take(source)
        self._waiting.setdefault(source, deque()).append((most_bytes, store))
        self._held[source] += most_bytes
        if most_bytes > LATE_BYTES:
            self._take(source)

    def take_all(self) -> None:
        """Store everything that was put off."""
        for source, waiting in self._waiting.items():
            while waiting:
                self._take(source)

    def _take(self, source: int) -> None:
        count, store = self._waiting[source].popleft()
        self._held[source] -= count
        store(self._part.receive(source))
