"""A replay as a picture of lanes, for the page and the trace of a timeline."""

from collections.abc import Iterator

from buda_emu.foreign.darwinn.replaying import Replay, residence
from buda_emu.performance.timeline import Live
from buda_emu.performance.timeline.picture import Detail, Memory, TimelinePicture, picture
from buda_emu.support.checker.text import plural

_NOT_PUBLIC = (
    "Events, DMAs, their order and their bytes are what the driver does with these packages. Times are a model under "
    "the assumptions named here, never measured; what instructions do, and where parameters lie, is not public."
)


def replay_picture(replay: Replay) -> TimelinePicture:
    """Draw the lanes of both directions of the link and of the TPU, and a memory lane with the cached parameters of
    each package, whose addresses are made up, as the real ones are not public. Times are in ns."""
    kinds: dict[int, str] = {}
    details: dict[int, dict[str, Detail]] = {}
    for step in replay.timeline.steps:
        event = replay.events[step.event]
        dma = step.descriptor
        kinds[step.task] = f"{event.kind}: {'compute' if dma is None else dma.kind}"
        details[step.task] = {
            "request": event.request,
            "package": replay.packages[event.package],
            "bytes": 0 if dma is None else dma.size,
            "ns": "unknown" if step.ns is None else step.ns,
        }
    unknown = replay.unknown_compute
    notes = [_NOT_PUBLIC, "Assumed: " + "; ".join(replay.assumptions.lines()) + ".", *replay.warnings]
    if unknown:
        notes.append(f"The computing time of {unknown} executable runs is unknown and drawn as 0.")
    about = {"requests": len(replay.requests), "packages": ", ".join(replay.packages)}
    return picture(
        replay.timeline.schedule,
        replay.timeline.timing,
        f"Replay of {plural(len(replay.requests), 'request')}",
        category=lambda task: kinds.get(task, "done"),
        details=lambda task: details.get(task, {}),
        memories=[Memory("cached parameters (places are the drawing's)", tuple(_lives(replay)))],
        time_unit="ns",
        per_microsecond=1000.0,
        notes=notes,
        about=about,
    )


def _lives(replay: Replay) -> Iterator[Live]:
    """Yield the range of bytes and the time that each package's cached parameters take up. Ranges are stacked in
    the order of caching, as the real addresses are not public."""
    stack: list[tuple[int, int, int]] = []  # end of the time, first byte, last byte
    spans = residence(replay.events, replay.evictions, replay.timeline.timing.makespan)
    for number, start, end in sorted(spans, key=lambda span: span[1]):
        size = replay.cached_bytes[number]
        address = max((high for until, _, high in stack if until > start), default=0)
        stack.append((end, address, address + size))
        yield Live(space="parameters", address=address, size=size, start=start, end=end, name=replay.packages[number])
