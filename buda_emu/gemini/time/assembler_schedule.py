"""An assembler file on the timeline engine: units in file order, tokens between each pair of units (facts
GEMINI 5.1)."""

from collections.abc import Sequence
from typing import Any

from buda_emu.checker.text import plural
from buda_emu.errors import HostError, ScheduleError
from buda_emu.gemini.boxes import of_shape
from buda_emu.gemini.json_values import whole_numbers
from buda_emu.gemini.model import IR, Workload
from buda_emu.gemini.sizes import fmap_bytes, weight_bytes
from buda_emu.gemini.time.assembler import Instruction, read_assembler
from buda_emu.gemini.time.durations import CONFIGURE, CONTROL, FIRST_WEIGHT, Rates, tile_cycles
from buda_emu.gemini.time.plan import ItemKind
from buda_emu.gemini.time.timing import DramSpan, Span, Timeline, WaitKind
from buda_emu.timeline import Schedule

COMPUTE = ("pe_conv", "vp_self", "vp_pool")
_BITS = {"INT8": 8, "FP16": 16}
_KINDS: dict[str, ItemKind] = {"lda": "load", "sta": "store", "ldw": "weight", "lw": "weight"}
_WAITS: dict[str, WaitKind] = {"LD": "load", "LW": "weight", "ST": "room"}


def simulate_assembler(ir: IR | None, path: str, durations: str, rates: Rates) -> Timeline:
    """As `simulate` with `asm`."""
    instructions = read_assembler(path)
    if durations != "predicted":
        cycles, moved = _traced(instructions, path, durations), None
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
