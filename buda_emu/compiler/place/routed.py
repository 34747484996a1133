"""Changes a placement so that the router accepts it: an edge that it could not route (`routable.py`) gets other blocks,
or goes through DRAM.

Where a stack of slices has pieces that do not fall on the reader's blocks, the producer gets a buffer of another number
of slices, or the reader gets other ublocks; sizes are tried from the largest down. Where neither is possible, and where
a core has too few streams for all readers of its result, readers take it from a queue in DRAM, which each core fills
once."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import prod

import numpy as np

from buda_emu.compiler.lower.tiles import divisors
from buda_emu.compiler.place.blocks import Blocks, buffer_bytes, size_of_tile
from buda_emu.compiler.place.candidates import picker_operands
from buda_emu.compiler.place.cost import tiles_read
from buda_emu.compiler.place.placement import Detour, PlacedOp, Placement
from buda_emu.compiler.place.routable import (
    Pipes,
    buffered_slices,
    pipes,
    stack_problem,
    streams_of_operands,
    view,
)
from buda_emu.spec.archs import EXTRA_STREAMS


def make_routable(placement: Placement, epoch: int | None = None) -> None:
    """Change the ops of a placement so that the router accepts the edges between them: other output buffers, other
    ublocks, or else a way through DRAM (recorded in `Placement.detours`). With `epoch`, only the ops of that epoch
    change; None means all."""
    names = [name for name, placed in placement.ops.items() if epoch in (None, placed.epoch)]
    for name in names:
        placed = placement.ops[name]
        placement.ops[name] = replace(placed, blocks=_hold_whole_rounds(placement, placed))
    routing = Routing.of(placement)
    sources = [name for name in routing.edges if epoch in (None, placement.ops[name].epoch)]
    for source in sources:
        for edge in routing.edges[source]:
            if routing.problem(edge):
                routing.stack_otherwise(edge)
    for source in sources:
        routing.share_streams(source)


def _hold_whole_rounds(placement: Placement, placed: PlacedOp) -> Blocks:
    """Return the op's blocks, with the output buffer cut down to a multiple of the inputs of a round if it holds more
    inputs than these."""
    blocks = placed.blocks
    inputs = placement.count(placed.op.program)
    held = buffered_slices(blocks) // blocks.t
    if held <= inputs:
        return blocks
    return replace(blocks, buf_size_mb=2 * blocks.t * (held - held % inputs))


@dataclass(frozen=True, slots=True)
class Edge:
    """An operand that another op of the same epoch makes: operand number `operand` of the op `reader`, from the op
    `source`."""

    source: str
    reader: str
    operand: int


@dataclass(frozen=True, slots=True)
class Routing:
    """The edges between the ops of a placement that run in the same epoch.

    `edges` has them by source; `fills` counts the queues that each op fills for other epochs, the host or a state."""

    placement: Placement
    edges: dict[str, list[Edge]]
    fills: dict[str, int]

    @staticmethod
    def of(placement: Placement) -> "Routing":
        """Collect the edges of all ops of a placement, and count the queues that they fill."""
        edges: dict[str, list[Edge]] = {}
        later: set[str] = set()
        for reader in placement.ops.values():
            for number, use in enumerate(reader.op.uses):
                producer = placement.ops.get(use.source)
                if producer is None:
                    continue
                if producer.epoch != reader.epoch:
                    later.add(use.source)
                    continue
                edges.setdefault(use.source, []).append(Edge(use.source, reader.op.name, number))
        fills = dict.fromkeys(later, 1)
        for name in (
            *(output.op for output in placement.tiles.outputs.values()),
            *(s.op for s in placement.tiles.stores.values()),
        ):
            fills[name] = fills.get(name, 0) + 1
        return Routing(placement, edges, fills)

    # --------------------------------------------------------------------------------------------------------- stacks
    def problem(self, edge: Edge, *, producer_blocks: Blocks | None = None, reader_blocks: Blocks | None = None) -> str:
        """Return why the router cannot stack the slices of an operand (hstack, vstack), "" if it can or if the operand
        has no such TM. `producer_blocks` and `reader_blocks` are divisions to try instead of the present ones of the
        edge's source and reader."""
        producer = self.placement.ops[edge.source]
        reader = self.placement.ops[edge.reader]
        use = reader.op.uses[edge.operand]
        if not any(tm[0] in ("hstack", "vstack") for tm in use.tms):
            return ""
        held = buffered_slices(producer_blocks or producer.blocks)
        reader_view = view(reader.op, reader_blocks or reader.blocks, edge.operand)
        return stack_problem(producer.op.shape, held, use.tms, reader_view)

    def stack_otherwise(self, edge: Edge) -> None:
        """Change the placement so that the router can stack an operand's slices: give the source another output buffer
        that makes no other edge of it worse, or the reader other ublocks, or else record a detour of the operand
        through DRAM."""
        placement = self.placement
        beside = self.edges[edge.source]
        producer = placement.ops[edge.source]
        reader = placement.ops[edge.reader]
        for blocks in _output_buffer_sizes(placement, producer):
            worse = any(
                self.problem(other_edge, producer_blocks=blocks) and not self.problem(other_edge)
                for other_edge in beside
            )
            if not worse and not self.problem(edge, producer_blocks=blocks):
                placement.ops[edge.source] = replace(producer, blocks=blocks)
                return
        operands = self._operands(reader)
        for blocks in _other_ublocks(placement, reader):
            if not any(self.problem(other_edge, reader_blocks=blocks) for other_edge in operands):
                placement.ops[edge.reader] = replace(reader, blocks=blocks)
                return
        placement.detours[edge.reader, edge.source] = Detour("stack", self.problem(edge))

    def _operands(self, reader: PlacedOp) -> list[Edge]:
        """Return the edges that lead to an op: those of its operands that other ops of its epoch make."""
        operands: list[Edge] = []
        for use in reader.op.uses:
            operands += [edge for edge in self.edges.get(use.source, ()) if edge.reader == reader.op.name]
        return operands

    # -------------------------------------------------------------------------------------------------------- streams
    def share_streams(self, source: str) -> None:
        """Record detours through DRAM for readers of the op `source`, those with the most pipes first, until its cores
        have enough streams for the others."""
        placement = self.placement
        direct = self._direct_pipes(source, {})
        room = self._streams_for_readers(placement.ops[source])
        while direct:
            by_dram = {placement.ops[reader].chip for reader, name in placement.detours if name == source}
            pipe_count = int(np.sum(list(direct.values()), axis=0).max()) + self.fills.get(source, 0) + len(by_dram)
            if pipe_count <= room:
                return
            reader = max(direct, key=lambda name: int(direct[name].max()))
            del direct[reader]
            why = f"{pipe_count} pipes from one core, which has streams for {room}"
            placement.detours[reader, source] = Detour("streams", why)

    def would_connect(self, source: str, changed: Mapping[str, PlacedOp]) -> bool:
        """Return whether the cores of the op `source` have streams for all its readers in the epoch if the ops in
        `changed` (by name) were divided as they are there. Readers with a detour because of a stack count together as
        one queue; those with a detour because of streams count as if they read directly."""
        direct = self._direct_pipes(source, changed, only_detours="stack")
        by_dram = any(name == source and detour.kind == "stack" for (_, name), detour in self.placement.detours.items())
        pipe_count = 0
        if direct:
            pipe_count = int(np.sum(list(direct.values()), axis=0).max())
        return pipe_count + self.fills.get(source, 0) + by_dram <= self._streams_for_readers(
            changed.get(source, self.placement.ops[source])
        )

    def _streams_for_readers(self, producer: PlacedOp) -> int:
        """Return how many streams of one core of `producer` are left for the readers of its result."""
        operand_streams = streams_of_operands(self.placement.tiles, producer.op, producer.blocks, producer.held)
        return len(EXTRA_STREAMS) + 1 - operand_streams

    def _direct_pipes(self, source: str, changed: Mapping[str, PlacedOp], only_detours: str = "") -> dict[str, Pipes]:
        """Return by reader the pipes from each core of the op `source`, if the ops in `changed` (by name) were divided
        as they are there. Readers with a detour through DRAM are left out; with `only_detours`, such as "stack", only
        those with a detour of this kind."""
        producer = changed.get(source, self.placement.ops[source])
        direct = dict[str, Pipes]()
        for edge in self.edges[source]:
            reader = changed.get(edge.reader, self.placement.ops[edge.reader])
            detour = self.placement.detours.get((edge.reader, source))
            if detour is None or (only_detours and detour.kind != only_detours):
                reader_view = view(reader.op, reader.blocks, edge.operand)
                edge_pipes = pipes(producer.op, producer.blocks, reader.op.uses[edge.operand].tms, reader_view)
                direct[edge.reader] = direct.get(edge.reader, 0) + edge_pipes
        return direct


