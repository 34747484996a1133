"""States: rams that programs read and write, and keep their content from run to run (FRONTEND 5, 6)."""

from dataclasses import replace
from math import prod

import numpy as np

from buda_emu.compiler.graph.graph import Array, Node, Output
from buda_emu.compiler.graph.names import safe_name
from buda_emu.compiler.lower.inputs import best_layout, constant_value
from buda_emu.compiler.lower.layout import TILE, Layout, Piece, ordered, padded, standard
from buda_emu.compiler.lower.lowering import Lowering, Value, lowers
from buda_emu.compiler.lower.relayout import relayout
from buda_emu.compiler.lower.tiles import State, Store

WIDEST = 128 * TILE
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
        return Value(known.queue, known.layout, (), None, False, False)
    return Value(known.queue, known.layout, (), None, not number, not number, number, number)


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
        known = low.out.states[queue] = State(queue, label, initial.shape, dtype, layout, held, slots, df)
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
    if dim != len(shape) - 2 or shape[dim] % TILE or shape[-1] % TILE or padded(width) != width or width > WIDEST:
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
