"""Ops whose buffers fit no grid run in slices of their rows along t: t-streaming in R (FRONTEND 4.5).

`y = f(x)` of R rows becomes a result of n slices with R / n rows each: operands are cut by `vslice` on their way in,
the second one of a product is repeated for each slice, and who reads y stacks the slices again (`vstack`), unless it
runs in slices, too. No value changes. Products with too many columns are in slices already (`lower/matmul.py`).

A state whose ram is written in slices lies in them. A gradient op holds all slices of its sum in L1. A sum that has no
room there is added up in DRAM: another op reads the ram, adds, and writes it again, input by input. Its ram has a
second entry, of zeros, which is read where a sum begins.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from buda_emu.compiler.lower.tiles import Shape, State, TileGraph, TileOp, Use, divisors, kept
from buda_emu.compiler.place.blocks import DOUBLE, has_grid
from buda_emu.compiler.place.cost import shape_behind
from buda_emu.compiler.place.picker_slices import Slices, cut_apart, groups_of, has_room, is_over_taps, resliced
from buda_emu.compiler.target import Target


def streamed(tiles: TileGraph, target: Target, wanted: int = 1) -> TileGraph:
    """The graph with ops in slices where nothing else has room for them, and those of a single slice in as many as are
    `wanted`, where their rows are divided by it; the same object where none is."""
    tiles, large = _with_large_states(tiles, target)
    found = replace(tiles, ops={}, constants=dict(tiles.constants))
    slices = {name: Slices(count) for name, count in large.items()}
    stores = {store.op: large.get(name, 1) for name, store in tiles.stores.items()}
    groups = groups_of(tiles)
    readers: dict[str, list[TileOp]] = {name: [] for name, op in tiles.ops.items() if "table" in op.attrs}
    for op in tiles.ops.values():
        for name in {use.source for use in op.uses} & readers.keys():
            readers[name].append(op)
    for op in tiles.ops.values():
        own = replace(op, uses=[_seen(op, use, slices) for use in op.uses])
        found.ops[op.name] = own
        if op.name in stores:  # a ram has the slices of what writes it
            cut = _sliced(found, own, stores[op.name]) if stores[op.name] > 1 else None
            found.ops[op.name] = cut or own
            continue
        if "table" in op.attrs:
            made = None
            maxima = (reader for reader in readers[op.name] if is_over_taps(reader))
            if not (has_room(target, own) and all(fits(target, reader) for reader in maxima)):
                suits = partial(_have_room, target, readers[op.name])
                made = resliced(found.constants, target, own, groups[op.name], suits)
            if made is not None:
                found.ops[op.name], slices[op.name] = made
            continue
        for count in _counts(target, own, slices, wanted):
            cut = _sliced(found, own, count)
            if cut is not None and (is_over_taps(op) or fits(target, cut)):
                found.ops[op.name], slices[op.name] = cut, Slices(count)
                break
    if not slices:
        return tiles
    read = {use.source for op in found.ops.values() for use in op.uses}
    found.constants = {name: item for name, item in found.constants.items() if name in read}
    found.places = {name: place for name, place in tiles.places.items() if place[0] not in slices}
    return found


def _have_room(target: Target, readers: Sequence[TileOp], count: int) -> bool:
    """Whether all of them fit a grid in so many slices."""
    cut = (replace(op, shape=(op.shape[0] * count, op.shape[1] // count, op.shape[2])) for op in readers)
    return all(fits(target, op) for op in cut)


def _seen(op: TileOp, use: Use, slices: Mapping[str, Slices]) -> Use:
    """An operand as its reader knows it. A maximum over taps that follow each other takes them as they come."""
    own = slices.get(use.source)
    return use if own is None or (own.together > 1 and is_over_taps(op)) else own.seen(use)


def _counts(target: Target, op: TileOp, slices: Mapping[str, Slices], wanted: int) -> Sequence[int]:
    """In how many slices an op might run, the likeliest first: in those of a picker whose taps it puts together; where
    it fits no grid in those of its operands, or as few as are enough."""
    before = {use.source: slices[use.source] for use in op.uses if use.source in slices}
    with_picker = [own.count for own in before.values() if own.together > 1]
    if is_over_taps(op):
        return with_picker
    if not fits(target, op):
        return (*with_picker, *sorted({own.count for own in before.values()}), *divisors(op.shape[1])[1:])
    return with_picker or ((wanted,) if wanted > 1 and op.shape[0] == 1 else ())


def fits(target: Target, op: TileOp) -> bool:
    """Whether there is a grid whose cores have room for the op's buffers."""
    if "table" in op.attrs:
        return has_room(target, op)
    return has_grid(target, op, DOUBLE)


