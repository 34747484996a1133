"""The room that operand buffers in L1 need so that the ops of an epoch neither deadlock nor wait: where branches of
different length meet again, the buffer at the end of the shorter one must hold what the longer one delays."""

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
    """The ops of one graph, in the order in which each comes after those that it reads, with how each is divided, and
    the slices of t (of the source's result) that operand buffers hold beyond the usual two blocks."""

    ops: dict[str, TileOp]
    blocks: dict[str, Blocks]
    by_dram: frozenset[tuple[str, str]] = frozenset()
    """The (reader, source) pairs of operands that go through DRAM already."""
    extra: dict[Edge, int] = field(default_factory=dict["Edge", int])

    def edges(self, reader: str) -> Iterator[Edge]:
        """Yield the operands of the op `reader` that come from other ops of this pipeline and not by DRAM."""
        for number, use in enumerate(self.ops[reader].uses):
            if use.source in self.ops and (reader, use.source) not in self.by_dram:
                yield Edge(use.source, reader, number)

    def slices(self, name: str) -> int:
        """Return the number of slices of t of the result of op `name`."""
        return self.ops[name].shape[0]

    def slices_read(self, edge: Edge, produced: Slices) -> Slices:
        """Return, for each number in `produced`, how many slices of the edge's source its reader has taken when it has
        produced that many slices of its own result."""
        return source_slices(self.ops[edge.reader], edge.operand, self.ops[edge.source].shape, produced)

    def ahead(self, edge: Edge, produced: Slices) -> Slices:
        """Return, for each number in `produced`, how many slices the edge's source may have produced at most when the
        reader has produced that many: those that the reader has taken, those in the source's output buffer, and those
        in the reader's operand buffer beyond the usual (`extra`)."""
        room = self.blocks[edge.source].buf_size_mb + self.extra.get(edge, 0)
        return np.minimum(self.slices_read(edge, produced) + room, self.slices(edge.source))


