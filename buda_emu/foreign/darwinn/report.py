"""What `inspect` and `run` print of a package."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from buda_emu.foreign.darwinn.assumptions import LINKS, Assumptions
from buda_emu.foreign.darwinn.document import Report
from buda_emu.foreign.darwinn.replaying import MOST_CHECKED, Replay
from buda_emu.foreign.darwinn.summary import LayerSummary, Summary
from buda_emu.performance.timeline import Hazard
from buda_emu.report.terminal.text import percent, shape, table
from buda_emu.support.checker.text import plural, short_line
from buda_emu.support.version import RESULT_VERSION

_MOST_LAYERS = 24
_LONGEST_NAME = 60


def inspect_lines(summary: Summary, report: Report) -> Iterator[str]:
    """What people ask first, a line each."""
    what = "in a .tflite" if summary.wrapped else "bare package"
    yield f"{summary.path or 'package'}: {summary.package_bytes:,} bytes, {what} of {summary.file_bytes:,}"
    counts = Counter(item.severity for item in report.diagnostics)
    found = ", ".join(plural(count, word) for word, count in counts.items()) or "no findings"
    yield f"check            {report.verdict} ({found})"
    compiler = f", compiled by {summary.compiler_version!r}" if summary.compiler_version else ""
    yield f"minimum runtime  {summary.min_runtime_version}{compiler}{_chips(summary)}"
    if summary.wrapped:
        yield f"left on the CPU  before: {_operators(summary.cpu_operators_before)}"
        yield f"                 after:  {_operators(summary.cpu_operators_after)}"
    if summary.parts:
        yield f"several chips    {plural(summary.parts, 'package')} for single chips, which the driver refuses"
        return
    streamed = f"{summary.streamed_bytes:,} streamed in every inference"
    yield f"parameters       {summary.cached_bytes:,} bytes cached, {streamed}"
    known = "" if summary.complete_dma_list else ", as far as the DMA list goes, which is not complete"
    yield f"per inference    {summary.input_bytes:,} bytes in, {summary.output_bytes:,} bytes out{known}"
    yield f"switch to it     {_switch(summary)}"
    yield ""
    rows = (
        (
            item.kind,
            str(item.chunks),
            f"{item.instruction_bytes:,}",
            f"{item.parameter_bytes:,}",
            "not given" if item.cycles is None else f"{item.cycles:,}",
            f"{item.hints}{'' if item.complete_dma_list else ' (incomplete)'}",
            f"{item.scratch_bytes:,}",
            f"{item.token:x}",
        )
        for item in summary.executables
    )
    heads = ("executable", "chunks", "instr. bytes", "param. bytes", "est. cycles", "hints", "scratch", "token")
    yield table(heads, rows, right=(1, 2, 3, 4))
    yield ""
    heads = ("layer", "y x z", "type", "scale", "zero point", "bytes", "on device", "name")
    yield table(heads, map(_layer, summary.layers[:_MOST_LAYERS]), right=(3, 4, 5, 6))
    if len(summary.layers) > _MOST_LAYERS:
        yield f"... and {len(summary.layers) - _MOST_LAYERS} more; --json lists all"


def _layer(item: LayerSummary) -> tuple[str, ...]:
    scale = "-" if item.scale is None else f"{item.scale:.7g}"
    zero = "-" if item.zero_point is None else str(item.zero_point)
    sizes = f"{item.bytes:,}", f"{item.padded_bytes:,}"
    whole = short_line(item.name)
    name = whole if len(whole) <= _LONGEST_NAME else f"{whole[: _LONGEST_NAME - 3]}..."
    return item.direction, shape(item.shape), item.type.lower(), scale, zero, *sizes, name


def _chips(summary: Summary) -> str:
    return f", chip ids {', '.join(map(str, summary.chips))}" if summary.chips else ""


def _operators(names: tuple[str, ...]) -> str:
    counts = Counter(map(short_line, names))
    return ", ".join(name if count == 1 else f"{count} x {name}" for name, count in counts.items()) or "nothing"


def _switch(summary: Summary) -> str:
    if not summary.switch_bytes:
        return "costs nothing: no parameters are cached"
    times = ", ".join(
        f"{Assumptions(link=LINKS[name]).transfer_ns(summary.switch_bytes, True) / 1e6:.2f} ms" + f" over {name}"
        for name in ("usb3", "usb2")
    )
    return f"moves {summary.switch_bytes:,} bytes, at the links' public rates {times}"


_MOST_REQUESTS = 40
_MOST_HAZARDS = 5


def replay_lines(replay: Replay) -> Iterator[str]:
    """What was replayed, under which assumptions, and what came out."""
    yield f"{plural(len(replay.requests), 'request')} of {plural(len(replay.packages), 'package')}, assumed:"
    for line in replay.assumptions.lines():
        yield f"  {line}"
    yield ""
    evicted = {item.request: item.packages for item in replay.evictions}
    cached = {event.request for event in replay.events if event.kind == "caching"}
    starts: dict[int, int] = {}
    for event in replay.events:
        starts.setdefault(event.request, event.start)
    rows = [
        (
            str(number),
            f"{package} {replay.packages[package]}",
            "yes" if number in cached else "",
            " ".join(map(str, evicted.get(number, ()))),
            f"{replay.resident[number]:,}",
            *_times(replay, number, starts),
        )
        for number, package in list(enumerate(replay.requests))[:_MOST_REQUESTS]
    ]
    heads = ("request", "package", "caches", "evicts", "resident bytes", "starts ms", "ends ms")
    yield table(heads, rows, right=(0, 4, 5, 6))
    if len(replay.requests) > _MOST_REQUESTS:
        yield f"... and {len(replay.requests) - _MOST_REQUESTS} more; --json lists all"
    yield ""
    yield "bytes moved: " + ", ".join(f"{kind} {count:,}" for kind, count in replay.bytes.items() if count)
    if replay.assumptions.link is not None or replay.assumptions.frequency_hz is not None:
        shares = zip(replay.timing.units, replay.timing.utilisation().tolist(), strict=True)
        yield "units busy:  " + ", ".join(f"{name} {percent(share)}" for name, share in shares if name != "tpu")
    if replay.unknown_compute:
        yield f"compute time unknown, taken as 0: {plural(replay.unknown_compute, 'executable run')}"
    for line in hazard_lines(replay):
        yield line
    for line in replay.warnings:
        yield f"warning: {line}"


def _hazards(replay: Replay) -> list[Hazard] | None:
    return replay.hazards() if len(replay.schedule) <= MOST_CHECKED else None


def hazard_lines(replay: Replay) -> Iterator[str]:
    """Races and reads of what nobody wrote, the first few in words."""
    hazards = _hazards(replay)
    if hazards is None:
        yield f"memory accesses are not checked: there are more than {MOST_CHECKED:,} tasks"
        return
    for item in hazards[:_MOST_HAZARDS]:
        task = replay.schedule.label(item.second)
        what = f"{item.size} bytes from {item.address} on of {item.space}"
        if item.kind == "unwritten":
            yield f"warning: {task} reads {what}, which nothing wrote"
        else:
            yield f"warning: {task} and {replay.schedule.label(item.first)} touch {what} in no order"
    if len(hazards) > _MOST_HAZARDS:
        yield f"warning: and {len(hazards) - _MOST_HAZARDS} more of that kind; --json lists all"


def _times(replay: Replay, number: int, starts: dict[int, int]) -> tuple[str, str]:
    if replay.assumptions.link is None and replay.assumptions.frequency_hz is None:
        return "-", "-"
    return f"{starts[number] / 1e6:.3f}", f"{replay.request_end[number] / 1e6:.3f}"


def replay_json(replay: Replay) -> dict[str, Any]:
    """Everything but single DMAs."""
    hazards = _hazards(replay)
    link = replay.assumptions.link
    clock = replay.assumptions.frequency_hz
    return {
        "schema_version": RESULT_VERSION,
        "assumptions": {
            "transport": replay.assumptions.transport,
            "overlap": replay.assumptions.overlap,
            "link": None if link is None else link._asdict(),
            "frequency_hz": clock,
            "sram_bytes": replay.assumptions.sram_bytes,
        },
        "packages": list(replay.packages),
        "requests": list(replay.requests),
        "events": [event._asdict() for event in replay.events],
        "evictions": [item._asdict() for item in replay.evictions],
        "resets": list(replay.resets),
        "tokens": list(replay.tokens),
        "resident": list(replay.resident),
        "bytes": replay.bytes,
        "request_end_ns": list(replay.request_end),
        "unknown_compute": replay.unknown_compute,
        "warnings": list(replay.warnings),
        "hazards": None if hazards is None else [asdict(item) for item in hazards],
    }
