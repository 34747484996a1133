"""Lowerings of element-wise ops: both operands get one layout, and broadcasts become TMs if possible."""

from collections.abc import Container, Iterator
from dataclasses import replace
from math import prod
from typing import Final

import numpy as np

from buda_emu.compiler.graph.graph import Array, Graph, Node, Shape, never_negative
from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.compiler.lower.layout import (
    TILE,
    Dim,
    Extent,
    Layout,
    Piece,
    axes_of,
    layout_on_axes,
    moves,
    reshape_layout,
    standard,
)
from buda_emu.compiler.lower.lowering import LoweredValue, Lowering, lowers
from buda_emu.compiler.lower.relayout import relayout
from buda_emu.compiler.lower.tiles import Tm, Use

_SFPU: Final = {
    "exp": "exp", "log": "log", "sqrt": "sqrt", "reciprocal": "reciprocal", "sigmoid": "sigmoid", "tanh": "tanh",
    "gelu_tanh": "gelu", "sine": "sine", "cosine": "cosine", "abs": "abs", "square": "square", "power": "power",
    "leaky_relu": "lrelu",
}  # fmt: skip
"""Netlist ops of front-end ops (FRONTEND 3.1)."""
_ZERO_STAYS: Final = {"sqrt", "tanh", "gelu_tanh", "sine", "abs", "square", "power", "leaky_relu", "relu", "identity"}
_NEEDS_ZEROS: Final = {"sqrt"}
"""Ops that stop on a negative number, even in the padding (OPS 5)."""
_POLE_AT_ZERO: Final = {"reciprocal", "log"}
"""Ops whose result at 0 is huge: it is masked where the padding is 0. Otherwise what is multiplied there again and
again, as in layers with a residual, overflows and spoils elements of the same tile (0 times infinity in a product)."""
_STOPS: Final = {"sqrt", "reciprocal"}
"""Ops that stop on an element without a result (OPS 5); a reciprocal may be -inf."""
_PARTIAL: Final = {*_STOPS, "log"}
"""Ops that have no result for some numbers below 0."""
_BINARY: Final = {"add": "add", "subtract": "subtract", "multiply": "multiply", "maximum": "maximum"}


@lowers(*_SFPU)
def sfpu(low: Lowering, node: Node) -> LoweredValue:
    """Lower an op of the vector unit, such as exp or sqrt, to one netlist op; padding with which it would stop or give
    huge numbers is masked."""
    value = materialise(low, low.values[node.inputs[0]])
    if node.op in _NEEDS_ZEROS and not never_negative(low.graph, node.inputs[0]):
        value = low.mask_padding(value, rows=not value.same_rows, columns=not value.same_columns)
    attrs = {{"exp": "exp", "slope": "slope"}[key]: value_of_attr for key, value_of_attr in node.attrs.items()}
    name = low.op(_SFPU[node.op], [low.use(value, transpose=True)], value.shape_in_tiles, **attrs)
    result = _elementwise_result(low, value, name, node.op)
    if node.op in _POLE_AT_ZERO:
        result = low.mask_padding(result, rows=value.clean_rows, columns=value.clean_columns)
    return result


def mark_undefined_results(low: Lowering, node: Node) -> None:
    """Note in `low` that a node's elements may be NaN or without a result, and for the whole graph that one of them
    would stop the reference: a root or a reciprocal of a value that may be NaN or below 0."""
    after_nan = any(name in low.undefined for name in node.inputs)
    partial = node.op in _PARTIAL and not never_negative(low.graph, node.inputs[0])
    if after_nan or (partial and node.op != "reciprocal"):
        low.undefined.add(node.name)
    if node.op in _STOPS and (after_nan or partial):
        low.out.undefined_is_nan = True


@lowers("relu")
def relu(low: Lowering, node: Node) -> LoweredValue:
    """Lower to a nop that clamps as it packs (FRONTEND 3.2)."""
    value = materialise(low, low.values[node.inputs[0]])
    threshold = float(node.attrs.get("threshold", 0.0))
    mode = node.attrs.get("mode", "min")
    name = low.op(
        "nop",
        [low.use(value, transpose=True)],
        value.shape_in_tiles,
        relu_en=True,
        relu_threshold=threshold,
        relu_mode=mode,
    )
    return _elementwise_result(low, value, name, "relu")


