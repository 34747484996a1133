"""The assembler file made from a schedule, and the reference trace of it: lists of instructions (facts GEMINI 5.1).

A line is `[name, {'wkl': 1, 'tile': 0, ...}, {parameters}]`; a trace has `{'inst_idx': 7, 'time': [start, end]}` in
third place. Values are Python literals and words of enumerations, `<DataFmt.INT8: 1>`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from buda_emu.errors import ScheduleError
from buda_emu.files import read_whole
from buda_emu.gemini.json_values import a_list, texts, whole_numbers
from buda_emu.gemini.reader.document import decode, unpacked
from buda_emu.gemini.stages import ASSEMBLER, recognise_content

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|(?P<word><[A-Za-z_]\w*\.(?P<value>\w+)\s*:[^>]*>)"
    r"|(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|(?P<name>[A-Za-z_]\w*)|(?P<mark>[\[\]{}:,]))"
)
_NAMES: Final[Mapping[str, Any]] = {"True": True, "False": False, "None": None}
_DEPTH = 20


@dataclass(frozen=True, slots=True)
class Instruction:
    """One line. `unit`: by the prefix of the name; `span`: start and end cycle in a trace."""

    line: int
    name: str
    unit: str
    wkl: int
    tile: int
    parameters: Mapping[str, Any]
    span: tuple[int, int] | None

    @property
    def prefix(self) -> str:
        """Of the name: `lda` of `lda_mov`."""
        return self.name.partition("_")[0]

    @property
    def key(self) -> tuple[str, int, int]:
        """What a trace repeats of it."""
        return self.name, self.wkl, self.tile


UNITS: Final[Mapping[str, str]] = {
    "ct": "CT", "lda": "LD", "ldw": "LD", "lw": "LW", "pe": "PE", "vp": "VP", "dt": "DT", "sta": "ST",
    "si": "SI", "so": "SO",
}  # fmt: skip
"""Prefix to unit."""


def read_assembler(path: str) -> list[Instruction]:
    """Every instruction of a .txt or .txt.gz file. Raises ScheduleError with the line that is wrong, OSError."""
    raw = read_whole(path)
    try:
        lines = unpacked(raw).decode().splitlines()
    except ValueError as error:
        raise ScheduleError(f"{path}: {error}") from None
    if lines and lines[0].lstrip().startswith("{"):
        stage = recognise_content(decode(path))
        problem = "this is JSON, not an assembler file" if stage is None else stage.instead_of(ASSEMBLER)
        raise ScheduleError(f"{path}: {problem}")
    found: list[Instruction] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                found.append(_instruction(number, parse(line)))
            except ValueError as error:
                raise ScheduleError(f"{path}:{number}: {error}") from None
    return found


def parse(text: str) -> Any:
    """One value. Raises ValueError."""
    parser = _Parser(text)
    value = parser.value(0)
    if text[parser.at :].strip():
        raise ValueError(f"more follows at column {parser.at + 1}")
    return value


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self.at = 0

    def _next(self) -> "re.Match[str]":
        match = _TOKEN.match(self._text, self.at)
        if match is None:
            raise ValueError(f"no value or mark at column {self.at + 1}")
        self.at = match.end()
        return match

    def value(self, depth: int, token: "re.Match[str] | None" = None) -> Any:
        """A literal, a bare name, a word of an enumeration (its word)."""
        found = token or self._next()
        if depth > _DEPTH:
            raise ValueError("values are nested too deeply")
        kind = found.lastgroup
        if kind == "text":
            return found[kind][1:-1]
        if found["word"]:
            return found["value"]
        if kind == "number":
            text = found[kind]
            return float(text) if any(mark in text for mark in ".eE") else _integer(text)
        if kind == "name":
            return _NAMES.get(found[kind], found[kind])
        if found["mark"] == "[":
            return self._list(depth)
        if found["mark"] == "{":
            return self._object(depth)
        raise ValueError(f"{found['mark']!r} at column {self.at} is out of place")

    def _list(self, depth: int) -> list[Any]:
        found: list[Any] = []
        token = self._next()
        while token["mark"] != "]":
            found.append(self.value(depth + 1, token))
            token = self._after("]")
        return found

    def _object(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        token = self._next()
        while token["mark"] != "}":
            key = self.value(depth + 1, token)
            if not isinstance(key, str) or self._next()["mark"] != ":":
                raise ValueError(f"a key and a colon are expected at column {self.at}")
            found[key] = self.value(depth + 1)
            token = self._after("}")
        return found

    def _after(self, closing: str) -> "re.Match[str]":
        """After an entry: the closing mark, or what follows a comma."""
        token = self._next()
        if token["mark"] == ",":
            return self._next()
        if token["mark"] == closing:
            return token
        raise ValueError(f"a comma or {closing!r} is expected at column {self.at}")


def _integer(text: str) -> int:
    if len(text) > 18:
        raise ValueError(f"the number {text[:20]}... is too long")
    return int(text)


def _instruction(line: int, value: Any) -> Instruction:
    items = a_list(value, 3) or a_list(value, 4)
    if items is None or not isinstance(items[0], str):
        raise ValueError("an instruction is [name, {...}, {...}]")
    if not all(isinstance(item, dict) for item in items[1:]):
        raise ValueError("an instruction is [name, {...}, {...}]")
    name = items[0]
    unit = UNITS.get(name.partition("_")[0])
    if unit is None:
        raise ValueError(f"the instruction {name!r} belongs to no unit")
    where, parameters = items[1], items[-1]
    span = _span(items[2]) if len(items) == 4 else None
    wkl, tile = (where.get(key) for key in ("wkl", "tile"))
    if type(wkl) is not int or type(tile) is not int:
        raise ValueError(f"{name}: 'wkl' and 'tile' are integers")
    for key in ("Prev_Insts", "Next_Insts"):
        units = texts(parameters.get(key, []))
        if units is None or not all(one in UNITS.values() for one in units):
            raise ValueError(f"{name}: {key!r} is a list of units ({', '.join(dict.fromkeys(UNITS.values()))})")
    return Instruction(line, name, unit, wkl, tile, parameters, span)


def _span(content: Mapping[str, Any]) -> tuple[int, int]:
    time = whole_numbers(content.get("time"), 2)
    if time is None:
        raise ValueError("'time' is [start, end]")
    start, end = time
    if not 0 <= start <= end:
        raise ValueError(f"'time' is [start, end], not [{start}, {end}]")
    return start, end
