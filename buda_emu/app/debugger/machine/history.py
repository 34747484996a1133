"""Checkpoints and the log of a run, from which an earlier moment is reached again."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from time import perf_counter
from typing import Final

from buda_emu.app.debugger.machine.stop import STORED, Position
from buda_emu.emulator.memory.store import TileStore
from buda_emu.emulator.runtime.snapshots.checkpoint import Checkpoint, Checkpoints
from buda_emu.support.records import dataclass

MAX_CHECKPOINTS: Final = 64  # more make going back replay less, and take more memory
_MIN_SECONDS: Final = 0.1
"""The least time between two checkpoints, which going back a little has to replay."""
_COST_FACTOR: Final = 20
"""The time until the next checkpoint, in times that the last one took: checkpoints cost a twentieth of a run's time."""
DEFAULT_LIMIT: Final = 512 << 20
"""Bytes of all checkpoints but the first."""


@dataclass(frozen=True, slots=True, eq=False)
class SavedState:
    """A checkpoint before an instruction. `program` is the number of the program in the order of the run."""

    position: Position
    program: int
    state: Checkpoint


class History:
    """The checkpoints of one machine in order of position; the first is the start. `limit` is in bytes, without those
    of the first."""

    def __init__(self, checkpoints: Checkpoints, limit: int = DEFAULT_LIMIT) -> None:
        self._checkpoints = checkpoints
        self._limit = limit
        self._saved: list[SavedState] = []
        self._cost = 0.0
        self._next = 0.0  # time at which the next checkpoint is due
        self._left = 0.0  # seconds that remain until then while the program is held

    def __len__(self) -> int:
        return len(self._saved)

    @property
    def bytes(self) -> int:
        """Bytes of all checkpoints; memory that several share counts once."""
        sizes: dict[int, int] = {}
        for saved in self._saved:
            sizes |= {id(piece): piece.nbytes for piece in saved.state.pieces()}
        return sum(sizes.values())

    def start_clock(self) -> None:
        """Resume the clock for the next checkpoint, which counts only time during which the program runs."""
        self._next = perf_counter() + self._left

    def stop_clock(self) -> None:
        """Keep the time that remains until the next checkpoint is due, so that time in which the debugger holds the
        program does not count."""
        self._left = max(0.0, self._next - perf_counter())

    def is_due(self) -> bool:
        """Return whether it is time for the next checkpoint."""
        return perf_counter() >= self._next

    def take(self, position: Position, program: int, *, running: bool) -> None:
        """Save the current state as a checkpoint, unless there is one of this position or a later one, and set when the
        next one is due. `running` says that a program stands between two instructions."""
        start = perf_counter()
        if self._saved and self._saved[-1].position >= position:
            self._next = start + max(_MIN_SECONDS, _COST_FACTOR * self._cost)
            return
        before = self._saved[-1].state if self._saved else None
        self._saved.append(SavedState(position, program, self._checkpoints.take(before, running=running)))
        self._thin()
        end = perf_counter()
        self._cost = end - start
        self._next = end + max(_MIN_SECONDS, _COST_FACTOR * self._cost)
        self.stop_clock()

    def _thin(self) -> None:
        """Delete checkpoints until they keep the limits: every second one of the older half. The first and the last
        stay."""
        while len(self._saved) > 2 and (
            len(self._saved) > MAX_CHECKPOINTS or self.bytes - self._first_bytes() > self._limit
        ):
            half = max(2, len(self._saved) // 2)
            del self._saved[1:half:2]

    def _first_bytes(self) -> int:
        """Return the bytes of the first checkpoint."""
        return sum(piece.nbytes for piece in self._saved[0].state.pieces())

    def before(self, position: Position) -> SavedState:
        """Return the last checkpoint at or before a position."""
        return next(saved for saved in reversed(self._saved) if saved.position <= position)

    def forget_after(self, position: Position) -> None:
        """Delete checkpoints after a position, because the run will differ from there."""
        self._saved = [saved for saved in self._saved if saved.position <= position]

    def restore(self, saved: SavedState) -> None:
        """Bring the machine back to a checkpoint. No program may be running."""
        self._checkpoints.back_to(saved.state)

    def before_write(self, store: TileStore, position: Position) -> None:
        """Give the checkpoints up to a position their own copy of memory that the host is about to change. They share
        it with the machine as long as only programs run, which do not write it."""
        contents = None
        for saved in self._saved:
            if saved.position > position:
                return
            contents = self._checkpoints.keep_before_write(saved.state, store, contents)


MAX_LOGGED_SLOTS: Final = 1_000_000
"""Slots that are remembered, of all chunks together: some 64 MiB."""


@dataclass(slots=True, eq=False)
class Chunk:
    """Inputs that ran together: `count` inputs from `first` on, of the epoch that an instruction began. `reads` and
    `writes` are slots by queue, one for each input; `anew` are rams whose sums began at zero with them."""

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
        """The cost of remembering the chunk, in slots."""
        return 8 + self.count * (len(self.reads) + len(self.writes))

    def begin(self) -> Position:
        """Return the position of its first input."""
        return Position(self.instruction, self.first)


class Log:
    """Chunks in the order in which they ran. `cut` is whether the oldest were dropped."""

    def __init__(self) -> None:
        self._chunks: deque[Chunk] = deque()
        self._weight = 0
        self.cut = False

    def __len__(self) -> int:
        return len(self._chunks)

    def add(self, chunk: Chunk) -> None:
        """Append a chunk that has begun, and drop the oldest beyond MAX_LOGGED_SLOTS."""
        self._chunks.append(chunk)
        self._weight += chunk.weight
        while self._weight > MAX_LOGGED_SLOTS and len(self._chunks) > 1:
            self._weight -= self._chunks.popleft().weight
            self.cut = True

    def mark_stored(self) -> None:
        """Mark the last chunk as done: its results are in their queues."""
        self._chunks[-1].stored = True

    def back_to(self, position: Position) -> None:
        """Drop the chunks that begin at or after a position, because the run goes back there."""
        while self._chunks and self._chunks[-1].begin() >= position:
            self._weight -= self._chunks.pop().weight

    def latest(self) -> Iterator[Chunk]:
        """Return the chunks from the last to the first."""
        return reversed(self._chunks)

    def writer(self, entries: Sequence[tuple[str, int]], before: Position) -> tuple[Chunk, int, str, int] | None:
        """Return the last write to one of these entries, (queue, slot), that was stored before a position: the chunk,
        the input within the chunk, and the entry's queue and slot; None if the log has none."""
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
        """Return the last chunk of an epoch that began before instruction `instruction`, if `graph` is named of one
        with that graph; None if there is none."""
        for chunk in self.latest():
            if chunk.instruction < instruction and (not graph or graph in chunk.graphs):
                return chunk
        return None
