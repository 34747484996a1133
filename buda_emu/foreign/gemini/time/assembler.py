"""Read the assembler file of a schedule and its reference trace, both lists of instructions (facts GEMINI 5.1), and
simulate them.

A line is `[name, {'wkl': 1, 'tile': 0, ...}, {parameters}]`; a trace has `{'inst_idx': 7, 'time': [start, end]}` in
third place. Values are Python literals and words of enumerations, `<DataFmt.INT8: 1>`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from buda_emu.foreign.gemini.boxes import box_of_shape
from buda_emu.foreign.gemini.json_values import as_integers, as_list, as_texts
from buda_emu.foreign.gemini.model import IR, Workload
from buda_emu.foreign.gemini.reader import decode, decompress
from buda_emu.foreign.gemini.sizes import fmap_bytes, weight_bytes
from buda_emu.foreign.gemini.stages import ASSEMBLER, TRACE, Stage, recognise_content
from buda_emu.foreign.gemini.time.plan import TransferKind
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
_DEPTH = 20  # of nested expressions: far from the limit of recursion


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. `unit` follows from the prefix of the name; `span` is start and end cycle in a trace, None
    elsewhere."""

    line: int
    name: str
    unit: str
    wkl: int
    tile: int
    parameters: Mapping[str, Any]
    span: tuple[int, int] | None

    @property
    def prefix(self) -> str:
        """The name up to the first underscore: `lda` of `lda_mov`."""
        return self.name.partition("_")[0]

    @property
    def key(self) -> tuple[str, int, int]:
        """Name, workload and tile, which a trace repeats for each instruction."""
        return self.name, self.wkl, self.tile


UNITS: Final[Mapping[str, str]] = {
    "ct": "CT", "lda": "LD", "ldw": "LD", "lw": "LW", "pe": "PE", "vp": "VP", "dt": "DT", "sta": "ST",
    "si": "SI", "so": "SO",
}  # fmt: skip
"""The unit that executes instructions whose name begins with this prefix."""


def read_assembler(path: str, expected: Stage = ASSEMBLER) -> list[Instruction]:
    """Return the instructions of a .txt or .txt.gz file: an assembler file, or the `expected` trace of one. Raises
    ScheduleError with the line that is wrong, OSError for a file that cannot be read."""
    raw = read_whole(path)
    try:
        lines = decompress(raw).decode().splitlines()
    except ValueError as error:
        raise ScheduleError(f"{path}: {error}") from None
    if lines and lines[0].lstrip().startswith("{"):
        stage = recognise_content(decode(path))
        if stage is None:
            problem = f"this is JSON, not {expected.words}"
        else:
            problem = stage.instead_of(expected)
        raise ScheduleError(f"{path}: {problem}")
    instructions: list[Instruction] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                instructions.append(_make_instruction(number, parse_literal(line)))
            except ValueError as error:
                raise ScheduleError(f"{path}:{number}: {error}") from None
    return instructions


def parse_literal(text: str) -> Any:
    """Return the value of a text: a decimal number, a quoted string (escapes stay as written), True, False, None, a
    list or a mapping; a bare name, and the word of an enumeration such as `<DataFmt.INT8: 1>`, give the name as a
    string. Raises ValueError for any other text."""
    parser = _Parser(text)
    value = parser.value(0)
    if text[parser.at :].strip():
        raise ValueError(f"more follows at column {parser.at + 1}")
    return value


