"""The floor plan of a netlist as one SVG that needs nothing else: light and dark, no scripts, tooltips everywhere."""

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import product
from typing import TYPE_CHECKING, Final

from buda_emu.netlist.model import Netlist, Op, Queue
from buda_emu.performance.routing.streams.model import LIMITS
from buda_emu.report.pictures.floorplan import CELL, GAP, INSET, Box, Panel, memory, panels
from buda_emu.spec.archs import EXTRA_STREAMS
from buda_emu.spec.ops import OP_TYPES, Group
from buda_emu.support.checker.text import plural
from buda_emu.support.screen import UNPRINTED

if TYPE_CHECKING:
    from buda_emu.performance.routing.epochs import RoutedEpoch
    from buda_emu.performance.routing.streams.model import CoreUse


CHARACTER: Final = 0.62  # width of a character of a monospace font, in parts of its size; the widest in use
_CONTROL: Final = re.compile(rf"[\x00-\x09\x0b-\x1f{UNPRINTED}\ud800-\udfff\ufffe\uffff]")


def clean(text: str) -> str:
    """Escape text for XML text and attributes. Control characters become question marks, since XML cannot hold most of
    them, as do characters that change the direction of writing; line breaks stay for tooltips."""
    return escape(_CONTROL.sub("?", text), quote=True)


def width_of(text: str, size: float) -> float:
    """Return a width in pixels that the text does not exceed in a monospace font of `size` pixels."""
    units = sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
    return units * size * CHARACTER


def fit_text(text: str, width: float, size: float) -> str:
    """Return the text with its middle left out if it is wider than `width` pixels (names often differ at their
    ends); "" if not even one character fits.
    """
    if width_of(text, size) <= width:
        return text
    length = max(int(width / (size * CHARACTER)) - 1, 0)
    while length > 0:
        tail = length // 2
        short = f"{text[: length - tail]}…{text[len(text) - tail :]}"
        if width_of(short, size) <= width:
            return short
        length -= 1
    return ""


def text(x: float, y: float, content: str, size: float, css: str = "", anchor: str = "start") -> str:
    """Return the SVG element of a line of text with its baseline at y, "" for no text. `css` is its class, `anchor`
    the part of it that stands at x: start, middle or end.
    """
    if not content:
        return ""
    attributes = f'x="{number(x)}" y="{number(y)}" font-size="{number(size)}" text-anchor="{anchor}"'
    if css:
        attributes += f' class="{css}"'
    return f"<text {attributes}>{clean(content)}</text>"


