"""The place of the cursor in a text that may be incomplete: section, entry, open brackets and keys, found without a
parser."""

import re
from collections.abc import Iterator
from dataclasses import field
from typing import Final, Literal

from buda_emu.support.records import dataclass

# A text in double quotes matches only up to 200 characters. A quote that is left open is tried again from each escaped
# quote after it, and without the bound the time would grow with the square of the text.
_TOKEN: Final = re.compile(
    r"'[^']*'|\"(?:[^\"\\]|\\.){0,200}\"|#.*|[{}\[\],]|:(?=[\s,\[\]{}]|$)|[^\s{}\[\],:#'\"]+(?::[^\s,{}\[\]]+)*"
)
_KEY: Final = re.compile(r"\s*((?:- +)*)([^\s#{}\[\],'\"]+?)\s*:(?:\s|$)")
_BEHIND: Final = re.compile(r"[^\s{}\[\],:'\"#]*\s*(:(?=\s|$))?")
_BACKWARD_WORD: Final = re.compile(r"[^\s{}\[\],:'\"#]*")
_OPENING: Final = ("{", "[")
_CLOSING: Final = ("}", "]")
_LINES_BEHIND: Final = 60  # lines after that of the cursor in which keys of the same brackets are looked for


@dataclass(slots=True)
class Level:
    """An open bracket, or a block.

    `key` is the key whose value is being written; it is "" while a key or a list item is being written. `keys` are the
    keys in the level, before and after the cursor, `values` the values by key, `items` the items of a list before the
    cursor.
    """

    kind: Literal["map", "list"]
    key: str = ""
    keys: list[str] = field(default_factory=list[str])
    values: dict[str, str] = field(default_factory=dict[str, str])
    items: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class Place:
    """The place of the cursor.

    `path` holds the keys of the blocks around it, the section first; `levels` the brackets that are open inside the
    innermost block; `block` the keys of that block. `word` is the part before the cursor of the word that is being
    typed, which starts at `column`; `has_value` is true if a colon follows.
    """

    path: tuple[str, ...]
    levels: list[Level]
    word: str
    column: int
    block: list[str]
    has_value: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        """The whole path of keys from the section down to the cursor."""
        return (*self.path, *(level.key for level in self.levels if level.key))


def place_at(lines: list[str], line: int, column: int) -> Place:
    """Return the place before `column` of `line`, both counting from 1."""
    row = lines[line - 1] if line <= len(lines) else ""
    match = _BACKWARD_WORD.match(row[: column - 1][::-1])
    word = match[0][::-1] if match is not None else ""
    start, path = _innermost_entry(lines, line)
    head = _KEY.match(lines[start - 1])
    if head is not None and (start < line or head.end(2) + 1 < column):
        path = (*path, head[2])
        begin = head.end()
    else:
        begin = len(lines[start - 1]) - len(lines[start - 1].lstrip(" -"))
    levels: list[Level] = []
    for number in range(start, line):
        _scan(lines[number - 1][begin:], levels)
        begin = 0
    _scan(lines[line - 1][begin : max(column - 1 - len(word), begin)], levels)
    if head is not None:
        indent = head.start(2)
    else:
        indent = len(row) - len(row.lstrip(" -"))
    behind = _BEHIND.match(row[column - 1 :])
    place = Place(
        path=path,
        levels=levels,
        word=word,
        column=column - len(word),
        block=_keys_of_block(lines, start, indent),
        has_value=bool(behind is not None and behind[1]),
    )
    _add_keys_after_cursor(place, lines, line, column)
    return place


def _innermost_entry(lines: list[str], line: int) -> tuple[int, tuple[str, ...]]:
    """Return the line on which the innermost entry of a block around `line` begins, and the keys of the blocks around
    that entry."""
    section = _section_line(lines, line)
    depth = 0
    start = section
    entry_indent = 0
    blocks: list[tuple[int, str]] = []
    around: tuple[str, ...] = ()
    for number in range(section, line + 1):
        row = lines[number - 1]
        text = row.lstrip(" ")
        if not text or text[0] == "#":
            if number == line and depth == 0:  # an entry that is about to be written
                around = tuple(key for indent, key in blocks if indent < len(row))
                start = number
            continue
        indent = len(row) - len(text)
        head = _KEY.match(row)
        # An open bracket cannot go on in a line that is indented no deeper than its entry: it was left open.
        is_bracket_left_open = indent <= entry_indent and (head is not None or text.startswith("- "))
        if depth == 0 or is_bracket_left_open:
            depth = 0
            start = number
            entry_indent = indent
            around = _enter_entry(blocks, row, head)
        depth = max(depth + _bracket_balance(row), 0)
    return start, around


def _section_line(lines: list[str], line: int) -> int:
    """Return the number of the line with the key of the section that a line is in; 1 above the first section."""
    while line > 1 and not lines[line - 1][:1].isalpha():
        line -= 1
    return line


