"""The graph that all passes work on: nodes in order of their definition, one value each."""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from buda_emu.checker.text import plural

Array = NDArray[Any]
Shape = tuple[int, ...]
SOURCES = ("input", "constant", "state")
"""Ops that read no other node. An input has its `label`; with `windows` the host lays side by side what they see of a
tensor of `host_shape`, and the node's shape is that of the result. A state is a tensor that the device keeps from run
to run: attributes `label`, `initial`, its value at first, and `df`, its format where that is not the model's. With
`slots` a program writes one of so many equal parts of dimension `dim` at a time, and reads all of them."""
FORWARD = "fwd_0"


@dataclass(frozen=True, slots=True)
class Node:
    """One op and the value that it gives. `shape` is the value's, `dtype` numpy's name of its element type.

    Values are computed in float32 whatever `dtype` says: it tells what the host gets, and what a cast or a division
    means. `source` is the layer of the user's model: what the importer took at once, named as the model names it.
    """

    name: str
    op: str
    inputs: tuple[str, ...]
    attrs: Mapping[str, Any]
    shape: Shape
    dtype: str = "float32"
    source: str = ""

    @property
    def value(self) -> Array:
        """Of a constant."""
        return self.attrs["value"]


def dim_of(axis: int, rank: int) -> int:
    """The dimension that an axis names, from the end where it is negative. Raises ValueError where there is none."""
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} of {plural(rank, 'dimension')}")
    return int(axis) % rank


def host_shape(node: Node) -> Shape:
    """What the host has of an input."""
    return node.attrs.get("host_shape", node.shape)


@dataclass(frozen=True, slots=True)
class Output:
    """An output of the model: its name there, the value, and the element type that the host gets.

    `program` that gives it: a node belongs to the first of the programs, in the order of the outputs, that needs it.
    `state`: not for the host but stored in the state of that label, `accumulate`: added to what it holds.
    """

    label: str
    value: str
    dtype: str
    program: str = FORWARD
    state: str = ""
    accumulate: bool = False


class Origin(Protocol):
    """The model that was imported, as its own framework runs it."""

    @property
    def tool(self) -> str:
        """What runs it, with its version."""
        ...

    def values(self, inputs: Sequence[Array], wanted: Container[str]) -> tuple[list[Array], dict[str, Array]]:
        """The outputs, and the values of those nodes of the imported graph that are wanted and that it knows. Raises
        HostError where the framework is not installed or refuses the inputs."""
        ...


@dataclass(slots=True)
class Graph:
    """`nodes` by name, every node after its operands. `inputs` are nodes of op "input", in the model's order.
    `origin`: of a graph that was just imported."""

    name: str = "model"
    nodes: dict[str, Node] = field(default_factory=dict[str, Node])
    inputs: list[str] = field(default_factory=list[str])
    outputs: list[Output] = field(default_factory=list[Output])
    origin: Origin | None = None

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes.values())

    def __getitem__(self, name: str) -> Node:
        return self.nodes[name]

    def users(self) -> dict[str, list[str]]:
        """Names of the nodes that read each value, in order; the outputs of the graph are not among them."""
        found: dict[str, list[str]] = {name: [] for name in self.nodes}
        for node in self:
            for name in dict.fromkeys(node.inputs):
                found[name].append(node.name)
        return found

    def programs(self) -> dict[str, str]:
        """The program of every node that an output needs."""
        found: dict[str, str] = {}
        for program in dict.fromkeys(output.program for output in self.outputs):
            needed = {output.value for output in self.outputs if output.program == program}
            for node in reversed(self.nodes.values()):
                if node.name in needed and node.name not in found:
                    needed.update(node.inputs)
            found |= {name: program for name in needed if name not in found}
        return found

    def live(self) -> set[str]:
        """Names of all values that an output depends on, and of all inputs."""
        nx: Any = import_module("networkx")  # it has no types
        edges = nx.DiGraph()
        edges.add_nodes_from(self.nodes)
        edges.add_edges_from((name, node.name) for node in self for name in node.inputs)
        found = {output.value for output in self.outputs}
        for output in tuple(found):
            found |= nx.ancestors(edges, output)
        return found | set(self.inputs)

    @property
    def one_by_one(self) -> bool:
        """Whether an input reads what the one before it has left in a state, gradients apart, which are added up."""
        return any(node.op == "state" for node in self) and not any(output.accumulate for output in self.outputs)

    def text(self) -> str:
        """One line for each node: `name: op(inputs) {attributes} -> shape`."""
        lines = [_line(node) for node in self]
        return "\n".join([*lines, "outputs: " + ", ".join(f"{item.label} = {item.value}" for item in self.outputs)])


def _line(node: Node) -> str:
    attrs = ", ".join(f"{key}={_shown(value)}" for key, value in node.attrs.items())
    dtype = "" if node.dtype == "float32" else f" {node.dtype}"
    call = f"{node.op}({', '.join(node.inputs)})"
    return f"{node.name}: {call}{f' {{{attrs}}}' if attrs else ''} -> {list(node.shape)}{dtype}"


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        array = cast("Array", value)
        return repr(array.tolist()) if array.size <= 4 else f"<{array.dtype} {list(array.shape)}>"
    return repr(value)
