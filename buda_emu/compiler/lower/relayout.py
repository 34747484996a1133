"""Moves of a value to another layout, by the fewest kinds of ops: row moves, column products, transposes, TMs."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from buda_emu.compiler.graph.builder import check_constant_size
from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.compiler.lower.layout import (
    TILE,
    Extent,
    Layout,
    Move,
    Piece,
    dense_layout,
    merge_pieces,
    moves,
    padded_size,
)
from buda_emu.compiler.lower.lowering import LoweredValue, Lowering, swap_rows_and_columns
from buda_emu.support.errors import InternalError

_MOST_OF_A_MOVE = 1 << 29
"""Largest matrix that moves columns, in elements: 1 GiB in Float16_b."""
LARGEST_COLUMN_MATRIX = 200_000_000
"""Largest matrix of a product that moves columns, in elements, where rows can be moved instead: 800 MB of host memory
in float32, several times while it is compiled. Below this the product is better, as it is up to 25 times as quick: 64 x
192 columns in another order took 79 million cycles for 64 inputs of 19 rows, their rows 1,900 million."""
_SIDE_BY_SIDE = 128
"""Largest number of slices of t with one element in a row that are put side by side."""


def relayout(low: Lowering, value: LoweredValue, want: Layout, *, loose: bool = False) -> LoweredValue:
    """Return the value in another layout of the same dimensions, by ops and TMs that are added. `loose`: columns may
    keep their gaps and order, as long as just the wanted pieces lie there."""
    parts = moves(value.layout, want)
    if parts is None:
        plain = _whole_dims(value.layout)
        value = relayout(low, value, plain)
        parts = moves(value.layout, want)
        if parts is None:
            raise InternalError(f"no common pieces of {plain} and {want}")
    dims = want.dims
    as_pieces = Layout(tuple((part.have,) for part in parts), value.layout.extent)
    moved = _move(low, replace(value, layout=as_pieces), parts, want.extent, loose)
    return replace(moved, layout=_restore_dims(moved.layout, parts, dims))


def stand_columns_up(low: Lowering, value: LoweredValue) -> LoweredValue:
    """Return the value with all columns turned into rows, so that a move of rows can reorder them; rows become slices
    of t."""
    parts = moves(value.layout, value.layout)
    if parts is None:
        raise InternalError(f"no pieces of {value.layout}")
    dims = value.layout.dims
    as_pieces = Layout(tuple((part.have,) for part in parts), value.layout.extent)
    moved = _stand_columns_up(low, replace(value, layout=as_pieces), parts)
    return replace(moved, layout=_restore_dims(moved.layout, parts, dims))


def _whole_dims(layout: Layout) -> Layout:
    """Return the layout with every dimension in one piece, on the axis of its innermost piece."""
    shape = layout.shape
    axes = [dim[-1].axis if dim else "z" for dim in layout.dims]
    order = {axis: [place for place, dim_axis in enumerate(axes) if dim_axis == axis] for axis in "zrc-"}
    return dense_layout(shape, [*order["-"], *order["z"]], order["r"], order["c"])


def _restore_dims(layout: Layout, parts: Sequence[Move], dims: tuple[tuple[Piece, ...], ...]) -> Layout:
    """Join the pieces of a moved layout, one dimension each, to the value's dimensions `dims` again."""
    new_dims: list[tuple[Piece, ...]] = []
    pieces = [dim[0] if dim else None for dim in layout.dims]
    at = 0
    for dim in dims:
        size = prod(piece.size for piece in dim)
        dim_pieces = list[Piece]()
        while prod(piece.size for piece in dim_pieces) < size:
            piece = pieces[at]
            if piece is not None:
                dim_pieces.append(piece)
            at += 1
        new_dims.append(merge_pieces(dim_pieces))
    if at != len(parts):
        raise InternalError(f"{len(parts)} pieces for {dims}")
    return Layout(tuple(new_dims), layout.extent)


