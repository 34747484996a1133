"""Passes that clean a graph: equal nodes merge, unused nodes and neutral constants go, front-end ops become core
ops.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any, cast

import numpy as np

from buda_emu.arithmetic.tensor.referenced import Referenced
from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import SOURCES, Array, ArrayKey, Graph, Node
from buda_emu.compiler.graph.sparse import Sparse


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
        if node.op not in ("input", "state"):
            first = known.setdefault(key, node.name)
        else:
            first = node.name
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


def dce(graph: Graph) -> Graph:
    """`y = exp(x); z = log(x); outputs: z` loses y; inputs stay."""
    live = graph.live()
    return Graph(
        graph.name,
        {name: node for name, node in graph.nodes.items() if name in live},
        list(graph.inputs),
        list(graph.outputs),
    )


def decompose(graph: Graph) -> Graph:
    """`softmax(x)` becomes its maximum, difference, exponential, sum, reciprocal and product; `1 + 2` becomes 3."""
    made = Graph(graph.name)
    builder = Builder(made)
    known: dict[str, Node] = {}
    for node in graph:
        builder.scope = node.name
        builder.source = node.source
        if node.op in SOURCES:
            made.nodes[node.name] = known[node.name] = node
            continue
        before = len(made.nodes)
        found = builder.emit(node.op, *(known[name] for name in node.inputs), dtype=node.dtype, **node.attrs)
        known[node.name] = builder.alias(found, node.name) if len(made.nodes) > before else found
    made.inputs = list(graph.inputs)
    made.outputs = [replace(item, value=known[item.value].name) for item in graph.outputs]
    return made


_NEUTRAL = {"add": 0.0, "subtract": 0.0, "multiply": 1.0}


def neutral(graph: Graph) -> Graph:
    """`y = add(x, zeros); z = exp(y)` becomes `z = exp(x)`, where y has x's shape and element type."""
    same: dict[str, str] = {}
    made = Graph(graph.name, inputs=list(graph.inputs))
    for node in graph:
        node = replace(node, inputs=tuple(same.get(name, name) for name in node.inputs))
        left = _unchanged(graph, node)
        if left is None:
            made.nodes[node.name] = node
        else:
            same[node.name] = left
    made.outputs = [replace(item, value=same.get(item.value, item.value)) for item in graph.outputs]
    return made


def _unchanged(graph: Graph, node: Node) -> str | None:
    """The operand that an op gives as it is."""
    number = _NEUTRAL.get(node.op)
    if number is None:
        places = ()
    elif node.op == "subtract":
        places = (0,)
    else:
        places = (0, 1)
    for place in places:
        left = graph[node.inputs[place]]
        other = graph[node.inputs[1 - place]]
        if other.op != "constant" or left.op == "constant" or (left.shape, left.dtype) != (node.shape, node.dtype):
            continue
        channels = other.shape[-1:] != (1,) and prod(other.shape[:-1]) == 1 and other.shape
        if not channels and bool((other.value == number).all()):
            return left.name
    return None
