"""Figures of edited netlists: only the epochs that an edit touches are modelled again."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

from buda_emu.netlist.model import Netlist, Op, Program
from buda_emu.performance.advice.edits import Edit, Proposal, apply_edits
from buda_emu.performance.timing.model import EpochModel, epochs
from buda_emu.performance.timing.result import EpochReport
from buda_emu.performance.timing.transfers.rates import speed
from buda_emu.spec.devices import Device, device
from buda_emu.support.errors import BudaError
from buda_emu.support.workers.job import Job, Workers
from buda_emu.support.workers.spread import JobPool, in_order

_NEAR = 0.25  # units that work at least this share of the pace count among those that may set it
_POWER = 8  # so high that a sum of powers is nearly that of the busiest unit, yet falls when one of several gets faster
_AHEAD = 4  # proposals for each worker that are modelled at once, though one of the first may be taken


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures by which an epoch is compared: cycles for each input (`pace`), how close its units are to setting the
    pace (`load`), and the cycles of all its runs and of their loading."""

    pace: float
    load: float
    cycles: float
    loading: float

    @staticmethod
    def of(report: EpochReport) -> "Figures":
        """Return the figures by which an epoch is compared, from its report."""
        pace = max(report.pace, 1.0)
        busy = [unit.cycles / pace for _, unit in report.timing.busy()]
        load = sum(share**_POWER for share in busy if share > _NEAR) * pace**_POWER
        return Figures(report.pace, load, report.runs * report.cycles, report.runs * report.load.cycles)


@dataclass(frozen=True, slots=True)
class Variant:
    """A netlist with the edits so far, and its epochs. `reports` is outdated for the epochs in `missing`, which workers
    have modelled, until `Evaluator.whole`."""

    netlist: Netlist
    edits: tuple[Edit, ...]
    reports: tuple[EpochReport, ...]
    figures: tuple[Figures, ...]
    missing: tuple[int, ...] = ()

    def score(self, epoch: int) -> tuple[float, float]:
        """Return how slow epoch number `epoch` is, as a pair to compare: its cycles for each input, then how close its
        units are to setting the pace."""
        figures = self.figures[epoch]
        return figures.pace, figures.load

    @property
    def cycles(self) -> float:
        """Return the cycles of all programs."""
        return sum(epoch.cycles for epoch in self.figures)

    @property
    def loading(self) -> float:
        """Return the part of `cycles` in which epochs are loaded."""
        return sum(epoch.loading for epoch in self.figures)

    @property
    def slowest(self) -> float:
        """Return the cycles for each input of the slowest epoch."""
        return max((epoch.pace for epoch in self.figures), default=0.0)


Reports = tuple[tuple[int, EpochReport], ...]
"""Of the epochs that edits touch, by their numbers."""


@dataclass(frozen=True, slots=True)
class _WorkerArguments:
    """The arguments from which a worker makes its own evaluator."""

    netlist: Netlist
    programs: tuple[Program, ...]
    parameters: dict[str, str]
    chip: Device


def modeller(
    about: _WorkerArguments,
) -> Callable[[tuple[tuple[Edit, ...], tuple[Edit, ...]]], dict[int, Figures] | None]:
    """Return the job function of a worker process, which has an evaluator of its own, made from `about`. The function
    takes (edits so far, new edits), and returns the figures of the epochs that the new ones touch, by epoch number;
    None if an op cannot be modelled."""
    evaluator = Evaluator(about.netlist, about.programs, about.parameters, about.chip)

    def work(job: tuple[tuple[Edit, ...], tuple[Edit, ...]]) -> dict[int, Figures] | None:
        """Model the epochs that the second edits of the job touch, with the first edits made before, and return their
        figures by epoch number; None if an op cannot be modelled."""
        before, new_edits = job
        reports = evaluator.reports(apply_edits(apply_edits(about.netlist, before), new_edits), new_edits)
        if reports is None:
            return None
        return {number: Figures.of(report) for number, report in reports}

    return work


