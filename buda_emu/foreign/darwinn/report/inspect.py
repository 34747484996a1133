"""`buda-emu darwinn inspect`: a package on one screen."""

from collections import Counter
from collections.abc import Iterator

from buda_emu.foreign.darwinn.assumptions import LINKS, Assumptions
from buda_emu.foreign.darwinn.document import Report
from buda_emu.foreign.darwinn.summary import LayerSummary, Summary
from buda_emu.report.terminal.text import shape, table
from buda_emu.support.checker.text import plural, shown

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
    whole = shown(item.name)
    name = whole if len(whole) <= _LONGEST_NAME else f"{whole[: _LONGEST_NAME - 3]}..."
    return item.direction, shape(item.shape), item.type.lower(), scale, zero, *sizes, name


def _chips(summary: Summary) -> str:
    return f", chip ids {', '.join(map(str, summary.chips))}" if summary.chips else ""


def _operators(names: tuple[str, ...]) -> str:
    counts = Counter(map(shown, names))
    return ", ".join(name if count == 1 else f"{count} x {name}" for name, count in counts.items()) or "nothing"


def _switch(summary: Summary) -> str:
    if not summary.switch_bytes:
        return "costs nothing: no parameters are cached"
    times = ", ".join(
        f"{Assumptions(link=LINKS[name]).transfer_ns(summary.switch_bytes, True) / 1e6:.2f} ms" + f" over {name}"
        for name in ("usb3", "usb2")
    )
    return f"moves {summary.switch_bytes:,} bytes, at the links' public rates {times}"
