"""The log of a run: for each chunk of inputs the slots that it read and wrote; the oldest are forgotten."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from buda_emu.debugger.machine.position import STORED, Position
from buda_emu.records import dataclass

MOST_SLOTS: Final = 1_000_000
"""Slots that are remembered, of all chunks together: some 64 MiB."""


@dataclass(slots=True, eq=False)
class Chunk:
    """Inputs that ran together: `count` from `first` on, of the epoch that an instruction began. `anew`: rams whose
    sums began at zero with them."""

    instruction: int
    first: int
    count: int
    graphs: tuple[str, ...]
    reads: Mapping[str, Sequence[int]]
    writes: Mapping[str, Sequence[int]]
    anew: tuple[str, ...] = ()
    stored: bool = False

    @property
    def weight(self) -> int:
        """What it costs to remember, in slots."""
        return 8 + self.count * (len(self.reads) + len(self.writes))

    def begin(self) -> Position:
        """Of its first input."""
        return Position(self.instruction, self.first)


class Log:
    """Chunks in the order in which they ran. `cut`: whether some were forgotten."""

    def __init__(self) -> None:
        self._chunks: deque[Chunk] = deque()
        self._weight = 0
        self.cut = False

    def __len__(self) -> int:
        return len(self._chunks)

    def add(self, chunk: Chunk) -> None:
        """One more has begun."""
        self._chunks.append(chunk)
        self._weight += chunk.weight
        while self._weight > MOST_SLOTS and len(self._chunks) > 1:
            self._weight -= self._chunks.popleft().weight
            self.cut = True

    def stored(self) -> None:
        """The last one is through."""
        self._chunks[-1].stored = True

    def back_to(self, position: Position) -> None:
        """Forget what begins there or later."""
        while self._chunks and self._chunks[-1].begin() >= position:
            self._weight -= self._chunks.pop().weight

    def latest(self) -> Iterator[Chunk]:
        """From the last one back."""
        return reversed(self._chunks)

    def writer(self, entries: Sequence[tuple[str, int]], before: Position) -> tuple[Chunk, int, str, int] | None:
        """Who wrote one of these entries last, of what was stored before a position: the chunk, the input within it,
        and the entry."""
        for chunk in self.latest():
            if not chunk.stored or chunk.begin() > before:
                continue
            written = [(chunk.writes[queue], queue, slot) for queue, slot in entries if queue in chunk.writes]
            for number in reversed(range(chunk.count)):
                for slots, queue, slot in written:
                    if slots[number] == slot and Position(chunk.instruction, chunk.first + number, STORED) < before:
                        return chunk, number, queue, slot
        return None

    def epoch_before(self, instruction: int, graph: str = "") -> Chunk | None:
        """The last chunk of an epoch that an earlier instruction began, of a graph where one is named."""
        for chunk in self.latest():
            if chunk.instruction < instruction and (not graph or graph in chunk.graphs):
                return chunk
        return None
