"""The replay: requests, one after the other, on one device."""

from collections.abc import Sequence
from typing import Final

from buda_emu.darwinn.assumptions import SRAM_BYTES, Assumptions, assume
from buda_emu.darwinn.dma import TO_HOST, Descriptor, descriptors
from buda_emu.darwinn.idl import Executable
from buda_emu.darwinn.model import Package
from buda_emu.darwinn.replaying.accesses import accesses_of
from buda_emu.darwinn.replaying.cache import ParameterCache
from buda_emu.darwinn.replaying.result import BYTE_KINDS, Event, Eviction, Replay, Step
from buda_emu.darwinn.replaying.tasks import Tasks
from buda_emu.errors import HostError, PackageError

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
    start, end = timing.start.tolist(), timing.end.tolist()
    return Replay(
        assumptions,
        tuple(package.name for package in packages),
        tuple(package.caching.parameter_bytes if package.caching else 0 for package in packages),
        tuple(requests),
        tuple(Event(*event, start[first], end[last]) for event, (first, last) in zip(events, spans, strict=True)),
        tuple(evictions),
        tuple(tokens),
        tuple(resident),
        moved,
        tuple(end[task] for task in ends),
        unknown,
        tuple(_warnings(assumptions, resident)),
        listed,
        tasks.schedule,
        timing,
        tuple(accesses),
        tuple(written),
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
