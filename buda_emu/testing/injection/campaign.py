"""A campaign: a netlist is recorded once, and one fault after the other is injected into the record."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from functools import cached_property, partial
from itertools import chain
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
from buda_emu.testing.verify.comparison import pcc, replace_special

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The conditions of a tolerable output entry: a PCC, and the place of the largest element of each row."""

    least_pcc: float = 0.99
    top1: bool = False


class OutputComparison:
    """A comparison of outputs with those of the clean run."""

    def __init__(self, trace: Trace, tolerance: Tolerance) -> None:
        self._trace = trace
        self._tolerance = tolerance
        self.outputs = trace.outputs()
        self._places = {number: place for place, number in self.outputs.items()}

    def of_values(self, fault: Fault, differ: Mapping[int, Value], computed: int = 0) -> Effect:
        """Return the effect of a fault after which some values of the run differ, given by their number in the record;
        "masked" if none of them is an output. `computed` is the number of values that were computed again."""
        differ = {number: value for number, value in differ.items() if number in self._places}
        if not differ:
            return Effect(fault, "masked", computed=computed)
        worst = 1.0
        error = 0.0
        output = ""
        strange = False
        top1 = 1.0
        tiles = 0
        maps: dict[str, int] = {}
        for number, value in differ.items():
            queue = self._places[number][0]
            clean = self._trace.arithmetic.floats(self._trace.nodes[number].value)
            faulty = self._trace.arithmetic.floats(value)
            changed = np.flatnonzero((clean.view(np.uint32) != faulty.view(np.uint32)).any(axis=-1)[0])
            tiles += len(changed)
            maps[queue] = maps.get(queue, 0) | sum(1 << tile for tile in changed.tolist())
            strange |= bool((~np.isfinite(faulty) & np.isfinite(clean)).any())
            top1 = min(top1, self._share_with_same_largest(queue, clean, faulty))
            likeness = _pcc_of(clean, faulty)
            if likeness <= worst:
                worst = likeness
                output = queue
            error = max(error, _relative_error(clean, faulty))
        return Effect(
            fault=fault,
            outcome=self._rate_outcome(strange, worst, top1),
            pcc=worst,
            max_error=error if isfinite(error) else None,
            tiles=tiles,
            output=output,
            computed=computed,
            top1=top1,
            maps={queue: f"{bits:x}" for queue, bits in maps.items()},
        )

    def _rate_outcome(self, strange: bool, likeness: float, top1: float) -> Outcome:
        """Return how bad a fault is that changed outputs: "not finite", "tolerable" or "corrupt". `strange` says that
        an element is not finite where the clean one is; `likeness` is the least PCC of an output; `top1` is the least
        share of rows whose largest element stays in its place."""
        if strange:
            return "not finite"
        if likeness >= self._tolerance.least_pcc and (top1 == 1.0 or not self._tolerance.top1):
            return "tolerable"
        return "corrupt"

    def of_machine(self, fault: Fault, left: Left) -> Effect:
        """Return the effect of a fault by the contents of queues and rams that a whole run with it left. Entries that
        the host does not find, or finds and should not, make it corrupt."""
        equal = self._trace.arithmetic.equal
        nodes = self._trace.nodes
        differ = {number: value for number, value in left.values.items() if not equal(value, nodes[number].value)}
        effect = self.of_values(fault, differ)
        wrong = self._describe_wrong_entries(left)
        if not wrong or effect.outcome == "not finite":
            return effect
        return Effect(
            fault=fault,
            outcome="corrupt",
            pcc=0.0,
            max_error=effect.max_error,
            tiles=effect.tiles,
            output=effect.output or wrong[0].partition(":")[0],
            computed=0,
            error="; ".join(wrong),
            top1=effect.top1,
            maps=effect.maps,
        )

    def _describe_wrong_entries(self, left: Left) -> list[str]:
        """Return a text for each output entry that was never written, and for each queue in which the host finds other
        entries than after the clean run."""
        missing = {self._places[number] for number in self._places.keys() - left.values.keys()}
        wrong = [f"{queue}: entry in slot {slot} was never written" for queue, slot in sorted(missing)]
        for queue in sorted({queue for queue, _ in self.outputs} & left.windows.keys()):
            clean = self._trace.left[queue]
            faulty = left.windows[queue]
            if len(clean) != len(faulty):
                wrong.append(f"{queue}: the host finds {len(faulty)} entries, not {len(clean)}")
            elif clean != faulty:
                wrong.append(f"{queue}: the host finds other entries")
        return wrong

    def _share_with_same_largest(self, queue: str, clean: Floats, faulty: Floats) -> float:
        """Return the share of an entry's rows whose largest element is where it is in the clean run."""
        blocking = self._trace.netlist.queues[queue].blocking
        with np.errstate(all="ignore"):
            before = np.nan_to_num(rows_of(clean, blocking)).argmax(axis=-1)
            after = np.nan_to_num(rows_of(faulty, blocking)).argmax(axis=-1)
        return int((before == after).sum()) / before.size


