"""What is known of an epoch that was modelled: its ops, channels, links and transfers, and when everything happened."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from buda_emu.performance.timeline import Schedule, Timing

INPUT_BUFFERS: Final = 2  # parts of an input that a core holds


@dataclass(frozen=True, slots=True)
class Cost:
    """What an op takes for one input on each of its cores, in cycles; `math` of them its math unit works.

    `threads`: how long unpack, math and pack work at least.
    """

    cycles: float
    math: float
    provenance: str
    threads: tuple[float, ...] = (0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class OpTiming:
    """One op over the modelled inputs, in cycles. Waits are of its unit, between its first and its last part."""

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
    """A unit other than an op: cycles that it works for each input."""

    name: str
    cycles: float


@dataclass(frozen=True, slots=True)
class EpochTiming:
    """One temporal graph. `cycles_per_input` leaves the first input out, as the vendor's reports do (PERF 3)."""

    graphs: tuple[str, ...]
    inputs: int
    modelled: int
    cycles_per_input: float | None  # None: there is a single input
    first_input: int  # when the first one is packed
    last_pack: float  # of the last input: where the vendor's reports end (PERF 3)
    total: float  # until all of it is written
    ops: tuple[OpTiming, ...]
    memory: tuple[Busy, ...]  # channels
    transfers: tuple[Busy, ...]
    links: tuple[Busy, ...]  # of the NoCs, ports, and Ethernet between chips, the busiest first
    input_buffers: int  # parts of an input that a core holds; more than INPUT_BUFFERS where fewer would stall the model
    last_task: int  # whose end is that of the modelled inputs
    steady_from: int  # from here on the modelled inputs are as the extrapolated ones
    rooms: tuple[int, ...]  # objects that count free parts of buffers
    timing: Timing = field(compare=False)
    schedule: Schedule = field(compare=False)
    ways: tuple[range, ...] = field(repr=False, compare=False)  # of each flow its tasks, in or out of a core
    again: Callable[[int], "EpochTiming"] = field(repr=False, compare=False)  # with so many inputs modelled

    @property
    def pace(self) -> float:
        """Cycles for each input: from one to the next, or of the only one."""
        return self.cycles_per_input if self.cycles_per_input is not None else float(self.first_input)

    def busy(self) -> list[tuple[str, Busy]]:
        """Ops, memory channels, the busiest NoC links and transfers: kind, and cycles that each works for an input."""
        found = [("op", Busy(item.op, item.active / self.modelled)) for item in self.ops]
        found += [("memory", item) for item in self.memory]
        found += [("link", item) for item in self.links[:3]]
        return found + [("transfer", item) for item in self.transfers]