class _Parser:
    """A parser of the literals of one line; `at` is where it reads on. Its methods raise ValueError for other text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.at = 0

    def _next_token(self) -> "re.Match[str]":
        """Return the next token and move behind it."""
        match = _TOKEN.match(self._text, self.at)
        if match is None:
            raise ValueError(f"no value or mark at column {self.at + 1}")
        self.at = match.end()
        return match

    def value(self, depth: int, token: "re.Match[str] | None" = None) -> Any:
        """Return the next literal, which begins with `token` where that was read already. A bare name or a word of
        an enumeration stands for itself as text. `depth` is how deeply it is nested."""
        match = token or self._next_token()
        if depth > _DEPTH:
            raise ValueError("values are nested too deeply")
        kind = match.lastgroup
        if kind == "text":
            return match[kind][1:-1]
        if match["word"]:
            return match["value"]
        if kind == "number":
            text = match[kind]
            if any(mark in text for mark in ".eE"):
                return float(text)
            return _parse_integer(text)
        if kind == "name":
            return _NAMES.get(match[kind], match[kind])
        if match["mark"] == "[":
            return self._parse_list(depth)
        if match["mark"] == "{":
            return self._parse_object(depth)
        raise ValueError(f"{match['mark']!r} at column {self.at} is out of place")

    def _parse_list(self, depth: int) -> list[Any]:
        """Return the entries of a list whose opening bracket was read."""
        entries: list[Any] = []
        token = self._next_token()
        while token["mark"] != "]":
            entries.append(self.value(depth + 1, token))
            token = self._token_after_entry("]")
        return entries

    def _parse_object(self, depth: int) -> dict[str, Any]:
        """Return the entries of an object whose opening brace was read."""
        entries: dict[str, Any] = {}
        token = self._next_token()
        while token["mark"] != "}":
            key = self.value(depth + 1, token)
            if not isinstance(key, str) or self._next_token()["mark"] != ":":
                raise ValueError(f"a key and a colon are expected at column {self.at}")
            entries[key] = self.value(depth + 1)
            token = self._token_after_entry("}")
        return entries

    def _token_after_entry(self, closing: str) -> "re.Match[str]":
        """Return the token after an entry: the closing mark, or what follows a comma."""
        token = self._next_token()
        if token["mark"] == ",":
            return self._next_token()
        if token["mark"] == closing:
            return token
        raise ValueError(f"a comma or {closing!r} is expected at column {self.at}")


def _parse_integer(text: str) -> int:
    """Return the integer that a text denotes. Raises ValueError for more than 18 characters."""
    if len(text) > 18:
        raise ValueError(f"the number {text[:20]}... is too long")
    return int(text)


def _make_instruction(line: int, value: Any) -> Instruction:
    """Return the instruction of a line with this value. Raises ValueError for a value of another form and for an
    unknown unit."""
    items = as_list(value, 3) or as_list(value, 4)
    if items is None or not isinstance(items[0], str):
        raise ValueError("an instruction is [name, {...}, {...}]")
    if not all(isinstance(part, dict) for part in items[1:]):
        raise ValueError("an instruction is [name, {...}, {...}]")
    name = items[0]
    unit = UNITS.get(name.partition("_")[0])
    if unit is None:
        raise ValueError(f"the instruction {name!r} belongs to no unit")
    wkl = items[1].get("wkl")
    tile = items[1].get("tile")
    if type(wkl) is not int or type(tile) is not int:
        raise ValueError(f"{name}: 'wkl' and 'tile' are integers")
    _require_units(name, items[-1])
    if len(items) == 4:
        span = _read_span(items[2])
    else:
        span = None
    return Instruction(line=line, name=name, unit=unit, wkl=wkl, tile=tile, parameters=items[-1], span=span)


def _require_units(name: str, parameters: Mapping[str, Any]) -> None:
    """Raise ValueError where Prev_Insts or Next_Insts is no list of units."""
    for key in ("Prev_Insts", "Next_Insts"):
        units = as_texts(parameters.get(key, []))
        if units is None or not set(units) <= set(UNITS.values()):
            raise ValueError(f"{name}: {key!r} is a list of units ({', '.join(dict.fromkeys(UNITS.values()))})")


def _read_span(content: Mapping[str, Any]) -> tuple[int, int]:
    """Return start and end cycle from the third place of a trace's line. Raises ValueError for anything else."""
    time = as_integers(content.get("time"), 2)
    if time is None:
        raise ValueError("'time' is [start, end]")
    start, end = time
    if not 0 <= start <= end:
        raise ValueError(f"'time' is [start, end], not [{start}, {end}]")
    return start, end


