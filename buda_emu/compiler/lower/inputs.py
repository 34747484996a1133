"""Inputs, outputs and states of the model as queues and rams."""

from dataclasses import replace
from math import prod

import numpy as np

from buda_emu.compiler.graph.builder import host_name, safe_name
from buda_emu.compiler.graph.graph import Array, Node, Output
from buda_emu.compiler.graph.registry import front_op
from buda_emu.compiler.lower.layout import TILE, Layout, Piece, ordered, padded, standard
from buda_emu.compiler.lower.lowering import Lowering, Value, lowers
from buda_emu.compiler.lower.relayout import relayout
from buda_emu.compiler.lower.tiles import InputQueue, OutputQueue, State, Store
from buda_emu.support.errors import UnsupportedError

MOST_TILES_OF_A_ROW = 64
"""Tiles of a row that one core gives the host: a nop that untilizes keeps a whole one, twice."""
EMPTY = 8
"""An output of so many times the tiles that it needs has its elements moved together first."""


@lowers("input")
def input_(low: Lowering, node: Node) -> Value:
    """A queue that holds the values: the last dimension along columns, the one before along rows, unless another
    division of the same order of elements takes fewer tiles. What windows see lies along columns, their places along
    rows."""
    layout = standard(node.shape, len(node.shape) - 2) if "windows" in node.attrs else best_layout(node.shape)
    return queued(low, node, layout)


