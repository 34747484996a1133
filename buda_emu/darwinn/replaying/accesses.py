"""The bytes that a replay's tasks touch: the host's buffers and scratch, and the parameters on the device.

Where parameters and activations lie on the device is not public: each package's cached parameters are a space of their
own, and what instructions do in between is not guessed at.
"""

from collections.abc import Iterator, Sequence

from buda_emu.darwinn.idl import PAGE
from buda_emu.darwinn.model import Package
from buda_emu.darwinn.replaying.result import ON_DEVICE, Event, Eviction, Step
from buda_emu.timeline import Access

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
                found.append(Access(step.task, _parameters(number), 0, package.caching.parameter_bytes, False))
            continue
        if item.size <= 0:
            continue
        space = _space(item.kind, item.name, request, number, kind, item.batch)
        if space is None:
            continue
        if item.kind == "input":
            written.add((space, 0, -(-(item.offset + item.size) // PAGE) * PAGE))
        writes = item.kind in _WRITES or item.kind == "parameters"
        found.append(Access(step.task, space, item.offset, item.size, writes))
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
