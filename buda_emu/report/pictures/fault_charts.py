"""Charts of a campaign of faults: outcomes as bars, and the tiles of outputs that faults change."""

from collections.abc import Mapping, Sequence
from typing import Final

from buda_emu.injection.result import OUTCOMES, Guarded, Share, column
from buda_emu.records import dataclass
from buda_emu.report.pictures.svg import clean, fitted, number, open_chart, text
from buda_emu.report.terminal.text import percent

_NAMES: Final = 180
_WIDTH: Final = 420
_BAR: Final = 13
_ROW: Final = 18
_COLOURS: Final = {
    "masked": "#6aa978", "tolerable": "#bfc86a", "corrupt": "#d9822b", "not finite": "#c2453c", "deadlock": "#3f6fb5",
    "stopped": "#7a4ea3", "late": "#7d8894", "corrected": "#3f8f86", "detected": "#6fb7ae",
}  # fmt: skip
"""Of outcomes, and of what a protection leaves."""
_CELL: Final = 24


@dataclass(frozen=True, slots=True)
class Bar:
    """A row: so many of each outcome, and what stands behind it."""

    name: str
    counts: Mapping[str, int]
    figure: str


def share_bar(share: Share) -> Bar:
    """Of a share: how much fails, with the interval in which it lies."""
    low, high = share.interval
    counts = {outcome: share.counts[column(outcome)] for outcome in OUTCOMES}
    return Bar(share.name, counts, f"{percent(share.share)} fail ({percent(low)} to {percent(high)})")


def guarded_bar(item: Guarded) -> Bar:
    """Of a protection: what is left of all faults."""
    counts = {outcome: item.counts.get(column(outcome), 0) for outcome in _COLOURS}
    return Bar(item.name, counts, f"{item.failures} fail, {item.before} without")


def outcome_bars(rows: Sequence[Bar], title: str) -> str:
    """A bar for each row, as long for all, parted by outcome."""
    right = _NAMES + _WIDTH
    height = 34 + len(rows) * _ROW
    parts = [open_chart(right + 250, height, title, " fixed")]
    there = [outcome for outcome in _COLOURS if any(row.counts.get(outcome) for row in rows)]
    x = float(_NAMES)
    for outcome in there:
        parts.append(f'<rect x="{number(x)}" y="4" width="12" height="12" fill="{_COLOURS[outcome]}"/>')
        parts.append(text(x + 17, 14, outcome, 11, "soft"))
        x += 32 + 7 * len(outcome)
    for place, row in enumerate(rows):
        y = 26 + place * _ROW
        parts.append(text(_NAMES - 6, y + 11, fitted(row.name, _NAMES - 10, 11), 11, "", "end"))
        begin, faults = float(_NAMES), sum(row.counts.values())
        for outcome in there:
            count = row.counts.get(outcome, 0)
            length = _WIDTH * count / max(1, faults)
            tip = clean(f"{row.name}: {count} of {faults} {outcome}")
            box = f'x="{number(begin)}" y="{y}" width="{number(length)}" height="{_BAR}"'
            parts.append(f'<rect {box} fill="{_COLOURS[outcome]}"><title>{tip}</title></rect>' if count else "")
            begin += length
        parts.append(text(right + 8, y + 11, row.figure, 11, "soft"))
    return "".join([*parts, "</svg>"])


def tile_map(name: str, shape: tuple[int, int, int], hits: Sequence[int]) -> str:
    """The tiles of an output (t, rows, columns), the redder the more faults change them; `hits`: faults by tile."""
    t, rows, cols = shape
    cell = max(2.0, min(float(_CELL), (_NAMES + _WIDTH) / max(1, cols)))
    most = max(*hits, 1)
    parts = [open_chart(round(cols * cell) + 2, round(t * (rows * cell + 6)) + 2, f"tiles of {name}", " fixed")]
    for tile, count in enumerate(hits):
        at, place = divmod(tile, rows * cols)
        row, col = divmod(place, cols)
        x, y = 1 + col * cell, 1 + at * (rows * cell + 6) + row * cell
        where = f"t {at}, " if t > 1 else ""
        tip = clean(f"{name} {where}tile {row}, {col}: changed by {count} faults that fail")
        parts.append(
            f'<rect x="{number(x)}" y="{number(y)}" width="{number(cell)}" height="{number(cell)}" fill="#c2453c" '
            f'fill-opacity="{number(0.06 + 0.94 * count / most)}" stroke="#8884" stroke-width="0.5">'
            f"<title>{tip}</title></rect>"
        )
    return "".join([*parts, "</svg>"])
