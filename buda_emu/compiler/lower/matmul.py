"""Matmuls: by a constant on either side, or of two values."""

from math import prod

import numpy as np

from buda_emu.arithmetic.tensor.host import scattered
from buda_emu.compiler.graph.graph import Array, Node
from buda_emu.compiler.graph.registry import front_op
from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.compiler.lower.elementwise import expanded
from buda_emu.compiler.lower.layout import TILE, Layout, Piece, ordered, padded
from buda_emu.compiler.lower.linear import along
from buda_emu.compiler.lower.lowering import Lowering, Value, lowers, transposed
from buda_emu.compiler.lower.relayout import relayout
from buda_emu.compiler.lower.tiles import Use
from buda_emu.performance.timing.epoch.tasks import parts_of_blocks

WIDE = 256 * TILE
"""Columns of a product with a constant that are computed at once."""
SHARING = 8
"""Columns of cores that share a slice of them evenly."""


@lowers("matmul")
def matmul(low: Lowering, node: Node) -> Value:
    """By a constant matrix on the columns, by a constant matrix on the rows, or of two values."""
    left, right = (low.array(name) for name in node.inputs)
    if right is not None and prod(right.shape[:-2]) == 1:
        value = expanded(low.values[node.inputs[0]], (*node.shape[:-1], low.graph[node.inputs[0]].shape[-1]))
        return weighted(low, value, right.reshape(right.shape[-2:]), node)
    if left is not None and prod(left.shape[:-2]) == 1:
        value = expanded(low.values[node.inputs[1]], (*node.shape[:-2], *low.graph[node.inputs[1]].shape[-2:]))
        return along(low, value, len(node.shape) - 2, Sparse.dense(left.reshape(left.shape[-2:]).astype(np.float32)))
    return _general(low, node)


def weighted(low: Lowering, value: Value, matrix: Array, node: Node) -> Value:
    """The last dimension times a constant [before, after]: it goes along the columns, all others stay where they
    are."""
    dim, width = len(node.shape) - 1, matrix.shape[1]
    if padded(width) > WIDE:
        return _sliced(low, value, matrix, dim, _goes_out(low, node))
    value = columns_of(low, value, (dim,))
    layout = value.layout
    places = Layout((layout.dims[dim],), layout.extent).place("c").ravel()
    rows = slice(places[0], places[0] + len(places)) if (np.diff(places) == 1).all() else places
    held = scattered(matrix, (layout.extent[2], padded(width)), (rows, slice(0, width)))
    dims = list(layout.dims)
    dims[dim] = (Piece(width, "c", 1),) if width > 1 else ()
    return low.times(value, held, Layout(tuple(dims), (*layout.extent[:2], padded(width))), suffix="matmul")


def _goes_out(low: Lowering, node: Node) -> bool:
    """Whether slices of a value's columns are slices of an output: it is one, or only what is done to each element by
    itself comes after it."""
    if any(output.value == node.name for output in low.graph.outputs):
        return True
    readers = [low.graph[name] for name in low.graph.users()[node.name]]
    if len(readers) != 1 or readers[0].shape[-1] != node.shape[-1] or prod(readers[0].shape) != prod(node.shape):
        return False
    others = [low.array(name) for name in readers[0].inputs if name != node.name]
    alone = all(other is not None and other.size == 1 for other in others)
    by_itself = readers[0].op == "reshape" or front_op(readers[0].op).family == "elementwise"
    return alone and by_itself and _goes_out(low, readers[0])


