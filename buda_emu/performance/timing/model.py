"""The programs of a netlist in time: the job of `buda-emu perf`."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import Final, NamedTuple

from buda_emu.netlist.for_each import ForEach
from buda_emu.netlist.model import Execute, Netlist, Op, Program, TemporalGraph
from buda_emu.netlist.program.interpreter import GatheredExecutes, Interpreter, StepBudget
from buda_emu.netlist.program.settings import Variables
from buda_emu.netlist.rules.graphs import rectangle
from buda_emu.performance.timing.epoch.pipeline import epoch_timing
from buda_emu.performance.timing.epoch.result import Cost, EpochTiming
from buda_emu.performance.timing.op.call import OpCall
from buda_emu.performance.timing.op.cost import (
    OPERANDS,
    CoreSpeed,
    Model,
    OpCost,
    ideal_threads,
    in_graph,
    math_active_cycles,
    op_cost,
)
from buda_emu.performance.timing.op.table import calls_of, operands_of
from buda_emu.performance.timing.result import (
    EpochReport,
    PerfRun,
    assumptions,
    bottleneck,
    bottleneck_kind,
    dram_use,
    host_bytes_by_program,
    l1_use,
)
from buda_emu.performance.timing.transfers.flows import Flow, flows
from buda_emu.performance.timing.transfers.loading import EpochLoad, epoch_load
from buda_emu.performance.timing.transfers.noc import Path, paths
from buda_emu.performance.timing.transfers.rates import Speed, speed
from buda_emu.spec.boards import another_placement
from buda_emu.spec.devices import Device, device
from buda_emu.spec.precision import DEFAULT_STEP_LIMIT
from buda_emu.support.errors import HostError
from buda_emu.support.progress import Activity, Report, do_nothing


@dataclass(slots=True)
class Epoch:
    """A temporal graph as one program runs it. `executes` has the first execute instruction of each of its graphs."""

    program: str
    temporal: TemporalGraph
    executes: Mapping[str, Execute]
    runs: int = 0


def epochs(netlist: Netlist, programs: Sequence[Program], parameters: Mapping[str, str]) -> list[Epoch]:
    """Return the epochs of the programs in the order of their first run, with the number of their runs. The programs
    are interpreted with `parameters` (variable to text), without data. Raises ProgramError as a run of the program
    would."""
    result: list[Epoch] = []
    for program in programs:
        walk = _Walk(program.name, GatheredExecutes(netlist))
        steps = StepBudget(DEFAULT_STEP_LIMIT)
        steps.begin_run()
        Interpreter(program, walk, steps, looks_ahead=True).run(parameters)
        result += walk.epochs.values()
    return result


def epochs_with_ops(netlist: Netlist, programs: Sequence[Program], parameters: Mapping[str, str]) -> list[Epoch]:
    """Return the epochs of the programs, as `epochs` does, without those that have no op."""
    return [
        epoch
        for epoch in epochs(netlist, programs, parameters)
        if any(netlist.graphs[name].ops for name in epoch.temporal.graphs)
    ]


@dataclass(slots=True)
class _Walk:
    """A `program.interpreter.Machine` that counts executes and does nothing else."""

    program: str
    gathered: GatheredExecutes
    epochs: dict[int, Epoch] = field(default_factory=dict[int, Epoch])

    def execute(self, instruction: Execute, variables: Variables) -> None:
        """Count a run of an epoch when all its graphs have been executed (NETLIST 4.3)."""
        epoch = self.gathered.add(instruction, variables)
        if epoch is not None:
            temporal = epoch.temporal
            self.epochs.setdefault(temporal.id, Epoch(self.program, temporal, epoch.executes)).runs += 1

    def follow_variable(self, text: str, variables: Variables) -> None:
        """Ignore the write: pointers of queues do not change times."""

    def allocate(self, queue: str) -> None:
        """Ignore the allocation: it takes no time in this model."""

    def deallocate(self, queue: str) -> None:
        """Ignore the deallocation: it takes no time in this model."""


def model_netlist(
    netlist: Netlist,
    programs: Sequence[Program],
    parameters: Mapping[str, str],
    *,
    what_if: Mapping[str, float] | None = None,
    model: Model = "fitted",
    chip: Device | None = None,
    version: str = "",
    progress: Report = do_nothing,
) -> PerfRun:
    """Return the modelled times of every epoch that the programs run. `model` selects how ops are modelled: "fitted",
    or the "vendor"'s formulas. `what_if` replaces rates of the chip by hypothetical ones; `chip` replaces the arch's
    own chip by a harvested or smaller one.

    Raises HostError for an impossible what-if or a chip that is too small for the ops, ProgramError as a run of the
    program would, and UnsupportedError for an op that the model does not cover.
    """
    chip = chip or device(netlist.arch_name)
    require_places(netlist, chip)
    fast = speed(chip, what_if or {})
    model_epoch = EpochModel(fast, chip, model, assumptions(what_if or {}, chip))
    reports: list[EpochReport] = []
    progress(Activity("walking the programs", "preparing"))
    for number, epoch in enumerate(epochs(netlist, programs, parameters)):
        progress(Activity(f"epoch {' + '.join(epoch.temporal.graphs)}", "epochs", number))
        if any(netlist.graphs[name].ops for name in epoch.temporal.graphs):
            reports.append(model_epoch(netlist, epoch))
    return PerfRun(
        netlist=netlist.path,
        arch=netlist.arch_name,
        clock=fast.clock,
        host_rate=fast.host,
        setup=fast.setup,
        version=version,
        parameters=dict(parameters),
        what_if=dict(what_if or {}),
        epochs=tuple(reports),
        dram=dram_use(netlist, chip),
        l1={op.name: l1_use(op, netlist, chip)[0] for op in netlist.ops.values()},
        chip=chip,
    )


def require_places(netlist: Netlist, chip: Device) -> None:
    """Raise HostError for an op on cores that the chip does not have. For the chip of a board, raise it also for a
    queue in a DRAM channel that the board does not have; rule V151 only warns of other chips."""
    rows, columns = chip.grid
    chip_name = "the chip"
    hint = ""
    if chip.board:
        chip_name = f"the chip of {chip.board}"
        hint = f"\n{another_placement(chip.board)}"
    for op in netlist.ops.values():
        if len(op.grid_loc) == 2:
            top, left, bottom, right = rectangle(op)
            if bottom > rows or right > columns or min(top, left) < 0:
                raise HostError(
                    f"op {op.name} is on cores [{top}, {left}] to [{bottom - 1}, {right - 1}], "
                    f"{chip_name} has {rows}x{columns}{hint}"
                )
    if chip.board:
        _require_channels(netlist, chip, chip_name)


def _require_channels(netlist: Netlist, chip: Device, chip_name: str) -> None:
    """Raise HostError for a queue in a DRAM channel that the chip does not have."""
    for queue in netlist.queues.values():
        if queue.loc != "dram":
            continue
        last = max((buffer.channel for buffer in queue.buffers), default=0)
        if last >= chip.dram_channels:
            raise HostError(
                f"queue {queue.name} lies in DRAM channel {last}, {chip_name} has {chip.dram_channels}\n"
                f"{another_placement(chip.board)}"
            )


class EpochTotals(NamedTuple):
    """Totals of all runs of one epoch: cycles of the chips, cycles that all math units work for one input, and the
    bytes of each queue that the host pushes or pops."""

    cycles: float
    math: float
    host_queues: Mapping[str, int]


class Totals(NamedTuple):
    """Totals of a netlist: cycles of the chips, seconds of the host link, and cycles that all math units work for one
    input. `epochs` has the cycles of each epoch, in the order in which they run."""

    cycles: float
    host: float
    math: float
    epochs: tuple[float, ...] = ()


class EpochFigures(NamedTuple):
    """The figures of an epoch without its schedule, in cycles: of a run (`timing`), of loading it (`load`), and of each
    op for one input, in the order of the ops; `bottleneck` is the kind of what sets its pace."""

    timing: float
    load: float
    ops: tuple[float, ...]
    bottleneck: str

    @staticmethod
    def of(timing: EpochTiming, load: EpochLoad) -> "EpochFigures":
        """Return the figures of a modelled epoch."""
        ops = tuple([op_timing.cost.cycles for op_timing in timing.ops])
        return EpochFigures(timing.total, load.cycles, ops, bottleneck_kind(timing))


ModelledEpochs = dict[object, EpochFigures]
"""The figures of epochs by all that they depend on, names apart."""


@dataclass(frozen=True, slots=True)
class Transfers:
    """The edges of an epoch, along which data moves, and the cost of each of its ops by name."""

    edges: Sequence[Flow]
    costs: Mapping[str, Cost]

    def key(self, netlist: Netlist, epoch: Epoch) -> object:
        """Return all that the figures of the epoch depend on, without names, so that alike layers have equal keys."""
        places: dict[str, int] = {}
        return (
            netlist.graphs[epoch.temporal.graphs[0]].input_count,
            *(
                (
                    op.type,
                    op.blocking,
                    op.buf_size_mb,
                    op.input_buf_min_size_tiles,
                    op.overlay_size,
                    op.target_device,
                    op.grid_loc,
                    op.grid_transpose,
                    op.attributes.kernel_broadcast,
                    op.attributes.kernel_broadcast_per_t,
                    self.costs[op.name],
                    places.setdefault(op.name, len(places)),
                )
                for op in chain.from_iterable(netlist.graphs[name].ops for name in epoch.temporal.graphs)
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
                    *(_end_key(netlist, name) for name in (edge.source, edge.target)),
                    *(places.setdefault(name, len(places)) for name in (edge.source, edge.target)),
                )
                for edge in self.edges
            ),
        )


def _end_key(netlist: Netlist, name: str) -> object:
    """Return what the path of an edge depends on at the end `name` if that is a queue; None for an op, of which the key
    of the ops says it."""
    queue = netlist.queues.get(name)
    if queue is None:
        return None
    return queue.blocking.grid_size, queue.loc, queue.target_device, tuple([buffer.channel for buffer in queue.buffers])


def model_totals(
    netlist: Netlist,
    programs: Sequence[Program],
    parameters: Mapping[str, str],
    chip: Device,
    modelled_epochs: ModelledEpochs,
) -> Totals:
    """Return only the totals of `model_netlist`, faster, to compare many netlists. Epochs with equal inputs to the
    model are modelled once for all calls that share `modelled_epochs`, to which new ones are added, and which must all
    be for one chip. Raises the same errors as `model_netlist`."""
    require_places(netlist, chip)
    model_epoch = EpochModel(speed(chip, {}), chip)
    executed = epochs_with_ops(netlist, programs, parameters)
    totals = [model_epoch.totals(netlist, epoch, modelled_epochs) for epoch in executed]
    cycles = tuple(epoch_totals.cycles for epoch_totals in totals)
    host_bytes = host_bytes_by_program(
        (epoch.program, epoch_totals.host_queues) for epoch, epoch_totals in zip(executed, totals, strict=True)
    )
    return Totals(
        sum(cycles),
        sum(host_bytes.values()) / speed(chip, {}).host,
        sum(epoch_totals.math for epoch_totals in totals),
        cycles,
    )


class EpochModel:
    """Models single epochs, of one netlist or of several that differ in some ops and queues."""

    def __init__(self, fast: Speed, chip: Device, model: Model = "fitted", assumed: str = "") -> None:
        """Model epochs on `chip` at the speed `fast`; `assumed` is the text of `result.assumptions` for hypothetical
        figures."""
        self._fast = fast
        self._chip = chip
        self._assumed = assumed
        self._costs = _Costs(model, CoreSpeed(fast.math, fast.moving, fast.dram / fast.measured_dram))

    def __call__(self, netlist: Netlist, epoch: Epoch) -> EpochReport:
        """Model one epoch of the netlist. Raises the same errors as `model_netlist`."""
        return self.report(netlist, epoch, self.transfers(netlist, epoch))

    def report(self, netlist: Netlist, epoch: Epoch, transfers: Transfers) -> EpochReport:
        """Return the report of one epoch of the netlist, given its transfers and the costs of its ops. Raises the same
        errors as `model_netlist`."""
        edges = transfers.edges
        paths_of_edges = paths(netlist, edges, self._chip)
        timing, load = self._time_epoch(netlist, epoch.temporal, edges, paths_of_edges, transfers.costs)
        chips = tuple(netlist.graphs[name].target_device for name in epoch.temporal.graphs)
        return EpochReport(
            program=epoch.program,
            graphs=epoch.temporal.graphs,
            graph_chips=chips,
            runs=epoch.runs,
            host_queues=_host_queues(netlist, edges, timing.inputs),
            load=load,
            timing=timing,
            bottleneck=bottleneck(timing, edges, paths_of_edges, self._chip.dram_channels, self._assumed),
            edges=tuple(edges),
            paths=tuple(paths_of_edges),
            copies=_graph_copies(netlist, epoch.temporal),
        )

    def totals(self, netlist: Netlist, epoch: Epoch, modelled_epochs: ModelledEpochs) -> EpochTotals:
        """Return the totals of all runs of one epoch. An epoch whose key is in `modelled_epochs` is not modelled again;
        else its figures are added there. Raises the same errors as `model_netlist`."""
        transfers = self.transfers(netlist, epoch)
        key = transfers.key(netlist, epoch)
        figures = modelled_epochs.get(key)
        if figures is None:
            paths_of_edges = paths(netlist, transfers.edges, self._chip)
            timing_and_load = self._time_epoch(
                netlist, epoch.temporal, transfers.edges, paths_of_edges, transfers.costs
            )
            figures = modelled_epochs[key] = EpochFigures.of(*timing_and_load)
        ops = chain.from_iterable(netlist.graphs[name].ops for name in epoch.temporal.graphs)
        math = sum(transfers.costs[op.name].math * op.blocking.cells for op in ops)
        inputs = max(netlist.graphs[epoch.temporal.graphs[0]].input_count, 1)
        return EpochTotals(
            cycles=epoch.runs * (self._fast.setup + figures.load + figures.timing),
            math=math,
            host_queues=_host_queues(netlist, transfers.edges, epoch.runs * inputs),
        )

    def transfers(self, netlist: Netlist, epoch: Epoch) -> Transfers:
        """Return the edges of an epoch, along which data moves, and the cost of each of its ops. Raises
        UnsupportedError for an op that the model does not cover."""
        edges = flows(netlist, epoch.temporal, epoch.executes)
        sources = _Sources(edges)
        ops = chain.from_iterable(netlist.graphs[name].ops for name in epoch.temporal.graphs)
        return Transfers(edges, {op.name: self._costs.of(netlist, op, sources) for op in ops})

    def _time_epoch(
        self,
        netlist: Netlist,
        temporal: TemporalGraph,
        edges: Sequence[Flow],
        paths_of_edges: Sequence[Path],
        costs: Mapping[str, Cost],
    ) -> tuple[EpochTiming, EpochLoad]:
        """Return the timing of an epoch, and that of loading it."""
        edges_and_paths = list(zip(edges, paths_of_edges, strict=True))
        timing = epoch_timing(netlist, temporal, edges_and_paths, costs, self._fast.rates())
        return timing, epoch_load(netlist, temporal.graphs, edges_and_paths, self._chip, self._fast)

    def time_again(self, netlist: Netlist, report: EpochReport) -> tuple[EpochTiming, EpochLoad]:
        """Return the timing and the loading, at this model's speed, of an epoch that another model has modelled: with
        the transfers and paths of its report."""
        temporal = next(epoch for epoch in netlist.temporal_graphs if epoch.graphs == report.graphs)
        sources = _Sources(report.edges)
        ops = chain.from_iterable(netlist.graphs[name].ops for name in report.graphs)
        costs = {op.name: self._costs.of(netlist, op, sources) for op in ops}
        return self._time_epoch(netlist, temporal, report.edges, report.paths, costs)

    def cycles(self, netlist: Netlist, op: Op, edges: Sequence[Flow]) -> float:
        """Return the cycles that one core of an op takes for one input; `edges` are those of its epoch. Raises
        UnsupportedError if the model does not cover the op."""
        return self._costs.of(netlist, op, _Sources(edges)).cycles


class _Sources:
    """The ops that read streams out of memory, with those operands, and the ops that read streams of other ops."""

    def __init__(self, edges: Sequence[Flow]) -> None:
        inputs = [edge for edge in edges if edge.operand >= 0 and not edge.once]
        self.from_memory: dict[str, frozenset[int]] = {}  # and which of their operands
        for edge in inputs:
            if edge.memory != "none":
                operands = self.from_memory.get(edge.target, frozenset())
                self.from_memory[edge.target] = operands | {edge.operand}
        self.from_op = {edge.target for edge in inputs if edge.memory == "none"}


def _graph_copies(netlist: Netlist, temporal: TemporalGraph) -> int:
    """Return how often the same graph runs in an epoch, for several chips: the greatest number of its ops that have one
    name in the file."""
    ops = chain.from_iterable(netlist.graphs[name].ops for name in temporal.graphs)
    return max(Counter(op.written_name or op.name for op in ops).values(), default=1)


def _host_queues(netlist: Netlist, edges: Sequence[Flow], inputs: int) -> dict[str, int]:
    """Return, by queue, the bytes that the host pushes or pops for a number of inputs: of queues that it feeds, and of
    queues that no op reads."""
    read = _TENSORS_READ.of(netlist)
    host_queues: dict[str, int] = {}
    for edge in edges:
        if edge.operand >= 0:
            queue = edge.source
            is_of_host = not edge.once and queue in netlist.queues and _pushed_by_host(netlist, queue)
        else:
            queue = edge.target
            is_of_host = queue not in read and not netlist.queues[queue].is_ram
        if is_of_host:
            host_queues[queue] = inputs * sum(edge.memory_bytes.values())
    return host_queues


def _tensors_read(netlist: Netlist) -> frozenset[str]:
    """Return the names of the queues and ops that some op reads."""
    return frozenset(chain.from_iterable(op.inputs for op in netlist.ops.values()))


_TENSORS_READ: Final = ForEach(_tensors_read)


def _pushed_by_host(netlist: Netlist, queue: str) -> bool:
    """Return whether the host pushes every input of a queue, as it does not for a ram."""
    return netlist.queues[queue].host_fed and not netlist.queues[queue].is_ram


class _Costs:
    """Costs of ops. Equal calls are computed once, since netlists repeat their layers."""

    def __init__(self, model: Model, core: CoreSpeed) -> None:
        self._model: Model = model
        self._core = core
        self._cache: dict[object, Cost] = {}

    def of(self, netlist: Netlist, op: Op, sources: _Sources) -> Cost:
        """Return the cost of an op for one input, the sum over its parts. Measured costs include reading from DRAM:
        operands that are not read from there (`sources`) do not pay for it. An op that another op feeds pays the factor
        of `in_graph`."""
        from_memory = sources.from_memory.get(op.name)
        from_op = op.name in sources.from_op
        calls = calls_of(netlist, op)
        reads = [_operands_from_dram(from_memory, operands) for operands in operands_of(netlist, op)]
        key = (calls, *reads, from_op)
        cost = self._cache.get(key)
        if cost is None:
            parts = [
                _call_cost(call, self._model, from_dram, self._core, from_op=from_op)
                for call, from_dram in zip(calls, reads, strict=True)
            ]
            cost = self._cache[key] = Cost(
                sum(part.cycles for part in parts),
                sum(part.math for part in parts),
                "; ".join(dict.fromkeys(part.provenance for part in parts)),
                tuple(map(sum, zip(*(part.threads for part in parts), strict=True))),
                errors=tuple(chain.from_iterable(part.errors for part in parts)),
            )
        return cost


def _operands_from_dram(from_memory: frozenset[int] | None, operands: Mapping[int, int]) -> frozenset[int] | None:
    """Return the operands of a part of an op that come from DRAM; None if none does, even if operands of other parts
    do. `from_memory` has the op's operands that do; `operands` maps numbers of the part's operands to those of the
    op."""
    from_dram = frozenset(place for place, number in operands.items() if number in (from_memory or ()))
    return from_dram or None


@lru_cache(1 << 14)
def _call_cost(
    call: OpCall, model: Model, from_memory: frozenset[int] | None, core: CoreSpeed, *, from_op: bool
) -> Cost:
    """Return the cost of one call on a core of the speed `core`. `from_memory` has the operands that come from DRAM
    (None for none), `from_op` tells whether another op feeds it. The cache outlives a netlist, since the search for a
    placement models the same calls many times."""
    cost = op_cost(call, model=model, reads=OPERANDS if from_memory is None else from_memory, core=core)
    if from_op and model == "fitted":
        factor = in_graph(call)
    else:
        factor = 1.0
    cycles = factor * (cost.core_cycles if from_memory is None else cost.cycles)
    unpack, math, pack = ideal_threads(call, core)
    threads = (unpack, factor * cost.core_cycles if call.is_sfpu else math, pack)
    if factor != 1:
        note = f", times {factor:g} in a graph"
    else:
        note = ""
    return Cost(
        cycles, _math_cycles(call, cost, core), cost.provenance + note, threads, errors=((cost.family, cycles),)
    )


def _math_cycles(call: OpCall, cost: OpCost, core: CoreSpeed) -> float:
    """Return the cycles of the math unit for a call: for a matmul those that the chip's counter has, for other ops a
    lower bound. Raises UnsupportedError as `math_active_cycles` does."""
    if call.kind == "matmul":
        return math_active_cycles(call) / core.math
    return cost.ideal_cycles
