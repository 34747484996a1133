"""Properties of the output: how many columns it has, whether it shows colours, and which characters must not reach it.

A pipe or a file has neither columns nor colours: the text printed there has its natural width and is the same
everywhere.
"""

import os
import re
import sys
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import IO, Any, Final, Literal, cast

from buda_emu.support.records import dataclass

When = Literal["auto", "always", "never"]
WHEN: Final[tuple[When, ...]] = ("auto", "always", "never")
Style = Literal["bold", "dim", "red", "green", "yellow", "blue", "cyan"]
_CODES: Final[Mapping[Style, int]] = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "blue": 34, "cyan": 36}
LEAST_COLUMNS: Final = 40
"""A narrower terminal is written on as if it had so many: tables with fewer would cut every name."""
_DIRECTIONS: Final = r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # they turn the direction of writing
UNPRINTED: Final = rf"\x7f-\x9f\u2028\u2029{_DIRECTIONS}"
"""Control characters from DEL on and their like, which no shown text has, for the brackets of a pattern."""
_CONTROLS: Final = rf"[\x00-\x08\x0b-\x1f{UNPRINTED}]"
# Not the colours that are written here: ESC [ numbers m.
_STEERING: Final = rf"\x1b(?!\[[\d;]{{0,8}}m)|[\x00-\x08\x0b-\x1a\x1c-\x1f{UNPRINTED}]"
# Commands to systems that read the log of a build: a line that begins with `::`, after any white space (GitHub), `##[`,
# `##vso[` and `##teamcity[` anywhere (GitHub, Azure, TeamCity), a line that begins with `section_start:` (GitLab).
_COMMAND = r"(?m)^[^\S\n]*(?P<line>::|section_(?:start|end):)|(?P<mark>##)\w*\["
_LONGEST_BEGINNING: Final = 4096
"""Characters of an unfinished line that are looked at once more with what follows them."""


@dataclass(frozen=True, slots=True)
class Screen:
    """A place to print on. `columns` is None where lines may have any length."""

    columns: int | None = None
    colour: bool = False

    def paint(self, text: str, *styles: Style) -> str:
        """Return the text in these styles, or as it is on a screen without colours."""
        if not self.colour or not text or not styles:
            return text
        return f"\x1b[{';'.join(str(_CODES[style]) for style in styles)}m{text}\x1b[0m"


_printing_on = [Screen()]


def current() -> Screen:
    """Return the screen that is printed on at present."""
    return _printing_on[-1]


@contextmanager
def printing_on(screen: Screen) -> Generator[None]:
    """Make `screen` the current one during the block."""
    _printing_on.append(screen)
    try:
        yield
    finally:
        _printing_on.pop()


def screen_of(stream: IO[str] | None, when: When = "auto") -> Screen:
    """Return the screen of a stream of this process.

    `COLUMNS` sets the width, also of a pipe. Where `when` is "auto", first `NO_COLOR` and then `FORCE_COLOR` (not
    empty) decide about colours, else whether the stream is a terminal.
    """
    terminal = stream is not None and stream.isatty()
    columns = _configured_columns(stream if terminal else None)
    return Screen(columns, _wants_colours(terminal, when))


def _configured_columns(terminal: IO[str] | None) -> int | None:
    """Return the columns of a terminal, or what `COLUMNS` says; None where neither is there."""
    configured = os.environ.get("COLUMNS", "")
    if configured.isdecimal() and int(configured):
        return max(int(configured), LEAST_COLUMNS)
    if terminal is None:
        return None
    try:
        return max(os.get_terminal_size(terminal.fileno()).columns or 80, LEAST_COLUMNS)
    except (OSError, ValueError):
        return 80


def _wants_colours(terminal: bool, when: When) -> bool:
    """Return whether to print colours, as `screen_of` describes."""
    if when != "auto":
        return when == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return terminal and not _is_dumb()


def has_cursor(stream: IO[str] | None) -> bool:
    """Return whether a stream is a terminal on which a line can be replaced. One that calls itself dumb, as the pseudo
    terminal of a build does, shows the commands to its cursor as text."""
    return stream is not None and stream.isatty() and not _is_dumb()


def _is_dumb() -> bool:
    """Return whether the terminal says that it knows no commands."""
    return os.environ.get("TERM") == "dumb"


