"""Evaluates a placement with the timing model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

from buda_emu.compiler.emit.netlist import netlist_of
from buda_emu.compiler.emit.programs import ONE_ROUND
from buda_emu.compiler.place.placement import Placement
from buda_emu.netlist.model import Netlist, Program
from buda_emu.netlist.variants import LOOP
from buda_emu.performance.timing.model import ModelledEpochs, model_netlist, model_totals

if TYPE_CHECKING:
    from buda_emu.performance.timing.result import PerfRun


@dataclass(frozen=True)
class Evaluated:
    """A placement and its modelled time. `cycles` of one input, `host` those of the host link; netlist and run are
    those of one copy: they share nothing but the host."""

    placement: Placement
    netlist: Netlist
    run: "PerfRun"
    cycles: float
    host: float


@dataclass(frozen=True)
class Figures:
    """Of a placement: cycles of one input, those of the host link, those of the chips alone, and those that no
    placement undercuts: the math of all cores, the host link; cycles of a round of each epoch, loading it included."""

    placement: Placement
    cycles: float
    host: float
    chips: float
    bound: float
    epochs: tuple[float, ...]


def judged(placement: Placement) -> Evaluated:
    """By the same model as `buda-emu perf`; the host link is a limit, too."""
    netlist, programs, rounds = _netlist(placement)
    run = model_netlist(netlist, programs, rounds, chip=placement.target.chip)
    inputs = placement.microbatch * placement.rounds
    host = sum(run.host_seconds().values()) * run.clock * 1e6 / inputs
    cycles = sum(run.programs().values()) / (inputs * placement.copies)
    return Evaluated(placement=placement, netlist=netlist, run=run, cycles=max(cycles, host), host=host)


def figures(placement: Placement, known: ModelledEpochs) -> Figures:
    """The same without what it consists of; epochs that are like `known` ones are not modelled again."""
    chip = placement.target.chip
    total = model_totals(*_netlist(placement), chip, known)
    inputs = placement.microbatch * placement.rounds
    host = total.host * chip.clock * 1e6 / inputs
    cycles = total.cycles / inputs
    math = total.math / (prod(placement.target.arch.grid) * placement.chips)
    chips = cycles / placement.copies
    return Figures(
        placement=placement, cycles=max(chips, host), host=host, chips=chips, bound=max(math, host), epochs=total.epochs
    )


def _netlist(placement: Placement) -> tuple[Netlist, Sequence[Program], Mapping[str, str]]:
    """Of one copy, with its programs, and their parameters for a step or a round."""
    netlist = netlist_of(replace(placement, copies=1), "placed")
    programs = [netlist.programs[name] for name in dict.fromkeys(netlist.program_order)]
    return netlist, programs, {**ONE_ROUND, LOOP: str(placement.rounds)}
