"""Factors of products go where they are applied to the fewest elements: attention divides its mixed values by the sum
of the exponentials, not each exponential, and the scale of its scores goes into the weights that make the queries."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Final

import numpy as np

from buda_emu.compiler.graph.graph import Graph, Node

_MOVES: Final = ("reshape", "transpose", "identity")


def factors(graph: Graph, whole: int = 0) -> Graph:
    """`(x * r) V` becomes `(x V) * r`, with one number r for each row, where V has fewer columns than rows; `(q k) * s`
    becomes `(q s) k`, with one number s, where q is made by constants. Nobody else may read what is between; it has
    other values then, and other names. Rows of at most `whole` elements stay divided by their sums: one op does it all
    (`fuse_rows`)."""
    reads = Counter(name for node in graph for name in node.inputs)
    reads.update(output.value for output in graph.outputs)
    found = _Factors(Graph(graph.name, dict(graph.nodes), graph.inputs, graph.outputs), reads, whole)
    for name in graph.nodes:
        node = found.graph.nodes.get(name)  # as it is by now: factors may follow each other
        if node is not None and node.op == "matmul":
            found.row_later(node)
        elif node is not None and node.op == "multiply":
            found.number_sooner(node)
    return found.graph


def is_softmax(graph: Graph, node: Node, most: int) -> bool:
    """Whether a value is divided by its sums over the last dimension, of `most` elements at most."""
    if node.op != "multiply" or node.shape[-1] > most:
        return False
    for place, name in enumerate(node.inputs):
        row = graph[name]
        total = graph[row.inputs[0]] if row.op == "reciprocal" else row
        if total.op == "linear" and total.inputs[0] == node.inputs[1 - place] and total.shape == (*node.shape[:-1], 1):
            return True
    return False


@dataclass(slots=True)
class _Factors:
    """The graph as it becomes; how often ops and the host `read` each value; `whole` as in `factors`."""

    graph: Graph
    reads: Counter[str]
    whole: int

    def row_later(self, product: Node) -> None:
        """`(x * r) V`, where only leading dimensions may be reshaped after the factor."""
        view = scaled = self.graph[product.inputs[0]]
        if view.op == "reshape":
            scaled = self.graph[view.inputs[0]]
        if scaled.op != "multiply" or view.shape[-2:] != scaled.shape[-2:] or product.shape[-1] >= scaled.shape[-1]:
            return
        if self.reads[view.name] != 1 or self.reads[scaled.name] != 1 or is_softmax(self.graph, scaled, self.whole):
            return
        for place, name in enumerate(scaled.inputs):
            row, whole = self.graph[name], self.graph[scaled.inputs[1 - place]]
            if whole.shape == scaled.shape and row.shape == (*scaled.shape[:-1], 1) and row.op != "constant":
                self._put_later(product, view, scaled, row, whole)
                return

    def _put_later(self, product: Node, view: Node, scaled: Node, row: Node, whole: Node) -> None:
        parts = {"whole": whole, "row": row}
        for part, node in parts.items() if view is not scaled else ():
            shape = (*view.shape[:-1], node.shape[-1])
            name = f"{view.name}.{part}"
            parts[part] = Node(name, "reshape", (node.name,), {"shape": shape}, shape, node.dtype, view.source)
        inner = replace(product, name=f"{product.name}.whole", inputs=(parts["whole"].name, product.inputs[1]))
        made = [node for node in parts.values() if node.name not in self.graph.nodes]
        outer = replace(
            scaled, name=product.name, inputs=(inner.name, parts["row"].name), shape=product.shape, dtype=product.dtype
        )
        for left in (view, scaled):
            self.graph.nodes.pop(left.name, None)
        self._replace(product, [*made, inner, outer])

    def number_sooner(self, scaled: Node) -> None:
        """`(q k) * s`, where the product may be moved before it is scaled."""
        held = [self.graph[name] for name in scaled.inputs if self.graph[name].op == "constant"]
        if len(held) != 1 or prod(held[0].shape) != 1:
            return
        (value,) = (self.graph[name] for name in scaled.inputs if name != held[0].name)
        chain = self._moves(value.name)
        if not chain or chain[-1].op != "matmul" or value.shape != scaled.shape:
            return
        product = chain[-1]
        if any(self.graph[name].op == "constant" for name in product.inputs):
            return  # `fold_scale_bias` has these
        made = self._made(product.inputs[0])
        if not made:
            return
        for node in made:
            if node.op == "constant":
                numbers = node.value.astype(np.float32) * np.float32(held[0].value.reshape(-1)[0])
                self.graph.nodes[node.name] = replace(node, attrs={"value": numbers}, dtype="float32")
        names = {node.name: f"{node.name}.scaled" for node in (*made, *chain)}
        del self.graph.nodes[scaled.name]
        self._rename(names | {value.name: scaled.name})

    def _moves(self, name: str) -> list[Node]:
        """A value and what it is moved from, up to what is not a move, as long as each is read once."""
        found: list[Node] = []
        while self.reads[name] == 1:
            found.append(self.graph[name])
            if found[-1].op not in _MOVES:
                break
            name = found[-1].inputs[0]
        return found

    def _made(self, name: str) -> list[Node]:
        """A value that is a product by a constant, perhaps with a constant added, with all that it is made by; none
        where it is not, or somebody else reads one of these."""
        found = self._moves(name)
        if found and found[-1].op == "add" and len(term := self._constants(found[-1])) == 1:
            (other,) = (item for item in found[-1].inputs if item != term[0].name)
            found += [*term, *self._moves(other)]
        if not found or found[-1].op != "matmul" or len(weights := self._constants(found[-1])) != 1:
            return []
        found += weights
        return found if all(self.reads[node.name] == 1 for node in found) else []

    def _constants(self, node: Node) -> list[Node]:
        return [self.graph[name] for name in node.inputs if self.graph[name].op == "constant"]

    def _replace(self, old: Node, made: list[Node]) -> None:
        """Other nodes in the place of one."""
        found: dict[str, Node] = {}
        for name, node in self.graph.nodes.items():
            found |= {item.name: item for item in made} if name == old.name else {name: node}
        self.graph.nodes = found

    def _rename(self, names: Mapping[str, str]) -> None:
        """Give values that each have one reader other names."""
        found: dict[str, Node] = {}
        for node in self.graph:
            name, inputs = names.get(node.name, node.name), tuple(names.get(item, item) for item in node.inputs)
            same = name == node.name and inputs == node.inputs
            found[name] = node if same else replace(node, name=name, inputs=inputs)
        self.graph.nodes = found
        self.reads.update({new: 1 for new in names.values() if new not in self.reads})
