"""Lowerings of inputs, outputs and states of the model to queues and rams."""

from dataclasses import replace
from math import prod

import numpy as np

from buda_emu.compiler.graph.builder import host_name, safe_name
from buda_emu.compiler.graph.graph import Array, Node, Output
from buda_emu.compiler.graph.registry import front_op
from buda_emu.compiler.lower.layout import TILE, Layout, Piece, axes_of, dense_layout, padded_size, standard
from buda_emu.compiler.lower.lowering import LoweredValue, Lowering, lowers
from buda_emu.compiler.lower.relayout import relayout
from buda_emu.compiler.lower.tiles import InputQueue, OutputQueue, State, Store
from buda_emu.emulator.image.model_io import inexact_integers
from buda_emu.support.errors import UnsupportedError

MOST_TILES_OF_A_ROW = 64
"""Largest number of tiles in a row that one core can give to the host: a nop that untilizes holds a whole row,
twice."""
EMPTY = 8
"""Ratio of the tiles of an output to the tiles that it needs, from which its elements are moved together first."""


@lowers("input")
def input_(low: Lowering, node: Node) -> LoweredValue:
    """Lower an input to a queue: the last dimension along columns, the one before along rows, unless another division
    of the same order of elements takes fewer tiles. The elements of windows lie along columns, the places of windows
    along rows."""
    if "windows" in node.attrs:
        layout = standard(node.shape, len(node.shape) - 2)
    else:
        layout = best_layout(node.shape)
    return queue_input(low, node, layout)


