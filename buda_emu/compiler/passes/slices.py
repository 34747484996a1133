"""Passes that split products along slices and concatenations."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import SOURCES, Graph, Node, Shape
from buda_emu.compiler.graph.registry import front_op
from buda_emu.compiler.graph.sparse import Index, Sparse
from buda_emu.compiler.lower.layout import tiles_along


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
        build.scope = node.name
        build.source = node.source
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
                if held.shape[-1] == 1:
                    value = held.value
                else:
                    value = held.value[..., _place(columns)]
                found = build.emit("add", found, build.constant(value, dtype=held.dtype), dtype=node.dtype)
            del made.nodes[found.name]
            made.nodes[node.name] = replace(found, name=node.name)
        elif node.name not in left:
            made.nodes[node.name] = node
    return made


def _place(columns: Index) -> Index | slice:
    """Columns side by side as what numpy takes no copy for."""
    whole = columns.size > 0 and bool((np.diff(columns) == 1).all())
    if whole:
        return slice(int(columns[0]), int(columns[-1]) + 1)
    return columns


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
    if held.op == "constant" and len(held.shape) <= len(product.shape) and held.shape:
        return node
    return None


def _other(node: Node, name: str) -> str:
    return node.inputs[1 if node.inputs[0] == name else 0]


def _columns(reader: Node, product: Node) -> Index | None:
    """The columns that an op takes of a product; None where it does something else."""
    if reader.op != "linear" or reader.attrs["dim"] != len(product.shape) - 1:
        return None
    matrix: Sparse = reader.attrs["matrix"]
    whole = np.array_equal(matrix.row, np.arange(matrix.shape[0])) and bool((matrix.weight == 1).all())
    return matrix.col if whole else None


_ELSEWHERE = ("transpose", "reshape", "reduce_max")
"""Of the ops that read parts (`_step`) those after which channels are no longer side by side."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A dimension of a value, and the sizes of its parts along it."""

    dim: int
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Apart:
    """A value in parts; the concats that it comes of."""

    cut: Cut
    origins: frozenset[str]


def split_concats(graph: Graph) -> Graph:
    """Concats are left out where all that reads them can do with the parts: those of caches with what is after them,
    and those of channels where sums of products move less."""
    refused: set[str] = set()
    while True:
        found = _Plan.of(graph, refused)
        if not found.refused - refused:
            break
        refused |= found.refused
    return _rebuilt(graph, found) if found.values else graph


# --------------------------------------------------------------------------------------------------------------- plan
@dataclass(slots=True)
class _Plan:
    """The values that are in parts. `refused`: concats that a reader needs whole."""

    values: dict[str, _Apart]
    refused: set[str]

    @staticmethod
    def of(graph: Graph, refused: set[str]) -> "_Plan":
        """Without concats that are refused."""
        plan = _Plan({}, set())
        groups: list[set[str]] = []
        caches: set[str] = set()
        touched: dict[str, list[Node]] = {}  # the ops that read parts of a concat, and itself
        for node in graph:
            if node.op == "concat" and node.name not in refused and not _origins(plan, node):
                dim: int = node.attrs["dim"]
                sizes = tuple(graph[name].shape[dim] for name in node.inputs)
                plan.values[node.name] = _Apart(Cut(dim, sizes), frozenset([node.name]))
                if any(graph[name].op == "state" and graph[name].attrs["slots"] > 1 for name in node.inputs):
                    caches.add(node.name)
                groups.append({node.name})
                touched[node.name] = [node]
                continue
            origins = _origins(plan, node)
            if not origins:
                continue
            step = _step(graph, plan.values, node)
            if step is None:
                plan.refused |= origins
                continue
            groups = _joined(groups, origins)
            for origin in origins:
                touched[origin].append(node)
            if isinstance(step, Cut):
                plan.values[node.name] = _Apart(step, origins)
        shown = [plan.values[output.value].origins for output in graph.outputs if output.value in plan.values]
        plan.refused |= set().union(*shown)
        for group in groups:
            nodes = {node.name: node for origin in group for node in touched[origin]}
            if group & plan.refused or not (group & caches or _moves_less(graph, plan, list(nodes.values()))):
                plan.refused |= group
        return plan


def _origins(plan: _Plan, node: Node) -> frozenset[str]:
    return frozenset(one for name in node.inputs if name in plan.values for one in plan.values[name].origins)


def _joined(groups: list[set[str]], origins: frozenset[str]) -> list[set[str]]:
    """Concats that meet in an op are left out together, or not at all."""
    met = [group for group in groups if group & origins]
    return [group for group in groups if not group & origins] + [set().union(*met)]