def _sliced(low: Lowering, value: Value, matrix: Array, dim: int, out: bool) -> Value:
    """More columns than the cores have room for: slices of them along t, one after the other, all other dimensions
    along the rows. Who reads it puts the slices side by side (FRONTEND 4.5: streaming in C); `out`: nobody does."""
    shape = value.layout.shape
    rest = [place for place in range(len(shape)) if place != dim]
    value = relayout(low, value, ordered(shape, [], rest, [dim]))
    _, rows, inner = value.layout.extent
    width = matrix.shape[1]
    count, columns = _slices(padded(width), out)
    held = scattered(matrix, (inner, columns), (slice(0, matrix.shape[0]), slice(0, width)))
    slices = held.reshape(inner, count, columns // count).transpose(1, 0, 2)
    right = Use(low.constant(slices, "value", "weights"))
    left = low.use(value)
    name = low.op(
        "matmul",
        [Use(left.source, (*left.tms, ("broadcast", "z", count))), right],
        (count, rows // TILE, columns // count // TILE),
        suffix="matmul",
        inner=inner // TILE,
    )
    dims = list(value.layout.dims)
    dims[dim] = (Piece(width, "c", 1),)
    return Value(name, Layout(tuple(dims), (1, rows, columns)), (("hstack", count),), None, value.clean_rows, True)


def _slices(columns: int, out: bool) -> tuple[int, int]:
    """How many slices, and all their columns: such as eight cores share evenly, if that takes a thirty-second more, of
    these the fewest columns, and slices; of an output, whose slices go to the host one by one, the fewest columns with
    those of one part, for which nothing else is done (`timing/epoch/parts.py`). Else as few slices as no columns are
    added for."""
    most = WIDE // 2
    least = -(-columns // most)
    even = {n: -(-columns // (n * SHARING * TILE)) * n * SHARING * TILE for n in range(least, 2 * least + 1)}
    few = {n: size for n, size in even.items() if size // n <= most and size <= columns + columns // TILE}
    if few:
        count = min(few, key=lambda n: few[n] * (1 + 1 / parts_of_blocks(n, (1, 1)) if out else 1))
        return count, few[count]
    return next(n for n in range(1, columns // TILE + 1) if columns % (n * TILE) == 0 and columns // n <= most), columns


def columns_of(low: Lowering, value: Value, dims: tuple[int, ...]) -> Value:
    """Just these dimensions along the columns, with or without gaps; the others dense along z and rows as they are."""
    layout = value.layout
    mine = {piece for dim in dims for piece in layout.dims[dim]}
    if all((piece.axis == "c") == (piece in mine) for piece in layout.pieces if piece.axis != "-") and not any(
        piece.axis == "-" for piece in layout.pieces
    ):
        return value
    shape = layout.shape
    others = [place for place in range(len(shape)) if place not in dims]
    z = [place for place in others if layout.dims[place] and layout.dims[place][-1].axis in "z-"]
    rows = [place for place in others if place not in z]
    if rows and any(piece.axis == "c" for place in rows for piece in layout.dims[place][:-1]):
        rows = sorted(rows)
    if not rows or prod(shape[place] for place in rows) == 1:
        rows, z = others[-1:], others[:-1]
    z.sort(key=lambda place: (-_stride(layout, place), place))
    return relayout(low, value, ordered(shape, z, rows, list(dims)), loose=True)


def _stride(layout: Layout, place: int) -> int:
    dim = layout.dims[place]
    return dim[-1].stride if dim and dim[-1].axis == "z" else 0


def _general(low: Lowering, node: Node) -> Value:
    """Both operands per slice of t; the second one may be read transposed."""
    shapes = [low.graph[name].shape for name in node.inputs]
    batch = node.shape[:-2]
    (m, k), n = shapes[0][-2:], shapes[1][-1]
    lead = list(range(len(batch)))
    rank = len(batch) + 2
    layouts = [
        ordered((*batch, m, k), lead, [rank - 2], [rank - 1]),
        ordered((*batch, k, n), lead, [rank - 2], [rank - 1]),
    ]
    uses: list[Use] = []
    clean: list[tuple[bool, bool]] = []
    values: list[Value | None] = []
    for number, (name, layout) in enumerate(zip(node.inputs, layouts, strict=True)):
        array = low.array(name)
        if array is not None:
            use, _ = _held(low, np.broadcast_to(array, (*batch, *array.shape[-2:])), layout)
            uses.append(use)
            clean.append((True, True))
            values.append(None)
            continue
        value = low.values[name]
        own_batch = value.layout.shape[:-2]
        if number == 1 and prod(own_batch) == 1:
            layout = ordered((*(1,) * len(batch), k, n), lead, [rank - 2], [rank - 1])
            value = expanded(value, layout.shape)
        else:
            value = expanded(value, layout.shape)
        swap = number == 1 and _swapped(value.layout, rank)
        if swap:
            swapped = ordered(layout.shape, lead, [rank - 1], [rank - 2])
            value = transposed(low, relayout(low, value, swapped))
        else:
            value = relayout(low, value, layout)
        values.append(value)
        uses.append(Use(""))
        clean.append((value.clean_rows, value.clean_columns))
    if not (clean[0][1] or clean[1][0]):
        assert values[0] is not None
        values[0] = low.masked(values[0], columns=True)
    t = prod(batch)
    for number, value in enumerate(values):
        if value is not None:
            use = low.use(value, transpose=number == 1)
            have = value.layout.extent[0]
            uses[number] = use if have == t else Use(use.source, (*use.tms, ("broadcast", "z", t)))
    layout = ordered(node.shape, lead, [rank - 2], [rank - 1])
    _, rows, columns = layout.extent
    name = low.op("matmul", uses, (t, rows // TILE, columns // TILE), inner=padded(k) // TILE)
    first, second = values
    return Value(name, layout, (), None, first.clean_rows if first else True, second.clean_columns if second else True)


def _swapped(layout: Layout, rank: int) -> bool:
    """Whether the rows that a product wants lie along the columns."""
    return any(piece.axis == "c" for piece in layout.dims[rank - 2])


def _held(low: Lowering, array: Array, layout: Layout) -> tuple[Use, tuple[bool, bool]]:
    """A constant with zeros in its padding."""
    values = np.zeros(layout.extent, np.float32)
    full = layout.place("zrc")
    values.reshape(-1)[full.ravel()] = np.asarray(array, np.float32).reshape(-1)
    if len(values) > 1 and (values == values[:1]).all():
        return Use(low.constant(values[:1]), (("broadcast", "z", len(values)),)), (True, True)
    return Use(low.constant(values)), (True, True)
