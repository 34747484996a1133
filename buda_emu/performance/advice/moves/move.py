"""The interface of a kind of change: the situation that it is applied to, and its declaration."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Literal

from buda_emu.netlist.model import Op
from buda_emu.performance.advice.edits import Proposal
from buda_emu.performance.advice.evaluate import Evaluator, Variant
from buda_emu.performance.advice.layout import Layout
from buda_emu.performance.timing.result import EpochReport
from buda_emu.performance.timing.transfers.flows import Flow, channel_of


@dataclass(frozen=True, slots=True)
class Target:
    """A part of an epoch that limits it: an op, a memory channel or a stream through it, or a transfer. `cycles` is
    what it takes for one input."""

    kind: Literal["op", "memory", "transfer"]
    name: str
    cycles: float


@dataclass(frozen=True)
class Situation:
    """An epoch of a netlist with the edits so far, and the target that limits it."""

    evaluator: Evaluator
    variant: Variant
    epoch: int
    target: Target

    @property
    def report(self) -> EpochReport:
        """Return the report of the epoch."""
        return self.variant.reports[self.epoch]

    @cached_property
    def ops(self) -> dict[str, Op]:
        """Return the ops of the epoch by name."""
        graphs = self.variant.netlist.graphs
        return {op.name: op for op in chain.from_iterable(graphs[name].ops for name in self.report.graphs)}

    @property
    def op(self) -> Op | None:
        """Return the target if it is an op, else None."""
        if self.target.kind == "op":
            return self.ops.get(self.target.name)
        return None

    @property
    def op_cycles(self) -> float | None:
        """Return the cycles that the target takes for one input, None if it is no op or cannot be modelled."""
        if self.op is None:
            return None
        return self.cycles(self.op)

    @cached_property
    def edge(self) -> Flow | None:
        """Return the transfer of a tensor that the target names (a transfer, or one stream of a memory channel); None
        if it names none, as for an op."""
        name = self.target.name.rpartition(": ")[2]
        return next((edge for edge in self.report.edges if edge.ends == name), None)

    def layout(self, op: Op) -> Layout:
        """Return the places of the epoch's ops on the chip that `op` runs on."""
        return Layout.of(self.variant.netlist, self.report.graphs, op.target_device, self.evaluator.chip.grid)

    def cycles(self, op: Op) -> float | None:
        """Return the cycles that each core of `op`, which may be an edited copy, would take for one input; None if it
        cannot be modelled."""
        return self.evaluator.op_cycles(self.variant, op, self.epoch)


def streams(situation: Situation) -> list[tuple[Flow, float]]:
    """Return the transfers through the DRAM channel that is the target with their bytes for each input, largest first,
    without those that only run once in an epoch; [] if the target is no DRAM channel."""
    if situation.target.kind == "memory":
        place = channel_of(situation.target.name)
    else:
        place = None
    flows = [
        (edge, float(edge.memory_bytes.get(place[0], 0)))
        for edge in situation.report.edges
        if place is not None and edge.memory == "dram" and edge.chip == place[1] and not edge.once
    ]
    return sorted(
        (entry for entry in flows if entry[1]), key=lambda entry: (-entry[1], entry[0].source, entry[0].target)
    )


@dataclass(frozen=True, slots=True)
class Move:
    """One kind of change: its name, the fields that it changes, when it applies (words for the user), and whether it
    changes values (`lossy`).

    `proposals` yields the changes to try for a situation, none if the kind does not apply to it.
    """

    name: str
    changes: str
    applies: str
    lossy: bool
    proposals: Callable[[Situation], Iterator[Proposal]]