def queued(low: Lowering, node: Node, layout: Layout) -> Value:
    """The input in a queue of that layout, which must keep the order of elements."""
    t, rows, columns = layout.extent
    view = (t, _filled(layout, "r"), _filled(layout, "c"))
    name = low.name()
    low.out.inputs[name] = InputQueue(name, node.attrs["label"], (t, rows // TILE, columns // TILE), view)
    return Value(name, layout)


def best_layout(shape: tuple[int, ...]) -> Layout:
    """Of the divisions of the dimensions into z, rows and columns, the one of fewest tiles; else the standard one."""
    rank = len(shape)
    plain = standard(shape)
    found = plain
    for rows in range(rank + 1):
        for columns in range(rank + 1 - rows):
            if columns == 0 and rank:
                continue
            candidate = standard(shape, rows, columns)
            if 2 * prod(candidate.extent) <= prod(found.extent):
                found = candidate
    return found


def _filled(layout: Layout, axis: str) -> int:
    return prod(piece.size for piece in layout.on(axis))


def index_queue(low: Lowering, embedding: Node) -> str:
    """Return the queue of the words that an embedding reads: an input, or what the host picks of one. Embeddings for
    which the words are the same share a queue; its indices are those that the smallest of their tables has."""
    table, name = embedding.inputs
    node, gather = _picked(low, name)
    count = prod(low.graph[name].shape)
    wanted = InputQueue(
        name=low.unused(f"{node.name}.indices"),
        label=node.attrs["label"],
        shape=(1, 1, -(-padded(count) // TILE**2)),
        view=(1, 1, count),
        indices=True,
        gather=gather,
        rows=low.graph[table].shape[0],
        from_end=embedding.attrs.get("from_end", False),
        zero=embedding.attrs.get("zero"),
    )
    for queue in low.out.inputs.values():
        rows = queue.rows if wanted.from_end else wanted.rows
        if replace(queue, rows=rows) == replace(wanted, name=queue.name):
            low.out.inputs[queue.name] = replace(queue, rows=min(queue.rows, wanted.rows))
            return queue.name
    low.out.inputs[wanted.name] = wanted
    return wanted.name


def _picked(low: Lowering, name: str) -> tuple[Node, tuple[int, ...]]:
    """The input that a value picks elements of, and which; () for all in order. Raises UnsupportedError for a value
    that is computed."""
    chain: list[Node] = []
    node = low.graph[name]
    while node.op in ("reshape", "identity", "transpose", "linear", "expand"):
        chain.append(node)
        node = low.graph[node.inputs[0]]
    if node.op != "input":
        raise UnsupportedError(f"{name}: indices of an embedding that are computed ({node.op})")
    found = np.arange(prod(node.shape)).reshape(node.shape)
    for step in reversed(chain):
        reference = front_op(step.op).reference
        assert reference is not None
        found = np.asarray(reference(found, **step.attrs))
    flat = tuple(int(item) for item in found.ravel())
    return node, () if flat == tuple(range(prod(node.shape))) else flat


def emit_output(low: Lowering, output: Output, taken: set[str]) -> None:
    """An untilizing nop and the host's queue after it (FRONTEND 3.4)."""
    node = low.graph[output.value]
    low.node = node
    if node.op == "constant":
        value = constant_value(low, node)
    else:
        value = low.values[output.value]
    shape = node.shape
    bare = prod(value.layout.extent) >= EMPTY * prod(standard(shape).extent)
    if any(piece.axis == "-" for piece in value.layout.pieces) or bare or not _in_order(value.layout):
        value = relayout(low, value, _for_host(value.layout, low.target.arch.grid[1]))
    value = low.real(value)
    layout = value.layout
    view = (layout.extent[0], _filled(layout, "r"), _filled(layout, "c"))
    name = host_name(output.label)
    while name in taken or name in low.out.ops:
        name += "_out"
    taken.add(name)
    value, slices = _as_slices(value)
    op = low.op("nop", [low.use(value, transpose=True)], value.tiles, suffix="output_nop", untilize=True)
    low.out.outputs[name] = OutputQueue(
        name=name, label=output.label, op=op, view=view, host_shape=shape, dtype=output.dtype, slices=slices
    )


def _as_slices(value: Value) -> tuple[Value, int]:
    """A value whose columns were to be put side by side, as the slices along t that they are: the host finds them
    there, and each goes to it as soon as it is made. And how many slices; 1 for any other value."""
    match value.tms:
        case (("hstack", int(count)),):
            t, rows, columns = value.layout.extent
            apart = Layout(value.layout.dims, (t * count, rows, columns // count))
            return replace(value, tms=(), layout=apart), count
        case _:
            return value, 1


def _for_host(layout: Layout, most: int) -> Layout:
    """Where the elements of an output shall stand to be in order, and not each in a row of a tile of its own, as places
    of a single channel do, for which the host link would take up to 32 times as long: what stands along columns along
    rows, and all that has a part along rows along columns, as a channel's places, which a transpose does, if that takes
    no more tiles than the standard layout, and `most` columns of cores have room for its rows; else the standard
    layout."""
    shape = layout.shape
    plain = standard(shape)
    tall = [any(piece.axis == "r" for piece in dim) for dim in layout.dims]
    wide = [any(piece.axis == "c" for piece in dim) and not own for dim, own in zip(layout.dims, tall, strict=True)]
    if not any(tall) or not any(wide):
        return plain
    columns = len(shape) - tall.index(True)
    rows = len(shape) - columns - wide.index(True)
    swapped = standard(shape, rows, columns) if rows > 0 else plain
    tiles = swapped.extent[2] // TILE
    fits = any(tiles % cores == 0 and tiles // cores <= MOST_TILES_OF_A_ROW for cores in range(1, most + 1))
    return swapped if fits and prod(swapped.extent) <= prod(plain.extent) else plain


def _in_order(layout: Layout) -> bool:
    """Whether t, then rows, then columns without gaps is the order of the elements."""
    order = {"z": 0, "r": 1, "c": 2}
    pieces = layout.pieces
    if [order[piece.axis] for piece in pieces] != sorted(order[piece.axis] for piece in pieces):
        return False
    for axis in "zrc":
        stride = 1
        for piece in reversed([piece for piece in pieces if piece.axis == axis]):
            if piece.stride != stride:
                return False
            stride *= piece.size
        if axis == "z" and stride != layout.extent[0]:
            return False
    return True


def constant_value(low: Lowering, node: Node) -> Value:
    """A constant as a value of the device. Raises UnsupportedError for integers that float32 does not hold."""
    floats = np.asarray(node.value, np.float32)
    if node.value.dtype.kind in "iu":
        fits = np.abs(floats) < 2.0**63
        wrong = node.value[np.where(fits, floats, 0).astype(np.int64) != node.value]
        if wrong.size:
            raise UnsupportedError(
                f"{low.name()}: the constant {wrong[0]} is not exact in float32, in which the device has integers"
            )
    layout = standard(node.shape)
    held = np.zeros(layout.extent, np.float32)
    held.reshape(-1)[layout.place("zrc").ravel()] = floats.ravel()
    return Value(low.constant(held), layout)


WIDEST_ROW = 128 * TILE
"""Columns that lie side by side in a cache: a core of a row has room for as many tiles."""

MOST_SLICES = 128
"""Slices along t of what a training changes: a gradient is added up in L1, and cores share out rows and columns alone.
One of more has all but its first dimension along the rows."""


@lowers("state")
def state(low: Lowering, node: Node) -> Value:
    """What the ram holds when the program begins."""
    attrs = node.attrs
    known = _ram(low, attrs["label"], node.dtype, attrs["initial"], attrs["slots"], attrs["dim"])
    # What an op writes stands in the first element alone.
    number = not node.shape and all(output.state != attrs["label"] for output in low.graph.outputs)
    if not node.shape and not number:
        return Value(source=known.queue, layout=known.layout, tms=(), rows=None, clean_rows=False, clean_columns=False)
    return Value(
        source=known.queue,
        layout=known.layout,
        tms=(),
        rows=None,
        clean_rows=not number,
        clean_columns=not number,
        same_rows=number,
        same_columns=number,
    )


def _ram(low: Lowering, label: str, dtype: str, initial: Array, slots: int = 1, dim: int = 0) -> State:
    """The ram of a state. A number fills its whole tile, so that whoever broadcasts it has it; else the padding is 0,
    and stays so."""
    known = low.out.state(label)
    if known is None:
        kernel = len(initial.shape) > 2 and initial.shape[1] % TILE == 0 and _trains(low)
        plain = _as_columns(initial.shape) if kernel else best_layout(initial.shape)
        if plain.extent[0] > MOST_SLICES and _trains(low):
            plain = ordered(initial.shape, [], range(1, len(initial.shape)), [0])
        layout = plain if slots == 1 else _in_slots(initial.shape, slots, dim)
        held = np.zeros(layout.extent, np.float32)
        held.reshape(-1)[layout.place("zrc").ravel()] = np.asarray(initial, np.float32).ravel()
        if not initial.shape:
            held[:] = initial
        queue = low.unused(safe_name(label))
        nodes = [node for node in low.graph if node.op == "state" and node.attrs["label"] == label]
        df = next((node.attrs["df"] for node in nodes if node.attrs["df"]), "")
        known = low.out.states[queue] = State(
            queue=queue,
            label=label,
            host_shape=initial.shape,
            dtype=dtype,
            layout=layout,
            held=held,
            slots=slots,
            df=df,
        )
    return known


def _trains(low: Lowering) -> bool:
    return any(output.accumulate for output in low.graph.outputs)


def _as_columns(shape: tuple[int, ...]) -> Layout:
    """A convolution's kernel [out, in, taps...] as products read it: taps of whole tiles of rows, a column for each
    output."""
    return ordered(shape, range(2, len(shape)), [1], [0])


def _in_slots(shape: tuple[int, ...], slots: int, dim: int) -> Layout:
    """Slot after slot along t, each of them as a value of its own would be; but what lies along t of it, as heads of
    attention do, stands side by side, where slots and columns are whole tiles. Then slots are put below each other and
    cut into heads on the way to who reads them (vstack, hslice), and no op moves them."""
    own = tuple(size // slots if place == dim else size for place, size in enumerate(shape))
    part = _side_by_side(own, dim) or standard(own)
    t, rows, columns = part.extent
    dims = list(part.dims)
    dims[dim] = (Piece(slots, "z", t), *dims[dim])
    return Layout(tuple(dims), (slots * t, rows, columns))


def _side_by_side(shape: tuple[int, ...], dim: int) -> Layout | None:
    """One dimension along rows, all others along columns; None where that leaves padding or is too wide."""
    others = [place for place in range(len(shape)) if place != dim]
    width = prod(shape[place] for place in others)
    if dim != len(shape) - 2 or shape[dim] % TILE or shape[-1] % TILE or padded(width) != width or width > WIDEST_ROW:
        return None
    return ordered(shape, [], [dim], others)


def _slot(state: State) -> Layout:
    """The layout of one slot."""
    t, rows, columns = state.layout.extent
    step = t // state.slots
    dims = tuple(tuple(piece for piece in dim if piece != Piece(state.slots, "z", step)) for dim in state.layout.dims)
    return replace(state.layout, dims=dims, extent=(step, rows, columns)) if state.slots > 1 else state.layout


def emit_store(low: Lowering, output: Output) -> None:
    """An op that writes a value into its state's ram: a nop, so that nothing else depends on what it packs.

    A sum is made by a gradient op, which adds to the ram (NETLIST 4.4).
    """
    node = low.graph[output.value]
    low.node = node
    held = _ram(low, output.state, output.dtype, np.zeros(node.shape, np.float32))
    value = constant_value(low, node) if node.op == "constant" else low.values[output.value]
    value = low.masked(low.real(relayout(low, value, _slot(held))), rows=True, columns=True)
    use = low.use(value, transpose=True)
    if output.accumulate:
        name = low.op("nop", [use], value.tiles, suffix="gradient", gradient=True)
    else:
        name = low.op("nop", [use], value.tiles, suffix="kept")
    low.out.stores[held.queue] = Store(held.queue, name, output.accumulate)
