"""Fusion of element-wise ops that follow each other, and of ops that write cache slots; with the readers of all
tensors, which the other fusions also use.
"""

from collections.abc import Collection, Container, Mapping
from dataclasses import replace
from itertools import chain
from typing import Final, Unpack

from buda_emu.compiler.lower.schedule import Part, schedule_parts
from buda_emu.compiler.lower.tiles import SubOp, TileAttributes, TileGraph, TileOp, Use
from buda_emu.compiler.place.blocks import has_grid
from buda_emu.compiler.target import Target
from buda_emu.spec.ops import OP_TYPES


def depths_of(tiles: TileGraph, uncounted: Container[str] = ()) -> dict[str, int]:
    """Return for each op, by name, the number of ops in the longest chain that ends with it, not counting the ops in
    `uncounted`."""
    depths: dict[str, int] = {}
    for op in tiles.ops.values():
        before = max((depths.get(use.source, 0) for use in op.uses), default=0)
        depths[op.name] = before + (op.name not in uncounted)
    return depths


class Readers:
    """The readers of every tensor of a graph, updated while ops are fused."""

    def __init__(self, tiles: TileGraph) -> None:
        self.tiles = tiles
        self._of: dict[str, list[tuple[str, int]]] = {}
        for op in tiles.ops.values():
            self._add(op)

    def of(self, name: str) -> list[tuple[str, int]]:
        """Return the name of the op and the number of the operand for each time that a tensor is read; [] if nothing
        reads it."""
        return self._of.get(name, [])

    def only_source(self, op: TileOp, operand: int) -> TileOp | None:
        """Return the op of the same program that computes an operand, if it has no other reader and no TM lies
        between."""
        use = op.uses[operand]
        source = self.tiles.ops.get(use.source)
        if source is None or source.program != op.program or use.tms or self.of(use.source) != [(op.name, operand)]:
            return None
        return source

    def join(self, first: TileOp, last: TileOp, uses: list[Use], **attrs: Unpack[TileAttributes]) -> TileOp:
        """Put `first`, with other operands (`uses`) and more attributes, in the place and under the name of `last`, its
        only reader, and return it."""
        joined = replace(
            first,
            name=last.name,
            uses=uses,
            attrs={**first.attrs, **attrs},
            source=last.source,
            made_of=(*first.sources, *last.sources),
            mixes_padding=last.mixes_padding,
        )
        self.put([first, last], joined)
        return joined

    def put(self, replaced: list[TileOp], replacement: TileOp) -> None:
        """Replace several ops by one, which has the name and the place of the last of them."""
        for op in replaced:
            if op.name != replacement.name:
                self.drop(op)
            else:
                self._drop(op)
        self.tiles.ops[replacement.name] = replacement
        self._add(replacement)

    def insert(self, new_op: TileOp, before: TileOp) -> None:
        """Insert a new op in front of the op `before`."""
        ops = self.tiles.ops
        later = list(ops)[list(ops).index(before.name) :]
        ops[new_op.name] = new_op
        for name in later:
            ops[name] = ops.pop(name)
        self._add(new_op)

    def drop(self, op: TileOp) -> None:
        """Remove an op that has no reader."""
        self._drop(op)
        del self.tiles.ops[op.name]

    def _add(self, op: TileOp) -> None:
        """Enter an op as a reader of its operands."""
        for number, use in enumerate(op.uses):
            self._of.setdefault(use.source, []).append((op.name, number))

    def _drop(self, op: TileOp) -> None:
        """Remove an op from the readers of its operands."""
        for number, use in enumerate(op.uses):
            self._of[use.source].remove((op.name, number))


_FAMILIES: Final = ("binary", "unary", "sfpu")
MOST: Final = 128
"""Largest number of sub-ops in a fused op. A longer chain becomes several ops, which several cores compute at a
time."""


def fuse_chains(tiles: TileGraph, target: Target) -> TileGraph:
    """Fuse chains of element-wise ops in the graph itself, and return it: `d = subtract(x, m); y = multiply(d, s)`
    becomes one op of type fused_op with both as sub-ops, if d has no other reader. An op that writes a state does not
    run in slices, so it stays in parts if no grid has room for the whole."""
    readers = Readers(tiles)
    stored = {store.op: tiles.states[store.queue].df for store in tiles.stores.values()}
    for root in reversed(list(tiles.ops.values())):
        if root.name not in tiles.ops or not is_elementwise(root):
            continue
        group = _grow_group(readers, root, target)
        if group is None:
            continue
        members, steps, uses = group
        parts = [op for op in tiles.ops.values() if op.name in members]
        sources = tuple(chain.from_iterable(op.sources for op in parts))
        fused = replace(root, type="fused_op", uses=uses, attrs={}, steps=steps, made_of=sources)
        precision = replace(fused.precision, df=stored.get(fused.name, ""))
        if fused.name not in stored or has_grid(target, replace(fused, precision=precision)):
            readers.put(parts, fused)
    return tiles


