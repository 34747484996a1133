"""A campaign: a netlist recorded once, and one fault after the other on what was recorded."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from functools import cached_property, partial
from math import isfinite
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.emulator.inputs.feed import seed_of
from buda_emu.emulator.runtime.graph.steps import Push, Run
from buda_emu.spec.blocking import Blocking
from buda_emu.spec.precision import Precision
from buda_emu.support.errors import HostError, ProgramError, UnsupportedError
from buda_emu.support.records import dataclass
from buda_emu.support.workers.job import Job, Workers
from buda_emu.support.workers.spread import in_order, spread
from buda_emu.testing.injection.corrupt import spoils
from buda_emu.testing.injection.draw import OF_RUN, TIMED, Draw
from buda_emu.testing.injection.fault import INSIDE, PLACES, Fault, Kind, Place
from buda_emu.testing.injection.machines import Left, Machines
from buda_emu.testing.injection.protect import CLEAN_RUNS, Protection, Ranges, cost, in_memory
from buda_emu.testing.injection.result import After, Cost, Effect, Outcome
from buda_emu.testing.injection.sites import Sites, Strata, name_of
from buda_emu.testing.injection.timing_faults import Times
from buda_emu.testing.injection.trace import Guard, Node, Spoil, Trace
from buda_emu.testing.injection.values import Value
from buda_emu.testing.verify.comparison import cleaned, pcc

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What an output entry must keep to be tolerable: a PCC, and the place of the largest element of each row."""

    least_pcc: float = 0.99
    top1: bool = False


class OutputComparison:
    """Holds outputs against those of the clean run."""

    def __init__(self, trace: Trace, tolerance: Tolerance) -> None:
        self._trace = trace
        self._tolerance = tolerance
        self.outputs = trace.outputs()
        self._places = {number: place for place, number in self.outputs.items()}

    def of_values(self, fault: Fault, differ: Mapping[int, Value], computed: int = 0) -> Effect:
        """Where some values of the run differ, by the number of the clean ones."""
        differ = {number: value for number, value in differ.items() if number in self._places}
        if not differ:
            return Effect(fault, "masked", computed=computed)
        worst = 1.0
        error = 0.0
        output = ""
        strange = False
        kept = 1.0
        tiles = 0
        maps: dict[str, int] = {}
        for number, value in differ.items():
            queue = self._places[number][0]
            clean = self._trace.arithmetic.floats(self._trace.nodes[number].value)
            found = self._trace.arithmetic.floats(value)
            changed = np.flatnonzero((clean.view(np.uint32) != found.view(np.uint32)).any(axis=-1)[0])
            tiles += len(changed)
            maps[queue] = maps.get(queue, 0) | sum(1 << tile for tile in changed.tolist())
            strange |= bool((~np.isfinite(found) & np.isfinite(clean)).any())
            kept = min(kept, self._same_largest(queue, clean, found))
            likeness = _likeness(clean, found)
            if likeness <= worst:
                worst = likeness
                output = queue
            error = max(error, _error(clean, found))
        tolerable = worst >= self._tolerance.least_pcc and (kept == 1.0 or not self._tolerance.top1)
        outcome: Outcome = "not finite" if strange else "tolerable" if tolerable else "corrupt"
        return Effect(
            fault=fault,
            outcome=outcome,
            pcc=worst,
            max_error=error if isfinite(error) else None,
            tiles=tiles,
            output=output,
            computed=computed,
            top1=kept,
            maps={queue: f"{bits:x}" for queue, bits in maps.items()},
        )

    def of_machine(self, fault: Fault, left: Left) -> Effect:
        """What another run left. Entries that the host does not find, or finds and should not, are corrupt, too."""
        equal = self._trace.arithmetic.equal
        nodes = self._trace.nodes
        differ = {number: value for number, value in left.values.items() if not equal(value, nodes[number].value)}
        found = self.of_values(fault, differ)
        missing = {self._places[number] for number in self._places.keys() - left.values.keys()}
        wrong = [f"{queue}: entry in slot {slot} was never written" for queue, slot in sorted(missing)]
        for queue in sorted({queue for queue, _ in self.outputs} & left.windows.keys()):
            clean = self._trace.left[queue]
            now = left.windows[queue]
            if clean != now:
                wrong.append(
                    f"{queue}: the host finds {len(now)} entries, not {len(clean)}"
                    if len(clean) != len(now)
                    else f"{queue}: the host finds other entries"
                )
        if not wrong or found.outcome == "not finite":
            return found
        return Effect(
            fault=fault,
            outcome="corrupt",
            pcc=0.0,
            max_error=found.max_error,
            tiles=found.tiles,
            output=found.output or wrong[0].partition(":")[0],
            computed=0,
            error="; ".join(wrong),
            top1=found.top1,
            maps=found.maps,
        )

    def _same_largest(self, queue: str, clean: Floats, found: Floats) -> float:
        """The share of an entry's rows whose largest element is where it was."""
        blocking = self._trace.netlist.queues[queue].blocking
        with np.errstate(all="ignore"):
            before = np.nan_to_num(rows_of(clean, blocking)).argmax(axis=-1)
            after = np.nan_to_num(rows_of(found, blocking)).argmax(axis=-1)
        return int((before == after).sum()) / before.size


