"""Buffer space of operands, also for a short branch that is parallel to a long one."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from buda_emu.compiler.lower.tiles import Shape, TileOp, Use
from buda_emu.compiler.place.blocks import Blocks, buffer_bytes, size_of_tile
from buda_emu.compiler.place.cost import tiles_read
from buda_emu.compiler.place.memory import Memory
from buda_emu.compiler.place.placement import PlacedOp, Placement
from buda_emu.compiler.place.queues import fork_queue
from buda_emu.compiler.place.routed import Edge, held_bytes
from buda_emu.performance.timing.epoch.result import INPUT_BUFFERS
from buda_emu.performance.timing.epoch.tasks import parts_of_blocks

Slices = NDArray[np.int64]


@dataclass(slots=True)
class Pipeline:
    """The ops of one epoch in order, how each is divided, and the slices that operands hold beyond the usual
    buffers."""

    ops: dict[str, TileOp]
    blocks: dict[str, Blocks]
    by_dram: frozenset[tuple[str, str]] = frozenset()
    """The (reader, source) pairs of operands that go through DRAM already."""
    extra: dict[Edge, int] = field(default_factory=dict["Edge", int])

    def edges(self, reader: str) -> Iterator[Edge]:
        """Yield the operands of an op that other ops of this epoch make."""
        for number, use in enumerate(self.ops[reader].uses):
            if use.source in self.ops and (reader, use.source) not in self.by_dram:
                yield Edge(use.source, reader, number)

    def slices(self, name: str) -> int:
        """Return the number of slices of an op's result."""
        return self.ops[name].shape[0]

    def slices_read(self, edge: Edge, produced: Slices) -> Slices:
        """Return the slices of an edge's source that the reader has taken when it has produced `produced` slices of its
        own."""
        return source_slices(self.ops[edge.reader], edge.operand, self.ops[edge.source].shape, produced)

    def ahead(self, edge: Edge, produced: Slices) -> Slices:
        """Return the slices that an edge's source may have produced when the reader has produced `produced`: those that
        the reader has taken, those in the source's buffer, and those in the reader's operand buffer beyond the
        usual."""
        room = self.blocks[edge.source].buf_size_mb + self.extra.get(edge, 0)
        return np.minimum(self.slices_read(edge, produced) + room, self.slices(edge.source))


