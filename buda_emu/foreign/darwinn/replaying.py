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
from buda_emu.support.checker.text import plural, short_line
from buda_emu.support.errors import HostError, PackageError, UnsupportedError


class Decision(NamedTuple):
    """The driver's decision about a request: the packages whose parameters are evicted first, and whether those of the
    request's own package are then loaded into the cache. `token` and `cached` are the state of the cache after it."""

    evicted: tuple[int, ...]
    caches: bool
    token: int
    cached: tuple[int, ...]


class ParameterCache:
    """The parameter cache of one device. The driver does not know its capacity: the compiler keeps within it."""

    def __init__(self, packages: Sequence[Package]) -> None:
        self._packages = packages
        self.token = 0
        self.cached: dict[int, None] = {}  # numbers of packages, in the order of caching

    def request(self, number: int) -> Decision:
        """Update the cache for a request of a package and return the driver's decision. Raises PackageError where the
        driver fails the request (D030)."""
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
        """The bytes of the parameters of all cached packages."""
        executables = (self._packages[number].caching for number in self.cached)
        return sum(executable.parameter_bytes for executable in executables if executable is not None)


ON_DEVICE = "parameters of "
"""Prefix of the names of memory spaces that hold cached parameters."""
MOST_CHECKED = 50_000
"""Most tasks whose accesses are checked: the order of all tasks takes memory that grows with the square of their
number."""
BYTE_KINDS: tuple[str, ...] = (
    "instructions", "input", "output", "parameters_cached", "parameters_streamed", "scratch_in", "scratch_out",
    "headers",
)  # fmt: skip


class Event(NamedTuple):
    """An executable that ran for a request: `kind` is "caching" or "inference". Times are in ns."""

    request: int
    package: int
    kind: str
    start: int = 0
    end: int = 0


class Eviction(NamedTuple):
    """The packages whose parameters the driver evicted for a request."""

    request: int
    packages: tuple[int, ...]


class ReplayedTask(NamedTuple):
    """A task of the timeline: a DMA, or the computation of an executable (descriptor None). `ns` is None where
    unknown."""

    task: int
    event: int
    descriptor: Descriptor | None
    ns: int | None


class RequestOutcome(NamedTuple):
    """The state of the device around one request: the cache's token after it, the cached bytes when its inference
    starts, and the time in ns at which its main executable ends."""

    token: int
    resident: int
    end: int


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ReplayTimeline:
    """The tasks of a replay with their times, and the memory that they touch."""

    steps: tuple[ReplayedTask, ...]
    schedule: Schedule
    timing: Timing
    accesses: tuple[Access, ...]
    written: tuple[tuple[str, int, int], ...]
    """Space, address and size of each range that holds data from the start."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Replay:
    """Requests replayed on one device. Events and DMAs, with their order and bytes, follow from the packages; times
    come from a model."""

    assumptions: Assumptions
    packages: tuple[str, ...]
    cached_bytes: tuple[int, ...]
    """Bytes of the parameters of each package's caching executable, 0 where there is none."""
    requests: tuple[int, ...]
    outcomes: tuple[RequestOutcome, ...]
    """The outcome of each request."""
    events: tuple[Event, ...]
    evictions: tuple[Eviction, ...]
    bytes: dict[str, int]
    """Bytes by kind (BYTE_KINDS). Over PCIe the driver lists only instructions: the device fetches all else."""
    unknown_compute: int
    """Number of executable runs whose computing time is not known; they take 0."""
    warnings: tuple[str, ...]
    timeline: ReplayTimeline

    def hazards(self) -> list[Hazard]:
        """Find transfers that touch the same bytes of the host in no fixed order, and reads of bytes that were never
        written: in buffers of the host, and of parameters that were not cached before. The order in which the device
        uses its own parameters is not public, so that races there are not searched for.

        Raises UnsupportedError beyond MOST_CHECKED tasks.
        """
        timeline = self.timeline
        if len(timeline.schedule) > MOST_CHECKED:
            raise UnsupportedError(f"the memory accesses of more than {MOST_CHECKED:,} tasks are not checked")
        sequence = np.lexsort((np.arange(len(timeline.timing.start)), timeline.timing.start))
        on_host = [access for access in timeline.accesses if not access.space.startswith(ON_DEVICE)]
        races = order_conflicts(happens_before(timeline.schedule), on_host)
        return races + unwritten_reads(timeline.accesses, sequence, timeline.written)

    @property
    def resets(self) -> tuple[int, ...]:
        """Numbers of the requests that emptied a cache that was not empty."""
        return tuple(eviction.request for eviction in self.evictions)


_WRITES = ("output", "scratch_out")
WrittenRange = tuple[str, int, int]


