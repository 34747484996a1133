"""Times by the timing model: how long values stay in a memory, and the effects of a slower clock or link and of
protection."""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Final

from buda_emu.netlist.model import Netlist, Op, Program
from buda_emu.netlist.test_config import read_performance_checks
from buda_emu.performance.timing.checks import evaluate
from buda_emu.performance.timing.model import model_netlist
from buda_emu.performance.timing.op.call import OpCall
from buda_emu.performance.timing.op.cost import op_cycles
from buda_emu.performance.timing.result import EpochReport, PerfRun
from buda_emu.performance.timing.transfers.rates import WHAT_IF, speed
from buda_emu.spec.devices import device
from buda_emu.support.errors import HostError, UnsupportedError
from buda_emu.support.records import dataclass
from buda_emu.testing.injection.fault import Fault

FACTORS: Final = ("90 %", "75 %", "50 %", "25 %")
"""The rest of a clock or of a bandwidth that a fault leaves."""
LINKS: Final = ("dram_gbps", "noc_bytes", "link_bytes", "port_bytes", "eth_gbps")
"""The bandwidths among the quantities of `WHAT_IF`."""
_DRAM: Final = "dram_gbps"


@dataclass(frozen=True, slots=True)
class Slower:
    """The effect of a fault on the time of a run: `ratio` to the clean run's time, and as text the bounds of
    `performance-check` that only the slower run misses."""

    ratio: float
    missed: tuple[str, ...]


@dataclass(slots=True)
class Times:
    """Modelled times of a netlist's programs, as the chip is and with changes. `executes` are the graphs of each
    execute, in the order of the run."""

    netlist: Netlist
    programs: Sequence[Program]
    parameters: Mapping[str, str]
    executes: Sequence[tuple[str, ...]]
    _runs: dict[tuple[tuple[str, float], ...], PerfRun | None] = field(
        default_factory=dict[tuple[tuple[str, float], ...], PerfRun | None]
    )

    def _model_run(self, **what_if: float) -> PerfRun | None:
        """Return the modelled run with quantities of `WHAT_IF` changed, without any as the chip is; each change is
        modelled once. Returns None where the model can't: an op without a cost, or cores that the chip has not."""
        key = tuple(sorted(what_if.items()))
        if key not in self._runs:
            try:
                self._runs[key] = model_netlist(self.netlist, self.programs, self.parameters, what_if=what_if)
            except (UnsupportedError, HostError):  # an op without a cost, or cores that the chip does not have
                self._runs[key] = None
        return self._runs[key]

    def cycles(self) -> dict[tuple[str, ...], tuple[float, float]]:
        """Return, by graphs, the modelled cycles of (one execute, one input); {} where no time is modelled."""
        run = self._model_run()
        if run is None:
            return {}
        return {epoch.graphs: (float(epoch.timing.total), float(epoch.pace)) for epoch in run.epochs}

    def hours_of_a_cycle(self) -> float:
        """Return how many hours a cycle of the chip's clock takes, for rates per hour; 0 where no time is modelled."""
        run = self._model_run()
        if run is None:
            return 0.0
        return run.seconds(1.0) / 3600

    def slower(self, fault: Fault) -> Slower:
        """Return what a fault of kind "clock" or "link" does to the run's time; a clock is slow from execute
        `fault.entry` on. Raises HostError where no time is modelled."""
        if fault.kind == "clock":
            name = "clock"
        else:
            name = fault.where
        clean = self._model_run()
        slow = self._model_run(**{name: self._unchanged_quantity(name) * float(fault.how[:-2]) / 100})
        if clean is None or slow is None:
            raise HostError(f"kind {fault.kind}: the time of this netlist is not modelled (buda-emu perf says why)")
        first = max(0, fault.entry)
        before = self._execute_seconds(clean)
        after = self._execute_seconds(slow)
        ratio = 1.0
        if before:
            ratio = (sum(before[:first]) + sum(after[first:])) / sum(before)
        return Slower(ratio, tuple(sorted(self._missed_bounds(slow) - self._missed_bounds(clean))))

    def _unchanged_quantity(self, name: str) -> float:
        """Return what a quantity of `WHAT_IF` is for the chip as it is, in the unit that `WHAT_IF` takes."""
        base, factor, _ = WHAT_IF[name]
        return getattr(speed(device(self.netlist.arch_name), {}), base) / factor

    def _execute_seconds(self, run: PerfRun) -> list[float]:
        """Return the modelled seconds of each execute, in the order of the run; 0 for one that the model leaves out."""
        seconds = {epoch.graphs: run.seconds(run.setup + epoch.cycles) for epoch in run.epochs}
        return [seconds.get(graphs, 0.0) for graphs in self.executes]

    def _missed_bounds(self, run: PerfRun) -> set[str]:
        """Return a text for each bound of `performance-check` that a modelled run misses: configuration, graph, target,
        metric."""
        checks = read_performance_checks(self.netlist.path, self.netlist.sections)
        results = [result for result in evaluate(self.netlist, run, checks) if not result.passed]
        return {
            f"{result.config} {result.graph} {result.target} {result.bound.metric}".replace("  ", " ")
            for result in results
        }

    # ----------------------------------------------------------------------------------------------- protection
    def with_wider_words(self, added: float) -> float | None:
        """Return the run's time as a ratio to the present one, if DRAM moves `added` bits more for each bit, as a code
        does. None where no time is modelled."""
        return self._ratio_to_clean(self._model_run(**{_DRAM: self._unchanged_quantity(_DRAM) / (1 + added)}))

    def with_bounds(self) -> float | None:
        """Return the run's time as a ratio to the present one, if each core compares each element of its results with
        two bounds. None where no time is modelled."""
        clean = self._model_run()
        if clean is None:
            return None
        total = sum(epoch.runs * (clean.setup + epoch.cycles) for epoch in clean.epochs)
        added = sum(epoch.runs * epoch.timing.inputs * self._added_by_comparisons(epoch) for epoch in clean.epochs)
        if total:
            return 1 + added / total
        return 1.0

    def _ratio_to_clean(self, run: PerfRun | None) -> float | None:
        """Return the time of a modelled run divided by that of the chip as it is; None where either is not modelled."""
        clean = self._model_run()
        if clean is None or run is None:
            return None
        before = sum(clean.programs().values())
        after = sum(run.programs().values())
        if before:
            return after / before
        return 1.0

    def _added_by_comparisons(self, epoch: EpochReport) -> float:
        """Return by how many cycles an epoch's pace gets longer, if each op compares its results with bounds; 0
        where the slowest op then still keeps the pace."""
        ops = self.netlist.ops
        paces = [
            timing.cost.cycles + 2 * _comparison_cycles(self.netlist, ops[timing.op]) for timing in epoch.timing.ops
        ]
        return max(0.0, max(paces, default=0.0) - epoch.pace)


def _comparison_cycles(netlist: Netlist, op: Op) -> float:
    """Return the cycles in which a core compares its results with one bound: modelled lrelu, which compares, less a
    copy."""
    blocking = op.blocking
    call = OpCall(
        op_type="lrelu",
        arch=netlist.arch_name if netlist.arch.documented else "wormhole_b0",
        t=blocking.t,
        mblock_m=blocking.mblock[0],
        mblock_n=blocking.mblock[1],
        ublock_rt=blocking.ublock[0],
        ublock_ct=blocking.ublock[1],
    )
    return max(0.0, op_cycles(call) - op_cycles(replace(call, op_type="nop")))
