"""Operators that the host runs (`--on-host`): the model is cut into parts around them, each a netlist of its own.

What one part gives and a later one needs goes by way of the host, as its inputs and outputs do.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from buda_emu.checker.text import plural
from buda_emu.compiler.graph.evaluate import evaluate_node
from buda_emu.compiler.graph.graph import Array, Graph, Node, Output
from buda_emu.compiler.importers.refusal import REFUSED
from buda_emu.errors import HostError, ProgramError

Run = Callable[..., Sequence[Array]]


@dataclass(frozen=True, slots=True)
class HostStep:
    """Some results of one operator, computed by numpy or by the model's own framework."""

    nodes: tuple[Node, ...]

    operands: tuple[Node, ...] = ()

    def __str__(self) -> str:
        names = ", ".join(node.name for node in self.nodes)
        first = self.nodes[0]
        call = f"{first.attrs['kind']}({', '.join(first.inputs)})"
        return f"on the host: {names} = {call}; {plural(self.bytes, 'byte')} in and out; {first.attrs['why']}"

    @property
    def bytes(self) -> int:
        """Of operands and results for one set of inputs, as the host holds them."""
        return sum(prod(node.shape) * np.dtype(node.dtype).itemsize for node in (*self.operands, *self.nodes))

    def run(self, values: Mapping[str, Array]) -> dict[str, Array]:
        """By name. Raises ProgramError where what computes the operator refuses the values."""
        first = self.nodes[0]
        try:
            found = first.attrs["run"](*(np.asarray(values[name]) for name in first.inputs))
            results = [np.asarray(found[node.attrs["place"]]).astype(node.dtype) for node in self.nodes]
        except Exception as error:  # onnx's evaluator raises many kinds
            raise ProgramError(f"on the host: {first.name}: {first.attrs['kind']}: {error}") from error
        for node, result in zip(self.nodes, results, strict=True):
            if result.shape != node.shape:
                shapes = f"{list(result.shape)}, not the {list(node.shape)} that the model says"
                raise ProgramError(f"on the host: {node.name}: {first.attrs['kind']} gives {shapes}")
        return {node.name: result for node, result in zip(self.nodes, results, strict=True)}


def marked(graph: Graph, names: Sequence[str]) -> Graph:
    """Front-end ops of these names become `host` ops. Raises HostError for a name that nothing in the model has."""
    nodes = {name: _hosted(node) if node.op in names else node for name, node in graph.nodes.items()}
    found = {node.attrs["kind"] for node in nodes.values() if node.op == "host"}
    for name in names:
        if name != REFUSED and name not in found:
            raise HostError(f"compile: on_host {name!r}: the model has no such operator")
    return Graph(graph.name, nodes, graph.inputs, graph.outputs)


def _hosted(node: Node) -> Node:
    def run(*arrays: Array) -> list[Array]:
        return [evaluate_node(node, arrays)]

    attrs = {"kind": node.op, "run": run, "place": 0, "shape": node.shape, "why": "asked for"}
    return replace(node, op="host", attrs=attrs)


def cut(graph: Graph) -> list[Graph | HostStep]:
    """Parts and host steps in the order in which they run. A part has what depends on as many host ops in a row; an
    operand of the host that is an input of the model itself needs no part before it."""
    level: dict[str, int] = {}
    for node in graph:
        before = max((level[name] for name in node.inputs), default=0)
        level[node.name] = before + (node.op == "host")
    found: list[Graph | HostStep] = []
    for number in range(max(level.values(), default=0) + 1):
        found += _steps(graph, level, number)
        part = _part(graph, level, number)
        if part is not None:
            found.append(part)
    return found


def _steps(graph: Graph, level: Mapping[str, int], number: int) -> list[HostStep]:
    """Results of one call are one step."""
    calls: dict[tuple[int, tuple[str, ...]], list[Node]] = {}
    for node in graph:
        if node.op == "host" and level[node.name] == number:
            calls.setdefault((id(node.attrs["run"]), node.inputs), []).append(node)
    return [HostStep(tuple(nodes), tuple(graph[name] for name in nodes[0].inputs)) for nodes in calls.values()]


def _part(graph: Graph, level: Mapping[str, int], number: int) -> Graph | None:
    """The device's nodes of one level. None where there are none."""
    mine = [node for node in graph if level[node.name] == number and node.op not in ("host", "constant", "input")]
    if not mine:
        return None
    names = {node.name for node in mine}
    made = Graph(f"{graph.name}_part{number}")
    for name in dict.fromkeys(name for node in mine for name in node.inputs if name not in names):
        node = graph[name]
        if node.op != "constant":
            label = node.attrs["label"] if node.op == "input" else name
            node = Node(name, "input", (), {"label": label}, node.shape, node.dtype, node.source)
            made.inputs.append(name)
        made.nodes[name] = node
    made.nodes |= {node.name: node for node in mine}
    outside = {name for node in graph if node.name not in names for name in node.inputs}
    shown = outside | {output.value for output in graph.outputs}
    made.outputs = [Output(f"{node.name}.to_host", node.name, node.dtype) for node in mine if node.name in shown]
    return made
