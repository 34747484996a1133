"""Evaluates a placement with the timing model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from buda_emu.compiler.emit.netlist import netlist_of
from buda_emu.compiler.emit.programs import ONE_ROUND
from buda_emu.compiler.place.placement import Placement
from buda_emu.netlist.model import Netlist, Program
from buda_emu.netlist.variants import LOOP
from buda_emu.performance.timing.model import (
    EpochFigures,
    EpochModel,
    ModelledEpochs,
    epochs_with_ops,
    model_netlist,
    model_totals,
    require_places,
)
from buda_emu.performance.timing.transfers.rates import speed

if TYPE_CHECKING:
    from buda_emu.performance.timing.result import EpochReport, PerfRun
    from buda_emu.performance.timing.transfers.flows import Flow


@dataclass(frozen=True)
class Evaluation:
    """A placement with its modelled time, in cycles for each input: `cycles` in all, `host` on the host link. The
    netlist and the run are those of one copy; copies share nothing but the host."""

    placement: Placement
    netlist: Netlist
    run: "PerfRun"
    cycles: float
    host: float


@dataclass(frozen=True, slots=True)
class EpochCache:
    """The results of a compilation for single epochs: their modelled `figures`, by a key of all that these depend on;
    and where their ops were `moved`, by kind of search, epoch and ops."""

    figures: ModelledEpochs = field(default_factory=ModelledEpochs)
    moved: dict[object, "FinalPlaces"] = field(default_factory=dict[object, "FinalPlaces"])


class FinalPlaces(NamedTuple):
    """The end of a search for places of an epoch's ops: for each op the upper left core and whether its grid is
    transposed; how many moves were `tried`, of at most `limit`."""

    places: Mapping[str, tuple[tuple[int, int], bool]]
    tried: int
    limit: int

    def holds(self, limit: int) -> bool:
        """Return whether a search of at most `limit` moves would end at these places, so that it need not be made: it
        has the same limit, or both end before their limits."""
        return limit == self.limit or self.tried < min(self.limit, limit + 1)


class EpochEvaluation:
    """The modelled figures of a placement that has one epoch. They are looked up where an equal epoch was modelled
    before; the schedule (`report`) is computed when it is asked for."""

    def __init__(self, placement: Placement, cache: EpochCache) -> None:
        """Model the placement, or find its figures in `cache`, which receives those of epochs that it does not have."""
        chip = placement.target.chip
        self.placement = placement
        self.netlist, programs, rounds = _one_round_netlist(placement)
        require_places(self.netlist, chip)
        self._chip = chip
        self._model = EpochModel(speed(chip, {}), chip)
        self._epoch = epochs_with_ops(self.netlist, programs, rounds)[0]
        self._transfers = self._model.transfers(self.netlist, self._epoch)
        self.key = self._transfers.key(self.netlist, self._epoch)
        figures = cache.figures.get(self.key)
        if figures is None:
            figures = cache.figures[self.key] = EpochFigures.of(self.report.timing, self.report.load)
        self._figures = figures

    @cached_property
    def report(self) -> "EpochReport":
        """The epoch with the times of all its tasks."""
        return self._model.report(self.netlist, self._epoch, self._transfers)

    @property
    def edges(self) -> "Sequence[Flow]":
        """The edges of the epoch, along which it moves data."""
        return self._transfers.edges

    @property
    def cycles(self) -> float:
        """The cycles of a round of inputs, with loading the epoch."""
        return self._figures.timing + self._figures.load

    @property
    def bottleneck(self) -> str:
        """The kind of unit that sets the pace of the epoch: op, memory, link, transfer, buffers or latency."""
        return self._figures.bottleneck

    @cached_property
    def op_cycles(self) -> dict[str, float]:
        """The cycles that each op takes for one input."""
        graphs = self._epoch.temporal.graphs
        names = [op.name for graph in graphs for op in self.netlist.graphs[graph].ops]
        return dict(zip(names, self._figures.ops, strict=True))


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
    """Return the placement with the cycles for each input that the model of `buda-emu perf` finds while all copies
    work, but no fewer than the host link takes."""
    netlist, programs, rounds = _one_round_netlist(placement)
    run = model_netlist(netlist, programs, rounds, chip=placement.target.chip)
    inputs = placement.microbatch * placement.rounds
    host = sum(run.host_seconds().values()) * run.clock * 1e6 / inputs
    cycles = sum(run.programs().values()) / (inputs * placement.copies)
    return Evaluation(placement=placement, netlist=netlist, run=run, cycles=max(cycles, host), host=host)


def evaluate_figures(placement: Placement, earlier: ModelledEpochs) -> Figures:
    """Return the modelled figures of a placement, as `evaluate` finds them, without its netlist and run. Epochs that
    equal one in `earlier` are not modelled again; the others are added to it."""
    chip = placement.target.chip
    total = model_totals(*_one_round_netlist(placement), chip, earlier)
    inputs = placement.microbatch * placement.rounds
    host = total.host * chip.clock * 1e6 / inputs
    cycles = total.cycles / inputs
    math = total.math / (prod(placement.target.arch.grid) * placement.chips)
    chips = cycles / placement.copies
    return Figures(
        placement=placement, cycles=max(chips, host), host=host, chips=chips, bound=max(math, host), epochs=total.epochs
    )


def _one_round_netlist(placement: Placement) -> tuple[Netlist, Sequence[Program], Mapping[str, str]]:
    """Return the netlist of one copy of a placement, its programs in their order, and their parameters for one step or
    round."""
    netlist = netlist_of(replace(placement, copies=1), "placed")
    programs = [netlist.programs[name] for name in dict.fromkeys(netlist.program_order)]
    return netlist, programs, {**ONE_ROUND, LOOP: str(placement.rounds)}