def _output_buffer_sizes(placement: Placement, placed: PlacedOp) -> Iterator[Blocks]:
    """Yield the op's blocks with output buffers of each number of slices of t that divides t (V080) and fits in L1, the
    largest first; nothing where the op has a single mblock in its buffer."""
    target = placement.target.of(placed.op.precision)
    if placed.blocks.buf_size_mb == 1:
        return
    t = placed.blocks.t
    for slices in reversed(divisors(t)):
        blocks = replace(placed.blocks, buf_size_mb=2 * slices)
        if buffer_bytes(target, placed.op, blocks, held=held_bytes(placement, placed)) <= target.buffer_room:
            yield blocks


def _other_ublocks(placement: Placement, placed: PlacedOp) -> Iterator[Blocks]:
    """Yield the op's blocks with the same tiles for each core but other ublocks, and for a product also other inner
    blocks, that fit dest and L1; the largest ublocks come first. Yields nothing for ops whose ublocks are bound to
    their operands: identity matmuls, embeddings, splices, depthwise products."""
    op = placed.op
    blocks = placed.blocks
    target = placement.target.of(placed.op.precision)
    if op.attrs.get("identity") or op.ublock is not None or op.type in ("embedding", "splice", "depthwise"):
        return
    height = blocks.mblock[0] * blocks.ublock[0]
    width = blocks.mblock[1] * blocks.ublock[1]
    ublocks = [ublock for ublock in product(divisors(height), divisors(width)) if prod(ublock) <= target.dest_tiles]
    inner = [(0, 0)]
    if blocks.u_kt:
        inner = [(u_kt, op.inner // u_kt) for u_kt in divisors(op.inner)]
    cuts = product(ublocks, inner)
    for (r, c), (u_kt, m_k) in sorted(cuts, key=lambda cut: (-prod(cut[0]), -cut[1][0], -cut[0][1])):
        recut = replace(blocks, mblock=(height // r, width // c), ublock=(r, c), u_kt=u_kt, m_k=m_k)
        if buffer_bytes(target, op, recut, held=held_bytes(placement, placed)) <= target.buffer_room:
            yield recut


def held_bytes(placement: Placement, placed: PlacedOp) -> int:
    """Return the bytes of the constants that one core of an op keeps in L1, without the tiles and words of an identity
    matmul, which `buffer_bytes` counts."""
    op = placed.op
    target = placement.target.of(placed.op.precision)
    held = placed.held - picker_operands(op)
    tiles = sum(
        tiles_read(placement.tiles, op, placed.blocks, number)
        for number, use in enumerate(op.uses)
        if use.source in held
    )
    return tiles * size_of_tile(target.activation_df, target.arch.alignment)
