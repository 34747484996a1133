"""The assembler file made from a schedule, and the reference trace of it: lists of instructions (facts GEMINI 5.1).

A line is `[name, {'wkl': 1, 'tile': 0, ...}, {parameters}]`; a trace has `{'inst_idx': 7, 'time': [start, end]}` in
third place. Values are Python literals and words of enumerations, `<DataFmt.INT8: 1>`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from buda_emu.foreign.gemini.boxes import of_shape
from buda_emu.foreign.gemini.json_values import a_list, texts, whole_numbers
from buda_emu.foreign.gemini.model import IR, Workload
from buda_emu.foreign.gemini.reader import decode, unpacked
from buda_emu.foreign.gemini.sizes import fmap_bytes, weight_bytes
from buda_emu.foreign.gemini.stages import ASSEMBLER, recognise_content
from buda_emu.foreign.gemini.time.plan import ItemKind
from buda_emu.foreign.gemini.time.timing import (
    CONFIGURE,
    CONTROL,
    FIRST_WEIGHT,
    DramSpan,
    Rates,
    Span,
    Timeline,
    WaitKind,
    tile_cycles,
)
from buda_emu.performance.timeline import Schedule
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError, ScheduleError
from buda_emu.support.files import read_whole

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
    where = items[1]
    parameters = items[-1]
    span = _span(items[2]) if len(items) == 4 else None
    wkl, tile = (where.get(key) for key in ("wkl", "tile"))
    if type(wkl) is not int or type(tile) is not int:
        raise ValueError(f"{name}: 'wkl' and 'tile' are integers")
    for key in ("Prev_Insts", "Next_Insts"):
        units = texts(parameters.get(key, []))
        if units is None or not all(one in UNITS.values() for one in units):
            raise ValueError(f"{name}: {key!r} is a list of units ({', '.join(dict.fromkeys(UNITS.values()))})")
    return Instruction(line=line, name=name, unit=unit, wkl=wkl, tile=tile, parameters=parameters, span=span)


def _span(content: Mapping[str, Any]) -> tuple[int, int]:
    time = whole_numbers(content.get("time"), 2)
    if time is None:
        raise ValueError("'time' is [start, end]")
    start, end = time
    if not 0 <= start <= end:
        raise ValueError(f"'time' is [start, end], not [{start}, {end}]")
    return start, end


COMPUTE = ("pe_conv", "vp_self", "vp_pool")
_BITS = {"INT8": 8, "FP16": 16}
_KINDS: dict[str, ItemKind] = {"lda": "load", "sta": "store", "ldw": "weight", "lw": "weight"}
_WAITS: dict[str, WaitKind] = {"LD": "load", "LW": "weight", "ST": "room"}


def simulate_assembler(ir: IR | None, path: str, durations: str, rates: Rates) -> Timeline:
    """As `simulate` with `asm`."""
    instructions = read_assembler(path)
    if durations != "predicted":
        cycles = _traced(instructions, path, durations)
        moved = None
    elif ir is None:
        raise HostError("predicted durations of an assembler file need its schedule, too")
    else:
        cycles, moved = _Predicted(ir, path, rates).cycles(instructions)
    schedule = Schedule()
    units: dict[str, int] = {}
    objects: dict[tuple[str, str], int] = {}
    kinds: list[WaitKind] = []

    def tokens(giver: str, taker: str) -> int:
        if (giver, taker) not in objects:
            objects[giver, taker] = schedule.object(f"tokens {giver} to {taker}")
            kinds.append(_WAITS.get(giver, "producer"))
        return objects[giver, taker]

    for item, length in zip(instructions, cycles, strict=True):
        unit = units.setdefault(item.unit, len(units))
        if unit == len(schedule.units):
            schedule.unit(item.unit)
        takes = [(tokens(other, item.unit), 1) for other in item.parameters.get("Prev_Insts", ())]
        gives = [(tokens(item.unit, other), 1) for other in item.parameters.get("Next_Insts", ())]
        schedule.task(unit, length, takes, gives, f"{item.name} of workload {item.wkl} (line {item.line})")
    timing = schedule.run()
    spans = [Span(*pair) for pair in zip(timing.start.tolist(), timing.end.tolist(), strict=True)]
    core = next(iter(ir.cores), 0) if ir is not None else 0
    works: dict[tuple[int, int], Span] = {}
    for item, span in zip(instructions, spans, strict=True):
        if item.name in COMPUTE:
            before = works.get((core, item.wkl), span)
            works[core, item.wkl] = Span(min(before.start, span.start), max(before.end, span.end))
    dram = [
        DramSpan(_KINDS[item.prefix], -1, moved[place] if moved else 0, core, *span)
        for place, (item, span) in enumerate(zip(instructions, spans, strict=True))
        if _moves(item)
    ]
    return Timeline(
        total=timing.makespan,
        workloads=works,
        dram=tuple(sorted(dram, key=lambda item: item.start)),
        noc=(),
        links={},
        instructions=tuple(spans),
        mode="assembler",
        rates=rates,
        schedule=schedule,
        timing=timing,
        kinds=tuple(kinds),
    )


def _moves(item: Instruction) -> bool:
    """It goes through DRAM."""
    return item.name in ("lda_mov", "sta_mov", "ldw_mov") or (item.name == "lw_mov" and item.parameters.get("SS") == 1)


def _traced(instructions: Sequence[Instruction], path: str, trace: str) -> list[int]:
    """Durations of a trace of the same instructions."""
    lines = read_assembler(trace)
    if len(lines) != len(instructions):
        raise ScheduleError(f"{trace}: {plural(len(lines), 'instruction')}, {path} has {len(instructions)}")
    found: list[int] = []
    for item, line in zip(instructions, lines, strict=True):
        if line.span is None:
            raise ScheduleError(f"{trace}:{line.line}: {line.name} has no time: this is not a trace")
        if line.key != item.key:
            raise ScheduleError(
                f"{trace}:{line.line}: {line.name} of workload {line.wkl}, {path}:{item.line} is {item.name}"
            )
        found.append(line.span[1] - line.span[0])
    return found


class _Predicted:
    """Durations by the formulas of facts GEMINI 5.2."""

    def __init__(self, ir: IR, path: str, rates: Rates) -> None:
        self._works: dict[int, Workload] = {}
        for work in ir.workloads():
            self._works.setdefault(work.workload_id, work)
        self._path = path
        self._rates = rates
        self._formats: dict[tuple[str, Any], Any] = {}
        self._first = True

    def cycles(self, instructions: Sequence[Instruction]) -> tuple[list[int], dict[int, int]]:
        """Of each instruction; and bytes of those that go through DRAM, by place."""
        found: list[int] = []
        moved: dict[int, int] = {}
        for place, item in enumerate(instructions):
            if "_cfg" in item.name:
                self._formats[item.prefix, item.parameters.get("RS")] = item.parameters.get("DF")
            if _moves(item):
                moved[place] = self._bytes(item)
                length = self._rates.transfer(moved[place], store=item.prefix == "sta")
                if item.prefix == "lw" and self._first:
                    length += FIRST_WEIGHT
                    self._first = False
                found.append(length)
            else:
                found.append(self._other(item))
        return found, moved

    def _other(self, item: Instruction) -> int:
        if "_cfg" in item.name:
            return CONFIGURE
        if item.prefix == "ct":
            return CONTROL
        if item.name in ("dt_cal", "lw_mov"):
            return 0
        if item.name in COMPUTE:
            work = self._works.get(item.wkl)
            if work is None:
                raise self._wrong(item, f"the schedule has no workload {item.wkl}")
            return tile_cycles(work)
        raise self._wrong(item, "how long it takes is not known")

    def _bytes(self, item: Instruction) -> int:
        weights = item.prefix in ("ldw", "lw")
        key = "Wsize" if weights else "Tile"
        extents = whole_numbers(item.parameters.get(key), 4, 1)
        if extents is None:
            raise self._wrong(item, f"{key} is a list of four extents")
        a, b, c, d = extents
        if weights:
            return weight_bytes(of_shape((1, a, b, c * d)))
        word = self._formats.get((item.prefix, item.parameters.get("RS")))
        if word not in _BITS:
            raise self._wrong(item, f"no {item.prefix}_cfg before it has DF INT8 or FP16 (it has {word})")
        return fmap_bytes(of_shape((a, b, c, d)), _BITS[word])

    def _wrong(self, item: Instruction, why: str) -> ScheduleError:
        return ScheduleError(f"{self._path}:{item.line}: {item.name}: {why}")
