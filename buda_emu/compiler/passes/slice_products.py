"""Slices of columns of a product by constants become products by those columns: queries, keys and values of one product
become three products, and nothing is moved after it.
"""

from dataclasses import replace

import numpy as np

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Graph, Node
from buda_emu.compiler.graph.sparse import Index, Sparse


def slice_products(graph: Graph) -> Graph:
    """`(x W + b)[..., columns]` becomes `x W[:, columns] + b[columns]` where all that reads the product takes columns
    of it, together no more than it has."""
    products = _products(graph)
    if not products:
        return graph
    left = {node.name for product, term, _ in products.values() for node in (product, term) if node is not None}
    made = Graph(graph.name, inputs=list(graph.inputs), outputs=list(graph.outputs))
    build = Builder(made)
    for node in graph:
        build.scope, build.source = node.name, node.source
        if node.name in products:
            product, term, columns = products[node.name]
            weights = graph[product.inputs[1]]
            found = build.emit(
                "matmul",
                product.inputs[0],
                build.constant(weights.value[..., _place(columns)], dtype=weights.dtype),
                dtype=node.dtype,
            )
            if term is not None:
                held = graph[_other(term, product.name)]
                value = held.value if held.shape[-1] == 1 else held.value[..., _place(columns)]
                found = build.emit("add", found, build.constant(value, dtype=held.dtype), dtype=node.dtype)
            del made.nodes[found.name]
            made.nodes[node.name] = replace(found, name=node.name)
        elif node.name not in left:
            made.nodes[node.name] = node
    return made


def _place(columns: Index) -> Index | slice:
    """Columns side by side as what numpy takes no copy for."""
    whole = columns.size > 0 and bool((np.diff(columns) == 1).all())
    return slice(int(columns[0]), int(columns[-1]) + 1) if whole else columns


def _products(graph: Graph) -> dict[str, tuple[Node, Node | None, Index]]:
    """Of each op that takes columns the product, what is added to it, and the columns."""
    users = graph.users()
    shown = {output.value for output in graph.outputs}
    found: dict[str, tuple[Node, Node | None, Index]] = {}
    for product in graph:
        if product.op != "matmul" or graph[product.inputs[1]].op != "constant" or product.name in shown:
            continue
        term = _term(graph, users, product)
        last = term or product
        readers = [graph[name] for name in users[last.name]]
        taken = [_columns(reader, last) for reader in readers]
        if last.name in shown or not readers or any(item is None for item in taken):
            continue
        if sum(item.size for item in taken if item is not None) > last.shape[-1]:
            continue
        found |= {
            reader.name: (product, term, columns)
            for reader, columns in zip(readers, taken, strict=True)
            if columns is not None
        }
    return found


def _term(graph: Graph, users: dict[str, list[str]], product: Node) -> Node | None:
    """The addition of a constant that alone reads a product, none for each row."""
    if len(users[product.name]) != 1:
        return None
    node = graph[users[product.name][0]]
    if node.op != "add" or node.shape != product.shape or len(set(node.inputs)) != 2:
        return None
    held = graph[_other(node, product.name)]
    return node if held.op == "constant" and len(held.shape) <= len(product.shape) and held.shape else None


def _other(node: Node, name: str) -> str:
    return node.inputs[1 if node.inputs[0] == name else 0]


def _columns(reader: Node, product: Node) -> Index | None:
    """The columns that an op takes of a product; None where it does something else."""
    if reader.op != "linear" or reader.attrs["dim"] != len(product.shape) - 1:
        return None
    matrix: Sparse = reader.attrs["matrix"]
    whole = np.array_equal(matrix.row, np.arange(matrix.shape[0])) and bool((matrix.weight == 1).all())
    return matrix.col if whole else None
