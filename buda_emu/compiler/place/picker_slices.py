"""Pickers that fit no grid produce their rows in other slices of t: an identity matmul may write any row anywhere.

Only the rows of a slice are shared out over cores (OPS 6.2), each with its own encoding, and a core holds its part of a
whole slice. So a slice of very many rows is cut into several, and many slices of few rows are put below each other in
one. Who reads the result stacks what was cut (`vstack`), cuts what was put together (`vslice`); a product that puts
taps side by side (`hstack`), and a maximum over them, run in the same slices (`streamed.py`): there the taps of each
slice follow each other.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import compress
from operator import not_

from buda_emu.compiler.lower.picker import Cut, PickTable
from buda_emu.compiler.lower.tiles import Constant, TileGraph, TileOp, Tm, Use, divisors
from buda_emu.compiler.place.blocks import buffer_bytes, divided_as, grids
from buda_emu.compiler.place.regrid import as_cut, cuts_of, repicked
from buda_emu.compiler.target import Target


@dataclass(frozen=True, slots=True)
class Slices:
    """How an op's result lies in t: each slice cut into `count` by its rows, or by its columns (`wide`), or `gathered`,
    so many of them below each other in one. With `together` above 1 of so many slices first all first parts, then all
    second ones."""

    count: int
    together: int = 1
    gathered: bool = False
    wide: bool = False

    def seen(self, use: Use) -> Use:
        """An operand as its reader knows it."""
        if self.gathered or self.wide:
            tms = (("hstack" if self.wide else "vslice", self.count), *use.tms)
        elif self.together > 1:  # (group, part, member), the members side by side: the parts are stacked after that
            tms = (*use.tms[:1], ("vstack", self.count), *use.tms[1:])
        else:
            tms = (("vstack", self.count), *use.tms)
        return replace(use, tms=tms)


def groups_of(tiles: TileGraph) -> dict[str, int]:
    """Of each op how many slices of its result all readers put side by side, or take the maximum of; 1 where they
    differ, or cannot run in slices."""
    stores = {store.op for store in tiles.stores.values()}
    found: dict[str, set[int]] = {name: set() for name in tiles.ops}
    for op in tiles.ops.values():
        for use in op.uses:
            if use.source in found:
                found[use.source].add(1 if op.name in stores else _group(op, use))
    return {name: own.pop() if len(own) == 1 else 1 for name, own in found.items()}


def is_over_taps(op: TileOp) -> bool:
    """Whether it takes the maximum over slices of t."""
    return op.has("reduces") and op.attrs["dim"] == "z"


def _group(reader: TileOp, use: Use) -> int:
    if is_over_taps(reader):
        return int(reader.attrs["z"]) if not use.tms and reader.may_be_cut else 1
    return int(use.tms[0][-1]) if use.tms and use.tms[0][0] == "hstack" else 1


def has_room(target: Target, op: TileOp) -> bool:
    """Whether there is a grid, and a way to cut strips and ublocks, for which cores have room for a picker's
    buffers."""
    target = target.of(op.precision)
    room = target.buffer_room
    least = replace(op, attrs={**op.attrs, "num_sparse_tiles": 1, "num_index_tiles": 1})
    for grid in reversed(list(grids(target, replace(op, grid=None)))):
        if buffer_bytes(target, least, divided_as(target, op, grid, Cut(grid[0]))) > room:
            continue
        for cut in cuts_of(op, grid[0], target.dest_tiles):
            if buffer_bytes(target, as_cut(op, cut), divided_as(target, op, grid, cut)) <= room:
                return True
    return False


def resliced(
    constants: dict[str, Constant], target: Target, op: TileOp, together: int, suits: Callable[[int], bool]
) -> tuple[TileOp, Slices] | None:
    """A picker in other slices, for which there is room: of those with the most rows of cores the nearest to what it
    was. `together`: how many slices its readers put together; `suits`: whether these have room for what they make of so
    many parts. None where there are none."""
    table: PickTable = op.attrs["table"]
    limit = target.arch.grid[0]
    ways = sorted(_ways(op, together), key=lambda own: (-_cores(op, own, limit), own.wide, own.count))
    alike = [own.together == 1 or suits(own.count) for own in ways]
    for slices in (*compress(ways, alike), *compress(ways, map(not_, alike))):
        rows = _cores(op, slices, limit)
        draft = _draft(op, table, slices, rows)
        other: PickTable = draft.attrs["table"]
        if other.fits(Cut(rows)) and has_room(target, draft):
            return repicked(constants, draft, other, Cut(rows)), slices
    return None


def _draft(op: TileOp, table: PickTable, slices: Slices, rows: int) -> TileOp:
    """The op in other slices over so many rows of cores, still with the tiles and words that it had."""
    columns, uses, act_t = op.shape[2], op.uses, op.attrs["act_t"]
    if slices.wide:
        columns, act_t = columns // slices.count, act_t * slices.count
        source = replace(uses[1], tms=cut_apart(uses[1].tms, "hstack", "hslice", slices.count))
        uses = [uses[0], source, *uses[2:]]
        other = table.repeated(slices.count, op.inner)
    elif slices.gathered:
        other = table.gathered(slices.count)
    else:
        other = table.sliced(slices.count, slices.together)
    attrs = {**op.attrs, "table": other, "rows": rows, "act_t": act_t}
    return replace(op, uses=uses, grid=(rows, 0), shape=(other.t, other.rows, columns), attrs=attrs)


def cut_apart(tms: tuple[Tm, ...], stack: str, slice: str, count: int) -> tuple[Tm, ...]:
    """The TMs and a cut into slices; what was stacked to be cut again stays as it is."""
    if tms and tms[-1][0] == stack:
        stacked = int(tms[-1][-1])
        if stacked % count == 0:
            return (*tms[:-1], *_some(stack, stacked // count))
        if count % stacked == 0:
            return (*tms[:-1], *_some(slice, count // stacked))
    return (*tms, (slice, count))


def _some(name: str, count: int) -> tuple[Tm, ...]:
    return ((name, count),) if count > 1 else ()


def _ways(op: TileOp, together: int) -> Iterator[Slices]:
    """All other slices; of those that are put together, where there are any, such as hold all that a reader puts side
    by side."""
    t, rows, columns = op.shape
    yield from (Slices(count, wide=True) for count in divisors(columns)[1:])
    yield from (Slices(count, together) for count in divisors(rows)[1:])
    whole = [count for count in divisors(t)[1:] if count % together == 0]
    yield from (Slices(count, gathered=True) for count in whole or divisors(t)[1:])


def _cores(op: TileOp, slices: Slices, limit: int) -> int:
    """The most rows of cores that share the rows of a slice."""
    rows = op.shape[1]
    if not slices.wide:
        rows = rows * slices.count if slices.gathered else rows // slices.count
    return max(count for count in divisors(rows) if count <= limit)
