"""The text and the JSON that `inspect` and `run` print of a package."""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from buda_emu.foreign.darwinn.assumptions import LINKS, Assumptions
from buda_emu.foreign.darwinn.document import Report
from buda_emu.foreign.darwinn.summary import ExecutableSummary, LayerSummary, Summary
from buda_emu.report.terminal.text import percent, shape, table
from buda_emu.support.checker.text import plural, short_line
from buda_emu.support.lazy import lazy

if TYPE_CHECKING:
    from buda_emu.foreign.darwinn import replaying
    from buda_emu.foreign.darwinn.replaying import Replay
    from buda_emu.performance.timeline import Hazard
else:
    replaying = lazy("buda_emu.foreign.darwinn.replaying")  # it imports numpy, which `inspect` does without

_MOST_LAYERS = 24  # rows of a table: those of a common model fit a screen
_LONGEST_NAME = 60  # characters, so that a row fits a line


def inspect_lines(summary: Summary, report: Report) -> Iterator[str]:
    """Yield the lines of `inspect`: the findings, the main figures, a table of executables and one of layers."""
    if summary.wrapped:
        container = "in a .tflite"
    else:
        container = "bare package"
    yield f"{summary.path or 'package'}: {summary.package_bytes:,} bytes, {container} of {summary.file_bytes:,}"
    counts = Counter(diagnostic.severity for diagnostic in report.diagnostics)
    findings = ", ".join(plural(count, word) for word, count in counts.items()) or "no findings"
    yield f"check            {report.verdict} ({findings})"
    if summary.compiler_version:
        compiler = f", compiled by {summary.compiler_version!r}"
    else:
        compiler = ""
    yield f"minimum runtime  {summary.min_runtime_version}{compiler}{_chips_text(summary)}"
    if summary.wrapped:
        yield f"left on the CPU  before: {_describe_operators(summary.cpu_operators_before)}"
        yield f"                 after:  {_describe_operators(summary.cpu_operators_after)}"
    if summary.parts:
        yield f"several chips    {plural(summary.parts, 'package')} for single chips, which the driver refuses"
        return
    yield from _lines_of_bytes(summary)
    yield ""
    heads = ("executable", "chunks", "instr. bytes", "param. bytes", "est. cycles", "hints", "scratch", "token")
    yield table(heads, map(_executable_cells, summary.executables), right=(1, 2, 3, 4))
    yield ""
    heads = ("layer", "y x z", "type", "scale", "zero point", "bytes", "on device", "name")
    yield table(heads, map(_layer_cells, summary.layers[:_MOST_LAYERS]), right=(3, 4, 5, 6))
    if len(summary.layers) > _MOST_LAYERS:
        yield f"... and {len(summary.layers) - _MOST_LAYERS} more; --json lists all"


def _lines_of_bytes(summary: Summary) -> Iterator[str]:
    """Yield the lines about the bytes that parameters, an inference, and the switch to the package take."""
    streamed = f"{summary.streamed_bytes:,} streamed in every inference"
    yield f"parameters       {summary.cached_bytes:,} bytes cached, {streamed}"
    limits = ""
    if not summary.complete_dma_list:
        limits = ", as far as the DMA list goes, which is not complete"
    yield f"per inference    {summary.input_bytes:,} bytes in, {summary.output_bytes:,} bytes out{limits}"
    yield f"switch to it     {_describe_switch(summary)}"


def _executable_cells(executable: ExecutableSummary) -> tuple[str, ...]:
    """Return the cells of an executable's row in the table that `inspect` prints."""
    return (
        executable.kind,
        str(executable.chunks),
        f"{executable.instruction_bytes:,}",
        f"{executable.parameter_bytes:,}",
        "not given" if executable.cycles is None else f"{executable.cycles:,}",
        f"{executable.hints}{'' if executable.complete_dma_list else ' (incomplete)'}",
        f"{executable.scratch_bytes:,}",
        f"{executable.token:x}",
    )


def _layer_cells(layer: LayerSummary) -> tuple[str, ...]:
    """Return the cells of a layer's row in the table that `inspect` prints; a long name is cut."""
    if layer.scale is None:
        scale = "-"
    else:
        scale = f"{layer.scale:.7g}"
    if layer.zero_point is None:
        zero = "-"
    else:
        zero = str(layer.zero_point)
    name = short_line(layer.name)
    if len(name) > _LONGEST_NAME:
        name = f"{name[: _LONGEST_NAME - 3]}..."
    return (
        layer.direction,
        shape(layer.shape),
        layer.type.lower(),
        scale,
        zero,
        f"{layer.bytes:,}",
        f"{layer.padded_bytes:,}",
        name,
    )


def _chips_text(summary: Summary) -> str:
    """Return the chip ids as the end of the line about the runtime version; "" where the package names none."""
    if not summary.chips:
        return ""
    return f", chip ids {', '.join(map(str, summary.chips))}"