def _step(graph: Graph, values: dict[str, _Apart], node: Node) -> Cut | str | None:
    """How an op reads operands of which some are in parts: the cut of its result, "sum" where that is whole; None where
    it cannot."""
    cuts = [values[name].cut if name in values else None for name in node.inputs]
    shapes = [graph[name].shape for name in node.inputs]
    family = front_op(node.op).family
    if family == "elementwise" or node.op == "identity":
        return _elementwise(graph, node, cuts, shapes)
    cut = cuts[0]
    if node.op == "matmul":
        return _product(graph, node, cuts, shapes)
    if cut is None:
        return None
    if node.op == "conv":
        if cut.dim == 1 and node.attrs["groups"] == 1:
            return "sum"
        return None
    if node.op == "max_pool":
        return cut if cut.dim == 1 else None
    if node.op == "transpose":
        return replace(cut, dim=tuple(node.attrs["perm"]).index(cut.dim))
    if node.op == "reshape":
        return _reshaped(cut, shapes[0], node.shape)
    if node.op in ("reduce_max", "linear"):
        return cut if node.attrs["dim"] != cut.dim else "sum"
    return None


def _elementwise(graph: Graph, node: Node, cuts: Sequence[Cut | None], shapes: Sequence[Shape]) -> Cut | None:
    """All that are in parts in the same ones; others are the same for all places of the dimension, or constants."""
    rank = len(node.shape)
    found = {Cut(cut.dim + rank - len(shape), cut.sizes) for cut, shape in zip(cuts, shapes, strict=True) if cut}
    if len(found) != 1:
        return None
    (cut,) = found
    for name, own, shape in zip(node.inputs, cuts, shapes, strict=True):
        place = cut.dim - (rank - len(shape))
        if own is None and place >= 0 and shape[place] != 1 and graph[name].op != "constant":
            return None
    return cut if node.shape[cut.dim] == sum(cut.sizes) else None


def _product(graph: Graph, node: Node, cuts: Sequence[Cut | None], shapes: Sequence[Shape]) -> Cut | str | None:
    """Parts of rows or columns of the result; a sum where both operands are in the same parts of the inner dimension,
    or one is and the other one is a constant."""
    (a, b) = cuts
    (left, right) = shapes
    rank = len(node.shape)
    inner_a = a is not None and a.dim == len(left) - 1
    inner_b = b is not None and b.dim == len(right) - 2
    if inner_a and inner_b and a is not None and b is not None:
        return "sum" if a.sizes == b.sizes else None
    if inner_a and b is None and graph[node.inputs[1]].op == "constant":
        return "sum"
    if a is not None and b is None and a.dim == len(left) - 2:
        return Cut(rank - 2, a.sizes)
    if b is not None and a is None and b.dim == len(right) - 1:
        return Cut(rank - 1, b.sizes)
    return None


def _reshaped(cut: Cut, before: Shape, after: Shape) -> Cut | None:
    """The dimension where it is after as much as before, and as long."""
    for dim, size in enumerate(after):
        if size == before[cut.dim] and prod(after[:dim]) == prod(before[: cut.dim]):
            return replace(cut, dim=dim)
    return None


def _moves_less(graph: Graph, plan: _Plan, nodes: Sequence[Node]) -> bool:
    """Whether fewer tiles are moved where channels side by side stay in parts; `nodes`: the concats and what reads the
    parts. All of these have to be ops of one place, pools, products and convolutions by constants."""
    together = apart = 0
    for node in nodes:
        whole = node.op == "concat"
        if whole:
            cost = _put_together(graph, plan.values[node.name].cut, node)
        else:
            cost = _read(graph, plan, node)
        if cost is None:
            return False
        together = together + cost[0]
        apart = apart + cost[1]
    return apart < together


def _put_together(graph: Graph, cut: Cut, node: Node) -> tuple[int, int] | None:
    """Tiles that a concat moves: a product with a matrix of ones for each part, as wide as all, and their sum."""
    if cut.dim != _channels(node) or any(graph[name].op == "constant" for name in node.inputs):
        return None
    return _rows(node) * (2 * len(cut.sizes) + 1) * tiles_along(sum(cut.sizes)), 0