def rows_of(tiles: Floats, blocking: Blocking) -> Floats:
    """Return an entry float32[1, tiles, 1024] as float32[t, rows, columns]."""
    t, rows, cols = blocking.shape
    height, width = blocking.tile_dim
    cut = tiles.reshape(t, rows, cols, 32, 32)[..., :height, :width]
    return cut.swapaxes(2, 3).reshape(t, rows * height, cols * width)


def _pcc_of(clean: Floats, faulty: Floats) -> float:
    """Return the PCC of a faulty entry and the clean one, computed as the comparisons of tests do (NETLIST 5.3); 0 if
    it is not finite."""
    with np.errstate(all="ignore"):
        rows = [
            replace_special(values.reshape(1, -1).astype(np.float64), nan_is_zero=True) for values in (clean, faulty)
        ]
    value, rounded = pcc(rows[0], rows[1], rows[0].shape[1])
    if rounded[0]:
        return 1.0
    if isfinite(value[0]):
        return float(value[0])
    return 0.0


def _relative_error(clean: Floats, faulty: Floats) -> float:
    """Return the largest difference of an element, as a multiple of the root mean square of the clean entry."""
    with np.errstate(all="ignore"):
        size = float(np.sqrt(np.mean(clean.astype(np.float64) ** 2)))
        return float(np.abs(faulty.astype(np.float64) - clean).max()) / (size or 1.0)


@dataclass(frozen=True, slots=True)
class Steps:
    """A fault as commands of the debugger. `values` are the faulty value, [t, rows, columns]; `before` are the
    commands that stop where it is written; `target` is its name there."""

    values: Floats
    before: tuple[str, ...]
    target: str

    def commands(self, file: str) -> tuple[str, ...]:
        """Return all commands, with `file` as the file that holds `values`."""
        return (*self.before, f"write {self.target} {file}")


def steps(sites: Sites, fault: Fault, spoils: Mapping[int, Spoil]) -> Steps:
    """Return a fault as commands of the debugger, if it changes one value for all that read it; `spoils` has the
    functions that change values, by node. Raises HostError for any other fault."""
    if fault.reader is not None or len(fault.nodes) != 1:
        raise HostError(
            f"fault {fault.number}: the debugger changes one value for all that read it; this fault is of another kind"
        )
    node = sites.trace.nodes[fault.nodes[0]]
    floats = sites.trace.arithmetic.floats(spoils[node.number](node.value))
    if node.step is None:
        blocking = sites.trace.netlist.queues[node.queue].blocking
        return Steps(rows_of(floats, blocking), (), f"{node.queue}[{node.slot}]")
    origin = _op_result(sites, node)
    if origin is None or not isinstance(origin.step, Run):
        raise HostError(
            f"fault {fault.number}: ops read what {node.queue} is given as it was: the debugger changes it for all"
        )
    op = origin.step.op
    return Steps(rows_of(floats, op.blocking), _right_after(op.name, sites.ordinals[origin.number]), f"op:{op.name}")


def _op_result(sites: Sites, node: Node) -> Node | None:
    """Return the node of the op's result that an entry is an exact copy of; None if something else reads that result,
    too, or the entry is rearranged. A node that is no entry is returned itself."""
    if not isinstance(node.step, Push):
        return node
    source = sites.trace.nodes[node.inputs[0]]
    alone = node.step.map is None and len(source.readers) == 1
    if alone and name_of(source):
        return source
    return None


