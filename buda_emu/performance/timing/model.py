"""The programs of a netlist in time: the job of `buda-emu perf`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from buda_emu.netlist.model import Execute, Netlist, Op, Program, TemporalGraph
from buda_emu.netlist.program.interpreter import GatheredExecutes, Interpreter, StepBudget
from buda_emu.netlist.program.settings import Variables
from buda_emu.netlist.rules.graphs import rectangle
from buda_emu.performance.timing.epoch.pipeline import epoch_timing
from buda_emu.performance.timing.epoch.result import Cost, EpochTiming
from buda_emu.performance.timing.memory_use import dram_use, l1_use
from buda_emu.performance.timing.op.call import OpCall
from buda_emu.performance.timing.op.cost import (
    OPERANDS,
    Model,
    OpCost,
    ideal_threads,
    in_graph,
    math_active_cycles,
    op_cost,
)
from buda_emu.performance.timing.op.table import calls_of, operands_of
from buda_emu.performance.timing.result import EpochReport, PerfRun, assumptions, bottleneck
from buda_emu.performance.timing.transfers.flows import Flow, flows
from buda_emu.performance.timing.transfers.loading import EpochLoad, epoch_load
from buda_emu.performance.timing.transfers.noc import Path, paths
from buda_emu.performance.timing.transfers.rates import Speed, speed
from buda_emu.spec.devices import Device, device
from buda_emu.spec.precision import DEFAULT_STEP_LIMIT
from buda_emu.support.errors import HostError


@dataclass(slots=True)
class Epoch:
    """A temporal graph as one program runs it. `executes`: the first execute of each of its graphs."""

    program: str
    temporal: TemporalGraph
    executes: Mapping[str, Execute]
    runs: int = 0


def epochs(netlist: Netlist, programs: Sequence[Program], parameters: Mapping[str, str]) -> list[Epoch]:
    """The epochs of the programs in the order of their first run. The programs are walked with their variables,
    without data. Raises ProgramError as the run would."""
    found: list[Epoch] = []
    for program in programs:
        walk = _Walk(program.name, GatheredExecutes(netlist))
        steps = StepBudget(DEFAULT_STEP_LIMIT)
        steps.begin_run()
        Interpreter(program, walk, steps, looks_ahead=True).run(parameters)
        found += walk.found.values()
    return found


@dataclass(slots=True)
class _Walk:
    """A `program.interpreter.Machine` that only counts executes."""

    program: str
    gathered: GatheredExecutes
    found: dict[int, Epoch] = field(default_factory=dict[int, Epoch])

    def execute(self, instruction: Execute, variables: Variables) -> None:
        """An epoch runs when all its graphs have been executed (NETLIST 4.3)."""
        epoch = self.gathered.add(instruction, variables)
        if epoch is not None:
            temporal = epoch.temporal
            self.found.setdefault(temporal.id, Epoch(self.program, temporal, epoch.executes)).runs += 1

    def variable_written(self, text: str, variables: Variables) -> None:
        """Pointers do not matter."""

    def allocate(self, queue: str) -> None:
        """Takes no time."""

    def deallocate(self, queue: str) -> None:
        """Takes no time."""


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
    require_places(netlist, chip)
    fast = speed(chip, what_if or {})
    model_epoch = EpochModel(fast, chip, model, assumptions(what_if or {}, chip))
    found: list[EpochReport] = []
    progress("walking the programs")
    for epoch in epochs(netlist, programs, parameters):
        progress(f"epoch {' + '.join(epoch.temporal.graphs)}")
        if any(netlist.graphs[name].ops for name in epoch.temporal.graphs):
            found.append(model_epoch(netlist, epoch))
    return PerfRun(
        netlist=netlist.path,
        arch=netlist.arch_name,
        clock=fast.clock,
        host_rate=fast.host,
        setup=fast.setup,
        version=version,
        parameters=dict(parameters),
        what_if=dict(what_if or {}),
        epochs=tuple(found),
        dram=dram_use(netlist, chip),
        l1={op.name: l1_use(op, netlist, chip)[0] for op in netlist.ops.values()},
        chip=chip,
    )


def require_places(netlist: Netlist, chip: Device) -> None:
    """Raises HostError for an op on cores that the chip does not have, and of a board's chip for a queue in such a DRAM
    channel (of any other V151 warns)."""
    rows, columns = chip.grid
    where = f"the chip of {chip.board}" if chip.board else "the chip"
    for op in netlist.ops.values():
        if len(op.grid_loc) == 2:
            top, left, bottom, right = rectangle(op)
            if bottom > rows or right > columns or min(top, left) < 0:
                raise HostError(
                    f"op {op.name} is on cores [{top}, {left}] to [{bottom - 1}, {right - 1}], "
                    f"{where} has {rows}x{columns}"
                )
    for queue in netlist.queues.values() if chip.board else ():
        last = max((buffer.channel for buffer in queue.buffers), default=0) if queue.loc == "dram" else 0
        if last >= chip.dram_channels:
            raise HostError(f"queue {queue.name} lies in DRAM channel {last}, {where} has {chip.dram_channels}")


class Totals(NamedTuple):
    """Cycles of the chips, seconds of the host link, and cycles that all math units work for one input; `epochs`: the
    cycles of each, in the order in which they run."""

    cycles: float
    host: float
    math: float
    epochs: tuple[float, ...] = ()


KnownEpochs = dict[object, tuple[float, Sequence[Path]]]
"""Cycles of a run of each kind of epoch, by all that they depend on; its paths, of which that knows the identity."""


def model_totals(
    netlist: Netlist, programs: Sequence[Program], parameters: Mapping[str, str], chip: Device, known: KnownEpochs
) -> Totals:
    """What `model_netlist` comes to, without what stands in reports: epochs that are alike are modelled once, over all
    netlists that share `known`, which are for one chip. Raises as `model_netlist`."""
    require_places(netlist, chip)
    model_epoch = EpochModel(speed(chip, {}), chip)
    found = [
        model_epoch.totals(netlist, epoch, known)
        for epoch in epochs(netlist, programs, parameters)
        if any(netlist.graphs[name].ops for name in epoch.temporal.graphs)
    ]
    cycles = tuple(one.cycles for one in found)
    return Totals(sum(cycles), sum(one.host for one in found), sum(one.math for one in found), cycles)


class EpochModel:
    """Models single epochs, of one netlist or of several that differ in some ops and queues."""

    def __init__(self, fast: Speed, chip: Device, model: Model = "fitted", assumed: str = "") -> None:
        """`assumed`: what `result.assumptions` says of figures that are hypothetical."""
        self._fast = fast
        self._chip = chip
        self._assumed = assumed
        self._costs = _Costs(model)

    def __call__(self, netlist: Netlist, epoch: Epoch) -> EpochReport:
        """One epoch of the netlist. Raises as `model_netlist`."""
        edges, ways, costs = self._parts(netlist, epoch)
        timing, load = self._timed(netlist, epoch, edges, ways, costs)
        chips = tuple(netlist.graphs[name].target_device for name in epoch.temporal.graphs)
        return EpochReport(
            program=epoch.program,
            graphs=epoch.temporal.graphs,
            graph_chips=chips,
            runs=epoch.runs,
            host_bytes=timing.inputs * _host_bytes(netlist, edges),
            load=load,
            timing=timing,
            bottleneck=bottleneck(timing, edges, ways, self._chip.dram_channels, self._assumed),
            edges=tuple(edges),
            paths=tuple(ways),
        )

    def totals(self, netlist: Netlist, epoch: Epoch, known: KnownEpochs) -> Totals:
        """The same in figures; one that is like a known one is not modelled again. Raises as `model_netlist`."""
        edges, ways, costs = self._parts(netlist, epoch)
        places: dict[str, int] = {}
        key = (
            netlist.graphs[epoch.temporal.graphs[0]].input_count,
            *(
                (
                    op.type,
                    op.blocking,
                    op.buf_size_mb,
                    op.overlay_size,
                    op.target_device,
                    len(op.grid_loc),
                    costs[op.name],
                    places.setdefault(op.name, len(places)),
                )
                for name in epoch.temporal.graphs
                for op in netlist.graphs[name].ops
            ),
            *(
                (
                    edge.operand,
                    edge.core_bytes,
                    edge.memory,
                    tuple(edge.memory_bytes.items()),
                    edge.hops,
                    edge.crosses,
                    edge.once,
                    edge.chip,
                    edge.packet,
                    id(way),
                    *(places.setdefault(name, len(places)) for name in (edge.source, edge.target)),
                )
                for edge, way in zip(edges, ways, strict=True)
            ),
        )
        if key not in known:
            timing, load = self._timed(netlist, epoch, edges, ways, costs)
            known[key] = self._fast.setup + load.cycles + timing.total, ways
        ops = (op for name in epoch.temporal.graphs for op in netlist.graphs[name].ops)
        math = sum(costs[op.name].math * op.blocking.cells for op in ops)
        host = max(netlist.graphs[epoch.temporal.graphs[0]].input_count, 1) * _host_bytes(netlist, edges)
        return Totals(epoch.runs * known[key][0], epoch.runs * host / self._fast.host, math)

    def _parts(self, netlist: Netlist, epoch: Epoch) -> tuple[list[Flow], list[Path], dict[str, Cost]]:
        """Edges, the path of each, and costs of ops."""
        edges = flows(netlist, epoch.temporal, epoch.executes)
        sources = _Sources(edges)
        ops = (op for name in epoch.temporal.graphs for op in netlist.graphs[name].ops)
        costs = {op.name: self._costs.of(netlist, op, sources) for op in ops}
        return edges, paths(netlist, edges, self._chip), costs

    def _timed(
        self, netlist: Netlist, epoch: Epoch, edges: Sequence[Flow], ways: Sequence[Path], costs: Mapping[str, Cost]
    ) -> tuple[EpochTiming, EpochLoad]:
        both = list(zip(edges, ways, strict=True))
        timing = epoch_timing(netlist, epoch.temporal, both, costs, self._fast.rates())
        return timing, epoch_load(netlist, epoch.temporal.graphs, both, self._chip, self._fast)

    def cycles(self, netlist: Netlist, op: Op, edges: Sequence[Flow]) -> float:
        """What one core of an op takes for one input; `edges`: of its epoch."""
        return self._costs.of(netlist, op, _Sources(edges)).cycles


class _Sources:
    """Ops that something streams into: out of memory, out of another op."""

    def __init__(self, edges: Sequence[Flow]) -> None:
        inputs = [edge for edge in edges if edge.operand >= 0 and not edge.once]
        self.from_memory: dict[str, frozenset[int]] = {}  # and which of their operands
        for edge in inputs:
            if edge.memory != "none":
                known = self.from_memory.get(edge.target, frozenset())
                self.from_memory[edge.target] = known | {edge.operand}
        self.from_op = {edge.target for edge in inputs if edge.memory == "none"}


def _host_bytes(netlist: Netlist, edges: Sequence[Flow]) -> int:
    """What the host has to push and pop for one input: queues that it feeds, and queues that no op reads."""
    read = {name for op in netlist.ops.values() for name in op.inputs}
    pushed = {
        edge.source: sum(edge.memory_bytes.values())
        for edge in edges
        if edge.operand >= 0 and not edge.once and edge.source in netlist.queues and _streams(netlist, edge.source)
    }
    popped = {
        edge.target: sum(edge.memory_bytes.values())
        for edge in edges
        if edge.operand < 0 and edge.target not in read and not netlist.queues[edge.target].is_ram
    }
    return sum(pushed.values()) + sum(popped.values())


def _streams(netlist: Netlist, queue: str) -> bool:
    return netlist.queues[queue].host_fed and not netlist.queues[queue].is_ram


class _Costs:
    """Costs of ops, each call once: netlists repeat their layers."""

    def __init__(self, model: Model) -> None:
        self._model: Model = model
        self._known: dict[object, Cost] = {}

    def of(self, netlist: Netlist, op: Op, sources: _Sources) -> Cost:
        """The sum over its parts. What was measured reads from DRAM: an operand that does not is spared what that adds,
        and an op that another op feeds takes what a graph adds."""
        from_memory = sources.from_memory.get(op.name)
        from_op = op.name in sources.from_op
        calls = calls_of(netlist, op)
        reads = [_reads(from_memory, operands) for operands in operands_of(netlist, op)]
        key = (calls, *reads, from_op)
        known = self._known.get(key)
        if known is None:
            parts = [_part(call, self._model, own, from_op=from_op) for call, own in zip(calls, reads, strict=True)]
            known = self._known[key] = Cost(
                sum(part.cycles for part in parts),
                sum(part.math for part in parts),
                "; ".join(dict.fromkeys(part.provenance for part in parts)),
                tuple(map(sum, zip(*(part.threads for part in parts), strict=True))),
            )
        return known


def _reads(from_memory: frozenset[int] | None, operands: Mapping[int, int]) -> frozenset[int] | None:
    """The operands of a part of an op that come from DRAM; None where none does, though one of the op may."""
    own = frozenset(place for place, number in operands.items() if number in (from_memory or ()))
    return own or None


@lru_cache(1 << 14)
def _part(call: OpCall, model: Model, from_memory: frozenset[int] | None, *, from_op: bool) -> Cost:
    """Of one call; kept between netlists, as the search for a placement models the same calls again and again."""
    cost = op_cost(call, model=model, reads=OPERANDS if from_memory is None else from_memory)
    factor = in_graph(call) if from_op and model == "fitted" else 1.0
    cycles = factor * (cost.core_cycles if from_memory is None else cost.cycles)
    unpack, math, pack = ideal_threads(call)
    threads = (unpack, factor * cost.core_cycles if call.is_sfpu else math, pack)
    note = f", times {factor:g} in a graph" if factor != 1 else ""
    return Cost(cycles, _math(call, cost), cost.provenance + note, threads)


def _math(call: OpCall, cost: OpCost) -> float:
    """Cycles of the math unit: exact for dense matmuls of wormhole_b0, else what it could not do without."""
    if call.kind == "matmul":
        return float(math_active_cycles(call))
    return cost.ideal_cycles
