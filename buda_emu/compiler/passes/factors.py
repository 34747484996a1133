"""Passes that move factors of products to where they meet the fewest elements."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Final

import numpy as np

from buda_emu.arithmetic.tensor.boxes import groups
from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import SOURCES, Graph, Node, Shape
from buda_emu.compiler.graph.registry import front_op

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
            row = self.graph[name]
            whole = self.graph[scaled.inputs[1 - place]]
            if whole.shape == scaled.shape and row.shape == (*scaled.shape[:-1], 1) and row.op != "constant":
                self._put_later(product, view, scaled, row, whole)
                return

    def _put_later(self, product: Node, view: Node, scaled: Node, row: Node, whole: Node) -> None:
        parts = {"whole": whole, "row": row}
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
        if all(self.reads[node.name] == 1 for node in found):
            return found
        return []

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
            name = names.get(node.name, node.name)
            inputs = tuple(names.get(item, item) for item in node.inputs)
            same = name == node.name and inputs == node.inputs
            found[name] = node if same else replace(node, name=name, inputs=inputs)
        self.graph.nodes = found
        self.reads.update({new: 1 for new in names.values() if new not in self.reads})


_WIDER: Final = 4
"""Times as many columns as the rows have a product may have: of more, as of all words, each would be multiplied."""


@dataclass(frozen=True, slots=True)
class _Late:
    """What a value lacks: the factor that node `origin` multiplies by, moved in so many `moves` (op, shape or order);
    `row`: its shape, of the value's rank, 1 in the last dimension. `positive`: it is never below 0."""

    origin: str
    row: Shape
    positive: bool
    moves: tuple[tuple[str, Shape], ...] = ()


@dataclass(frozen=True, slots=True)
class _Step:
    """What becomes of an op's value, None where it lacks nothing; the places of operands that the op reads whole."""

    late: _Late | None
    whole: tuple[int, ...] = ()


def late_factors(graph: Graph, softmax: int = 0) -> Graph:
    """Move factors of rows after the products that wait for them: if an element-wise op that reads the product can
    include the factor, or if there is only one such product, so that no op is added. Not where another product waits
    for the factor, and not those of a softmax of at most
    `softmax` elements in a row, which is one op with its sums (`fuse_rows`)."""
    refused = {node.name for node in graph if is_softmax(graph, node, softmax)}
    while True:
        steps = _steps(graph, refused)
        late = {name: step.late for name, step in steps.items() if step.late is not None}
        waiting = {late[node.inputs[0]].origin for node in graph if node.op == "matmul" and node.name in late}
        whole = _read_whole(graph, steps, late)
        alone: dict[str, list[str]] = {}
        for name in _alone(graph, steps, late):
            alone.setdefault(late[name].origin, []).append(name)
        wrong = {item.origin for item in late.values()} - waiting
        wrong |= {name for origin, names in alone.items() if len(names) > 1 or origin in whole for name in names}
        wrong |= {
            late[node.inputs[0]].origin
            for node in graph
            if node.op == "matmul" and node.inputs[0] in late and 0 in steps[node.name].whole
        }
        if not wrong:
            return _rebuilt(graph, steps, late, whole) if late else graph
        refused |= wrong


# --------------------------------------------------------------------------------------------------------------- plan
def _steps(graph: Graph, refused: set[str]) -> dict[str, _Step]:
    found: dict[str, _Step] = {}
    late: dict[str, _Late] = {}
    for node in graph:
        own = _step(graph, late, node)
        if node.name in refused and own.late is not None:
            own = _Step(None, tuple(range(len(node.inputs))))
        step = found[node.name] = own
        if step.late is None and node.name not in refused:
            begun = _begun(graph, node)
            if begun is not None:
                step = found[node.name] = _Step(begun)
        if step.late is not None:
            late[node.name] = step.late
    return found


