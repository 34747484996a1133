"""Rearranges results in slices of t: rows cut into more slices where no grid has room for an op, and slices
stacked below each other where more cores could share them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from operator import not_

from buda_emu.compiler.lower.picker import PickTable, WorkDivision
from buda_emu.compiler.lower.tiles import (
    Constant,
    Shape,
    State,
    TileGraph,
    TileOp,
    Tm,
    Use,
    divisors,
    select_attributes,
)
from buda_emu.compiler.place.blocks import (
    DOUBLE,
    TargetOf,
    buffer_bytes,
    divide_picker,
    grids,
    has_grid,
    picker_cuts,
    replace_table,
    with_cut_counts,
)
from buda_emu.compiler.place.cost import shape_after_tms
from buda_emu.compiler.target import Target


def stack_row_sums(tiles: TileGraph, target_of: TargetOf) -> TileGraph:
    """Return the graph in which each fused op that sums rows has as many slices of t of its result below each other as
    possible, as rows of one slice, which several cores can share: the most with which some grid fits. `target_of` gives
    the target of an op."""

    def most(op: TileOp) -> int:
        """Return the most slices of an op that can be below each other so that some grid fits; 1 for other ops."""
        if op.sums_rows:
            for count in reversed(divisors(op.shape[0])):
                if has_grid(target_of(op), replace(op, shape=_stacked_shape(op, count))):
                    return count
        return 1

    return stack_slices(tiles, most)


def stack_slices(tiles: TileGraph, count_of: Callable[[TileOp], int]) -> TileGraph:
    """Return the graph in which each op that works row by row has `count_of(op)` slices of t of its result below each
    other as rows of one slice, and its readers take them apart; the same object where no op has more than one."""
    shown = tiles.shown
    counts: dict[str, int] = {}
    graph = replace(tiles, ops={})
    for op in tiles.ops.values():
        count = 1
        if op.name not in shown and _can_stack(op):
            count = count_of(op)
        if count > 1:
            uses = [_stack_use(use, op, place, count, counts) for place, use in enumerate(op.uses)]
            graph.ops[op.name] = replace(op, uses=uses, shape=_stacked_shape(op, count))
            counts[op.name] = count
        else:
            uses = [_unstack_use(use, counts) for use in op.uses]
            graph.ops[op.name] = replace(op, uses=uses)
    return graph if counts else tiles


def _stacked_shape(op: TileOp, count: int) -> tuple[int, int, int]:
    """Return the shape (t, rows, columns in tiles) of an op's result with `count` slices of t below each other."""
    t, rows, columns = op.shape
    return (t // count, rows * count, columns)


def _can_stack(op: TileOp) -> bool:
    """Return whether an op works row by row, with no operand that all rows share except the second one of a product."""
    by_row = op.is_tile_by_tile or op.sums_rows or (op.has("reduces") and op.attrs["dim"] == "c")
    if op.has("rows by columns") and len(op.uses) == 2 and "table" not in op.attrs:
        by_row = op.uses[1].tms[-1:] == (("broadcast", "z", op.shape[0]),)
    return by_row and op.may_be_cut


def _stack_use(use: Use, op: TileOp, place: int, count: int, done: Mapping[str, int]) -> Use:
    """Return operand number `place` with TMs for an op of which `count` slices are stacked. `done`: how many slices of
    each source are stacked already; those stay so if they are equally many and no TM turns or moves rows."""
    tms = use.tms
    all_slices = ("broadcast", "z", op.shape[0])
    if op.is_factor(place):
        return replace(use, tms=(*tms[:-1], *_broadcast_tms(op.shape[0] // count, 1)))
    if use.source in done:
        if done[use.source] == count and all(tm[:2] == ("broadcast", "c") for tm in tms):
            return use
        return _with_stacked_slices(_unstack_use(use, done), count)
    if all_slices in tms and all(tm[0] == "broadcast" for tm in tms[tms.index(all_slices) :]):
        at = tms.index(all_slices)
        return replace(use, tms=(*tms[:at], *_broadcast_tms(op.shape[0] // count, count), *tms[at + 1 :]))
    return _with_stacked_slices(use, count)


def _unstack_use(use: Use, done: Mapping[str, int]) -> Use:
    """Return an operand with a TM that takes the stacked slices of its source apart again; `done`: how many slices of
    each source are stacked, without those where none are."""
    if use.source not in done:
        return use
    return replace(use, tms=(("vslice", done[use.source]), *use.tms))


def _broadcast_tms(slices: int, rows: int) -> tuple[Tm, ...]:
    """Return the TMs that repeat one slice and one row `slices` and `rows` times; none for a count of 1."""
    return tuple(("broadcast", axis, n) for axis, n in (("z", slices), ("r", rows)) if n > 1)


def _with_stacked_slices(use: Use, count: int) -> Use:
    """Return an operand with a TM that stacks each `count` of its slices below each other."""
    return replace(use, tms=(*use.tms, ("vstack", count)))


@dataclass(frozen=True, slots=True)
class Slices:
    """A rearrangement of the slices of t of an op's result.

    Each slice is cut into `count` parts by its rows, or by its columns (`wide`), or each `count` slices are `gathered`
    below each other in one. With `together` above 1, the first parts of that many slices come first, then all second
    parts, and so on."""

    count: int
    together: int = 1
    gathered: bool = False
    wide: bool = False

    def reader_use(self, use: Use) -> Use:
        """Return an operand with TMs that undo this rearrangement of its source."""
        if self.wide:
            tms = (("hstack", self.count), *use.tms)
        elif self.gathered:
            tms = (("vslice", self.count), *use.tms)
        elif self.together > 1:  # (group, part, member), the members side by side: the parts are stacked after that
            tms = (*use.tms[:1], ("vstack", self.count), *use.tms[1:])
        else:
            tms = (("vstack", self.count), *use.tms)
        return replace(use, tms=tms)


def groups_of(tiles: TileGraph) -> dict[str, int]:
    """Return for each op how many slices of its result all readers put side by side or take the maximum of; 1 where the
    readers differ or cannot run in slices."""
    stores = {store.op for store in tiles.stores.values()}
    group_sizes: dict[str, set[int]] = {name: set() for name in tiles.ops}
    for op in tiles.ops.values():
        for use in op.uses:
            if use.source in group_sizes:
                group_sizes[use.source].add(1 if op.name in stores else _combined_slice_count(op, use))
    return {name: sizes.pop() if len(sizes) == 1 else 1 for name, sizes in group_sizes.items()}


def is_over_taps(op: TileOp) -> bool:
    """Return whether an op reduces over slices of t: the maximum over the taps of a pooling window."""
    return op.has("reduces") and op.attrs["dim"] == "z"


def _combined_slice_count(reader: TileOp, use: Use) -> int:
    """Return how many slices of an operand its reader puts side by side or takes the maximum of; 1 for none."""
    if is_over_taps(reader):
        if not use.tms and reader.may_be_cut:
            return int(reader.attrs["z"])
        return 1
    if use.tms and use.tms[0][0] == "hstack":
        return int(use.tms[0][-1])
    return 1


def has_room(target: Target, op: TileOp) -> bool:
    """Return whether some grid and some way to cut strips and ublocks leave room in L1 for the buffers of an identity
    matmul (`op`)."""
    target = target.of(op.precision)
    room = target.buffer_room
    least = replace(op, attrs={**op.attrs, "num_sparse_tiles": 1, "num_index_tiles": 1})
    for grid in reversed(list(grids(target, replace(op, grid=None)))):
        if buffer_bytes(target, least, divide_picker(target, op, grid, WorkDivision(grid[0]))) > room:
            continue
        for cut in picker_cuts(op, grid[0], target.dest_tiles):
            if buffer_bytes(target, with_cut_counts(op, cut), divide_picker(target, op, grid, cut)) <= room:
                return True
    return False


def reslice_picker(
    constants: dict[str, Constant], target: Target, op: TileOp, together: int, suits: Callable[[int], bool]
) -> tuple[TileOp, Slices] | None:
    """Return an identity matmul in other slices for which L1 has room, and how its result is then arranged; None where
    there are none.

    Arrangements with the most rows of cores are tried first, of these the ones nearest to the present slices.
    `together`: how many slices its readers combine; `suits`: whether the readers have room when each slice comes in
    that many parts. The new tiles and words of the matmul are added to `constants`."""
    limit = target.arch.grid[0]
    options = sorted(
        _possible_slices(op, together),
        key=lambda option: (-_max_rows_of_cores(op, option, limit), option.wide, option.count),
    )
    alike = [option.together == 1 or suits(option.count) for option in options]
    return _first_with_room(constants, target, op, (*compress(options, alike), *compress(options, map(not_, alike))))


def gather_picker(
    constants: dict[str, Constant], target: Target, op: TileOp, rows_wanted: float
) -> tuple[TileOp, Slices] | None:
    """Return an identity matmul with slices of its result below each other, so that more rows of cores share them, and
    the arrangement: as few slices together as `rows_wanted` rows of cores need, or the most rows. None where more rows
    are not possible or L1 has no room. The new tiles and words are added to `constants`."""
    limit = target.arch.grid[0]
    present = _max_rows_of_cores(op, Slices(1), limit)
    options = [Slices(count, gathered=True) for count in divisors(op.shape[0])[1:]]
    options.sort(key=lambda option: (-min(_max_rows_of_cores(op, option, limit), rows_wanted), option.count))
    return _first_with_room(
        constants, target, op, [option for option in options if _max_rows_of_cores(op, option, limit) > present]
    )


def _first_with_room(
    constants: dict[str, Constant], target: Target, op: TileOp, options: Sequence[Slices]
) -> tuple[TileOp, Slices] | None:
    """Return an identity matmul in the first arrangement of `options` for which L1 has room, and that arrangement; None
    where there is none. The new tiles and words are added to `constants`."""
    for slices in options:
        rows = _max_rows_of_cores(op, slices, target.arch.grid[0])
        draft = _draft_picker(op, op.attrs["table"], slices, rows)
        table: PickTable = draft.attrs["table"]
        if table.fits(WorkDivision(rows)) and has_room(target, draft):
            return replace_table(constants, draft, table, WorkDivision(rows)), slices
    return None


def _draft_picker(op: TileOp, table: PickTable, slices: Slices, rows: int) -> TileOp:
    """Return an identity matmul in another arrangement over `rows` rows of cores; its tiles and words are still the old
    ones, which `replace_table` has to replace."""
    columns = op.shape[2]
    uses = op.uses
    act_t = op.attrs["act_t"]
    if slices.wide:
        columns = columns // slices.count
        act_t = act_t * slices.count
        source = replace(uses[1], tms=cut_apart(uses[1].tms, "hstack", "hslice", slices.count))
        uses = [uses[0], source, *uses[2:]]
        other = table.repeat_slices(slices.count, op.inner)
    elif slices.gathered:
        other = table.gather_slices(slices.count)
    else:
        other = table.slice_rows(slices.count, slices.together)
    attrs = {**op.attrs, "table": other, "rows": rows, "act_t": act_t}
    return replace(op, uses=uses, grid=(rows, 0), shape=(other.t, other.rows, columns), attrs=attrs)


def cut_apart(tms: tuple[Tm, ...], stack: str, slice: str, count: int) -> tuple[Tm, ...]:
    """Return TMs followed by a cut into `count` slices (TM named `slice`); a last TM named `stack` that the cut would
    undo, wholly or partly, is left out or made smaller."""
    if tms and tms[-1][0] == stack:
        stacked = int(tms[-1][-1])
        if stacked % count == 0:
            return (*tms[:-1], *_tm_unless_one(stack, stacked // count))
        if count % stacked == 0:
            return (*tms[:-1], *_tm_unless_one(slice, count // stacked))
    return (*tms, (slice, count))


def _tm_unless_one(name: str, count: int) -> tuple[Tm, ...]:
    """Return a TM with this count, or none for a count of 1."""
    return ((name, count),) if count > 1 else ()


def _possible_slices(op: TileOp, together: int) -> Iterator[Slices]:
    """Yield all other arrangements of an identity matmul's result, of which readers combine `together` slices. Gathered
    slices must hold whole groups of these, if any number of slices does."""
    t, rows, columns = op.shape
    yield from (Slices(count, wide=True) for count in divisors(columns)[1:])
    yield from (Slices(count, together) for count in divisors(rows)[1:])
    gatherable = [count for count in divisors(t)[1:] if count % together == 0]
    yield from (Slices(count, gathered=True) for count in gatherable or divisors(t)[1:])


def _max_rows_of_cores(op: TileOp, slices: Slices, limit: int) -> int:
    """Return the most rows of cores, up to `limit`, that can share the rows of one slice in an arrangement."""
    rows = op.shape[1]
    if slices.gathered:
        rows = rows * slices.count
    elif not slices.wide:
        rows = rows // slices.count
    return max(count for count in divisors(rows) if count <= limit)


def stream_rows(tiles: TileGraph, target: Target) -> TileGraph:
    """Return the graph with rows cut into slices of t for each op for which no grid has room; the same object where
    every op has a grid."""
    tiles, large = _with_large_states(tiles, target)
    graph = replace(tiles, ops={}, constants=dict(tiles.constants))
    slices = {name: Slices(count) for name, count in large.items()}
    stores = {store.op: large.get(name, 1) for name, store in tiles.stores.items()}
    groups = groups_of(tiles)
    readers = _picker_readers(tiles)
    for op in tiles.ops.values():
        reader_op = replace(op, uses=[_reader_use(op, use, slices) for use in op.uses])
        graph.ops[op.name] = reader_op
        if op.name in stores:  # a ram has the slices of what writes it
            if stores[op.name] > 1:
                graph.ops[op.name] = _slice_op(graph, reader_op, stores[op.name]) or reader_op
        elif "table" in op.attrs:
            resliced = _reslice_if_full(graph.constants, target, reader_op, readers[op.name], groups[op.name])
            if resliced is not None:
                graph.ops[op.name], slices[op.name] = resliced
        else:
            counts = _slice_counts(target, reader_op, slices)
            count, graph.ops[op.name] = _first_fitting_cut(graph, target, reader_op, counts)
            if count:
                slices[op.name] = Slices(count)
    if not slices:
        return tiles
    drop_unread_constants(graph)
    graph.places = {name: place for name, place in tiles.places.items() if place[0] not in slices}
    return graph


def drop_unread_constants(graph: TileGraph) -> None:
    """Remove the constants that no op of the graph reads."""
    read = set[str]()
    for op in graph.ops.values():
        read.update(use.source for use in op.uses)
    graph.constants = {name: constant for name, constant in graph.constants.items() if name in read}


def _picker_readers(tiles: TileGraph) -> dict[str, list[TileOp]]:
    """Return the ops that read each identity matmul, by its name."""
    readers: dict[str, list[TileOp]] = {name: [] for name, op in tiles.ops.items() if "table" in op.attrs}
    for op in tiles.ops.values():
        for name in {use.source for use in op.uses} & readers.keys():
            readers[name].append(op)
    return readers


def _reslice_if_full(
    constants: dict[str, Constant], target: Target, op: TileOp, readers: Sequence[TileOp], together: int
) -> tuple[TileOp, Slices] | None:
    """Return an identity matmul in another arrangement, and that arrangement, where no grid has room for it or for a
    maximum that reads it; None where all have room or no arrangement helps. `together`: how many slices its readers
    combine. New tiles and words are added to `constants`."""
    maxima = (reader for reader in readers if is_over_taps(reader))
    if has_room(target, op) and all(fits(target, reader) for reader in maxima):
        return None
    return reslice_picker(constants, target, op, together, partial(_have_room, target, readers))


def _first_fitting_cut(tiles: TileGraph, target: Target, op: TileOp, counts: Sequence[int]) -> tuple[int, TileOp]:
    """Return the first of `counts` slices in which some grid has room for the op, and the op in these slices; 0 and the
    op as it is where there is none. A maximum over taps takes the slices of the matmul that it reads, with room or
    without."""
    for count in counts:
        cut = _slice_op(tiles, op, count)
        if cut is not None and (is_over_taps(op) or fits(target, cut)):
            return count, cut
    return 0, op


def _have_room(target: Target, readers: Sequence[TileOp], count: int) -> bool:
    """Return whether all readers fit a grid when they run in `count` slices."""
    cut = (replace(op, shape=(op.shape[0] * count, op.shape[1] // count, op.shape[2])) for op in readers)
    return all(fits(target, op) for op in cut)


def _reader_use(op: TileOp, use: Use, slices: Mapping[str, Slices]) -> Use:
    """Return an operand with TMs that undo the arrangement of its source (`slices`, by source). A maximum over taps
    that already lie one after the other reads them as they are."""
    arrangement = slices.get(use.source)
    if arrangement is None or (arrangement.together > 1 and is_over_taps(op)):
        return use
    return arrangement.reader_use(use)


def _slice_counts(target: Target, op: TileOp, slices: Mapping[str, Slices]) -> Sequence[int]:
    """Return the numbers of slices in which an op might run, the likeliest first: that of a picker whose taps it puts
    together; where the op fits no grid that of its operands, or as few as are enough. `slices`: the present
    arrangement of each source."""
    before = {use.source: slices[use.source] for use in op.uses if use.source in slices}
    with_picker = [arrangement.count for arrangement in before.values() if arrangement.together > 1]
    if is_over_taps(op):
        return with_picker
    if not fits(target, op):
        return (
            *with_picker,
            *sorted({arrangement.count for arrangement in before.values()}),
            *divisors(op.shape[1])[1:],
        )
    return with_picker


def fits(target: Target, op: TileOp) -> bool:
    """Return whether there is a grid whose cores have room for the op's buffers."""
    if "table" in op.attrs:
        return has_room(target, op)
    return has_grid(target, op, DOUBLE)


def _slice_op(tiles: TileGraph, op: TileOp, count: int) -> TileOp | None:
    """Return the op with its rows cut into `count` slices, and its operands likewise; None where it does not work row
    by row or the rows do not divide."""
    t, rows, columns = op.shape
    if is_over_taps(op):  # as its picker gives them
        return replace(op, shape=(t * count, rows // count, columns))
    is_product = op.has("inner dimension")
    by_row = is_product or op.is_tile_by_tile or (op.has("reduces") and op.attrs["dim"] == "c")
    if not by_row or rows % count or not op.may_be_cut:
        return None
    uses: list[Use] = []
    for place, use in enumerate(op.uses):
        if is_product and place == 1:
            uses.append(_repeat_factor(use, t, count))
        elif shape_after_tms(tiles, use)[1] % count:
            return None
        else:
            uses.append(Use(use.source, cut_apart(use.tms, "vstack", "vslice", count)))
    return replace(op, uses=uses, shape=(t * count, rows // count, columns))


def _repeat_factor(use: Use, t: int, count: int) -> Use:
    """Return the second factor of a product of `t` slices, repeated for the `count` parts into which each slice is
    cut."""
    if t == 1:
        return Use(use.source, (*use.tms, ("broadcast", "z", count)))
    if use.tms[-1:] == (("broadcast", "z", t),):
        return Use(use.source, (*use.tms[:-1], ("broadcast", "z", t * count)))
    # Each slice of t has a factor of its own.
    return Use(use.source, (*use.tms, ("broadcast", "r", count), ("vslice", count)))


def _with_large_states(tiles: TileGraph, target: Target) -> tuple[TileGraph, Mapping[str, int]]:
    """Return the graph with those states cut into slices whose writers fit no grid, and the number of slices of each
    such state by its queue; the same graph and an empty mapping where there are none. States of one shape, such as a
    parameter and the values that an optimizer holds for it, get equally many slices."""
    slices = _state_slices(tiles, target)
    if not slices:
        return tiles, {}
    sums = {
        store.op: name
        for name, store in tiles.stores.items()
        if name in slices and _accumulates_gradient(tiles.ops[store.op])
    }
    graph = replace(tiles, ops={}, states=dict(tiles.states), stores=dict(tiles.stores))
    for name, count in slices.items():
        graph.states[name] = _sliced_state(tiles.states[name], count, zeros=name in sums.values())
    for op in tiles.ops.values():
        queue = sums.get(op.name)
        if queue is None:
            graph.ops[op.name] = op
            continue
        replacements = {new_op.name: new_op for new_op in _split_gradient(op, queue)}
        graph.ops |= replacements
        graph.stores[queue] = replace(tiles.stores[queue], op=[*replacements][-1])
    return graph, slices


def _state_slices(tiles: TileGraph, target: Target) -> dict[str, int]:
    """Return the number of slices of each state that needs more than one, by its queue."""
    counts: dict[Shape, int] = {}
    for name, store in tiles.stores.items():
        op = tiles.ops[store.op]
        state = tiles.states[name]
        if state.slots == 1 and not has_grid(target, op):
            counts[state.shape] = max(counts.get(state.shape, 1), _fewest_slices(target, op))
    return {
        name: counts[state.shape]
        for name, state in tiles.states.items()
        if state.slots == 1 and counts.get(state.shape, 1) > 1
    }


def _accumulates_gradient(op: TileOp) -> bool:
    """Return whether an op adds its results up in a ram, as gradients of a round are."""
    return bool(op.attrs.get("gradient"))


def _without_sum(op: TileOp) -> TileOp:
    """Return a copy of a gradient op that does not add up its results."""
    return replace(op, attrs=select_attributes(op.attrs, op.attrs.keys() - {"gradient"}))


def _fewest_slices(target: Target, op: TileOp) -> int:
    """Return the fewest slices of rows with which a grid has room for the op; 1 where none are enough."""
    t, rows, columns = op.shape
    for count in divisors(rows):
        if has_grid(target, replace(_without_sum(op), shape=(t * count, rows // count, columns)), DOUBLE):
            return count
    return 1


def _sliced_state(state: State, count: int, *, zeros: bool) -> State:
    """Return a state with its rows cut into `count` slices; `zeros`: whether it begins with zeros."""
    t, rows, columns = state.held.shape
    return replace(state, held=state.held.reshape(t * count, rows // count, columns), zeros=zeros)


def _split_gradient(op: TileOp, queue: str) -> Iterator[TileOp]:
    """Yield the ops that replace a gradient op: an addition of its operand and of the ram `queue`, and before it, for a
    transposed operand, a copy of this operand."""
    uses = op.uses
    name = op.name
    precision = op.precision
    if any(("transpose",) in use.tms for use in uses):
        yield _without_sum(op)
        uses = [Use(op.name)]
        name = f"{op.name}.sum"
        precision = replace(precision, reads=())
    if precision.reads:
        reads = (*precision.reads, precision.df)
    else:
        reads = ()
    yield replace(
        _without_sum(op), name=name, type="add", uses=[*uses, Use(queue)], precision=replace(precision, reads=reads)
    )
