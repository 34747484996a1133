"""The rules that the nodes of a graph satisfy at each stage of the compiler, checked after every pass."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import signature
from typing import Any, Final

import numpy as np

from buda_emu.arithmetic.tensor.referenced import Referenced
from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import SOURCES, Graph, Node, Shape
from buda_emu.compiler.graph.registry import FrontOp, front_op, has_front_op
from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.emulator.image.shape_rules import ShapeRule
from buda_emu.support.errors import InternalError

FRONT: Final = "front"
CORE: Final = "core"
Rule = Callable[[Graph, Node], bool]


def _is_front_op(_: Graph, node: Node) -> bool:
    """Return whether a node is a source or any front-end op."""
    return node.op in SOURCES or has_front_op(node.op)


def _is_core_op(_: Graph, node: Node) -> bool:
    """Return whether a node is a source or a core op."""
    return node.op in SOURCES or (has_front_op(node.op) and front_op(node.op).is_core)


def _has_operands(graph: Graph, node: Node) -> bool:
    """Return whether all operands of a node are nodes of the graph."""
    return all(name in graph.nodes for name in node.inputs)


def _holds_value(_: Graph, node: Node) -> bool:
    """Return whether a node, if it is a constant, has a value of its shape; true for any other node."""
    value = node.attrs.get("value")
    return node.op != "constant" or (isinstance(value, (np.ndarray, Referenced)) and node.value.shape == node.shape)


def _has_integer_shape(_: Graph, node: Node) -> bool:
    """Return whether all sizes of a node are integers from 0."""
    return all(type(size) is int and size >= 0 for size in node.shape)


def _depends_on_input(graph: Graph, node: Node) -> bool:
    """Return whether a node has an operand that is not constant; an op on constants alone should have been folded."""
    return node.op in SOURCES or any(graph[name].op != "constant" for name in node.inputs)


_BEFORE: Final = "has operands that come before it"
STAGES: Final[Mapping[str, Mapping[str, Rule]]] = {
    FRONT: {
        "is a front-end op": _is_front_op, _BEFORE: _has_operands, "holds its value": _holds_value,
        "has a shape of integers": _has_integer_shape,
    },
    CORE: {
        "is a core op": _is_core_op, _BEFORE: _has_operands, "holds its value": _holds_value,
        "has a shape of integers": _has_integer_shape, "depends on an input": _depends_on_input,
    },
}  # fmt: skip
"""The rules that every node satisfies, by stage and by the text that describes them."""


def graph_problems(graph: Graph, stage: str) -> Iterator[str]:
    """Yield a line for each node that breaks a rule of a stage, naming the first rule that it breaks."""
    defined_names: set[str] = set()
    for node in graph:
        for rule, holds in STAGES[stage].items():
            if not holds(graph, node) or (rule == _BEFORE and not defined_names.issuperset(node.inputs)):
                yield f"{node.name} = {node.op}({', '.join(node.inputs)}) {list(node.shape)}: not: {rule}"
                break
        defined_names.add(node.name)


def check_graph(graph: Graph, stage: str, pass_name: str) -> None:
    """Raise InternalError naming the pass, the first node that breaks a rule of a stage, and the rule, if there is
    one."""
    for problem in graph_problems(graph, stage):
        raise InternalError(f"after {pass_name}: {problem}")


DTYPES: Final = frozenset(
    {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"}
)
"""Element types of values, as numpy names them."""
_SOURCE_ATTRS: Final[Mapping[str, frozenset[str]]] = {
    "input": frozenset({"label"}),
    "constant": frozenset({"value"}),
    "state": frozenset({"label", "initial", "slots", "dim", "df"}),
}
"""The attributes that each source op must have."""


def declaration_problems(graph: Graph) -> Iterator[str]:
    """Yield a line for each node whose element type, operands, attributes or shape contradict the declaration of its
    op, and for each input or output that names no node. The graph must satisfy the rules of its stage."""
    for node in graph:
        yield from _node_problems(graph, node)
    for name in graph.inputs:
        if name not in graph.nodes or graph[name].op != "input":
            yield f"input {name} is not a node of op input"
    for output in graph.outputs:
        if output.value not in graph.nodes:
            yield f"output {output.label}: there is no node {output.value}"


def _node_problems(graph: Graph, node: Node) -> Iterator[str]:
    """Yield a line for each way in which a node contradicts the declaration of its op."""
    if node.dtype not in DTYPES:
        yield f"{node.name}: there is no element type {node.dtype}"
    if node.op == "input":
        yield from _rule_problems(graph, node)
    if not all(value.is_within for value in node.attrs.values() if isinstance(value, Sparse)):
        yield f"{node.name} = {node.op}: entries of its matrix are outside of it"
        return
    try:
        shape = _declared_shape(graph, node)
    except Exception as error:  # noqa: BLE001 - rules are plain functions of shapes: anything may come of odd ones
        yield f"{node.name} = {node.op}: its operands or attributes are not those of {node.op}: {error}"
        return
    if shape is not None and tuple(shape) != node.shape:
        yield f"{node.name} = {node.op}: has shape {list(node.shape)}, by its operands it is {list(shape)}"


def _rule_problems(graph: Graph, node: Node) -> Iterator[str]:
    """Yield a line for each rule of an input about the shapes that it decides that contradicts itself or the graph."""
    labels = [entry.attrs.get("label", "") for entry in graph if entry.op == "input"]
    for rule in node.attrs.get("rules", ()):
        if not isinstance(rule, ShapeRule):
            yield f"{node.name}: its rules are not shapes that it decides"
            return
        yield from (f"{node.name}: rule of {rule.result}: {problem}" for _, problem in rule.problems(labels))


def _declared_shape(graph: Graph, node: Node) -> Shape | None:
    """Infer the shape of a node from the declaration of its op; None for an input or a constant, whose shape is data.
    Raise whatever the op's shape rule raises."""
    if node.op in SOURCES:
        missing = _SOURCE_ATTRS[node.op] - set(node.attrs)
        if missing or node.inputs:
            raise ValueError(f"it needs {', '.join(sorted(missing))}" if missing else "it reads no node")
        if node.op == "state":
            return node.attrs["initial"].shape
        return None
    operands = [graph[name] for name in node.inputs]
    declared = front_op(node.op)
    _check_call(declared, operands, node.attrs)
    if declared.shape is not None:
        return declared.shape(*[operand.shape for operand in operands], **node.attrs)
    scratch = Builder(Graph())
    scratch.graph.nodes.update((operand.name, operand) for operand in operands)
    return scratch.emit(node.op, *operands, **node.attrs).shape


def _check_call(declared: FrontOp, operands: Sequence[Node], attrs: Mapping[str, Any]) -> None:
    """Raise TypeError for a number of operands that the op does not take, and for attributes that it does not have."""
    if declared.decompose is not None:
        signature(declared.decompose).bind(None, *operands, **attrs)
    elif isinstance(declared.reference, np.ufunc):
        if len(operands) != declared.reference.nin or attrs:
            raise TypeError(f"it takes {declared.reference.nin} operands and no attributes")
    elif declared.reference is not None:
        signature(declared.reference).bind(*operands, **attrs)