def _right_after(op: str, times: int) -> tuple[str, ...]:
    """Return the debugger's commands that stop right after a run of the op that `times` earlier runs precede."""
    ignored = ()
    if times:
        ignored = (f"ignore 1 {times}",)
    return (f"break if absmax(op:{op}) >= 0 or nan(op:{op}) > 0", *ignored, "continue", "delete")


BATCH: Final = 64
"""Faults that a worker gets at once, and after which the width of the interval is checked."""
_WAITS: Final = frozenset(("full", "empty", "deadlock"))
"""The `STOP_KINDS` of a program that waits for ever."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a campaign.

    `places`: where bits flip, by default all of the precision; `burst`: bits of a flip, neighbours unless `scatter`;
    `least_pcc`: the PCC of a tolerable output entry; `only`: an op or a queue, "" for all; `top1`: a tolerable entry
    also has the largest element of each row in its place; `late`: the ratio to the time of the clean run beyond which
    a run is late; `strata`: parts that get equally many faults; `protect`: protections to try; `given`: faults to
    inject instead of drawn ones.
    """

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

    def with_places(self, precision: Precision) -> "Settings":
        """Return the settings with places to flip bits in: those that are named, else all that machines of this
        precision have."""
        if self.places:
            return self
        places = tuple(place for place in PLACES if precision == "device" or place not in INSIDE)
        return replace(self, places=places)

    def as_json(self) -> dict[str, Any]:
        """Return the settings as plain data."""
        lists = {name: list(getattr(self, name)) for name in ("kinds", "places", "protect")}
        return {**asdict(self), **lists, "given": [fault.as_json() for fault in self.given]}