def escape_controls(text: str) -> str:
    """Return a text in which the names of a document cannot steer a terminal: control characters are escaped, but for
    line feeds, tabs and our own colours, and so are characters that turn the direction of writing."""
    if text.isprintable():  # most names are: no pattern to compile
        return text
    return re.sub(_STEERING, _escape, text)


def plain(text: str) -> str:
    """Return a text for a screen without colours: all control characters but line feeds and tabs are escaped."""
    if text.isprintable():
        return text
    return re.sub(_CONTROLS, _escape, text)


def lines_of(text: str) -> list[str]:
    """Split a text into lines for output, at line feeds alone; `str.splitlines` would also break at characters in names
    that are escaped when printed."""
    if not text:
        return []
    return text.removesuffix("\n").split("\n")


def on_one_line(name: str) -> str:
    """Return a name without any control character, in which `harmless` finds no command wherever it stands."""
    return harmless(plain(name).replace("\n", "\\n").replace("\t", "\\t"))


def harmless(text: str, begun: str = "") -> str:
    """Return the text without commands to a system that reads it as the log of a build: the first character of each
    command is escaped as in Python and JSON. `begun`: the text before it on its first line."""
    if "::" not in begun + text and "##" not in begun + text and "section_" not in begun + text:
        return text

    def escape_first(match: re.Match[str]) -> str:
        """Return a command with its first character that was not printed before escaped."""
        start = match.start("line") if match["line"] else match.start("mark")
        first = max(start, len(begun)) - match.start()
        command = match[0]
        if first >= len(command):  # all of it was written before
            return command
        return f"{command[:first]}\\u{ord(command[first]):04x}{command[first + 1 :]}"

    return re.sub(_COMMAND, escape_first, begun + text)[len(begun) :]


class CleanStream:
    """A text stream of the process on which no written text steers a terminal or a system that reads the log of a
    build, whatever names files and ops have.

    Control characters are escaped, but for line feeds, tabs and the colours of a screen that has some; lines pass
    through `harmless`. `names`: texts with line feeds that are known to be names, and are therefore printed on one
    line. Everything but writing is the stream's own.
    """

    def __init__(self, stream: IO[str], names: Iterable[str] = ()) -> None:
        self.stream = stream
        self._names: dict[str, str] = {}
        self._begun = ""
        self.note(names)

    def note(self, names: Iterable[str]) -> None:
        """Add texts that are known to be names."""
        self._names.update({name: on_one_line(name) for name in names if "\n" in name})

    def write(self, text: str) -> int:
        """Write a text cleaned, and return the number of its characters."""
        clean = text
        for name, line in self._names.items():
            clean = clean.replace(name, line)
        coloured = "\x1b" in clean and (current().colour or screen_of(self.stream).colour)
        clean = escape_controls(clean) if coloured else plain(clean)
        clean = harmless(clean, self._begun)
        line = clean[clean.rfind("\n") + 1 :]
        if "\n" not in clean:
            line = self._begun + line
        self._begun = _command_beginning(line)
        self.stream.write(clean)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts, each cleaned."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def _command_beginning(line: str) -> str:
    """Return as much of an unfinished line as decides whether it becomes a command."""
    if len(line) <= _LONGEST_BEGINNING:
        return line
    return f"{line.strip()[:1]}{line[-_LONGEST_BEGINNING // 2 :]}"


def as_it_is(stream: IO[str]) -> IO[str]:
    """Return the stream below a `CleanStream`, for data and for text that is meant as a command to a terminal or a
    build."""
    if isinstance(stream, CleanStream):
        return stream.stream
    return stream


def note_names(names: Iterable[str]) -> None:
    """Print each of these names on one line from now on, where standard output or standard error is a clean stream."""
    texts = tuple(names)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, CleanStream):
            stream.note(texts)


@contextmanager
def clean_streams(names: Iterable[str] = ()) -> Generator[None]:
    """Make standard output and standard error clean streams during the block."""
    before = sys.stdout, sys.stderr
    texts = tuple(names)
    sys.stdout, sys.stderr = (cast("Any", CleanStream(as_it_is(stream), texts)) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _escape(match: re.Match[str]) -> str:
    """Return the escape of a matched character, as Python writes it in a string."""
    return match[0].encode("unicode_escape").decode()
