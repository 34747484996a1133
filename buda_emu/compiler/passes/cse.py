"""Merges equal nodes (common subexpression elimination)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from buda_emu.compiler.graph.array_key import ArrayKey
from buda_emu.compiler.graph.graph import Array, Graph
from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.tensor.referenced import Referenced


def cse(graph: Graph) -> Graph:
    """`a = exp(x); b = exp(x); a + b` becomes `a = exp(x); a + a`."""
    made = Graph(graph.name, inputs=list(graph.inputs))
    same: dict[str, str] = {}
    known: dict[Any, str] = {}
    for node in graph:
        node = replace(node, inputs=tuple(same[name] for name in node.inputs))
        key = (
            node.op,
            node.inputs,
            node.dtype,
            node.shape,
            tuple((name, _key(item)) for name, item in node.attrs.items()),
        )
        first = known.setdefault(key, node.name) if node.op not in ("input", "state") else node.name
        same[node.name] = first
        if first == node.name:
            made.nodes[node.name] = node
    made.outputs = [replace(item, value=same[item.value]) for item in graph.outputs]
    return made


def _key(value: Any) -> Any:
    if isinstance(value, (np.ndarray, Referenced)):
        return ArrayKey(cast("Array", value))
    if isinstance(value, (list, tuple)):
        items = cast("Sequence[Any]", value)
        return tuple(_key(item) for item in items)
    if isinstance(value, Sparse):
        return value.shape, ArrayKey(value.row), ArrayKey(value.col), ArrayKey(value.weight)
    return value
