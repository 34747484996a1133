"""Passes that split products along slices and concatenations."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import prod

import numpy as np

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import SOURCES, Graph, Node, Shape, other_operand
from buda_emu.compiler.graph.registry import front_op
from buda_emu.compiler.graph.sparse import Index, Sparse
from buda_emu.compiler.lower.layout import tiles_along


def slice_products(graph: Graph) -> Graph:
    """Slice weights instead of products: `(x W + b)[..., columns]` becomes `x W[:, columns] + b[columns]` if all
    readers of the product take columns of it, together no more than it has."""
    products = _products_by_reader(graph)
    if not products:
        return graph
    replaced: set[str] = set()
    for product, term, _ in products.values():
        replaced.add(product.name)
        if term is not None:
            replaced.add(term.name)
    sliced = Graph(graph.name, inputs=list(graph.inputs), outputs=list(graph.outputs))
    build = Builder(sliced)
    for node in graph:
        build.scope = node.name
        build.source = node.source
        if node.name in products:
            product, term, columns = products[node.name]
            weights = graph[product.inputs[1]]
            result = build.emit(
                "matmul",
                product.inputs[0],
                build.constant(weights.value[..., _as_slice(columns)], dtype=weights.dtype),
                dtype=node.dtype,
            )
            if term is not None:
                held = graph[other_operand(term, product.name)]
                if held.shape[-1] == 1:
                    value = held.value
                else:
                    value = held.value[..., _as_slice(columns)]
                result = build.emit("add", result, build.constant(value, dtype=held.dtype), dtype=node.dtype)
            del sliced.nodes[result.name]
            sliced.nodes[node.name] = replace(result, name=node.name)
        elif node.name not in replaced:
            sliced.nodes[node.name] = node
    return sliced


def _as_slice(columns: Index) -> Index | slice:
    """Return consecutive columns as a slice, with which numpy makes no copy; other columns unchanged."""
    contiguous = columns.size > 0 and bool((np.diff(columns) == 1).all())
    if contiguous:
        return slice(int(columns[0]), int(columns[-1]) + 1)
    return columns


def _products_by_reader(graph: Graph) -> dict[str, tuple[Node, Node | None, Index]]:
    """Return for each op that takes columns of a product, by its name, the product, the addition of a constant behind
    it or None, and the columns."""
    users = graph.users()
    shown = {output.value for output in graph.outputs}
    slices: dict[str, tuple[Node, Node | None, Index]] = {}
    for product in graph:
        if product.op != "matmul" or graph[product.inputs[1]].op != "constant" or product.name in shown:
            continue
        term = _added_constant(graph, users, product)
        last = term or product
        if last.name in shown:
            continue
        for reader, columns in _columns_by_reader(last, [graph[name] for name in users[last.name]]):
            slices[reader.name] = (product, term, columns)
    return slices


def _columns_by_reader(product: Node, readers: Sequence[Node]) -> list[tuple[Node, Index]]:
    """Return the readers of a product with the columns that they take; none if one of them reads anything else, or all
    together read more columns than the product has."""
    pairs: list[tuple[Node, Index]] = []
    for reader in readers:
        columns = _columns_taken(reader, product)
        if columns is None:
            return []
        pairs.append((reader, columns))
    total = sum(columns.size for _, columns in pairs)
    if total <= product.shape[-1]:
        return pairs
    return []


def _added_constant(graph: Graph, users: dict[str, list[str]], product: Node) -> Node | None:
    """Return the addition of a constant, not of one number for each row, that is a product's only reader; None if there
    is none."""
    if len(users[product.name]) != 1:
        return None
    node = graph[users[product.name][0]]
    if node.op != "add" or node.shape != product.shape or len(set(node.inputs)) != 2:
        return None
    held = graph[other_operand(node, product.name)]
    if held.op == "constant" and len(held.shape) <= len(product.shape) and held.shape:
        return node
    return None


def _columns_taken(reader: Node, product: Node) -> Index | None:
    """Return the columns that an op takes of a product; None for an op that does anything else."""
    if reader.op != "linear" or reader.attrs["dim"] != len(product.shape) - 1:
        return None
    matrix: Sparse = reader.attrs["matrix"]
    selects = np.array_equal(matrix.row, np.arange(matrix.shape[0])) and bool((matrix.weight == 1).all())
    if selects:
        return matrix.col
    return None


_ELSEWHERE = ("transpose", "reshape", "reduce_max")
"""Ops that read parts (`_cut_of_result`) and after which channels are no longer side by side."""


@dataclass(frozen=True, slots=True)
class SplitDimension:
    """A dimension of a value, and the sizes of its parts along it."""

    dim: int
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Parts:
    """A value in parts: their cut, and the concats that it depends on."""

    cut: SplitDimension
    origins: frozenset[str]


def split_concats(graph: Graph) -> Graph:
    """Remove concats whose readers can all read the parts: concats of caches with new slots, and concats of channels if
    sums of products move fewer tiles."""
    refused: set[str] = set()
    while True:
        plan = _Plan.of(graph, refused)
        if not plan.refused - refused:
            break
        refused |= plan.refused
    if plan.values:
        return _rebuild(graph, plan)
    return graph


# --------------------------------------------------------------------------------------------------------------- plan
@dataclass(slots=True)
class _Plan:
    """The values that are in parts. `refused`: concats that a reader needs whole."""

    values: dict[str, _Parts]
    refused: set[str]

    @staticmethod
    def of(graph: Graph, refused: set[str]) -> "_Plan":
        """Find the values that can be in parts, without concats that are already refused."""
        plan = _Plan({}, set())
        groups: list[set[str]] = []
        touched: dict[str, list[Node]] = {}  # the ops that read parts of a concat, and itself
        for node in graph:
            origins = _origins_of_operands(plan, node)
            if node.op == "concat" and node.name not in refused and not origins:
                dim: int = node.attrs["dim"]
                sizes = tuple(graph[name].shape[dim] for name in node.inputs)
                plan.values[node.name] = _Parts(SplitDimension(dim, sizes), frozenset([node.name]))
                groups.append({node.name})
                touched[node.name] = [node]
                continue
            if not origins:
                continue
            step = _cut_of_result(graph, plan.values, node)
            if step is None:
                plan.refused |= origins
                continue
            groups = _merge_groups(groups, origins)
            for origin in origins:
                touched[origin].append(node)
            if isinstance(step, SplitDimension):
                plan.values[node.name] = _Parts(step, origins)
        plan._refuse_groups(graph, groups, touched)
        return plan

    def _refuse_groups(self, graph: Graph, groups: list[set[str]], touched: dict[str, list[Node]]) -> None:
        """Refuse the groups of concats that an output needs whole or in which nothing is gained by parts; `touched`:
        the ops that read parts of each concat."""
        for output in graph.outputs:
            if output.value in self.values:
                self.refused |= self.values[output.value].origins
        for group in groups:
            nodes: dict[str, Node] = {}
            for origin in group:
                nodes |= {node.name: node for node in touched[origin]}
            has_cache = any(_joins_cache(graph, graph[origin]) for origin in group)
            if group & self.refused or not (has_cache or _moves_less(graph, self, list(nodes.values()))):
                self.refused |= group


def _joins_cache(graph: Graph, concat: Node) -> bool:
    """Return whether a concat reads a cache with slots."""
    return any(graph[name].op == "state" and graph[name].attrs["slots"] > 1 for name in concat.inputs)


def _origins_of_operands(plan: _Plan, node: Node) -> frozenset[str]:
    """Return the names of the concats that the operands in parts of a node depend on."""
    return frozenset(chain.from_iterable(plan.values[name].origins for name in node.inputs if name in plan.values))


def _merge_groups(groups: list[set[str]], origins: frozenset[str]) -> list[set[str]]:
    """Return the groups of concats with those merged that contain one of `origins`: concats that meet in an op are
    removed together or not at all."""
    met = [group for group in groups if group & origins]
    return [group for group in groups if not group & origins] + [set().union(*met)]


def _cut_of_result(graph: Graph, values: dict[str, _Parts], node: Node) -> SplitDimension | str | None:
    """Return how a node reads operands of which some are in parts (`values`): the cut of its result, or "sum" if the
    result is whole and the results of the parts are combined; None if the node cannot read parts."""
    cuts = [values[name].cut if name in values else None for name in node.inputs]
    shapes = [graph[name].shape for name in node.inputs]
    family = front_op(node.op).family
    if family == "elementwise" or node.op == "identity":
        return _cut_of_elementwise(graph, node, cuts, shapes)
    if node.op == "matmul":
        return _cut_of_product(graph, node, cuts, shapes)
    if cuts[0] is None:
        return None
    return _cut_by_first_operand(node, cuts[0], shapes[0])


def _cut_by_first_operand(node: Node, cut: SplitDimension, shape: Shape) -> SplitDimension | str | None:
    """Return how a node other than an element-wise op and a product reads its first operand of this shape in the parts
    `cut`: the cut of its result, or "sum" if the result is whole and the results of the parts are combined; None if the
    node cannot read parts."""
    if node.op == "conv":
        if cut.dim == 1 and node.attrs["groups"] == 1:
            return "sum"
        return None
    if node.op == "max_pool":
        if cut.dim == 1:
            return cut
        return None
    if node.op == "transpose":
        return replace(cut, dim=tuple(node.attrs["perm"]).index(cut.dim))
    if node.op == "reshape":
        return _reshape_cut(cut, shape, node.shape)
    if node.op in ("reduce_max", "linear"):
        if node.attrs["dim"] != cut.dim:
            return cut
        return "sum"
    return None


def _cut_of_elementwise(
    graph: Graph, node: Node, cuts: Sequence[SplitDimension | None], shapes: Sequence[Shape]
) -> SplitDimension | None:
    """Return the cut of an element-wise op's result. All operands in parts have the same cut; other operands are
    constants or do not vary along its dimension."""
    rank = len(node.shape)
    result_cuts = {
        SplitDimension(cut.dim + rank - len(shape), cut.sizes) for cut, shape in zip(cuts, shapes, strict=True) if cut
    }
    if len(result_cuts) != 1:
        return None
    (cut,) = result_cuts
    for name, operand_cut, shape in zip(node.inputs, cuts, shapes, strict=True):
        place = cut.dim - (rank - len(shape))
        if operand_cut is None and place >= 0 and shape[place] != 1 and graph[name].op != "constant":
            return None
    if node.shape[cut.dim] == sum(cut.sizes):
        return cut
    return None


def _cut_of_product(
    graph: Graph, node: Node, cuts: Sequence[SplitDimension | None], shapes: Sequence[Shape]
) -> SplitDimension | str | None:
    """Return the cut of a product into parts of rows or columns, or "sum" if both operands have the same cut of the
    inner dimension, or the first one has a cut of it and the second one is a constant; None for any other cuts."""
    (a, b) = cuts
    (left, right) = shapes
    rank = len(node.shape)
    inner_of_left = a is not None and a.dim == len(left) - 1
    if a is not None and b is not None:
        both_inner = inner_of_left and b.dim == len(right) - 2
        return "sum" if both_inner and a.sizes == b.sizes else None
    if inner_of_left and graph[node.inputs[1]].op == "constant":
        return "sum"
    if a is not None and a.dim == len(left) - 2:
        return SplitDimension(rank - 2, a.sizes)
    if b is not None and b.dim == len(right) - 1:
        return SplitDimension(rank - 1, b.sizes)
    return None


def _reshape_cut(cut: SplitDimension, before: Shape, after: Shape) -> SplitDimension | None:
    """Return the cut after a reshape: in the dimension with as many elements in front of it as before, and of the same
    length; None if there is none."""
    for dim, size in enumerate(after):
        if size == before[cut.dim] and prod(after[:dim]) == prod(before[: cut.dim]):
            return replace(cut, dim=dim)
    return None


def _moves_less(graph: Graph, plan: _Plan, nodes: Sequence[Node]) -> bool:
    """Return whether fewer tiles are moved if channels side by side stay in parts; `nodes`: the concats and the ops
    that read the parts. Every reader must be an element-wise op, a pool, a product or a convolution by constants."""
    together = apart = 0
    for node in nodes:
        is_concat = node.op == "concat"
        if is_concat:
            cost = _cost_of_concat(graph, plan.values[node.name].cut, node)
        else:
            cost = _cost_of_reader(graph, plan, node)
        if cost is None:
            return False
        together = together + cost[0]
        apart = apart + cost[1]
    return apart < together


def _cost_of_concat(graph: Graph, cut: SplitDimension, node: Node) -> tuple[int, int] | None:
    """Return the tiles that a concat of the parts `cut` moves: first if it is carried out, as a product with a matrix
    and a sum for each part, then if the parts stay apart, 0. None if it does not join channels, or joins a constant."""
    if cut.dim != _channel_dim(node) or any(graph[name].op == "constant" for name in node.inputs):
        return None
    return _elements_per_channel(node) * (2 * len(cut.sizes) + 1) * tiles_along(sum(cut.sizes)), 0


def _cost_of_reader(graph: Graph, plan: _Plan, node: Node) -> tuple[int, int] | None:
    """Return the tiles that an op and its result move, with whole operands and with parts; None for an op whose other
    operand would turn it into several ops."""
    operands = [graph[name] for name in node.inputs]
    planned = [operand for operand in operands if operand.name in plan.values]
    others = [operand for operand in operands if operand.name not in plan.values]
    cut = plan.values[planned[0].name].cut
    if node.op in _ELSEWHERE or any(other.op != "constant" for other in others) or cut.dim != _channel_dim(node):
        return None
    read = sum(map(_elements_per_channel, planned))
    tiles_whole = tiles_along(sum(cut.sizes))
    tiles_in_parts = sum(map(tiles_along, cut.sizes))
    if node.name in plan.values:
        return (read + _elements_per_channel(node)) * tiles_whole, (read + _elements_per_channel(node)) * tiles_in_parts
    if node.op == "conv" and (taps := prod(operands[1].shape[2:])) > 1:
        read += 2 * taps * _elements_per_channel(node)  # what each window reads is put side by side first
    result_tiles = _elements_per_channel(node) * tiles_along(node.shape[_channel_dim(node)])
    return read * tiles_whole + result_tiles, read * tiles_in_parts + result_tiles * (2 * len(cut.sizes) + 1)


def _channel_dim(node: Node) -> int:
    """Return the dimension of a node that will lie along the columns of tiles: the channels of images, else the
    last."""
    if len(node.shape) > 3:
        return 1
    return len(node.shape) - 1


def _elements_per_channel(node: Node) -> int:
    """Return the number of elements that a node has for each channel."""
    return prod(node.shape) // node.shape[_channel_dim(node)]


# -------------------------------------------------------------------------------------------------------------- graph
def _rebuild(graph: Graph, plan: _Plan) -> Graph:
    """Build the graph with the planned values in parts."""
    rebuilt = Graph(graph.name, inputs=list(graph.inputs), outputs=list(graph.outputs))
    build = Builder(rebuilt)
    parts: dict[str, list[Node]] = {}
    for node in graph:
        build.scope = node.name
        build.source = node.source
        reads_parts = any(name in parts for name in node.inputs)
        if node.name in plan.values and node.op == "concat" and not reads_parts:
            parts[node.name] = [rebuilt[name] for name in node.inputs]
        elif node.op in SOURCES or not reads_parts:
            rebuilt.nodes[node.name] = node
        else:
            results = _emit_in_parts(build, graph, plan, parts, node)
            if node.name in plan.values:
                parts[node.name] = results
            else:
                rebuilt.nodes[node.name] = replace(_combine_results(build, node, results), name=node.name)
    return rebuilt


def _with_size(shape: Sequence[int], dim: int, size: int) -> tuple[int, ...]:
    """Return a shape with another size of one dimension."""
    sizes = list(shape)
    sizes[dim] = size
    return tuple(sizes)


def _emit_in_parts(build: Builder, graph: Graph, plan: _Plan, parts: dict[str, list[Node]], node: Node) -> list[Node]:
    """Emit an op on each part of its operands and return the results, without those that would add nothing to a sum."""
    cut = next(plan.values[name].cut for name in node.inputs if name in parts)
    results: list[Node] = []
    for number, size in enumerate(cut.sizes):
        begin = sum(cut.sizes[:number])
        attrs = dict(node.attrs)
        if node.op == "reshape":
            attrs["shape"] = _with_size(node.shape, plan.values[node.name].cut.dim, size)
        if node.op == "linear" and node.attrs["dim"] == cut.dim:
            attrs["matrix"] = matrix = _columns_of_parts(node.attrs["matrix"], begin, size)
            if not matrix.row.size and (results or number < len(cut.sizes) - 1):
                continue  # gives the sum nothing
        operands: list[Node] = []
        for place, name in enumerate(node.inputs):
            if name in parts:
                operands.append(parts[name][number])
            else:
                operands.append(_share_of_operand(build, graph, plan, node, place, begin, size))
        results.append(build.emit(node.op, *operands, dtype=node.dtype, **attrs))
    return results


def _share_of_operand(build: Builder, graph: Graph, plan: _Plan, node: Node, place: int, begin: int, size: int) -> Node:
    """Return what operand `place` of a node, which is whole, contributes to a part: itself, or the share of a constant
    from `begin` on, `size` long."""
    other = graph[node.inputs[place]]
    cut = plan.values.get(node.name)
    if node.op == "matmul":
        if cut is None:
            dim = len(other.shape) - 2
        else:
            dim = -1
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
    """Return the columns of a sparse matrix that belong to `size` of its inputs from `begin` on."""
    inside = (matrix.col >= begin) & (matrix.col < begin + size)
    return Sparse.of((matrix.shape[0], size), matrix.row[inside], matrix.col[inside] - begin, matrix.weight[inside])


def _combine_results(build: Builder, node: Node, results: Sequence[Node]) -> Node:
    """Return the maximum (of a reduce_max `node`) or the sum of the parts' results. The returned node is taken out of
    the graph again, so that the caller can add it under the name of `node`."""
    total = results[0]
    for other in results[1:]:
        total = build.emit("maximum" if node.op == "reduce_max" else "add", total, other, dtype=node.dtype)
    return build.graph.nodes.pop(total.name)
