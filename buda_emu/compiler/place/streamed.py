"""Ops whose buffers fit no grid run in slices of their rows along t: t-streaming in R (FRONTEND 4.5).

`y = f(x)` of R rows becomes a result of n slices with R / n rows each: operands are cut by `vslice` on their way in,
the second one of a product is repeated for each slice, and who reads y stacks the slices again (`vstack`), unless it
runs in slices, too. No value changes. Products with too many columns are in slices already (`lower/matmul.py`).
"""

from dataclasses import replace

from buda_emu.compiler.lower.tiles import TileGraph, TileOp, Tm, Use, divisors
from buda_emu.compiler.place.blocks import buffer_bytes, divided, grids, l1_bytes
from buda_emu.compiler.place.cost import shape_behind
from buda_emu.compiler.target import Target


def streamed(tiles: TileGraph, target: Target, wanted: int = 1) -> TileGraph:
    """The graph with ops in slices where nothing else has room for them, and those of a single slice in as many as are
    `wanted`, where their rows are divided by it; the same object where none is."""
    found = replace(tiles, ops={})
    slices: dict[str, int] = {}
    stores = {store.op for store in tiles.stores.values()}  # a ram has the slices of what writes it
    for op in tiles.ops.values():
        own = replace(op, uses=[_stacked(use, slices) for use in op.uses])
        found.ops[op.name] = own
        if op.name in stores:
            continue
        if not fits(target, own):
            before = sorted({slices[use.source] for use in op.uses if use.source in slices})
            counts = (*before, *divisors(op.shape[1])[1:])
        else:
            counts = (wanted,) if wanted > 1 and op.shape[0] == 1 else ()
        for count in counts:
            made = _sliced(found, own, count)
            if made is not None and fits(target, made):
                found.ops[op.name], slices[op.name] = made, count
                break
    if not slices:
        return tiles
    found.places = {name: place for name, place in tiles.places.items() if place[0] not in slices}
    return found


def fits(target: Target, op: TileOp) -> bool:
    """Whether there is a grid whose cores have room for the op's buffers."""
    target = target.of(op.precision)
    room = l1_bytes(target)
    made = (divided(target, op, grid) for grid in reversed(list(grids(target, op))))
    return any(blocks is not None and buffer_bytes(target, op, blocks) <= room for blocks in made)


def _stacked(use: Use, slices: dict[str, int]) -> Use:
    """An operand as its reader knows it."""
    count = slices.get(use.source, 1)
    return Use(use.source, (("vstack", count), *use.tms), use.buffer) if count > 1 else use


def _sliced(tiles: TileGraph, op: TileOp, count: int) -> TileOp | None:
    """The op in so many slices; None where that is not possible."""
    t, rows, columns = op.shape
    product = op.type == "matmul"
    by_row = product or op.is_tile_by_tile or (op.type == "reduce" and op.attrs["dim"] == "c")
    if not by_row or rows % count or not op.may_be_cut:
        return None
    uses: list[Use] = []
    for place, use in enumerate(op.uses):
        if product and place == 1:
            if t > 1 and (not use.tms or use.tms[-1] != ("broadcast", "z", t)):
                return None  # each slice of t has an operand of its own
            kept = use.tms[:-1] if t > 1 else use.tms
            uses.append(Use(use.source, (*kept, ("broadcast", "z", t * count))))
            continue
        if shape_behind(tiles, use)[1] % count:
            return None
        uses.append(Use(use.source, _cut(use.tms, count)))
    return replace(op, uses=uses, shape=(t * count, rows // count, columns))


def _cut(tms: tuple[Tm, ...], count: int) -> tuple[Tm, ...]:
    """The TMs and a cut into slices; what was stacked to be cut again stays as it is."""
    if tms and tms[-1][0] == "vstack":
        stacked = int(tms[-1][-1])
        if stacked % count == 0:
            return (*tms[:-1], *_some("vstack", stacked // count))
        if count % stacked == 0:
            return (*tms[:-1], *_some("vslice", count // stacked))
    return (*tms, ("vslice", count))


def _some(name: str, count: int) -> tuple[Tm, ...]:
    return ((name, count),) if count > 1 else ()
