"""Moving a value to another layout, by the fewest kinds of ops: row moves, column products, transposes, TMs."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from buda_emu.compiler.graph.builder import check_constant_size
from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.compiler.lower.layout import TILE, Extent, Layout, Move, Piece, merged, moves, ordered, padded
from buda_emu.compiler.lower.lowering import Lowering, Value, transposed
from buda_emu.support.errors import InternalError

_MOST_OF_A_MOVE = 1 << 29
"""Elements of a matrix that moves columns: 1 GiB in Float16_b."""
_SIDE_BY_SIDE = 128
"""Slices of t with one element in a row that are put side by side."""


def relayout(low: Lowering, value: Value, want: Layout, *, loose: bool = False) -> Value:
    """The value in another layout of the same dimensions. `loose`: columns may keep gaps and order as they come, as
    long as just the wanted pieces stand there."""
    parts = moves(value.layout, want)
    if parts is None:
        whole = _whole(value.layout)
        value = relayout(low, value, whole)
        parts = moves(value.layout, want)
        if parts is None:
            raise InternalError(f"no common pieces of {whole} and {want}")
    dims = want.dims
    as_pieces = Layout(tuple((part.have,) for part in parts), value.layout.extent)
    found = _move(low, replace(value, layout=as_pieces), parts, want.extent, loose)
    return replace(found, layout=_named(found.layout, parts, dims))


def _whole(layout: Layout) -> Layout:
    """Every dimension in one piece, where its innermost piece is."""
    shape = layout.shape
    axes = [dim[-1].axis if dim else "z" for dim in layout.dims]
    order = {axis: [place for place, own in enumerate(axes) if own == axis] for axis in "zrc-"}
    return ordered(shape, [*order["-"], *order["z"]], order["r"], order["c"])


def _named(layout: Layout, parts: Sequence[Move], dims: tuple[tuple[Piece, ...], ...]) -> Layout:
    """Pieces of a moved layout (one dimension each) put together to the value's dimensions again."""
    found: list[tuple[Piece, ...]] = []
    pieces = [dim[0] if dim else None for dim in layout.dims]
    at = 0
    for dim in dims:
        size = prod(piece.size for piece in dim)
        mine = list[Piece]()
        while prod(piece.size for piece in mine) < size:
            piece = pieces[at]
            if piece is not None:
                mine.append(piece)
            at += 1
        found.append(merged(mine))
    if at != len(parts):
        raise InternalError(f"{len(parts)} pieces for {dims}")
    return Layout(tuple(found), layout.extent)


def _move(low: Lowering, value: Value, parts: list[Move], extent: Extent, loose: bool) -> Value:
    """`value.layout` has one dimension for each part, in order."""
    if not parts:
        return _rows(low, value, parts, extent)
    in_c = [k for k, part in enumerate(parts) if part.have.axis == "c"]
    to_c = [k for k, part in enumerate(parts) if part.want.axis == "c"]
    kept = [k for k in in_c if k in to_c]
    incoming = [k for k in to_c if parts[k].have.axis in "zr"]
    expelled = [k for k in in_c if k not in to_c]
    if incoming and not kept and not _side_by_side(parts, in_c, incoming):
        return _again(low, _columns_to_rows(low, value, parts, incoming), parts, extent, loose)
    if incoming and kept and expelled and _outside(value.layout, parts, kept, expelled):
        # Slices of t, though wanted along columns: what they hold leaves these, then rows and columns are swapped.
        apart = _in_slices(low, value, kept, prod(parts[k].size for k in kept))
        return _again(low, apart, parts, extent, loose)
    if expelled:
        below = _below(low, value, parts)
        if below is not None:
            return _again(low, below, parts, extent, loose)
        apart = _expelled(low, value, parts, expelled, kept) if kept else None
        return _again(low, apart or _stood_up(low, value, parts), parts, extent, loose)
    if incoming:
        return _again(low, _stacked(low, value, parts, incoming), parts, extent, loose)
    copies = any(parts[k].have.axis == "-" for k in to_c)
    strides = all(parts[k].have == parts[k].want for k in to_c) and value.layout.extent[2] == extent[2]
    if not strides and (copies or not loose):
        value = _columns(low, value, parts, to_c, extent[2])
        parts = _parts(value, parts)
    return _rows(low, value, parts, extent)