def rows_of(tiles: Floats, blocking: Blocking) -> Floats:
    """An entry float32[1, tiles, 1024] as float32[t, rows, columns]."""
    t, rows, cols = blocking.shape
    height, width = blocking.tile_dim
    whole = tiles.reshape(t, rows, cols, 32, 32)[..., :height, :width]
    return whole.swapaxes(2, 3).reshape(t, rows * height, cols * width)


def _likeness(clean: Floats, found: Floats) -> float:
    """PCC of an entry, as comparisons of tests have it (NETLIST 5.3)."""
    with np.errstate(all="ignore"):
        rows = [cleaned(values.reshape(1, -1).astype(np.float64), nan_is_zero=True) for values in (clean, found)]
    value, rounded = pcc(rows[0], rows[1], rows[0].shape[1])
    return 1.0 if rounded[0] else float(value[0]) if isfinite(value[0]) else 0.0


def _error(clean: Floats, found: Floats) -> float:
    """The largest difference, relative to the root mean square of the clean entry."""
    with np.errstate(all="ignore"):
        size = float(np.sqrt(np.mean(clean.astype(np.float64) ** 2)))
        return float(np.abs(found.astype(np.float64) - clean).max()) / (size or 1.0)


@dataclass(frozen=True, slots=True)
class Steps:
    """`values`: what the fault makes of a value, [t, rows, columns]; `before`: commands that lead to where it is
    written; `target`: what it is the value of."""

    values: Floats
    before: tuple[str, ...]
    target: str

    def commands(self, file: str) -> tuple[str, ...]:
        """All of them."""
        return (*self.before, f"write {self.target} {file}")


def steps(sites: Sites, fault: Fault, spoils: Mapping[int, Spoil]) -> Steps:
    """Of a fault that changes one value for all that read it. Raises HostError for any other."""
    if fault.reader is not None or len(fault.nodes) != 1:
        raise HostError(
            f"fault {fault.number}: the debugger changes one value for all that read it; this fault is of another kind"
        )
    node = sites.trace.nodes[fault.nodes[0]]
    floats = sites.trace.arithmetic.floats(spoils[node.number](node.value))
    if node.step is None:
        blocking = sites.trace.netlist.queues[node.queue].blocking
        return Steps(rows_of(floats, blocking), (), f"{node.queue}[{node.slot}]")
    made = _made(sites, node)
    if made is None or not isinstance(made.step, Run):
        raise HostError(
            f"fault {fault.number}: ops read what {node.queue} is given as it was: the debugger changes it for all"
        )
    op = made.step.op
    return Steps(rows_of(floats, op.blocking), _right_after(op.name, sites.ordinals[made.number]), f"op:{op.name}")