COMPUTE = ("pe_conv", "vp_self", "vp_pool")
_BITS = {"INT8": 8, "FP16": 16}
_KINDS: dict[str, TransferKind] = {"lda": "load", "sta": "store", "ldw": "weight", "lw": "weight"}
_WAITS: dict[str, WaitKind] = {"LD": "load", "LW": "weight", "ST": "room"}


def simulate_assembler(ir: IR | None, path: str, durations: str, rates: Rates) -> Timeline:
    """Simulate the instructions of the assembler file `path` on their units. `durations` is "predicted", which
    needs the schedule, or the path of a reference trace. Raises ScheduleError for a file that cannot be read,
    HostError without a schedule where one is needed."""
    instructions = read_assembler(path)
    moved: dict[int, int] = {}
    if durations != "predicted":
        cycles = _read_durations(instructions, path, durations)
    elif ir is None:
        raise HostError("predicted durations of an assembler file need its schedule, too")
    else:
        cycles, moved = _DurationModel(ir, path, rates).cycles(instructions)
    schedule, kinds = _schedule_instructions(instructions, cycles)
    timing = schedule.run()
    spans = [Span(*pair) for pair in zip(timing.start.tolist(), timing.end.tolist(), strict=True)]
    if ir is not None:
        core = next(iter(ir.cores), 0)
    else:
        core = 0
    dram: list[DramSpan] = []
    for position, (instruction, span) in enumerate(zip(instructions, spans, strict=True)):
        if _uses_dram(instruction):
            kind = _KINDS[instruction.prefix]
            dram.append(DramSpan(kind=kind, transfer_id=-1, bytes=moved.get(position, 0), core=core, **span._asdict()))
    return Timeline(
        total=timing.makespan,
        workloads={(core, number): span for number, span in workload_spans(instructions, spans).items()},
        dram=tuple(sorted(dram, key=lambda transfer: transfer.start)),
        noc=(),
        links={},
        instructions=tuple(spans),
        mode="assembler",
        rates=rates,
        schedule=schedule,
        timing=timing,
        kinds=tuple(kinds),
    )


def workload_spans(instructions: Sequence[Instruction], spans: Sequence[Span]) -> dict[int, Span]:
    """Return, for each workload id, the span from its first computing instruction to its last."""
    works: dict[int, Span] = {}
    for instruction, span in zip(instructions, spans, strict=True):
        if instruction.name in COMPUTE:
            before = works.get(instruction.wkl, span)
            works[instruction.wkl] = Span(min(before.start, span.start), max(before.end, span.end))
    return works


def _schedule_instructions(
    instructions: Sequence[Instruction], cycles: Sequence[int]
) -> tuple[Schedule, list[WaitKind]]:
    """Return the instructions as tasks on their units, and the kind of wait for each counted object: the tokens that
    one unit gives another."""
    schedule = Schedule()
    units: dict[str, int] = {}
    objects: dict[tuple[str, str], int] = {}
    kinds: list[WaitKind] = []

    def tokens(giver: str, taker: str) -> int:
        """Return the object that counts the tokens that unit `giver` gives to unit `taker`."""
        if (giver, taker) not in objects:
            objects[giver, taker] = schedule.object(f"tokens {giver} to {taker}")
            kinds.append(_WAITS.get(giver, "producer"))
        return objects[giver, taker]

    for instruction, length in zip(instructions, cycles, strict=True):
        if instruction.unit not in units:
            units[instruction.unit] = schedule.unit(instruction.unit)
        takes = [(tokens(other, instruction.unit), 1) for other in instruction.parameters.get("Prev_Insts", ())]
        gives = [(tokens(instruction.unit, other), 1) for other in instruction.parameters.get("Next_Insts", ())]
        label = f"{instruction.name} of workload {instruction.wkl} (line {instruction.line})"
        schedule.task(units[instruction.unit], length, takes, gives, label)
    return schedule, kinds


def _uses_dram(instruction: Instruction) -> bool:
    """Return whether the instruction moves data through DRAM."""
    return instruction.name in ("lda_mov", "sta_mov", "ldw_mov") or (
        instruction.name == "lw_mov" and instruction.parameters.get("SS") == 1
    )


