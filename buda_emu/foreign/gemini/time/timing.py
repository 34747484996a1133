"""The timeline that `simulate` returns, the rates and durations behind it, and the routes over the NoC."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, floor, isfinite
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from buda_emu.foreign.gemini.model import IR, Workload
from buda_emu.foreign.gemini.time.plan import Send, TransferKind
from buda_emu.support.errors import HostError, ProgramError

if TYPE_CHECKING:
    from buda_emu.foreign.gemini.index import Index
    from buda_emu.foreign.gemini.time.plan import Plan, Step
    from buda_emu.performance.timeline import Schedule, Timing


WaitKind = Literal["load", "weight", "producer", "room"]
WAIT_KINDS: tuple[WaitKind, ...] = ("load", "weight", "producer", "room")


class Span(NamedTuple):
    """The cycles from `start` up to, not including, `end`."""

    start: int
    end: int


class DramSpan(NamedTuple):
    """A transfer of the DRAM queue. `transfer_id` and `core` are -1 where an assembler file does not give them."""

    kind: TransferKind
    transfer_id: int
    bytes: int
    core: int
    start: int
    end: int


class NocSpan(NamedTuple):
    """A piece on its way from one core to others."""

    transfer_id: int
    core: int
    cores: tuple[int, ...]
    bytes: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """Times of one run in cycles. `workloads` is by core and workload_id, `dram` in queue order, `links` gives the
    bytes on directed links.

    `instructions` are those of an assembler file. `schedule` and `timing` are the tasks and their times, for reports;
    `kinds` gives, for each counted object, the kind of wait that it causes.
    """

    total: int
    workloads: Mapping[tuple[int, int], Span]
    dram: Sequence[DramSpan]
    noc: Sequence[NocSpan]
    links: "Mapping[Link, int]"
    instructions: Sequence[Span]
    mode: Literal["schedule", "assembler"]
    rates: "Rates"
    schedule: "Schedule" = field(repr=False)
    timing: "Timing" = field(repr=False)
    kinds: tuple[WaitKind, ...] = field(repr=False, default=())
    tasks_of: "Mapping[Step, tuple[int, ...]]" = field(repr=False, default_factory=dict["Step", tuple[int, ...]])
    item_tasks: tuple[int, ...] = field(repr=False, default=())
    send_tasks: tuple[int, ...] = field(repr=False, default=())
    index: "Index | None" = field(repr=False, default=None)
    plan: "Plan | None" = field(repr=False, default=None)


FITTED_GIBPS: Final = 16.0
FITTED_GHZ: Final = 1.0
"""Bandwidth and clock at which the cycles of all transfers of the reference traces come out exactly; at others they are
a model."""
TILE: Final = 20  # cycles around the work of each tile
LOAD: Final = 20  # cycles beside those of the bytes of a load (GEMINI 5)
STORE: Final = 30  # likewise beside those of a store
FIRST_WEIGHT: Final = 89  # more for the first weight straight to the store; seen in assembler files only
CONFIGURE: Final = 21  # cycles of a configuration (GEMINI 5)
CONTROL: Final = 35  # 30 to 39 in the traces
_KNEE = 8000  # cycles of a transfer from which on it gets slower
_SLOPE = 5300  # cycles beyond these that take one more
_MOST = 1e15  # cycles, and largest rate: below 2^53, so that float64 holds whole cycles exactly


@dataclass(frozen=True, slots=True)
class Rates:
    """Bandwidth of DRAM in GiB/s, clock of the chip in GHz, and bytes per cycle of a NoC link."""

    dram_gibps: float = FITTED_GIBPS
    freq_ghz: float = FITTED_GHZ
    noc_bytes_per_cycle: float = 32

    def __post_init__(self) -> None:
        for name in ("dram_gibps", "freq_ghz", "noc_bytes_per_cycle"):
            value = getattr(self, name)
            if (
                isinstance(value, bool)
                or not isinstance(value, (int, float))
                or not (isfinite(value) and 0 < value < _MOST)
            ):
                raise HostError(f"{name} is a number above 0, not {value!r}")

    @property
    def dram_bytes_per_cycle(self) -> float:
        """Bytes that the one DRAM queue moves in a cycle."""
        return self.dram_gibps * 2**30 / (self.freq_ghz * 1e9)

    @property
    def fitted(self) -> bool:
        """True at the rates of the reference traces."""
        return (self.dram_gibps, self.freq_ghz) == (FITTED_GIBPS, FITTED_GHZ)

    def transfer(self, size: int, *, store: bool) -> int:
        """Return the cycles of a transfer of `size` bytes from DRAM, or to it with `store`. Raises ProgramError for
        an absurd size."""
        x = size / self.dram_bytes_per_cycle
        if x > _MOST:
            raise ProgramError(f"a transfer of {size} bytes takes more than {_MOST:.0e} cycles", kind="limit")
        return (STORE if store else LOAD) + ceil(x + max(0.0, (x - _KNEE) / _SLOPE))

    def hop(self, hops: int, size: int) -> int:
        """Return the cycles that a piece of `size` bytes takes over `hops` links of the NoC. Raises ProgramError
        for an absurd size."""
        x = size / self.noc_bytes_per_cycle
        if x > _MOST:
            raise ProgramError(f"a piece of {size} bytes takes more than {_MOST:.0e} cycles", kind="limit")
        return hops + ceil(x)


def tile_cycles(work: Workload) -> int:
    """Return the cycles of each tile of a workload: its share of the workload's time, and a constant around it
    (dialect A). Raises ProgramError for a negative or absurd time."""
    count = max(len(work.tiles), 1)
    return _require_time(work) and TILE + floor(work.time / count + 0.5)


def whole_cycles(work: Workload) -> int:
    """Return the cycles of a workload (dialect B). Raises ProgramError for a negative or absurd time."""
    return _require_time(work) and int(work.time)


def _require_time(work: Workload) -> bool:
    """Return True for a workload whose time is possible. Raises ProgramError for a negative or absurd one."""
    if not 0 <= work.time < _MOST:
        raise ProgramError(f"{work.place}/time: {work} takes {work.time} cycles")
    return True


Position: TypeAlias = tuple[int, int]
Link: TypeAlias = tuple[Position, Position]
_MOST_HOPS = 1 << 16  # of a file that gives cores absurd numbers


def count_hops(ir: IR, first: int, second: int) -> int:
    """Return the number of links between two cores."""
    (x0, y0) = ir.position(first)
    (x1, y1) = ir.position(second)
    return abs(x1 - x0) + abs(y1 - y0)


def links_between(ir: IR, first: int, second: int) -> Iterator[Link]:
    """Yield the links that a piece goes over from core `first` to core `second`, first along x, then along y.
    Raises ProgramError for cores that are absurdly far apart."""
    if count_hops(ir, first, second) > _MOST_HOPS:
        raise ProgramError(f"cores {first} and {second} are more than {_MOST_HOPS} links apart", kind="limit")
    (x, y) = ir.position(first)
    (to_x, to_y) = ir.position(second)
    while (x, y) != (to_x, to_y):
        if x != to_x:
            ahead = (x + (1 if to_x > x else -1), y)
        else:
            ahead = (x, y + (1 if to_y > y else -1))
        yield (x, y), ahead
        x, y = ahead


def link_bytes(ir: IR, sends: Sequence[Send]) -> dict[Link, int]:
    """Return the bytes on each directed link. A piece for several cores counts once on the union of its routes."""
    bytes_by_link: dict[Link, int] = {}
    for send in sends:
        for link in {link for core in send.cores for link in links_between(ir, send.step[0], core)}:
            bytes_by_link[link] = bytes_by_link.get(link, 0) + send.bytes
    return dict(sorted(bytes_by_link.items()))
