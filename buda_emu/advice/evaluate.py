"""How fast an edited netlist is: only the epochs that an edit touches are modelled again."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from buda_emu.advice.edits import Edit, edited
from buda_emu.errors import BudaError
from buda_emu.netlist.model import Netlist, Op, Program
from buda_emu.spec.devices import Device, device
from buda_emu.timing.model import EpochModel
from buda_emu.timing.program import epochs
from buda_emu.timing.result import EpochReport
from buda_emu.timing.transfers.rates import speed

_NEAR = 0.25  # units that work at least this share of the pace count among those that may set it
_POWER = 8


@dataclass(frozen=True, slots=True)
class Variant:
    """A netlist as edited so far, and its epochs."""

    netlist: Netlist
    edits: tuple[Edit, ...]
    reports: tuple[EpochReport, ...]

    def score(self, epoch: int) -> tuple[float, float]:
        """How slow an epoch is: cycles for each input, then how much of its units would set them."""
        report = self.reports[epoch]
        pace = max(report.pace, 1.0)
        busy = [item.cycles / pace for _, item in report.timing.busy()]
        return report.pace, sum(share**_POWER for share in busy if share > _NEAR) * pace**_POWER

    @property
    def cycles(self) -> float:
        """Of all programs."""
        return sum(report.runs * report.cycles for report in self.reports)

    @property
    def loading(self) -> float:
        """Of these cycles those in which epochs are loaded."""
        return sum(report.runs * report.load.cycles for report in self.reports)

    @property
    def slowest(self) -> float:
        """Cycles for each input of the slowest epoch."""
        return max((report.pace for report in self.reports), default=0.0)


class Evaluator:
    """Models edited netlists. Raises as `timing.model.model_netlist` when it is made."""

    def __init__(
        self, netlist: Netlist, programs: Sequence[Program], parameters: Mapping[str, str], chip: Device | None = None
    ) -> None:
        self.chip = chip or device(netlist.arch_name)
        self.tries = 0
        self._model = EpochModel(speed(self.chip, {}), self.chip)
        self.epochs = [
            epoch
            for epoch in epochs(netlist, programs, parameters)
            if any(netlist.graphs[name].ops for name in epoch.temporal.graphs)
        ]
        reports = tuple(self._model(netlist, epoch) for epoch in self.epochs)
        self._readers = self._touched_by(netlist)
        self.start = Variant(netlist, (), reports)

    def _touched_by(self, netlist: Netlist) -> Mapping[str, frozenset[int]]:
        """Name of an op or queue -> the epochs whose figures it is part of."""
        found: dict[str, set[int]] = {}
        for number, epoch in enumerate(self.epochs):
            ops = [op for name in epoch.temporal.graphs for op in netlist.graphs[name].ops]
            names = {op.name for op in ops} | {name for op in ops for name in op.inputs}
            own = {op.name for op in ops}
            names |= {queue.name for queue in netlist.queues.values() if queue.input in own}
            for name in names:
                found.setdefault(name, set()).add(number)
        return {name: frozenset(numbers) for name, numbers in found.items()}

    def epochs_of(self, name: str) -> frozenset[int]:
        """The epochs that an op or queue is part of."""
        return self._readers.get(name, frozenset())

    def with_edits(self, base: Variant, edits: Iterable[Edit]) -> Variant | None:
        """`base` with more edits; None where its ops cannot be modelled so."""
        more = tuple(edits)
        netlist = edited(base.netlist, more)
        changed = frozenset[int]().union(*(self.epochs_of(edit.name) for edit in more))
        reports = list(base.reports)
        try:
            for number in changed:
                self.tries += 1
                reports[number] = self._model(netlist, self.epochs[number])
        except BudaError:
            return None
        return replace(base, netlist=netlist, edits=(*base.edits, *more), reports=tuple(reports))

    def again(self, base: Variant, netlist: Netlist) -> Variant:
        """The same epochs of a netlist that was read anew: what a fresh model of it says."""
        return replace(base, netlist=netlist, reports=tuple(self._model(netlist, epoch) for epoch in self.epochs))

    def op_cycles(self, variant: Variant, op: Op, epoch: int) -> float | None:
        """What each core of an op, as it is given, would take for one input; None where nothing is known of it."""
        try:
            return self._model.cycles(variant.netlist, op, variant.reports[epoch].edges)
        except BudaError:
            return None
