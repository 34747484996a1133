"""The events that other code may watch while a program runs: instructions, ops, queue traffic, tensors."""

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from buda_emu.netlist.model import Instruction, Op
from buda_emu.netlist.program.settings import Place, VariableValues
from buda_emu.support.checker.suggest import near
from buda_emu.support.errors import HostError
from buda_emu.support.records import dataclass


def read_only(array: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the same memory as an array that cannot be written, nor made writable: listeners are shown the machine's
    own tensors."""
    return np.asarray(memoryview(array.data).toreadonly())


class Listener:
    """A base class that does nothing; override the events you want to see (docs/run/listeners.md).

    A program's events come on the thread that runs it, the host's pushes and pops on the thread that does them. A
    listener may push, pop and read, and must not wait for another thread. Its exception stops the program, or the push
    or pop, and comes out of it; what was done before stays done and the machine can go on.

    Inputs of an epoch may run together: `inputs` says how many one call stands for."""

    def instruction(self, program: str, index: int, instruction: Instruction, variables: VariableValues) -> None:
        """Called before an instruction runs. The variables can be read, not changed."""

    def epoch_start(self, graphs: tuple[str, ...], inputs: int) -> None:
        """Called before a temporal graph starts; `inputs` is its input_count."""

    def epoch_end(self, graphs: tuple[str, ...]) -> None:
        """Called when all inputs of a temporal graph are done."""

    def op_start(self, op: Op, inputs: int) -> None:
        """Called before an op runs for `inputs` inputs."""

    def op_end(self, op: Op, inputs: int) -> None:
        """Called after an op ran for `inputs` inputs."""

    def queue_value(self, queue: str, tiles: NDArray[np.float32], inputs: int) -> None:
        """Called with the entries that the epoch read from a queue or ram for `inputs` inputs: [1 or inputs, tiles,
        1024], read-only. The array must not be kept: its memory is used again. Tiles are 32x32, row by row, in the
        order [t, row, col]; a first axis of 1 serves every input."""

    def op_value(self, op: Op, tiles: NDArray[np.float32], inputs: int) -> None:
        """Called with an op's result after accumulation, relu and output conversion: [1 or inputs, tiles, 1024],
        read-only, and not to be kept; see `queue_value`."""

    def queue_push(self, queue: str, slot: int) -> None:
        """Called when the host or an op wrote an entry into `slot`. Those of ops are reported when their chunk of
        inputs is done."""

    def queue_pop(self, queue: str, count: int) -> None:
        """Called when `count` entries were freed, by the host, by a program's pointer settings or by
        global_rdptr_autoinc."""


EVENTS: Final = tuple(name for name, member in vars(Listener).items() if isinstance(member, FunctionType))
"""The names of the events."""


def _require_object(listener: object) -> None:
    """Raise HostError for a class in place of its object, and for an object without the methods of the events."""
    if isinstance(listener, type):
        raise HostError(f"listener {listener.__name__} is a class: give an object of it, {listener.__name__}()")
    missing = [name for name in EVENTS if not callable(getattr(listener, name, None))]
    if missing:
        raise HostError(f"{listener!r} is no listener, it has no method {missing[0]}: derive a class from Listener")


def require_events(listener: object) -> None:
    """Raise HostError for an object that is no listener: one that lacks an event, such as a class or a function, and
    one with a public method that is no event, which is most likely a misspelt one. Helper methods begin with an
    underscore; base classes that do not derive from Listener are not checked."""
    _require_object(listener)
    for kind in type(listener).__mro__:
        if kind is Listener or not issubclass(kind, Listener):
            continue
        for name, member in vars(kind).items():
            if isinstance(member, FunctionType) and not name.startswith("_") and name not in EVENTS:
                hint = near(name, EVENTS) or f"events: {', '.join(EVENTS)}"
                raise HostError(
                    f"listener {kind.__name__}: no event calls its method {name} ({hint}; the name of a helper begins "
                    "with an underscore)"
                )


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
        """The place in the program where it happened; None between programs."""
        return self.moment() if self.moment is not None else None


@dataclass(slots=True)
class QueueTraffic:
    """The last push and the last pop of one queue."""

    pushed: Traffic | None = None
    popped: Traffic | None = None

    def copy(self) -> "QueueTraffic":
        """Return a copy, which later traffic does not change."""
        return QueueTraffic(self.pushed, self.popped)


class Journal:
    """The traffic of one machine's queues. `find` returns a function that finds the place of the running instruction
    later."""

    __slots__ = ("_entries", "_moment", "executed", "find")

    def __init__(self) -> None:
        self.find: Callable[[], Callable[[], Place] | None] = lambda: None
        self._moment: Callable[[], Place] | None = None
        self.executed: dict[str, int] = {}  # graph -> how often it was run to its end
        self._entries: dict[str, QueueTraffic] = {}

    def of(self, queue: str) -> QueueTraffic:
        """Return the traffic of a queue, as it goes on being updated; without push and pop for a queue that nothing
        touched."""
        entry = self._entries.get(queue)
        if entry is None:
            entry = self._entries.setdefault(queue, QueueTraffic())
        return entry

    def state(self) -> tuple[dict[str, QueueTraffic], dict[str, int]]:
        """Return copies of everything recorded: traffic by queue, and how often each graph ran."""
        return {name: entry.copy() for name, entry in self._entries.items()}, dict(self.executed)

    def replace(self, entries: Mapping[str, QueueTraffic], executed: Mapping[str, int]) -> None:
        """Replace everything recorded by these entries."""
        self._entries = dict(entries)
        self.executed = dict(executed)

    def next_instruction(self) -> None:
        """Record that another instruction begins; its place is looked up only if a push or pop happens in it."""
        self._moment = None

    def _place_finder(self, by: str) -> Callable[[], Place] | None:
        """Return a function that finds the place of the running instruction, for traffic by `by`; None for traffic of
        the host."""
        if by is HOST:
            return None
        if self._moment is None:
            self._moment = self.find()
        return self._moment

    def push(self, queue: str, by: str, slot: int, count: int = 1) -> None:
        """Record that `by` (an op or HOST) wrote `count` entries of a queue, the last of them in `slot`."""
        entry = self.of(queue)
        before = 0
        if entry.pushed is not None:
            before = entry.pushed.total
        entry.pushed = Traffic(by, slot, self._place_finder(by), before + count)

    def pop(self, queue: str, by: str, count: int) -> None:
        """Record that `by` (HOST or SETTINGS) freed `count` entries of a queue."""
        entry = self.of(queue)
        before = 0
        if entry.popped is not None:
            before = entry.popped.total
        entry.popped = Traffic(by, -1, self._place_finder(by), before + count)
