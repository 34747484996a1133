"""The result of advice: proposals alone and combined, the netlist with them, and the figures of a fresh model of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from buda_emu.performance.advice.accuracy import Loss
from buda_emu.performance.advice.edits import Edit, Proposal
from buda_emu.performance.advice.evaluate import Variant
from buda_emu.performance.advice.search import Found, Tried, Unsplit
from buda_emu.performance.timing.epoch.critical import chain_sentence, critical_steps
from buda_emu.performance.timing.result import EpochReport
from buda_emu.spec.devices import Device
from buda_emu.support.checker.text import plural
from buda_emu.support.columns import Column, Columns
from buda_emu.support.html_table import html_table

Change = tuple[Proposal, Loss | None]
"""A proposal and what it costs in accuracy; None for one that changes no values, or that was not measured."""


@dataclass(frozen=True, slots=True)
class Point:
    """A netlist of the Pareto front. `lost` is the sum of the PCC against float32 that its changed ops lose."""

    what: str
    cycles: float  # of all programs
    slowest: float  # for each input, of the slowest epoch
    lost: float


@dataclass(frozen=True, slots=True)
class Advice:
    """Changes that make a netlist faster. `text` is the netlist with all changes that were combined.

    `before` and `after` are figures of a fresh model of the two texts.
    """

    netlist: str
    arch: str
    found: Found
    after: Variant
    text: bytes
    tries: int  # epochs that were modelled
    chip: Device

    @property
    def before(self) -> Variant:
        """Return the netlist as it is."""
        return self.found.start

    @property
    def ranked(self) -> list[Tried]:
        """Return the trials of each proposal alone: those that make the slowest epoch fastest first, then those with
        the fewest cycles in all."""
        return sorted(
            self.found.alone, key=lambda trial: (trial.slowest, trial.total, -trial.saved, trial.proposal.sentence)
        )

    @property
    def reason(self) -> str:
        """Return, if no change was taken, a sentence that says so and what limits the epoch with the most cycles in all
        its runs; "" if a change was taken, or nothing runs."""
        if self.found.taken or not self.before.reports:
            return ""
        longest = max(self.before.reports, key=lambda report: report.runs * report.cycles)
        outcome = "no kind of change applies to its bottleneck"
        if self.found.modelled:
            outcome = f"{plural(self.found.modelled, 'change')} modelled, none makes the programs faster"
        if self.found.refused:
            outcome += f"; {plural(len(self.found.refused), 'change')} that would, the checker refuses"
        share = longest.runs * longest.cycles / max(self.before.cycles, 1.0)
        share_text = f"{100 * share:.0f} % of all cycles are those of {' + '.join(longest.graphs)}"
        loads = f"{100 * longest.load_share:.0f} % of them for loading it"
        chain = chain_sentence(critical_steps(longest.timing))
        bound = f"{share_text}, {loads}: {longest.bottleneck.sentence}; {chain}"
        return f"nothing was found that helps: {outcome}. {bound}"

    @property
    def lost(self) -> float:
        """Return the sum of the PCC that the ops that were changed together lose."""
        return self.found.lost

    def front(self) -> list[Point]:
        """Return the Pareto front of the modelled netlists: no other one is faster and at least as exact. The most
        exact ones come first."""
        points = list(self._points())
        best: list[Point] = []
        for point in sorted(points, key=lambda candidate: (candidate.lost, candidate.cycles)):
            if not best or point.cycles < best[-1].cycles:
                best.append(point)
        return best

    def _points(self) -> Iterator[Point]:
        """Yield a point for the netlist as it is, for each change alone, and for the first one, two, ... of the changes
        that are combined. Changes alone whose loss is not known are left out."""
        yield Point("as it is", self.before.cycles, self.before.slowest, 0.0)
        for trial in self.found.alone:
            if trial.loss is None or not trial.loss.reason:
                yield Point(trial.proposal.sentence, trial.total, trial.slowest, _lost(trial.loss))
        combined = self.found.taken
        lost = 0.0
        for number, (variant, (_, loss)) in enumerate(zip(self.found.steps, combined, strict=True), 1):
            lost += _lost(loss)
            if number == len(combined):
                every = "all that are taken together"
            else:
                every = f"the first {number} of them together"
            yield Point(every, variant.cycles, variant.slowest, lost)

    def to_json(self) -> dict[str, Any]:
        """Return all figures and proposals as `buda-emu advise --json` writes them."""
        return ADVICE.document(self)

    def __repr__(self) -> str:
        before = self.before.slowest
        after = self.after.slowest
        changes = plural(len(self.found.taken), "change")
        return f"<Advice for {self.netlist}: {changes}, slowest epoch {before:.0f} to {after:.0f} cycles>"

    def _repr_html_(self) -> str:
        """Return a table of the changes that make the netlist faster together, for notebooks; without one, the
        reason."""
        sentence = repr(self)[1:-1]
        if self.reason:
            sentence += f". {self.reason}"
        rows = [
            (
                f"{variant.slowest:,.0f}",
                f"{variant.cycles:,.0f}",
                f"{_lost(loss):.2g}",
                proposal.move,
                proposal.sentence,
            )
            for (proposal, loss), variant in zip(self.found.taken, self.found.steps, strict=True)
        ]
        return html_table(sentence, ("slowest epoch", "all cycles", "PCC lost", "move", "what"), rows)


def _lost(loss: Loss | None) -> float:
    """Return the PCC that a change costs: 0 if it changes no values (None), infinity if it could not be computed."""
    if loss is not None:
        return loss.pcc_lost
    return 0.0


def _pcc_lost(change: Change) -> float | None:
    """Return the PCC that a change costs; None if it changes no values or the loss could not be computed."""
    _, loss = change
    if loss is None or loss.reason:
        return None
    return loss.pcc_lost


def _graphs_of(advice: Advice, trial: Tried) -> list[str]:
    """Return the graphs of the epoch that a trial is about."""
    return list(advice.before.reports[trial.epoch].graphs)


_EDITS: Final = Columns[Edit](
    Column("kind", Literal["op", "queue"], lambda edit: edit.kind),
    Column("name", str, lambda edit: edit.name),
    Column("field", str, lambda edit: ".".join(map(str, edit.path))),
    Column("value", str, lambda edit: edit.text),
)
_CHANGE: Final = Columns[Change](
    Column("move", str, lambda change: change[0].move),
    Column("target", str, lambda change: change[0].target),
    Column("what", str, lambda change: change[0].sentence),
    Column("host", str, lambda change: change[0].host),
    Column("changes_values", bool, lambda change: change[0].lossy),
    Column("pcc_lost", float | None, _pcc_lost),
    Column("accuracy_unknown", str, lambda change: "" if change[1] is None else change[1].reason),
    Column("edits", [_EDITS], lambda change: change[0].edits),
)
_EPOCHS: Final = Columns[EpochReport](
    Column("program", str, lambda report: report.program),
    Column("graphs", list[str], lambda report: report.graphs),
    Column("cycles_per_input", float, lambda report: report.pace),
)
_PACE: Final = Columns[Variant](
    Column("slowest_cycles", float, lambda variant: variant.slowest),
    Column("total_cycles", float, lambda variant: variant.cycles),
)
_NETLIST: Final = Columns[Variant](*_PACE.listed, Column("epochs", [_EPOCHS], lambda variant: variant.reports))
_ALONE: Final = Columns[tuple[Advice, Tried]](
    *_CHANGE.within(tuple[Advice, Tried], lambda pair: (pair[1].proposal, pair[1].loss)),
    Column("slowest_cycles", float, lambda pair: pair[1].slowest),
    Column("total_cycles", float, lambda pair: pair[1].total),
    Column("graphs", list[str], lambda pair: _graphs_of(*pair)),
    Column("cycles_before", float, lambda pair: pair[1].before),
    Column("cycles_after", float, lambda pair: pair[1].after),
)
_TOGETHER: Final = Columns[tuple[Change, Variant]](
    *_CHANGE.within(tuple[Change, Variant], lambda pair: pair[0]),
    *_PACE.within(tuple[Change, Variant], lambda pair: pair[1]),
)
_POINTS: Final = Columns[Point](
    Column("slowest_cycles", float, lambda point: point.slowest),
    Column("total_cycles", float, lambda point: point.cycles),
    Column("what", str, lambda point: point.what),
    Column("pcc_lost", float, lambda point: point.lost),
)
_REFUSED: Final = Columns[tuple[Proposal, str]](
    *_CHANGE.within(tuple[Proposal, str], lambda pair: (pair[0], None)), Column("reason", str, lambda pair: pair[1])
)
ADVICE: Final = Columns[Advice](
    Column("netlist", str, lambda advice: advice.netlist),
    Column("arch", str, lambda advice: advice.arch),
    Column("board", str, lambda advice: advice.chip.board),
    Column("epochs_modelled", int, lambda advice: advice.tries),
    Column("before", _NETLIST, lambda advice: advice.before),
    Column(
        "after",
        Columns[Advice](
            *_NETLIST.within(Advice, lambda advice: advice.after), Column("pcc_lost", float, lambda advice: advice.lost)
        ),
        lambda advice: advice,
    ),
    Column("alone", [_ALONE], lambda advice: [(advice, trial) for trial in advice.ranked]),
    Column("together", [_TOGETHER], lambda advice: zip(advice.found.taken, advice.found.steps, strict=True)),
    Column("front", [_POINTS], Advice.front),
    Column("nothing_found", str, lambda advice: advice.reason),
    Column(
        "on_one_core",
        [Columns[Unsplit](Unsplit)],
        lambda advice: [entry for entry in advice.found.unsplit if entry.cores == 1],
    ),
    Column("refused", [_REFUSED], lambda advice: advice.found.refused),
    Column("no_more_cores", [Columns[Unsplit](Unsplit)], lambda advice: advice.found.unsplit),
)
"""All figures and proposals of `advise --json`."""
