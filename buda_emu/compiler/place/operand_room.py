"""Buffer space of operands, also for a short branch that is parallel to a long one."""

from collections.abc import Iterator
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
from buda_emu.compiler.place.routed import held_bytes
from buda_emu.performance.timing.epoch.result import INPUT_BUFFERS
from buda_emu.performance.timing.epoch.tasks import parts_of_blocks

Slices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Edge:
    """Operand number `operand` of the op `reader`, made by the op `source` of the same epoch."""

    source: str
    reader: str
    operand: int


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
        """Return the slices of the source that the reader has taken when it has produced so many of its own."""
        return source_slices(self.ops[edge.reader], edge.operand, self.ops[edge.source].shape, produced)

    def ahead(self, edge: Edge, produced: Slices) -> Slices:
        """Return the slices that the source may have produced when the reader has produced so many: those that the
        reader has taken, those in the source's buffer, and those in the reader's operand buffer beyond the usual."""
        room = self.blocks[edge.source].buf_size_mb + self.extra.get(edge, 0)
        return np.minimum(self.slices_read(edge, produced) + room, self.slices(edge.source))


def source_slices(op: TileOp, operand: int, source: Shape, produced: Slices) -> Slices:
    """Return the slices of an operand's source that go into the first slices of the op's result."""
    if op.attrs.get("identity") or op.has("row-wise index"):
        return np.where(produced > 0, source[0], 0)  # a picker takes rows from anywhere
    if op.has("takes turns"):  # a slice of each operand
        return np.minimum(-(-produced // len(op.uses)), source[0])
    count = produced
    if op.has("reduces") and op.attrs["dim"] == "z":
        count = produced * op.attrs["z"]
    return np.minimum(slices_before_tms(op.uses[operand], count), source[0])


def slices_before_tms(use: Use, count: Slices) -> Slices:
    """Return the slices in front of the TMs that make so many slices behind them."""
    for tm in reversed(use.tms):
        if tm[0] in ("hslice", "vslice"):
            count = -(-count // int(tm[-1]))
        elif tm[0] in ("hstack", "vstack"):
            count = count * int(tm[-1])
    return count


@dataclass(frozen=True, slots=True)
class Shortage:
    """An operand whose buffer must hold so many more slices. If `hangs` is set the epoch would otherwise deadlock, and
    not only be slow."""

    edge: Edge
    slices: int
    hangs: bool


def find_shortages(pipeline: Pipeline) -> Iterator[Shortage]:
    """Yield the operands of joins whose buffers are too small, each once, the first joins first. The caller must
    enlarge each buffer (`pipeline.extra`) before it asks for the next."""
    readers: dict[str, list[Edge]] = {name: [] for name in pipeline.ops}
    for name in pipeline.ops:
        for edge in pipeline.edges(name):
            readers[edge.source].append(edge)
    for fork in pipeline.ops:
        usual = pipeline.blocks[fork].buf_size_mb
        if len(readers[fork]) > 1 and pipeline.slices(fork) > usual:
            yield from _shortages_behind_fork(pipeline, fork)


def _shortages_behind_fork(pipeline: Pipeline, fork: str) -> Iterator[Shortage]:
    """Yield the operands with too small buffers at the joins of branches that begin at one op."""
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
    """Return the operand of a join that holds the fork back most, and the slices that it lacks; None where all have
    room."""
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
    """Return the slices that the fork may have produced when the join has produced so many, over all paths through one
    operand."""
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


_ROUNDS = 4
"""Number of passes over all joins, since enlarging one buffer may make another one too small."""


def enlarge_operand_buffers(placement: Placement) -> None:
    """Enlarge the operand buffers of every graph as far as short branches need it. Where L1 is full, an operand that
    would hang goes through DRAM, and one that would only wait stays as it is."""
    memory = Memory.of(placement)
    for graph in placement.graphs():
        placed = {name: placed_op for name, placed_op in placement.ops.items() if placed_op.graph == graph}
        pipeline = Pipeline(
            {name: placed_op.op for name, placed_op in placed.items()},
            {name: placed_op.blocks for name, placed_op in placed.items()},
            frozenset(placement.detours),
        )
        _enlarge_pipeline(placement, memory, pipeline)


def _enlarge_pipeline(placement: Placement, memory: Memory, pipeline: Pipeline) -> None:
    """Enlarge the operand buffers of the ops of one graph."""
    refused: set[Edge] = set()
    for _ in range(_ROUNDS):
        shortages = [lack for lack in find_shortages(pipeline) if lack.edge not in refused]
        for lack in shortages:
            if not _enlarge_in_l1(placement, pipeline, lack):
                refused.add(lack.edge)
                if lack.hangs:
                    _detour_by_queue(placement, memory, pipeline, lack.edge)
        if not shortages:
            break


def _enlarge_in_l1(placement: Placement, pipeline: Pipeline, lack: Shortage) -> bool:
    """Enlarge an operand buffer of the reader, if its cores have the bytes, and return whether they have."""
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
    """Replace an operand of the reader, whose op may be shared with other placements."""
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