def source_slices(op: TileOp, operand: int, source: Shape, produced: Slices) -> Slices:
    """Return how many slices of an operand's source go into the first `produced` slices of the op's result. `source`:
    the source's shape."""
    if op.attrs.get("identity") or op.has("row-wise index"):
        return np.where(produced > 0, source[0], 0)  # a picker takes rows from anywhere
    if op.has("takes turns"):  # a slice of each operand
        return np.minimum(-(-produced // len(op.uses)), source[0])
    count = produced
    if op.has("reduces") and op.attrs["dim"] == "z":
        count = produced * op.attrs["z"]
    return np.minimum(slices_before_tms(op.uses[operand], count), source[0])


def slices_before_tms(use: Use, count: Slices) -> Slices:
    """Return how many slices in front of an operand's TMs make `count` slices behind them."""
    for tm in reversed(use.tms):
        if tm[0] in ("hslice", "vslice"):
            count = -(-count // int(tm[-1]))
        elif tm[0] in ("hstack", "vstack"):
            count = count * int(tm[-1])
    return count


@dataclass(frozen=True, slots=True)
class Shortage:
    """An operand whose buffer must hold more slices, and how many. If `hangs` is set the epoch would otherwise
    deadlock, and not only be slow."""

    edge: Edge
    slices: int
    hangs: bool


def find_shortages(pipeline: Pipeline) -> Iterator[Shortage]:
    """Yield the operand buffers of a graph that are too small: those at joins, first joins first, then, if no join
    hangs, those at which the epoch hangs otherwise. `enlarge_operand_buffers` enlarges each (`pipeline.extra`) and asks
    again."""
    hangs = False
    for lack in _shortages_at_joins(pipeline):
        hangs = hangs or lack.hangs
        yield lack
    if not hangs:
        yield from find_stalls(pipeline)


def _shortages_at_joins(pipeline: Pipeline) -> Iterator[Shortage]:
    """Yield the operands of joins whose buffers hold back an op from which two branches lead to the join."""
    for fork in _narrow_forks(pipeline):
        yield from _shortages_behind_fork(pipeline, fork)


def _narrow_forks(pipeline: Pipeline) -> Iterator[str]:
    """Yield the ops with several readers whose buffers do not hold their whole result."""
    readers: dict[str, list[Edge]] = {name: [] for name in pipeline.ops}
    for name in pipeline.ops:
        for edge in pipeline.edges(name):
            readers[edge.source].append(edge)
    for fork in pipeline.ops:
        usual = pipeline.blocks[fork].buf_size_mb
        if len(readers[fork]) > 1 and pipeline.slices(fork) > usual:
            yield fork


def _shortages_behind_fork(pipeline: Pipeline, fork: str) -> Iterator[Shortage]:
    """Yield the operands with too small buffers at the joins of branches that begin at the op `fork`."""
    # Slices of the fork that each op after it needs for its first 1, 2, ... slices, and how many ops lie between.
    needed: dict[str, Slices] = {fork: np.arange(pipeline.slices(fork) + 1)}
    depth: dict[str, int] = {fork: 0}
    for name in pipeline.ops:
        edges = [edge for edge in pipeline.edges(name) if edge.source in needed]
        if not edges or name == fork:
            continue
        produced = np.arange(pipeline.slices(name) + 1)
        needs = [needed[edge.source][pipeline.slices_read(edge, produced)] for edge in edges]
        needed[name] = np.max(needs, axis=0)
        depth[name] = 1 + max(depth[edge.source] for edge in edges)
        if len(edges) > 1:
            lack = _shortage_at_join(pipeline, fork, name, edges, needs, depth)
            if lack is not None:
                yield lack


def _shortage_at_join(
    pipeline: Pipeline, fork: str, join: str, edges: list[Edge], needs: list[Slices], depth: dict[str, int]
) -> Shortage | None:
    """Return the operand of a join, one of `edges`, that holds the fork back most, and the slices that it lacks; None
    where all have room."""
    count = np.arange(pipeline.slices(join))
    longest = np.max(needs, axis=0)[1:]
    deepest = max(depth[edge.source] for edge in edges)
    for slack in (deepest - min(depth[edge.source] for edge in edges), 0):
        for edge in edges:
            allowed = _slice_limit(pipeline, fork, edge, count)
            wish = np.minimum(longest + slack * (depth[edge.source] < deepest), pipeline.slices(fork))
            missing = int((wish - allowed).max())
            if missing > 0:
                hangs = bool((longest > allowed).any())
                source = pipeline.slices(edge.source)
                share = -(-missing * source // pipeline.slices(fork))
                return Shortage(edge, min(max(share, 1), source), hangs)
    return None


def _slice_limit(pipeline: Pipeline, fork: str, edge: Edge, produced: Slices) -> Slices:
    """Return the slices that the fork may have produced when the join has produced `produced`, over all paths through
    one operand, `edge`."""
    limit: dict[str, Slices] = {edge.source: pipeline.ahead(edge, produced)}
    for name in reversed(pipeline.ops):
        if name == fork:
            break
        if name in limit:
            for before_it in pipeline.edges(name):
                ahead = pipeline.ahead(before_it, limit[name])
                earlier = limit.get(before_it.source)
                limit[before_it.source] = ahead if earlier is None else np.minimum(earlier, ahead)
    return limit.get(fork, np.full(produced.shape, pipeline.slices(fork)))


class _Flow:
    """The slices that every op of a pipeline can make before the epoch ends or hangs: each op makes a slice as soon as
    its operands have come and every reader has room for it. `unlimited` are operands with room for all slices."""

    def __init__(self, pipeline: Pipeline, unlimited: frozenset[Edge] = frozenset()) -> None:
        self.total = {name: pipeline.slices(name) for name in pipeline.ops}
        self.progress = dict.fromkeys(pipeline.ops, 0)
        self.operands = {name: list(pipeline.edges(name)) for name in pipeline.ops}
        self.outputs: dict[str, list[Edge]] = {name: [] for name in pipeline.ops}
        self.read: dict[Edge, list[int]] = {}
        self.ahead: dict[Edge, list[int]] = {}
        for edges in self.operands.values():
            for edge in edges:
                produced = np.arange(self.total[edge.reader] + 2)
                self.outputs[edge.source].append(edge)
                self.read[edge] = pipeline.slices_read(edge, produced).tolist()
                ahead = pipeline.ahead(edge, produced).tolist()
                self.ahead[edge] = [self.total[edge.source]] * len(produced) if edge in unlimited else ahead

    def run(self) -> None:
        """Let every op make all the slices that it can."""
        moves = True
        while moves:
            moves = False
            for name in self.progress:
                while self.can_make(name):
                    self.progress[name] += 1
                    moves = True

    def is_complete(self) -> bool:
        """Return whether every op has made its whole result."""
        return self.progress == self.total

    def can_make(self, name: str) -> bool:
        """Return whether an op can make its next slice."""
        if self.progress[name] == self.total[name] or self.late_operand(name) is not None:
            return False
        return self.full_output(name) is None

    def late_operand(self, name: str) -> Edge | None:
        """Return an operand of which an op lacks slices for its next one; None if it lacks none."""
        following = self.progress[name] + 1
        for edge in self.operands[name]:
            if self.progress[edge.source] < self.read[edge][following]:
                return edge
        return None

    def late_sibling(self, edge: Edge) -> Edge | None:
        """Return another operand of the reader that must come before it takes more of this one; None if there is none.
        One whose buffer is full has come: the reader takes both by turns."""
        produced = self.progress[edge.reader]
        for other in self.operands[edge.reader]:
            wanted = min(self.read[other][produced + 1], self.ahead[other][produced])
            if other.source != edge.source and self.progress[other.source] < wanted:
                return other
        return None

    def full_output(self, name: str) -> Edge | None:
        """Return an operand made by an op that has no room for its next slice; None if all have."""
        for edge in self.outputs[name]:
            produced = self.progress[edge.reader]
            if self.progress[name] < self.ahead[edge][produced]:
                continue
            # A reader takes what its next slice needs as it comes, if its other operands are there.
            takes = self.progress[name] < self.read[edge][produced + 1]
            if not takes or self.late_sibling(edge) is not None:
                return edge
        return None

    def full_operands(self) -> set[Edge]:
        """Return the full operand buffers in one circle of ops that wait for each other, when nothing moves any
        more."""
        full: dict[str, Edge] = {}
        path: list[str] = []
        name = next(name for name in self.progress if self.progress[name] < self.total[name])
        while name not in path:
            path.append(name)
            late = self.late_operand(name)
            edge = None if late else self.full_output(name)
            if edge is not None:
                full[name] = edge
                late = self.late_sibling(edge)
            name = self._cause_of_wait(name, late, edge)
        return {full[waiting] for waiting in path[path.index(name) :] if waiting in full}

    def _cause_of_wait(self, name: str, late: Edge | None, full: Edge | None) -> str:
        """Return the op for which another one waits: the maker of a late operand, or the reader of a full one."""
        if late is not None:
            return late.source
        if full is not None and self.progress[full.reader] < self.total[full.reader]:
            return full.reader
        return name  # the reader is done and takes no more of it


def _completes(pipeline: Pipeline, unlimited: Iterable[Edge] = ()) -> bool:
    """Return whether every op makes its whole result if the operands `unlimited` have room for all slices."""
    flow = _Flow(pipeline, frozenset(unlimited))
    flow.run()
    return flow.is_complete()


def find_stalls(pipeline: Pipeline) -> list[Shortage]:
    """Return the operands that need more room lest the epoch hang, and the least slices for each beside the others;
    an empty list where nothing hangs.

    Ops hang if they wait for each other in a circle. It may lead through ops that are not in front of the join where
    the waiting begins: a reader of a stalled op starves, and so holds back the other ops that it reads."""
    if next(_narrow_forks(pipeline), None) is None:
        return []
    unlimited: set[Edge] = set()
    while True:
        flow = _Flow(pipeline, frozenset(unlimited))
        flow.run()
        if flow.is_complete():
            break
        unlimited |= flow.full_operands()
    trial = replace(pipeline, extra=dict(pipeline.extra))
    shortages: list[Shortage] = []
    # The operands with the largest slices come first: each gets only what the room of the cheaper ones cannot replace.
    for edge in sorted(unlimited, key=lambda edge: _dearest_first(pipeline, edge)):
        unlimited.discard(edge)
        slices = _least_room(trial, edge, unlimited)
        trial.extra[edge] = pipeline.extra.get(edge, 0) + slices
        if slices > 0:
            shortages.append(Shortage(edge, slices, hangs=True))
    return shortages


def _dearest_first(pipeline: Pipeline, edge: Edge) -> tuple[int, str, int]:
    """Return the key that sorts operands by the tiles of a slice, the largest first."""
    return (-prod(pipeline.ops[edge.source].shape[1:]), edge.reader, edge.operand)


def _least_room(pipeline: Pipeline, edge: Edge, unlimited: set[Edge]) -> int:
    """Return the fewest further slices of room in an operand with which nothing hangs, while the operands `unlimited`
    have room for all slices."""
    if _completes(pipeline, unlimited):  # so it is of most operands, and quicker than to bisect
        return 0
    before = pipeline.extra.get(edge, 0)
    trial = replace(pipeline, extra=dict(pipeline.extra))
    low = 1
    high = pipeline.slices(edge.source)
    while low < high:
        middle = (low + high) // 2
        trial.extra[edge] = before + middle
        if _completes(trial, unlimited):
            high = middle
        else:
            low = middle + 1
    return low


def enlarge_operand_buffers(placement: Placement) -> None:
    """Enlarge the operand buffers of every graph as far as short branches need it. Where L1 is full, an operand that
    would hang goes through DRAM, and one that would only wait stays as it is."""
    memory = Memory.of(placement)
    for ops in placement.ops_by_graph().values():
        pipeline = Pipeline(
            {placed.op.name: placed.op for placed in ops},
            {placed.op.name: placed.blocks for placed in ops},
            frozenset(placement.detours),
        )
        _enlarge_pipeline(placement, memory, pipeline)


def _enlarge_pipeline(placement: Placement, memory: Memory, pipeline: Pipeline) -> None:
    """Enlarge the operand buffers of the ops of one graph."""
    refused: set[Edge] = set()
    # Enlarging one buffer may make another one too small. This ends, as a buffer holds all slices at most, and an
    # operand for which L1 has no room is enlarged no more.
    while shortages := [lack for lack in find_shortages(pipeline) if lack.hangs or lack.edge not in refused]:
        for lack in shortages:
            if not _enlarge(placement, memory, pipeline, lack):
                refused.add(lack.edge)
    while stalls := find_stalls(pipeline):
        for lack in stalls:
            _enlarge(placement, memory, pipeline, lack)


def _enlarge(placement: Placement, memory: Memory, pipeline: Pipeline, lack: Shortage) -> bool:
    """Enlarge the operand buffer that `lack` names in L1, and return whether there was room. Where there is none, an
    operand that would hang goes through DRAM."""
    if lack.edge not in pipeline.edges(lack.edge.reader):
        return True  # it goes through DRAM since the shortage was found
    if _enlarge_in_l1(placement, pipeline, lack):
        return True
    if lack.hangs:
        _detour_by_queue(placement, memory, pipeline, lack.edge)
    return False


def _enlarge_in_l1(placement: Placement, pipeline: Pipeline, lack: Shortage) -> bool:
    """Enlarge the operand buffer that `lack` names by its slices, if the reader's cores have the bytes, and return
    whether they have."""
    edge = lack.edge
    op = pipeline.ops[edge.reader]
    blocks = pipeline.blocks[edge.reader]
    target = placement.target.of(op.precision)
    use = op.uses[edge.operand]
    if op.is_tile_by_tile and not use.tms:
        slice_tiles = prod(blocks.mblock) * prod(blocks.ublock)
    else:  # how operands of products and what TMs rearrange are cut over cores: at most all of it in each
        slice_tiles = prod(pipeline.ops[edge.source].shape[1:])
    slices = pipeline.extra.get(edge, 0) + lack.slices
    tile = size_of_tile(target.activation_df, target.arch.alignment)
    others = sum(other_use.buffer for number, other_use in enumerate(op.uses) if number != edge.operand)
    held = held_bytes(placement, placement.ops[edge.reader])
    if buffer_bytes(target, op, blocks, held=held) + (others + slices * slice_tiles) * tile > target.buffer_room:
        return False
    pipeline.extra[edge] = slices
    _replace_operand(placement, pipeline, edge, replace(use, buffer=slices * slice_tiles))
    return True


def _replace_operand(placement: Placement, pipeline: Pipeline, edge: Edge, use: Use) -> None:
    """Let the reader of an edge take `use` as that operand. Its op is copied and not changed in place, since other
    placements may share it."""
    for ops in (placement.tiles.ops, pipeline.ops):
        uses = list(ops[edge.reader].uses)
        uses[edge.operand] = use
        ops[edge.reader] = replace(ops[edge.reader], uses=uses)
    placement.ops[edge.reader] = replace(placement.ops[edge.reader], op=pipeline.ops[edge.reader])


def _detour_by_queue(placement: Placement, memory: Memory, pipeline: Pipeline, edge: Edge) -> None:
    """Let the reader take the operand out of a queue in DRAM, which has room for all of an input."""
    reader = pipeline.ops[edge.reader]
    name = f"fork_{edge.source}_{edge.operand}_{edge.reader}"
    placement.queues[name] = fork_queue(placement, name, edge.source, placement.ops[edge.source].chip)
    memory.add(placement, {name: {}})
    _replace_operand(placement, pipeline, edge, Use(name, reader.uses[edge.operand].tms))


def add_prefetch_buffers(placement: Placement, epoch: int | None = None) -> None:
    """Enlarge operand buffers so that ops read all of what they need out of DRAM for a single input before they begin,
    and not in parts while they work (`input_buf_min_size_tiles`).

    The smallest operands of an op come first, as far as L1 goes. Where L1 is full, the output buffer has room for this
    input alone. With `epoch`, only the ops of that epoch change."""
    if not placement.waits_for_one:
        return
    for name, placed in placement.ops.items():
        if epoch not in (None, placed.epoch) or parts_of_blocks(placed.blocks.t, placed.blocks.mblock) <= INPUT_BUFFERS:
            continue
        changed = _with_prefetch_buffers(placement, placed)
        if changed is not placed:
            placement.ops[name] = changed
            placement.tiles.ops[name] = replace(placement.tiles.ops[name], uses=changed.op.uses)


def _with_prefetch_buffers(placement: Placement, placed: PlacedOp) -> PlacedOp:
    """Return the op with larger buffers for the operands that come out of DRAM, as far as L1 goes."""
    op = placed.op
    target = placement.target.of(placed.op.precision)
    tile = size_of_tile(target.activation_df, target.arch.alignment)
    uses = list(op.uses)
    read_tiles = {
        number: tiles_read(placement.tiles, op, placed.blocks, number)
        for number, use in enumerate(uses)
        if use.source not in placed.held and _comes_from_dram(placement, placed, use.source)
    }
    blocks = placed.blocks
    held = held_bytes(placement, placed)
    free = target.buffer_room - buffer_bytes(target, op, blocks, held=held)
    if sum(read_tiles.values()) * tile > free and blocks.buf_size_mb > 2 * blocks.t:
        blocks = replace(blocks, buf_size_mb=2 * blocks.t)
        free = target.buffer_room - buffer_bytes(target, op, blocks, held=held)
    for number, tiles in sorted(read_tiles.items(), key=lambda entry: entry[::-1]):
        if tiles * tile <= free:
            free -= tiles * tile
            uses[number] = replace(uses[number], buffer=max(uses[number].buffer, tiles))
    if uses == op.uses:
        return placed
    return replace(placed, op=replace(op, uses=uses), blocks=blocks)


def _comes_from_dram(placement: Placement, placed: PlacedOp, source: str) -> bool:
    """Return whether an operand comes out of DRAM."""
    maker = placement.ops.get(source)
    return maker is None or maker.epoch != placed.epoch or (placed.op.name, source) in placement.detours
