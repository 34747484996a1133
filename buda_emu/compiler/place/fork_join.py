"""Buffer space for a short branch parallel to a long one, so that a chip neither hangs nor waits (FRONTEND 5,
fork-join).

An op that two others read keeps a slice of t in its buffer until both have it. Where the branches meet again, the op
there takes from both in step. If the long branch wants more slices before it gives its first (a maximum over z, a
picker, slices put side by side) than the buffers of the short branch hold, nobody moves: the fork waits for the short
branch, that for the join, the join for the long branch, and the long branch for the fork.

What is counted are slices of t, as cores pass them on in whole blocks. Lack is met with a larger operand buffer of the
join (`input_buf_min_size_tiles`), and where L1 has no room for that, with a queue in DRAM on the short branch: it holds
a whole input, takes no core, and so is never too small. Copies on further cores, which the vendor's compiler tries in
between, are not made. A tensor whose slices all fit the fork's own buffer needs nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from buda_emu.compiler.lower.tiles import Shape, TileOp, Use
from buda_emu.compiler.place.blocks import Blocks

Slices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Edge:
    """Operand number `operand` of the op `reader`, made by the op `source` of the same epoch."""

    source: str
    reader: str
    operand: int


@dataclass(slots=True)
class Pipeline:
    """The ops of one epoch in order, how each is divided, and the slices that operands hold beside the usual."""

    ops: dict[str, TileOp]
    blocks: dict[str, Blocks]
    by_dram: frozenset[tuple[str, str]] = frozenset()
    """(reader, source) of operands that take the way by DRAM already."""
    extra: dict[Edge, int] = field(default_factory=dict["Edge", int])

    def edges(self, reader: str) -> Iterator[Edge]:
        """From ops of this epoch."""
        for number, use in enumerate(self.ops[reader].uses):
            if use.source in self.ops and (reader, use.source) not in self.by_dram:
                yield Edge(use.source, reader, number)

    def slices(self, name: str) -> int:
        """Of its result."""
        return self.ops[name].shape[0]

    def wanted(self, edge: Edge, given: Slices) -> Slices:
        """Slices of the source that the reader has taken when it has given so many."""
        return wanted(self.ops[edge.reader], edge.operand, self.ops[edge.source].shape, given)

    def ahead(self, edge: Edge, given: Slices) -> Slices:
        """Slices that the source may have given when the reader has given so many: what that has taken, what stands in
        the source's buffer, and in the reader's operand buffer beyond the usual."""
        room = self.blocks[edge.source].buf_size_mb + self.extra.get(edge, 0)
        return np.minimum(self.wanted(edge, given) + room, self.slices(edge.source))


def wanted(op: TileOp, operand: int, source: Shape, given: Slices) -> Slices:
    """Slices of an operand's source that go into the first `given` of the op's result."""
    if op.attrs.get("identity") or op.has("row-wise index"):
        return np.where(given > 0, source[0], 0)  # a picker takes rows from anywhere
    if op.has("takes turns"):  # a slice of each operand
        return np.minimum(-(-given // len(op.uses)), source[0])
    count = given * op.attrs["z"] if op.has("reduces") and op.attrs["dim"] == "z" else given
    return np.minimum(before(op.uses[operand], count), source[0])


def before(use: Use, count: Slices) -> Slices:
    """Slices in front of the TMs for so many after them."""
    for tm in reversed(use.tms):
        if tm[0] in ("hslice", "vslice"):
            count = -(-count // int(tm[-1]))
        elif tm[0] in ("hstack", "vstack"):
            count = count * int(tm[-1])
    return count


@dataclass(frozen=True, slots=True)
class Lack:
    """An operand that must hold so many more slices; `hangs`: else nobody moves, not just slowly."""

    edge: Edge
    slices: int
    hangs: bool


def lacks(pipeline: Pipeline) -> Iterator[Lack]:
    """Operands of joins whose buffers are too small, each once, the first joins first. What is found must have been
    given room (`pipeline.extra`) before the next is asked for."""
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
    """The operand by which the fork is held back most, and what it lacks."""
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
    """Slices that the fork may have given when the join has given so many, by all ways through one operand."""
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