def source_slices(op: TileOp, operand: int, source: Shape, produced: Slices) -> Slices:
    """Return how many slices of t of operand number `operand` an op must have read for its first n result slices, for
    each n in `produced`. `source`: shape of the operand's source in tiles, before the operand's TMs."""
    if op.attrs.get("identity") or op.has("row-wise index"):
        return np.where(produced > 0, source[0], 0)  # a picker takes rows from anywhere
    if op.has("takes turns"):  # a slice of each operand
        return np.minimum(-(-produced // len(op.uses)), source[0])
    count = produced
    if op.has("reduces") and op.attrs["dim"] == "z":
        count = produced * op.attrs["z"]
    return np.minimum(slices_before_tms(op.uses[operand], count), source[0])


def slices_before_tms(use: Use, count: Slices) -> Slices:
    """Return, for each number n in `count`, how many slices of an operand's source hold its first n slices after TMs:
    hslice and vslice make several slices of one, hstack and vstack one of several."""
    for tm in reversed(use.tms):
        if tm[0] in ("hslice", "vslice"):
            count = -(-count // int(tm[-1]))
        elif tm[0] in ("hstack", "vstack"):
            count = count * int(tm[-1])
    return count


@dataclass(frozen=True, slots=True)
class Shortage:
    """An operand buffer that is too small: `slices` of its source must fit into it in addition to what fits now. With
    `hangs` the epoch deadlocks without them; otherwise it is only slower."""

    edge: Edge
    slices: int
    hangs: bool


def find_shortages(pipeline: Pipeline) -> Iterator[Shortage]:
    """Yield the operand buffers of a graph that are too small: first those where two branches from one op meet again,
    by the op at which they begin; then, if none of these deadlocks, those at which the epoch deadlocks for another
    reason.

    Nothing is enlarged here. `enlarge_operand_buffers` does so (`pipeline.extra`) and asks again, since one larger
    buffer may make another one too small."""
    hangs = False
    for lack in _shortages_at_joins(pipeline):
        hangs = hangs or lack.hangs
        yield lack
    if not hangs:
        yield from find_stalls(pipeline)


def _shortages_at_joins(pipeline: Pipeline) -> Iterator[Shortage]:
    """Yield too small operand buffers of joins, ops to which two or more branches lead from one op. Such a buffer, when
    full, stops the op at which the branches begin, although the other branch still needs slices of it."""
    for fork in _narrow_forks(pipeline):
        yield from _shortages_behind_fork(pipeline, fork)


def _narrow_forks(pipeline: Pipeline) -> Iterator[str]:
    """Yield the ops whose result is read by several operands and does not fit their output buffer as a whole; only
    these can be stopped by one reader while another one starves."""
    readers: dict[str, list[Edge]] = {name: [] for name in pipeline.ops}
    for name in pipeline.ops:
        for edge in pipeline.edges(name):
            readers[edge.source].append(edge)
    for fork in pipeline.ops:
        usual = pipeline.blocks[fork].buf_size_mb
        if len(readers[fork]) > 1 and pipeline.slices(fork) > usual:
            yield fork


def _shortages_behind_fork(pipeline: Pipeline, fork: str) -> Iterator[Shortage]:
    """Yield at most one too small operand buffer for each join of branches that begin at the op `fork`."""
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
    """Return the first operand among `edges` through which op `fork` is stopped before it has made all that the next
    slice of op `join` needs, with the slices that its buffer lacks; None where all have room.

    `edges` are the operands of the join that depend on the fork, `needs` has for each of them the slices of the fork
    that the first 0, 1, 2, ... slices of the join take by it, and `depth` counts the ops between the fork and each op.
    Buffers that only cause waiting are found, too: shorter branches must first hold a slice of the fork more for each
    op by which the longest branch is longer."""
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
    """Return, for each number in `produced`, how many slices the op `fork` may have made at most when the reader of
    `edge` has produced that many; only paths from the fork that end in this operand limit it."""
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


class _FlowSimulation:
    """A simulation of the slices that the ops of a pipeline make until the epoch ends or hangs: each op makes a slice
    as soon as its operands have come and every reader's buffer has room for it. Operands in `unlimited` have room for
    all slices."""

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
        """Let every op make all the slices that it can, until none can make another one."""
        moves = True
        while moves:
            moves = False
            for name in self.progress:
                while self.can_make(name):
                    self.progress[name] += 1
                    moves = True

    def is_complete(self) -> bool:
        """Return whether every op has made its whole result; False after `run` means a deadlock."""
        return self.progress == self.total

    def can_make(self, name: str) -> bool:
        """Return whether op `name` can make its next slice: some are left, its operands have come, its readers have
        room."""
        if self.progress[name] == self.total[name] or self.late_operand(name) is not None:
            return False
        return self.full_output(name) is None

    def late_operand(self, name: str) -> Edge | None:
        """Return the first operand of op `name` whose source has not yet made what the op's next slice needs; None if
        all have."""
        following = self.progress[name] + 1
        for edge in self.operands[name]:
            if self.progress[edge.source] < self.read[edge][following]:
                return edge
        return None

    def late_sibling(self, edge: Edge) -> Edge | None:
        """Return another operand of the reader of `edge`, from another source, that must come before the reader takes
        more of `edge`; None if there is none.

        An operand whose buffer is full counts as come, since the reader takes tiles of both in turn."""
        produced = self.progress[edge.reader]
        for other in self.operands[edge.reader]:
            wanted = min(self.read[other][produced + 1], self.ahead[other][produced])
            if other.source != edge.source and self.progress[other.source] < wanted:
                return other
        return None

    def full_output(self, name: str) -> Edge | None:
        """Return the first operand buffer fed by op `name` that has no room for the op's next slice; None if all have
        room."""
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
        """Return the full operand buffers in one cycle of ops that wait for each other. To be called after a `run` that
        is not complete; raises StopIteration if it is."""
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
        """Return the op for which op `name` waits: the source of its `late` operand, or the reader whose operand buffer
        `full` is full; `name` itself where that reader is done and takes no more."""
        if late is not None:
            return late.source
        if full is not None and self.progress[full.reader] < self.total[full.reader]:
            return full.reader
        return name  # the reader is done and takes no more of it


def _runs_to_end(pipeline: Pipeline, unlimited: Iterable[Edge] = ()) -> bool:
    """Return whether a simulation lets every op make its whole result if the operands in `unlimited` have room for all
    slices."""
    flow = _FlowSimulation(pipeline, frozenset(unlimited))
    flow.run()
    return flow.is_complete()


def find_stalls(pipeline: Pipeline) -> list[Shortage]:
    """Return the operand buffers that must be larger lest the epoch deadlock, each with the fewest slices that it needs
    given the others; an empty list where nothing deadlocks.

    Ops deadlock if they wait for each other in a cycle. It may lead through ops that are not in front of the join where
    the waiting begins: a reader of a stalled op starves, and so stops the other ops that it reads."""
    if next(_narrow_forks(pipeline), None) is None:
        return []
    unlimited: set[Edge] = set()
    while True:
        flow = _FlowSimulation(pipeline, frozenset(unlimited))
        flow.run()
        if flow.is_complete():
            break
        unlimited |= flow.full_operands()
    trial = replace(pipeline, extra=dict(pipeline.extra))
    shortages: list[Shortage] = []
    # The operands with the largest slices come first: each gets only what the room of the cheaper ones cannot replace.
    for edge in sorted(unlimited, key=lambda edge: _descending_slice_size(pipeline, edge)):
        unlimited.discard(edge)
        slices = _least_room(trial, edge, unlimited)
        trial.extra[edge] = pipeline.extra.get(edge, 0) + slices
        if slices > 0:
            shortages.append(Shortage(edge, slices, hangs=True))
    return shortages


def _descending_slice_size(pipeline: Pipeline, edge: Edge) -> tuple[int, str, int]:
    """Return a sort key of operands: those with the most tiles in a slice of their source first."""
    return (-prod(pipeline.ops[edge.source].shape[1:]), edge.reader, edge.operand)


def _least_room(pipeline: Pipeline, edge: Edge, unlimited: set[Edge]) -> int:
    """Return the fewest slices by which the buffer of operand `edge` must grow so that nothing deadlocks, 0 if it need
    not; operands in `unlimited` have room for all slices."""
    if _runs_to_end(pipeline, unlimited):  # true of most operands, and cheaper to ask than to bisect
        return 0
    before = pipeline.extra.get(edge, 0)
    trial = replace(pipeline, extra=dict(pipeline.extra))
    low = 1
    high = pipeline.slices(edge.source)
    while low < high:
        middle = (low + high) // 2
        trial.extra[edge] = before + middle
        if _runs_to_end(trial, unlimited):
            high = middle
        else:
            low = middle + 1
    return low


def enlarge_operand_buffers(placement: Placement) -> None:
    """Enlarge the operand buffers of every graph of a placement where branches of different length meet or the epoch
    would deadlock, and change the placement's ops accordingly. Where L1 is full, an operand that would deadlock is read
    from a new queue in DRAM instead, and one that would only wait stays as it is."""
    memory = Memory.of(placement)
    for ops in placement.ops_by_graph().values():
        pipeline = Pipeline(
            {placed.op.name: placed.op for placed in ops},
            {placed.op.name: placed.blocks for placed in ops},
            frozenset(placement.detours),
        )
        _enlarge_pipeline(placement, memory, pipeline)


def _enlarge_pipeline(placement: Placement, memory: Memory, pipeline: Pipeline) -> None:
    """Enlarge the operand buffers of the ops of one graph until none is too small or L1 has no room; changes the
    placement, its memory and the pipeline."""
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
    """Enlarge the operand buffer that `lack` names, and return whether it needs no more room: L1 had it, or the operand
    comes by DRAM since the shortage was found. Returns False where L1 is full; an operand that would deadlock is then
    sent through a queue in DRAM."""
    if lack.edge not in pipeline.edges(lack.edge.reader):
        return True  # it goes through DRAM since the shortage was found
    if _enlarge_in_l1(placement, pipeline, lack):
        return True
    if lack.hangs:
        _detour_by_queue(placement, memory, pipeline, lack.edge)
    return False


def _enlarge_in_l1(placement: Placement, pipeline: Pipeline, lack: Shortage) -> bool:
    """Enlarge the operand buffer that `lack` names by its slices if the reader's cores have the bytes, and return
    whether they do. Where they do not, nothing changes."""
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
    """Replace the operand `edge` of its reader by `use`, in the placement, its tile graph and the pipeline. The reader
    is copied and not changed in place, since other placements may share it."""
    for ops in (placement.tiles.ops, pipeline.ops):
        uses = list(ops[edge.reader].uses)
        uses[edge.operand] = use
        ops[edge.reader] = replace(ops[edge.reader], uses=uses)
    placement.ops[edge.reader] = replace(placement.ops[edge.reader], op=pipeline.ops[edge.reader])


def _detour_by_queue(placement: Placement, memory: Memory, pipeline: Pipeline, edge: Edge) -> None:
    """Add a queue in DRAM that the source of `edge` fills, with room for the whole operand of one input, and let the
    reader of `edge` read that queue."""
    reader = pipeline.ops[edge.reader]
    name = f"fork_{edge.source}_{edge.operand}_{edge.reader}"
    placement.queues[name] = fork_queue(placement, name, edge.source, placement.ops[edge.source].chip)
    memory.add(placement, {name: {}})
    _replace_operand(placement, pipeline, edge, Use(name, reader.uses[edge.operand].tms))


def add_prefetch_buffers(placement: Placement, epoch: int | None = None) -> None:
    """Enlarge operand buffers (`input_buf_min_size_tiles`) in a placement for rounds of a single input
    (`waits_for_one`; nothing changes in others), so that ops read all that they need out of DRAM before they begin, and
    not in parts while they work.

    The smallest operands of an op come first, as far as L1 goes. Where L1 is too small for all of them, the output
    buffer shrinks to one input in each of its halves. Ops whose work has no more parts than usual operand buffers hold
    stay as they are. With `epoch`, only the ops of that epoch change; None means all."""
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
    """Return the op with buffers for all tiles of those operands that come out of DRAM, the smallest first, as far as
    L1 goes; the same object where none is enlarged."""
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
    """Return whether the operand of `placed` that `source` names is read out of DRAM: it is a queue or a constant, the
    result of another epoch, or an op's result with a detour."""
    maker = placement.ops.get(source)
    return maker is None or maker.epoch != placed.epoch or (placed.op.name, source) in placement.detours
