"""The result of modelling an epoch: its ops, channels, links and transfers, and the time of every task."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from buda_emu.performance.timeline import Schedule, Timing

INPUT_BUFFERS: Final = 2  # parts of an input that a core holds
HOST_LINK: Final = "host link"
"""The unit that moves data between chips and the host."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Cycles that an op takes for one input on each of its cores, and those of them in which the math unit works.

    `threads` are lower bounds for the unpack, math and pack threads. `errors` has the parts of the cycles by the family
    whose error they share (`timing.uncertainty`).
    """

    cycles: float
    math: float
    provenance: str
    threads: tuple[float, ...] = (0.0, 0.0, 0.0)
    errors: tuple[tuple[str, float], ...] = ()

    def with_cycles(self, cycles: float) -> "Cost":
        """Return the cost with `cycles`, those that the timing gives an input, which it works in parts of whole cycles;
        `errors` are scaled alike. All totals that are shown have these, so that no op takes longer than the pace that
        it sets."""
        if cycles == self.cycles:
            return self
        scale = cycles / self.cycles if self.cycles else 1.0
        errors = tuple((family, share * scale) for family, share in self.errors)
        return replace(self, cycles=cycles, errors=errors)


@dataclass(frozen=True, slots=True)
class OpTiming:
    """Times of one op over the modelled inputs, in cycles. Waiting times are gaps between the first and the last part
    of its unit."""

    op: str
    cost: Cost
    parts: int
    first_start: int  # first unpack of input 0
    first_end: int  # last pack of input 0
    last_start: int
    last_end: int  # last pack of the last modelled input
    active: int
    waiting_for_input: int
    waiting_for_room: int


@dataclass(frozen=True, slots=True)
class Busy:
    """A unit of the epoch, and the cycles that it works for each input."""

    name: str
    cycles: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedUnits:
    """The units that ops of an epoch share: memory channels, transfers, and links, the busiest first. Links are those
    of the NoCs, ports, and Ethernet between chips."""

    memory: tuple[Busy, ...]
    transfers: tuple[Busy, ...]
    links: tuple[Busy, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelledRun:
    """The first inputs of an epoch as tasks with their times; later inputs are extrapolated."""

    inputs: int
    input_buffers: int  # parts of an input that a core holds; more than INPUT_BUFFERS where fewer would stall the model
    last_task: int  # whose end is that of the modelled inputs
    steady_from: int  # from here on the modelled inputs are as the extrapolated ones
    rooms: tuple[int, ...]  # objects that count free parts of buffers
    timing: Timing = field(compare=False)
    schedule: Schedule = field(compare=False)
    ways: tuple[range, ...] = field(repr=False, compare=False)  # of each flow its tasks, in or out of a core


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochTiming:
    """Times of one temporal graph. `cycles_per_input` leaves the first input out, as the vendor's reports do (PERF
    3)."""

    graphs: tuple[str, ...]
    inputs: int
    cycles_per_input: float | None  # None: there is a single input
    first_input: int  # when the first one is packed
    last_pack: float  # of the last input: where the vendor's reports end (PERF 3)
    total: float  # until all of it is written
    ops: tuple[OpTiming, ...]
    shared: SharedUnits
    run: ModelledRun
    again: Callable[[int], "EpochTiming"] = field(repr=False, compare=False)  # with so many inputs modelled

    @property
    def pace(self) -> float:
        """Return the cycles from one input to the next, or those of the only input."""
        if self.cycles_per_input is not None:
            return self.cycles_per_input
        return float(self.first_input)

    def busy(self) -> list[tuple[str, Busy]]:
        """Return (kind, unit with the cycles that it works for one input) of all ops, memory channels, the three
        busiest links and the transfers. Kinds are "op", "memory", "link" and "transfer"."""
        units = [("op", Busy(unit.op, unit.active / self.run.inputs)) for unit in self.ops]
        units += [("memory", unit) for unit in self.shared.memory]
        units += [("link", unit) for unit in self.shared.links[:3]]
        return units + [("transfer", unit) for unit in self.shared.transfers]
