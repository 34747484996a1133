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
    """Change blocks and buffers of ops, and record which operands go through DRAM (`Placement.detours`), for one epoch
    or for all."""
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
    """Return the blocks, with an output buffer of more inputs than the epoch takes at once cut down to a multiple of
    these."""
    blocks = placed.blocks
    inputs = placement.count(placed.op.program)
    held = buffered_slices(blocks) // blocks.t
    if held <= inputs:
        return blocks
    return replace(blocks, buf_size_mb=2 * blocks.t * (held - held % inputs))


@dataclass(frozen=True, slots=True)
class Edge:
    """Operand number `operand` of an op, which another op of the same epoch makes."""

    source: str
    reader: str
    operand: int


@dataclass(frozen=True, slots=True)
class Routing:
    """The ops of a placement that read each other in their epoch.

    `edges` are listed by the op that makes the operand; `fills` counts the queues that each op fills for other epochs,
    the host or a state."""

    placement: Placement
    edges: dict[str, list[Edge]]
    fills: dict[str, int]

    @staticmethod
    def of(placement: Placement) -> "Routing":
        """Collect the edges of all ops of a placement."""
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
        """Return why the slices of an operand cannot be stacked on their way (hstack, vstack), "" if they can or if
        the operand has no such TM. Blocks of the producer or the reader that are passed stand for its present
        ones."""
        producer = self.placement.ops[edge.source]
        reader = self.placement.ops[edge.reader]
        use = reader.op.uses[edge.operand]
        if not any(tm[0] in ("hstack", "vstack") for tm in use.tms):
            return ""
        held = buffered_slices(producer_blocks or producer.blocks)
        reader_view = view(reader.op, reader_blocks or reader.blocks, edge.operand)
        return stack_problem(producer.op.shape, held, use.tms, reader_view)

    def stack_otherwise(self, edge: Edge) -> None:
        """Give the producer another buffer or the reader other ublocks, or else send the operand through DRAM."""
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
        """Return the operands of an op that other ops of its epoch make."""
        operands: list[Edge] = []
        for use in reader.op.uses:
            operands += [edge for edge in self.edges.get(use.source, ()) if edge.reader == reader.op.name]
        return operands

    # -------------------------------------------------------------------------------------------------------- streams
    def share_streams(self, source: str) -> None:
        """Send readers of an op through DRAM, those with the most pipes first, until its cores have streams for the
        others."""
        placement = self.placement
        direct = self._pipes(source, {})
        room = self._room(placement.ops[source])
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
        """Return whether an op's cores have streams for its readers in the epoch if the ops in `changed` were divided
        so; a reader with a detour for its stack counts as the queue."""
        direct = self._pipes(source, changed, only_detours="stack")
        by_dram = any(name == source and detour.kind == "stack" for (_, name), detour in self.placement.detours.items())
        pipe_count = 0
        if direct:
            pipe_count = int(np.sum(list(direct.values()), axis=0).max())
        return pipe_count + self.fills.get(source, 0) + by_dram <= self._room(
            changed.get(source, self.placement.ops[source])
        )

    def _room(self, producer: PlacedOp) -> int:
        """Return the streams of a core that are left for its readers."""
        operand_streams = streams_of_operands(self.placement.tiles, producer.op, producer.blocks, producer.held)
        return len(EXTRA_STREAMS) + 1 - operand_streams

    def _pipes(self, source: str, changed: Mapping[str, PlacedOp], only_detours: str = "") -> dict[str, Pipes]:
        """Return the pipes of each reader that takes an op's result from its cores, if the ops in `changed` were
        divided differently. Readers with a detour through DRAM do not count; `only_detours`: leave out only readers
        with this kind of detour, such as "stack"."""
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
    """Yield an op's blocks with an output buffer for each number of slices that divides t (V080), the largest that fits
    in L1 first; nothing where the buffer holds a single mblock."""
    target = placement.target.of(placed.op.precision)
    if placed.blocks.buf_size_mb == 1:
        return
    t = placed.blocks.t
    for slices in reversed(divisors(t)):
        blocks = replace(placed.blocks, buf_size_mb=2 * slices)
        if buffer_bytes(target, placed.op, blocks, held=held_bytes(placement, placed)) <= target.buffer_room:
            yield blocks


def _other_ublocks(placement: Placement, placed: PlacedOp) -> Iterator[Blocks]:
    """Yield the same block cut into other ublocks, and for a product into other inner blocks, the largest first;
    nothing for an op whose ublocks depend on more than itself."""
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
    """Return the bytes of the constants that one core holds, without those of a picker, which `buffer_bytes` counts."""
    op = placed.op
    target = placement.target.of(placed.op.precision)
    held = placed.held - picker_operands(op)
    tiles = sum(
        tiles_read(placement.tiles, op, placed.blocks, number)
        for number, use in enumerate(op.uses)
        if use.source in held
    )
    return tiles * size_of_tile(target.activation_df, target.arch.alignment)
