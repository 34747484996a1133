"""Indices of a model that the host can pick before a run."""

from typing import Final

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node

_MOVES: Final = ("reshape", "identity", "transpose", "linear", "expand", "take", "slice")


def host_picks(b: Builder, node: Node) -> bool:
    """Whether the host can pick the elements of a value: it is an input, or moved from one."""
    while node.op in _MOVES:
        node = b.graph[node.inputs[0]]
    return node.op == "input"