def _enter_entry(blocks: list[tuple[int, str]], row: str, head: re.Match[str] | None) -> tuple[str, ...]:
    """Return the keys of the blocks around an entry, which begins with `row`, and update `blocks`.

    `blocks` are the indentations and keys of the open blocks. Those that end before the entry are removed, and the
    entry is added if it is a key with a block below.
    """
    if head is not None:
        indent = head.start(2)
    else:
        indent = len(row) - len(row.lstrip(" -"))
    while blocks and blocks[-1][0] >= indent:
        blocks.pop()
    around = tuple(key for _, key in blocks)
    if head is not None:
        value, _, _comment = row[head.end() :].strip().partition("#")
        if not value:
            blocks.append((indent, head[2]))
    return around


def _tokens(text: str) -> Iterator[str]:
    """Yield the brackets, commas, colons and words of a piece of text, up to a comment."""
    for token in _TOKEN.findall(text):
        if token.startswith("#"):
            return
        yield token


def _bracket_balance(row: str) -> int:
    """Return the number of brackets that a line opens minus those that it closes."""
    if "#" not in row and "'" not in row and '"' not in row:
        return row.count("{") + row.count("[") - row.count("}") - row.count("]")
    return sum((token in _OPENING) - (token in _CLOSING) for token in _tokens(row))


def _scan(text: str, levels: list[Level]) -> None:
    """Follow the brackets of a piece of text: append a level for each that opens, remove the last for each that closes,
    and collect keys, values and items in the levels."""
    last_word = ""
    for token in _tokens(text):
        if token in _OPENING:
            levels.append(_level_of(token))
        elif token in _CLOSING:
            del levels[-1:]
        elif token in (",", ":"):
            if levels:
                _end_word(levels[-1], token, last_word)
        else:
            last_word = token.strip("'\"")
            if levels:
                _add_word(levels[-1], last_word)


def _level_of(bracket: str) -> Level:
    """Return a new, empty level of flow nesting: a map for `{`, a list for `[`."""
    if bracket == "{":
        return Level("map")
    return Level("list")


def _end_word(level: Level, separator: str, last_word: str) -> None:
    """Handle the separator after a word: a comma ends an entry of the level; a colon makes the word a key, whose value
    follows."""
    if separator == ",":
        level.key = ""
    else:
        level.key = last_word
        level.keys.append(last_word)


def _add_word(level: Level, word: str) -> None:
    """Add a word to the level: as an item, and as the value of the level's last key if it has one."""
    if level.key:
        level.values[level.key] = word
    level.items.append(word)


def _add_keys_after_cursor(place: Place, lines: list[str], line: int, column: int) -> None:
    """Add the keys and values that stand after the cursor to the levels that are open there, so that they are not
    offered again."""
    if not place.levels:
        return
    scan = _ScanBehind(place.levels)
    scan.read(_text_after_cursor(lines[line - 1], column) if line <= len(lines) else "")
    for row in lines[line : line + _LINES_BEHIND]:
        scan.read(row)


def _text_after_cursor(row: str, column: int) -> str:
    """Return the text of a line after the word at the cursor."""
    text = row[column - 1 :]
    match = _BEHIND.match(text)
    if match is None:
        return text
    colon = match[1] or ""
    return text[match.end() - len(colon) :]


class _ScanBehind:
    """A scan of the text after the cursor, which adds keys and values to the levels that are open at the cursor. It
    ends where the last of these is closed."""

    def __init__(self, levels: list[Level]) -> None:
        self._levels = levels
        self._open = [Level(level.kind, level.key) for level in levels]

    def read(self, text: str) -> None:
        """Follow the brackets of the next piece of text."""
        last_word = ""
        for token in _tokens(text):
            if not self._open:
                return
            if token in _OPENING:
                self._open.append(_level_of(token))
            elif token in _CLOSING:
                self._open.pop()
            elif token == ",":
                self._open[-1].key = ""
            elif token == ":":
                self._add_key(last_word)
            else:
                last_word = token.strip("'\"")
                self._add_value(last_word)

    def _add_key(self, key: str) -> None:
        """Add a key to the level that the scan is in, if that level was open at the cursor; its value follows."""
        self._open[-1].key = key
        level = self._level_at_cursor()
        if level is not None and key:
            level.keys.append(key)

    def _add_value(self, value: str) -> None:
        """Add a value to the level that the scan is in, if that level was open at the cursor and the value has a
        key."""
        key = self._open[-1].key
        level = self._level_at_cursor()
        if level is not None and key:
            level.values.setdefault(key, value)

    def _level_at_cursor(self) -> Level | None:
        """Return the level that the scan is in; None if that was opened after the cursor."""
        if len(self._open) > len(self._levels):
            return None
        return self._levels[len(self._open) - 1]


def _keys_of_block(lines: list[str], start: int, indent: int) -> list[str]:
    """Return the keys of the other entries of the block in which the entry on line `start`, indented by `indent`
    columns, stands."""
    keys: list[str] = []
    for step in (-1, 1):
        number = start + step
        while 0 < number <= len(lines):
            row = lines[number - 1]
            row_indent = len(row) - len(row.lstrip(" "))
            if row.strip() and not row.lstrip().startswith("#"):
                if row_indent < indent:
                    break
                head = _KEY.match(row)
                if row_indent == indent and head is not None:
                    keys.append(head[2])
            number += step
    return keys
