"""Properties of the output: how many columns it has, whether it shows colours, and which characters must not reach it.

A pipe or a file has neither: what is printed there is as wide as it comes out, and the same everywhere.
"""

import os
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import IO, Final, Literal

from buda_emu.records import dataclass

When = Literal["auto", "always", "never"]
WHEN: Final[tuple[When, ...]] = ("auto", "always", "never")
Style = Literal["bold", "dim", "red", "green", "yellow", "blue", "cyan"]
_CODES: Final[Mapping[Style, int]] = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "blue": 34, "cyan": 36}
LEAST_COLUMNS: Final = 40
"""A narrower terminal is written on as if it had so many."""
# Not the colours that are written here: ESC [ numbers m.
_STEERING = r"\x1b(?!\[[\d;]{0,8}m)|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]"


@dataclass(frozen=True, slots=True)
class Screen:
    """`columns`: None for no limit."""

    columns: int | None = None
    colour: bool = False

    def paint(self, text: str, *styles: Style) -> str:
        """The text in these styles, as it is without colours."""
        if not self.colour or not text or not styles:
            return text
        return f"\x1b[{';'.join(str(_CODES[style]) for style in styles)}m{text}\x1b[0m"


_printing_on = [Screen()]


def current() -> Screen:
    """What is being printed on."""
    return _printing_on[-1]


@contextmanager
def printing_on(screen: Screen) -> Generator[None]:
    """What is printed meanwhile goes there."""
    _printing_on.append(screen)
    try:
        yield
    finally:
        _printing_on.pop()


def screen_of(stream: IO[str] | None, when: When = "auto") -> Screen:
    """A stream of this process.

    `COLUMNS` says how wide, also of a pipe. Where `when` is "auto", first `NO_COLOR` and then `FORCE_COLOR` (not empty)
    decide about colours, else whether it is a terminal.
    """
    terminal = stream is not None and stream.isatty()
    return Screen(_columns(stream if terminal else None), _colours(terminal, when))


def _columns(terminal: IO[str] | None) -> int | None:
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return max(int(given), LEAST_COLUMNS)
    if terminal is None:
        return None
    try:
        return max(os.get_terminal_size(terminal.fileno()).columns or 80, LEAST_COLUMNS)
    except (OSError, ValueError):
        return 80


def _colours(terminal: bool, when: When) -> bool:
    if when != "auto":
        return when == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return terminal and os.environ.get("TERM") != "dumb"


def shown(text: str) -> str:
    """Names of a document must not steer a terminal: control characters but line feeds, tabs and our own colours are
    escaped, and so is what turns the direction of writing."""
    if text.isprintable():  # most names are: no pattern to compile
        return text
    return re.sub(_STEERING, lambda found: found[0].encode("unicode_escape").decode(), text)
