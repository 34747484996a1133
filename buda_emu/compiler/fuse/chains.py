"""Element-wise ops that follow each other become one fused op, and so do ops that write cache slots. Readers of
values, and the fusion of two consecutive ops.
"""

from collections.abc import Collection, Container, Mapping
from dataclasses import replace
from typing import Final, Unpack

from buda_emu.compiler.lower.schedule import Part, scheduled
from buda_emu.compiler.lower.tiles import SubOp, TileAttributes, TileGraph, TileOp, Use
from buda_emu.compiler.place.blocks import has_grid
from buda_emu.compiler.target import Target
from buda_emu.spec.ops import OP_TYPES


def depths_of(tiles: TileGraph, uncounted: Container[str] = ()) -> dict[str, int]:
    """Ops one after the other up to each, and it, without those that are not counted."""
    found: dict[str, int] = {}
    for op in tiles.ops.values():
        before = max((found.get(use.source, 0) for use in op.uses), default=0)
        found[op.name] = before + (op.name not in uncounted)
    return found


class Readers:
    """The readers of every tensor of a graph, kept up while ops are put together."""

    def __init__(self, tiles: TileGraph) -> None:
        self.tiles = tiles
        self._of: dict[str, list[tuple[str, int]]] = {}
        for op in tiles.ops.values():
            self._add(op)

    def of(self, name: str) -> list[tuple[str, int]]:
        """(op, operand) for each time that a tensor is read."""
        return self._of.get(name, [])

    def only_source(self, op: TileOp, operand: int) -> TileOp | None:
        """The op of the same program that makes an operand, if nobody else reads it and no TM stands on the way."""
        use = op.uses[operand]
        source = self.tiles.ops.get(use.source)
        if source is None or source.program != op.program or use.tms or self.of(use.source) != [(op.name, operand)]:
            return None
        return source

    def join(self, first: TileOp, last: TileOp, uses: list[Use], **attrs: Unpack[TileAttributes]) -> TileOp:
        """`first`, with these operands and more attributes, in the place and by the name of `last`, its only reader."""
        made = replace(
            first,
            name=last.name,
            uses=uses,
            attrs={**first.attrs, **attrs},
            source=last.source,
            made_of=(*first.sources, *last.sources),
            mixes_padding=last.mixes_padding,
        )
        self.put([first, last], made)
        return made

    def put(self, gone: list[TileOp], made: TileOp) -> None:
        """One op for several; it has the name of the last of them, and its place."""
        for op in gone:
            if op.name != made.name:
                self.drop(op)
            else:
                self._drop(op)
        self.tiles.ops[made.name] = made
        self._add(made)

    def insert(self, made: TileOp, before: TileOp) -> None:
        """A new op in front of another."""
        ops = self.tiles.ops
        later = list(ops)[list(ops).index(before.name) :]
        ops[made.name] = made
        for name in later:
            ops[name] = ops.pop(name)
        self._add(made)

    def drop(self, op: TileOp) -> None:
        """An op that nobody reads any more."""
        self._drop(op)
        del self.tiles.ops[op.name]

    def _add(self, op: TileOp) -> None:
        for number, use in enumerate(op.uses):
            self._of.setdefault(use.source, []).append((op.name, number))

    def _drop(self, op: TileOp) -> None:
        for number, use in enumerate(op.uses):
            self._of[use.source].remove((op.name, number))


_FAMILIES: Final = ("binary", "unary", "sfpu")
MOST: Final = 128
"""Sub-ops of one fused op: a longer chain becomes several, which several cores compute at a time."""


def fuse_chains(tiles: TileGraph, target: Target) -> TileGraph:
    """`d = subtract(x, m); y = multiply(d, s)` becomes one op of type fused_op with both as sub-ops, if nobody else
    reads d. What writes a state stays in parts where no grid has room for the whole: it does not run in slices."""
    readers = Readers(tiles)
    stored = {store.op: tiles.states[store.queue].df for store in tiles.stores.values()}
    for root in reversed(list(tiles.ops.values())):
        if root.name not in tiles.ops or not is_elementwise(root):
            continue
        found = _group(readers, root, target)
        if found is None:
            continue
        members, steps, uses = found
        parts = [op for op in tiles.ops.values() if op.name in members]
        sources = tuple(name for op in parts for name in op.sources)
        made = replace(root, type="fused_op", uses=uses, attrs={}, steps=steps, made_of=sources)
        precision = replace(made.precision, df=stored.get(made.name, ""))
        if made.name not in stored or has_grid(target, replace(made, precision=precision)):
            readers.put(parts, made)
    return tiles