class Bench:
    """A recorded run into which faults are injected one by one."""

    def __init__(self, machines: Machines, times: Times, trace: Trace, settings: Settings) -> None:
        settings = settings.with_places(machines.precision)
        self.trace = trace
        self.settings = settings
        self._machines = machines
        self._times = times
        self._given = {fault.number: fault for fault in settings.given}
        places: list[Place] = [fault.place for fault in settings.given if fault.place in PLACES]
        self.sites = Sites(trace, times.cycles(), settings.only, (*settings.places, *places))
        self._draw = Draw(self.sites, settings.kinds, settings.burst, settings.strata, scatter=settings.scatter)
        if settings.given:
            self.left_out = ()
        else:
            self.left_out = tuple(self._draw.left_out)
        self._comparison = OutputComparison(trace, Tolerance(settings.least_pcc, settings.top1))
        self.strata = self._draw.shares

    @property
    def bit_hours(self) -> float:
        """Bits of DRAM and L1 times the hours that the run holds them; 0 where no time is modelled."""
        return self.sites.bit_cycles * self._times.hours_of_a_cycle()

    def costs(self) -> dict[str, Cost]:
        """Return the cost of each protection that is tried."""
        return {name: cost(name, self.sites, self._times) for name in self.settings.protect}

    @cached_property
    def _ranges(self) -> Ranges:
        """The bounds of each op's results, learned from this run and, if inputs come from a seed, from further clean
        runs."""
        seeds = range(1, CLEAN_RUNS if self._machines.made_up else 1)
        return Ranges(chain([self.trace], map(self._machines.record_run, seeds)))

    def fault(self, number: int) -> Fault:
        """Return fault `number` of the campaign, drawn or from the settings. Raises HostError where nothing can be hit,
        and for a fault of the settings that the run does not have."""
        if self._given:
            return self._draw.resolve(self._given[number])
        return self._draw.fault(number, self.settings.seed)

    def effect(self, number: int) -> Effect:
        """Inject fault `number` and return its effect, with the effects that remain under each protection."""
        fault = self.fault(number)
        effect = self._inject(fault, None)
        after: dict[str, After] = {}
        for name in self.settings.protect:
            remaining = self._remaining_effect(name, effect)
            if remaining is not None:
                after[name] = remaining
        if after:
            return replace(effect, after=after)
        return effect

    def in_debugger(self, number: int) -> Steps:
        """Return fault `number` as commands of the debugger. Raises HostError for one that the debugger cannot make."""
        fault = self.fault(number)
        changes: dict[int, Spoil] = {}
        if fault.kind not in TIMED and not self._is_of_run(fault):
            changes = spoils(fault, self.trace, self._noise_seed(fault))
        return steps(self.sites, fault, changes)

    def _remaining_effect(self, protection: Protection, effect: Effect) -> After | None:
        """Return what a protection leaves of a fault's effect; None if the protection does not apply to it."""
        fault = effect.fault
        if protection != "range":
            return in_memory(protection, fault, self._noise_seed(fault))
        if effect.outcome == "masked" or self._is_of_run(fault):
            return None
        return self._inject(fault, self._ranges.clip).outcome

    def _noise_seed(self, fault: Fault) -> int:
        """Return the seed of a fault's random bits, such as those of a burst."""
        return seed_of(self.settings.seed, fault.number)

    @staticmethod
    def _is_of_run(fault: Fault) -> bool:
        """Return whether the fault needs a whole run, or a model of the time, of its own, rather than a change of
        recorded values."""
        return fault.kind in TIMED or fault.kind == "pointer" or (fault.kind == "entry" and fault.how in OF_RUN)

    def _inject(self, fault: Fault, guard: Guard | None) -> Effect:
        """Inject a fault and return its effect; errors that stop the run become outcomes. `guard` is applied to results
        of ops that are computed again, None for no protection."""
        try:
            if fault.kind in TIMED:
                return self._inject_time_fault(fault)
            if self._is_of_run(fault):
                left = self._machines.run_with_fault(fault, self.trace, self._comparison.outputs)
                return self._comparison.of_machine(fault, left)
            changes = spoils(fault, self.trace, self._noise_seed(fault))
            differ, computed = self.trace.propagate(changes, fault.reader, fault.operand, guard)
        except ProgramError as error:
            if error.kind not in _WAITS:
                return Effect(fault, "stopped", error=error.problem)
            if error.stopped is None:
                waits = ()
            else:
                waits = error.stopped.waiting
            return Effect(fault, "deadlock", error="; ".join((error.problem, *map(str, waits))))
        except UnsupportedError as error:
            return Effect(fault, "stopped", error=str(error).splitlines()[0])
        return self._comparison.of_values(fault, differ, computed)

    def _inject_time_fault(self, fault: Fault) -> Effect:
        """Return the effect of a fault that changes times: late if it misses a bound of `performance-check` or of the
        settings. Raises HostError where no time is modelled."""
        slower = self._times.slower(fault)
        if slower.missed:
            error = f"performance-check: {', '.join(slower.missed)}"
            return Effect(fault, "late", ratio=slower.ratio, error=error)
        if slower.ratio > self.settings.late:
            return Effect(fault, "late", ratio=slower.ratio)
        return Effect(fault, "masked" if slower.ratio == 1.0 else "tolerable", ratio=slower.ratio)


# ----------------------------------------------------------------------------------------------------------- workers
Make = Callable[[], Bench]


def injector(make: Make) -> Callable[[Sequence[int]], list[Effect]]:
    """Make a bench in a worker process, and return the function that computes the effects of faults, given by their
    numbers."""
    return partial(_inject_all, make())


def _inject_all(bench: Bench, numbers: Sequence[int]) -> list[Effect]:
    """Inject the faults of these numbers and return their effects, in order."""
    return [bench.effect(number) for number in numbers]


def effects(
    make: Make, numbers: Sequence[int], workers: Workers, bench: Bench, files: Sequence[str] = ()
) -> Generator[list[Effect], None, None]:
    """Inject the faults with these numbers, each into a run of its own, and yield their effects in order, in lists of
    up to BATCH. Workers do it on benches that `make` makes there, from `files`; without workers `bench` does it."""
    parts = [numbers[start : start + BATCH] for start in range(0, len(numbers), BATCH)]
    if workers.alone:
        for part in parts:
            yield _inject_all(bench, part)
        return
    job = Job("buda_emu.testing.injection.campaign:injector", make, tuple(files))
    with closing(in_order(spread(job, parts, workers))) as results:
        yield from results
