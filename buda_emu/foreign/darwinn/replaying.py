"""The replay of requests on one device: the driver's parameter cache, tasks on units of the timeline, the bytes that
they touch, and the result.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from buda_emu.foreign.darwinn.assumptions import SRAM_BYTES, Assumptions, assume
from buda_emu.foreign.darwinn.dma import GLOBAL_FENCE, LOCAL_FENCE, TO_HOST, Descriptor, descriptors
from buda_emu.foreign.darwinn.idl import PAGE, Executable
from buda_emu.foreign.darwinn.model import Package
from buda_emu.performance.timeline import (
    Access,
    Hazard,
    Schedule,
    Timing,
    Wait,
    happens_before,
    order_conflicts,
    unwritten_reads,
)
from buda_emu.support.checker.text import short_line
from buda_emu.support.errors import HostError, PackageError, UnsupportedError


class Decision(NamedTuple):
    """What the driver does for a request: forget packages, then cache the request's own or not."""

    evicted: tuple[int, ...]
    caches: bool
    token: int
    cached: tuple[int, ...]


class ParameterCache:
    """The state of one device. The driver knows no capacity: that is the compiler's care."""

    def __init__(self, packages: Sequence[Package]) -> None:
        self._packages = packages
        self.token = 0
        self.cached: dict[int, None] = {}  # numbers of packages, in the order of caching

    def request(self, number: int) -> Decision:
        """A request of a package. Raises PackageError where the driver fails it."""
        package = self._packages[number]
        token = package.main.parameter_caching_token
        evicted: tuple[int, ...] = ()
        if not token or token != self.token:
            evicted = tuple(self.cached)
            self.token = 0
            self.cached.clear()
        caching = package.caching
        caches = caching is not None and number not in self.cached
        if caching is not None and not caching.parameter_caching_token:
            raise PackageError(
                f"package {number}: the caching executable's token is 0, so that every request fails (D030)"
            )
        if caching is not None and caches:
            self.token = caching.parameter_caching_token
            self.cached[number] = None
        return Decision(evicted, caches, self.token, tuple(self.cached))

    @property
    def resident_bytes(self) -> int:
        """Parameters of all cached packages."""
        executables = (self._packages[number].caching for number in self.cached)
        return sum(item.parameter_bytes for item in executables if item is not None)


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


_WRITES = ("output", "scratch_out")
Written = tuple[str, int, int]


