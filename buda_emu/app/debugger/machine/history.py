"""Checkpoints and the log of a run: from the one before a moment, the moment itself."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from time import perf_counter
from typing import Final

from buda_emu.app.debugger.machine.stop import STORED, Position
from buda_emu.emulator.memory.store import TileStore
from buda_emu.emulator.runtime.snapshots.checkpoint import Checkpoint, Checkpoints
from buda_emu.support.records import dataclass

MOST: Final = 64
_LEAST_SECONDS: Final = 0.1
_TIMES: Final = 20
DEFAULT_LIMIT: Final = 512 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """A checkpoint before an instruction. `program`: the number of the program in the order of the run."""

    position: Position
    program: int
    state: Checkpoint


class History:
    """Of one machine, in order of position; the first is the start."""

    def __init__(self, checkpoints: Checkpoints, limit: int = DEFAULT_LIMIT) -> None:
        self._checkpoints = checkpoints
        self._limit = limit
        self._add_buffer: list[Kept] = []
        self._cost = 0.0
        self._next = 0.0  # when another one is due
        self._left = 0.0  # how long after the program goes on

    def __len__(self) -> int:
        return len(self._add_buffer)

    @property
    def bytes(self) -> int:
        """Held by all checkpoints; what they share counts once."""
        pieces = {id(piece): piece.nbytes for kept in self._add_buffer for piece in kept.state.pieces()}
        return sum(pieces.values())

    def goes_on(self) -> None:
        """The program runs from now on: time that it stood does not count."""
        self._next = perf_counter() + self._left

    def stands(self) -> None:
        """It runs no longer."""
        self._left = max(0.0, self._next - perf_counter())

    def due(self) -> bool:
        """Is it time for another one?"""
        return perf_counter() >= self._next

    def take(self, position: Position, program: int, *, running: bool) -> None:
        """Keep the state now, unless it is kept already."""
        start = perf_counter()
        if self._add_buffer and self._add_buffer[-1].position >= position:
            self._next = start + max(_LEAST_SECONDS, _TIMES * self._cost)
            return
        before = self._add_buffer[-1].state if self._add_buffer else None
        self._add_buffer.append(Kept(position, program, self._checkpoints.take(before, running=running)))
        self._thin()
        end = perf_counter()
        self._cost = end - start
        self._next = end + max(_LEAST_SECONDS, _TIMES * self._cost)
        self.stands()

    def _thin(self) -> None:
        """The first and the last stay; of those between, every other one goes, from the oldest half."""
        while len(self._add_buffer) > 2 and (
            len(self._add_buffer) > MOST or self.bytes - self._first_bytes() > self._limit
        ):
            half = max(2, len(self._add_buffer) // 2)
            del self._add_buffer[1:half:2]

    def _first_bytes(self) -> int:
        return sum(piece.nbytes for piece in self._add_buffer[0].state.pieces())

    def before(self, position: Position) -> Kept:
        """The last one at or before a position."""
        return next(kept for kept in reversed(self._add_buffer) if kept.position <= position)

    def forget_after(self, position: Position) -> None:
        """What comes after is going to be another."""
        self._add_buffer = [kept for kept in self._add_buffer if kept.position <= position]

    def restore(self, kept: Kept) -> None:
        """Bring the machine there; no program may run."""
        self._checkpoints.back_to(kept.state)

    def before_write(self, store: TileStore, position: Position) -> None:
        """The host is going to change memory, at a position; what programs do not change was not copied till now."""
        contents = None
        for kept in self._add_buffer:
            if kept.position > position:
                return
            contents = self._checkpoints.keep_before_write(kept.state, store, contents)


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
