"""Row-wise ops on many slices of few rows, with some of their slices below each other: rows are distributed over more
cores, and all of them process each slice of t.

A result of t slices with R rows each, a head of attention in each slice, becomes one of t / n slices with n R rows:
operands are stacked on their way in (`vstack`), what is the same for all slices is repeated along rows instead, and who
reads the result cuts it again (`vslice`), unless it is stacked, too. No value changes, nor the order of the tiles. The
opposite is `streamed.py`.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from buda_emu.compiler.lower.tiles import TileGraph, TileOp, Tm, Use, divisors
from buda_emu.compiler.place.blocks import TargetOf, has_grid


def stacked(tiles: TileGraph, count: int) -> TileGraph:
    """The graph with `count` slices of each op below each other where that can be; the same object where none can."""
    return _with_counts(tiles, lambda op: count if op.shape[0] % count == 0 else 1)


def stacked_rows(tiles: TileGraph, target_of: TargetOf) -> TileGraph:
    """The graph with the slices of ops that sum rows below each other, as many as there are grids for: one core after
    the other could compute them otherwise."""

    def most(op: TileOp) -> int:
        counts = reversed(divisors(op.shape[0])) if op.sums_rows else (1,)
        return next(
            count for count in counts if count == 1 or has_grid(target_of(op), replace(op, shape=_shape(op, count)))
        )

    return _with_counts(tiles, most)


def _with_counts(tiles: TileGraph, count_of: Callable[[TileOp], int]) -> TileGraph:
    kept = tiles.shown
    done: dict[str, int] = {}
    found = replace(tiles, ops={})
    for op in tiles.ops.values():
        count = count_of(op) if op.name not in kept and _may_be_stacked(op) else 1
        if count > 1:
            uses = [_stacked(use, op, place, count, done) for place, use in enumerate(op.uses)]
            found.ops[op.name] = replace(op, uses=uses, shape=_shape(op, count))
            done[op.name] = count
        else:
            uses = [_unstacked(use, done) for use in op.uses]
            found.ops[op.name] = replace(op, uses=uses)
    return found if done else tiles


def _shape(op: TileOp, count: int) -> tuple[int, int, int]:
    t, rows, columns = op.shape
    return (t // count, rows * count, columns)


def _may_be_stacked(op: TileOp) -> bool:
    """Whether it is done row by row, with no operand but a product's second that all rows share."""
    by_row = op.is_tile_by_tile or op.sums_rows or (op.has("reduces") and op.attrs["dim"] == "c")
    if op.has("rows by columns") and len(op.uses) == 2 and "table" not in op.attrs:
        by_row = op.uses[1].tms[-1:] == (("broadcast", "z", op.shape[0]),)
    return by_row and op.may_be_cut


def _stacked(use: Use, op: TileOp, place: int, count: int, done: Mapping[str, int]) -> Use:
    """An operand as the stacked op reads it. Slices of a stacked source stay as they are, if nothing on the way turns
    or moves rows."""
    tms, whole = use.tms, ("broadcast", "z", op.shape[0])
    if op.is_factor(place):
        return replace(use, tms=(*tms[:-1], *_over(op.shape[0] // count, 1)))
    if use.source in done:
        as_it_is = done[use.source] == count and all(tm[:2] == ("broadcast", "c") for tm in tms)
        return use if as_it_is else _below(_unstacked(use, done), count)
    if whole in tms and all(tm[0] == "broadcast" for tm in tms[tms.index(whole) :]):
        at = tms.index(whole)
        return replace(use, tms=(*tms[:at], *_over(op.shape[0] // count, count), *tms[at + 1 :]))
    return _below(use, count)


def _unstacked(use: Use, done: Mapping[str, int]) -> Use:
    """Its slices along t again."""
    return replace(use, tms=(("vslice", done[use.source]), *use.tms)) if use.source in done else use


def _over(slices: int, rows: int) -> tuple[Tm, ...]:
    """So many slices and rows of what is one of each."""
    return tuple(("broadcast", axis, n) for axis, n in (("z", slices), ("r", rows)) if n > 1)


def _below(use: Use, count: int) -> Use:
    return replace(use, tms=(*use.tms, ("vstack", count)))
