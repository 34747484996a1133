"""Executables as tasks on three units of the timeline (DARWINN 9)."""

from typing import NamedTuple

from buda_emu.checker.text import shown
from buda_emu.darwinn.assumptions import Assumptions
from buda_emu.darwinn.dma import GLOBAL_FENCE, LOCAL_FENCE, TO_HOST, Descriptor
from buda_emu.timeline import Schedule, Wait

UNITS = ("host to device", "device to host", "tpu")
_TO_DEVICE, _TO_HOST, _TPU = range(3)


class Placed(NamedTuple):
    """The tasks of one executable. `steps`: task and descriptor, None for computing; `done`: the last task."""

    steps: tuple[tuple[int, Descriptor | None], ...]
    compute_ns: int | None
    done: int


class Tasks:
    """Grows a schedule by one executable after the other."""

    def __init__(self, assumptions: Assumptions) -> None:
        self.schedule = Schedule()
        self._assumptions = assumptions
        self._units = [self.schedule.unit(name) for name in UNITS]
        self._fence: Wait | None = None  # the last executable after which everything waits

    def add(self, name: str, steps: list[Descriptor], cycles: int | None) -> Placed:
        """An executable with its DMAs. `name`: in labels of tasks."""
        run = _Run(self, name, self._fence)
        compute_ns = self._assumptions.compute_ns(cycles)
        moving = [number for number, item in enumerate(steps) if item.moves]
        first_output = next((number for number in moving if steps[number].kind == "output"), None)
        computes_at = first_output if first_output is not None else (moving[-1] + 1 if moving else 0)
        found: list[tuple[int, Descriptor | None]] = []
        computed: Wait | None = None
        for number, item in enumerate([*steps, None]):
            if number == computes_at:
                computed = run.compute(compute_ns or 0)
                found.append((run.last, None))
            if item is None:
                break
            if item.moves:
                ns = self._assumptions.transfer_ns(item.size, item.kind not in TO_HOST)
                run.transfer(item, ns, computed)
                found.append((run.last, item))
            elif item.kind == LOCAL_FENCE:
                run.fence()
        done = run.end()
        if any(item.kind == GLOBAL_FENCE for item in steps):
            self._fence = done
        return Placed(tuple(found), compute_ns, run.last)

    @property
    def units(self) -> list[int]:
        """Numbers of UNITS."""
        return self._units


class _Run:
    """One executable: what its tasks wait for. Units work in order, so that a count of ended tasks says which."""

    def __init__(self, tasks: Tasks, name: str, fence: Wait | None) -> None:
        self._tasks = tasks
        self._name = name
        self._always = [fence] if fence is not None else []
        self._fenced: list[Wait] = []
        self._ended = [tasks.schedule.object(f"{name}: {unit}") for unit in UNITS]
        self._counts = [0] * len(UNITS)
        self._done = tasks.schedule.object(f"{name}: done")
        self.last = -1

    def _all_before(self) -> list[Wait]:
        return [
            Wait(number, count, takes=False) for number, count in zip(self._ended, self._counts, strict=True) if count
        ]

    def _add(self, unit: int, ns: int, waits: list[Wait], what: str, signals: tuple[tuple[int, int], ...] = ()) -> None:
        schedule = self._tasks.schedule
        every = [*self._always, *self._fenced, *waits]
        given = ((self._ended[unit], 1), *signals)
        self.last = schedule.task(self._tasks.units[unit], ns, every, given, f"{self._name}: {what}")
        self._counts[unit] += 1

    def transfer(self, item: Descriptor, ns: int, computed: Wait | None) -> None:
        """A DMA; outputs wait for the computing."""
        waits = [computed] if item.kind == "output" and computed is not None else []
        name = "" if item.name is None else f" {shown(str(item.name))}"
        unit = _TO_HOST if item.kind in TO_HOST else _TO_DEVICE
        self._add(unit, ns, waits, f"{item.kind}{name}, {item.size} bytes at {item.offset}")

    def compute(self, ns: int) -> Wait:
        """The one block of computing; what waits for it."""
        self._add(_TPU, ns, self._all_before(), "compute")
        return Wait(self._ended[_TPU], self._counts[_TPU], takes=False)

    def fence(self) -> None:
        """Everything after waits for everything before."""
        self._fenced = self._all_before()

    def end(self) -> Wait:
        """The task without length that ends the executable; what waits for it."""
        self._add(_TPU, 0, self._all_before(), "done", ((self._done, 1),))
        return Wait(self._done, 1, takes=False)