def _read_durations(instructions: Sequence[Instruction], path: str, trace: str) -> list[int]:
    """Return the durations in a trace of the same instructions. Raises ScheduleError for a trace of others."""
    lines = read_assembler(trace, TRACE)
    if len(lines) != len(instructions):
        raise ScheduleError(f"{trace}: {plural(len(lines), 'instruction')}, {path} has {len(instructions)}")
    cycles: list[int] = []
    for instruction, line in zip(instructions, lines, strict=True):
        if line.span is None:
            raise ScheduleError(f"{trace}:{line.line}: {line.name} has no time: this is not a trace")
        if line.key != instruction.key:
            raise ScheduleError(
                f"{trace}:{line.line}: {line.name} of workload {line.wkl}, {path}:{instruction.line} is "
                f"{instruction.name}"
            )
        cycles.append(line.span[1] - line.span[0])
    return cycles


class _DurationModel:
    """Durations of instructions by the formulas of facts GEMINI 5.2."""

    def __init__(self, ir: IR, path: str, rates: Rates) -> None:
        self._workloads_by_id: dict[int, Workload] = {}
        for work in ir.workloads():
            self._workloads_by_id.setdefault(work.workload_id, work)
        self._path = path
        self._rates = rates
        self._formats: dict[tuple[str, Any], Any] = {}
        self._first = True

    def cycles(self, instructions: Sequence[Instruction]) -> tuple[list[int], dict[int, int]]:
        """Return the cycles of each instruction, and the bytes of those that go through DRAM by their position."""
        durations: list[int] = []
        moved: dict[int, int] = {}
        for place, instruction in enumerate(instructions):
            if "_cfg" in instruction.name:
                self._formats[instruction.prefix, instruction.parameters.get("RS")] = instruction.parameters.get("DF")
            if _uses_dram(instruction):
                moved[place] = self._dram_bytes(instruction)
                length = self._rates.transfer(moved[place], store=instruction.prefix == "sta")
                if instruction.prefix == "lw" and self._first:
                    length += FIRST_WEIGHT
                    self._first = False
                durations.append(length)
            else:
                durations.append(self._cycles_without_dram(instruction))
        return durations, moved

    def _cycles_without_dram(self, instruction: Instruction) -> int:
        """Return the cycles of an instruction that moves nothing through DRAM. Raises ScheduleError where they are
        not known."""
        if "_cfg" in instruction.name:
            return CONFIGURE
        if instruction.prefix == "ct":
            return CONTROL
        if instruction.name in ("dt_cal", "lw_mov"):
            return 0
        if instruction.name in COMPUTE:
            work = self._workloads_by_id.get(instruction.wkl)
            if work is None:
                raise self._instruction_error(instruction, f"the schedule has no workload {instruction.wkl}")
            return tile_cycles(work)
        raise self._instruction_error(instruction, "how long it takes is not known")

    def _dram_bytes(self, instruction: Instruction) -> int:
        """Return the bytes that an instruction moves through DRAM. Raises ScheduleError where its parameters do not
        tell."""
        weights = instruction.prefix in ("ldw", "lw")
        key = "Wsize" if weights else "Tile"
        extents = as_integers(instruction.parameters.get(key), 4, 1)
        if extents is None:
            raise self._instruction_error(instruction, f"{key} is a list of four extents")
        a, b, c, d = extents
        if weights:
            return weight_bytes(box_of_shape((1, a, b, c * d)))
        word = self._formats.get((instruction.prefix, instruction.parameters.get("RS")))
        if word not in _BITS:
            raise self._instruction_error(
                instruction, f"no {instruction.prefix}_cfg before it has DF INT8 or FP16 (it has {word})"
            )
        return fmap_bytes(box_of_shape((a, b, c, d)), _BITS[word])

    def _instruction_error(self, instruction: Instruction, why: str) -> ScheduleError:
        """Return the error that an instruction cannot be timed, with its file and line and the reason `why`."""
        return ScheduleError(f"{self._path}:{instruction.line}: {instruction.name}: {why}")