def _describe_operators(names: tuple[str, ...]) -> str:
    """Describe the operators that the compiler left on the CPU: each name once, with its count where that is above
    1."""
    counts = Counter(map(short_line, names))
    return ", ".join(name if count == 1 else f"{count} x {name}" for name, count in counts.items()) or "nothing"


def _describe_switch(summary: Summary) -> str:
    """Describe the cost of the first request after one of another model: the bytes that are moved besides, and the
    time that takes over USB 3 and USB 2."""
    if not summary.switch_bytes:
        return "costs nothing: no parameters are cached"
    times = ", ".join(
        f"{Assumptions(link=LINKS[name]).transfer_ns(summary.switch_bytes, True) / 1e6:.2f} ms" + f" over {name}"
        for name in ("usb3", "usb2")
    )
    return f"moves {summary.switch_bytes:,} bytes, at the links' public rates {times}"


_MOST_REQUESTS = 40  # lines of requests; the JSON has all
_MOST_HAZARDS = 5  # more would hide the rest of the report


def replay_lines(replay: "Replay") -> Iterator[str]:
    """Yield the lines of `run`: assumptions, a table of requests, bytes, busy units, hazards and warnings."""
    yield f"{plural(len(replay.requests), 'request')} of {plural(len(replay.packages), 'package')}, assumed:"
    for line in replay.assumptions.lines():
        yield f"  {line}"
    yield ""
    heads = ("request", "package", "caches", "evicts", "resident bytes", "starts ms", "ends ms")
    yield table(heads, _request_rows(replay), right=(0, 4, 5, 6))
    if len(replay.requests) > _MOST_REQUESTS:
        yield f"... and {len(replay.requests) - _MOST_REQUESTS} more; --json lists all"
    yield ""
    yield "bytes moved: " + ", ".join(f"{kind} {count:,}" for kind, count in replay.bytes.items() if count)
    if replay.assumptions.link is not None or replay.assumptions.frequency_hz is not None:
        shares = zip(replay.timeline.timing.units, replay.timeline.timing.utilisation().tolist(), strict=True)
        yield "units busy:  " + ", ".join(f"{name} {percent(share)}" for name, share in shares if name != "tpu")
    if replay.unknown_compute:
        yield f"compute time unknown, taken as 0: {plural(replay.unknown_compute, 'executable run')}"
    yield from hazard_lines(replay)
    for line in replay.warnings:
        yield f"warning: {line}"


def _request_rows(replay: "Replay") -> list[tuple[str, ...]]:
    """Return the cells of the rows of the first _MOST_REQUESTS requests in the table that `run` prints."""
    evicted = {eviction.request: eviction.packages for eviction in replay.evictions}
    cached = {event.request for event in replay.events if event.kind == "caching"}
    starts: dict[int, int] = {}
    for event in replay.events:
        starts.setdefault(event.request, event.start)
    return [
        (
            str(number),
            f"{package} {replay.packages[package]}",
            "yes" if number in cached else "",
            " ".join(map(str, evicted.get(number, ()))),
            f"{replay.outcomes[number].resident:,}",
            *_time_cells(replay, number, starts),
        )
        for number, package in list(enumerate(replay.requests))[:_MOST_REQUESTS]
    ]


def hazards_of(replay: "Replay") -> "list[Hazard] | None":
    """Return the races and the reads of unwritten bytes; None where a replay has too many tasks to look for them."""
    if len(replay.timeline.schedule) > replaying.MOST_CHECKED:
        return None
    return replay.hazards()


def hazard_lines(replay: "Replay") -> Iterator[str]:
    """Yield a line for each of the first races and reads of unwritten bytes, and one for the number of others."""
    hazards = hazards_of(replay)
    if hazards is None:
        yield f"memory accesses are not checked: there are more than {replaying.MOST_CHECKED:,} tasks"
        return
    for hazard in hazards[:_MOST_HAZARDS]:
        task = replay.timeline.schedule.label(hazard.second)
        place = f"{hazard.size} bytes from {hazard.address} on of {hazard.space}"
        if hazard.kind == "unwritten":
            yield f"warning: {task} reads {place}, which nothing wrote"
        else:
            yield f"warning: {task} and {replay.timeline.schedule.label(hazard.first)} touch {place} in no order"
    if len(hazards) > _MOST_HAZARDS:
        yield f"warning: and {len(hazards) - _MOST_HAZARDS} more of that kind; --json lists all"


def _time_cells(replay: "Replay", number: int, starts: dict[int, int]) -> tuple[str, str]:
    """Return start and end of request `number` in ms as cells, "-" where neither a link nor a clock is assumed.
    `starts` are in ns, by request."""
    if replay.assumptions.link is None and replay.assumptions.frequency_hz is None:
        return "-", "-"
    return f"{starts[number] / 1e6:.3f}", f"{replay.outcomes[number].end / 1e6:.3f}"
