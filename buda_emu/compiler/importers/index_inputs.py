"""Indices that are inputs of a model: which of them the host picks rows by, and which it only checks, because the
device computes with them, as the losses of a training do with labels."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Array, Graph, Node
from buda_emu.compiler.graph.registry import front_op
from buda_emu.emulator.image.index_range import IndexRange

_MOVES: Final = ("reshape", "identity", "transpose", "linear", "expand", "take", "slice")


def is_picked_by_host(b: Builder, node: Node) -> bool:
    """Return whether the host can pick table rows by a value, because it is an input or moved from one."""
    while node.op in _MOVES:
        node = b.graph[node.inputs[0]]
    return node.op == "input"


class _Read(NamedTuple):
    """The origin of an index whose elements come from an input: the input's node, the moves between the two, the last
    one first, and the value of the input that another index replaces, None if no value is replaced."""

    source: Node
    steps: list[Node]
    ignored: int | None


def check_on_host(b: Builder, index: Node, depth: int, *, from_end: bool = False, zero: int | None = None) -> None:
    """Let the host refuse indices outside of a dimension of `depth`, if the index consists of elements of an input,
    perhaps with one value replaced by an index of the dimension (`ignore_index` of a loss). `from_end`: negative
    indices count from the end; `zero`: an index that is allowed though the dimension does not have it. An index that is
    computed otherwise is not checked."""
    read = _find_input_read(b.graph, index)
    if read is None:
        return
    if zero is None and read.ignored is not None and not 0 <= read.ignored < depth:
        zero = read.ignored
    limit_input(b.graph, read.source.name, IndexRange(depth, from_end, zero, _element_numbers(read)))


def limit_input(graph: Graph, name: str, index_range: IndexRange) -> None:
    """Add a range to those that the host checks of the input node `name`."""
    node = graph[name]
    ranges = node.attrs.get("ranges", ())
    if index_range not in ranges:
        graph.nodes[name] = replace(node, attrs={**node.attrs, "ranges": (*ranges, index_range)})


def _find_input_read(graph: Graph, node: Node) -> _Read | None:
    """Return the input that a value holds elements of, with the moves between the two; None for a value that is
    computed otherwise."""
    steps: list[Node] = []
    ignored: int | None = None
    while node.op != "input":
        if node.op == "where" and ignored is None:
            selection = _selection_of(graph, node)
            if selection is None:
                return None
            node, ignored = selection
        elif node.op in _MOVES and node.op != "linear":
            steps.append(node)
            node = graph[node.inputs[0]]
        elif node.op == "truncate":  # whole numbers, as floats
            node = graph[node.inputs[0]]
        else:
            return None
    return _Read(node, steps, ignored)


def _selection_of(graph: Graph, node: Node) -> tuple[Node, int] | None:
    """Return the operand of a `where` that replaces all elements of a certain value, and this value; None for any other
    `where`."""
    condition, first, second = (graph[name] for name in node.inputs)
    branches = {"not_equal": (first, second), "equal": (second, first)}.get(condition.op)
    if branches is None:
        return None
    indices, other = branches
    if other.op != "constant" or indices.shape != node.shape:
        return None
    ignored = _compared_number(graph, condition, indices)
    if ignored is None:
        return None
    return indices, ignored


def _compared_number(graph: Graph, comparison: Node, indices: Node) -> int | None:
    """Return the constant that a comparison compares every element of `indices` with; None if it does not compare them
    with one constant."""
    compared = [graph[name] for name in comparison.inputs]
    constants = [operand for operand in compared if operand.op == "constant" and operand.value.size == 1]
    same = [operand for operand in compared if _root_name(graph, operand) == _root_name(graph, indices)]
    if len(constants) != 1 or not same:
        return None
    return int(constants[0].value.reshape(-1)[0])


def _root_name(graph: Graph, node: Node) -> str:
    """Return the name of the value from which a node is made by reshapes, copies and truncation alone."""
    while node.op in ("reshape", "identity", "truncate"):
        node = graph[node.inputs[0]]
    return node.name


def _element_numbers(read: _Read) -> tuple[int, ...]:
    """Return the numbers of the elements of the input that an index reads; () for all."""
    count = prod(read.source.shape)
    picked: Any = np.arange(count).reshape(read.source.shape)
    for step in reversed(read.steps):
        picked = move_elements(step, [picked])
    numbers = np.unique(picked)
    if numbers.size == count:
        return ()
    return tuple(map(int, numbers))


def move_elements(node: Node, operands: Sequence[Array]) -> Array:
    """Return the numbers of the elements that the result of a move holds, in its shape. `operands`: the numbers of the
    elements of each operand, in its shape."""
    reference = front_op(node.op).reference
    if reference is None:  # products with zeros and ones, whose sums are exact: the numbers are small
        return np.asarray(Builder(Graph()).emit(node.op, *operands, **node.attrs).value)
    return np.asarray(reference(*operands, **node.attrs))
