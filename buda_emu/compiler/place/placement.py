"""The result of placing: each op's division, cores, chip and epoch, and the queues around them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from buda_emu.compiler.lower.tiles import TileGraph, TileOp
from buda_emu.compiler.place.blocks import Blocks
from buda_emu.compiler.search_record import SearchRecord
from buda_emu.compiler.target import Target
from buda_emu.spec.boards import Cluster, row_of_chips
from buda_emu.support.checker.text import plural

ROLES = ("input", "constant", "state", "between", "fork", "output")
"""Roles of queues, in the order in which a netlist lists them."""


class GraphPlace(NamedTuple):
    """The epoch and the chip in which a graph of the netlist runs. Sorting by it gives the order of time."""

    epoch: int
    chip: int


@dataclass(frozen=True, slots=True)
class PlacedOp:
    """An op with its division and its place. `at`: the upper left core of its rectangle.

    `held`: constants among its operands that stay in L1 (prologue); `grid_transpose`: its rows of cores are columns of
    the chip; `why`: the reason for its grid, where that is not its time alone; `begin_by`: the cycle of the epoch by
    which it has to begin, where that is not left to an estimate."""

    op: TileOp
    blocks: Blocks
    epoch: int
    at: tuple[int, int]
    chip: int = 0
    held: frozenset[str] = frozenset()
    grid_transpose: bool = False
    why: str = ""
    begin_by: float | None = None

    @property
    def graph(self) -> GraphPlace:
        """The graph that the op belongs to."""
        return GraphPlace(self.epoch, self.chip)


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue of the netlist.

    `input`: the op that fills it, or HOST; `role`: one of `ROLES`, of which fork is a short branch within an epoch and
    between leads from epoch to epoch. `blocks` as those of an op, with the grid of its buffers; `addresses`: a
    (channel, address) for each buffer, in the host's memory channel 0. `alias`: the ram on whose bytes it lies;
    `tensor`: the constant that it holds; both are "" for none. `life`: the first and the last epoch that use it, where
    the program allocates it for these (NETLIST 3.6), else None."""

    name: str
    input: str
    role: str
    blocks: Blocks
    df: str
    type: str
    entries: int
    loc: str
    addresses: tuple[tuple[int, int], ...]
    layout: str = "tilized"
    alias: str = ""
    chip: int = 0
    tensor: str = ""
    life: tuple[int, int] | None = None


class Detour(NamedTuple):
    """The reason why an op takes an operand from a queue in DRAM although its own epoch makes it. `kind`: "stack" if
    the router cannot stack its slices, "streams" if the producer's cores have too few streams; `why`: the reason in
    words, for the report."""

    kind: str
    why: str


