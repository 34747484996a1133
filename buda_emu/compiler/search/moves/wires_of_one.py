"""Places of the ops of an epoch of a single input. It waits for each transfer in turn, so the cost is the total time of
all transfers, each at its own rate or that of the fullest link or port on its way.
"""

from collections.abc import Mapping, Sequence
from math import fsum

import numpy as np
from numpy.typing import NDArray

from buda_emu.netlist.model import Netlist
from buda_emu.spec.devices import Device
from buda_emu.timing.result import EpochReport
from buda_emu.timing.transfers.flows import Flow
from buda_emu.timing.transfers.moving import MovingPaths, steps_of
from buda_emu.timing.transfers.rates import speed

Floats = NDArray[np.float64]
LEAST = 0.5
"""Differences of cycles that do not count: sums of shares."""
SHARE = 1 / 64
"""What a cycle of a transfer counts where the time of the epoch is known."""


class WiresOfOne:
    """The ops of an epoch of a single input, as `wiring.Wires` has those of others.

    `fullest`: the cycles of all transfers together, each by itself or as the fullest of its `paths` has it: there is no
    limit below which they are short enough.
    """

    def __init__(self, netlist: Netlist, edges: Sequence[Flow], chip: Device) -> None:
        """Of an epoch that is the whole netlist."""
        self.edges, self.rates = edges, speed(chip, {}).rates()
        self.paths = MovingPaths(netlist.ops, netlist.queues, edges, chip, self.rates)
        self.paths.with_least(self._alone())
        self.fullest = fsum(self.paths.takes.tolist())

    def _alone(self) -> Floats:
        """Cycles of each edge by itself: into a core, and out of the fullest of its channels of DRAM."""
        moved: dict[tuple[int, bool], list[float]] = {}
        for edge in self.edges:
            for channel, size in edge.memory_bytes.items() if edge.memory == "dram" else ():
                moved.setdefault((channel, edge.once), []).append(size)
        total = {channel: fsum(sizes) / self.rates.dram for channel, sizes in moved.items()}
        found = np.zeros(len(self.edges))
        for number, (edge, gathers) in enumerate(zip(self.edges, self.paths.gathers, strict=True)):
            own = [total[channel, edge.once] for channel in edge.memory_bytes] if edge.memory == "dram" else []
            found[number] = max(edge.core_bytes / (self.rates.gather if gathers else self.rates.stream), 0.0, *own)
        return found

    def _gains(self, change: float) -> bool:
        """Whether to keep a move after which all transfers take `change` cycles more."""
        return change < -LEAST

    def moved(self, places: Mapping[str, tuple[int, int]]) -> bool:
        """Move ops if all transfers together take less time by it."""
        move = self.paths.weigh(places, LEAST)
        if move is None:
            return False
        other = move.takes != move.took
        if not self._gains(fsum([*move.takes[other].tolist(), *(-move.took[other]).tolist()])):
            self.paths.take_back(move)
            return False
        self.paths.keep(move)
        self.fullest = fsum(self.paths.takes.tolist())
        return True


class TimedWires(WiresOfOne):
    """The same, where what counts is when the epoch is done: it is timed again for each move, but for what channels of
    DRAM have to do. What all transfers take together counts a little, so that moves which gain nothing yet lead
    somewhere. `now`: the cycles of both; a move is kept that costs less than `slack` cycles."""

    def __init__(self, netlist: Netlist, report: EpochReport, chip: Device) -> None:
        """Of an epoch that is the whole netlist, as it is timed."""
        super().__init__(netlist, report.edges, chip)
        schedule, rates = report.timing.schedule, self.rates
        slowest = [rates.gather if gathers else rates.stream for gathers in self.paths.gathers]
        alone = [
            edge.core_bytes / min(rate, rates.of_packets(edge.packet))
            for edge, rate in zip(self.edges, slowest, strict=True)
        ]
        self._steps = steps_of(self.edges, report.timing.ways, alone, rates)
        self.makespan, self.durations = schedule.makespans(), schedule.durations
        self.now, self.slack = self._done(self.fullest), 0.0

    def _done(self, transfers: float) -> float:
        return self.makespan(self.durations) + SHARE * transfers

    def _gains(self, change: float) -> bool:
        before, self.durations = self.durations, self.durations.copy()
        self.paths.time(self._steps, self.durations)
        done = self._done(self.fullest + change)
        if done >= self.now + self.slack:
            self.durations = before
            return False
        self.now = done
        return True