def _made(sites: Sites, node: Node) -> Node | None:
    """The op's result that an entry is a copy of, and nothing else."""
    if not isinstance(node.step, Push):
        return node
    source = sites.trace.nodes[node.inputs[0]]
    alone = node.step.map is None and len(source.readers) == 1
    return source if alone and name_of(source) else None


def _right_after(op: str, times: int) -> tuple[str, ...]:
    """Stops when the op has run so many times before."""
    ignored = (f"ignore 1 {times}",) if times else ()
    return (f"break if absmax(op:{op}) >= 0 or nan(op:{op}) > 0", *ignored, "continue", "delete")


BATCH: Final = 64
"""Faults that a worker is given at once, and after which the width of the interval is looked at."""
_WAITS: Final = frozenset(("full", "empty", "deadlock"))
"""Of `STOP_KINDS`, those of a program that waits for ever."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a campaign draws and how it judges. `places`: where bits flip, all of the precision by default; `burst`:
    bits of a flip, neighbours unless `scatter`; `least_pcc`: what an output entry must keep to be tolerable; `only`: an
    op or a queue, "" for all; `top1`: tolerable asks for the largest element of each row, too; `late`: the time, of
    that of the clean run, beyond which a run is late; `strata`: parts that get equally many faults; `protect`: what is
    tried; `given`: faults that are not drawn but given."""

    seed: int = 0
    kinds: tuple[Kind, ...] = ("flip",)
    places: tuple[Place, ...] = ()
    burst: int = 1
    least_pcc: float = 0.99
    only: str = ""
    top1: bool = False
    late: float = 1.1
    strata: Strata = ""
    protect: tuple[Protection, ...] = ()
    given: tuple[Fault, ...] = ()
    scatter: bool = False

    def of(self, precision: Precision) -> "Settings":
        """With all places that a precision has, where none are named."""
        own = tuple(place for place in PLACES if precision == "device" or place not in INSIDE)
        return self if self.places else replace(self, places=own)

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        lists = {name: list(getattr(self, name)) for name in ("kinds", "places", "protect")}
        return {**asdict(self), **lists, "given": [fault.as_json() for fault in self.given]}


