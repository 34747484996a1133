"""Passes that clean a graph: equal nodes merge, unused nodes and neutral constants are removed, front-end ops become
core ops.
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
    """Merge equal nodes: `a = exp(x); b = exp(x); a + b` becomes `a = exp(x); a + a`."""
    merged = Graph(graph.name, inputs=list(graph.inputs))
    same: dict[str, str] = {}
    first_by_key: dict[Any, str] = {}
    for node in graph:
        node = replace(node, inputs=tuple(same[name] for name in node.inputs))
        key = (
            node.op,
            node.inputs,
            node.dtype,
            node.shape,
            tuple((name, _hashable_key(entry)) for name, entry in node.attrs.items()),
        )
        if node.op not in ("input", "state"):
            first = first_by_key.setdefault(key, node.name)
        else:
            first = node.name
        same[node.name] = first
        if first == node.name:
            merged.nodes[node.name] = node
    merged.outputs = [replace(entry, value=same[entry.value]) for entry in graph.outputs]
    return merged


def _hashable_key(value: Any) -> Any:
    """Return a hashable key of an attribute's value; arrays are compared by content."""
    if isinstance(value, (np.ndarray, Referenced)):
        return ArrayKey(cast("Array", value))
    if isinstance(value, (list, tuple)):
        entries = cast("Sequence[Any]", value)
        return tuple(_hashable_key(entry) for entry in entries)
    if isinstance(value, Sparse):
        return value.shape, ArrayKey(value.row), ArrayKey(value.col), ArrayKey(value.weight)
    return value


def dce(graph: Graph) -> Graph:
    """Remove nodes that no output depends on: `y = exp(x); z = log(x); outputs: z` loses y. Inputs stay. Raises
    HostError if networkx is not installed."""
    live = graph.live()
    return Graph(
        graph.name,
        {name: node for name, node in graph.nodes.items() if name in live},
        list(graph.inputs),
        list(graph.outputs),
    )


def decompose(graph: Graph) -> Graph:
    """Replace front-end ops by core ops and compute what depends only on constants: `softmax(x)` becomes its maximum,
    difference, exponential, sum, reciprocal and product; `1 + 2` becomes 3."""
    core_graph = Graph(graph.name)
    builder = Builder(core_graph)
    nodes_by_name: dict[str, Node] = {}
    for node in graph:
        builder.scope = node.name
        builder.source = node.source
        if node.op in SOURCES:
            core_graph.nodes[node.name] = nodes_by_name[node.name] = node
            continue
        before = len(core_graph.nodes)
        result = builder.emit(node.op, *(nodes_by_name[name] for name in node.inputs), dtype=node.dtype, **node.attrs)
        nodes_by_name[node.name] = builder.alias(result, node.name) if len(core_graph.nodes) > before else result
    core_graph.inputs = list(graph.inputs)
    core_graph.outputs = [replace(output, value=nodes_by_name[output.value].name) for output in graph.outputs]
    return core_graph


_NEUTRAL = {"add": 0.0, "subtract": 0.0, "multiply": 1.0}


def neutral(graph: Graph) -> Graph:
    """Remove ops that change nothing: `y = add(x, zeros); z = exp(y)` becomes `z = exp(x)`, if y has x's shape and
    element type."""
    same: dict[str, str] = {}
    reduced = Graph(graph.name, inputs=list(graph.inputs))
    for node in graph:
        node = replace(node, inputs=tuple(same.get(name, name) for name in node.inputs))
        left = _neutral_operand(graph, node)
        if left is None:
            reduced.nodes[node.name] = node
        else:
            same[node.name] = left
    reduced.outputs = [replace(output, value=same.get(output.value, output.value)) for output in graph.outputs]
    return reduced


def _neutral_operand(graph: Graph, node: Node) -> str | None:
    """Return the name of the operand that an op returns unchanged, because the other one is 0 for a sum or 1 for a
    product; None if there is none."""
    number = _NEUTRAL.get(node.op)
    if number is None:
        return None
    for place in (0,) if node.op == "subtract" else (0, 1):
        operand = graph[node.inputs[place]]
        if operand.op == "constant" or (operand.shape, operand.dtype) != (node.shape, node.dtype):
            continue
        if _is_neutral(graph[node.inputs[1 - place]], number):
            return operand.name
    return None


def _is_neutral(node: Node, number: float) -> bool:
    """Return whether an operand is a constant that has the number everywhere. Constants with one value for each channel
    do not count."""
    if node.op != "constant":
        return False
    channels = node.shape[-1:] != (1,) and prod(node.shape[:-1]) == 1 and node.shape
    return not channels and bool((node.value == number).all())
