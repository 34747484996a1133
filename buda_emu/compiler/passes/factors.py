"""Passes that move factors of products to the place where they multiply the fewest elements."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Final

import numpy as np

from buda_emu.arithmetic.tensor.boxes import group_dimensions
from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import SOURCES, Graph, Node, Shape
from buda_emu.compiler.graph.registry import front_op

_MOVES: Final = ("reshape", "transpose", "identity")


def factors(graph: Graph, longest_softmax: int = 0) -> Graph:
    """Move factors to smaller tensors. `(x * r) V` becomes `(x V) * r`, with one number r for each row, if V has fewer
    columns than rows; `(q k) * s` becomes `(q s) k`, with one number s, if q is computed from constants. The values
    between must have no other reader, because they change; they get other names. Rows of at most `longest_softmax`
    elements stay divided by their sums, because one op computes both (`fuse_rows`)."""
    reads = Counter(name for node in graph for name in node.inputs)
    reads.update(output.value for output in graph.outputs)
    mover = _FactorMover(Graph(graph.name, dict(graph.nodes), graph.inputs, graph.outputs), reads, longest_softmax)
    for name in graph.nodes:
        node = mover.graph.nodes.get(name)  # as it is by now: factors may follow each other
        if node is not None and node.op == "matmul":
            mover.move_row_factor_later(node)
        elif node is not None and node.op == "multiply":
            mover.move_number_sooner(node)
    return mover.graph


def is_softmax(graph: Graph, node: Node, longest_row: int) -> bool:
    """Return whether a node divides a value by its sums over the last dimension, which has at most `longest_row`
    elements."""
    if node.op != "multiply" or node.shape[-1] > longest_row:
        return False
    for place, name in enumerate(node.inputs):
        row = graph[name]
        if row.op == "reciprocal":
            total = graph[row.inputs[0]]
        else:
            total = row
        if total.op == "linear" and total.inputs[0] == node.inputs[1 - place] and total.shape == (*node.shape[:-1], 1):
            return True
    return False


@dataclass(slots=True)
class _FactorMover:
    """A graph whose factors are being moved; `reads` counts how often ops and the host read each value;
    rows of at most `longest_softmax` elements stay divided by their sums."""

    graph: Graph
    reads: Counter[str]
    longest_softmax: int

    def _is_read_elsewhere(self, *nodes: Node) -> bool:
        """Return whether one of these values, each of which the next one reads, has another reader, too."""
        return any(self.reads[node.name] != 1 for node in nodes)

    def move_row_factor_later(self, product: Node) -> None:
        """Rewrite the product `(x * r) V` as `(x V) * r` if r is computed and has one number for each row, V has fewer
        columns than rows and nothing else reads the values between. Only leading dimensions may be reshaped between
        factor and product."""
        view = scaled = self.graph[product.inputs[0]]
        if view.op == "reshape":
            scaled = self.graph[view.inputs[0]]
        if scaled.op != "multiply" or view.shape[-2:] != scaled.shape[-2:] or product.shape[-1] >= scaled.shape[-1]:
            return
        if self._is_read_elsewhere(view, scaled) or is_softmax(self.graph, scaled, self.longest_softmax):
            return
        for place, name in enumerate(scaled.inputs):
            row = self.graph[name]
            unscaled = self.graph[scaled.inputs[1 - place]]
            if unscaled.shape == scaled.shape and row.shape == (*scaled.shape[:-1], 1) and row.op != "constant":
                self._put_later(product, view, scaled, row, unscaled)
                return

    def _put_later(self, product: Node, view: Node, scaled: Node, row: Node, unscaled: Node) -> None:
        """Multiply the product by the row's factor, instead of its operand, in the graph itself. `view`: the operand;
        `scaled`: the value that was multiplied, perhaps in another shape; `row` and `unscaled`: its two factors."""
        parts = {"whole": unscaled, "row": row}
        for part, node in parts.items() if view is not scaled else ():
            shape = (*view.shape[:-1], node.shape[-1])
            name = f"{view.name}.{part}"
            parts[part] = Node(
                name=name,
                op="reshape",
                inputs=(node.name,),
                attrs={"shape": shape},
                shape=shape,
                dtype=node.dtype,
                source=view.source,
            )
        inner = replace(product, name=f"{product.name}.whole", inputs=(parts["whole"].name, product.inputs[1]))
        new_nodes = [node for node in parts.values() if node.name not in self.graph.nodes]
        outer = replace(
            scaled, name=product.name, inputs=(inner.name, parts["row"].name), shape=product.shape, dtype=product.dtype
        )
        for left in (view, scaled):
            self.graph.nodes.pop(left.name, None)
        self._replace(product, [*new_nodes, inner, outer])

    def move_number_sooner(self, scaled: Node) -> None:
        """Rewrite the value `scaled`, `(q k) * s`, as `(q s) k` if s is a constant number and q a product by a
        constant, which then includes it. The product may be moved before it is scaled."""
        held = [self.graph[name] for name in scaled.inputs if self.graph[name].op == "constant"]
        if len(held) != 1 or prod(held[0].shape) != 1:
            return
        (value,) = (self.graph[name] for name in scaled.inputs if name != held[0].name)
        chain = self._chain_of_moves(value.name)
        if not chain or chain[-1].op != "matmul" or value.shape != scaled.shape:
            return
        product = chain[-1]
        if any(self.graph[name].op == "constant" for name in product.inputs):
            return  # `fold_scale_bias` has these
        factor_chain = self._chain_from_constant(product.inputs[0])
        if not factor_chain:
            return
        for node in factor_chain:
            if node.op == "constant":
                numbers = node.value.astype(np.float32) * np.float32(held[0].value.reshape(-1)[0])
                self.graph.nodes[node.name] = replace(node, attrs={"value": numbers}, dtype="float32")
        names = {node.name: f"{node.name}.scaled" for node in (*factor_chain, *chain)}
        del self.graph.nodes[scaled.name]
        self._rename(names | {value.name: scaled.name})

    def _chain_of_moves(self, name: str) -> list[Node]:
        """Return the node of a value and the nodes that it is moved from, up to the first that is not a move, as long
        as each has one reader; [] if the value itself has several."""
        chain: list[Node] = []
        while self.reads[name] == 1:
            chain.append(self.graph[name])
            if chain[-1].op not in _MOVES:
                break
            name = chain[-1].inputs[0]
        return chain

    def _chain_from_constant(self, name: str) -> list[Node]:
        """Return a value that is a product by a constant, perhaps with a constant added, followed by everything that it
        is computed from up to the product. Return an empty list for another value, or if one of these has another
        reader."""
        chain = self._chain_of_moves(name)
        if chain and chain[-1].op == "add" and len(term := self._constant_operands(chain[-1])) == 1:
            (other,) = (operand for operand in chain[-1].inputs if operand != term[0].name)
            chain += [*term, *self._chain_of_moves(other)]
        if not chain or chain[-1].op != "matmul" or len(weights := self._constant_operands(chain[-1])) != 1:
            return []
        chain += weights
        if all(self.reads[node.name] == 1 for node in chain):
            return chain
        return []

    def _constant_operands(self, node: Node) -> list[Node]:
        """Return the operands of a node that are constants."""
        return [self.graph[name] for name in node.inputs if self.graph[name].op == "constant"]

    def _replace(self, old: Node, new_nodes: list[Node]) -> None:
        """Put new nodes in the place of the node `old` of the graph."""
        nodes: dict[str, Node] = {}
        for name, node in self.graph.nodes.items():
            nodes |= {new_node.name: new_node for new_node in new_nodes} if name == old.name else {name: node}
        self.graph.nodes = nodes

    def _rename(self, names: Mapping[str, str]) -> None:
        """Rename values of the graph that have one reader each; `names`: the new names by the old ones."""
        nodes: dict[str, Node] = {}
        for node in self.graph:
            name = names.get(node.name, node.name)
            inputs = tuple(names.get(operand, operand) for operand in node.inputs)
            same = name == node.name and inputs == node.inputs
            nodes[name] = node if same else replace(node, name=name, inputs=inputs)
        self.graph.nodes = nodes
        self.reads.update({new: 1 for new in names.values() if new not in self.reads})


_WIDER: Final = 4
"""Largest ratio of columns to the length of the rows in a product that waits for a factor. In a wider product, such as
the scores of all words, every column would have to be multiplied."""


@dataclass(frozen=True, slots=True)
class _Late:
    """The factor that a value lacks. `origin`: the node that multiplied by it; `moves` (op, shape or order) that the
    factor went through; `row`: its shape, with the value's rank and 1 in the last dimension; `positive`: whether it is
    never below 0."""

    origin: str
    row: Shape
    positive: bool
    moves: tuple[tuple[str, Shape], ...] = ()


@dataclass(frozen=True, slots=True)
class _Step:
    """The treatment of an op. `late`: the factor that its result lacks, None if it lacks nothing; `whole`: places of
    operands that the op needs with their factors."""

    late: _Late | None
    whole: tuple[int, ...] = ()


def _origins_read_whole(graph: Graph, steps: Mapping[str, _Step], late: Mapping[str, _Late]) -> set[str]:
    """Return the origins of late factors whose products are the first operand of a product that needs them whole."""
    return {
        late[node.inputs[0]].origin
        for node in graph
        if node.op == "matmul" and node.inputs[0] in late and 0 in steps[node.name].whole
    }


def late_factors(graph: Graph, longest_softmax: int = 0) -> Graph:
    """Move factors of rows behind the products that wait for them: if an element-wise op that reads the product can
    include the factor, or if there is only one such product, so that no op is added. A factor stays if another product
    waits for it, and in a softmax of at most `longest_softmax` elements in a row, which is one op with its sums
    (`fuse_rows`)."""
    refused = {node.name for node in graph if is_softmax(graph, node, longest_softmax)}
    while True:
        steps = _plan_steps(graph, refused)
        late = {name: step.late for name, step in steps.items() if step.late is not None}
        waiting = {late[node.inputs[0]].origin for node in graph if node.op == "matmul" and node.name in late}
        read_whole = _values_read_whole(graph, steps, late)
        refused_now = {factor.origin for factor in late.values()} - waiting
        refused_now |= _needless_products(graph, steps, late, read_whole)
        refused_now |= _origins_read_whole(graph, steps, late)
        if not late:
            return graph
        if not refused_now:
            return _rebuild(graph, steps, late, read_whole)
        refused |= refused_now


def _needless_products(
    graph: Graph, steps: Mapping[str, _Step], late: Mapping[str, _Late], read_whole: set[str]
) -> set[str]:
    """Return the products behind which a separate multiplication would be more work than the factor in front: if there
    are several of one factor, or the factor's own value is read, too. `late`: the factor that each value lacks;
    `read_whole`: the values that are also read with it."""
    products: dict[str, list[str]] = {}
    for name in _products_to_multiply(graph, steps, late):
        products.setdefault(late[name].origin, []).append(name)
    needless: set[str] = set()
    for origin, names in products.items():
        if len(names) > 1 or origin in read_whole:
            needless.update(names)
    return needless


# --------------------------------------------------------------------------------------------------------------- plan
def _plan_steps(graph: Graph, refused: set[str]) -> dict[str, _Step]:
    """Decide for each op which factor its result lacks. Ops that were refused keep their factors."""
    steps: dict[str, _Step] = {}
    late: dict[str, _Late] = {}
    for node in graph:
        step_of_node = _plan_step(graph, late, node)
        if node.name in refused and step_of_node.late is not None:
            step_of_node = _Step(None, tuple(range(len(node.inputs))))
        step = steps[node.name] = step_of_node
        if step.late is None and node.name not in refused:
            new_factor = _new_factor(graph, node)
            if new_factor is not None:
                step = steps[node.name] = _Step(new_factor)
        if step.late is not None:
            late[node.name] = step.late
    return steps


def _new_factor(graph: Graph, node: Node) -> _Late | None:
    """Return the factor of an op that multiplies each row by a computed number; None for any other op."""
    row = _place_of_row_factor(graph, node)
    if row is None:
        return None
    return _Late(node.name, graph[node.inputs[row]].shape, _is_never_negative(graph, node.inputs[row]))


def _place_of_row_factor(graph: Graph, node: Node) -> int | None:
    """Return the place of the operand of a multiplication that has one computed number for each row of the other; None
    if there is none."""
    for place in (0, 1) if node.op == "multiply" else ():
        row = graph[node.inputs[place]]
        other = graph[node.inputs[1 - place]]
        if row.op not in SOURCES and other.shape == node.shape and row.shape == (*node.shape[:-1], 1) != node.shape:
            return place
    return None


def _is_never_negative(graph: Graph, name: str) -> bool:
    """Return whether a value is never below 0 because of the op that computes it."""
    node = graph[name]
    if node.op == "reciprocal":
        return _is_never_negative(graph, node.inputs[0])
    return node.op in ("sqrt", "exp", "square", "abs", "sigmoid")


def _plan_step(graph: Graph, late: Mapping[str, _Late], node: Node) -> _Step:
    """Return how an op treats operands that lack factors; `late`: the factor that each value lacks."""
    factors_of_operands = [late.get(name) for name in node.inputs]
    if not any(factors_of_operands):
        return _Step(None)
    first = factors_of_operands[0]
    everything = _Step(None, tuple(range(len(node.inputs))))
    if node.op in ("add", "subtract"):
        same = first is not None and factors_of_operands[1] == first
        if same:
            return _Step(first)
        return everything
    if node.op == "multiply":
        place = 0 if first is not None else 1
        fits = graph[node.inputs[place]].shape == node.shape
        if fits:
            return _Step(factors_of_operands[place], (1 - place,))
        return everything
    if first is None:
        return everything
    if node.op == "matmul":
        if node.shape[-1] > _WIDER * graph[node.inputs[0]].shape[-1]:
            return everything
        lead = (1,) * (len(node.shape) - len(first.row))
        return _Step(replace(first, row=(*lead, *first.row)), (1,))
    after = _factor_after_unary(first, graph[node.inputs[0]].shape, node)
    if after is None:
        return everything
    return _Step(after)


def _factor_after_unary(late: _Late, before: Shape, node: Node) -> _Late | None:
    """Return the factor, `late`, behind an op with one operand of shape `before`; None if the op must read it with its
    factor. Maxima and clamps commute with positive factors only."""
    last = len(before) - 1
    if node.op == "linear" and node.attrs["dim"] == last:
        return late
    clamps = node.op == "relu" and not node.attrs.get("threshold") and node.attrs.get("mode", "min") == "min"
    if late.positive and (clamps or (node.op == "reduce_max" and node.attrs["dim"] == last)):
        return late
    if node.op in _MOVES:
        return _factor_after_move(late, before, node)
    return None


def _factor_after_move(late: _Late, before: Shape, node: Node) -> _Late | None:
    """Return the factor, `late`, behind an op that moves rows of an operand of shape `before`; None if rows do not stay
    together."""
    if node.op == "identity":
        return late
    if node.op == "transpose":
        order: Shape = tuple(node.attrs["perm"])
        if order[-1] != len(order) - 1:
            return None
        return replace(late, row=tuple(late.row[axis] for axis in order), moves=(*late.moves, ("transpose", order)))
    row = _reshape_row(late.row, before, node.shape)
    if row is None:
        return None
    return replace(late, row=row, moves=(*late.moves, ("reshape", row)))


def _reshape_row(row: Shape, before: Shape, after: Shape) -> Shape | None:
    """Return the shape that a factor of shape `row` has after its value is reshaped from `before` to `after`, None if
    there is none: dimensions that are joined or split must belong to the factor completely or not at all."""
    sizes: list[int] = []
    at = 0
    for old, new in group_dimensions(before, after):
        row_part = row[at : at + len(old)]
        at += len(old)
        if prod(row_part) == 1:
            sizes += [1] * len(new)
        elif row_part == old:
            sizes += new
        else:
            return None
    if sizes and sizes[-1] == 1:
        return tuple(sizes)
    return None


def _values_read_whole(graph: Graph, steps: Mapping[str, _Step], late: Mapping[str, _Late]) -> set[str]:
    """Return the values that lack a factor (`late`) and that are also read with it."""
    values = {output.value for output in graph.outputs if output.value in late}
    for node in reversed(graph.nodes.values()):
        values |= {node.inputs[place] for place in steps[node.name].whole if node.inputs[place] in late}
        if node.name in values and node.op in _MOVES:
            values.add(node.inputs[0])
    return values


def _products_to_multiply(graph: Graph, steps: Mapping[str, _Step], late: Mapping[str, _Late]) -> set[str]:
    """Return the products that need a separate multiplication by the factor that they lack (`late`) behind them."""
    shown = {output.value for output in graph.outputs}
    products: set[str] = set()
    needed = {name for name in shown if name in late}
    for node in reversed(graph.nodes.values()):
        if node.name in needed and node.op == "matmul":  # with the factor, by what cannot multiply
            products.add(node.name)
        elif node.name in needed:
            carriers = (name for place, name in enumerate(node.inputs) if place not in steps[node.name].whole)
            needed |= late.keys() & carriers
        elif node.op not in SOURCES and front_op(node.op).family != "elementwise":
            needed |= {node.inputs[place] for place in steps[node.name].whole if node.inputs[place] in late}
    return products


# -------------------------------------------------------------------------------------------------------------- graph
@dataclass(frozen=True, slots=True)
class _Parts:
    """A value without its factor, and the factor."""

    value: Node
    row: Node


def _rebuild(graph: Graph, steps: Mapping[str, _Step], late: Mapping[str, _Late], read_whole: set[str]) -> Graph:
    """Build the graph with the factors that values lack (`late`) moved. A value that lacks its factor is also computed
    with it if it is read so (`read_whole`)."""
    rebuilt = Graph(graph.name, inputs=list(graph.inputs), outputs=list(graph.outputs))
    build = Builder(rebuilt)
    without: dict[str, _Parts] = {}
    for node in graph:
        build.scope = f"{node.name}.whole"
        build.source = node.source
        factor = late.get(node.name)
        if factor is None:
            rebuilt.nodes[node.name] = node
        elif factor.origin == node.name:
            place = _place_of_row_factor(graph, node)
            assert place is not None, "the first that lacks a factor is multiplied by it"
            without[node.name] = _Parts(rebuilt[node.inputs[1 - place]], rebuilt[node.inputs[place]])
            if node.name in read_whole:
                rebuilt.nodes[node.name] = node
        else:
            step = steps[node.name]
            value = _emit_without_factor(build, step, without, node)
            place = next(n for n in range(len(node.inputs)) if n not in step.whole)
            without[node.name] = _Parts(
                value, _factor_behind_node(build, factor, without[node.inputs[place]].row, node)
            )
            if node.name in read_whole:
                rebuilt.nodes[node.name] = node if node.op in _MOVES else _multiply_by_factor(without[node.name], node)
    return rebuilt


def _multiply_by_factor(parts: _Parts, node: Node) -> Node:
    """Return the product of a value and its factor, under the value's own name."""
    return replace(node, op="multiply", inputs=(parts.value.name, parts.row.name), attrs={})


