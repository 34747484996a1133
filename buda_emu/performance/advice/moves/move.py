"""The interface of a kind of change, and what it may look at."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from buda_emu.netlist.model import Op
from buda_emu.performance.advice.edits import Proposal
from buda_emu.performance.advice.evaluate import Evaluator, Variant
from buda_emu.performance.advice.layout import Layout
from buda_emu.performance.timing.result import EpochReport
from buda_emu.performance.timing.transfers.flows import Flow, channel_of


@dataclass(frozen=True, slots=True)
class Target:
    """What holds an epoch back: an op, the memory between two ends, or a transfer. `cycles` of an input."""

    kind: Literal["op", "memory", "transfer"]
    name: str
    cycles: float


@dataclass(frozen=True)
class Situation:
    """An epoch of a netlist as edited so far, and what holds it back."""

    evaluator: Evaluator
    variant: Variant
    epoch: int
    target: Target

    @property
    def report(self) -> EpochReport:
        """The epoch's figures."""
        return self.variant.reports[self.epoch]

    @cached_property
    def ops(self) -> dict[str, Op]:
        """Of the epoch."""
        graphs = self.variant.netlist.graphs
        return {op.name: op for name in self.report.graphs for op in graphs[name].ops}

    @property
    def op(self) -> Op | None:
        """The target, if it is an op."""
        return self.ops.get(self.target.name) if self.target.kind == "op" else None

    @cached_property
    def edge(self) -> Flow | None:
        """The flow that a transfer or a stream of a memory is."""
        name = self.target.name.rpartition(": ")[2]
        return next((edge for edge in self.report.edges if edge.ends == name), None)

    def layout(self, op: Op) -> Layout:
        """The cores of the chip that an op runs on."""
        return Layout.of(self.variant.netlist, self.report.graphs, op.target_device, self.evaluator.chip.grid)

    def cycles(self, op: Op) -> float | None:
        """What each core of an op would take for one input."""
        return self.evaluator.op_cycles(self.variant, op, self.epoch)


def streams(here: Situation) -> list[tuple[Flow, float]]:
    """Of a DRAM channel that is the target: what it carries for each input, in bytes, the largest first."""
    place = channel_of(here.target.name) if here.target.kind == "memory" else None
    found = [
        (edge, float(edge.memory_bytes.get(place[0], 0)))
        for edge in here.report.edges
        if place is not None and edge.memory == "dram" and edge.chip == place[1] and not edge.once
    ]
    return sorted((item for item in found if item[1]), key=lambda item: (-item[1], item[0].source, item[0].target))


@dataclass(frozen=True, slots=True)
class Move:
    """One kind of change: its name, what it changes, when it applies, and its legal neighbours.

    `proposals` yields what may be tried for a target; nothing for one that it does not apply to.
    """

    name: str
    changes: str
    applies: str
    lossy: bool
    proposals: Callable[[Situation], Iterator[Proposal]]
