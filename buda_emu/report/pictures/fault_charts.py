"""Charts of a campaign of faults: what flips of each bit of a format do."""

from collections.abc import Sequence
from typing import Final

from buda_emu.injection.result import OUTCOMES, Share
from buda_emu.report.pictures.svg import clean, number, open_chart, text
from buda_emu.report.terminal.text import percent

_NAMES: Final = 180
_WIDTH: Final = 420
_BAR: Final = 13
_ROW: Final = 18
_COLOURS: Final = {
    "masked": "#6aa978", "tolerable": "#bfc86a", "corrupt": "#d9822b", "not finite": "#c2453c", "stopped": "#7a4ea3",
}  # fmt: skip


def outcome_bars(rows: Sequence[Share], title: str) -> str:
    """A bar for each row, as long for all, parted by outcome; the figure behind it is the share that fails, with the
    interval in which it lies."""
    right = _NAMES + _WIDTH
    height = 34 + len(rows) * _ROW
    parts = [open_chart(right + 250, height, title, " fixed")]
    x = float(_NAMES)
    for outcome, colour in _COLOURS.items():
        parts.append(f'<rect x="{number(x)}" y="4" width="12" height="12" fill="{colour}"/>')
        parts.append(text(x + 17, 14, outcome, 11, "soft"))
        x += 32 + 7 * len(outcome)
    for place, row in enumerate(rows):
        y = 26 + place * _ROW
        parts.append(text(_NAMES - 6, y + 11, row.name, 11, "", "end"))
        begin = float(_NAMES)
        for outcome in OUTCOMES:
            count = row.counts[outcome.replace(" ", "_")]
            length = _WIDTH * count / max(1, row.faults)
            tip = clean(f"{row.name}: {count} of {row.faults} {outcome}")
            box = f'x="{number(begin)}" y="{y}" width="{number(length)}" height="{_BAR}"'
            parts.append(f'<rect {box} fill="{_COLOURS[outcome]}"><title>{tip}</title></rect>' if count else "")
            begin += length
        low, high = row.interval
        figure = f"{percent(row.share)} fail ({percent(low)} to {percent(high)})"
        parts.append(text(right + 8, y + 11, figure, 11, "soft"))
    return "".join([*parts, "</svg>"])
