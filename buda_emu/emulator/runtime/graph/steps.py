"""The steps of a plan, which read, convert, compute and push numbered tensors."""

from collections.abc import Mapping, Set
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from buda_emu.arithmetic.tensor.tilemap import TileMap
from buda_emu.emulator.ops.base import Implementation, PlannedOp
from buda_emu.netlist.model import Netlist, Op, TemporalGraph
from buda_emu.support.errors import InternalError
from buda_emu.support.records import dataclass

if TYPE_CHECKING:
    from buda_emu.emulator.ops.on_device.base import DeviceCall


@dataclass(frozen=True, slots=True)
class Read:
    """A step that makes the entries of a queue or ram which the chunk reads the tensor `value`. `flat`: the row-major
    host data instead of tiles."""

    queue: str
    value: int
    flat: bool = False


@dataclass(frozen=True, slots=True)
class Convert:
    """A step that makes a copy of tensor `source`, truncated to a format (OPS 3 step 5), the tensor `value`."""

    source: int
    value: int
    format: str


@dataclass(frozen=True, slots=True)
class Run:
    """A step that runs one op with what follows it: gradient accumulation, relu, output conversion (OPS 3 steps 6-9).
    `inputs` and `value` are numbers of tensors."""

    op: Op
    call: PlannedOp
    implementation: Implementation
    inputs: tuple[int, ...]
    value: int
    relu: tuple[str, float] | None
    output_format: str
    fed: tuple[str, ...]  # queues and rams that the result is pushed to
    device: "DeviceCall | None" = None  # for precision "device": with accumulation, relu and conversion


@dataclass(frozen=True, slots=True)
class Same:
    """An op whose result is the tensor that it reads: nothing is computed, but listeners are called."""

    op: Op
    value: int


@dataclass(frozen=True, slots=True)
class Push:
    """A step that stores tensor `value` in a queue or ram, through the queue's own TMs (`map`, None without any), with
    the format label `label`."""

    queue: str
    value: int
    map: TileMap | None
    label: str


Step: TypeAlias = Read | Convert | Run | Same


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of a temporal graph in order; `reads` are its Read steps, `pushes` come after all steps; the tiles of
    each tensor, and which tensors are no longer needed after each step."""

    steps: tuple[Step, ...]
    reads: tuple[Read, ...]
    pushes: tuple[Push, ...]
    tiles: tuple[int, ...]
    releases: tuple[tuple[int, ...], ...]
    only_pushed: tuple[bool, ...]  # of each tensor: no step but pushes reads it
    direct: tuple[Push, ...]  # into a queue as they are, so that the tensor may be computed there
    peak_tiles: int  # of one input: bounds how many inputs run together
    own_tiles: int  # the peak without tensors that are read from a queue or computed in one
    labels: tuple[str, ...]  # of each tensor its format label, on the device the format of its bits


def uses(step: Step | Push) -> tuple[int, ...]:
    """Return the tensors that a step reads or makes; for a push the one that it stores."""
    match step:
        case Read():
            return (step.value,)
        case Convert():
            return (step.source, step.value)
        case Run():
            return (*step.inputs, step.value)
        case Same() | Push():
            return (step.value,)


def reads_of(step: Step | Push) -> tuple[int, ...]:
    """Return the tensors that a step reads; none for a read of a queue, and for a push, which comes after all steps."""
    match step:
        case Convert():
            return (step.source,)
        case Run():
            return step.inputs
        case Same():
            return (step.value,)
        case _:
            return ()


@dataclass(frozen=True, slots=True)
class Topology:
    """The ops and queues of a temporal graph, which run for every input.

    `reads`: queues and rams read before any op; `local`: queues, not rams, that an op of these graphs feeds and another
    reads; `sinks`: queues and rams that each op feeds, in document order."""

    graphs: tuple[str, ...]
    input_count: int
    ops: tuple[Op, ...]
    reads: tuple[str, ...]
    local: frozenset[str]
    sinks: Mapping[str, tuple[str, ...]]
    writes: tuple[str, ...]  # all sinks, in the order of the ops


def _sort_ops(netlist: Netlist, ops: Mapping[str, Op], local: Set[str]) -> tuple[Op, ...]:
    """Sort ops so that producers come before consumers, also through a local queue (one that an op of the graph feeds
    and another reads). Raises InternalError for a cycle."""
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for op in ops.values():
        producers = [netlist.queues[name].input if name in local else name for name in op.inputs]
        sorter.add(op.name, *(name for name in producers if name in ops))
    try:
        return tuple(ops[name] for name in sorter.static_order())
    except CycleError as error:
        raise InternalError(f"cycle in a checked netlist: {error.args[1]}") from None


def topology(netlist: Netlist, temporal: TemporalGraph) -> Topology:
    """Return the ops of a temporal graph in the order in which they run (producers before consumers, document order
    where free), and the queues that they read and feed."""
    graphs = [netlist.graphs[name] for name in temporal.graphs]
    ops = {op.name: op for op in chain.from_iterable(graph.ops for graph in graphs)}
    sinks: dict[str, tuple[str, ...]] = {}
    local: set[str] = set()
    readers = dict.fromkeys(chain.from_iterable(op.inputs for op in ops.values()))
    for name in ops:
        readers.pop(name, None)
    for queue in netlist.queues.values():
        if not queue.host_fed and queue.input in ops:
            sinks[queue.input] = (*sinks.get(queue.input, ()), queue.name)
            if not queue.is_ram and queue.name in readers:
                local.add(queue.name)
    order = _sort_ops(netlist, ops, local)
    return Topology(
        graphs=temporal.graphs,
        input_count=graphs[0].input_count,
        ops=order,
        reads=tuple(name for name in readers if name not in local),
        local=frozenset(local),
        sinks=sinks,
        writes=tuple(chain.from_iterable(sinks.get(op.name, ()) for op in order)),
    )