def _move(low: Lowering, value: LoweredValue, parts: list[Move], extent: Extent, loose: bool) -> LoweredValue:
    """Move a value whose layout has one dimension for each of `parts`, in order, to their wanted places in a tensor of
    `extent`. `loose`: columns may keep their gaps and order."""
    if not parts:
        return _move_rows(low, value, parts, extent)
    changed = _change_columns(low, value, parts)
    if changed is not None:
        return _move_further(low, changed, parts, extent, loose)
    to_c = [k for k, part in enumerate(parts) if part.want.axis == "c"]
    copies = any(parts[k].have.axis == "-" for k in to_c)
    strides = all(parts[k].have == parts[k].want for k in to_c) and value.layout.extent[2] == extent[2]
    if not strides and (copies or not loose):
        if not copies and value.layout.extent[2] * extent[2] > LARGEST_COLUMN_MATRIX:
            return _move_further(low, _stand_columns_up(low, value, parts), parts, extent, loose)
        value = _move_columns(low, value, parts, to_c, extent[2])
        parts = _remaining_moves(value, parts)
    return _move_rows(low, value, parts, extent)


def _change_columns(low: Lowering, value: LoweredValue, parts: list[Move]) -> LoweredValue | None:
    """Bring pieces into the columns or out of them, by one step, and return the value; None if the pieces there are the
    wanted ones."""
    in_c = [k for k, part in enumerate(parts) if part.have.axis == "c"]
    to_c = [k for k, part in enumerate(parts) if part.want.axis == "c"]
    staying = [k for k in in_c if k in to_c]
    incoming = [k for k in to_c if parts[k].have.axis in "zr"]
    expelled = [k for k in in_c if k not in to_c]
    if incoming and not staying and not _may_stand_side_by_side(parts, in_c, incoming):
        return _columns_to_rows(low, value, parts, incoming)
    if incoming and staying and expelled and _columns_count_blocks(value.layout, parts, staying, expelled):
        # Slices of t, though wanted along columns: what they hold leaves these, then rows and columns are swapped.
        return _cut_blocks_into_slices(low, value, staying, prod(parts[k].size for k in staying))
    if expelled:
        return _expel(low, value, parts, expelled, staying)
    if incoming:
        return _put_side_by_side(low, value, parts, incoming)
    return None


def _expel(
    low: Lowering, value: LoweredValue, parts: list[Move], expelled: list[int], staying: list[int]
) -> LoweredValue:
    """Take the first step, of those that are possible, to bring the pieces `expelled` out of the columns, where the
    pieces `staying` remain, and return the value: put slices below each other, cut columns into slices, or turn all
    columns into rows."""
    apart = _put_slices_below(low, value, parts)
    if apart is None and staying:
        apart = _expel_columns(low, value, parts, expelled, staying)
    if apart is None:
        return _stand_columns_up(low, value, parts)
    return apart


def _may_stand_side_by_side(parts: list[Move], in_c: Sequence[int], incoming: Sequence[int]) -> bool:
    """Return whether slices of t with one element in a row (`incoming`) become columns while rows stay rows: a product
    joins them once they stand side by side. `in_c`: pieces that are columns already."""
    rows = [part for part in parts if part.have.axis == "r"]
    from_z = all(parts[k].have.axis == "z" for k in incoming)
    few = prod(parts[k].size for k in incoming) <= _SIDE_BY_SIDE
    return not in_c and from_z and few and bool(rows) and all(part.want.axis == "r" for part in rows)


def _move_further(low: Lowering, value: LoweredValue, parts: list[Move], extent: Extent, loose: bool) -> LoweredValue:
    """Move a value on towards the wanted places of `parts` in a tensor of `extent`, after one step has changed where
    its pieces are. `loose`: columns may keep their gaps and order."""
    return _move(low, value, _remaining_moves(value, parts), extent, loose)


def _remaining_moves(value: LoweredValue, parts: list[Move]) -> list[Move]:
    """Return the moves from the value's present layout to the wanted places of these parts."""
    return [Move(dim[0], part.want) for dim, part in zip(value.layout.dims, parts, strict=True)]


def _rows_stay(parts: Sequence[Move]) -> bool:
    """Return whether no piece that lies along rows before and after has to move."""
    return all(part.have == part.want for part in parts if part.have.axis == "r" and part.want.axis == "r")