def number(value: float) -> str:
    """Return a number with up to two decimals and without trailing zeros."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def open_chart(width: float, height: float, title: str, css: str = "") -> str:
    """Return the opening tag of a chart that the page's style sheet colours. `css` has further classes, after a
    blank."""
    size = f'width="{number(width)}" height="{number(height)}" viewBox="0 0 {number(width)} {number(height)}"'
    return f'<svg class="chart{css}" role="img" aria-label="{clean(title)}" {size}>'


Uses = Mapping[tuple[int, int, int, int], "CoreUse"]
"""(epoch, chip, row, column) -> use of the core."""

LEGEND: Final = "on each core: extra streams, and part of the L1 for data buffers; bars: the same two, red from 90 % on"
CHANGE_STYLE: Final = (
    ".bg{--bg-green:#15803d}.bg .bg-added .bg-box{stroke:var(--bg-green);fill:var(--bg-green);stroke-width:4;"
    "fill-opacity:.2}.bg .bg-removed .bg-box{stroke:var(--bg-red);fill:var(--bg-red);stroke-width:4;fill-opacity:.2;"
    "stroke-dasharray:9 5}.bg .bg-key{stroke-width:3;stroke:var(--bg-green);fill:var(--bg-green);fill-opacity:.2}"
    ".bg .bg-key.bg-gone{stroke:var(--bg-red);fill:var(--bg-red);stroke-dasharray:5 3}"
    "@media (prefers-color-scheme:dark){.bg{--bg-green:#5fce8f}}"
)
STYLE: Final = ".bg .bg-track{fill:var(--bg-line)}.bg .bg-used{fill:var(--bg-soft)}.bg .bg-full{fill:var(--bg-red)}"
_NEARLY_FULL: Final = 0.9  # share from which a bar is red: a small change may make it overflow
_BAR: Final = 3.0  # height of a bar in pixels
_SIZE: Final = 10.0  # pixels of the font for figures


def uses_by_core(epochs: "Iterable[RoutedEpoch]") -> Uses:
    """Return the use of streams and L1 of each worker core by (epoch, chip, row, column). Ethernet cores, which stand
    on no grid, are left out."""
    uses: dict[tuple[int, int, int, int], CoreUse] = {}
    for epoch in epochs:
        for core in epoch.routed.cores:
            if not core.place.ethernet:
                uses[epoch.number, core.place.chip, core.place.row, core.place.column] = core
    return uses


def uses_of_op(uses: Uses, epoch: int, op: Op) -> "Sequence[CoreUse]":
    """Return the uses of the cores on which an op lies; none for an op on Ethernet cores, and if its epoch was refused
    before it had streams."""
    if len(op.grid_loc) != 2:
        return ()
    (top, left) = op.grid_loc
    (rows, columns) = op.cores
    cores = product((epoch,), (op.target_device,), range(top, top + rows), range(left, left + columns))
    return [uses[core] for core in cores if core in uses]


def sentence(routed: "RoutedEpoch | str | None") -> str:
    """Return the sentence about an epoch's streams beside its picture: the use of the core that needs most, the refusal
    of the router, or why there are no streams (None: no program runs the epoch)."""
    if routed is None:
        return "No streams are shown: no program executes this epoch"
    if isinstance(routed, str):
        return f"No streams are shown: {routed}"
    first = next(iter(routed.routed.refusals), None)
    if first is not None:
        text = f"The router refuses this epoch: {first.message}"
        further = len(routed.routed.refusals) - 1
        if further:
            text += f", and {plural(further, 'more refusal')}"
        return text
    cores = [core for core in routed.routed.cores if not core.place.ethernet]
    return f"The core that needs most of each takes, of extra streams and of the L1 for data buffers: {use_text(cores)}"


def use_text(uses: "Sequence[CoreUse]") -> str:
    """Return the greatest numbers of extra streams and shares of L1 among the cores, such as `5 of 24, L1 11 %`; "" if
    there are no cores."""
    if not uses:
        return ""
    extra = max(use.extra_streams for use in uses)
    l1 = max(map(_l1_share, uses))
    return f"{extra} of {len(EXTRA_STREAMS)}, L1 {100 * l1:.0f} %"


def draw_use(use: "CoreUse", arch: str, x: float, y: float, width: float) -> str:
    """Return the SVG of a core's use of streams and L1: words and, below, two bars. `y` is the baseline of the words;
    the bars reach 10 pixels below it."""
    bars: list[str] = []
    for step, part in enumerate((use.extra_streams / len(EXTRA_STREAMS), _l1_share(use))):
        top = y + 3 + step * (_BAR + 1)
        if part >= _NEARLY_FULL:
            css = "bg-full"
        else:
            css = "bg-used"
        bars.append(_bar_svg("bg-track", x, top, width) + _bar_svg(css, x, top, width * min(part, 1.0)))
    figures = text(x, y, use_text([use]), _SIZE)
    return f'<g class="bg-use"><title>{clean(_use_tooltip(use, arch))}</title>{figures}<g>{"".join(bars)}</g></g>'


def _l1_share(use: "CoreUse") -> float:
    """Return the share (0 to 1) of the L1 for data buffers that a core uses."""
    return use.l1_bytes / use.available_bytes


def _bar_svg(css: str, x: float, y: float, width: float) -> str:
    """Return the SVG of a bar of the use of a core, with its upper left corner at x, y."""
    place = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(_BAR)}"'
    return f'<rect class="{css}" {place}/>'


def _use_tooltip(use: "CoreUse", arch: str) -> str:
    """Return the tooltip on the use of a core: its streams and its L1, against the limits of the architecture."""
    lines = [
        f"{use.place}: {plural(len(use.streams), 'stream')}",
        f"extra streams: {use.extra_streams} of {len(EXTRA_STREAMS)}",
        f"streams that gather or multicast: {use.multicast_streams} of {LIMITS[arch].multicast_streams}",
        f"L1: {use.l1_bytes:,} of {use.available_bytes:,} bytes for data buffers",
    ]
    return "\n".join(lines)


FAMILIES: Final[Mapping[Group, tuple[str, str]]] = {
    "matmul": ("matmul, depthwise", "#0072b2"),
    "binary": ("binary, quantisation", "#009e73"),
    "sfpu": ("SFPU", "#b07800"),
    "reduce": ("reduce, topk", "#b8518f"),
    "fused": ("fused", "#d55e00"),
    "move": ("data movement", "#6b7280"),
}
"""Group of op types -> what the legend says, and its colour (distinct for the colour-blind)."""
_MARGIN: Final = 12  # pixels around the grid
_PANEL_GAP: Final = 24  # pixels between two panels
_SMALL: Final = 10.0  # pixels of the font for labels
_NAME: Final = 11.0  # pixels of the font for names

_STYLE: Final = """
.bg{--bg-ink:#1b1f24;--bg-soft:#59616b;--bg-line:#d5d9de;--bg-panel:#fff;--bg-page:#f4f5f7;--bg-lane:#eceef1;--bg-red:#d00000;
font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;background:var(--bg-page)}
.bg text{fill:var(--bg-ink)}.bg .bg-soft{fill:var(--bg-soft)}.bg .bg-head{font-weight:600}
.bg .bg-panel{fill:var(--bg-panel);stroke:var(--bg-line)}.bg .bg-core{fill:none;stroke:var(--bg-line)}
.bg .bg-lane{fill:var(--bg-lane)}.bg .bg-box{stroke-width:1.5;fill-opacity:.16}
.bg .bg-ground{fill:var(--bg-panel)}.bg .bg-queue rect{fill:var(--bg-panel);stroke:var(--bg-soft)}
.bg-edge{fill:none;stroke:var(--bg-soft);stroke-width:1.2;opacity:.55}
.bg-arrow{fill:var(--bg-soft)}.bg-through{opacity:.3;pointer-events:none}
.bg-edge.bg-path{stroke:var(--bg-red);stroke-width:2.4;opacity:1}
.bg .bg-path .bg-box{stroke:var(--bg-red);stroke-width:4}
.bg .bg-edge:hover{opacity:1;stroke-width:3}.bg .bg-op:hover .bg-box{fill-opacity:.4}
.bg .bg-heat{fill:var(--bg-red)}
@media (prefers-color-scheme:dark){.bg{--bg-ink:#e6e9ed;--bg-soft:#a3acb7;--bg-line:#3a414a;--bg-panel:#1b1f24;
--bg-page:#12151a;--bg-lane:#262c34;--bg-red:#ff5a4f}.bg .bg-box{fill-opacity:.3}}
"""
_TIP: Final = (
    '<defs><marker id="bg-tip{}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path class="bg-arrow" d="M0 0L8 4L0 8z"/></marker></defs>'
)
_HEAT_STYLE: Final = """
.bg .bg-heat-step{fill:var(--bg-red)}.bg.bg-hot .bg-op .bg-box{fill-opacity:0;stroke-width:2.5}
.bg:not(.bg-hot) .bg-heat{display:none}
"""
_HEAT: Final = 0.45
"""Opacity of the reddest op: what is written on it stays readable."""
_LEGEND_LINE: Final = 18  # height of a further line of the legend
_HEAT_STEPS: Final = 5  # of the scale in the legend
_HEAT_STEP: Final = 18  # width of a step of the scale in the legend


@dataclass(frozen=True, slots=True)
class HeatScale:
    """The meaning of the colour scale of heats: `words` for what is hot, and the figures at its ends."""

    words: str = "the error of the op"
    low: str = "least"
    high: str = "most"

    def opacities(self) -> Sequence[float]:
        """Return the opacities of the steps from the palest to the reddest."""
        return [_HEAT * step / (_HEAT_STEPS - 1) for step in range(_HEAT_STEPS)]


def grid_svg(
    netlist: Netlist,
    *,
    epochs: Sequence[int] | None = None,
    chips: Sequence[int] | None = None,
    heat: Mapping[str, float] | None = None,
    notes: Mapping[str, str] | None = None,
    mark: str = "",
    scale: HeatScale | None = None,
    path: Collection[str] = (),
    streams: Uses | None = None,
    values: Mapping[str, Sequence[str]] | None = None,
    changes: Mapping[str, str] | None = None,
) -> str:
    """Return the floor plan of a netlist as SVG, all of it or the panels of some epochs and chips. `heat` (0..1)
    colours ops by name, and the legend says what `scale` holds; their frames keep the colours of their families.
    `notes` adds to tooltips; `mark` keeps the ids of several pictures on one page apart. `path` has the ops, and `a >
    b` of edges, that are drawn as the critical path. `streams`, the use of streams and L1, is written on each core.
    `values` has for an op or queue two lines in place of its dims and format; with `changes` they stand in front of the
    op's type. `changes` says of the ops that only one of two netlists has whether they are "added" (green) or "removed"
    (red)."""
    planned = list(panels(netlist, epochs, chips))
    places, width, height = _arrange(planned)
    legend_top = height
    height += 30 + _LEGEND_LINE * (bool(heat) + (streams is not None))
    width = max(width, 820)
    size = f'width="{number(width)}" height="{number(height)}" viewBox="0 0 {number(width)} {number(height)}"'
    hot = ""
    if heat:
        hot = " bg-hot"
        scale = scale or HeatScale()
    else:
        scale = None
    style = _style_sheet(heat=bool(heat), streams=streams is not None, changes=changes is not None)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="bg{hot}" role="img" {size}>',
        f"<title>{clean(f'{netlist.path}: ops on the cores of each chip and epoch')}</title>",
        f"<style>{style}</style>",
        _TIP.format(mark),
    ]
    painter = _Painter(netlist, heat or {}, notes or {}, mark, frozenset(path), streams, values or {}, changes)
    for panel, (x, y) in zip(planned, places, strict=True):
        parts.append(f'<g transform="translate({number(x)} {number(y)})">{painter.panel(panel)}</g>')
    parts.append(_legend_svg(legend_top + 18, scale, path=bool(path), changes=changes is not None))
    if streams is not None:
        parts.append(text(_MARGIN, height - 12, LEGEND, _NAME))
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def _style_sheet(*, heat: bool, streams: bool, changes: bool) -> str:
    """Return the style sheet of a picture with or without heats, uses of streams, and added and removed ops."""
    style = _STYLE
    if streams:
        style += STYLE
    if heat:
        style += _HEAT_STYLE
    if changes:
        style += CHANGE_STYLE
    return style


def _arrange(drawn: Sequence[Panel]) -> tuple[list[tuple[float, float]], float, float]:
    """Arrange panels in rows, so that the whole is about as wide as it is high. Return the place (x, y) of each, and
    width and height of the whole."""
    area = sum(panel.size[0] * panel.size[1] for panel in drawn)
    row_width = max([panel.size[0] for panel in drawn] + [1.4 * area**0.5], default=0.0)
    places: list[tuple[float, float]] = []
    x = float(_MARGIN)
    y = float(_MARGIN)
    row = 0.0
    width = 0.0
    for panel in drawn:
        if x > _MARGIN and x + panel.size[0] > row_width + _MARGIN:
            x = float(_MARGIN)
            y = y + row + _PANEL_GAP
            row = 0.0
        places.append((x, y))
        x += panel.size[0] + _PANEL_GAP
        row = max(row, panel.size[1])
        width = max(width, x - _PANEL_GAP)
    return places, width + _MARGIN, y + row + _MARGIN


def _legend_svg(y: float, scale: HeatScale | None, *, path: bool, changes: bool) -> str:
    """Return the SVG of the legend at height `y`: the colours of the families of ops, and the scale of heats if
    there is one. `path` says whether the critical path is drawn, `changes` whether added and removed ops are.
    """
    parts: list[str] = []
    x = float(_MARGIN)
    for words, colour in FAMILIES.values():
        parts.append(
            f'<rect class="bg-box" x="{number(x)}" y="{number(y - 10)}" width="14" height="12" rx="2" '
            f'fill="{colour}" stroke="{colour}"/>{text(x + 20, y, words, _NAME)}'
        )
        x += 34 + len(words) * _NAME * 0.62
    if changes:
        for words, css in (("added", "bg-key"), ("removed", "bg-key bg-gone")):
            key = f'<rect class="{css}" x="{number(x)}" y="{number(y - 10)}" width="14" height="12" rx="2"/>'
            parts.append(key + text(x + 20, y, words, _NAME))
            x += 34 + len(words) * _NAME * 0.62
    if scale is not None:
        words = f"red: {scale.words}"
        if path:
            words += "; red frames and arrows: the critical path"
        parts.append(text(x, y, words, _NAME))
        parts.append(_heat_legend_svg(y + _LEGEND_LINE, scale))
    return f"<g>{''.join(parts)}</g>"


def _heat_legend_svg(y: float, scale: HeatScale) -> str:
    """Return the SVG of the colour scale of heats, with the figures at its ends; "" if the scale has no figures."""
    if not scale.high:
        return ""
    parts = [text(_MARGIN, y, scale.low, _NAME)]
    x = _MARGIN + width_of(scale.low, _NAME) + 8
    for opacity in scale.opacities():
        box = f'x="{number(x)}" y="{number(y - 10)}" width="{_HEAT_STEP}" height="12"'
        parts.append(
            f'<rect class="bg-heat-step" {box} fill-opacity="{number(opacity)}"/><rect class="bg-core" {box}/>'
        )
        x += _HEAT_STEP
    parts.append(text(x + 8, y, scale.high, _NAME))
    return "".join(parts)


def html_legend(scale: HeatScale | None, *, path: bool = False) -> str:
    """Return the legend as HTML, to stand above a picture that zooms: both ways of colouring the ops, and the red of
    the critical path if the picture has it."""
    families = "".join(
        f'<span><i style="background:{colour}29;border:2px solid {colour}"></i>{clean(words)}</span>'
        for words, colour in FAMILIES.values()
    )
    if path:
        families += '<span><i style="border:2px solid var(--bg-red)"></i>critical path</span>'
    lines = [f"<div>{families}</div>"]
    if scale is not None:
        steps = "".join(f'<i class="heat" style="opacity:{number(step)}"></i>' for step in scale.opacities())
        ends = f"{clean(scale.low)} <b>{steps}</b> {clean(scale.high)}"
        lines.append(f'<div class="heat-scale"><span>{clean(scale.words)}: {ends}</span></div>')
    return f'<div class="bg grid-legend">{"".join(lines)}</div>'


_USE_LINE: Final = CELL[1] - INSET - 13
"""Distance of the words on a core's use from its upper end; above them is room for the op's name."""
_USE_SIZE: Final = 10  # pixels of the font for a core's use


class _Painter:
    """A painter of panels of one netlist; its arguments are those of `grid_svg`."""

    def __init__(
        self,
        netlist: Netlist,
        heat: Mapping[str, float],
        notes: Mapping[str, str],
        mark: str,
        path: Collection[str],
        streams: Uses | None,
        values: Mapping[str, Sequence[str]],
        changes: Mapping[str, str] | None,
    ) -> None:
        self._netlist = netlist
        self._heat = heat
        self._notes = notes
        self._mark = mark
        self._path = path
        self._streams = streams
        self._values = values
        self._changes = changes or {}
        self._figures_first = changes is not None

    def panel(self, panel: Panel) -> str:
        """Return the SVG of a panel: one chip in one epoch."""
        width, height = panel.size
        title = f"epoch {panel.epoch}, chip {panel.chip}"
        inputs = f"graph {panel.graph}, {plural(panel.input_count, 'input')}"
        parts = [
            f'<rect class="bg-panel" width="{number(width)}" height="{number(height)}" rx="6"/>',
            text(GAP + 2, 18, fit_text(title, width - 20, 13), 13, "bg-head"),
            text(GAP + 2, 34, fit_text(inputs, width - 20, _NAME), _NAME, "bg-soft"),
            *self._draw_core_grid(panel),
        ]
        for group in panel.groups:
            box = group.box
            label = fit_text(group.name, box.width - 12, _SMALL)
            parts.append(_rect_svg(box, "bg-lane") + text(box.x + 6, box.y + 13, label, _SMALL, "bg-soft"))
        ops = {op.name: op for op in self._netlist.graphs[panel.graph].ops}
        edges = f"bg-edges-{panel.epoch}-{panel.chip}{self._mark}"
        drawn = "".join(self._draw_edge(panel, edge.source, edge.target) for edge in panel.edges)
        parts.append(f'<g id="{edges}">{drawn}</g>')  # under the boxes: no text is crossed
        parts += [self._draw_op(ops[name], box) for name, box in panel.ops.items()]
        parts += [self._draw_streams_and_l1(panel, ops[name]) for name in panel.ops]
        parts += [self._draw_queue(self._netlist.queues[name], box) for name, box in panel.queues.items()]
        parts += [self._draw_op_elsewhere(self._netlist.ops[name], box) for name, box in panel.elsewhere.items()]
        parts.append(f'<use href="#{edges}" class="bg-through"/>')  # faintly where they pass behind a box
        return "".join(parts)

    def _draw_core_grid(self, panel: Panel) -> list[str]:
        """Return the SVG of the lines between cores, and of the numbers of their rows and columns."""
        top = panel.rows[0][0]
        left = panel.columns[0][0]
        bottom, right = (places[-1][0] + places[-1][1] for places in (panel.rows, panel.columns))
        lines = "".join(f"M{number(x)} {number(top)}V{number(bottom)}" for x in [*(c[0] for c in panel.columns), right])
        lines += "".join(f"M{number(left)} {number(y)}H{number(right)}" for y in [*(r[0] for r in panel.rows), bottom])
        numbers = [
            text(x + width / 2, top - 6, str(col), _SMALL, "bg-soft", "middle")
            for col, (x, width) in enumerate(panel.columns)
        ]
        numbers += [
            text(left - 5, y + height / 2 + 4, str(row), _SMALL, "bg-soft", "end")
            for row, (y, height) in enumerate(panel.rows)
        ]
        return [f'<path class="bg-core" d="{lines}"/>', *numbers]

    def _draw_op(self, op: Op, box: Box) -> str:
        """Return the SVG of an op: name, type and size in a box of its family's colour, reddened by its heat."""
        colour = FAMILIES[OP_TYPES[op.type].drawn_as][1]
        inside = box.width - 12
        if op.name in self._path:
            css = "bg-op bg-path"
        else:
            css = "bg-op"
        if op.name in self._changes:
            css += f" bg-{self._changes[op.name]}"
        on_cores = self._streams is not None and len(op.grid_loc) == 2
        if on_cores:
            room = f' data-room="{number(_USE_LINE - _USE_SIZE - INSET)}"'
        else:
            room = ""
        parts = [
            f'<g class="{css}" data-name="{clean(op.name)}"{room}><title>{clean(self._op_tooltip(op))}</title>',
            _rect_svg(box, "bg-ground"),
            _rect_svg(box, "bg-box", f' fill="{colour}" stroke="{colour}"'),
        ]
        if op.name in self._heat:
            opacity = _HEAT * min(max(self._heat[op.name], 0.0), 1.0)
            parts.append(_rect_svg(box, "bg-heat", f' fill-opacity="{number(opacity)}"'))
        parts.append(_line_svg(box, 15, op.name, inside, _NAME, "bg-head"))
        lines = self._lines_of_op(op, box)
        parts += [_line_svg(box, 29 + 14 * position, words, inside, _SMALL) for position, words in enumerate(lines)]
        return "".join([*parts, "</g>"])

    def _lines_of_op(self, op: Op, box: Box) -> list[str]:
        """Return the lines below an op's name: its type with its cores, and in a high box its values, by default its
        size and format."""
        rows, cols = op.cores
        kind = op.type
        if rows * cols > 1:
            kind = f"{op.type} {rows}x{cols}"
        lines = [kind]
        if box.height > 60:
            dims = "x".join(map(str, op.blocking.element_shape))
            lines = [kind, *self._values.get(op.name, (dims, op.out_df))]
            if self._figures_first:  # a comparison is about them
                lines = [*lines[1:], kind]
        if self._streams is not None:
            return lines[:2]  # below is what each core takes
        return lines

    def _draw_streams_and_l1(self, panel: Panel, op: Op) -> str:
        """Return the SVG of the use of streams and L1 of each core of an op, written at the lower end of the core; ""
        without streams."""
        parts: list[str] = []
        for use in uses_of_op(self._streams or {}, panel.epoch, op):
            x = panel.columns[use.place.column][0] + INSET + 6
            y = panel.rows[use.place.row][0]
            parts.append(draw_use(use, self._netlist.arch_name, x, y + _USE_LINE, CELL[0] - 2 * INSET - 12))
        return "".join(parts)

    def _op_tooltip(self, op: Op) -> str:
        """Return the tooltip of an op: its cores, inputs, result and formats, and the note on it."""
        dims = "x".join(map(str, op.blocking.element_shape))
        lines = [
            f"{op.name} ({op.type})",
            _cores_text(op),
            f"reads {', '.join(op.inputs)}",
            f"gives {dims} {op.out_df} (intermediate {op.intermed_df}, {op.math_fidelity})",
        ]
        return self._add_notes(op.name, lines)

    def _add_notes(self, name: str, lines: Sequence[str]) -> str:
        """Return the text of a tooltip: these lines, and the note on the op or queue `name`, if any."""
        if name in self._notes:
            lines = [*lines, self._notes[name]]
        return "\n".join(lines)

    def _draw_queue(self, queue: Queue, box: Box) -> str:
        """Return the SVG of a queue's box, with its tooltip."""
        dims = "x".join(map(str, queue.blocking.element_shape))
        if queue.host_fed:
            source = "filled by the host"
        else:
            source = f"written by {queue.input}"
        entries = plural(queue.entries, "entry")
        lines = (f"{queue.type} {queue.name}", f"{entries} of {dims} {queue.df}", memory(queue), source)
        tip = self._add_notes(queue.name, lines)
        words = ", ".join(self._values.get(queue.name, (f"{queue.type} {queue.entries} x {dims} {queue.df}",)))
        return _labelled_box(box, tip, queue.name, words)

    def _draw_edge(self, panel: Panel, source: str, target: str) -> str:
        """Return the SVG of the arrow from the box of `source` to that of `target`."""
        if f"{source} > {target}" in self._path:
            css = "bg-edge bg-path"
        else:
            css = "bg-edge"
        ends = f'data-from="{clean(source)}" data-to="{clean(target)}"'
        tip = clean(f"{source} -> {target}")
        curve = _curve_path(panel.box(source), panel.box(target), source not in panel.ops)
        place = f'marker-end="url(#bg-tip{self._mark})" d="{curve}"'
        return f'<path class="{css}" {ends} {place}><title>{tip}</title></path>'

    @staticmethod
    def _draw_op_elsewhere(op: Op, box: Box) -> str:
        """Return the SVG of the box of an op of another chip that feeds this one."""
        tip = f"{op.name} ({op.type}) on chip {op.target_device}"
        return _labelled_box(box, tip, op.name, f"{op.type} on chip {op.target_device}")


def _cores_text(op: Op) -> str:
    """Return the cores on which an op lies, in words."""
    rows, cols = op.cores
    if len(op.grid_loc) != 2:
        return "on Ethernet cores"
    return f"{rows}x{cols} cores from row {op.grid_loc[0]}, column {op.grid_loc[1]}"


def _labelled_box(box: Box, tip: str, name: str, words: str) -> str:
    """Return the SVG of a box beside the grid with a name and a line of words; `tip` is its tooltip."""
    inside = box.width - 12
    return (
        f'<g class="bg-queue" data-name="{clean(name)}"><title>{clean(tip)}</title>{_rect_svg(box, "bg-store")}'
        f"{_line_svg(box, 14, name, inside, _NAME)}{_line_svg(box, 27, words, inside, _SMALL, 'bg-soft')}</g>"
    )


def _line_svg(box: Box, down: float, words: str, inside: float, size: float, css: str = "") -> str:
    """Return the SVG of a line of text, `down` pixels below the upper side of a box, cut to `inside` pixels; a
    picture that zooms takes the whole text from `data-full`.
    """
    short = fit_text(words, inside, size)
    drawn = text(box.x + 6, box.y + down, short or "…", size, css)
    if short == words:
        return drawn
    return drawn.replace("<text ", f'<text data-full="{clean(words)}" ', 1)


def _rect_svg(box: Box, css: str, attributes: str = "") -> str:
    """Return the SVG of a rectangle over a box, with rounded corners; `attributes` are further ones, after a blank."""
    place = f'x="{number(box.x)}" y="{number(box.y)}" width="{number(box.width)}" height="{number(box.height)}"'
    return f'<rect class="{css}" {place} rx="4"{attributes}/>'


def _curve_path(a: Box, b: Box, from_lane: bool) -> str:
    """Return the data of an SVG path for an arrow from box `a` to box `b`, between the sides that face each other: from
    the right side of `a` if there is room, else from its lower or upper side. With `from_lane`, `a` stands in a lane of
    queues, from where it may also lead to the left."""
    if a.x + a.width < b.x:
        start = a.right
        end = b.left
        across = True
    elif b.x + b.width < a.x and from_lane:
        start = a.left
        end = b.right
        across = True
    elif a.bottom <= b.y:
        start = a.below
        end = b.above
        across = False
    elif b.bottom <= a.y:
        start = a.above
        end = b.below
        across = False
    else:
        start = a.left
        end = b.right
        across = True
    if across:
        bend = (end[0] - start[0]) / 2
    else:
        bend = (end[1] - start[1]) / 2
    if across:
        first = (start[0] + bend, start[1])
    else:
        first = (start[0], start[1] + bend)
    if across:
        second = (end[0] - bend, end[1])
    else:
        second = (end[0], end[1] - bend)
    points = " ".join(f"{number(x)} {number(y)}" for x, y in (first, second, end))
    return f"M{number(start[0])} {number(start[1])}C{points}"
