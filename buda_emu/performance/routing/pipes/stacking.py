"""Stacked pieces that come one after the other, as the producer's buffer holds only some of them at a time.

What the vendor's tile maps demand of them: pieces come in the order in which a consumer reads, and cut its blocks
and its grid evenly.
"""

from dataclasses import dataclass

from buda_emu.performance.routing.pipes.refusal import RefusedError
from buda_emu.performance.routing.pipes.source_map import SourceMap, divides

_HINT = "give the consumer other mblocks, ublocks or ublock_order, or the producer a buf_size_mb that holds all of t"


@dataclass(frozen=True, slots=True)
class Consumer:
    """Blocks of who reads, over the cores that get tiles of their own: [rows, columns] each."""

    grid: tuple[int, int]
    mblock: tuple[int, int]
    ublock: tuple[int, int]
    row_major: bool


@dataclass(frozen=True, slots=True)
class Phases:
    """How many pieces a pipe serves one after the other, along rows and columns, padding included."""

    factors: tuple[int, int]
    padding: tuple[int, int]


def phases(source: SourceMap, consumer: Consumer) -> Phases:
    """The phases of a stack that needs them. RefusedError for an order or a cut that the device cannot follow."""
    _check_order(source)
    factors, block = _pieces(source)
    factors, block, padding = _with_padding(source, factors, block)
    _check_cuts(consumer, factors, block)
    _check_scan_order(source, consumer, factors, block)
    return Phases((factors[0], factors[1]), (padding[0], padding[1]))


def _demand(holds: bool, what: str, rule: str) -> None:
    if not holds:
        raise RefusedError(rule, what, _HINT)


def _check_order(source: SourceMap) -> None:
    """Stacks stand at the end of the TMs, each direction once, with one pad at most."""
    seen: set[str] = set()
    for name in source.names:
        if name in ("hstack", "vstack"):
            fine = name not in seen and "pad" not in seen
            seen.add(name)
        elif name == "pad":
            fine = "pad" not in seen
            seen.add(name)
        else:
            fine = not seen
        if not fine:
            what = f"stacks {source.buffered} buffered mblocks of t {source.producer.t} in phases, but {name} follows"
            raise RefusedError(
                "V321",
                f"{what} {' and '.join(sorted(seen - {name})) or name}",
                "let stacks be the last TMs, or buffer all of t",
            )


def _pieces(source: SourceMap) -> tuple[list[int], list[int]]:
    """Pieces that do not come from one slice of the producer's t, and the tiles of each [rows, columns]."""
    _, rows, columns = source.tiles.shape
    block = [
        (size - pad) // factor for size, pad, factor in zip((rows, columns), source.padded, source.stacked, strict=True)
    ]
    slices = source.sliced[0] * source.sliced[1]
    first = 1 if source.row_major_stack else 0  # the direction that changes first
    second = 1 - first
    names = ("rows", "columns")
    factors = [1, 1]
    inner, outer = source.stacked[first], source.stacked[second]
    _demand(
        divides(slices, inner),
        f"stacks {inner} pieces of {names[first]}, {slices} slices come from one t: neither divides the other",
        "V322",
    )
    if slices % inner == 0:
        left = slices // inner
        block[first] *= inner
        _demand(
            divides(left, outer),
            f"stacks {outer} pieces of {names[second]}, {left} of the slices of one t are left for them: neither "
            "divides the other",
            "V322",
        )
        if left % outer == 0:
            block[second] *= outer
        else:
            block[second] *= left
            factors[second] = outer // left
    else:
        block[first] *= slices
        factors[first], factors[second] = inner // slices, outer
    return _buffered(source, factors, first), block


def _buffered(source: SourceMap, factors: list[int], first: int) -> list[int]:
    """Pieces that the producer holds together count as one."""
    second = 1 - first
    what = f"its producer buffers {source.buffered} mblocks, pieces are stacked by"
    _demand(divides(factors[first], source.buffered), f"{what} {factors[first]}: neither divides the other", "V322")
    if factors[first] > source.buffered:
        factors[first] //= source.buffered
        return factors
    factors[first] = 1
    _demand(divides(factors[second], source.buffered), f"{what} {factors[second]}: neither divides the other", "V322")
    factors[second] = factors[second] // source.buffered if factors[second] > source.buffered else 1
    return factors


def _with_padding(source: SourceMap, factors: list[int], block: list[int]) -> tuple[list[int], list[int], list[int]]:
    """Padding is pieces of its own, or belongs to the one piece that there is."""
    padding = [0, 0]
    for axis, name in enumerate(("rows", "columns")):
        if factors[axis] > 1:
            _demand(
                source.padded[axis] % block[axis] == 0,
                f"{source.padded[axis]} padding tile {name} are not a whole number of pieces of {block[axis]}",
                "V323",
            )
            padding[axis] = source.padded[axis] // block[axis]
            factors[axis] += padding[axis]
        else:
            block[axis] += source.padded[axis]
    return factors, block, padding


def _check_cuts(consumer: Consumer, factors: list[int], block: list[int]) -> None:
    for axis, name in enumerate(("rows", "columns")):
        _demand(
            divides(consumer.grid[axis], factors[axis]),
            f"{factors[axis]} stacked pieces over {consumer.grid[axis]} {name} of cores: neither divides the other",
            "V324",
        )
    for axis, name in enumerate(("rows", "columns")):
        mblock, ublock = consumer.mblock[axis] * consumer.ublock[axis], consumer.ublock[axis]
        for size, of in ((mblock, "mblock"), (ublock, "ublock")):
            _demand(
                divides(block[axis], size),
                f"stacked pieces have {block[axis]} tile {name}, an {of} that is read has {size}: neither divides "
                "the other",
                "V325",
            )


def _check_scan_order(source: SourceMap, consumer: Consumer, factors: list[int], block: list[int]) -> None:
    """Pieces come in the order in which blocks are read: ublocks in ublock_order, tiles in them row by row."""
    row_major, (rows, columns), (u_rows, u_columns) = source.row_major_stack, block, consumer.ublock
    m, n = consumer.mblock
    if columns < u_columns or rows < u_rows:
        if columns < u_columns:
            one_ublock_row = u_rows == 1 and (consumer.row_major or m == 1)
            fine = row_major and rows == 1 and (n == 1 or one_ublock_row)
        else:
            fine = columns == u_columns and not row_major and (n == 1 or not consumer.row_major)
        what = f"stacked pieces of {rows}x{columns} tiles lie within ublocks of {u_rows}x{u_columns}"
        _demand(fine, f"{what}, which are read row by row", "V326")
    elif consumer.row_major and columns < n * u_columns:
        _demand(
            row_major or factors[0] == 1,
            f"pieces are stacked downward first, within mblocks of {n} ublocks that are read along rows",
            "V327",
        )
        _demand(
            rows == u_rows,
            f"pieces of {rows} tile rows are stacked side by side within mblocks whose ublocks have {u_rows}",
            "V327",
        )
    elif not consumer.row_major and rows < m * u_rows:
        _demand(
            not row_major or factors[1] == 1,
            f"pieces are stacked sideways first, within mblocks of {m} ublocks that are read down columns",
            "V327",
        )
        _demand(
            columns == u_columns,
            f"pieces of {columns} tile columns are stacked downward within mblocks whose ublocks have {u_columns}",
            "V327",
        )
