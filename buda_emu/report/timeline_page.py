"""A run as one HTML page that needs nothing else: lanes over time, arrows of waits, memories with their tensors.

The page holds the picture as columns of numbers and `timeline.js`, which draws what is in view on a canvas: wheel or
buttons zoom, dragging pans, a slice tells of itself and shows whom it waited for, the search finds slices.
"""

import json
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any, Final

from buda_emu.report.html import page, table
from buda_emu.report.svg import clean
from buda_emu.report.text import percent
from buda_emu.timeline.picture import Memory, Slice, TimelinePicture
from buda_emu.timeline.ranges import pieces

MOST_LANES: Final = 200
"""Lanes in the table below the picture."""


def timeline_page(picture: TimelinePicture, command: str = "") -> str:
    """The page. `command` is how to make it again."""
    facts = " · ".join(f"{name} {value}" for name, value in picture.about.items())
    body = "\n".join([
        f"<h1>{clean(picture.title)}</h1>",
        f'<p class="soft">{clean(facts)}</p>' if facts else "",
        *(f"<p>{clean(note)}</p>" for note in picture.notes),
        f"<pre>{clean(command)}</pre>" if command else "",
        _CONTROLS, _lanes(picture), f'<script type="application/json" id="tl-data">{_data(picture)}</script>',
        f"<script>{files('buda_emu.report').joinpath('timeline.js').read_text('utf-8')}</script>",
    ])  # fmt: skip
    return page(picture.title, body)


_CONTROLS: Final = """\
<section class="timeline" id="tl">
<div class="tl-bar"><input type="search" id="tl-search" placeholder="find slices and tensors" aria-label="find">
<span class="soft" id="tl-found"></span>
<button type="button" id="tl-out" title="zoom out (-)">−</button>
<button type="button" id="tl-in" title="zoom in (+)">+</button>
<button type="button" id="tl-fit" title="show everything (0)">all</button>
<label><input type="checkbox" id="tl-flows"> all arrows</label></div>
<div class="tl-legend" id="tl-legend"></div>
<div class="tl-view" id="tl-view" tabindex="0" role="img" aria-label="lanes over time; figures are below">
<canvas id="tl-canvas"></canvas><div class="tl-tip" id="tl-tip" hidden></div></div>
<p class="soft">Ctrl and wheel, + and − or two fingers zoom, dragging pans, a click keeps a slice and its arrows;
Enter goes to the next that was found.</p>
<noscript><p>The picture needs JavaScript; the table below does not.</p></noscript>
</section>"""


def _lanes(picture: TimelinePicture) -> str:
    """What the lanes add up to, for those who want figures."""
    last = max((item.end for item in picture.slices), default=0)
    busy = [0.0] * len(picture.lanes)
    count = [0] * len(picture.lanes)
    for item in picture.slices:
        busy[item.lane] += item.end - item.start
        count[item.lane] += 1
    rows = (
        (clean(lane.group), clean(lane.name), str(count[i]), f"{busy[i]:,.10g}", percent(busy[i] / last if last else 0))
        for i, lane in enumerate(picture.lanes[:MOST_LANES])
    )
    headers = ("group", "lane", "slices", f"busy ({picture.time_unit})", "of the whole")
    rest = len(picture.lanes) - MOST_LANES
    more = f'<p class="soft">and {rest} lanes more</p>' if rest > 0 else ""
    title = f"<summary>{len(picture.lanes)} lanes in figures, {last:,.10g} {clean(picture.time_unit)} in all</summary>"
    figures = f'<div class="tall">{table(headers, rows, right=(2, 3, 4))}</div>'
    return f'<details class="case">{title}{figures}{more}</details>'


class _Words:
    """Texts by number, each once."""

    def __init__(self) -> None:
        self.list: list[str] = []
        self._numbers: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        number = self._numbers.setdefault(text, len(self.list))
        if number == len(self.list):
            self.list.append(text)
        return number


def _data(picture: TimelinePicture) -> str:
    words = _Words()
    content: dict[str, Any] = {
        "unit": picture.time_unit,
        "perMicrosecond": picture.per_microsecond,
        "lanes": [[words(lane.name), words(lane.group)] for lane in picture.lanes],
        "slices": _slices(picture.slices, words),
        "flows": [[flow.source, flow.target, words(flow.name)] for flow in picture.flows],
        "counters": [
            [words(item.name), words(item.unit), list(item.times), list(item.values)] for item in picture.counters
        ],
        "memories": [[words(item.name), item.span, _tensors(item, words), item.peak] for item in picture.memories],
    }
    content["words"] = words.list
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")  # nothing in a text may end the script


def _slices(slices: Iterable[Slice], words: _Words) -> list[list[Any]]:
    """Columns: lane, start, length, name, category, details."""
    columns: list[list[Any]] = [[] for _ in range(6)]
    for item in slices:
        row = (
            item.lane, item.start, item.end - item.start, words(item.name), words(item.category),
            words(_details(item.details)),
        )  # fmt: skip
        for column, value in zip(columns, row, strict=True):
            column.append(value)
    return columns


def _details(details: Mapping[str, Any]) -> str:
    return "\n".join(
        f"{name}: {value:,}" if isinstance(value, int) else f"{name}: {value}" for name, value in details.items()
    )


def _tensors(memory: Memory, words: _Words) -> list[list[Any]]:
    """Rectangles: start, end, first byte, byte after the last, name, bytes of the whole tensor."""
    return [
        [live.start, live.end, low, high, words(live.name), live.size]
        for live in memory.lives
        for low, high in pieces(live.address, live.size, live.ring)
    ]
