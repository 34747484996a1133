"""Small helpers for SVG text: escaping, texts that fit their box, elements with tooltips."""

import re
import unicodedata
from html import escape
from typing import Final

from buda_emu.screen import UNPRINTED

CHARACTER: Final = 0.62  # width of a character of a monospace font, in parts of its size; the widest in use
_CONTROL: Final = re.compile(rf"[\x00-\x09\x0b-\x1f{UNPRINTED}\ud800-\udfff\ufffe\uffff]")


def clean(text: str) -> str:
    """Escaped for text and attributes; control characters but line breaks, which tooltips have, become question marks,
    as XML cannot hold most of them, and so does what turns the direction of writing."""
    return escape(_CONTROL.sub("?", text), quote=True)


def width_of(text: str, size: float) -> float:
    """A width that the text does not exceed in a monospace font of that size."""
    units = sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
    return units * size * CHARACTER


def fitted(text: str, width: float, size: float) -> str:
    """The text, its middle left out where it is too wide: names often differ at their ends."""
    if width_of(text, size) <= width:
        return text
    most = max(int(width / (size * CHARACTER)) - 1, 0)
    while most > 0:
        tail = most // 2
        short = f"{text[: most - tail]}…{text[len(text) - tail :] if tail else ''}"
        if width_of(short, size) <= width:
            return short
        most -= 1
    return ""


def text(x: float, y: float, content: str, size: float, css: str = "", anchor: str = "start") -> str:
    """A line of text whose baseline is at y."""
    if not content:
        return ""
    return (
        f'<text x="{number(x)}" y="{number(y)}" font-size="{number(size)}" text-anchor="{anchor}"'
        f"{f' class={chr(34)}{css}{chr(34)}' if css else ''}>{clean(content)}</text>"
    )


def number(value: float) -> str:
    """As short as it is exact to a hundredth."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def open_chart(width: float, height: float, title: str, css: str = "") -> str:
    """The opening tag of a chart that the page's style sheet colours; `css`: further classes, after a blank."""
    size = f'width="{number(width)}" height="{number(height)}" viewBox="0 0 {number(width)} {number(height)}"'
    return f'<svg class="chart{css}" role="img" aria-label="{clean(title)}" {size}>'
