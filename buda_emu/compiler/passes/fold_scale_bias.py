"""Factors and terms of each channel after a product go into its weights and one bias (FRONTEND 0.3): norms of
inference, scales, several biases."""

from dataclasses import replace
from math import prod
from typing import Final

import numpy as np

from buda_emu.compiler.graph.graph import Array, Graph, Node

_PRODUCTS: Final = ("conv", "matmul")
_LARGEST: Final = 65536.0
"""Greater terms are there to round something away, and so come last, by themselves."""


def fold_scale_bias(graph: Graph) -> Graph:
    """`conv(x, w) * s + t` becomes `conv(x, w s) + t`, if nobody else reads what is between; s and t are constants, one
    number for each channel of the result."""
    users = graph.users()
    shown = {output.value for output in graph.outputs}
    nodes = dict(graph.nodes)
    for product in graph:
        if product.op not in _PRODUCTS or graph[product.inputs[1]].op != "constant":
            continue
        chain = _chain(graph, users, shown, product)
        if any(node.op == "multiply" for node, _ in chain) or len(chain) > 1:
            _replace(graph, nodes, product, chain)
    return Graph(graph.name, _ordered(graph, nodes), graph.inputs, graph.outputs)


def rounds(term: Array) -> bool:
    """Whether a term is so large that adding it takes something away, on purpose: nothing may be added after it."""
    return not (np.abs(term) <= _LARGEST).all()


def _channel(product: Node) -> int:
    return 1 if product.op == "conv" else len(product.shape) - 1


def _chain(graph: Graph, users: dict[str, list[str]], shown: set[str], product: Node) -> list[tuple[Node, Array]]:
    """The ops after a product that act on each channel by itself, each with its numbers."""
    found: list[tuple[Node, Array]] = []
    node, place = product, _channel(product)
    weights = graph[product.inputs[1]]
    if product.op == "matmul" and prod(weights.shape[:-2]) != 1:
        return found
    while node.name not in shown and len(users[node.name]) == 1:
        user = graph[users[node.name][0]]
        if user.op not in ("multiply", "add") or user.shape != product.shape or len(set(user.inputs)) != 2:
            return found
        other = graph[user.inputs[1 if user.inputs[0] == node.name else 0]]
        if other.op != "constant" or rounds(other.value):
            return found
        shape = (1,) * (len(product.shape) - len(other.shape)) + other.shape
        if any(size != 1 for at, size in enumerate(shape) if at != place):
            return found
        numbers = other.value.astype(np.float32).reshape(-1)
        found.append((user, np.broadcast_to(numbers, (product.shape[place],))))
        node = user
    return found


def _replace(graph: Graph, nodes: dict[str, Node], product: Node, chain: list[tuple[Node, Array]]) -> None:
    channels = product.shape[_channel(product)]
    scale, shift = np.ones(channels, np.float32), np.zeros(channels, np.float32)
    for node, numbers in chain:
        if node.op == "multiply":
            scale, shift = scale * numbers, shift * numbers
        else:
            shift = shift + numbers
    weights, last = graph[product.inputs[1]], chain[-1][0]
    form = (-1, *[1] * (len(weights.shape) - 1)) if product.op == "conv" else (-1,)
    scaled = weights.value.astype(np.float32) * scale.reshape(form)
    for node, _ in chain:
        del nodes[node.name]
    held = f"{product.name}.scaled"
    nodes[held] = replace(weights, name=held, attrs={"value": scaled}, dtype="float32")
    if not any(node.op == "add" for node, _ in chain):
        del nodes[product.name]
        nodes[last.name] = replace(product, name=last.name, inputs=(product.inputs[0], held), source=last.source)
        return
    name = f"{last.name}.{product.op}"  # no longer the product that the model has
    nodes[name] = replace(nodes.pop(product.name), name=name, inputs=(product.inputs[0], held))
    row = shift.reshape(-1, *[1] * (len(product.shape) - 1 - _channel(product)))
    term = f"{last.name}.shift"
    nodes[term] = Node(term, "constant", (), {"value": row}, row.shape, "float32", last.source)
    nodes[last.name] = Node(last.name, "add", (name, term), {}, last.shape, last.dtype, last.source)


def _ordered(graph: Graph, nodes: dict[str, Node]) -> dict[str, Node]:
    """In the order of before, new constants in front, a new product in front of what is added to it."""
    new = {name: node for name, node in nodes.items() if name not in graph.nodes}
    found = {name: node for name, node in new.items() if node.op == "constant"}
    for name in graph.nodes:
        if name in nodes:
            found |= {before: new[before] for before in nodes[name].inputs if before in new}
            found[name] = nodes[name]
    return found