def _sliced(tiles: TileGraph, op: TileOp, count: int) -> TileOp | None:
    """The op in so many slices; None where that is not possible."""
    t, rows, columns = op.shape
    if is_over_taps(op):  # as its picker gives them
        return replace(op, shape=(t * count, rows // count, columns))
    product = op.has("inner dimension")
    by_row = product or op.is_tile_by_tile or (op.has("reduces") and op.attrs["dim"] == "c")
    if not by_row or rows % count or not op.may_be_cut:
        return None
    uses: list[Use] = []
    for place, use in enumerate(op.uses):
        if product and place == 1:
            if t > 1 and (not use.tms or use.tms[-1] != ("broadcast", "z", t)):
                repeated = ("broadcast", "r", count), ("vslice", count)  # each slice of t has an operand of its own
                uses.append(Use(use.source, (*use.tms, *repeated)))
                continue
            kept = use.tms[:-1] if t > 1 else use.tms
            uses.append(Use(use.source, (*kept, ("broadcast", "z", t * count))))
            continue
        if shape_behind(tiles, use)[1] % count:
            return None
        uses.append(Use(use.source, cut_apart(use.tms, "vstack", "vslice", count)))
    return replace(op, uses=uses, shape=(t * count, rows // count, columns))


def _with_large_states(tiles: TileGraph, target: Target) -> tuple[TileGraph, Mapping[str, int]]:
    """The graph with such states in slices, and in how many by the state's queue; the same object where there is none.
    States of one shape, as a parameter and what an optimizer keeps of it, lie in as many."""
    counts: dict[Shape, int] = {}
    for name, store in tiles.stores.items():
        op, state = tiles.ops[store.op], tiles.states[name]
        if state.slots == 1 and not has_grid(target, op):
            counts[state.shape] = max(counts.get(state.shape, 1), _count(target, op))
    slices = {
        name: counts[state.shape]
        for name, state in tiles.states.items()
        if state.slots == 1 and counts.get(state.shape, 1) > 1
    }
    if not slices:
        return tiles, {}
    sums = {store.op: name for name, store in tiles.stores.items() if name in slices and _is_sum(tiles.ops[store.op])}
    found = replace(tiles, ops={}, states=dict(tiles.states), stores=dict(tiles.stores))
    for name, count in slices.items():
        found.states[name] = _in_slices(tiles.states[name], count, zeros=name in sums.values())
    for op in tiles.ops.values():
        queue = sums.get(op.name)
        if queue is None:
            found.ops[op.name] = op
            continue
        made = {one.name: one for one in _added(op, queue)}
        found.ops |= made
        found.stores[queue] = replace(tiles.stores[queue], op=[*made][-1])
    return found, slices


def _is_sum(op: TileOp) -> bool:
    return bool(op.attrs.get("gradient"))


def _plain(op: TileOp) -> TileOp:
    """The copy that a gradient op is, without the sum."""
    return replace(op, attrs=kept(op.attrs, op.attrs.keys() - {"gradient"}))


def _count(target: Target, op: TileOp) -> int:
    """The fewest slices of rows with which a grid has room for the op; 1 where none are enough."""
    t, rows, columns = op.shape
    for count in divisors(rows):
        if has_grid(target, replace(_plain(op), shape=(t * count, rows // count, columns)), DOUBLE):
            return count
    return 1


def _in_slices(state: State, count: int, *, zeros: bool) -> State:
    t, rows, columns = state.held.shape
    return replace(state, held=state.held.reshape(t * count, rows // count, columns), zeros=zeros)


def _added(op: TileOp, queue: str) -> Iterator[TileOp]:
    """Instead of a gradient op: the sum of what it reads and of the ram. What it transposes is copied before."""
    uses, name, own = op.uses, op.name, op.precision
    if any(("transpose",) in use.tms for use in uses):
        yield _plain(op)
        uses, name, own = [Use(op.name)], f"{op.name}.sum", replace(own, reads=())
    reads = (*own.reads, own.df) if own.reads else ()
    yield replace(_plain(op), name=name, type="add", uses=[*uses, Use(queue)], precision=replace(own, reads=reads))
