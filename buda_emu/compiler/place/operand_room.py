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
from buda_emu.compiler.place.placement import Placed, Placement
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

    def wanted(self, edge: Edge, given: Slices) -> Slices:
        """Return the slices of the source that the reader has taken when it has produced so many of its own."""
        return wanted(self.ops[edge.reader], edge.operand, self.ops[edge.source].shape, given)

    def ahead(self, edge: Edge, given: Slices) -> Slices:
        """Return the slices that the source may have produced when the reader has produced so many: those that the
        reader has taken, those in the source's buffer, and those in the reader's operand buffer beyond the usual."""
        room = self.blocks[edge.source].buf_size_mb + self.extra.get(edge, 0)
        return np.minimum(self.wanted(edge, given) + room, self.slices(edge.source))


def wanted(op: TileOp, operand: int, source: Shape, given: Slices) -> Slices:
    """Return the slices of an operand's source that go into the first slices of the op's result."""
    if op.attrs.get("identity") or op.has("row-wise index"):
        return np.where(given > 0, source[0], 0)  # a picker takes rows from anywhere
    if op.has("takes turns"):  # a slice of each operand
        return np.minimum(-(-given // len(op.uses)), source[0])
    count = given * op.attrs["z"] if op.has("reduces") and op.attrs["dim"] == "z" else given
    return np.minimum(before(op.uses[operand], count), source[0])


def before(use: Use, count: Slices) -> Slices:
    """Return the slices in front of the TMs that make so many slices behind them."""
    for tm in reversed(use.tms):
        if tm[0] in ("hslice", "vslice"):
            count = -(-count // int(tm[-1]))
        elif tm[0] in ("hstack", "vstack"):
            count = count * int(tm[-1])
    return count


@dataclass(frozen=True, slots=True)
class Lack:
    """An operand whose buffer must hold so many more slices. If `hangs` is set the epoch would otherwise deadlock, and
    not only be slow."""

    edge: Edge
    slices: int
    hangs: bool


def lacks(pipeline: Pipeline) -> Iterator[Lack]:
    """Yield the operands of joins whose buffers are too small, each once, the first joins first. The caller must
    enlarge each buffer (`pipeline.extra`) before it asks for the next."""
    readers: dict[str, list[Edge]] = {name: [] for name in pipeline.ops}
    for name in pipeline.ops:
        for edge in pipeline.edges(name):
            readers[edge.source].append(edge)
    for fork in pipeline.ops:
        usual = pipeline.blocks[fork].buf_size_mb
        if len(readers[fork]) > 1 and pipeline.slices(fork) > usual:
            yield from _of_fork(pipeline, fork)


def _of_fork(pipeline: Pipeline, fork: str) -> Iterator[Lack]:
    # Slices of the fork that each op after it needs for its first 1, 2, ... slices, and how many ops lie between.
    """Yield the operands with too small buffers at the joins of branches that begin at one op."""
    needed: dict[str, Slices] = {fork: np.arange(pipeline.slices(fork) + 1)}
    depth: dict[str, int] = {fork: 0}
    for name in pipeline.ops:
        mine = [edge for edge in pipeline.edges(name) if edge.source in needed]
        if not mine or name == fork:
            continue
        given = np.arange(pipeline.slices(name) + 1)
        ways = [needed[edge.source][pipeline.wanted(edge, given)] for edge in mine]
        needed[name] = np.max(ways, axis=0)
        depth[name] = 1 + max(depth[edge.source] for edge in mine)
        if len(mine) > 1:
            lack = _at_join(pipeline, fork, name, mine, ways, depth)
            if lack is not None:
                yield lack


def _at_join(
    pipeline: Pipeline, fork: str, join: str, edges: list[Edge], ways: list[Slices], depth: dict[str, int]
) -> Lack | None:
    """Return the operand of a join that holds the fork back most, and the slices that it lacks; None where all have
    room."""
    count = np.arange(pipeline.slices(join))
    longest = np.max(ways, axis=0)[1:]
    deepest = max(depth[edge.source] for edge in edges)
    for slack in (deepest - min(depth[edge.source] for edge in edges), 0):
        for edge in edges:
            allowed = _allowed(pipeline, fork, edge, count)
            wish = np.minimum(longest + slack * (depth[edge.source] < deepest), pipeline.slices(fork))
            missing = int((wish - allowed).max())
            if missing > 0:
                hangs = bool((longest > allowed).any())
                source = pipeline.slices(edge.source)
                share = -(-missing * source // pipeline.slices(fork))
                return Lack(edge, min(max(share, 1), source), hangs)
    return None


def _allowed(pipeline: Pipeline, fork: str, edge: Edge, given: Slices) -> Slices:
    """Return the slices that the fork may have produced when the join has produced so many, over all paths through one
    operand."""
    limit: dict[str, Slices] = {edge.source: pipeline.ahead(edge, given)}
    for name in reversed(pipeline.ops):
        if name == fork:
            break
        if name in limit:
            for before_it in pipeline.edges(name):
                found = pipeline.ahead(before_it, limit[name])
                known = limit.get(before_it.source)
                limit[before_it.source] = found if known is None else np.minimum(known, found)
    return limit.get(fork, np.full(given.shape, pipeline.slices(fork)))


_ROUNDS = 4
"""Number of passes over all joins, since enlarging one buffer may make another one too small."""


def give_room(placement: Placement) -> None:
    """Enlarge the operand buffers of every graph as far as short branches need it. Where L1 is full, an operand that
    would hang goes through DRAM, and one that would only wait stays as it is."""
    memory = Memory.of(placement)
    for graph in placement.graphs():
        placed = {name: item for name, item in placement.ops.items() if item.graph == graph}
        pipeline = Pipeline(
            {name: item.op for name, item in placed.items()},
            {name: item.blocks for name, item in placed.items()},
            frozenset(placement.detours),
        )
        refused: set[Edge] = set()
        for _ in range(_ROUNDS):
            found = [lack for lack in lacks(pipeline) if lack.edge not in refused]
            for lack in found:
                if not _in_l1(placement, pipeline, lack):
                    refused.add(lack.edge)
                    if lack.hangs:
                        _by_queue(placement, memory, pipeline, lack.edge)
            if not found:
                break


def _in_l1(placement: Placement, pipeline: Pipeline, lack: Lack) -> bool:
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
    others = sum(item.buffer for number, item in enumerate(op.uses) if number != edge.operand)
    held = held_bytes(placement, placement.ops[edge.reader])
    if buffer_bytes(target, op, blocks, held=held) + (others + slices * slice_tiles) * tile > target.buffer_room:
        return False
    pipeline.extra[edge] = slices
    _use(placement, pipeline, edge, replace(use, buffer=slices * slice_tiles))
    return True


def _use(placement: Placement, pipeline: Pipeline, edge: Edge, use: Use) -> None:
    """Replace an operand of the reader, whose op may be shared with other placements."""
    for ops in (placement.tiles.ops, pipeline.ops):
        uses = list(ops[edge.reader].uses)
        uses[edge.operand] = use
        ops[edge.reader] = replace(ops[edge.reader], uses=uses)
    placement.ops[edge.reader] = replace(placement.ops[edge.reader], op=pipeline.ops[edge.reader])


def _by_queue(placement: Placement, memory: Memory, pipeline: Pipeline, edge: Edge) -> None:
    """Let the reader take the operand out of a queue in DRAM, which has room for all of an input."""
    reader = pipeline.ops[edge.reader]
    name = f"fork_{edge.source}_{edge.operand}_{edge.reader}"
    placement.queues[name] = fork_queue(placement, name, edge.source, placement.ops[edge.source].chip)
    memory.add(placement, {name: {}})
    _use(placement, pipeline, edge, Use(name, reader.uses[edge.operand].tms))


def prefetch(found: Placement, epoch: int | None = None) -> None:
    """Enlarge operand buffers so that ops read all of what they need out of DRAM for a single input before they begin,
    and not in parts while they work (`input_buf_min_size_tiles`).

    The smallest operands of an op come first, as far as L1 goes. Where L1 is full, the output buffer has room for this
    input alone. With `epoch`, only the ops of that epoch change."""
    if not found.waits_for_one:
        return
    for name, placed in found.ops.items():
        if epoch not in (None, placed.epoch) or parts_of_blocks(placed.blocks.t, placed.blocks.mblock) <= INPUT_BUFFERS:
            continue
        made = _with_room(found, placed)
        if made is not placed:
            found.ops[name] = made
            found.tiles.ops[name] = replace(found.tiles.ops[name], uses=made.op.uses)


def _with_room(found: Placement, placed: Placed) -> Placed:
    """Return the op with larger buffers for the operands that come out of DRAM, as far as L1 goes."""
    op = placed.op
    target = found.target.of(placed.op.precision)
    tile = size_of_tile(target.activation_df, target.arch.alignment)
    uses = list(op.uses)
    wanted = {
        number: tiles_read(found.tiles, op, placed.blocks, number)
        for number, use in enumerate(uses)
        if use.source not in placed.held and _is_read(found, placed, use.source)
    }
    blocks = placed.blocks
    held = held_bytes(found, placed)
    free = target.buffer_room - buffer_bytes(target, op, blocks, held=held)
    if sum(wanted.values()) * tile > free and blocks.buf_size_mb > 2 * blocks.t:
        blocks = replace(blocks, buf_size_mb=2 * blocks.t)
        free = target.buffer_room - buffer_bytes(target, op, blocks, held=held)
    for number, tiles in sorted(wanted.items(), key=lambda item: item[::-1]):
        if tiles * tile <= free:
            free -= tiles * tile
            uses[number] = replace(uses[number], buffer=max(uses[number].buffer, tiles))
    return placed if uses == op.uses else replace(placed, op=replace(op, uses=uses), blocks=blocks)


def _is_read(found: Placement, placed: Placed, source: str) -> bool:
    """Return whether an operand comes out of DRAM."""
    maker = found.ops.get(source)
    return maker is None or maker.epoch != placed.epoch or (placed.op.name, source) in found.detours