def _emit_without_factor(build: Builder, step: _Step, without: Mapping[str, _Parts], node: Node) -> Node:
    """Emit an op again, in a graph whose factors move to later ops, on operands that lack their factors (`without`),
    but with the whole ones at the places in `step.whole`."""
    operands = [
        without[name].value if name in without and place not in step.whole else build.graph[name]
        for place, name in enumerate(node.inputs)
    ]
    if node.op == "matmul":
        operands = _fold_columns_into_matrix(build, *operands)
    return build.alias(build.emit(node.op, *operands, dtype=node.dtype, **node.attrs), build.scope)


def _fold_columns_into_matrix(build: Builder, left: Node, right: Node) -> list[Node]:
    """Return the operands x and `g W` of `(x * g) W` if g, one number for each column, and W are constants, else the
    operands unchanged."""
    if left.op != "multiply" or right.op != "constant" or prod(right.shape[:-2]) != 1:
        return [left, right]
    for place in (0, 1):
        numbers = build.graph[left.inputs[place]]
        other = build.graph[left.inputs[1 - place]]
        by_column = numbers.op == "constant" and numbers.shape[-1:] == left.shape[-1:] and prod(numbers.shape[:-1]) == 1
        if by_column and other.shape == left.shape:
            matrix = right.value * numbers.value.astype(np.float32).reshape(-1, 1)
            return [other, build.constant(matrix, dtype="float32")]
    return [left, right]


def _factor_behind_node(build: Builder, factor: _Late, before: Node, node: Node) -> Node:
    """Return the factor that the result of `node` lacks, whose shape is that of `factor`. `before`: the factor that its
    operand lacks, which goes through the same move as the operand: it is returned unchanged, or transposed or reshaped
    by an op that is added."""
    if before.shape == factor.row:
        return before
    if node.op == "transpose":
        return build.transpose(before, perm=node.attrs["perm"])
    return build.reshape(before, shape=factor.row)
