"""Element-wise ops: both operands in one layout, what is broadcast through TMs where it can be."""

from dataclasses import replace
from typing import Final

import numpy as np

from buda_emu.compiler.graph.graph import Array, Node, Shape
from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.compiler.lower.layout import TILE, Dim, Layout, Piece, moves, reshaped, standard
from buda_emu.compiler.lower.lowering import Lowering, Value, lowers
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
"""Stop on a negative number, even in the padding (OPS 5)."""
_STOPS: Final = {"sqrt", "reciprocal"}
"""Stop on an element without a result (OPS 5): a reciprocal may be -inf."""
_PARTIAL: Final = {*_STOPS, "log"}
"""Have no result for some numbers below 0."""
_SIGN_STAYS: Final = {"linear", "reshape", "transpose", "expand", "identity", "add", "multiply", "concat"}
"""Not below 0 if no operand is; `linear` if no weight is."""
_BINARY: Final = {"add": "add", "subtract": "subtract", "multiply": "multiply", "maximum": "maximum"}


@lowers(*_SFPU)
def sfpu(low: Lowering, node: Node) -> Value:
    """One netlist op."""
    value = settled(low, low.values[node.inputs[0]])
    if node.op in _NEEDS_ZEROS and not never_negative(low, node.inputs[0]):
        value = low.masked(value, rows=not value.same_rows, columns=not value.same_columns)
    attrs = {{"exp": "exp", "slope": "slope"}[key]: item for key, item in node.attrs.items()}
    return _made(low, value, low.op(_SFPU[node.op], [low.use(value, transpose=True)], value.tiles, **attrs), node.op)


def never_negative(low: Lowering, name: str) -> bool:
    """Whether a value is known not to be below 0, its padding included: then nothing there needs to be zeroed, and what
    is normalised stays small there, too."""
    node = low.graph[name]
    if node.op == "constant":
        return bool((node.value >= 0).all())
    if node.op == "linear" and (node.attrs["matrix"].weight < 0).any():
        return False
    if node.op in ("square", "abs", "exp", "relu", "sigmoid", "sqrt"):
        return True
    return node.op in _SIGN_STAYS and all(never_negative(low, operand) for operand in node.inputs)


def note_undefined(low: Lowering, node: Node) -> None:
    """Says of a node whether it may have elements without a result, and of the whole graph whether one of them would
    stop the reference: a root or a reciprocal of what may be NaN or below 0."""
    after_nan = any(name in low.undefined for name in node.inputs)
    partial = node.op in _PARTIAL and not _is_above(low, node.inputs[0])
    if after_nan or (partial and node.op != "reciprocal"):
        low.undefined.add(node.name)
    if node.op in _STOPS and (after_nan or partial):
        low.out.undefined_is_nan = True


def _is_above(low: Lowering, name: str) -> bool:
    """Whether a value is known not to be below 0, also the larger one of two values and a product by itself. Masks are
    left out by `never_negative` alone, which knows less."""
    node = low.graph[name]
    if node.op == "maximum":
        return any(_is_above(low, operand) for operand in node.inputs)
    if node.op == "multiply" and node.inputs[0] == node.inputs[1]:
        return True
    if node.op in _SIGN_STAYS and not (node.op == "linear" and (node.attrs["matrix"].weight < 0).any()):
        return all(_is_above(low, operand) for operand in node.inputs)
    return never_negative(low, name)


@lowers("relu")
def relu(low: Lowering, node: Node) -> Value:
    """A nop that clamps as it packs (FRONTEND 3.2)."""
    value = settled(low, low.values[node.inputs[0]])
    threshold = float(node.attrs.get("threshold", 0.0))
    mode = node.attrs.get("mode", "min")
    name = low.op(
        "nop", [low.use(value, transpose=True)], value.tiles, relu_en=True, relu_threshold=threshold, relu_mode=mode
    )
    return _made(low, value, name, "relu")


@lowers("identity")
def identity(low: Lowering, node: Node) -> Value:
    """Nothing."""
    return low.values[node.inputs[0]]


def _made(low: Lowering, value: Value, name: str, op: str) -> Value:
    stays = op in _ZERO_STAYS
    return replace(
        low.real(value),
        source=name,
        tms=(),
        clean_rows=value.clean_rows and stays,
        clean_columns=value.clean_columns and stays,
    )


