"""The result of a replay."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from buda_emu.darwinn.assumptions import Assumptions
from buda_emu.darwinn.dma import Descriptor
from buda_emu.errors import UnsupportedError
from buda_emu.timeline import Access, Hazard, Schedule, Timing, happens_before, order_conflicts, unwritten_reads

ON_DEVICE = "parameters of "
"""How the memory spaces of cached parameters begin."""
MOST_CHECKED = 50_000
"""Tasks whose accesses are checked: the order of all of them takes memory by the square of their number."""
BYTE_KINDS: tuple[str, ...] = (
    "instructions", "input", "output", "parameters_cached", "parameters_streamed", "scratch_in", "scratch_out",
    "headers",
)  # fmt: skip


class Event(NamedTuple):
    """An executable that ran for a request: `caching` or `inference`. Times in ns."""

    request: int
    package: int
    kind: str
    start: int = 0
    end: int = 0


class Eviction(NamedTuple):
    """Packages whose parameters a request made the driver forget."""

    request: int
    packages: tuple[int, ...]


class Step(NamedTuple):
    """A task of the timeline: a DMA, or the computation of an executable (descriptor None). `ns`: None is unknown."""

    task: int
    event: int
    descriptor: Descriptor | None
    ns: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """Requests on one device: known from the packages are events, DMAs, their order and bytes; times are a model's."""

    assumptions: Assumptions
    packages: tuple[str, ...]
    cached_bytes: tuple[int, ...]
    """What each package caches: the parameters of its caching executable."""
    requests: tuple[int, ...]
    events: tuple[Event, ...]
    evictions: tuple[Eviction, ...]
    tokens: tuple[int, ...]
    """The cache's token after each request."""
    resident: tuple[int, ...]
    """Cached bytes when each request's inference starts."""
    bytes: dict[str, int]
    """By kind (BYTE_KINDS). Over PCIe only instructions are listed by the driver: the device fetches the rest."""
    request_end: tuple[int, ...]
    """When each request's main executable is done, in ns."""
    unknown_compute: int
    """Executables run whose computing time is not known; they count as 0."""
    warnings: tuple[str, ...]
    steps: tuple[Step, ...]
    schedule: Schedule
    timing: Timing
    accesses: tuple[Access, ...]
    written: tuple[tuple[str, int, int], ...]
    """Space, address and size of what holds data from the start."""

    def hazards(self) -> list[Hazard]:
        """Transfers that touch common bytes of the host in no order, whatever they take, and reads of bytes that nobody
        wrote: of the host's buffers, and of parameters that are not cached. In which order the device itself goes about
        its parameters is not public: no race is seen there.

        Raises UnsupportedError beyond MOST_CHECKED tasks."""
        if len(self.schedule) > MOST_CHECKED:
            raise UnsupportedError(f"the memory accesses of more than {MOST_CHECKED:,} tasks are not checked")
        sequence = np.lexsort((np.arange(len(self.timing.start)), self.timing.start))
        on_host = [item for item in self.accesses if not item.space.startswith(ON_DEVICE)]
        races = order_conflicts(happens_before(self.schedule), on_host)
        return races + unwritten_reads(self.accesses, sequence, self.written)

    @property
    def resets(self) -> tuple[int, ...]:
        """Requests that found a cache not empty and emptied it."""
        return tuple(item.request for item in self.evictions)