def queue_input(low: Lowering, node: Node, layout: Layout) -> LoweredValue:
    """Add the queue of an input with a layout that keeps the order of elements, and return its value."""
    t, rows, columns = layout.extent
    view = (t, _elements_along(layout, "r"), _elements_along(layout, "c"))
    name = low.name()
    low.out.inputs[name] = InputQueue(name, node.attrs["label"], (t, rows // TILE, columns // TILE), view)
    return LoweredValue(name, layout)


def best_layout(shape: tuple[int, ...]) -> Layout:
    """Return the standard division of the dimensions into z, rows and columns, or another that takes at most half of
    its tiles; of several such divisions a later one replaces an earlier one only if it halves the tiles again."""
    rank = len(shape)
    plain = standard(shape)
    best = plain
    for rows in range(rank + 1):
        for columns in range(rank + 1 - rows):
            if columns == 0 and rank:
                continue
            candidate = standard(shape, rows, columns)
            if 2 * prod(candidate.extent) <= prod(best.extent):
                best = candidate
    return best


def _elements_along(layout: Layout, axis: str) -> int:
    """Return the number of elements, without padding, along an axis of a layout ("z", "r" or "c")."""
    return prod(piece.size for piece in layout.on(axis))


def index_queue(low: Lowering, embedding: Node) -> str:
    """Add the queue of the words that an embedding reads, or find one with the same words, and return its name. The
    words are an input, or elements that the host picks from one; they are checked against the smallest of the tables
    that are read by them. Raises UnsupportedError for indices that are computed."""
    table, name = embedding.inputs
    node, gather = _indices_of_input(low, name)
    count = prod(low.graph[name].shape)
    new_queue = InputQueue(
        name=low.unique_name(f"{node.name}.indices"),
        label=node.attrs["label"],
        shape=(1, 1, -(-padded_size(count) // TILE**2)),
        view=(1, 1, count),
        indices=True,
        gather=gather,
        rows=low.graph[table].shape[0],
        from_end=embedding.attrs.get("from_end", False),
        zero=embedding.attrs.get("zero"),
    )
    for queue in low.out.inputs.values():
        if new_queue.from_end:
            rows = queue.rows
        else:
            rows = new_queue.rows
        if replace(queue, rows=rows) == replace(new_queue, name=queue.name):
            low.out.inputs[queue.name] = replace(queue, rows=min(queue.rows, new_queue.rows))
            return queue.name
    low.out.inputs[new_queue.name] = new_queue
    return new_queue.name


def _indices_of_input(low: Lowering, name: str) -> tuple[Node, tuple[int, ...]]:
    """Return the input whose elements a value picks, and their numbers; () for all elements in order. Raises
    UnsupportedError for a value that is computed."""
    chain: list[Node] = []
    node = low.graph[name]
    while node.op in ("reshape", "identity", "transpose", "linear", "expand"):
        chain.append(node)
        node = low.graph[node.inputs[0]]
    if node.op != "input":
        raise UnsupportedError(f"{name}: indices of an embedding that are computed ({node.op})")
    picked_elements = np.arange(prod(node.shape)).reshape(node.shape)
    for step in reversed(chain):
        reference = front_op(step.op).reference
        assert reference is not None
        picked_elements = np.asarray(reference(picked_elements, **step.attrs))
    flat = tuple(int(element) for element in picked_elements.ravel())
    return node, () if flat == tuple(range(prod(node.shape))) else flat


def emit_output(low: Lowering, output: Output, used_names: set[str]) -> None:
    """Add an untilizing nop for an output and the host's queue behind it (FRONTEND 3.4), and enter the queue's name in
    `used_names`."""
    node = low.graph[output.value]
    low.node = node
    if node.op == "constant":
        value = constant_value(low, node)
    else:
        value = low.values[output.value]
    shape = node.shape
    bare = prod(value.layout.extent) >= EMPTY * prod(standard(shape).extent)
    if any(piece.axis == "-" for piece in value.layout.pieces) or bare or not _in_order(value.layout):
        value = relayout(low, value, _layout_for_host(value.layout, low.target.arch.grid[1]))
    value = low.real(value)
    layout = value.layout
    view = (layout.extent[0], _elements_along(layout, "r"), _elements_along(layout, "c"))
    name = host_name(output.label)
    while name in used_names or name in low.out.ops:
        name += "_out"
    used_names.add(name)
    value, slices = _as_slices(value)
    op = low.op("nop", [low.use(value, transpose=True)], value.shape_in_tiles, suffix="output_nop", untilize=True)
    low.out.outputs[name] = OutputQueue(
        name=name, label=output.label, op=op, view=view, host_shape=shape, dtype=output.dtype, slices=slices
    )


def _as_slices(value: LoweredValue) -> tuple[LoweredValue, int]:
    """Return a value that would put columns side by side as slices along t, which the host puts side by side, so that
    each can leave as soon as it is computed; and the number of slices. Any other value is returned unchanged, as one
    slice."""
    match value.tms:
        case (("hstack", int(count)),):
            t, rows, columns = value.layout.extent
            apart = Layout(value.layout.dims, (t * count, rows, columns // count))
            return replace(value, tms=(), layout=apart), count
        case _:
            return value, 1


def _layout_for_host(layout: Layout, core_columns: int) -> Layout:
    """Return the layout of an output in which elements are in order, and not each in a tile row of its own, as the
    places of a single channel would be: the host link would take up to 32 times as long. What lies along columns goes
    along rows, and every dimension with a part along rows, such as a channel's places, along columns, which a transpose
    does; but only if that takes no more tiles than the standard layout and `core_columns` cores have room for the rows.
    Otherwise it is the standard layout."""
    shape = layout.shape
    plain = standard(shape)
    tall = ["r" in axes_of(dim) for dim in layout.dims]
    wide = ["c" in axes_of(dim) and not is_tall for dim, is_tall in zip(layout.dims, tall, strict=True)]
    if not any(tall) or not any(wide):
        return plain
    columns = len(shape) - tall.index(True)
    rows = len(shape) - columns - wide.index(True)
    if rows > 0:
        swapped = standard(shape, rows, columns)
    else:
        swapped = plain
    if _has_room_for_rows(swapped, core_columns) and prod(swapped.extent) <= prod(plain.extent):
        return swapped
    return plain


def _has_room_for_rows(layout: Layout, core_columns: int) -> bool:
    """Return whether at most `core_columns` cores can divide the columns of tiles evenly, each with a row that it has
    room for."""
    tiles = layout.extent[2] // TILE
    return any(tiles % cores == 0 and tiles // cores <= MOST_TILES_OF_A_ROW for cores in range(1, core_columns + 1))


def _in_order(layout: Layout) -> bool:
    """Return whether the elements are in the order of t, then rows, then columns, without gaps."""
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


def constant_value(low: Lowering, node: Node) -> LoweredValue:
    """Add a constant to the netlist and return its value. Raises UnsupportedError for integers that float32 does not
    hold."""
    floats = np.asarray(node.value, np.float32)
    if node.value.dtype.kind in "iu":
        wrong = inexact_integers(node.value)
        if wrong.size:
            raise UnsupportedError(
                f"{low.name()}: the constant {wrong[0]} is not exact in float32, in which the device has integers"
            )
    layout = standard(node.shape)
    held = np.zeros(layout.extent, np.float32)
    held.reshape(-1)[layout.place("zrc").ravel()] = floats.ravel()
    return LoweredValue(low.constant(held), layout)


WIDEST_ROW = 128 * TILE
"""Largest number of columns that lie side by side in a cache: a core of a row has room for as many tiles."""

MOST_SLICES = 128
"""Largest number of slices along t of a state that a training changes: a gradient is added up in L1, and cores share
only rows and columns. A state with more slices has all but its first dimension along the rows."""


@lowers("state")
def state(low: Lowering, node: Node) -> LoweredValue:
    """Lower a state to the content that its ram has when the program begins; a new ram is added."""
    attrs = node.attrs
    ram = _find_or_add_ram(low, attrs["label"], node.dtype, attrs["initial"], attrs["slots"], attrs["dim"])
    # What an op writes stands in the first element alone.
    number = not node.shape and all(output.state != attrs["label"] for output in low.graph.outputs)
    if not node.shape and not number:
        return LoweredValue(
            source=ram.queue, layout=ram.layout, tms=(), rows=None, clean_rows=False, clean_columns=False
        )
    return LoweredValue(
        source=ram.queue,
        layout=ram.layout,
        tms=(),
        rows=None,
        clean_rows=not number,
        clean_columns=not number,
        same_rows=number,
        same_columns=number,
    )


def _find_or_add_ram(low: Lowering, label: str, dtype: str, initial: Array, slots: int = 1, dim: int = 0) -> State:
    """Return the ram of the state `label`, and add it if it is new, with the content `initial`. A number fills its
    whole tile, so that it can be broadcast; other padding is 0, and stays so."""
    state = low.out.state(label)
    if state is None:
        kernel = len(initial.shape) > 2 and initial.shape[1] % TILE == 0 and _has_gradients(low)
        if kernel:
            plain = _kernel_layout(initial.shape)
        else:
            plain = best_layout(initial.shape)
        if plain.extent[0] > MOST_SLICES and _has_gradients(low):
            plain = dense_layout(initial.shape, [], range(1, len(initial.shape)), [0])
        if slots == 1:
            layout = plain
        else:
            layout = _slotted_layout(initial.shape, slots, dim)
        held = np.zeros(layout.extent, np.float32)
        held.reshape(-1)[layout.place("zrc").ravel()] = np.asarray(initial, np.float32).ravel()
        if not initial.shape:
            held[:] = initial
        queue = low.unique_name(safe_name(label))
        nodes = [node for node in low.graph if node.op == "state" and node.attrs["label"] == label]
        df = next((node.attrs["df"] for node in nodes if node.attrs["df"]), "")
        state = low.out.states[queue] = State(
            queue=queue,
            label=label,
            host_shape=initial.shape,
            dtype=dtype,
            layout=layout,
            held=held,
            slots=slots,
            df=df,
        )
    return state


def _has_gradients(low: Lowering) -> bool:
    """Return whether the model accumulates gradients: whether it is trained."""
    return any(output.accumulate for output in low.graph.outputs)


def _kernel_layout(shape: tuple[int, ...]) -> Layout:
    """Return the layout of a convolution's kernel [out, in, taps...] as products read it: taps of whole tiles of rows,
    a column for each output."""
    return dense_layout(shape, range(2, len(shape)), [1], [0])


def _slotted_layout(shape: tuple[int, ...], slots: int, dim: int) -> Layout:
    """Return the layout of a cache whose dimension `dim` is divided into slots, slot after slot along t, each as a
    value of its own would be. If slots and columns are whole tiles, what would lie along t in a slot, such as heads of
    attention, stands side by side: then slots are put below each other and cut into heads on the way to their readers
    (vstack, hslice), and no op moves them."""
    slot_shape = tuple(size // slots if place == dim else size for place, size in enumerate(shape))
    part = _side_by_side_layout(slot_shape, dim) or standard(slot_shape)
    t, rows, columns = part.extent
    dims = list(part.dims)
    dims[dim] = (Piece(slots, "z", t), *dims[dim])
    return Layout(tuple(dims), (slots * t, rows, columns))


def _side_by_side_layout(shape: tuple[int, ...], dim: int) -> Layout | None:
    """Return the layout of a shape with dimension `dim` along rows and all others side by side along columns; None if
    it has padding, is too wide, or `dim` is not the last but one."""
    others = [place for place in range(len(shape)) if place != dim]
    width = prod(shape[place] for place in others)
    if (
        dim != len(shape) - 2
        or shape[dim] % TILE
        or shape[-1] % TILE
        or padded_size(width) != width
        or width > WIDEST_ROW
    ):
        return None
    return dense_layout(shape, [], [dim], others)


def _slot_layout(state: State) -> Layout:
    """Return the layout of one slot of a state, that of the whole state if it has no slots."""
    t, rows, columns = state.layout.extent
    step = t // state.slots
    dims = tuple(tuple(piece for piece in dim if piece != Piece(state.slots, "z", step)) for dim in state.layout.dims)
    if state.slots > 1:
        return replace(state.layout, dims=dims, extent=(step, rows, columns))
    return state.layout


def emit_store(low: Lowering, output: Output) -> None:
    """Add the op that writes an output's value into its state's ram, with zeros in the padding, and note the store. It
    is a nop, so that no other op reads what it packs.

    A sum is made by a gradient op, which adds to the ram (NETLIST 4.4)."""
    node = low.graph[output.value]
    low.node = node
    ram = _find_or_add_ram(low, output.state, output.dtype, np.zeros(node.shape, np.float32))
    if node.op == "constant":
        value = constant_value(low, node)
    else:
        value = low.values[output.value]
    value = low.mask_padding(low.real(relayout(low, value, _slot_layout(ram))), rows=True, columns=True)
    use = low.use(value, transpose=True)
    if output.accumulate:
        name = low.op("nop", [use], value.shape_in_tiles, suffix="gradient", gradient=True)
    else:
        name = low.op("nop", [use], value.shape_in_tiles, suffix="kept")
    low.out.stores[ram.queue] = Store(ram.queue, name, output.accumulate)
