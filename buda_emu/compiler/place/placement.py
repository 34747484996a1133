"""The result of placing: each op's division, cores, chip and epoch, and the queues around them."""

from dataclasses import dataclass, field
from typing import NamedTuple

from buda_emu.compiler.lower.tiles import TileGraph, TileOp
from buda_emu.compiler.memory_watch import Work
from buda_emu.compiler.place.blocks import Blocks
from buda_emu.compiler.target import Target
from buda_emu.spec.boards import Cluster, row_of_chips

ROLES = ("input", "constant", "state", "between", "fork", "output")
"""Roles of queues, in the order in which a netlist lists them."""


class GraphPlace(NamedTuple):
    """Where a graph of the netlist runs; in order of time."""

    epoch: int
    chip: int


@dataclass(frozen=True, slots=True)
class Placed:
    """An op with its division and its place. `held`: constants among its operands that stay in L1 (prologue);
    `grid_transpose`: its rows of cores are columns of the chip; `why` it has this grid, where that is not for its time
    alone; `begin_by`: the cycle of the epoch by which it has to begin, where that is not left to an estimate."""

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
        """The graph that it is an op of."""
        return GraphPlace(self.epoch, self.chip)


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue of the netlist. `input`: an op, or HOST; `role`: input, output, constant, state, fork (a short branch of
    an epoch) or between (epochs). `blocks` as those of an op; `addresses` one [channel, address] for each of the grid,
    a host address alone; `tensor`: the constant that it holds; `life`: the first and the last epoch that use it, where
    the program allocates it for these (NETLIST 3.6)."""

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
    """Why an op takes an operand from a queue in DRAM, though its own epoch makes it: `kind` stack or streams."""

    kind: str
    why: str


@dataclass(slots=True)
class Placement:
    """A placed graph. `between`: the queue by which other epochs read an op; `microbatch`: inputs that go through an
    epoch before the next one begins; `given`: the graph before the search changed it."""

    target: Target
    tiles: TileGraph
    ops: dict[str, Placed] = field(default_factory=dict[str, Placed])
    queues: dict[str, Queue] = field(default_factory=dict[str, Queue])
    between: dict[str, str] = field(default_factory=dict[str, str])
    held_as: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    """The queue of each (reader, constant)."""
    detours: dict[tuple[str, str], Detour] = field(default_factory=dict[tuple[str, str], Detour])
    """(reader, source) of operands that take the way by DRAM within an epoch (`routed.py`)."""
    epochs: int = 0
    microbatch: int = 1
    given: TileGraph | None = None
    ids: tuple[int, ...] = ()
    """Of the chips, where they are not counted from 0."""
    cluster: Cluster | None = None
    """Of the chips, where a file describes it."""
    copies: int = 1
    """Chips that all have the whole of it, each with its share of the inputs (NETLIST 1.7); 1 of a pipeline."""
    step: int = 1
    """Inputs of a step of a training."""
    work: Work = field(default_factory=Work)
    """What was searched for it."""

    @property
    def links(self) -> Cluster | None:
        """The cluster that is known, or taken to be a row of chips; None on one."""
        if self.stages == 1 or self.cluster is not None:
            return self.cluster
        return row_of_chips(self.ids or range(self.stages))

    def device(self, chip: int) -> int:
        """The id of a chip of the pipeline, or of that of a copy."""
        return self.ids[chip] if self.ids else chip

    @property
    def waits_for_one(self) -> bool:
        """Whether an epoch takes one input at a time, of which everything counts that it waits for."""
        return self.microbatch == 1 and not self.tiles.trains

    @property
    def instances(self) -> tuple[int, ...]:
        """The chips of all copies; () where there is one."""
        return tuple(map(self.device, range(self.copies))) if self.copies > 1 else ()

    def copied(self, name: str) -> tuple[str, ...]:
        """A queue's names on the chips of all copies (NETLIST 1.7)."""
        return tuple(f"{name}.{chip}" for chip in self.instances) or (name,)

    @property
    def inputs(self) -> int:
        """Of a round: of all copies."""
        return self.microbatch * self.copies

    @property
    def rounds(self) -> int:
        """How often the loops of a step's programs are gone through."""
        return max(1, self.step // self.microbatch)

    def count(self, program: str) -> int:
        """Inputs that an epoch of a program takes at once: one where only states are read."""
        alone = self.microbatch == 1 or (self.tiles.states and not self.tiles.flows(program))
        return 1 if alone else self.microbatch

    def source(self, name: str, reader: Placed) -> str:
        """What an op reads for a tensor: an op of its own epoch itself, of another by the queue between, a constant
        from its own chip."""
        placed = self.ops.get(name)
        if placed is not None and placed.epoch == reader.epoch:
            return detour_queue(name, reader.chip) if (reader.op.name, name) in self.detours else name
        if name in self.between:
            return self.between[name]
        return self.held_as[reader.op.name, name] if name in self.tiles.constants else name

    def graphs(self) -> list[GraphPlace]:
        """All, in the order in which they run."""
        return sorted({placed.graph for placed in self.ops.values()})

    @property
    def programs(self) -> dict[str, list[GraphPlace]]:
        """The graphs of each program, in order."""
        of = {placed.graph: placed.op.program for placed in self.ops.values()}
        found: dict[str, list[GraphPlace]] = {}
        for graph in self.graphs():
            found.setdefault(of[graph], []).append(graph)
        return found

    def read_by(self, graph: GraphPlace) -> dict[str, bool]:
        """Queues that the ops of a graph read, and whether all of them keep it in L1."""
        found: dict[str, bool] = {}
        for placed in self.ops.values():
            if placed.graph == graph:
                for use in placed.op.uses:
                    name = self.source(use.source, placed)
                    if name in self.queues:
                        found[name] = found.get(name, True) and use.source in placed.held
        return found

    @property
    def stages(self) -> int:
        """Chips of the pipeline, or of one copy: those that have a graph."""
        return max((placed.chip for placed in self.ops.values()), default=0) + 1

    @property
    def chips(self) -> int:
        """Of the pipeline, or of all copies."""
        return self.stages * self.copies


def detour_queue(name: str, chip: int) -> str:
    """By which readers of its own epoch on one chip take from DRAM what an op makes."""
    return constant_queue(f"by_dram_{name}", chip)


def constant_queue(name: str, chip: int) -> str:
    """Each chip has its own copy of a constant (NETLIST V161)."""
    return name if chip == 0 else f"{name}_chip{chip}"