def is_elementwise(op: TileOp) -> bool:
    """Return whether an op may be a sub-op: no operand is transposed on the way (V055), the host does not read it, and
    it adds up no gradients."""
    if OP_TYPES[op.type].family not in _FAMILIES or op.attrs.get("untilize") or op.attrs.get("gradient") or op.steps:
        return False
    return all(("transpose",) not in use.tms for use in op.uses)


Group = tuple[dict[str, TileOp], tuple[SubOp, ...], list[Use]]


def _grow_group(readers: Readers, root: TileOp, target: Target) -> Group | None:
    """Return the root and the ops in front of it that only the group reads, as many as buffers suffice for, with the
    sub-ops and operands of the fused op; None if no op can join the root. Only the root's result leaves the group, so
    no path leads out of it and back in."""
    members = {root.name: root}
    best: Group | None = None
    refused: set[str] = set()
    while len(members) < MOST:
        candidate = _next_candidate(readers, members, root, refused)
        if candidate is None:
            break
        extended = {**members, candidate.name: candidate}
        parts = {name: Part.of(op, extended) for name, op in extended.items()}
        schedule = schedule_parts(parts, root.name, target.arch.name)
        if schedule is None:
            refused.add(candidate.name)
            continue
        members = extended
        best = (extended, *schedule)
    return best


def _next_candidate(readers: Readers, members: dict[str, TileOp], root: TileOp, refused: set[str]) -> TileOp | None:
    """Return an op that a member reads and that may join the group, except one that was refused; None if there is
    none."""
    for member in members.values():
        for use in member.uses:
            op = readers.tiles.ops.get(use.source)
            if op is not None and op.name not in refused and _may_join(readers, members, root, op):
                return op
    return None


def _may_join(readers: Readers, members: Mapping[str, TileOp], root: TileOp, op: TileOp) -> bool:
    """Return whether an op may become a member of the root's group: element-wise, of the root's shape and program, and
    read by members alone, without TMs."""
    if op.name in members or op.has("ends a fused op") or not is_elementwise(op):
        return False
    if op.shape != root.shape or op.program != root.program:
        return False
    return all(name in members and not members[name].uses[place].tms for name, place in readers.of(op.name))


def fuse_stores(tiles: TileGraph) -> TileGraph:
    """Let ops write cache slots themselves, in the graph itself, and return it: `k = matmul(x, w); kept = nop(k)`, with
    `kept` stored in a slot, becomes `k`, stored. The cache must keep its old content until all its readers are done, so
    k is moved behind them; if they need k, the nop stays."""
    readers = Readers(tiles)
    for queue, store in list(tiles.stores.items()):
        op = tiles.ops[store.op]
        source = tiles.ops.get(op.uses[0].source)
        if tiles.states[queue].slots == 1 or source is None or not _only_copies(tiles, op, source):
            continue
        ordered = _move_behind(tiles.ops, source.name, {name for name, _ in readers.of(queue)})
        if ordered is not None:
            tiles.ops = ordered
            readers.drop(op)
            tiles.stores[queue] = replace(store, op=source.name)
    return tiles


def _only_copies(tiles: TileGraph, op: TileOp, source: TileOp) -> bool:
    """Return whether `op` is a nop that only copies the result of `source`, and `source` may write a ram itself."""
    free = source.may_be_cut and source.name not in tiles.shown
    plain = op.type == "nop" and not op.attrs and op.uses == [Use(source.name)]
    return free and plain and op.program == source.program and op.precision == source.precision


def _dependent_ops(ops: Mapping[str, TileOp], source: str) -> set[str]:
    """Return the names of `source` and of the ops that depend on it. The ops are in an order in which they can run."""
    dependent = {source}
    for name, op in ops.items():
        if any(use.source in dependent for use in op.uses):
            dependent.add(name)
    return dependent


def _move_behind(ops: Mapping[str, TileOp], source: str, before: Collection[str]) -> dict[str, TileOp] | None:
    """Return all ops in an order in which they can run, with `source` and what depends on it behind the ops `before`;
    None if these depend on it."""
    dependent = _dependent_ops(ops, source)
    if not dependent.isdisjoint(before):
        return None
    last = max((number for number, name in enumerate(ops) if name in before), default=-1)
    late = {name for number, name in enumerate(ops) if number <= last and name in dependent}
    behind = {name: float(last) + 0.5 if name in late else float(number) for number, name in enumerate(ops)}
    return {name: ops[name] for name in sorted(ops, key=behind.__getitem__)}