def _begun(graph: Graph, node: Node) -> _Late | None:
    """The factor of an op that multiplies each row by a number that is computed."""
    row = _row_place(graph, node)
    if row is None:
        return None
    return _Late(node.name, graph[node.inputs[row]].shape, _positive(graph, node.inputs[row]))


def _row_place(graph: Graph, node: Node) -> int | None:
    """Which operand has one number for each row."""
    for place in (0, 1) if node.op == "multiply" else ():
        row = graph[node.inputs[place]]
        other = graph[node.inputs[1 - place]]
        if row.op not in SOURCES and other.shape == node.shape and row.shape == (*node.shape[:-1], 1) != node.shape:
            return place
    return None


def _positive(graph: Graph, name: str) -> bool:
    node = graph[name]
    if node.op == "reciprocal":
        return _positive(graph, node.inputs[0])
    return node.op in ("sqrt", "exp", "square", "abs", "sigmoid")


def _step(graph: Graph, late: Mapping[str, _Late], node: Node) -> _Step:
    own = [late.get(name) for name in node.inputs]
    if not any(own):
        return _Step(None)
    first = own[0]
    everything = _Step(None, tuple(range(len(node.inputs))))
    if node.op in ("add", "subtract"):
        same = first is not None and own[1] == first
        return _Step(first) if same else everything
    if node.op == "multiply":
        place = 0 if first is not None else 1
        fits = graph[node.inputs[place]].shape == node.shape
        return _Step(own[place], (1 - place,)) if fits else everything
    if first is None:
        return everything
    if node.op == "matmul":
        if node.shape[-1] > _WIDER * graph[node.inputs[0]].shape[-1]:
            return everything
        lead = (1,) * (len(node.shape) - len(first.row))
        return _Step(replace(first, row=(*lead, *first.row)), (1,))
    last = len(graph[node.inputs[0]].shape) - 1
    clamps = node.op == "relu" and not node.attrs.get("threshold") and node.attrs.get("mode", "min") == "min"
    if node.op == "linear" and node.attrs["dim"] == last:
        return _Step(first)
    if first.positive and (clamps or (node.op == "reduce_max" and node.attrs["dim"] == last)):
        return _Step(first)
    if node.op in _MOVES:
        moved = _moved(first, graph[node.inputs[0]].shape, node)
    else:
        moved = None
    return everything if moved is None else _Step(moved)


def _moved(late: _Late, before: Shape, node: Node) -> _Late | None:
    """The factor after an op that moves rows; None where rows do not stay together."""
    if node.op == "identity":
        return late
    if node.op == "transpose":
        order: Shape = tuple(node.attrs["perm"])
        if order[-1] != len(order) - 1:
            return None
        return replace(late, row=tuple(late.row[axis] for axis in order), moves=(*late.moves, ("transpose", order)))
    row = _reshaped(late.row, before, node.shape)
    if row is None:
        return None
    return replace(late, row=row, moves=(*late.moves, ("reshape", row)))


def _reshaped(row: Shape, before: Shape, after: Shape) -> Shape | None:
    """The shape of a factor where its value is reshaped: dimensions that are put together or taken apart have it all or
    do not have it."""
    found: list[int] = []
    at = 0
    for old, new in groups(before, after):
        mine = row[at : at + len(old)]
        at += len(old)
        if prod(mine) == 1:
            found += [1] * len(new)
        elif mine == old:
            found += new
        else:
            return None
    return tuple(found) if found and found[-1] == 1 else None


def _read_whole(graph: Graph, steps: Mapping[str, _Step], late: Mapping[str, _Late]) -> set[str]:
    """Values that lack a factor and that somebody reads with it."""
    found = {output.value for output in graph.outputs if output.value in late}
    for node in reversed(graph.nodes.values()):
        found |= {node.inputs[place] for place in steps[node.name].whole if node.inputs[place] in late}
        if node.name in found and node.op in _MOVES:
            found.add(node.inputs[0])
    return found


