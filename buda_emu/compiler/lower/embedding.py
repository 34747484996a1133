"""Embeddings: rows of a table by indices that the host pushes (OPS 6.9)."""

from itertools import count as numbers
from math import prod
from typing import Any

from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.lower.inputs import index_queue
from buda_emu.compiler.lower.layout import TILE, padded, reshaped, standard
from buda_emu.compiler.lower.lowering import Lowering, Value, lowers
from buda_emu.compiler.lower.tiles import Use
from buda_emu.tensor.scattered import scattered


@lowers("embedding")
def embedding(low: Lowering, node: Node) -> Value:
    """Rows of a table by indices that the host pushes (OPS 6.9)."""
    table = low.array(node.inputs[0])
    assert table is not None
    count = prod(node.shape[:-1])
    width = padded(table.shape[1])
    own = (slice(0, table.shape[0]), slice(0, table.shape[1]))
    held = scattered(table, (padded(table.shape[0]), width), own)[None]
    indices = index_queue(low, node)
    rows = padded(count)
    name = low.op(
        "embedding",
        [Use(_table(low, held, rows)), Use(indices)],
        (1, rows // TILE, width // TILE),
        num_indices=rows,
    )
    layout = standard((count, table.shape[1]))
    found = reshaped(layout, node.shape)
    assert found is not None
    return Value(name, found, (), None, True, True)  # the host pads the indices with ones, which read zeros


def _table(low: Lowering, held: Any, rows: int) -> str:
    """The queue of a table for an embedding of that many rows. net2pipe cuts the queue as the first of its readers in
    an epoch, by name, takes it: none may read more at a time (V081)."""
    for copy in numbers():
        name = low.constant(held, "table", "table", copy=copy)
        readers = {op.name: op for op in low.out.ops.values() if op.has("row-wise index") and op.uses[0].source == name}
        taken = {reader: op.attrs["num_indices"] for reader, op in readers.items() if op.program == low.program}
        taken[low.name()] = rows
        if taken[min(taken)] == max(taken.values()):
            return name
    raise AssertionError
