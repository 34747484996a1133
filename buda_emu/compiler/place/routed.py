"""Changes a placement so that the router accepts it: an edge that it could not route (`routable.py`) gets other blocks,
or goes through DRAM.

A stack of slices whose pieces do not fall on the reader's blocks gets the producer a buffer that holds all that is
stacked together, or the reader other ublocks; where neither is possible, and where more cores read a result than its
own core has streams for, readers take it from a queue in DRAM, which each core fills once.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from buda_emu.compiler.lower.tiles import divisors
from buda_emu.compiler.place.blocks import Blocks, buffer_bytes, size_of_tile
from buda_emu.compiler.place.candidates import pickers
from buda_emu.compiler.place.cost import shape_behind, tiles_read
from buda_emu.compiler.place.placement import Detour, Placed, Placement
from buda_emu.compiler.place.routable import (
    Pipes,
    pipes,
    slices_held,
    stack_problem,
    streams_of_operands,
    view,
)
from buda_emu.spec.archs import EXTRA_STREAMS


def make_routable(found: Placement, epoch: int | None = None) -> None:
    """Changes blocks and buffers of ops, and says which operands take the way by DRAM (`Placement.detours`); of one
    epoch, or of all."""
    names = [name for name, placed in found.ops.items() if epoch in (None, placed.epoch)]
    for name in names:
        placed = found.ops[name]
        found.ops[name] = replace(placed, blocks=_within_round(found, placed))
    routing = Routing.of(found)
    sources = [name for name in routing.edges if epoch in (None, found.ops[name].epoch)]
    for source in sources:
        for edge in routing.edges[source]:
            if routing.problem(edge):
                routing.stack_otherwise(edge)
    for source in sources:
        routing.share_streams(source)


def _within_round(found: Placement, placed: Placed) -> Blocks:
    """A buffer that holds more inputs than a round has holds whole rounds: what it gives at a time divides it."""
    blocks = placed.blocks
    inputs = found.count(placed.op.program)
    held = slices_held(blocks) // blocks.t
    return replace(blocks, buf_size_mb=2 * blocks.t * (held - held % inputs)) if held > inputs else blocks


@dataclass(frozen=True, slots=True)
class Edge:
    """Operand number `operand` of an op, which another one of the same epoch makes."""

    source: str
    reader: str
    operand: int


@dataclass(frozen=True, slots=True)
class Routing:
    """Which ops of a placement read each other in their epoch. `edges` by the op that makes the operand; `fills`:
    queues that each op fills for other epochs, host or state."""

    found: Placement
    edges: dict[str, list[Edge]]
    fills: dict[str, int]

    @staticmethod
    def of(found: Placement) -> "Routing":
        """All ops of a placement."""
        edges: dict[str, list[Edge]] = {}
        later: set[str] = set()
        for reader in found.ops.values():
            for number, use in enumerate(reader.op.uses):
                producer = found.ops.get(use.source)
                if producer is None:
                    continue
                if producer.epoch != reader.epoch:
                    later.add(use.source)
                    continue
                edges.setdefault(use.source, []).append(Edge(use.source, reader.op.name, number))
        fills = dict.fromkeys(later, 1)
        for name in (*(item.op for item in found.tiles.outputs.values()), *(s.op for s in found.tiles.stores.values())):
            fills[name] = fills.get(name, 0) + 1
        return Routing(found, edges, fills)

    # --------------------------------------------------------------------------------------------------------- stacks
    def problem(self, edge: Edge, *, made: Blocks | None = None, read: Blocks | None = None) -> str:
        """What is wrong with a stack, with other blocks of the producer or the reader."""
        producer = self.found.ops[edge.source]
        reader = self.found.ops[edge.reader]
        use = reader.op.uses[edge.operand]
        if not any(tm[0] in ("hstack", "vstack") for tm in use.tms):
            return ""
        behind = shape_behind(self.found.tiles, use)
        held = slices_held(made or producer.blocks)
        own = view(reader.op, read or reader.blocks, edge.operand)
        return stack_problem(held, producer.op.shape[0], use.tms, behind, own)

    def stack_otherwise(self, edge: Edge) -> None:
        """Another buffer for the producer, other ublocks for the reader, or the way by DRAM."""
        found = self.found
        beside = self.edges[edge.source]
        producer = found.ops[edge.source]
        reader = found.ops[edge.reader]
        for blocks in _other_buffers(found, producer):
            worse = any(self.problem(item, made=blocks) and not self.problem(item) for item in beside)
            if not worse and not self.problem(edge, made=blocks):
                found.ops[edge.source] = replace(producer, blocks=blocks)
                return
        operands = [
            item for use in reader.op.uses for item in self.edges.get(use.source, ()) if item.reader == edge.reader
        ]
        for blocks in _other_ublocks(found, reader):
            if not any(self.problem(item, read=blocks) for item in operands):
                found.ops[edge.reader] = replace(reader, blocks=blocks)
                return
        found.detours[edge.reader, edge.source] = Detour("stack", self.problem(edge))

    # -------------------------------------------------------------------------------------------------------- streams
    def share_streams(self, source: str) -> None:
        """Readers of an op by DRAM, those with the most pipes first, until its cores have streams for the others."""
        found = self.found
        direct = self._pipes(source, {})
        room = self._room(found.ops[source])
        while direct:
            by_dram = {found.ops[reader].chip for reader, name in found.detours if name == source}
            most = int(np.sum(list(direct.values()), axis=0).max()) + self.fills.get(source, 0) + len(by_dram)
            if most <= room:
                return
            reader = max(direct, key=lambda name: int(direct[name].max()))
            del direct[reader]
            why = f"{most} pipes from one core, which has streams for {room}"
            found.detours[reader, source] = Detour("streams", why)

    def would_connect(self, source: str, changed: Mapping[str, Placed]) -> bool:
        """Whether the cores of an op would have streams for all readers of its epoch but those whose stacks go by DRAM,
        if some ops were divided in another way."""
        direct = self._pipes(source, changed, kind="stack")
        by_dram = any(name == source and way.kind == "stack" for (_, name), way in self.found.detours.items())
        most = int(np.sum(list(direct.values()), axis=0).max()) if direct else 0
        return most + self.fills.get(source, 0) + by_dram <= self._room(changed.get(source, self.found.ops[source]))

    def _room(self, producer: Placed) -> int:
        """Streams of a core for who reads it."""
        own = streams_of_operands(self.found.tiles, producer.op, producer.blocks, producer.held)
        return len(EXTRA_STREAMS) + 1 - own

    def _pipes(self, source: str, changed: Mapping[str, Placed], kind: str = "") -> dict[str, Pipes]:
        """Of each reader that takes an op's result from its cores, if some ops were divided in another way; with a
        `kind`, of all but those that take it by DRAM for that."""
        producer = changed.get(source, self.found.ops[source])
        direct = dict[str, Pipes]()
        for edge in self.edges[source]:
            reader = changed.get(edge.reader, self.found.ops[edge.reader])
            way = self.found.detours.get((edge.reader, source))
            if way is None or (kind and way.kind != kind):
                own = view(reader.op, reader.blocks, edge.operand)
                made = pipes(producer.op, producer.blocks, reader.op.uses[edge.operand].tms, own)
                direct[edge.reader] = direct.get(edge.reader, 0) + made
        return direct


def _other_buffers(found: Placement, placed: Placed) -> Iterator[Blocks]:
    """Of other numbers of slices (V080), the most first, as far as L1 goes."""
    target = found.target.of(placed.op.precision)
    if placed.blocks.buf_size_mb == 1:
        return
    t = placed.blocks.t
    for slices in reversed(divisors(t)):
        blocks = replace(placed.blocks, buf_size_mb=2 * slices)
        if buffer_bytes(target, placed.op, blocks, held=held_bytes(found, placed)) <= target.buffer_room:
            yield blocks


def _other_ublocks(found: Placement, placed: Placed) -> Iterator[Blocks]:
    """The same block cut into other ublocks, of a product's inner dimension, too; the largest first. None of an op
    whose ublocks are said by more than itself."""
    op = placed.op
    blocks = placed.blocks
    target = found.target.of(placed.op.precision)
    if op.attrs.get("identity") or op.ublock is not None or op.type in ("embedding", "splice", "depthwise"):
        return
    height = blocks.mblock[0] * blocks.ublock[0]
    width = blocks.mblock[1] * blocks.ublock[1]
    ublocks = [(r, c) for r in divisors(height) for c in divisors(width) if r * c <= target.dest_tiles]
    inner = divisors(op.inner) if blocks.u_kt else [0]
    cuts = [(ublock, u_kt) for ublock in ublocks for u_kt in inner]
    for (r, c), u_kt in sorted(cuts, key=lambda cut: (-prod(cut[0]), -cut[1], -cut[0][1])):
        made = replace(
            blocks, mblock=(height // r, width // c), ublock=(r, c), u_kt=u_kt, m_k=op.inner // u_kt if u_kt else 0
        )
        if buffer_bytes(target, op, made, held=held_bytes(found, placed)) <= target.buffer_room:
            yield made


def held_bytes(found: Placement, placed: Placed) -> int:
    """Of the constants that one core keeps; a picker's own count with the op."""
    op = placed.op
    target = found.target.of(placed.op.precision)
    kept = placed.held - pickers(op)
    tiles = sum(
        tiles_read(found.tiles, op, placed.blocks, number) for number, use in enumerate(op.uses) if use.source in kept
    )
    return tiles * size_of_tile(target.activation_df, target.arch.alignment)
