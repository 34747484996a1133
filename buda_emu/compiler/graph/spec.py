"""What a graph may hold at each stage; checked behind every pass."""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from buda_emu.compiler.graph.graph import SOURCES, Graph, Node
from buda_emu.compiler.graph.registry import front_op
from buda_emu.errors import InternalError

FRONT: Final = "front"
CORE: Final = "core"
Rule = Callable[[Graph, Node], bool]


def _declared(_: Graph, node: Node) -> bool:
    return node.op in SOURCES or bool(front_op(node.op))


def _core(_: Graph, node: Node) -> bool:
    return node.op in SOURCES or front_op(node.op).is_core


def _defined(graph: Graph, node: Node) -> bool:
    return all(name in graph.nodes for name in node.inputs)


def _value(_: Graph, node: Node) -> bool:
    return node.op != "constant" or (isinstance(node.attrs["value"], np.ndarray) and node.value.shape == node.shape)


def _sized(_: Graph, node: Node) -> bool:
    return all(type(size) is int and size >= 0 for size in node.shape)


def _computed(graph: Graph, node: Node) -> bool:
    """An op on constants alone has been folded."""
    return node.op in SOURCES or any(graph[name].op != "constant" for name in node.inputs)


STAGES: Final[Mapping[str, Mapping[str, Rule]]] = {
    FRONT: {
        "is a front-end op": _declared, "has operands that stand before it": _defined, "holds its value": _value,
        "has a shape of whole numbers": _sized,
    },
    CORE: {
        "is a core op": _core, "has operands that stand before it": _defined, "holds its value": _value,
        "has a shape of whole numbers": _sized, "depends on an input": _computed,
    },
}  # fmt: skip
"""By stage: what must hold of every node."""


def check_graph(graph: Graph, stage: str, where: str) -> None:
    """Raises InternalError naming pass, node and rule."""
    seen: set[str] = set()
    for node in graph:
        for rule, holds in STAGES[stage].items():
            if not holds(graph, node) or not seen.issuperset(node.inputs):
                sources = ", ".join(node.inputs)
                raise InternalError(
                    f"behind {where}: {node.name} = {node.op}({sources}) {list(node.shape)}: not: {rule}"
                )
        seen.add(node.name)
