"""The op that makes the value of a cache slot writes it there, so that no nop copies it."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from buda_emu.compiler.fuse.readers import Readers
from buda_emu.compiler.lower.tiles import TileGraph, TileOp, Use


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