def _side_by_side(parts: list[Move], in_c: Sequence[int], incoming: Sequence[int]) -> bool:
    """Whether slices of t with one element in a row become columns while rows stay rows: a product puts them together
    once they stand side by side."""
    rows = [part for part in parts if part.have.axis == "r"]
    from_z = all(parts[k].have.axis == "z" for k in incoming)
    few = prod(parts[k].size for k in incoming) <= _SIDE_BY_SIDE
    return not in_c and from_z and few and bool(rows) and all(part.want.axis == "r" for part in rows)


def _again(low: Lowering, value: Value, parts: list[Move], extent: Extent, loose: bool) -> Value:
    return _move(low, value, _parts(value, parts), extent, loose)


def _parts(value: Value, parts: list[Move]) -> list[Move]:
    """The moves that are left."""
    return [Move(dim[0], part.want) for dim, part in zip(value.layout.dims, parts, strict=True)]


def _below(low: Lowering, value: Value, parts: list[Move]) -> Value | None:
    """Slices of t that are wanted below each other, put there before columns leave for t: all of these slices, the
    innermost of t, in order, with no padding between their rows. None where that is not so."""
    _, height, columns = value.layout.extent
    down = [k for k, part in enumerate(parts) if part.have.axis == "z" and part.want.axis == "r"]
    down.sort(key=lambda k: -parts[k].have.stride)
    count = prod(parts[k].size for k in down)
    stays = all(part.have == part.want for part in parts if part.have.axis == "r" and part.want.axis == "r")
    if not (down and stays and value.layout.rows_full and value.rows is None and _runs(parts, down, 1)):
        return None
    if any(parts[k].want.stride != parts[k].have.stride * height for k in down):
        return None
    dims = list(value.layout.dims)
    for k, part in enumerate(parts):
        if k in down:
            dims[k] = (part.want,)
        elif part.have.axis == "z":
            dims[k] = (Piece(part.size, "z", part.have.stride // count),)
    t = value.layout.extent[0]
    return low.through(value, ("vstack", count), Layout(tuple(dims), (t // count, height * count, columns)))


def _arranged(parts: list[Move], z: list[int], r: list[int]) -> list[Move]:
    """Moves of pieces to dense places along z and r; those along c stay."""
    found = [Move(part.have, part.have) for part in parts]
    for axis, members in (("z", z), ("r", r)):
        stride = 1
        for k in reversed(members):
            found[k] = Move(parts[k].have, Piece(parts[k].size, axis, stride))
            stride *= parts[k].size
    return found


def _others(parts: list[Move], without: Sequence[int], axes: str) -> list[int]:
    """Pieces along z and r but some, outermost first as they are now."""
    mine = [k for k, part in enumerate(parts) if part.have.axis in axes and k not in without]
    return sorted(mine, key=lambda k: ("zr-".index(parts[k].have.axis), -parts[k].have.stride))


def _dense(value: Value, parts: list[Move], z: list[int], r: list[int]) -> Extent:
    return prod(parts[k].size for k in z), padded(prod(parts[k].size for k in r)), value.layout.extent[2]


def _columns_to_rows(low: Lowering, value: Value, parts: list[Move], incoming: list[int]) -> Value:
    """Nothing along c stays there: what is wanted there goes to the rows, then rows and columns are swapped."""
    r = sorted(incoming, key=lambda k: -parts[k].want.stride)
    z = _others(parts, incoming, "zr")
    moved = _rows(low, value, _arranged(parts, z, r), _dense(value, parts, z, r))
    return transposed(low, moved)


def _outside(layout: Layout, parts: list[Move], outer: list[int], inner: list[int]) -> bool:
    """Whether some columns stand in blocks of whole tiles of the others, which are to go elsewhere, with no gaps."""
    count = prod(parts[k].size for k in outer)
    block = layout.extent[2] // count
    if layout.extent[2] % (count * TILE):
        return False
    by_stride = sorted(outer, key=lambda k: -parts[k].have.stride)
    return _runs(parts, by_stride, block) and _inside(parts, inner, block)


def _stood_up(low: Lowering, value: Value, parts: list[Move]) -> Value:
    """All columns become rows, and no row a column: rows go to z first."""
    z = _others(parts, (), "zr")
    moved = _rows(low, value, _arranged(parts, z, []), _dense(value, parts, z, []))
    return transposed(low, moved)


def _expelled(low: Lowering, value: Value, parts: list[Move], expelled: list[int], kept: list[int]) -> Value | None:
    """Columns in blocks of what stays, padded to whole tiles, then a slice of t for each block. None where a row of
    cores has no room for so many."""
    kept = sorted(kept, key=lambda k: -parts[k].want.stride)
    block = padded(prod(parts[k].size for k in kept))
    count = prod(parts[k].size for k in expelled)
    wanted: dict[int, Piece] = {}
    for members, step in ((kept, 1), (expelled, block)):
        stride = step
        for k in reversed(members):
            wanted[k] = Piece(parts[k].size, "c", stride)
            stride *= parts[k].size
    # Blocks that lie like that already are cut as they are.
    own = value.layout.extent[2] // count if value.layout.extent[2] % (count * TILE) == 0 else 0
    by_stride = sorted((*expelled, *kept), key=lambda k: -parts[k].have.stride)
    outer = by_stride[: len(expelled)]
    inner = by_stride[len(expelled) :]
    if own and set(outer) == set(expelled) and _runs(parts, outer, own) and _inside(parts, inner, own):
        block = own
        wanted = {k: parts[k].have for k in (*expelled, *kept)}
    else:
        room = _divisible(low, count, block // TILE)
        if room is None:
            return None
        count = room
        target = [Move(part.have, wanted.get(k, part.have)) for k, part in enumerate(parts)]
        value = _columns(low, value, target, sorted(wanted), block * count)
    return _in_slices(low, value, expelled, count)


def _in_slices(low: Lowering, value: Value, members: Sequence[int], count: int) -> Value:
    """Blocks of columns as so many slices of t: the pieces that count the blocks go along z."""
    t, rows, columns = value.layout.extent
    block = columns // count
    dims = list(value.layout.dims)
    for k, dim in enumerate(value.layout.dims):
        piece = dim[0]
        if k in members:
            dims[k] = (Piece(piece.size, "z", piece.stride // block),)
        elif piece.axis == "z":
            dims[k] = (Piece(piece.size, "z", piece.stride * count),)
    return low.through(value, ("hslice", count), Layout(tuple(dims), (t * count, rows, block)))


def _divisible(low: Lowering, count: int, block: int) -> int | None:
    """So many blocks of tiles, and empty ones, that the cores of a row have room for them: 17 x 17 has no divisors.
    None where they never have."""
    (_, cores) = low.target.arch.grid
    room = low.target.widest_block
    for blocks in range(count, room * cores // block + 1):
        if any(blocks * block % n == 0 for n in range(-(-blocks * block // room), cores + 1)):
            return blocks
    return None


def _runs(parts: list[Move], members: list[int], step: int) -> bool:
    """Whether pieces follow each other without gaps, the innermost with that stride."""
    for k in reversed(members):
        if parts[k].have.stride != step:
            return False
        step *= parts[k].size
    return True


def _inside(parts: list[Move], members: list[int], extent: int) -> bool:
    return sum((parts[k].size - 1) * parts[k].have.stride for k in members) < extent


def _stacked(low: Lowering, value: Value, parts: list[Move], incoming: list[int]) -> Value:
    """What is wanted along c goes to the innermost of z, then slices of t are put side by side."""
    inner = sorted(incoming, key=lambda k: -parts[k].want.stride)
    z = [*_others(parts, incoming, "z"), *inner]
    r = _others(parts, incoming, "r")
    value = _rows(low, value, _arranged(parts, z, r), _dense(value, parts, z, r))
    count = prod(parts[k].size for k in incoming)
    t, rows, columns = value.layout.extent
    dims = list(value.layout.dims)
    for k, dim in enumerate(value.layout.dims):
        piece = dim[0]
        if k in incoming:
            dims[k] = (Piece(piece.size, "c", piece.stride * columns),)
        elif piece.axis == "z":
            dims[k] = (Piece(piece.size, "z", piece.stride // count),)
    return low.through(value, ("hstack", count), Layout(tuple(dims), (t // count, rows, columns * count)))


def _columns(low: Lowering, value: Value, parts: list[Move], members: list[int], extent: int) -> Value:
    """Columns to other places by a product with a constant."""
    have = np.zeros(1, np.int64)
    want = np.zeros(1, np.int64)
    for k in members:
        count = np.arange(parts[k].size)
        stride = parts[k].have.stride if parts[k].have.axis == "c" else 0
        have = (have[:, None] + count[None, :] * stride).ravel()
        want = (want[:, None] + count[None, :] * parts[k].want.stride).ravel()
    shape = value.layout.extent[2], extent
    check_constant_size(f"a move of columns before {low.name()}", shape, _MOST_OF_A_MOVE)
    matrix = Sparse.of(shape, have, want).to_dense()
    dims = list(value.layout.dims)
    for k in members:
        dims[k] = (parts[k].want,)
    t, rows, _ = value.layout.extent
    return low.times(value, matrix, Layout(tuple(dims), (t, rows, extent)))


def _rows(low: Lowering, value: Value, parts: list[Move], extent: Extent) -> Value:
    """All pieces that are not along c to their places along z and r."""
    t, height, _ = value.layout.extent
    new_t, new_height = extent[:2]
    mine = [part for part in parts if part.have.axis != "c" and part.want.axis != "-"]
    have = np.zeros(1, np.int64)
    want = np.zeros(1, np.int64)
    for part in mine:
        count = np.arange(part.size)
        step = {"z": height, "r": 1, "-": 0}[part.have.axis] * part.have.stride
        new_step = {"z": new_height, "r": 1}[part.want.axis] * part.want.stride
        have = (have[:, None] + count[None, :] * step).ravel()
        want = (want[:, None] + count[None, :] * new_step).ravel()
    dims = tuple(
        (part.want,) if part.have.axis != "c" else dim for dim, part in zip(value.layout.dims, parts, strict=True)
    )
    layout = Layout(dims, (new_t, new_height, value.layout.extent[2]))
    if t * height == new_t * new_height and (have == want).all():
        return _cut_or_stacked(low, value, layout)
    if (
        t == 1
        and new_height == height
        and all(p.have == p.want or (p.have.axis, p.want.axis) == ("-", "z") for p in mine)
    ):
        return low.through(value, ("broadcast", "z", new_t), layout)
    return low.moved(value, Sparse.of((new_t * new_height, t * height), want, have), layout)


def _cut_or_stacked(low: Lowering, value: Value, layout: Layout) -> Value:
    """Rows keep their number through t: only how many make a slice changes."""
    height = value.layout.extent[1]
    new_height = layout.extent[1]
    if height == new_height:
        return replace(value, layout=layout)
    if value.rows is not None:
        return replace(value, layout=layout)  # the matrix counts rows through t
    if height % new_height == 0:
        return low.through(value, ("vslice", height // new_height), layout)
    if new_height % height == 0:
        return low.through(value, ("vstack", new_height // height), layout)
    matrix = Sparse.gather(np.arange(height * value.layout.extent[0]), height * value.layout.extent[0])
    return low.moved(value, matrix, layout)
