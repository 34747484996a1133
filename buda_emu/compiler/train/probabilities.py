"""The exponential of log_softmax becomes softmax."""

from dataclasses import replace

from buda_emu.compiler.graph.graph import Graph


def probabilities(graph: Graph) -> Graph:
    """`exp(log_softmax(x))`, as torch's backward passes have it, becomes `softmax(x)`.

    The chip's exp is a few percent off (numbers-on-the-chip). Divided by their sum its values still add up to 1; the
    exponential of the logarithm does not, and what is left over pulls at all parameters in every step. What both are
    taken apart to is computed once (pass `common`).
    """
    nodes = dict(graph.nodes)
    for node in graph:
        if node.op == "exp" and not node.attrs and graph[node.inputs[0]].op == "log_softmax":
            logarithm = graph[node.inputs[0]]
            nodes[node.name] = replace(node, op="softmax", inputs=logarithm.inputs, attrs=logarithm.attrs)
    return Graph(graph.name, nodes, graph.inputs, graph.outputs)