def settled(low: Lowering, value: Value) -> Value:
    """With every element in a place of its own: repeats that are only said become rows and columns."""
    if not any(piece.axis == "-" for piece in value.layout.pieces):
        return low.real(value)
    return low.real(relayout(low, value, standard(value.layout.shape)))


@lowers(*_BINARY)
def binary(low: Lowering, node: Node) -> Value:
    """One netlist op on two operands of one layout."""
    arrays = [low.array(name) for name in node.inputs]
    layout = _common(low, node, arrays)
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
        value = expanded(value, node.shape)
        use, flags, copies = operand(low, value, layout)
        uses.append(use)
        clean.append(flags)
        same.append(copies)
    both = any if node.op == "multiply" else all
    t, r, c = layout.extent
    name = low.op(_BINARY[node.op], uses, (t, r // TILE, c // TILE))
    return Value(
        source=name,
        layout=layout,
        tms=(),
        rows=None,
        clean_rows=both(flag[0] for flag in clean),
        clean_columns=both(flag[1] for flag in clean),
        same_rows=all(flag[0] for flag in same) and r == TILE and not layout.on("r"),
        same_columns=all(flag[1] for flag in same) and c == TILE and not layout.on("c"),
    )


def _common(low: Lowering, node: Node, arrays: list[Array | None]) -> Layout:
    """That of an operand which has the result's shape: one without pending moves first."""
    values = [low.values[name] for name, array in zip(node.inputs, arrays, strict=True) if array is None]
    full = [
        value
        for value in values
        if _aligned(value.layout, len(node.shape)).shape == node.shape
        and not any(piece.axis == "-" for piece in value.layout.pieces)
    ]
    if not full:
        return standard(node.shape)
    best = min(full, key=lambda value: (value.rows is not None, np.prod(value.tiles)))
    return _aligned(best.layout, len(node.shape))


def _aligned(layout: Layout, rank: int) -> Layout:
    """With dimensions of size 1 in front."""
    missing: tuple[Dim, ...] = ((),) * (rank - len(layout.dims))
    return Layout((*missing, *layout.dims), layout.extent)


def expanded(value: Value, shape: Shape) -> Value:
    """The value with dimensions of size 1 repeated, in words only."""
    layout = _aligned(value.layout, len(shape))
    dims = tuple(
        (Piece(size, "-", 0),) if size > 1 and not dim else dim for size, dim in zip(shape, layout.dims, strict=True)
    )
    return replace(value, layout=Layout(dims, layout.extent))


def operand(low: Lowering, value: Value, layout: Layout) -> tuple[Use, tuple[bool, bool], tuple[bool, bool]]:
    """A value, repeats said, as an operand in a layout; whether its padding is zero, and its rows and columns copies.

    A whole axis of repeats is a broadcast TM; rows and columns are first copied within their tile.
    """
    parts = moves(value.layout, layout) or []
    missing = [
        axis
        for axis in "zrc"
        if parts and layout.on(axis) and all(part.have.axis == "-" for part in parts if part.want.axis == axis)
    ]
    rest = Layout(
        tuple(
            tuple(Piece(piece.size, "-", 0) if piece.axis in missing else piece for piece in dim) for dim in layout.dims
        ),
        (
            1 if "z" in missing else layout.extent[0],
            TILE if "r" in missing else layout.extent[1],
            TILE if "c" in missing else layout.extent[2],
        ),
    )
    kept = [number for number, piece in enumerate(rest.pieces) if piece.axis != "-"]
    value = _without_repeats(low, value, rest, kept)
    axis = _beside(low, value)
    if axis and not layout.on(axis):  # zeros beside the result would meet numbers: harmless, but V209
        if axis == "r":
            value = copied_rows(low, value)
        else:
            value = copied_columns(low, value)
    tms: list[Tm] = []
    if "r" in missing:
        value = copied_rows(low, value)
    if "c" in missing:
        value = copied_columns(low, value)
    for place, axis in enumerate("zrc"):
        unit = 1 if axis == "z" else TILE
        if axis in missing and layout.extent[place] > unit:
            tms.append(("broadcast", axis, layout.extent[place] // unit))
    use = low.use(value, transpose=False)
    clean = (value.clean_rows and "r" not in missing, value.clean_columns and "c" not in missing)
    return Use(use.source, (*use.tms, *tms)), clean, (value.same_rows, value.same_columns)


def _beside(low: Lowering, value: Value) -> str:
    """The axis along which a maximum left its result in one row or column, "" for other values."""
    op = low.out.ops.get(value.source)
    while op is not None and len(op.uses) == 1 and not op.uses[0].tms and not op.has("reduces"):
        op = low.out.ops.get(op.uses[0].source)
    if op is not None and op.has("reduces") and not value.tms:
        axis = str(op.attrs["dim"])
    else:
        axis = ""
    return axis if axis in ("r", "c") else ""


def _without_repeats(low: Lowering, value: Value, rest: Layout, kept: list[int]) -> Value:
    """Moved to a layout in which only real pieces count: repeats of whole axes are left out on both sides."""
    pieces = rest.pieces
    shape = tuple(piece.size for piece in pieces)
    own = reshaped(value.layout, shape)
    if own is None:
        whole = standard(value.layout.shape)
        value = relayout(low, value, whole)
        own = reshaped(whole, shape)
        assert own is not None  # whole dimensions can be cut anywhere
    have = Layout(tuple(own.dims[number] for number in kept), own.extent)
    want = Layout(tuple((pieces[number],) for number in kept), rest.extent)
    return relayout(low, replace(value, layout=have), want)


def copied_rows(low: Lowering, value: Value) -> Value:
    """The one row of a tile in all of its rows."""
    if value.same_rows:
        return value
    t = value.layout.extent[0]
    slices = np.repeat(np.arange(t) * TILE, TILE)
    matrix = Sparse.of((t * TILE, t * TILE), slices + np.tile(np.arange(TILE), t), slices)
    moved = low.real(low.moved(value, matrix, value.layout))
    return replace(moved, same_rows=True, clean_rows=False)


def copied_columns(low: Lowering, value: Value) -> Value:
    """The one column of a tile in all of its columns."""
    if value.same_columns:
        return value
    matrix = np.zeros((TILE, TILE), np.float32)
    matrix[0] = 1
    return low.times(value, matrix, value.layout, suffix="spread", same_columns=True, clean_columns=False)


def constant_use(low: Lowering, array: Array, shape: Shape, layout: Layout) -> tuple[Use, tuple[bool, bool]]:
    """A constant as an operand in a layout, as small as broadcasts allow; whether its padding is zero."""
    array = np.asarray(array, np.float32)
    array = array.reshape((1,) * (len(shape) - array.ndim) + array.shape)
    pieces: list[int] = []
    for size, dim in zip(array.shape, layout.dims, strict=True):
        pieces += [piece.size if size > 1 else 1 for piece in dim]
    values = array.reshape(pieces)
    extent = list(layout.extent)
    tms = list[Tm]()
    copies = list[str]()
    for place, axis in enumerate("zrc"):
        mine = [number for number, piece in enumerate(layout.pieces) if piece.axis == axis]
        unit = 1 if axis == "z" else TILE
        if all(values.shape[number] == 1 for number in mine) and (mine or extent[place] == unit):
            if extent[place] > unit:
                tms.append(("broadcast", axis, extent[place] // unit))
            copies.append(axis)
            extent[place] = unit
    held = np.zeros(extent, np.float32)
    place = np.zeros(values.shape, np.int64)
    strides = {"z": extent[1] * extent[2], "r": extent[2], "c": 1}
    for number, piece in enumerate(layout.pieces):
        if piece.axis not in copies:
            size = [1] * values.ndim
            size[number] = piece.size
            place = place + (np.arange(piece.size) * piece.stride * strides[piece.axis]).reshape(size)
    full = np.broadcast_to(values, np.broadcast_shapes(values.shape, place.shape))
    held.reshape(-1)[np.broadcast_to(place, full.shape).ravel()] = full.ravel()
    if "r" in copies:
        held[:] = held[:, :1]
    if "c" in copies:
        held[:] = held[:, :, :1]
    return Use(low.constant(held), tuple(tms)), ("r" not in copies, "c" not in copies)
