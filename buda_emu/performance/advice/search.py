"""The search: it tries single changes for the bottlenecks of the slowest epochs, then combines changes greedily."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

from buda_emu.performance.advice.accuracy import Accuracy, Loss
from buda_emu.performance.advice.edits import Edit, Proposal, merge_edits
from buda_emu.performance.advice.evaluate import Evaluator, Variant
from buda_emu.performance.advice.moves import MOVES
from buda_emu.performance.advice.moves.cores import SPLITTING, reason_unsplit
from buda_emu.performance.advice.moves.move import Move, Situation, Target
from buda_emu.performance.advice.patch import UnwritableError, check_patch
from buda_emu.performance.timing.epoch.critical import critical_steps
from buda_emu.performance.timing.flags import op_beside_free_cores
from buda_emu.performance.timing.result import EpochReport
from buda_emu.support.progress import Activity, Report, do_nothing

_TARGETS = 4  # of an epoch that are looked at
_CLOSE = 0.9  # a unit that works this share of the busiest one's cycles is looked at, too
_TOGETHER = 16  # proposals that are modelled for one step
_BETTER = 1e-3  # of the pace: what is less is no gain
_TAIL = 1e-2  # of the load of other busy units, where the pace stays
_GAIN = 1e-4  # of the cycles of all programs, that the last step has to spare
_WORSE = 1e-3  # of the pace of another epoch, that is allowed


@dataclass(frozen=True, slots=True)
class Tried:
    """A proposal by itself, on the netlist as it is. `before` and `after` are cycles for each input of its epoch."""

    proposal: Proposal
    epoch: int
    before: float
    after: float
    slowest: float  # of all epochs, with it
    total: float  # cycles of all programs, with it
    loss: Loss | None  # of accuracy; None where values stay as they are

    def __repr__(self) -> str:
        return f"<Tried {self.proposal.sentence}: {self.before:,.0f} to {self.after:,.0f} cycles for each input>"

    @property
    def saved(self) -> float:
        """Return the cycles that the proposal saves for each input of its epoch."""
        return self.before - self.after


@dataclass(frozen=True, slots=True)
class Unsplit:
    """An op that bounds its epoch while cores are free, and why no change gives it more."""

    op: str
    graphs: tuple[str, ...]
    reason: str
    cores: int = 1


@dataclass(slots=True)
class Found:
    """The result of a search: proposals by themselves, those that were combined, and the netlist with these."""

    start: Variant
    best: Variant
    alone: list[Tried] = field(default_factory=list[Tried])
    taken: list[tuple[Proposal, Loss | None]] = field(default_factory=list[tuple[Proposal, Loss | None]])
    refused: list[tuple[Proposal, str]] = field(default_factory=list[tuple[Proposal, str]])  # and why
    steps: list[Variant] = field(default_factory=list[Variant])  # after each that was taken
    unsplit: list[Unsplit] = field(default_factory=list[Unsplit])
    modelled: int = 0  # proposals

    @property
    def lost(self) -> float:
        """Return the sum of the PCC that the ops changed by the combined proposals lose."""
        return sum(loss.pcc_lost for _, loss in self.taken if loss is not None)


@dataclass(slots=True)
class Search:
    """A search for faster variants of the netlist with text `data`. `most_loss` is the PCC that all changes together
    may cost their ops; `tries` is the greatest number of epochs that are modelled."""

    data: bytes
    evaluator: Evaluator
    accuracy: Accuracy
    most_loss: float
    tries: int
    moves: Sequence[Move] = MOVES
    progress: Report = do_nothing
    _known: frozenset[tuple[str, str]] = frozenset()

    def run(self) -> Found:
        """Search, and return the proposals that help alone, those combined, and the best netlist; without any that
        helps, the netlist as it is. The result is deterministic: nothing depends on time."""
        start = self.evaluator.start
        self._known = frozenset((finding.rule, finding.message) for finding in start.netlist.diagnostics)
        result = Found(start, start)
        self._try_single_changes(result)
        self._combine_changes(result)
        _drop_idle_steps(result)
        result.unsplit = list(self._unsplit_ops(result))
        return result

    def _unsplit_ops(self, result: Found) -> Iterator[Unsplit]:
        """Yield the ops that still bound their epochs in the best netlist while cores are free, the slowest epoch
        first, each with why it gets no more cores."""
        best = result.best
        refused = {proposal.target: reason for proposal, reason in result.refused if proposal.move in SPLITTING}
        for epoch in sorted(range(len(best.reports)), key=lambda number: -best.reports[number].pace):
            report = best.reports[epoch]
            name = op_beside_free_cores(best.netlist, self.evaluator.chip.grid, report)
            if not name:
                continue
            situation = Situation(self.evaluator, best, epoch, Target("op", name, report.bottleneck.cycles))
            reason = reason_unsplit(situation, best.netlist.ops[name])
            if not reason and name in refused:
                reason = f"the checker refuses it on more cores: {refused[name]}"
            if not reason:
                reason = "more cores would make no epoch faster, or the search ended before it tried them (--tries)"
            yield Unsplit(name, report.graphs, reason, best.netlist.ops[name].blocking.cells)

    def _report(self, text: str) -> None:
        """Report to `progress` what is tried, and how many epochs have been modelled of the most that may be."""
        self.progress(Activity(text, "search", self.evaluator.tries, self.tries))

    # ----------------------------------------------------------------------------------------- one change at a time
    def _try_single_changes(self, result: Found) -> None:
        """Try proposals for each epoch alone on the netlist as it is, the slowest epoch first, until a third of the
        tries are used; add those that help to `result.alone`, and those that the checker refuses to
        `result.refused`."""
        order = sorted(range(len(result.start.reports)), key=lambda epoch: -result.start.reports[epoch].pace)
        seen: set[tuple[Edit, ...]] = set()
        for epoch in order:
            new = self._new_proposals(result.start, epoch, seen)
            for proposal, variant in self.evaluator.each(result.start, new, self.tries // 3):
                self._report(f"alone: {proposal.sentence}")
                result.modelled += 1
                if variant is None or not self._gains(result.start, variant, epoch):
                    continue
                reason = self._refusal(result.start, proposal.edits)
                if reason:
                    result.refused.append((proposal, reason))
                    continue
                if proposal.lossy:
                    loss = self.accuracy.loss(result.start.netlist, proposal.edits)
                else:
                    loss = None
                result.alone.append(
                    Tried(
                        proposal=proposal,
                        epoch=epoch,
                        before=result.start.figures[epoch].pace,
                        after=variant.figures[epoch].pace,
                        slowest=variant.slowest,
                        total=variant.cycles,
                        loss=loss,
                    )
                )

    # -------------------------------------------------------------------------------------------- greedily together
    def _combine_changes(self, result: Found) -> None:
        """Add changes to `result`, one after another, each for the slowest epoch that can still be improved, until no
        epoch can or the tries are used."""
        refused: set[tuple[Edit, ...]] = set()
        exhausted: set[int] = set()
        while self.evaluator.tries < self.tries and len(exhausted) < len(result.best.reports):
            epoch = max(
                (number for number in range(len(result.best.reports)) if number not in exhausted),
                key=lambda number: (result.best.reports[number].pace, -number),
            )
            self._report(f"together: {' + '.join(result.best.reports[epoch].graphs)}")
            if not self._take_change(result, epoch, refused):
                exhausted.add(epoch)

    def _gains(self, before: Variant, after: Variant, epoch: int) -> bool:
        """Return whether the epoch's pace improved by more than a threshold, and the cycles of all programs fell."""
        faster = after.score(epoch)[0] < before.score(epoch)[0] * (1 - _BETTER)
        return faster and after.cycles < before.cycles

    def _take_change(self, result: Found, epoch: int, refused: set[tuple[Edit, ...]]) -> bool:
        """Take one change for an epoch, the first proposal that makes it better, and return whether there was one.
        `refused` has the edits of proposals that are not tried again, and gets those that cost too much accuracy or
        that the checker refuses."""
        new = islice(self._new_proposals(result.best, epoch, set(refused)), _TOGETHER)
        for proposal, variant in self.evaluator.each(result.best, new, self.tries):
            result.modelled += 1
            if variant is None or not self._is_better(result.best, variant, epoch):
                continue
            if proposal.lossy:
                loss = self.accuracy.loss(result.best.netlist, proposal.edits)
            else:
                loss = None
            if loss is not None and result.lost + loss.pcc_lost > self.most_loss:
                refused.add(proposal.key)
                continue
            edits = merge_edits(variant.edits)
            reason = self._refusal(result.start, edits)
            if reason:
                refused.add(proposal.key)
                result.refused.append((proposal, reason))
                continue
            result.best = variant = self.evaluator.whole(variant)
            result.taken.append((proposal, loss))
            result.steps.append(variant)
            return True
        return False

    def _is_better(self, before: Variant, after: Variant, epoch: int) -> bool:
        """Return whether the epoch is faster, or as fast with less load on the units that limit it, while the cycles of
        all programs do not rise, and no other epoch becomes noticeably slower unless it stays well below the pace of
        this one."""
        if after.cycles > before.cycles:
            return False
        (pace, load) = before.score(epoch)
        (new_pace, new_load) = after.score(epoch)
        if new_pace > pace * (1 + 1e-9):
            return False
        if new_pace > pace * (1 - _BETTER) and new_load > load * (1 - _TAIL):
            return False
        for number, (old, new) in enumerate(zip(before.figures, after.figures, strict=True)):
            limit = max(old.pace * (1 + _WORSE), 0.9 * new_pace)
            if number != epoch and new.pace > limit:
                return False
        return True

    # ----------------------------------------------------------------------------------------------------- helpers
    def _new_proposals(self, variant: Variant, epoch: int, seen: set[tuple[Edit, ...]]) -> Iterator[Proposal]:
        """Yield the proposals for an epoch whose edits are not in `seen`, and add these edits to `seen`."""
        for proposal in self._proposals(variant, epoch):
            if proposal.key not in seen:
                seen.add(proposal.key)
                yield proposal

    def _proposals(self, variant: Variant, epoch: int) -> Iterator[Proposal]:
        """Yield the proposals for an epoch, by target; those for one target begin with the exact and most promising
        ones."""
        for target in targets(variant.reports[epoch]):
            situation = Situation(self.evaluator, variant, epoch, target)
            proposals = list(chain.from_iterable(move.proposals(situation) for move in self.moves))
            yield from sorted(proposals, key=lambda entry: (entry.lossy, -entry.gain))

    def _refusal(self, start: Variant, edits: Iterable[Edit]) -> str:
        """Return why the checker refuses the netlist `start` with these edits, or why they cannot be written into its
        text; "" if the check has no finding that the unedited netlist did not have."""
        try:
            _, result = check_patch(self.data, start.netlist, merge_edits(edits))
        except UnwritableError as error:
            return f"cannot be written: {error}"
        new = [finding for finding in result.diagnostics if (finding.rule, finding.message) not in self._known]
        if new:
            return f"{new[0].rule}: {new[0].message}"
        return ""


