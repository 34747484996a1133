"""The place of the cursor in a text that may be incomplete: section, entry, open brackets and keys, found without a
parser."""

import re
from dataclasses import field
from typing import Final, Literal

from buda_emu.support.records import dataclass

# A text in double quotes is at most 200 characters long: with escaped quotes in it, one that is left open is looked for
# again from each of them.
_TOKEN: Final = re.compile(
    r"'[^']*'|\"(?:[^\"\\]|\\.){0,200}\"|#.*|[{}\[\],]|:(?=[\s,\[\]{}]|$)|[^\s{}\[\],:#'\"]+(?::[^\s,{}\[\]]+)*"
)
_KEY: Final = re.compile(r"\s*((?:- +)*)([^\s#{}\[\],'\"]+?)\s*:(?:\s|$)")
_BEHIND: Final = re.compile(r"[^\s{}\[\],:'\"#]*\s*(:(?=\s|$))?")
_BACKWARD_WORD: Final = re.compile(r"[^\s{}\[\],:'\"#]*")


@dataclass(slots=True)
class Level:
    """An open bracket, or a block.

    `key` is the key whose value is being written, "" while a key or list item is; `keys` are the keys in it, before
    and after the cursor; `items` the items of a list before the cursor.
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
        """Return the whole path of keys down to the cursor."""
        return (*self.path, *(level.key for level in self.levels if level.key))


def place_at(lines: list[str], line: int, column: int) -> Place:
    """Return the place before `column` of `line`, both counting from 1."""
    row = lines[line - 1] if line <= len(lines) else ""
    match = _BACKWARD_WORD.match(row[: column - 1][::-1])
    word = match[0][::-1] if match is not None else ""
    start, path = _entry(lines, line)
    head = _KEY.match(lines[start - 1])
    begin = 0
    if head is not None and (start < line or head.end(2) + 1 < column):
        path = (*path, head[2])
        begin = head.end()
    else:
        begin = len(lines[start - 1]) - len(lines[start - 1].lstrip(" -"))
    levels: list[Level] = []
    for number in range(start, line + 1):
        text = lines[number - 1]
        _scan(text[begin : len(text) if number < line else max(column - 1 - len(word), begin)], levels)
        begin = 0
    if head is not None:
        indent = head.start(2)
    else:
        indent = len(row) - len(row.lstrip(" -"))
    rest = _BEHIND.match(row[column - 1 :])
    place = Place(
        path=path,
        levels=levels,
        word=word,
        column=column - len(word),
        block=_siblings(lines, start, indent),
        has_value=bool(rest is not None and rest[1]),
    )
    _look_behind(place, lines, line, column)
    return place


def _entry(lines: list[str], line: int) -> tuple[int, tuple[str, ...]]:
    """Return the line on which the innermost block entry around `line` begins, and the keys of the blocks around it."""
    section = line
    while section > 1 and not lines[section - 1][:1].isalpha():
        section -= 1
    depth = 0
    start = section
    entry_indent = 0
    stack: list[tuple[int, str]] = []
    around: tuple[str, ...] = ()
    for number in range(section, line + 1):
        row = lines[number - 1]
        text = row.lstrip(" ")
        if not text or text[0] == "#":
            if number == line and depth == 0:  # an entry that is about to be written
                around = tuple(key for indent, key in stack if indent < len(row))
                start = number
            continue
        indent = len(row) - len(text)
        head = _KEY.match(row)
        if depth == 0 or (
            indent <= entry_indent and (head is not None or text.startswith("- "))
        ):  # a bracket was left open
            depth = 0
            start = number
            entry_indent = indent
            if head is not None:
                place = head.start(2)
            else:
                place = len(row) - len(row.lstrip(" -"))
            while stack and stack[-1][0] >= place:
                stack.pop()
            around = tuple(key for _, key in stack)
            if head is not None and not row[head.end() :].strip().partition("#")[0]:
                stack.append((place, head[2]))
        depth = max(depth + _bracket_balance(row), 0)
    return start, around


def _bracket_balance(row: str) -> int:
    """Return the number of brackets that a line opens minus those that it closes."""
    if "#" not in row and "'" not in row and '"' not in row:
        return row.count("{") + row.count("[") - row.count("}") - row.count("]")
    depth = 0
    for token in _TOKEN.findall(row):
        if token.startswith("#"):
            break
        depth += (token in ("{", "[")) - (token in ("}", "]"))
    return depth


def _scan(text: str, levels: list[Level]) -> None:
    """Follow the brackets of a piece of text: open and close levels, and collect their keys, values and items."""
    last = ""
    for token in _TOKEN.findall(text):
        top = levels[-1] if levels else None
        if token.startswith("#"):
            break
        if token in ("{", "["):
            levels.append(Level("map" if token == "{" else "list"))
        elif token in ("}", "]"):
            if levels:
                levels.pop()
        elif token == ",":
            if top is not None:
                top.key = ""
        elif token == ":":
            if top is not None:
                top.key = last
                top.keys.append(last)
        else:
            last = token.strip("'\"")
            if top is not None:
                if top.key:
                    top.values[top.key] = last
                top.items.append(last)


def _look_behind(place: Place, lines: list[str], line: int, column: int) -> None:
    """Add the keys and values that stand after the cursor to the open levels."""
    if not place.levels:
        return
    depth = len(place.levels)
    probe = [Level(level.kind, level.key) for level in place.levels]
    for number in range(line, min(line + 60, len(lines)) + 1):
        row = lines[number - 1]
        text = row[column - 1 :] if number == line else row
        rest = _BEHIND.match(text) if number == line else None
        if rest is not None:
            text = text[rest.end(0) - len(rest[1] or "") :]
        last = ""
        for token in _TOKEN.findall(text):
            if token.startswith("#"):
                break
            if token in ("{", "["):
                probe.append(Level("map" if token == "{" else "list"))
            elif token in ("}", "]"):
                probe.pop()
                if not probe:
                    return
            elif token == ",":
                probe[-1].key = ""
            elif token == ":":
                probe[-1].key = last
                if len(probe) <= depth and last:
                    place.levels[len(probe) - 1].keys.append(last)
            else:
                last = token.strip("'\"")
                if probe[-1].key and len(probe) <= depth:
                    place.levels[len(probe) - 1].values.setdefault(probe[-1].key, last)


def _siblings(lines: list[str], start: int, indent: int) -> list[str]:
    """Return the keys of the block in which an entry stands."""
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
