"""A campaign: a netlist recorded once, and one fault after the other on what was recorded."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from math import isfinite
from typing import Any, Final

import numpy as np

from buda_emu.errors import ProgramError, UnsupportedError
from buda_emu.injection.fault import PLACES, Fault, Kind, Place
from buda_emu.injection.result import Effect, Outcome
from buda_emu.injection.sites import Sites, seed_of
from buda_emu.injection.spoil import spoils
from buda_emu.injection.trace import Trace
from buda_emu.injection.values import Floats, OnDevice
from buda_emu.netlist.model import Netlist
from buda_emu.records import dataclass
from buda_emu.runtime.emulator import Emulator
from buda_emu.runtime.machine.listeners import Listener
from buda_emu.spec.precision import Precision
from buda_emu.verify.comparison.pcc import cleaned, pcc

_BATCH: Final = 64  # faults that a worker is given at once

Fill = Callable[[Emulator], object]
"""Pushes a machine's inputs."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a campaign draws and how it judges. `burst`: neighbouring bits of a flip; `least_pcc`: what an output entry
    must keep to be tolerable; `only`: an op or a queue, "" for all."""

    seed: int = 0
    kinds: tuple[Kind, ...] = ("flip",)
    places: tuple[Place, ...] = PLACES
    burst: int = 1
    least_pcc: float = 0.99
    only: str = ""

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "kinds": list(self.kinds), "places": list(self.places)}


class _Epochs(Listener):
    """Tells a trace where executes begin."""

    def __init__(self, trace: "list[Trace]") -> None:
        self._trace = trace

    def epoch_start(self, graphs: tuple[str, ...], inputs: int) -> None:  # noqa: ARG002
        """See `Listener`."""
        for trace in self._trace:
            trace.epoch(graphs)


def record(
    netlist: Netlist,
    fill: Fill,
    programs: Mapping[str, Mapping[str, str]],
    precision: Precision,
    memory_limit: int,
) -> Trace:
    """Run programs, by name with their parameters, and record every value. Raises as a run does, and UnsupportedError
    where all values do not fit the memory."""
    traces: list[Trace] = []
    emulator = Emulator(
        netlist, precision, 1, inputs_at_once=1, memory_limit=memory_limit, listeners=(_Epochs(traces),)
    )
    with closing(emulator):
        arithmetic = Floats()
        if precision == "device":
            from buda_emu.tensix.words import core_of

            arithmetic = OnDevice(core_of(netlist.arch_name))
        trace = Trace(emulator, arithmetic, memory_limit)
        traces.append(trace)
        fill(emulator)
        emulator.record(trace)
        for name, parameters in programs.items():
            emulator.run(name, parameters)
        emulator.record(None)
    return trace


class Bench:
    """Faults on one recorded run. `bit_hours`: bits of DRAM and L1 times the hours that the run holds them; 0 where no
    time is modelled."""

    def __init__(self, trace: Trace, sites: Sites, settings: Settings, bit_hours: float) -> None:
        self.trace, self.sites, self.settings, self.bit_hours = trace, sites, settings, bit_hours
        self._outputs = {number: place for place, number in trace.outputs().items()}

    def fault(self, number: int) -> Fault:
        """Fault `number`."""
        settings = self.settings
        return self.sites.draw(number, settings.seed, settings.kinds, settings.places, settings.burst)

    def effect(self, number: int) -> Effect:
        """What fault `number` does."""
        fault = self.fault(number)
        made = spoils(fault, self.trace, seed_of(self.settings.seed, number))
        try:
            differ, computed = self.trace.changed(made, fault.reader, fault.operand)
        except (ProgramError, UnsupportedError) as error:
            return Effect(fault, "stopped", error=str(error).splitlines()[0])
        return self._judged(fault, {n: value for n, value in differ.items() if n in self._outputs}, computed)

    def _judged(self, fault: Fault, differ: Mapping[int, Any], computed: int) -> Effect:
        if not differ:
            return Effect(fault, "masked", computed=computed)
        worst, error, tiles, output, strange = 1.0, 0.0, 0, "", False
        for number, value in differ.items():
            clean = self.trace.arithmetic.floats(self.trace.nodes[number].value)
            found = self.trace.arithmetic.floats(value)
            tiles += int((clean.view(np.uint32) != found.view(np.uint32)).any(axis=-1).sum())
            strange |= bool((~np.isfinite(found) & np.isfinite(clean)).any())
            likeness = _likeness(clean, found)
            if likeness <= worst:
                worst, output = likeness, self._outputs[number][0]
            error = max(error, _error(clean, found))
        outcome: Outcome = "tolerable" if worst >= self.settings.least_pcc else "corrupt"
        return Effect(
            fault, "not finite" if strange else outcome, worst, error if isfinite(error) else None, tiles, output,
            computed,
        )  # fmt: skip


def _likeness(clean: "np.ndarray[Any, np.dtype[np.float32]]", found: "np.ndarray[Any, np.dtype[np.float32]]") -> float:
    """PCC of an entry, as comparisons of tests have it (NETLIST 5.3)."""
    with np.errstate(all="ignore"):
        rows = [cleaned(values.reshape(1, -1).astype(np.float64), nan_is_zero=True) for values in (clean, found)]
    value, rounded = pcc(rows[0], rows[1], rows[0].shape[1])
    return 1.0 if rounded[0] else float(value[0]) if isfinite(value[0]) else 0.0


def _error(clean: "np.ndarray[Any, np.dtype[np.float32]]", found: "np.ndarray[Any, np.dtype[np.float32]]") -> float:
    """The largest difference, relative to the root mean square of the clean entry."""
    with np.errstate(all="ignore"):
        size = float(np.sqrt(np.mean(clean.astype(np.float64) ** 2)))
        return float(np.max(np.abs(found.astype(np.float64) - clean))) / (size or 1.0)


def effects_of(bench: Bench, numbers: Sequence[int]) -> list[Effect]:
    """What faults of these numbers do, in their order."""
    return [bench.effect(number) for number in numbers]


def batches(numbers: Sequence[int]) -> list[Sequence[int]]:
    """What a worker is given at once."""
    return [numbers[start : start + _BATCH] for start in range(0, len(numbers), _BATCH)]
