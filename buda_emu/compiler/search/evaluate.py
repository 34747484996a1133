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
class Evaluation:
    """A placement with its modelled time, in cycles for each input: `cycles` in all, `host` on the host link. The
    netlist and the run are those of one copy; copies share nothing but the host."""

    placement: Placement
    netlist: Netlist
    run: "PerfRun"
    cycles: float
    host: float


@dataclass(frozen=True)
class Figures:
    """The modelled figures of a placement, in cycles for each input.

    `cycles` is the total, `host` that of the host link, `chips` that of the chips alone; no placement undercuts
    `bound`, which is the math of all cores or the host link; `epochs` are the cycles of a round of each epoch with
    loading it."""

    placement: Placement
    cycles: float
    host: float
    chips: float
    bound: float
    epochs: tuple[float, ...]


def evaluate(placement: Placement) -> Evaluation:
    """Evaluate a placement with the model of `buda-emu perf`; the host link is a limit, too."""
    netlist, programs, rounds = _netlist(placement)
    run = model_netlist(netlist, programs, rounds, chip=placement.target.chip)
    inputs = placement.microbatch * placement.rounds
    host = sum(run.host_seconds().values()) * run.clock * 1e6 / inputs
    cycles = sum(run.programs().values()) / (inputs * placement.copies)
    return Evaluation(placement=placement, netlist=netlist, run=run, cycles=max(cycles, host), host=host)


def evaluate_figures(placement: Placement, earlier: ModelledEpochs) -> Figures:
    """Return the modelled figures of a placement without its netlist and run. Epochs that equal one of the `earlier`
    epochs are not modelled again."""
    chip = placement.target.chip
    total = model_totals(*_netlist(placement), chip, earlier)
    inputs = placement.microbatch * placement.rounds
    host = total.host * chip.clock * 1e6 / inputs
    cycles = total.cycles / inputs
    math = total.math / (prod(placement.target.arch.grid) * placement.chips)
    chips = cycles / placement.copies
    return Figures(
        placement=placement, cycles=max(chips, host), host=host, chips=chips, bound=max(math, host), epochs=total.epochs
    )


def _netlist(placement: Placement) -> tuple[Netlist, Sequence[Program], Mapping[str, str]]:
    """Return the netlist of one copy, its programs, and their parameters for one step or round."""
    netlist = netlist_of(replace(placement, copies=1), "placed")
    programs = [netlist.programs[name] for name in dict.fromkeys(netlist.program_order)]
    return netlist, programs, {**ONE_ROUND, LOOP: str(placement.rounds)}
