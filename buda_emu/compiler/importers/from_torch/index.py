"""Tables and indices: known to the compiler, inputs of the model, or computed."""

from math import prod
from typing import Any

import numpy as np

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.importers.from_torch.declared import NotSupportedError, aten
from buda_emu.compiler.importers.from_torch.moves import view


@aten("embedding")
def embedding(b: Builder, table: Node, index: Node, *_: Any) -> Node:
    """`embedding` by indices that are an input; else `gather`"""
    if table.op != "constant" or not _host_picks(b, index):
        return b.gather(table, index, dim=0)
    return b.embedding(table, index)


def _host_picks(b: Builder, node: Node) -> bool:
    while node.op in ("reshape", "identity", "transpose", "linear", "expand", "take", "slice"):
        node = b.graph[node.inputs[0]]
    return node.op == "input"


@aten("index_select")
def index_select(b: Builder, x: Node, dim: int, index: Node) -> Node:
    """`take` by constants, else `gather`: a product with one-hot rows"""
    if index.op == "constant":
        return b.take(x, dim=dim, index=np.asarray(index.value).reshape(-1) % x.shape[dim])
    return b.gather(x, index, dim=dim)


@aten("gather")
def gather(b: Builder, x: Node, dim: int, index: Node, **_: Any) -> Node:
    """`gather_elements`: one-hot along a dimension"""
    return b.gather_elements(x, index, dim=dim)


@aten("index")
def index(b: Builder, x: Node, indices: Any) -> Node:
    """`take` by constants of neighbouring dimensions, `embedding` by an input, else `gather`"""
    places = [place for place, item in enumerate(indices) if item is not None]
    given = [indices[place] for place in places]
    if len(given) == 1 and given[0].op != "constant":
        if places[0] == 0 and x.op == "constant" and _host_picks(b, given[0]):
            table = b.constant(x.value.reshape(x.shape[0], -1).astype(np.float32))
            return view(b, b.embedding(table, given[0]), (*given[0].shape, *x.shape[1:]))
        return b.gather(x, given[0], dim=places[0])
    if any(item.op != "constant" or item.dtype == "bool" for item in given):
        raise NotSupportedError("indices that are computed")
    if places != list(range(places[0], places[0] + len(places))):
        raise NotSupportedError("indices of dimensions apart")
    first, last = places[0], places[-1] + 1
    sizes = x.shape[first:last]
    values = np.broadcast_arrays(*(item.value for item in given))
    flat = np.ravel_multi_index([value % size for value, size in zip(values, sizes, strict=True)], sizes)
    merged = view(b, x, [*x.shape[:first], prod(sizes), *x.shape[last:]])
    found = b.take(merged, dim=first, index=flat.reshape(-1))
    return view(b, found, [*x.shape[:first], *flat.shape, *x.shape[last:]])
