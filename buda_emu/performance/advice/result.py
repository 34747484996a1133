"""The result of advice: proposals alone and combined, the netlist with them, and the figures of a fresh model of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from buda_emu.performance.advice.accuracy import Loss
from buda_emu.performance.advice.edits import Proposal
from buda_emu.performance.advice.evaluate import Variant
from buda_emu.performance.advice.search import Found, Tried
from buda_emu.performance.timing.epoch.critical import chain_sentence, critical_steps
from buda_emu.spec.devices import Device
from buda_emu.support.checker.text import plural
from buda_emu.support.html_table import html_table
from buda_emu.support.version import RESULT_VERSION


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
        """Return the proposals by themselves: those that make the slowest epoch fastest first, then those that save
        most cycles."""
        return sorted(
            self.found.alone, key=lambda trial: (trial.slowest, trial.total, -trial.saved, trial.proposal.sentence)
        )

    @property
    def reason(self) -> str:
        """Return why no change helped, and what limits the slowest epoch; "" if some change did, or nothing runs."""
        if self.found.taken or not self.before.reports:
            return ""
        slowest_report = max(self.before.reports, key=lambda report: report.runs * report.cycles)
        outcome = "no kind of change applies to its bottleneck"
        if self.found.modelled:
            outcome = f"{plural(self.found.modelled, 'change')} modelled, none makes the programs faster"
        if self.found.refused:
            outcome += f"; {plural(len(self.found.refused), 'change')} that would, the checker refuses"
        share = slowest_report.runs * slowest_report.cycles / max(self.before.cycles, 1.0)
        share_text = f"{100 * share:.0f} % of all cycles are those of {' + '.join(slowest_report.graphs)}"
        loads = f"{100 * slowest_report.load_share:.0f} % of them for loading it"
        chain = chain_sentence(critical_steps(slowest_report.timing))
        bound = f"{share_text}, {loads}: {slowest_report.bottleneck.sentence}; {chain}"
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
        """Yield the netlist as it is, with each change alone, and with the first changes of those that are combined.
        Changes whose loss is not known are left out."""
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
        return {
            "schema_version": RESULT_VERSION,
            "netlist": self.netlist,
            "arch": self.arch,
            "board": self.chip.board,
            "epochs_modelled": self.tries,
            "before": _figures(self.before),
            "after": {**_figures(self.after), "pcc_lost": self.lost},
            "alone": [
                {
                    **_proposal_json(entry.proposal, entry.loss),
                    "graphs": list(self.before.reports[entry.epoch].graphs),
                    "cycles_before": entry.before,
                    "cycles_after": entry.after,
                    "slowest_cycles": entry.slowest,
                    "total_cycles": entry.total,
                }
                for entry in self.ranked
            ],
            "together": [
                {**_proposal_json(proposal, loss), "slowest_cycles": variant.slowest, "total_cycles": variant.cycles}
                for (proposal, loss), variant in zip(self.found.taken, self.found.steps, strict=True)
            ],
            "front": [
                {
                    "what": entry.what,
                    "total_cycles": entry.cycles,
                    "slowest_cycles": entry.slowest,
                    "pcc_lost": entry.lost,
                }
                for entry in self.front()
            ],
            "nothing_found": self.reason,
            "on_one_core": [
                {"op": entry.op, "graphs": list(entry.graphs), "reason": entry.reason} for entry in self.found.unsplit
            ],
            "refused": [
                {**_proposal_json(proposal, None), "reason": reason} for proposal, reason in self.found.refused
            ],
        }

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
    """Return the PCC that a change costs, 0 if it changes no values."""
    if loss is not None:
        return loss.pcc_lost
    return 0.0


def _figures(variant: Variant) -> dict[str, Any]:
    """Return the cycles of a variant and of its epochs for JSON."""
    return {
        "slowest_cycles": variant.slowest,
        "total_cycles": variant.cycles,
        "epochs": [
            {"program": report.program, "graphs": list(report.graphs), "cycles_per_input": report.pace}
            for report in variant.reports
        ],
    }


def _proposal_json(proposal: Proposal, loss: Loss | None) -> dict[str, Any]:
    """Return a proposal and its loss of accuracy for JSON; `pcc_lost` is null if it is not known."""
    if loss is None or loss.reason:
        pcc_lost = None
    else:
        pcc_lost = loss.pcc_lost
    return {
        "move": proposal.move,
        "target": proposal.target,
        "what": proposal.sentence,
        "host": proposal.host,
        "changes_values": proposal.lossy,
        "pcc_lost": pcc_lost,
        "accuracy_unknown": loss.reason if loss is not None else "",
        "edits": [
            {"kind": edit.kind, "name": edit.name, "field": ".".join(map(str, edit.path)), "value": edit.text}
            for edit in proposal.edits
        ],
    }