class Bench:
    """Faults on one recorded run."""

    def __init__(self, machines: Machines, times: Times, trace: Trace, settings: Settings) -> None:
        settings = settings.of(machines.precision)
        self.trace = trace
        self.settings = settings
        self._machines = machines
        self._times = times
        self._given = {fault.number: fault for fault in settings.given}
        given: list[Place] = [fault.place for fault in settings.given if fault.place in PLACES]
        self.sites = Sites(trace, times.cycles(), settings.only, (*settings.places, *given))
        self._draw = Draw(self.sites, settings.kinds, settings.burst, settings.strata, scatter=settings.scatter)
        self.left_out = () if settings.given else tuple(self._draw.left_out)
        self._comparison = OutputComparison(trace, Tolerance(settings.least_pcc, settings.top1))
        self.strata = self._draw.shares

    @property
    def bit_hours(self) -> float:
        """Bits of DRAM and L1 times the hours that the run holds them; 0 where no time is modelled."""
        return self.sites.bit_cycles * self._times.hours_of_a_cycle()

    def costs(self) -> dict[str, Cost]:
        """Of each protection that is tried."""
        return {name: cost(name, self.sites, self._times) for name in self.settings.protect}

    @cached_property
    def _ranges(self) -> Ranges:
        others = range(1, CLEAN_RUNS if self._machines.made_up else 1)
        return Ranges(trace for seed in (None, *others) for trace in [self._clean(seed)])

    def _clean(self, seed: int | None) -> Trace:
        return self.trace if seed is None else self._machines.recorded(seed)

    def fault(self, number: int) -> Fault:
        """Fault `number`. Raises HostError where nothing can be hit, and for a given fault that the run does not
        have."""
        if self._given:
            return self._draw.resolved(self._given[number])
        return self._draw.fault(number, self.settings.seed)

    def effect(self, number: int) -> Effect:
        """What fault `number` does."""
        fault = self.fault(number)
        found = self._effect(fault, None)
        after = {name: left for name in self.settings.protect if (left := self._after(name, found)) is not None}
        return replace(found, after=after) if after else found

    def in_debugger(self, number: int) -> Steps:
        """Fault `number` as commands of the debugger. Raises HostError for one that it cannot make."""
        fault = self.fault(number)
        made = {} if fault.kind in TIMED or self._is_of_run(fault) else spoils(fault, self.trace, self._seed(fault))
        return steps(self.sites, fault, made)

    def _after(self, protection: Protection, found: Effect) -> After | None:
        """What a protection leaves of a fault, None: all of it."""
        fault = found.fault
        if protection != "range":
            return in_memory(protection, fault, self._seed(fault))
        if found.outcome == "masked" or self._is_of_run(fault):
            return None
        return self._effect(fault, self._ranges.clipped).outcome

    def _seed(self, fault: Fault) -> int:
        return seed_of(self.settings.seed, fault.number)

    @staticmethod
    def _is_of_run(fault: Fault) -> bool:
        """A whole run is made, or modelled, for it."""
        return fault.kind in TIMED or fault.kind == "pointer" or (fault.kind == "entry" and fault.how in OF_RUN)

    def _effect(self, fault: Fault, guard: Guard | None) -> Effect:
        try:
            if fault.kind in TIMED:
                return self._timed(fault)
            if self._is_of_run(fault):
                left = self._machines.spoilt(fault, self.trace, self._comparison.outputs)
                return self._comparison.of_machine(fault, left)
            made = spoils(fault, self.trace, self._seed(fault))
            differ, computed = self.trace.changed(made, fault.reader, fault.operand, guard)
        except ProgramError as error:
            if error.kind not in _WAITS:
                return Effect(fault, "stopped", error=error.problem)
            waits = () if error.stopped is None else error.stopped.waiting
            return Effect(fault, "deadlock", error="; ".join((error.problem, *map(str, waits))))
        except UnsupportedError as error:
            return Effect(fault, "stopped", error=str(error).splitlines()[0])
        return self._comparison.of_values(fault, differ, computed)

    def _timed(self, fault: Fault) -> Effect:
        slower = self._times.slower(fault)
        if slower.missed or slower.ratio > self.settings.late:
            missed = f"performance-check: {', '.join(slower.missed)}" if slower.missed else ""
            return Effect(fault, "late", ratio=slower.ratio, error=missed)
        return Effect(fault, "masked" if slower.ratio == 1.0 else "tolerable", ratio=slower.ratio)


# ----------------------------------------------------------------------------------------------------------- workers
Make = Callable[[], Bench]


def injector(make: Make) -> Callable[[Sequence[int]], list[Effect]]:
    """The work of a campaign on workers: what faults of some numbers do."""
    return partial(_effects, make())


def _effects(bench: Bench, numbers: Sequence[int]) -> list[Effect]:
    return [bench.effect(number) for number in numbers]


def effects(
    make: Make, numbers: Sequence[int], workers: Workers, here: Bench, files: Sequence[str] = ()
) -> Generator[list[Effect], None, None]:
    """What faults of these numbers do, in parts as they are done, in their order. `make` makes a bench in a worker, of
    `files`; with one worker `here` does it all."""
    parts = [numbers[start : start + BATCH] for start in range(0, len(numbers), BATCH)]
    if workers.alone:
        for part in parts:
            yield _effects(here, part)
        return
    job = Job("buda_emu.testing.injection.campaign:injector", make, tuple(files))
    with closing(in_order(spread(job, parts, workers))) as found:
        yield from found
