"""Removes nodes that no output depends on."""

from buda_emu.compiler.graph.graph import Graph


def dce(graph: Graph) -> Graph:
    """`y = exp(x); z = log(x); outputs: z` loses y; inputs stay."""
    live = graph.live()
    return Graph(
        graph.name,
        {name: node for name, node in graph.nodes.items() if name in live},
        list(graph.inputs),
        list(graph.outputs),
    )