class Evaluator:
    """Models edited netlists, and counts in `tries` the epochs modelled for that; to be closed after use. The
    constructor models all epochs of the unedited netlist (`start`), and raises the same errors as
    `timing.model.model_netlist`."""

    def __init__(
        self,
        netlist: Netlist,
        programs: Sequence[Program],
        parameters: Mapping[str, str],
        chip: Device | None = None,
        workers: Workers | None = None,
    ) -> None:
        self.chip = chip or device(netlist.arch_name)
        self.tries = 0
        self.workers = workers or Workers()
        about = _WorkerArguments(netlist, tuple(programs), dict(parameters), self.chip)
        self._pool = JobPool(Job("buda_emu.performance.advice.evaluate:modeller", about), self.workers)
        self._model = EpochModel(speed(self.chip, {}), self.chip)
        self.epochs = [
            epoch
            for epoch in epochs(netlist, programs, parameters)
            if any(netlist.graphs[name].ops for name in epoch.temporal.graphs)
        ]
        reports = tuple(self._model(netlist, epoch) for epoch in self.epochs)
        self._readers = self._touched_by(netlist)
        self.start = Variant(netlist, (), reports, tuple(map(Figures.of, reports)))

    def _touched_by(self, netlist: Netlist) -> Mapping[str, frozenset[int]]:
        """Return for the name of each op or queue the numbers of the epochs that run it, read it or fill it, whose
        figures depend on it."""
        epochs_of_name: dict[str, set[int]] = {}
        for number, epoch in enumerate(self.epochs):
            ops = list(chain.from_iterable(netlist.graphs[name].ops for name in epoch.temporal.graphs))
            names = {op.name for op in ops}.union(*(op.inputs for op in ops))
            op_names = {op.name for op in ops}
            names |= {queue.name for queue in netlist.queues.values() if queue.input in op_names}
            for name in names:
                epochs_of_name.setdefault(name, set()).add(number)
        return {name: frozenset(numbers) for name, numbers in epochs_of_name.items()}

    def epochs_of(self, name: str) -> frozenset[int]:
        """Return the numbers of the epochs whose figures depend on the op or queue of this name; none for an unknown
        name."""
        return self._readers.get(name, frozenset())

    def with_edits(self, base: Variant, edits: Iterable[Edit]) -> Variant | None:
        """Return `base` with further edits and the epochs that they touch modelled again, and count these epochs as
        tries; None if an op cannot be modelled then."""
        new_edits = tuple(edits)
        netlist = apply_edits(base.netlist, new_edits)
        self.tries += len(self._changed_epochs(new_edits))
        new_reports = self.reports(netlist, new_edits)
        if new_reports is None:
            return None
        reports = list(base.reports)
        figures = list(base.figures)
        for number, report in new_reports:
            reports[number] = report
            figures[number] = Figures.of(report)
        return Variant(netlist, (*base.edits, *new_edits), tuple(reports), tuple(figures))

    def reports(self, netlist: Netlist, edits: Sequence[Edit]) -> Reports | None:
        """Return (number, report) of each epoch that the edits touch. `netlist` has the edits already. None if one of
        its ops cannot be modelled."""
        try:
            return tuple((number, self._model(netlist, self.epochs[number])) for number in self._changed_epochs(edits))
        except BudaError:
            return None

    def _changed_epochs(self, edits: Sequence[Edit]) -> list[int]:
        """Return the numbers of the epochs that the edits touch, in order."""
        return sorted(frozenset[int]().union(*(self.epochs_of(edit.name) for edit in edits)))

    def _variant_from_worker(
        self, base: Variant, new_edits: tuple[Edit, ...], new_figures: dict[int, Figures] | None
    ) -> Variant | None:
        """Return `base` with further edits and the figures that a worker returned for them; None if it returned None.
        Tries are counted here, so that their number does not depend on how many are modelled ahead."""
        changed = self._changed_epochs(new_edits)
        self.tries += len(changed)
        if new_figures is None:
            return None
        figures = tuple(new_figures.get(number, old_figures) for number, old_figures in enumerate(base.figures))
        return Variant(
            netlist=apply_edits(base.netlist, new_edits),
            edits=(*base.edits, *new_edits),
            reports=base.reports,
            figures=figures,
            missing=tuple(changed),
        )

    def whole(self, variant: Variant) -> Variant:
        """Return the variant with the reports of all epochs up to date: those that only a worker had modelled
        (`missing`) are modelled again in this process."""
        reports = list(variant.reports)
        for number in variant.missing:
            reports[number] = self._model(variant.netlist, self.epochs[number])
        return replace(variant, reports=tuple(reports), missing=())

    def close(self) -> None:
        """End the worker processes of the pool."""
        self._pool.close()

    def each(
        self, base: Variant, proposals: Iterator[Proposal], limit: int
    ) -> Iterator[tuple[Proposal, Variant | None]]:
        """Yield each proposal in order with `base` edited by it alone (None if that cannot be modelled), until `tries`
        reaches `limit`. Workers model ahead of the caller."""
        if self.workers.alone:
            while self.tries < limit and (proposal := next(proposals, None)) is not None:
                yield proposal, self.with_edits(base, proposal.edits)
            return
        size = _AHEAD * self.workers.count
        while part := list(islice(proposals, size)):
            items = [(base.edits, proposal.edits) for proposal in part]
            for proposal, new_figures in zip(part, list(in_order(self._pool.spread(items))), strict=True):
                if self.tries >= limit:
                    return
                yield proposal, self._variant_from_worker(base, proposal.edits, new_figures)

    def again(self, base: Variant, netlist: Netlist) -> Variant:
        """Model all epochs of `netlist`, the edited netlist of `base` as read back from its text, and return `base`
        with it and these figures."""
        reports = tuple(self._model(netlist, epoch) for epoch in self.epochs)
        return replace(base, netlist=netlist, reports=reports, figures=tuple(map(Figures.of, reports)))

    def op_cycles(self, variant: Variant, op: Op, epoch: int) -> float | None:
        """Return the cycles that each core of `op` takes for one input in epoch number `epoch` of the variant; `op` may
        be an edited copy. None if it cannot be modelled."""
        try:
            return self._model.cycles(variant.netlist, op, variant.reports[epoch].edges)
        except BudaError:
            return None