def accesses_of(
    steps: Sequence[ReplayedTask], events: Sequence[tuple[int, int, str]], packages: Sequence[Package]
) -> tuple[list[Access], list[WrittenRange]]:
    """Return the memory accesses of every step, and the ranges that hold data before the first: the inputs, up to the
    end of their last page.

    `events` are request, package and kind of each executable run.
    """
    accesses: list[Access] = []
    written: set[WrittenRange] = set()
    for step in steps:
        request, number, kind = events[step.event]
        dma = step.descriptor
        if dma is None:
            caching = packages[number].caching
            if kind == "inference" and caching is not None and caching.parameter_bytes:
                space = _parameter_space(number)
                accesses.append(
                    Access(task=step.task, space=space, address=0, size=caching.parameter_bytes, writes=False)
                )
            continue
        space = _memory_space(dma.kind, dma.name, request, number, kind, dma.batch)
        if dma.size <= 0 or space is None:
            continue
        if dma.kind == "input":
            written.add((space, 0, -(-(dma.offset + dma.size) // PAGE) * PAGE))
        writes = dma.kind in _WRITES or dma.kind == "parameters"
        accesses.append(Access(task=step.task, space=space, address=dma.offset, size=dma.size, writes=writes))
    return accesses, sorted(written)


def _parameter_space(package: int) -> str:
    """Return the name of the memory space that holds a package's cached parameters."""
    return f"{ON_DEVICE}package {package} on the device"


def _memory_space(
    kind: str, name: str | int | None, request: int, package: int, executable: str, batch: int | None
) -> str | None:
    """Return the name of the memory that a DMA of `kind` touches; None for memory that nothing else touches:
    instructions, streamed parameters. `name` is that of its layer, `executable` the kind of run, "caching" or
    "inference"."""
    if kind in ("input", "output"):
        return f"{kind} {name!r} of request {request}, batch {batch}"
    if kind in ("scratch_in", "scratch_out"):
        return f"scratch of package {package}, {executable}"
    if kind == "parameters" and executable == "caching":
        return _parameter_space(package)
    return None


def residence(events: Sequence[Event], evictions: Sequence[Eviction], makespan: int) -> Iterator[tuple[int, int, int]]:
    """Yield package, start and end of each time in which a package's parameters are cached."""
    evicted_packages = {eviction.request: eviction.packages for eviction in evictions}
    since: dict[int, int] = {}
    for request, number, kind, start, _end in events:
        for evicted in evicted_packages.pop(request, ()):
            yield evicted, since.pop(evicted), start
        if kind == "caching":
            since[number] = start
    for number, start in since.items():
        yield number, start, makespan


UNITS = ("host to device", "device to host", "tpu")
_TO_DEVICE, _TO_HOST, _TPU = range(3)


class ExecutableTasks(NamedTuple):
    """The tasks of one executable: `steps` holds pairs of a task and its descriptor (None for the computation), `done`
    is the last task."""

    steps: tuple[tuple[int, Descriptor | None], ...]
    compute_ns: int | None
    done: int


class Tasks:
    """A schedule that grows by one executable after the other."""

    def __init__(self, assumptions: Assumptions) -> None:
        self.schedule = Schedule()
        self._assumptions = assumptions
        self._units = [self.schedule.unit(name) for name in UNITS]
        self._fence: Wait | None = None  # for the end of the last executable with a global fence

    def add(self, name: str, descriptors_of_run: list[Descriptor], cycles: int | None) -> ExecutableTasks:
        """Add an executable with its DMAs; `name` stands in the labels of its tasks.

        The computation is one task: the outputs wait for it, and it waits for all that comes before the first output.
        """
        run = _Run(self, name, self._fence)
        compute_ns = self._assumptions.compute_ns(cycles)
        computes_at = _compute_position(descriptors_of_run)
        steps: list[tuple[int, Descriptor | None]] = []
        computed: Wait | None = None
        for number, dma in enumerate([*descriptors_of_run, None]):
            if number == computes_at:
                computed = run.compute(compute_ns or 0)
                steps.append((run.last, None))
            if dma is None:
                break
            if dma.moves:
                ns = self._assumptions.transfer_ns(dma.size, dma.kind not in TO_HOST)
                run.transfer(dma, ns, computed)
                steps.append((run.last, dma))
            elif dma.kind == LOCAL_FENCE:
                run.fence()
        done = run.end()
        if any(dma.kind == GLOBAL_FENCE for dma in descriptors_of_run):
            self._fence = done
        return ExecutableTasks(tuple(steps), compute_ns, run.last)

    @property
    def units(self) -> list[int]:
        """The schedule's numbers of the UNITS."""
        return self._units


def _compute_position(dmas: Sequence[Descriptor]) -> int:
    """Return the position in a DMA list at which the device computes: before the first output, else after the last
    transfer."""
    moving = [number for number, dma in enumerate(dmas) if dma.moves]
    first_output = next((number for number in moving if dmas[number].kind == "output"), None)
    if first_output is not None:
        return first_output
    return moving[-1] + 1 if moving else 0


class _Run:
    """The waits of one executable's tasks. Each unit works in order, so that the number of its ended tasks says which
    they are."""

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
        """Return the waits for all tasks that the executable has so far, one for each unit that has any."""
        return [
            Wait(number, count, takes=False) for number, count in zip(self._ended, self._counts, strict=True) if count
        ]

    def _add_task(
        self, unit: int, ns: int, waits: list[Wait], label: str, signals: tuple[tuple[int, int], ...] = ()
    ) -> None:
        """Add a task of `ns` nanoseconds to a unit. It waits for `waits` and for the fences before it, and signals
        the unit's count and `signals`."""
        schedule = self._tasks.schedule
        every = [*self._always, *self._fenced, *waits]
        signals = ((self._ended[unit], 1), *signals)
        self.last = schedule.task(self._tasks.units[unit], ns, every, signals, f"{self._name}: {label}")
        self._counts[unit] += 1

    def transfer(self, dma: Descriptor, ns: int, computed: Wait | None) -> None:
        """Add a DMA that takes `ns` nanoseconds; an output waits for the computing."""
        waits: list[Wait] = []
        if dma.kind == "output" and computed is not None:
            waits = [computed]
        if dma.name is None:
            name = ""
        else:
            name = f" {short_line(str(dma.name))}"
        unit = _TO_HOST if dma.kind in TO_HOST else _TO_DEVICE
        self._add_task(unit, ns, waits, f"{dma.kind}{name}, {dma.size} bytes at {dma.offset}")

    def compute(self, ns: int) -> Wait:
        """Add the one task of computing and return the wait for its end."""
        self._add_task(_TPU, ns, self._all_before(), "compute")
        return Wait(self._ended[_TPU], self._counts[_TPU], takes=False)

    def fence(self) -> None:
        """Make every task that is added from now on wait for all that the executable has so far."""
        self._fenced = self._all_before()

    def end(self) -> Wait:
        """Add the task without length that ends the executable and return the wait for it."""
        self._add_task(_TPU, 0, self._all_before(), "done", ((self._done, 1),))
        return Wait(self._done, 1, takes=False)


_MOST_TASKS: Final = 5_000_000  # so that a forged package or a long list of requests does not fill memory with steps


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
    """Replay what the driver does for requests, each the number of a package, and model how long that takes.

    `transport` is usb or pcie. With `overlap`, the next request's DMAs may begin while one runs. Assumed, and named in
    every report, are `link` (usb2, usb3, pcie or bytes per second; None for no time), `frequency_hz` (a performance
    setting low, medium, high, max, or hertz; None for unknown compute) and `sram_bytes` (more resident parameters make
    a warning).

    The same package twice is two packages only where it was loaded twice. Raises HostError for unknown requests or
    assumptions, PackageError where the driver fails a request or aborts.
    """
    assumptions = assume(transport, overlap, link, frequency_hz, sram_bytes)
    for number in requests:
        if not 0 <= number < len(packages):
            raise HostError(f"request of package {number}: of {plural(len(packages), 'package')}, counted from 0")
    log = _Log(packages, assumptions)
    for request, number in enumerate(requests):
        log.add_request(request, number)
    timing = log.tasks.schedule.run()
    steps = tuple(log.steps)
    accesses, written = accesses_of(steps, log.runs, packages)
    start = timing.start.tolist()
    end = timing.end.tolist()
    events: list[Event] = []
    for run, (first, last) in zip(log.runs, log.spans, strict=True):
        events.append(Event(*run, start[first], end[last]))
    outcomes = [
        RequestOutcome(token=token, resident=resident, end=end[task])
        for token, resident, task in zip(log.tokens, log.resident, log.ends, strict=True)
    ]
    return Replay(
        assumptions=assumptions,
        packages=tuple(package.name for package in packages),
        cached_bytes=tuple(package.caching.parameter_bytes if package.caching else 0 for package in packages),
        requests=tuple(requests),
        events=tuple(events),
        outcomes=tuple(outcomes),
        evictions=tuple(log.evictions),
        bytes=log.bytes,
        unknown_compute=log.unknown_compute,
        warnings=tuple(_warnings(assumptions, log.resident)),
        timeline=ReplayTimeline(
            steps=steps,
            schedule=log.tasks.schedule,
            timing=timing,
            accesses=tuple(accesses),
            written=tuple(written),
        ),
    )


class _Log:
    """The record of a replay while requests are added: cache, tasks, bytes, and the events without their times."""

    def __init__(self, packages: Sequence[Package], assumptions: Assumptions) -> None:
        self._packages = packages
        self._assumptions = assumptions
        self._cache = ParameterCache(packages)
        self._descriptors: dict[int, list[Descriptor]] = {}  # by the id of the executable
        self.tasks = Tasks(assumptions)
        self.bytes = dict.fromkeys(BYTE_KINDS, 0)
        self.runs: list[tuple[int, int, str]] = []  # request, package and kind of each executable run
        self.spans: list[tuple[int, int]] = []  # first and last task of each executable run
        self.steps: list[ReplayedTask] = []
        self.ends: list[int] = []  # last task of each request
        self.evictions: list[Eviction] = []
        self.tokens: list[int] = []
        self.resident: list[int] = []
        self.unknown_compute = 0

    def add_request(self, request: int, number: int) -> None:
        """Add a request of a package. Raises PackageError where the driver fails it, HostError for too many steps."""
        package = self._packages[number]
        decision = self._cache.request(number)
        if decision.evicted:
            self.evictions.append(Eviction(request, decision.evicted))
        self.tokens.append(decision.token)
        self.resident.append(self._cache.resident_bytes)
        if decision.caches and package.caching is not None:
            self._add_executable(request, number, "caching", package.caching)
        self._add_executable(request, number, "inference", package.main)

    def _add_executable(self, request: int, number: int, kind: str, executable: Executable) -> None:
        """Add a run of an executable for a request of package `number`; `kind` is "caching" or "inference". Raises
        PackageError where the driver fails it, HostError for too many steps."""
        dmas = _descriptors_of(executable, self._descriptors, self._assumptions, request, number)
        if len(self.tasks.schedule) + len(dmas) > _MOST_TASKS:
            raise HostError(f"the requests take more than {_MOST_TASKS:,} steps: replay fewer")
        _count_bytes(self.bytes, dmas, kind, self._assumptions)
        tasks = self.tasks.add(f"request {request} {kind}", dmas, executable.cycles)
        self.unknown_compute += tasks.compute_ns is None
        for task, dma in tasks.steps:
            ns = tasks.compute_ns
            if dma is not None:
                ns = self._assumptions.transfer_ns(dma.size, dma.kind not in TO_HOST)
            self.steps.append(ReplayedTask(task, len(self.runs), dma, ns))
        self.spans.append((tasks.steps[0][0], tasks.done))
        self.runs.append((request, number, kind))
        if kind == "inference":
            self.ends.append(tasks.done)


def _descriptors_of(
    executable: Executable, cache: dict[int, list[Descriptor]], assumptions: Assumptions, request: int, package: int
) -> list[Descriptor]:
    """Return the DMAs of an executable, from `cache`, by the id of the executable, for one that ran before. Raises
    PackageError, with the numbers of `request` and `package`, where the driver does not get that far."""
    dmas = cache.get(id(executable))
    if dmas is None:
        run = f"request {request} of package {package}"
        if not executable.chunks:
            raise PackageError(f"{run} fails: there are no chunks of instructions (D032)")
        if not all(chunk.bitstream for chunk in executable.chunks):
            raise PackageError(f"{run} fails: a chunk of instructions is empty (D033)")
        dmas = cache[id(executable)] = descriptors(executable, assumptions.transport, assumptions.overlap)
        wrong = next((dma for dma in dmas if dma.size < 0 or dma.offset < 0), None)
        if wrong is not None:
            raise PackageError(f"{run}: {wrong.size} bytes at {wrong.offset} cannot be moved (D053, D054)")
    return dmas


def _count_bytes(total_bytes: dict[str, int], dmas: list[Descriptor], kind: str, assumptions: Assumptions) -> None:
    """Add the bytes of an executable's DMAs to the totals by kind. `kind`, "caching" or "inference", tells cached
    parameters from streamed ones."""
    for dma in dmas:
        if not dma.moves:
            continue
        byte_kind = dma.kind
        if byte_kind == "parameters":
            if kind == "caching":
                byte_kind = "parameters_cached"
            else:
                byte_kind = "parameters_streamed"
        total_bytes[byte_kind] += dma.size
        if assumptions.link is not None and dma.kind not in TO_HOST:
            total_bytes["headers"] += assumptions.link.header


def _warnings(assumptions: Assumptions, resident: Sequence[int]) -> list[str]:
    """Return warnings about more resident parameters than the assumed SRAM holds, and about data that PCIe hides.
    `resident` are bytes by request."""
    warnings: list[str] = []
    largest = max(resident, default=0)
    if largest > assumptions.sram_bytes:
        request = resident.index(largest)
        warnings.append(
            f"request {request}: {largest:,} bytes of parameters are resident, more than the assumed "
            f"{assumptions.sram_bytes:,} bytes of SRAM"
        )
    if assumptions.transport == "pcie":
        warnings.append("over PCIe the device itself fetches data: only the instructions are seen here")
    return warnings
