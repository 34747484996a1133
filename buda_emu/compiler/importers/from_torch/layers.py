"""Names for the parts of a torch model, taken from their modules."""

from collections import Counter
from typing import Any

_BOOKKEEPING = ("getitem", "_assert_tensor_metadata", "alias", "detach")
"""Nodes that are not layers."""


def layer_names(graph: Any) -> dict[Any, str]:
    """A name for each node of an exported graph: `encoder.0.query` where that module is one operator, else the module
    and the operator, `encoder.0.softmax`; numbered where a module is called again."""
    paths = {node: _path(node) for node in graph.nodes}
    alone = Counter(path for node, path in paths.items() if node.op == "call_function" and not _bookkeeping(node))
    taken: Counter[str] = Counter()
    found: dict[Any, str] = {}
    for node, path in paths.items():
        word = _word(node)
        name = path if path and alone[path] == 1 and not _bookkeeping(node) else f"{path}.{word}" if path else word
        found[node] = f"{name}_{taken[name]}" if taken[name] else name
        taken[name] += 1
    return found


def _path(node: Any) -> str:
    """The innermost module."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    return str(stack[-1][0]) if stack and node.op == "call_function" else ""


def _word(node: Any) -> str:
    """The operator without its overload."""
    if node.op != "call_function":
        return str(node.name)
    return str(node.target).removeprefix("aten.").split(".")[0].strip("_")


def _bookkeeping(node: Any) -> bool:
    return any(word in str(node.target) for word in _BOOKKEEPING)
