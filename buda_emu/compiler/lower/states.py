"""States: rams that programs read and write, and keep their content from run to run (FRONTEND 5, 6)."""

import numpy as np

from buda_emu.compiler.emit.yaml_text import safe_name
from buda_emu.compiler.graph.graph import Array, Node, Output
from buda_emu.compiler.lower.inputs import best_layout, constant_value
from buda_emu.compiler.lower.lowering import Lowering, Value, lowers
from buda_emu.compiler.lower.relayout import relayout
from buda_emu.compiler.lower.tiles import State, Store


@lowers("state")
def state(low: Lowering, node: Node) -> Value:
    """What the ram holds when the program begins."""
    known = _ram(low, node.attrs["label"], node.dtype, node.attrs["initial"])
    number = not node.shape
    return Value(known.queue, known.layout, (), None, not number, not number, number, number)


def _ram(low: Lowering, label: str, dtype: str, initial: Array) -> State:
    """The ram of a state. A number fills its whole tile, so that whoever broadcasts it has it; else the padding is 0,
    and stays so."""
    known = low.out.state(label)
    if known is None:
        layout = best_layout(initial.shape)
        held = np.zeros(layout.extent, np.float32)
        held.reshape(-1)[layout.place("zrc").ravel()] = np.asarray(initial, np.float32).ravel()
        if not initial.shape:
            held[:] = initial
        queue = low.unused(safe_name(label))
        known = low.out.states[queue] = State(queue, label, initial.shape, dtype, layout, held)
    return known


def emit_store(low: Lowering, output: Output) -> None:
    """An op that writes a value into its state's ram: a nop, so that nothing else hangs on what it packs.

    A sum is made by a gradient op, which adds to the ram (NETLIST 4.4).
    """
    node = low.graph[output.value]
    low.node = node
    held = _ram(low, output.state, output.dtype, np.zeros(node.shape, np.float32))
    value = constant_value(low, node) if node.op == "constant" else low.values[output.value]
    value = low.masked(low.real(relayout(low, value, held.layout)), rows=True, columns=True)
    use = low.use(value, transpose=True)
    if output.accumulate:
        name = low.op("nop", [use], value.tiles, suffix="gradient", gradient=True)
    else:
        name = low.op("nop", [use], value.tiles, suffix="kept")
    low.out.stores[held.queue] = Store(held.queue, name, output.accumulate)
