"""A run as one page: lanes over time, arrows of waits, memories with their tensors.

The page holds the picture as columns of numbers, and `timeline.js` draws the visible part on a canvas: wheel or buttons
zoom, dragging pans, a slice shows its details and the slice that it waited for, and a search finds slices.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from markupsafe import Markup

from buda_emu.performance.timeline.picture import Memory, Slice, TimelinePicture
from buda_emu.performance.timeline.tasks import pieces
from buda_emu.report.pages.engine import Cell, Column, Table, as_script, figure, render, table
from buda_emu.report.terminal.text import percent
from buda_emu.support.checker.text import plural

MOST_LANES: Final = 200
"""Lanes in the table below the picture."""


def timeline_page(picture: TimelinePicture, command: str = "") -> str:
    """Return the HTML page of a run. `command` is the command line that makes it again."""
    last = max((part.end for part in picture.slices), default=0)
    left_out = len(picture.lanes) - MOST_LANES
    return render(
        "timeline.html",
        title=picture.title,
        command=command,
        notes=picture.notes,
        data=timeline_data(picture),
        facts=" · ".join(f"{name} {value}" for name, value in picture.about.items()),
        lanes=_lanes_table(picture, last),
        heading=f"{plural(len(picture.lanes), 'lane')} in figures, {last:,.10g} {picture.time_unit} in all",
        rest=plural(left_out, "lane") if left_out > 0 else "",
    )


def _lanes_table(picture: TimelinePicture, last: float) -> Table:
    """Return a table of the slices and the busy time of each lane; `last` is the time at which the picture ends."""
    busy = [0.0] * len(picture.lanes)
    count = [0] * len(picture.lanes)
    for part in picture.slices:
        busy[part.lane] += part.end - part.start
        count[part.lane] += 1
    rows = (
        (
            lane.group,
            lane.name,
            figure(count[i]),
            Cell(f"{busy[i]:,.10g}", busy[i]),
            Cell(percent(busy[i] / (last or 1)), busy[i]),
        )
        for i, lane in enumerate(picture.lanes[:MOST_LANES])
    )
    numbers = ("slices", f"busy ({picture.time_unit})", "of the whole")
    return table(("group", "lane", *(Column(title, "number") for title in numbers)), rows, find="find lanes")


class _Words:
    """Texts by number; each text is stored once."""

    def __init__(self) -> None:
        self.list: list[str] = []
        self._numbers: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        number = self._numbers.setdefault(text, len(self.list))
        if number == len(self.list):
            self.list.append(text)
        return number


def timeline_data(picture: TimelinePicture) -> Markup:
    """Return the picture as JSON in the form that `timeline.js` reads: texts by number, slices as columns."""
    words = _Words()
    content: dict[str, Any] = {
        "unit": picture.time_unit,
        "perMicrosecond": picture.per_microsecond,
        "lanes": [[words(lane.name), words(lane.group), words(lane.section)] for lane in picture.lanes],
        "slices": _slice_columns(picture.slices, words),
        "flows": [[flow.source, flow.target, words(flow.name)] for flow in picture.flows],
        "counters": [
            [
                words(counter.name),
                words(counter.unit),
                list(counter.times),
                list(counter.values),
                words(counter.group),
            ]
            for counter in picture.counters
        ],
        "memories": [
            [words(memory.name), memory.span, _tensor_rectangles(memory, words), memory.peak]
            for memory in picture.memories
        ],
        "chain": list(picture.chain),
        "stretches": [[stretch.start, stretch.end, words(stretch.name)] for stretch in picture.stretches],
    }
    content["words"] = words.list
    return as_script(content)


def _slice_columns(slices: Iterable[Slice], words: _Words) -> list[list[Any]]:
    """Return the slices as columns: lane, start, length, and the numbers of name, category and details in `words`."""
    columns: list[list[Any]] = [[] for _ in range(6)]
    for part in slices:
        row = (
            part.lane,
            part.start,
            part.end - part.start,
            words(part.name),
            words(part.category),
            words(_details_text(part.details)),
        )
        for column, value in zip(columns, row, strict=True):
            column.append(value)
    return columns


def _details_text(details: Mapping[str, Any]) -> str:
    """Return the details of a task as the text that the timeline shows where the mouse points at it, one on each
    line."""
    lines: list[str] = []
    for name, value in details.items():
        text = f"{value:,}" if isinstance(value, int) else f"{value}"
        lines.append(f"{name}: {text}")
    return "\n".join(lines)


def _tensor_rectangles(memory: Memory, words: _Words) -> list[list[Any]]:
    """Return the rectangles that show a memory's tensors: start, end, first byte, byte after the last, number of the
    name in `words`, bytes of the whole tensor. A tensor that wraps around in a ring buffer has several."""
    rectangles: list[list[Any]] = []
    for live in memory.lives:
        for low, high in pieces(live.address, live.size, live.ring):
            rectangles.append([live.start, live.end, low, high, words(live.name), live.size])
    return rectangles