def is_elementwise(op: TileOp) -> bool:
    """Whether it may be a sub-op: no operand may be transposed on the way (V055), the host reads no fused op, and
    none adds up gradients."""
    if OP_TYPES[op.type].family not in _FAMILIES or op.attrs.get("untilize") or op.attrs.get("gradient") or op.steps:
        return False
    return all(("transpose",) not in use.tms for use in op.uses)


Group = tuple[dict[str, TileOp], tuple[SubOp, ...], list[Use]]


def _group(readers: Readers, root: TileOp, target: Target) -> Group | None:
    """The root and what is before it that only the group itself reads, as far as there are buffers. So nothing leaves
    the group but by the root, and no way leads out of it and back."""
    members = {root.name: root}
    best: Group | None = None
    refused: set[str] = set()
    while len(members) < MOST:
        found = _next(readers, members, root, refused)
        if found is None:
            break
        more = {**members, found.name: found}
        parts = {name: Part.of(op, more) for name, op in more.items()}
        schedule = scheduled(parts, root.name, target.arch.name)
        if schedule is None:
            refused.add(found.name)
            continue
        members = more
        best = (more, *schedule)
    return best


def _next(readers: Readers, members: dict[str, TileOp], root: TileOp, refused: set[str]) -> TileOp | None:
    for member in members.values():
        for use in member.uses:
            op = readers.tiles.ops.get(use.source)
            if op is None or op.name in members or op.name in refused or op.has("ends a fused op"):
                continue
            if not is_elementwise(op) or op.shape != root.shape or op.program != root.program:
                continue
            if all(name in members and not members[name].uses[place].tms for name, place in readers.of(op.name)):
                return op
    return None


def fuse_stores(tiles: TileGraph) -> TileGraph:
    """`k = matmul(x, w); kept = nop(k)`, of which `kept` is stored in a slot, becomes `k`, stored. A cache has the old
    content until all that reads it is done: so k comes after that, and where that needs k the nop stays."""
    readers = Readers(tiles)
    for queue, store in list(tiles.stores.items()):
        op = tiles.ops[store.op]
        source = tiles.ops.get(op.uses[0].source)
        if tiles.states[queue].slots == 1 or source is None or not _only_copies(tiles, op, source):
            continue
        ordered = _behind(tiles.ops, source.name, {name for name, _ in readers.of(queue)})
        if ordered is not None:
            tiles.ops = ordered
            readers.drop(op)
            tiles.stores[queue] = replace(store, op=source.name)
    return tiles


def _only_copies(tiles: TileGraph, op: TileOp, source: TileOp) -> bool:
    """Whether the nop adds nothing to what an op makes that may write a ram."""
    free = source.may_be_cut and source.name not in tiles.shown
    plain = op.type == "nop" and not op.attrs and op.uses == [Use(source.name)]
    return free and plain and op.program == source.program and op.precision == source.precision


def _behind(ops: Mapping[str, TileOp], source: str, before: Collection[str]) -> dict[str, TileOp] | None:
    """The ops with one of them, and what depends on it, after some others; None if these depend on it."""
    hanging = {source}
    for name, op in ops.items():  # in an order in which they can run
        if any(use.source in hanging for use in op.uses):
            hanging.add(name)
    if not hanging.isdisjoint(before):
        return None
    last = max((number for number, name in enumerate(ops) if name in before), default=-1)
    late = {name for number, name in enumerate(ops) if number <= last and name in hanging}
    behind = {name: float(last) + 0.5 if name in late else float(number) for number, name in enumerate(ops)}
    return {name: ops[name] for name in sorted(ops, key=behind.__getitem__)}