def accesses_of(
    steps: Sequence[Step], events: Sequence[tuple[int, int, str]], packages: Sequence[Package]
) -> tuple[list[Access], list[Written]]:
    """Accesses of every step, and what is written before the first: inputs, up to the end of their last page.

    `events`: request, package and kind of each executable run.
    """
    found: list[Access] = []
    written: set[Written] = set()
    for step in steps:
        request, number, kind = events[step.event]
        package = packages[number]
        item = step.descriptor
        if item is None:
            if kind == "inference" and package.caching is not None and package.caching.parameter_bytes:
                found.append(
                    Access(
                        task=step.task,
                        space=_parameters(number),
                        address=0,
                        size=package.caching.parameter_bytes,
                        writes=False,
                    )
                )
            continue
        if item.size <= 0:
            continue
        space = _space(item.kind, item.name, request, number, kind, item.batch)
        if space is None:
            continue
        if item.kind == "input":
            written.add((space, 0, -(-(item.offset + item.size) // PAGE) * PAGE))
        writes = item.kind in _WRITES or item.kind == "parameters"
        found.append(Access(task=step.task, space=space, address=item.offset, size=item.size, writes=writes))
    return found, sorted(written)


def _parameters(package: int) -> str:
    return f"{ON_DEVICE}package {package} on the device"


def _space(
    kind: str, name: str | int | None, request: int, package: int, executable: str, batch: int | None
) -> str | None:
    """Where a DMA's bytes lie; None for what nothing else touches: instructions, streamed parameters."""
    if kind in ("input", "output"):
        return f"{kind} {name!r} of request {request}, batch {batch}"
    if kind in ("scratch_in", "scratch_out"):
        return f"scratch of package {package}, {executable}"
    if kind == "parameters" and executable == "caching":
        return _parameters(package)
    return None


def residence(events: Sequence[Event], evictions: Sequence[Eviction], makespan: int) -> Iterator[tuple[int, int, int]]:
    """From when to when each package's parameters are cached: package, start, end."""
    gone = {item.request: item.packages for item in evictions}
    since: dict[int, int] = {}
    for request, number, kind, start, _end in events:
        for other in gone.pop(request, ()):
            yield other, since.pop(other), start
        if kind == "caching":
            since[number] = start
    for number, start in since.items():
        yield number, start, makespan


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
        name = "" if item.name is None else f" {short_line(str(item.name))}"
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


_MOST_TASKS: Final = 5_000_000


def replay(
    packages: Sequence[Package],
    requests: Sequence[int],
    *,
    transport: str = "usb",
    overlap: bool = True,
    link: "str | int | None" = None,
    frequency_hz: "str | int | None" = None,
    sram_bytes: int = SRAM_BYTES,
) -> Replay:
    """What the driver does for requests, each the number of a package, and how long that takes under assumptions.

    `transport`: usb or pcie; `overlap`: the next request's DMAs may begin while one runs. Assumed, and named in every
    report: `link`, usb2, usb3, pcie or bytes per second, None for no time; `frequency_hz`, a performance setting (low,
    medium, high, max) or hertz, None for unknown compute; `sram_bytes`, beyond which resident parameters are warned of.

    The same package twice is two packages only where it was loaded twice. Raises HostError for unknown requests or
    assumptions, PackageError where the driver fails a request or aborts.
    """
    assumptions = assume(transport, overlap, link, frequency_hz, sram_bytes)
    for number in requests:
        if not 0 <= number < len(packages):
            raise HostError(f"request of package {number}: there are {len(packages)}, counted from 0")
    cache = ParameterCache(packages)
    known: dict[int, list[Descriptor]] = {}
    tasks = Tasks(assumptions)
    moved = dict.fromkeys(BYTE_KINDS, 0)
    events: list[tuple[int, int, str]] = []
    placed_steps: list[tuple[int, int, Descriptor | None, int | None]] = []
    ends: list[int] = []
    spans: list[tuple[int, int]] = []
    evictions: list[Eviction] = []
    tokens: list[int] = []
    resident: list[int] = []
    unknown = 0
    for request, number in enumerate(requests):
        package = packages[number]
        decision = cache.request(number)
        if decision.evicted:
            evictions.append(Eviction(request, decision.evicted))
        tokens.append(decision.token)
        resident.append(cache.resident_bytes)
        runs = [("caching", package.caching)] if decision.caches else []
        for kind, executable in (*runs, ("inference", package.main)):
            if executable is None:
                continue
            steps = _steps(executable, known, assumptions, request, number)
            if len(tasks.schedule) + len(steps) > _MOST_TASKS:
                raise HostError(f"the requests take more than {_MOST_TASKS:,} steps: replay fewer")
            _count(moved, steps, kind, assumptions)
            placed = tasks.add(f"request {request} {kind}", steps, executable.cycles)
            unknown += placed.compute_ns is None
            for task, item in placed.steps:
                ns = placed.compute_ns if item is None else assumptions.transfer_ns(item.size, item.kind not in TO_HOST)
                placed_steps.append((task, len(events), item, ns))
            spans.append((placed.steps[0][0], placed.done))
            events.append((request, number, kind))
            if kind == "inference":
                ends.append(placed.done)
    timing = tasks.schedule.run()
    listed = tuple(Step(*item) for item in placed_steps)
    accesses, written = accesses_of(listed, events, packages)
    start = timing.start.tolist()
    end = timing.end.tolist()
    return Replay(
        assumptions=assumptions,
        packages=tuple(package.name for package in packages),
        cached_bytes=tuple(package.caching.parameter_bytes if package.caching else 0 for package in packages),
        requests=tuple(requests),
        events=tuple(
            Event(*event, start[first], end[last]) for event, (first, last) in zip(events, spans, strict=True)
        ),
        evictions=tuple(evictions),
        tokens=tuple(tokens),
        resident=tuple(resident),
        bytes=moved,
        request_end=tuple(end[task] for task in ends),
        unknown_compute=unknown,
        warnings=tuple(_warnings(assumptions, resident)),
        steps=listed,
        schedule=tasks.schedule,
        timing=timing,
        accesses=tuple(accesses),
        written=tuple(written),
    )


def _steps(
    executable: Executable, known: dict[int, list[Descriptor]], assumptions: Assumptions, request: int, package: int
) -> list[Descriptor]:
    """The DMAs of an executable, if the driver gets that far."""
    found = known.get(id(executable))
    if found is None:
        where = f"request {request} of package {package}"
        if not executable.chunks:
            raise PackageError(f"{where} fails: there are no chunks of instructions (D032)")
        if not all(chunk.bitstream for chunk in executable.chunks):
            raise PackageError(f"{where} fails: a chunk of instructions is empty (D033)")
        found = known[id(executable)] = descriptors(executable, assumptions.transport, assumptions.overlap)
        wrong = next((item for item in found if item.size < 0 or item.offset < 0), None)
        if wrong is not None:
            raise PackageError(f"{where}: {wrong.size} bytes at {wrong.offset} cannot be moved (D053, D054)")
    return found


def _count(moved: dict[str, int], steps: list[Descriptor], kind: str, assumptions: Assumptions) -> None:
    """Add the bytes of an executable's DMAs."""
    for item in steps:
        if not item.moves:
            continue
        what = item.kind
        if what == "parameters":
            what = "parameters_cached" if kind == "caching" else "parameters_streamed"
        moved[what] += item.size
        if assumptions.link is not None and item.kind not in TO_HOST:
            moved["headers"] += assumptions.link.header


def _warnings(assumptions: Assumptions, resident: Sequence[int]) -> list[str]:
    found: list[str] = []
    most = max(resident, default=0)
    if most > assumptions.sram_bytes:
        request = resident.index(most)
        found.append(
            f"request {request}: {most:,} bytes of parameters are resident, more than the assumed "
            f"{assumptions.sram_bytes:,} bytes of SRAM"
        )
    if assumptions.transport == "pcie":
        found.append("over PCIe the device itself fetches data: only the instructions are seen here")
    return found
