"""Checkpoints of a run: from the one before a moment, the moment is reached again by running (docs/run/debug.md).

What it costs: a checkpoint is taken when the run has taken 20 times as long as the last one took, and a tenth of a
second at least, so they cost a twentieth of the time of a run. There are at most `MOST` of them, and beside the first
at most `limit` bytes (the last one stays, whatever it takes). When there are more, every other one of the older ones is
dropped, so that going back a little replays little, and going back far replays more.
"""

from time import perf_counter
from typing import Final

from buda_emu.debugger.machine.position import Position
from buda_emu.device.store import TileStore
from buda_emu.records import dataclass
from buda_emu.runtime.snapshots.checkpoint import Checkpoint, Checkpoints

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
        self._kept: list[Kept] = []
        self._cost = 0.0
        self._next = 0.0  # when another one is due
        self._left = 0.0  # how long after the program goes on

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def bytes(self) -> int:
        """Held by all checkpoints; what they share counts once."""
        pieces = {id(piece): piece.nbytes for kept in self._kept for piece in kept.state.pieces()}
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
        if self._kept and self._kept[-1].position >= position:
            self._next = start + max(_LEAST_SECONDS, _TIMES * self._cost)
            return
        before = self._kept[-1].state if self._kept else None
        self._kept.append(Kept(position, program, self._checkpoints.take(before, running=running)))
        self._thin()
        end = perf_counter()
        self._cost = end - start
        self._next = end + max(_LEAST_SECONDS, _TIMES * self._cost)
        self.stands()

    def _thin(self) -> None:
        """The first and the last stay; of those between, every other one goes, from the oldest half."""
        while len(self._kept) > 2 and (len(self._kept) > MOST or self.bytes - self._first_bytes() > self._limit):
            half = max(2, len(self._kept) // 2)
            del self._kept[1:half:2]

    def _first_bytes(self) -> int:
        return sum(piece.nbytes for piece in self._kept[0].state.pieces())

    def before(self, position: Position) -> Kept:
        """The last one at or before a position."""
        return next(kept for kept in reversed(self._kept) if kept.position <= position)

    def forget_after(self, position: Position) -> None:
        """What comes after is going to be another."""
        self._kept = [kept for kept in self._kept if kept.position <= position]

    def restore(self, kept: Kept) -> None:
        """Bring the machine there; no program may run."""
        self._checkpoints.back_to(kept.state)

    def before_write(self, store: TileStore, position: Position) -> None:
        """The host is going to change memory, at a position; what programs do not change was not copied till now."""
        contents = None
        for kept in self._kept:
            if kept.position > position:
                return
            contents = self._checkpoints.keep_before_write(kept.state, store, contents)