def _read(graph: Graph, plan: _Plan, node: Node) -> tuple[int, int] | None:
    """Tiles that an op and its result move, as it is and in parts; None for one that a whole tensor beside the parts
    would make several of."""
    cut = next(plan.values[name].cut for name in node.inputs if name in plan.values)
    given = [graph[name] for name in node.inputs]
    others = [other for other in given if other.name not in plan.values]
    if node.op in _ELSEWHERE or any(other.op != "constant" for other in others) or cut.dim != _channels(node):
        return None
    read = sum(_rows(own) for own in given if own.name in plan.values)
    whole = tiles_along(sum(cut.sizes))
    parts = sum(map(tiles_along, cut.sizes))
    if node.name in plan.values:
        return (read + _rows(node)) * whole, (read + _rows(node)) * parts
    if node.op == "conv" and (taps := prod(given[1].shape[2:])) > 1:
        read += 2 * taps * _rows(node)  # what each window reads is put side by side first
    made = _rows(node) * tiles_along(node.shape[_channels(node)])
    return read * whole + made, read * parts + made * (2 * len(cut.sizes) + 1)


def _channels(node: Node) -> int:
    """The dimension that lies along the columns of tiles."""
    return 1 if len(node.shape) > 3 else len(node.shape) - 1


def _rows(node: Node) -> int:
    return prod(node.shape) // node.shape[_channels(node)]


# -------------------------------------------------------------------------------------------------------------- graph
def _rebuilt(graph: Graph, plan: _Plan) -> Graph:
    """The graph with what is in parts built part by part."""
    made = Graph(graph.name, inputs=list(graph.inputs), outputs=list(graph.outputs))
    build = Builder(made)
    parts: dict[str, list[Node]] = {}
    for node in graph:
        build.scope = node.name
        build.source = node.source
        if node.name in plan.values and node.op == "concat" and not any(name in parts for name in node.inputs):
            parts[node.name] = [made[name] for name in node.inputs]
        elif node.op in SOURCES or not any(name in parts for name in node.inputs):
            made.nodes[node.name] = node
        else:
            found = _in_parts(build, graph, plan, parts, node)
            if node.name in plan.values:
                parts[node.name] = found
            else:
                made.nodes[node.name] = replace(_together(build, node, found), name=node.name)
    return made


def _in_parts(build: Builder, graph: Graph, plan: _Plan, parts: dict[str, list[Node]], node: Node) -> list[Node]:
    """An op on each part of its operands."""
    cut = next(plan.values[name].cut for name in node.inputs if name in parts)
    made: list[Node] = []
    for number, size in enumerate(cut.sizes):
        begin = sum(cut.sizes[:number])
        attrs = dict(node.attrs)
        if node.op == "reshape":
            shape = list(node.shape)
            shape[plan.values[node.name].cut.dim] = size
            attrs["shape"] = tuple(shape)
        if node.op == "linear" and node.attrs["dim"] == cut.dim:
            attrs["matrix"] = matrix = _columns_of_parts(node.attrs["matrix"], begin, size)
            if not matrix.row.size and (made or number < len(cut.sizes) - 1):
                continue  # gives the sum nothing
        operands = [
            parts[name][number] if name in parts else _share(build, graph, plan, node, place, begin, size)
            for place, name in enumerate(node.inputs)
        ]
        made.append(build.emit(node.op, *operands, dtype=node.dtype, **attrs))
    return made


def _share(build: Builder, graph: Graph, plan: _Plan, node: Node, place: int, begin: int, size: int) -> Node:
    """What an operand that is whole gives a part: itself, or of a constant its share."""
    other = graph[node.inputs[place]]
    cut = plan.values.get(node.name)
    if node.op == "matmul":
        dim = len(other.shape) - 2 if cut is None else -1
    elif node.op == "conv":
        dim = 1
    else:
        if cut is None:
            dim = -1
        else:
            dim = cut.cut.dim - (len(node.shape) - len(other.shape))
    if other.op != "constant" or dim < 0 or other.shape[dim] == 1:
        return build.graph[other.name]
    inside = (slice(None),) * dim + (slice(begin, begin + size),)
    return build.constant(other.value[inside], dtype=other.dtype)


def _columns_of_parts(matrix: Sparse, begin: int, size: int) -> Sparse:
    """What a matrix does with some of its inputs."""
    own = (matrix.col >= begin) & (matrix.col < begin + size)
    return Sparse.of((matrix.shape[0], size), matrix.row[own], matrix.col[own] - begin, matrix.weight[own])


def _together(build: Builder, node: Node, found: Sequence[Node]) -> Node:
    """The largest or the sum of what the parts gave; the node is taken out again, to be named."""
    whole = found[0]
    for other in found[1:]:
        whole = build.emit("maximum" if node.op == "reduce_max" else "add", whole, other, dtype=node.dtype)
    return build.graph.nodes.pop(whole.name)