@lowers("identity")
def identity(low: Lowering, node: Node) -> LoweredValue:
    """Lower to the operand itself."""
    return low.values[node.inputs[0]]


def _elementwise_result(low: Lowering, value: LoweredValue, name: str, op: str) -> LoweredValue:
    """Return the value that the netlist op `name` computes element by element from another; its padding is 0 if it was
    and the core op `op` maps 0 to 0."""
    stays = op in _ZERO_STAYS
    return replace(
        low.real(value),
        source=name,
        tms=(),
        clean_rows=value.clean_rows and stays,
        clean_columns=value.clean_columns and stays,
    )


def materialise(low: Lowering, value: LoweredValue) -> LoweredValue:
    """Return the value with every element in its own place: repeats that the layout only describes become rows and
    columns."""
    if not any(piece.axis == "-" for piece in value.layout.pieces):
        return low.real(value)
    return low.real(relayout(low, value, standard(value.layout.shape)))


@lowers(*_BINARY)
def binary(low: Lowering, node: Node) -> LoweredValue:
    """Lower an addition, subtraction, product or maximum to one netlist op on two operands of one layout."""
    arrays = [low.array(name) for name in node.inputs]
    layout = _common_layout(low, node, arrays)
    uses: list[Use] = []
    clean: list[tuple[bool, bool]] = []
    same: list[tuple[bool, bool]] = []
    for name, array in zip(node.inputs, arrays, strict=True):
        if array is not None:
            use, flags = constant_use(low, array, node.shape, layout)
            uses.append(use)
            clean.append(flags)
            same.append((not flags[0], not flags[1]))
            continue
        value = low.values[name]
        value = expand_layout(value, node.shape)
        use, flags, copies = operand(low, value, layout)
        uses.append(use)
        clean.append(flags)
        same.append(copies)
    if node.op == "multiply":
        all_or_any = any
    else:
        all_or_any = all
    t, r, c = layout.extent
    name = low.op(_BINARY[node.op], uses, (t, r // TILE, c // TILE))
    return LoweredValue(
        source=name,
        layout=layout,
        tms=(),
        rows=None,
        clean_rows=all_or_any(flag[0] for flag in clean),
        clean_columns=all_or_any(flag[1] for flag in clean),
        same_rows=all(flag[0] for flag in same) and r == TILE and not layout.on("r"),
        same_columns=all(flag[1] for flag in same) and c == TILE and not layout.on("c"),
    )


def _common_layout(low: Lowering, node: Node, arrays: list[Array | None]) -> Layout:
    """Return the layout in which a binary op reads both operands: that of an operand with the shape of the result,
    preferably one without pending moves of rows. If there is none, it is that of a tensor to which the sums are
    reshaped, or the standard layout. `arrays` holds the constant operands, None for those that are computed."""
    values = [low.values[name] for name, array in zip(node.inputs, arrays, strict=True) if array is None]
    full = [
        value
        for value in values
        if _pad_rank(value.layout, len(node.shape)).shape == node.shape
        and not any(piece.axis == "-" for piece in value.layout.pieces)
    ]
    if not full:
        return _layout_of_reshape(low.graph, node) or standard(node.shape)
    best = min(full, key=lambda value: (value.rows is not None, np.prod(value.shape_in_tiles)))
    return _pad_rank(best.layout, len(node.shape))


def _layout_of_reshape(graph: Graph, node: Node) -> Layout | None:
    """Return a layout of an element-wise node whose dimensions lie along the axes of the tensor to which its sums are
    reshaped. Return None if something else than sums reads the value before it is reshaped, or if the layout takes no
    fewer tiles than the standard one. Positions of attention, added up over the frames, rows and columns of a picture,
    are such values: in their own shape, 7 x 7 places fill 49 of a tile's 1024 elements."""
    sum_shape, reshaped = _find_reshape(graph, node)
    layout = reshape_layout(standard(reshaped), sum_shape) if reshaped else None
    if layout is None or any(len(axes_of(dim)) > 1 for dim in layout.dims):
        return None
    axes = [dim[0].axis if dim else "z" for dim in layout.dims[-len(node.shape) :]]
    narrow = layout_on_axes(node.shape, axes)
    return narrow if prod(narrow.extent) < prod(standard(node.shape).extent) else None


def _find_reshape(graph: Graph, node: Node) -> tuple[Shape, Shape]:
    """Return the shapes before and after the reshape that reads a node's value, or the last of the element-wise ops on
    two operands that follow it; two empty shapes if several nodes or other ops read one of these values."""
    readers = graph.users()
    while len(readers.get(node.name, ())) == 1:
        reader = graph[readers[node.name][0]]
        if reader.op == "reshape":
            return node.shape, reader.shape
        if reader.op not in _BINARY:
            break
        node = reader
    return (), ()


def _pad_rank(layout: Layout, rank: int) -> Layout:
    """Return the layout with dimensions of size 1 added in front, so that there are `rank`."""
    missing: tuple[Dim, ...] = ((),) * (rank - len(layout.dims))
    return Layout((*missing, *layout.dims), layout.extent)


def expand_layout(value: LoweredValue, shape: Shape) -> LoweredValue:
    """Return the value with dimensions of size 1 repeated in its layout; no data moves."""
    layout = _pad_rank(value.layout, len(shape))
    dims = tuple(
        (Piece(size, "-", 0),) if size > 1 and not dim else dim for size, dim in zip(shape, layout.dims, strict=True)
    )
    return replace(value, layout=Layout(dims, layout.extent))


def operand(low: Lowering, value: LoweredValue, layout: Layout) -> tuple[Use, tuple[bool, bool], tuple[bool, bool]]:
    """Return a value as an operand in a layout, whether the padding of its rows and of its columns is zero, and whether
    its rows and its columns are copies of each other.

    An axis that consists of repeats is a broadcast TM; rows and columns are first copied within their tile. Ops that
    move the value are added if its own layout is another."""
    parts = moves(value.layout, layout) or []
    missing = [
        axis
        for axis in "zrc"
        if parts and layout.on(axis) and all(part.have.axis == "-" for part in parts if part.want.axis == axis)
    ]
    rest = _without_axes(layout, missing)
    real_pieces = [number for number, piece in enumerate(rest.pieces) if piece.axis != "-"]
    value = _without_repeats(low, value, rest, real_pieces)
    axis = _axis_beside_zeros(low, value)
    copied = [*missing]
    if axis and not layout.on(axis):  # zeros beside the result would meet numbers: harmless, but V209
        copied.insert(0, axis)
    for axis in copied:
        if axis == "r":
            value = copy_rows(low, value)
        elif axis == "c":
            value = copy_columns(low, value)
    use = low.use(value, transpose=False)
    clean = (value.clean_rows and "r" not in missing, value.clean_columns and "c" not in missing)
    tms = (*use.tms, *_broadcasts(layout.extent, missing))
    return Use(use.source, tms), clean, (value.same_rows, value.same_columns)


def _without_axes(layout: Layout, axes: Container[str]) -> Layout:
    """Return the layout of a value that does not vary along the axes: it has one slice, or one tile, along these."""
    dims = tuple(
        tuple(Piece(piece.size, "-", 0) if piece.axis in axes else piece for piece in dim) for dim in layout.dims
    )
    t, rows, columns = layout.extent
    return Layout(dims, (1 if "z" in axes else t, TILE if "r" in axes else rows, TILE if "c" in axes else columns))


def _broadcasts(extent: Extent, axes: Container[str]) -> Iterator[Tm]:
    """Yield TMs that repeat a slice, or a tile of rows or columns, over the extent, along some axes."""
    for axis, size in zip("zrc", extent, strict=True):
        unit = 1 if axis == "z" else TILE
        if axis in axes and size > unit:
            yield ("broadcast", axis, size // unit)


def _axis_beside_zeros(low: Lowering, value: LoweredValue) -> str:
    """Return the axis ("r" or "c") of the reduction that a value comes from and that left zeros beside its row or
    column, "" for other values."""
    op = low.out.ops.get(value.source)
    while op is not None and len(op.uses) == 1 and not op.uses[0].tms and not op.has("reduces"):
        op = low.out.ops.get(op.uses[0].source)
    if op is not None and op.has("reduces") and not value.tms:
        axis = str(op.attrs["dim"])
    else:
        axis = ""
    if axis in ("r", "c"):
        return axis
    return ""


def _without_repeats(low: Lowering, value: LoweredValue, rest: Layout, real_pieces: list[int]) -> LoweredValue:
    """Move a value to the layout `rest` in which only the pieces `real_pieces` count; repeats of whole axes are left
    out on both sides."""
    pieces = rest.pieces
    shape = tuple(piece.size for piece in pieces)
    split = reshape_layout(value.layout, shape)
    if split is None:
        plain = standard(value.layout.shape)
        value = relayout(low, value, plain)
        split = reshape_layout(plain, shape)
        assert split is not None  # whole dimensions can be cut anywhere
    have = Layout(tuple(split.dims[number] for number in real_pieces), split.extent)
    want = Layout(tuple((pieces[number],) for number in real_pieces), rest.extent)
    return relayout(low, replace(value, layout=have), want)


def copy_rows(low: Lowering, value: LoweredValue) -> LoweredValue:
    """Return the value with its one row copied to all rows of the tile, by a move of rows; unchanged if it is so
    already."""
    if value.same_rows:
        return value
    t = value.layout.extent[0]
    slices = np.repeat(np.arange(t) * TILE, TILE)
    matrix = Sparse.of((t * TILE, t * TILE), slices + np.tile(np.arange(TILE), t), slices)
    moved = low.real(low.move_rows(value, matrix, value.layout))
    return replace(moved, same_rows=True, clean_rows=False)


def copy_columns(low: Lowering, value: LoweredValue) -> LoweredValue:
    """Return the value with its one column copied to all columns of the tile, by a product with a constant; unchanged
    if it is so already."""
    if value.same_columns:
        return value
    matrix = np.zeros((TILE, TILE), np.float32)
    matrix[0] = 1
    return low.times(value, matrix, value.layout, suffix="spread", same_columns=True, clean_columns=False)


def constant_use(low: Lowering, array: Array, shape: Shape, layout: Layout) -> tuple[Use, tuple[bool, bool]]:
    """Add a constant to the netlist and return it as an operand in a layout, as small as broadcasts allow, and whether
    the padding of its rows and of its columns is zero."""
    array = np.asarray(array, np.float32)
    array = array.reshape((1,) * (len(shape) - array.ndim) + array.shape)
    pieces: list[int] = []
    for size, dim in zip(array.shape, layout.dims, strict=True):
        pieces += [piece.size if size > 1 else 1 for piece in dim]
    values = array.reshape(pieces)
    extent = list(layout.extent)
    copies = list[str]()
    for place, axis in enumerate("zrc"):
        members = [number for number, piece in enumerate(layout.pieces) if piece.axis == axis]
        unit = 1 if axis == "z" else TILE
        if all(values.shape[number] == 1 for number in members) and (members or extent[place] == unit):
            copies.append(axis)
            extent[place] = unit
    tms = tuple(_broadcasts(layout.extent, copies))
    elements = np.zeros(extent, np.float32)
    place = np.zeros(values.shape, np.int64)
    strides = {"z": extent[1] * extent[2], "r": extent[2], "c": 1}
    for number, piece in enumerate(layout.pieces):
        if piece.axis not in copies:
            size = [1] * values.ndim
            size[number] = piece.size
            place = place + (np.arange(piece.size) * piece.stride * strides[piece.axis]).reshape(size)
    full = np.broadcast_to(values, np.broadcast_shapes(values.shape, place.shape))
    elements.reshape(-1)[np.broadcast_to(place, full.shape).ravel()] = full.ravel()
    if "r" in copies:
        elements[:] = elements[:, :1]
    if "c" in copies:
        elements[:] = elements[:, :, :1]
    return Use(low.constant(elements), tms), ("r" not in copies, "c" not in copies)