def _drop_idle_steps(result: Found) -> None:
    """Drop the last steps if they gained nothing: they were taken so that others could follow, and none did."""
    while result.steps:
        if len(result.steps) > 1:
            before = result.steps[-2]
        else:
            before = result.start
        if result.best.cycles < before.cycles * (1 - _GAIN):
            return
        result.steps.pop()
        result.taken.pop()
        result.best = before


def targets(report: EpochReport) -> list[Target]:
    """Return what to improve in an epoch, in order: the units that set its pace, then the longest steps of its critical
    path; if no unit is busy enough to set the pace, the steps come first. [] if nothing is timed."""
    steps = [Target(step.kind, step.name, step.cycles) for step in critical_steps(report.timing)[:_TARGETS]]
    busy = report.timing.busy()
    greatest = max((unit.cycles for _, unit in busy), default=0.0)
    units: list[Target] = []
    for kind, unit in sorted(busy, key=lambda pair: -pair[1].cycles):
        if unit.cycles >= _CLOSE * greatest and (kind == "op" or kind == "memory" or kind == "transfer"):
            units.append(Target(kind, unit.name, unit.cycles))
    sets_pace = greatest >= _CLOSE * report.pace
    if sets_pace:
        order = [*units[:_TARGETS], *steps]
    else:
        order = [*steps, *units[:_TARGETS]]
    return list({target.name: target for target in reversed(order)}.values())[::-1]
