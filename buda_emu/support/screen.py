"""Properties of the output: how many columns it has, whether it shows colours, and which characters must not reach it.

A pipe or a file has neither: what is printed there is as wide as it comes out, and the same everywhere.
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
"""A narrower terminal is written on as if it had so many."""
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


def escape_controls(text: str) -> str:
    """Names of a document must not steer a terminal: control characters but line feeds, tabs and our own colours are
    escaped, and so is what turns the direction of writing."""
    if text.isprintable():  # most names are: no pattern to compile
        return text
    return re.sub(_STEERING, _escape, text)


def plain(text: str) -> str:
    """The same where there are no colours: no control character stays but line feeds and tabs."""
    return text if text.isprintable() else re.sub(_CONTROLS, _escape, text)


def lines_of(text: str) -> list[str]:
    """The lines of a text for people, which line feeds alone end: `str.splitlines` also breaks names at characters that
    are escaped when they are printed."""
    return text.removesuffix("\n").split("\n") if text else []


def on_one_line(name: str) -> str:
    """A name without any control character, which is no command of `harmless` wherever it stands."""
    return harmless(plain(name).replace("\n", "\\n").replace("\t", "\\t"))


def harmless(text: str, begun: str = "") -> str:
    """The text without commands to a system that reads it as the log of a build: of each the first character is escaped
    as in Python and JSON. `begun`: what stands before it on its first line."""
    if "::" not in begun + text and "##" not in begun + text and "section_" not in begun + text:
        return text

    def escaped(found: re.Match[str]) -> str:
        start = found.start("line") if found["line"] else found.start("mark")
        first = max(start, len(begun)) - found.start()
        whole = found[0]
        if first >= len(whole):  # all of it stands there already
            return whole
        return f"{whole[:first]}\\u{ord(whole[first]):04x}{whole[first + 1 :]}"

    return re.sub(_COMMAND, escaped, begun + text)[len(begun) :]


class CleanStream:
    """A text stream of the process on which nothing that is written steers a terminal or a system that reads the log of
    a build, whatever names files and ops have. Control characters are escaped, but line feeds, tabs and the colours of
    a screen that has some; `harmless` is what becomes of lines. `names`: texts with line feeds of which it is known
    that they are names, and that each is on one line therefore. Everything but writing is the stream's own.
    """

    def __init__(self, stream: IO[str], names: Iterable[str] = ()) -> None:
        self.stream = stream
        self._names: dict[str, str] = {}
        self._begun = ""
        self.note(names)

    def note(self, names: Iterable[str]) -> None:
        """That these texts are names, too."""
        self._names.update({name: on_one_line(name) for name in names if "\n" in name})

    def write(self, text: str) -> int:
        """Write a text as it is clean; the number of its characters."""
        clean = text
        for name, line in self._names.items():
            clean = clean.replace(name, line)
        coloured = "\x1b" in clean and (current().colour or screen_of(self.stream).colour)
        clean = harmless(escape_controls(clean) if coloured else plain(clean), self._begun)
        line = clean[clean.rfind("\n") + 1 :]
        self._begun = _beginning(line if "\n" in clean else self._begun + line)
        self.stream.write(clean)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def _beginning(line: str) -> str:
    """Of an unfinished line as much as tells what may become a command."""
    if len(line) <= _LONGEST_BEGINNING:
        return line
    return f"{line.strip()[:1]}{line[-_LONGEST_BEGINNING // 2 :]}"


def as_it_is(stream: IO[str]) -> IO[str]:
    """The stream below a `CleanStream`: for what is a command to a terminal or a build, and for data."""
    return stream.stream if isinstance(stream, CleanStream) else stream


def note_names(names: Iterable[str]) -> None:
    """Where standard output or standard error is a clean stream, each of these names is on one line from now on."""
    known = tuple(names)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, CleanStream):
            stream.note(known)


@contextmanager
def clean_streams(names: Iterable[str] = ()) -> Generator[None]:
    """Standard output and standard error are clean streams meanwhile."""
    before = sys.stdout, sys.stderr
    kept = tuple(names)
    sys.stdout, sys.stderr = (cast("Any", CleanStream(as_it_is(stream), kept)) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()
