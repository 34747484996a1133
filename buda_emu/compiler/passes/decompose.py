"""Every front-end op becomes core ops; values that depend only on constants are computed."""

from dataclasses import replace

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import SOURCES, Graph, Node


def decompose(graph: Graph) -> Graph:
    """`softmax(x)` becomes its maximum, difference, exponential, sum, reciprocal and product; `1 + 2` becomes 3."""
    made = Graph(graph.name)
    builder = Builder(made)
    known: dict[str, Node] = {}
    for node in graph:
        builder.scope, builder.source = node.name, node.source
        if node.op in SOURCES:
            made.nodes[node.name] = known[node.name] = node
            continue
        before = len(made.nodes)
        found = builder.emit(node.op, *(known[name] for name in node.inputs), dtype=node.dtype, **node.attrs)
        known[node.name] = builder.alias(found, node.name) if len(made.nodes) > before else found
    made.inputs = list(graph.inputs)
    made.outputs = [replace(item, value=known[item.value].name) for item in graph.outputs]
    return made
