"""Who wrote and freed entries of a queue last: a line or two for each queue, kept for error texts."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from buda_emu.program.place import Place
from buda_emu.records import dataclass

HOST = "the host"
SETTINGS = "the program's pointer settings"


class Traffic(NamedTuple):
    """The last push or pop of a queue. `by`: an op's name, HOST or SETTINGS; `slot` is -1 for pops."""

    by: str
    slot: int
    moment: Callable[[], Place] | None  # says where a program was; None: between programs
    total: int  # entries pushed, or freed, since the machine was made

    @property
    def place(self) -> Place | None:
        """Where a program was; None between programs."""
        return self.moment() if self.moment is not None else None


@dataclass(slots=True)
class Entry:
    """What is known of one queue."""

    pushed: Traffic | None = None
    popped: Traffic | None = None

    def copy(self) -> "Entry":
        """The same, which later traffic does not change."""
        return Entry(self.pushed, self.popped)


class Journal:
    """Of one machine. `find` gives what says later where the instruction is that is being run."""

    __slots__ = ("_entries", "_moment", "executed", "find")

    def __init__(self) -> None:
        self.find: Callable[[], Callable[[], Place] | None] = lambda: None
        self._moment: Callable[[], Place] | None = None
        self.executed: dict[str, int] = {}  # graph -> how often it was run to its end
        self._entries: dict[str, Entry] = {}

    def of(self, queue: str) -> Entry:
        """What is known of a queue; empty for one that nothing touched."""
        found = self._entries.get(queue)
        if found is None:
            found = self._entries.setdefault(queue, Entry())
        return found

    def replace(self, entries: Mapping[str, Entry], executed: Mapping[str, int]) -> None:
        """Know this and nothing else."""
        self._entries, self.executed = dict(entries), dict(executed)

    def next_instruction(self) -> None:
        """Another instruction is about to run; its place is looked up when something happens in it."""
        self._moment = None

    def _when(self, by: str) -> Callable[[], Place] | None:
        if by is HOST:
            return None
        if self._moment is None:
            self._moment = self.find()
        return self._moment

    def push(self, queue: str, by: str, slot: int, count: int = 1) -> None:
        """So many entries were written, this one last."""
        entry = self.of(queue)
        before = entry.pushed.total if entry.pushed is not None else 0
        entry.pushed = Traffic(by, slot, self._when(by), before + count)

    def pop(self, queue: str, by: str, count: int) -> None:
        """Entries were freed."""
        entry = self.of(queue)
        before = entry.popped.total if entry.popped is not None else 0
        entry.popped = Traffic(by, -1, self._when(by), before + count)
