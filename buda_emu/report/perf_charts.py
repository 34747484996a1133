"""Charts of modelled cycles as inline SVG: what limits an epoch, its timeline, its roofline. Colours: style.css."""

from collections.abc import Sequence
from math import floor, log10
from typing import Final

from buda_emu.report.svg import clean, fitted, number, open_chart, text
from buda_emu.report.text import number as figure
from buda_emu.timing.figures import OpFigures
from buda_emu.timing.result import EpochReport

_SMALL: Final = 10.0
_SIZE: Final = 11.0
_NAMES: Final = 190
_ROW: Final = 18
_BAR: Final = 13
MOST_ROWS: Final = 40
_INPUTS_SHOWN: Final = 3


def limits_chart(epoch: EpochReport) -> str:
    """The busiest ops, channels and transfers: how much of the time between two inputs each works."""
    rows = sorted(epoch.timing.busy(), key=lambda item: -item[1].cycles)[:MOST_ROWS]
    width, room = 640, 640 - _NAMES - 120
    parts = [open_chart(width, len(rows) * _ROW + 8, "what limits the epoch")]
    for position, (kind, unit) in enumerate(rows):
        name, cycles = unit.name, unit.cycles
        y = 4 + position * _ROW
        share = min(cycles / max(epoch.pace, 1.0), 1.0)
        css = "bar worst" if position == 0 and share >= 0.9 else "bar" if kind == "op" else "bar data"
        parts.append(text(_NAMES, y + 11, fitted(name, _NAMES - 6, _SIZE), _SIZE, "", "end"))
        box = f'x="{_NAMES + 8}" y="{y}" width="{number(max(room * share, 1.0))}" height="{_BAR}"'
        tip = clean(f"{kind} {name}: {cycles:.0f} of {epoch.pace:.0f} cycles of an input")
        parts.append(f'<rect class="{css}" {box}><title>{tip}</title></rect>')
        parts.append(text(_NAMES + 14 + room * share, y + 11, f"{100 * share:.0f} %, {cycles:.0f}", _SMALL, "soft"))
    return "".join([*parts, "</svg>"])


def timeline_chart(epoch: EpochReport) -> str:
    """What each op does over the last modelled inputs; shades tell one input from the next."""
    timing, result = epoch.timing, epoch.timing.timing
    shown = min(timing.modelled, _INPUTS_SHOWN)
    units = {name: unit for unit, name in enumerate(result.units)}
    end = result.makespan
    begin = max(0.0, end - shown * epoch.pace) if timing.modelled > shown else 0.0
    rows = sorted(timing.ops, key=lambda item: -item.active)[:MOST_ROWS]
    rows = [item for item in timing.ops if item in rows]
    width, room = 900, 900 - _NAMES - 16
    parts = [open_chart(width, 26 + len(rows) * _ROW, "timeline", " fixed")]
    for tick in _ticks(begin, end):
        x = _NAMES + 8 + room * (tick - begin) / max(end - begin, 1)
        parts.append(f'<path class="grid" d="M{number(x)} 20V{26 + len(rows) * _ROW}"/>')
        parts.append(text(x, 13, f"{tick:.0f}", _SMALL, "soft", "middle"))
    for position, item in enumerate(rows):
        y = 24 + position * _ROW
        parts.append(text(_NAMES, y + 11, fitted(item.op, _NAMES - 6, _SIZE), _SIZE, "", "end"))
        tasks = (result.unit == units[item.op]).nonzero()[0].tolist()
        for place, task in enumerate(tasks):
            first, last = float(result.start[task]), float(result.end[task])
            if last <= begin:
                continue
            left = _NAMES + 8 + room * (max(first, begin) - begin) / max(end - begin, 1)
            size = room * (last - max(first, begin)) / max(end - begin, 1)
            entry = place // item.parts
            box = f'x="{number(left)}" y="{y}" width="{number(max(size, 0.6))}" height="{_BAR}"'
            tip = clean(f"{item.op}: input {entry}, part {place % item.parts}, {first:.0f} to {last:.0f}")
            parts.append(f'<rect class="h{3 if entry % 2 else 6}" {box}><title>{tip}</title></rect>')
    return "".join([*parts, "</svg>"])


def roofline_chart(ops: Sequence[OpFigures], bytes_of: dict[str, float], stream: float) -> str:
    """Math utilisation of each op over its math cycles for each byte that a core moves, under the roof of the NoC."""
    points = [
        (op, op.math / bytes_of[op.op], 100 * op.math / max(op.cycles_per_input or op.cycles_first, 1.0))
        for op in ops if bytes_of.get(op.op, 0) > 0 and op.math > 0
    ]  # fmt: skip
    if not points:
        return ""
    lows = [value for _, value, _ in points]
    low, high = floor(log10(min(*lows, 1 / stream))), floor(log10(max(*lows, 1 / stream))) + 1
    left, top, room, height = 56.0, 12.0, 480.0, 260.0

    def x_of(value: float) -> float:
        return left + room * (log10(value) - low) / (high - low)

    def y_of(percent: float) -> float:
        return top + height * (1 - min(percent, 100.0) / 100)

    parts = [open_chart(560, 316, "roofline")]
    for decade in range(low, high + 1):
        x = x_of(10.0**decade)
        parts.append(f'<path class="grid" d="M{number(x)} {top}V{top + height}"/>')
        parts.append(text(x, top + height + 14, f"1e{decade}", _SMALL, "soft", "middle"))
    for percent in (0, 25, 50, 75, 100):
        parts.append(f'<path class="grid" d="M{left} {number(y_of(percent))}H{left + room}"/>')
        parts.append(text(left - 6, y_of(percent) + 4, f"{percent} %", _SMALL, "soft", "end"))
    roof = [(10 ** (low + (high - low) * i / 60)) for i in range(61)]
    path = "L".join(f"{number(x_of(value))} {number(y_of(100 * min(1.0, value * stream)))}" for value in roof)
    parts.append(f'<path class="limit" d="M{path}"><title>{stream:g} bytes a cycle into one core</title></path>')
    for op, value, percent in points:
        tip = clean(f"{op.op} ({op.type}): {figure(value)} math cycles a byte, {percent:.1f} % of the math unit")
        place = f'cx="{number(x_of(value))}" cy="{number(y_of(percent))}"'
        parts.append(f'<circle class="bar" {place} r="4"><title>{tip}</title></circle>')
    parts.append(text(left + room / 2, top + height + 32, "math cycles for each byte moved", _SMALL, "soft", "middle"))
    return "".join([*parts, "</svg>"])


def _ticks(begin: float, end: float) -> list[float]:
    """About five round numbers."""
    step = 10.0 ** floor(log10(max((end - begin) / 5, 1.0)))
    step *= next(factor for factor in (1, 2, 5, 10) if (end - begin) / (step * factor) <= 6)
    first = (begin // step + 1) * step
    return [first + step * i for i in range(int((end - first) // step) + 1)]