def _alone(graph: Graph, steps: Mapping[str, _Step], late: Mapping[str, _Late]) -> set[str]:
    """Products after which the multiplication would be an op of its own."""
    shown = {output.value for output in graph.outputs}
    found: set[str] = set()
    wanted = {name for name in shown if name in late}
    for node in reversed(graph.nodes.values()):
        if node.name in wanted:  # with the factor, by what cannot multiply
            if node.op == "matmul":
                found.add(node.name)
            else:
                own = (name for place, name in enumerate(node.inputs) if place not in steps[node.name].whole)
                wanted |= {name for name in own if name in late}
        elif node.op not in SOURCES and front_op(node.op).family != "elementwise":
            wanted |= {node.inputs[place] for place in steps[node.name].whole if node.inputs[place] in late}
    return found


# -------------------------------------------------------------------------------------------------------------- graph
@dataclass(frozen=True, slots=True)
class _Parts:
    """A value without its factor, and that."""

    value: Node
    row: Node


def _rebuilt(graph: Graph, steps: Mapping[str, _Step], late: Mapping[str, _Late], whole: set[str]) -> Graph:
    """The graph in which each value that lacks a factor is there without it, and with it where one reads it so."""
    made = Graph(graph.name, inputs=list(graph.inputs), outputs=list(graph.outputs))
    build = Builder(made)
    without: dict[str, _Parts] = {}
    for node in graph:
        build.scope = f"{node.name}.whole"
        build.source = node.source
        own = late.get(node.name)
        if own is None:
            made.nodes[node.name] = node
        elif own.origin == node.name:
            place = _row_place(graph, node)
            assert place is not None, "the first that lacks a factor is multiplied by it"
            without[node.name] = _Parts(made[node.inputs[1 - place]], made[node.inputs[place]])
            if node.name in whole:
                made.nodes[node.name] = node
        else:
            step = steps[node.name]
            value = _without(build, step, without, node)
            place = next(n for n in range(len(node.inputs)) if n not in step.whole)
            without[node.name] = _Parts(value, _row(build, own, without[node.inputs[place]].row, node))
            if node.name in whole:
                made.nodes[node.name] = node if node.op in _MOVES else _multiplied(without[node.name], node)
    return made


def _multiplied(parts: _Parts, node: Node) -> Node:
    """A value with its factor, by its own name."""
    return replace(node, op="multiply", inputs=(parts.value.name, parts.row.name), attrs={})


def _without(build: Builder, step: _Step, without: Mapping[str, _Parts], node: Node) -> Node:
    """An op on what lacks the factor."""
    operands = [
        without[name].value if name in without and place not in step.whole else build.graph[name]
        for place, name in enumerate(node.inputs)
    ]
    if node.op == "matmul":
        operands = _into_matrix(build, *operands)
    return build.alias(build.emit(node.op, *operands, dtype=node.dtype, **node.attrs), build.scope)


def _into_matrix(build: Builder, left: Node, right: Node) -> list[Node]:
    """`(x * g) W` as x and `g W`, where g is constant, one number for each column, and W, too."""
    if left.op != "multiply" or right.op != "constant" or prod(right.shape[:-2]) != 1:
        return [left, right]
    for place in (0, 1):
        numbers = build.graph[left.inputs[place]]
        other = build.graph[left.inputs[1 - place]]
        own = numbers.op == "constant" and numbers.shape[-1:] == left.shape[-1:] and prod(numbers.shape[:-1]) == 1
        if own and other.shape == left.shape:
            matrix = right.value * numbers.value.astype(np.float32).reshape(-1, 1)
            return [other, build.constant(matrix, dtype="float32")]
    return [left, right]


def _row(build: Builder, own: _Late, before: Node, node: Node) -> Node:
    """The factor as a value's shape has it, of what it is before an op."""
    if before.shape == own.row:
        return before
    if node.op == "transpose":
        return build.transpose(before, perm=node.attrs["perm"])
    return build.reshape(before, shape=own.row)
