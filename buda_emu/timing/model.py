"""The programs of a netlist in time: the job of `buda-emu perf`."""

from collections.abc import Callable, Mapping, Sequence

from buda_emu.errors import HostError
from buda_emu.netlist.model import Netlist, Op, Program
from buda_emu.netlist.rules.graphs import rectangle
from buda_emu.spec.devices import Device, device
from buda_emu.timing.bounds import math_active_cycles
from buda_emu.timing.epoch import Cost, epoch_timing
from buda_emu.timing.flows import flows
from buda_emu.timing.from_netlist import calls_of
from buda_emu.timing.memory_use import dram_use, l1_use
from buda_emu.timing.op_call import OpCall
from buda_emu.timing.op_cost import Model, OpCost, op_cost
from buda_emu.timing.program import Epoch, epochs
from buda_emu.timing.rates import Speed, speed
from buda_emu.timing.result import EpochReport, PerfRun, bottleneck


def model_netlist(
    netlist: Netlist,
    programs: Sequence[Program],
    parameters: Mapping[str, str],
    *,
    what_if: Mapping[str, float] | None = None,
    model: Model = "fitted",
    chip: Device | None = None,
    version: str = "",
    progress: Callable[[str], None] = lambda _: None,
) -> PerfRun:
    """Model every epoch that the programs run. `model`: of the ops, "fitted" or the "vendor"'s formulas; `chip`: a
    harvested or smaller one.

    Raises HostError for a what-if that is not possible or a chip that the ops do not fit, ProgramError as the run
    would, UnsupportedError.
    """
    chip = chip or device(netlist.arch_name)
    _check_places(netlist, chip)
    fast = speed(chip, what_if or {})
    costs = _Costs(netlist, model)
    found: list[EpochReport] = []
    for epoch in epochs(netlist, programs, parameters):
        progress(f"epoch {' + '.join(epoch.temporal.graphs)}")
        if any(netlist.graphs[name].ops for name in epoch.temporal.graphs):
            found.append(_report(netlist, epoch, costs, fast))
    return PerfRun(
        netlist.path, netlist.arch_name, fast.clock, version, dict(parameters), dict(what_if or {}), tuple(found),
        dram_use(netlist, chip), {op.name: l1_use(op, netlist, chip)[0] for op in netlist.ops.values()},
        chip.l1_data_bytes,
    )  # fmt: skip


def _check_places(netlist: Netlist, chip: Device) -> None:
    rows, columns = chip.grid
    for op in netlist.ops.values():
        if len(op.grid_loc) == 2:
            top, left, bottom, right = rectangle(op)
            if bottom > rows or right > columns or min(top, left) < 0:
                raise HostError(
                    f"op {op.name} stands on cores [{top}, {left}] to [{bottom - 1}, {right - 1}], "
                    f"the chip has {rows}x{columns}"
                )


def _report(netlist: Netlist, epoch: Epoch, costs: "_Costs", fast: Speed) -> EpochReport:
    edges = flows(netlist, epoch.temporal, epoch.executes)
    fed = {edge.target for edge in edges if edge.operand >= 0 and edge.memory != "none" and not edge.once}
    timing = epoch_timing(
        netlist, epoch.temporal, edges, lambda op: costs.of(op, from_memory=op.name in fed), fast.rates()
    )
    chips = tuple(netlist.graphs[name].target_device for name in epoch.temporal.graphs)
    return EpochReport(
        epoch.program, epoch.temporal.graphs, chips, epoch.runs, timing, bottleneck(timing), tuple(edges)
    )


class _Costs:
    """Costs of ops, each call once: netlists repeat their layers."""

    def __init__(self, netlist: Netlist, model: Model) -> None:
        self._netlist = netlist
        self._model: Model = model
        self._known: dict[object, Cost] = {}

    def of(self, op: Op, *, from_memory: bool) -> Cost:
        """The sum over its parts. What was measured reads from DRAM; `from_memory` False leaves out what that adds."""
        calls = calls_of(self._netlist, op)
        known = self._known.get((calls, from_memory))
        if known is None:
            parts = [op_cost(call, model=self._model) for call in calls]
            sources = list(dict.fromkeys(part.provenance for part in parts))
            known = self._known[calls, from_memory] = Cost(
                sum(part.cycles if from_memory else part.core_cycles for part in parts),
                float(sum(map(_math, calls, parts))), "; ".join(sources),
            )  # fmt: skip
        return known


def _math(call: OpCall, cost: OpCost) -> float:
    """Cycles of the math unit: exact for dense matmuls of wormhole_b0, else what it could not do without."""
    if call.kind == "matmul":
        return float(math_active_cycles(call))
    return cost.ideal_cycles
