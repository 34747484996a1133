"""Element-wise ops that follow each other become one fused op (FRONTEND 3.3, OPS 8)."""

from dataclasses import replace
from typing import Final

from buda_emu.compiler.fuse.readers import Readers
from buda_emu.compiler.lower.schedule import Part, scheduled
from buda_emu.compiler.lower.tiles import SubOp, TileGraph, TileOp, Use
from buda_emu.compiler.place.blocks import has_grid
from buda_emu.compiler.target import Target
from buda_emu.spec.ops import OP_TYPES

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
        members, best = more, (more, *schedule)
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