@dataclass(slots=True)
class Placement:
    """A placed graph.

    `ops` and `queues` by name; `between`: the queue by which other epochs read an op; `epochs`: their number;
    `microbatch`: inputs that go through an epoch before the next one begins; `given`: the graph before the search
    changed it."""

    target: Target
    tiles: TileGraph
    ops: dict[str, PlacedOp] = field(default_factory=dict[str, PlacedOp])
    queues: dict[str, Queue] = field(default_factory=dict[str, Queue])
    between: dict[str, str] = field(default_factory=dict[str, str])
    held_as: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    """The queue of each (reader, constant)."""
    detours: dict[tuple[str, str], Detour] = field(default_factory=dict[tuple[str, str], Detour])
    """The (reader, source) pairs of operands that go through DRAM within an epoch (`routed.py`)."""
    epochs: int = 0
    microbatch: int = 1
    given: TileGraph | None = None
    ids: tuple[int, ...] = ()
    """The ids of the chips, where they are not counted from 0."""
    cluster: Cluster | None = None
    """The cluster of the chips, where a file describes it."""
    copies: int = 1
    """Number of chips that each have the whole model and a share of the inputs (NETLIST 1.7); 1 for a pipeline."""
    step: int = 1
    """Inputs in one step of a training."""
    record: SearchRecord = field(default_factory=SearchRecord)
    """The record of the search that found it."""

    def __repr__(self) -> str:
        counts = (plural(len(self.ops), "op"), plural(len(self.queues), "queue"), plural(self.epochs, "epoch"))
        return f"<Placement for {self.target.title}: {', '.join(counts)}>"

    @property
    def links(self) -> Cluster | None:
        """The cluster that a file describes, or else a row of chips; None on one chip."""
        if self.stages == 1 or self.cluster is not None:
            return self.cluster
        return row_of_chips(self.ids or range(self.stages))

    def device(self, chip: int) -> int:
        """Return the device id of chip number `chip` of the pipeline, or of the chip of that copy."""
        return self.ids[chip] if self.ids else chip

    @property
    def waits_for_one(self) -> bool:
        """True if an epoch takes one input at a time outside of training, so that everything that this input waits for
        counts."""
        return self.microbatch == 1 and not self.tiles.trains

    @property
    def instances(self) -> tuple[int, ...]:
        """The device ids of the chips of all copies; empty where the model is there once."""
        if self.copies == 1:
            return ()
        return tuple(map(self.device, range(self.copies)))

    def copy_names(self, name: str) -> tuple[str, ...]:
        """Return the names of a queue on the chips of all copies (NETLIST 1.7); its own name where the model is there
        once."""
        return tuple(f"{name}.{chip}" for chip in self.instances) or (name,)

    @property
    def inputs(self) -> int:
        """The inputs of a round on all copies."""
        return self.microbatch * self.copies

    @property
    def rounds(self) -> int:
        """The number of rounds that a step's programs loop over."""
        return max(1, self.step // self.microbatch)

    def count(self, program: str) -> int:
        """Return the inputs that an epoch of a program takes before the next epoch begins: a microbatch, or one for a
        program of a graph with states into which no inputs flow, such as an optimizer."""
        alone = self.microbatch == 1 or (self.tiles.states and not self.tiles.flows(program))
        return 1 if alone else self.microbatch

    def source(self, name: str, reader: PlacedOp) -> str:
        """Return the name of the op or queue from which `reader` takes the tensor `name`: the op itself within an
        epoch, its queue in DRAM if the operand is detoured, the queue between epochs, the reader's queue of a constant,
        or else the tensor's own name, as of inputs and states."""
        placed = self.ops.get(name)
        if placed is not None and placed.epoch == reader.epoch:
            if (reader.op.name, name) in self.detours:
                return detour_queue(name, reader.chip)
            return name
        if name in self.between:
            return self.between[name]
        if name in self.tiles.constants:
            return self.held_as[reader.op.name, name]
        return name

    def graphs(self) -> list[GraphPlace]:
        """Return all graphs in the order in which they run."""
        return sorted({placed.graph for placed in self.ops.values()})

    @property
    def programs(self) -> dict[str, list[GraphPlace]]:
        """The graphs of each program, in order."""
        of = {placed.graph: placed.op.program for placed in self.ops.values()}
        graphs_by_program: dict[str, list[GraphPlace]] = {}
        for graph in self.graphs():
            graphs_by_program.setdefault(of[graph], []).append(graph)
        return graphs_by_program

    def ops_by_graph(self) -> dict[GraphPlace, list[PlacedOp]]:
        """Return the ops of each graph in their order; the graphs are in the order in which they run."""
        ops_by_graph: dict[GraphPlace, list[PlacedOp]] = {graph: [] for graph in self.graphs()}
        for placed in self.ops.values():
            ops_by_graph[placed.graph].append(placed)
        return ops_by_graph

    def held_by_queue(self, ops: Iterable[PlacedOp]) -> dict[str, bool]:
        """Return the queues that these ops read, each with True if all its readers among them keep it in L1."""
        held_by_queue: dict[str, bool] = {}
        for placed in ops:
            for use in placed.op.uses:
                name = self.source(use.source, placed)
                if name in self.queues:
                    held_by_queue[name] = held_by_queue.get(name, True) and use.source in placed.held
        return held_by_queue

    @property
    def stages(self) -> int:
        """Chips of the pipeline, or of one copy: those that have a graph."""
        return max((placed.chip for placed in self.ops.values()), default=0) + 1

    @property
    def chips(self) -> int:
        """The number of chips of the pipeline, or of all copies."""
        return self.stages * self.copies


def detour_queue(name: str, chip: int) -> str:
    """Return the name of the queue by which readers on one chip take the result of an op of their own epoch out of
    DRAM."""
    return constant_queue(f"by_dram_{name}", chip)


def constant_queue(name: str, chip: int) -> str:
    """Return the queue name of a constant on a chip: `name` on chip 0, with the chip's number behind it on others, as
    each chip has its own copy (NETLIST V161)."""
    if chip == 0:
        return name
    return f"{name}_chip{chip}"