def _put_slices_below(low: Lowering, value: LoweredValue, parts: list[Move]) -> LoweredValue | None:
    """Return the value with slices of t below each other (vstack), before columns leave for t: all slices that are
    wanted along rows, the innermost of t, in order, with no padding between their rows. Return None if they do not lie
    like that."""
    _, height, columns = value.layout.extent
    down = [k for k, part in enumerate(parts) if part.have.axis == "z" and part.want.axis == "r"]
    down.sort(key=lambda k: -parts[k].have.stride)
    count = prod(parts[k].size for k in down)
    if not (down and value.layout.rows_full and value.rows is None and _follow_without_gaps(parts, down, 1)):
        return None
    if not _rows_stay(parts) or any(parts[k].want.stride != parts[k].have.stride * height for k in down):
        return None
    dims = list(value.layout.dims)
    for k, part in enumerate(parts):
        if k in down:
            dims[k] = (part.want,)
        elif part.have.axis == "z":
            dims[k] = (Piece(part.size, "z", part.have.stride // count),)
    t = value.layout.extent[0]
    return low.through(value, ("vstack", count), Layout(tuple(dims), (t // count, height * count, columns)))


def _dense_moves(parts: list[Move], z: list[int], r: list[int]) -> list[Move]:
    """Return moves of the pieces numbered `z` and `r`, outermost first, to dense places along z and rows; pieces along
    c stay."""
    dense = [Move(part.have, part.have) for part in parts]
    for axis, members in (("z", z), ("r", r)):
        stride = 1
        for k in reversed(members):
            dense[k] = Move(parts[k].have, Piece(parts[k].size, axis, stride))
            stride *= parts[k].size
    return dense


def _other_pieces(parts: list[Move], without: Sequence[int], axes: str) -> list[int]:
    """Return the numbers of the pieces along these axes that are not in `without`, outermost first."""
    others = [k for k, part in enumerate(parts) if part.have.axis in axes and k not in without]
    return sorted(others, key=lambda k: ("zr-".index(parts[k].have.axis), -parts[k].have.stride))


def _dense_extent(value: LoweredValue, parts: list[Move], z: list[int], r: list[int]) -> Extent:
    """Return the extent of a tensor with the pieces numbered `z` along slices and `r` along rows, without gaps, and the
    columns of the value."""
    return prod(parts[k].size for k in z), padded_size(prod(parts[k].size for k in r)), value.layout.extent[2]


def _columns_to_rows(low: Lowering, value: LoweredValue, parts: list[Move], incoming: list[int]) -> LoweredValue:
    """Move the pieces that are wanted along c to the rows, then swap rows and columns; no piece along c stays there."""
    r = sorted(incoming, key=lambda k: -parts[k].want.stride)
    z = _other_pieces(parts, incoming, "zr")
    moved = _move_rows(low, value, _dense_moves(parts, z, r), _dense_extent(value, parts, z, r))
    return swap_rows_and_columns(low, moved)


def _columns_count_blocks(layout: Layout, parts: list[Move], outer: list[int], inner: list[int]) -> bool:
    """Return whether the pieces `outer` of the columns count blocks of whole tiles, without gaps, and the pieces
    `inner` lie within a block."""
    count = prod(parts[k].size for k in outer)
    block = layout.extent[2] // count
    if layout.extent[2] % (count * TILE):
        return False
    by_stride = sorted(outer, key=lambda k: -parts[k].have.stride)
    return _follow_without_gaps(parts, by_stride, block) and _lie_within(parts, inner, block)


def _stand_columns_up(low: Lowering, value: LoweredValue, parts: list[Move]) -> LoweredValue:
    """Turn all columns into rows, and no row into a column: rows go to z first. Returns the value."""
    z = _other_pieces(parts, (), "zr")
    moved = _move_rows(low, value, _dense_moves(parts, z, []), _dense_extent(value, parts, z, []))
    return swap_rows_and_columns(low, moved)


def _expel_columns(
    low: Lowering, value: LoweredValue, parts: list[Move], expelled: list[int], staying: list[int]
) -> LoweredValue | None:
    """Arrange columns in blocks of those that stay, padded to whole tiles, then make a slice of t of each block. Return
    None if a row of cores has no room for so many."""
    staying = sorted(staying, key=lambda k: -parts[k].want.stride)
    block = padded_size(prod(parts[k].size for k in staying))
    count = prod(parts[k].size for k in expelled)
    new_pieces: dict[int, Piece] = {}
    for members, step in ((staying, 1), (expelled, block)):
        stride = step
        for k in reversed(members):
            new_pieces[k] = Piece(parts[k].size, "c", stride)
            stride *= parts[k].size
    # Blocks that lie like that already are cut as they are.
    if value.layout.extent[2] % (count * TILE) == 0:
        present_block = value.layout.extent[2] // count
    else:
        present_block = 0
    by_stride = sorted((*expelled, *staying), key=lambda k: -parts[k].have.stride)
    outer = by_stride[: len(expelled)]
    inner = by_stride[len(expelled) :]
    if (
        present_block
        and set(outer) == set(expelled)
        and _follow_without_gaps(parts, outer, present_block)
        and _lie_within(parts, inner, present_block)
    ):
        block = present_block
        new_pieces = {k: parts[k].have for k in (*expelled, *staying)}
    else:
        room = _divisible_blocks(low, count, block // TILE)
        if room is None:
            return None
        count = room
        target = [Move(part.have, new_pieces.get(k, part.have)) for k, part in enumerate(parts)]
        value = _move_columns(low, value, target, sorted(new_pieces), block * count)
    return _cut_blocks_into_slices(low, value, expelled, count)


def _cut_blocks_into_slices(low: Lowering, value: LoweredValue, members: Sequence[int], count: int) -> LoweredValue:
    """Turn the `count` blocks of columns into slices of t: the pieces `members`, which count the blocks, go along z."""
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


def _divisible_blocks(low: Lowering, count: int, block: int) -> int | None:
    """Return the number of blocks of columns, `count` and empty ones that are added, for which the cores of a row have
    room: 17 x 17 has no divisors. Return None if they never have. `block`: tiles of each."""
    (_, cores) = low.target.arch.grid
    room = low.target.widest_block
    for blocks in range(count, room * cores // block + 1):
        if any(blocks * block % n == 0 for n in range(-(-blocks * block // room), cores + 1)):
            return blocks
    return None


def _follow_without_gaps(parts: list[Move], members: list[int], step: int) -> bool:
    """Return whether the pieces `members` follow each other without gaps, the innermost with stride `step`."""
    for k in reversed(members):
        if parts[k].have.stride != step:
            return False
        step *= parts[k].size
    return True


def _lie_within(parts: list[Move], members: list[int], extent: int) -> bool:
    """Return whether the last element of the pieces `members` lies within an extent along their axis."""
    return sum((parts[k].size - 1) * parts[k].have.stride for k in members) < extent


def _put_side_by_side(low: Lowering, value: LoweredValue, parts: list[Move], incoming: list[int]) -> LoweredValue:
    """Move the pieces that are wanted along c to the innermost of z, then put slices of t side by side."""
    inner = sorted(incoming, key=lambda k: -parts[k].want.stride)
    z = [*_other_pieces(parts, incoming, "z"), *inner]
    r = _other_pieces(parts, incoming, "r")
    value = _move_rows(low, value, _dense_moves(parts, z, r), _dense_extent(value, parts, z, r))
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


def _move_columns(
    low: Lowering, value: LoweredValue, parts: list[Move], members: list[int], extent: int
) -> LoweredValue:
    """Move the columns of the pieces `members` to their wanted places, `extent` columns in all, by a product with a
    constant."""
    have = np.zeros(1, np.int64)
    want = np.zeros(1, np.int64)
    for k in members:
        count = np.arange(parts[k].size)
        if parts[k].have.axis == "c":
            stride = parts[k].have.stride
        else:
            stride = 0
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


def _move_rows(low: Lowering, value: LoweredValue, parts: list[Move], extent: Extent) -> LoweredValue:
    """Move all pieces that are not along c to their wanted places along z and rows of a tensor of `extent`, by a TM if
    one does it, else by a move of rows."""
    t, height, _ = value.layout.extent
    new_t, new_height = extent[:2]
    row_moves = [part for part in parts if part.have.axis != "c" and part.want.axis != "-"]
    have = np.zeros(1, np.int64)
    want = np.zeros(1, np.int64)
    for part in row_moves:
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
        return _slice_or_stack(low, value, layout)
    if (
        t == 1
        and new_height == height
        and all(p.have == p.want or (p.have.axis, p.want.axis) == ("-", "z") for p in row_moves)
    ):
        return low.through(value, ("broadcast", "z", new_t), layout)
    return low.move_rows(value, Sparse.of((new_t * new_height, t * height), want, have), layout)


def _slice_or_stack(low: Lowering, value: LoweredValue, layout: Layout) -> LoweredValue:
    """Return the value in a layout with another number of rows in a slice; rows keep their number, counted through t.
    It takes one TM if one height divides the other, else a move of rows."""
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
    return low.move_rows(value, matrix, layout)
