"""Operators that the host runs (`--on-host`): the model is cut into parts around them, and each part is a program of
its netlist.

What one part gives and a later one needs goes by way of the host, as its inputs and outputs do.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from math import prod

import numpy as np

from buda_emu.checker.text import plural
from buda_emu.compiler.emit.programs import program_name
from buda_emu.compiler.generate.caches import Part
from buda_emu.compiler.graph.evaluate import evaluate_node
from buda_emu.compiler.graph.graph import Array, Graph, Node, Output
from buda_emu.compiler.graph.registry import front_op
from buda_emu.compiler.importers.refusal import REFUSED
from buda_emu.compiler.ir.tokens import Tokens
from buda_emu.compiler.ir.values import Printer, Reader
from buda_emu.errors import BudaError, HostError, ProgramError
from buda_emu.image.host.plan import DeviceStep, HostStep, Result

Run = Callable[..., Sequence[Array]]


@dataclass(frozen=True, slots=True)
class HostWork:
    """Some results of one operator, computed by numpy or by the model's own framework."""

    nodes: tuple[Node, ...]

    operands: tuple[Node, ...] = ()

    def __str__(self) -> str:
        names = ", ".join(node.name for node in self.nodes)
        first = self.nodes[0]
        call = f"{first.attrs['kind']}({', '.join(first.inputs)})"
        return f"on the host: {names} = {call}; {plural(self.traffic, 'byte')} in and out; {first.attrs['why']}"

    @property
    def traffic(self) -> int:
        """Bytes of operands and results for one set of inputs, as the host holds them."""
        return sum(prod(node.shape) * np.dtype(node.dtype).itemsize for node in (*self.operands, *self.nodes))

    @property
    def data(self) -> bytes:
        """What an image keeps of the operator."""
        return self.nodes[0].attrs["data"]

    @property
    def run(self) -> Run:
        """What computes it."""
        return self.nodes[0].attrs["run"]

    def step(self, number: int) -> HostStep:
        """As a plan has it at that place."""
        first, attrs = self.nodes[0], self.nodes[0].attrs
        results = tuple(Result(node.name, node.shape, node.dtype, node.attrs["place"]) for node in self.nodes)
        file = f"{number}.{attrs['form']}"
        return HostStep(attrs["kind"], attrs["form"], file, first.inputs, results, attrs["why"])


def compute(run: Run, step: HostStep, operands: Sequence[Array]) -> list[Array]:
    """The results of a host step. Raises ProgramError where what computes the operator refuses the values."""
    try:
        found = run(*operands)
        results = [np.asarray(found[item.place]).astype(item.dtype) for item in step.results]
    except Exception as error:  # onnx's evaluator raises many kinds
        raise ProgramError(f"on the host: {step.results[0].value}: {step.kind}: {error}") from error
    for item, array in zip(step.results, results, strict=True):
        if array.shape != item.shape:
            shapes = f"{list(array.shape)}, not the {list(item.shape)} that the model says"
            raise ProgramError(f"on the host: {item.value}: {step.kind} gives {shapes}")
    return results


def computed(form: str, data: bytes) -> Run:
    """What computes an operator that an image holds. Raises HostError for what is none, or for which a package is not
    installed."""
    if form == "numpy":
        return _numpy(data)
    if find_spec("onnx") is None:
        raise HostError("the host's part of this image needs the package onnx: pip install 'buda-emu[onnx]'")
    from onnx import ModelProto

    from buda_emu.compiler.importers.from_onnx.evaluator import computes

    try:
        model = ModelProto.FromString(data)
        (_,) = model.graph.node
        return computes(model)
    except Exception as error:  # protobuf and onnx raise many kinds for damaged bytes
        raise HostError(f"no ONNX graph of one operator that onnx's evaluator knows: {error}") from error


def marked(graph: Graph, names: Sequence[str]) -> Graph:
    """Front-end ops of these names become `host` ops. Raises HostError for a name that nothing in the model has."""
    nodes = {name: _hosted(node) if node.op in names else node for name, node in graph.nodes.items()}
    found = {node.attrs["kind"] for node in nodes.values() if node.op == "host"}
    for name in names:
        if name != REFUSED and name not in found:
            raise HostError(f"compile: on_host {name!r}: the model has no such operator")
    return Graph(graph.name, nodes, graph.inputs, graph.outputs)


def _hosted(node: Node) -> Node:
    data = f"{node.op} {Printer().map(node.attrs)}".encode()
    attrs = {"kind": node.op, "form": "numpy", "data": data, "run": _numpy(data), "place": 0, "shape": node.shape}
    return replace(node, op="host", attrs={**attrs, "why": "asked for"})


def _numpy(data: bytes) -> Run:
    """The numpy reference of a front-end op, by its name and attributes. Raises HostError for another text."""
    try:
        op, _, attrs = data.decode().partition(" ")
        node = Node("host", op, (), Reader({}).map(Tokens(attrs, "host")), (), "float32")
        front_op(op)
    except (ValueError, KeyError, BudaError) as error:
        raise HostError(f"no front-end op and its attributes: {error}") from None
    return lambda *arrays: [evaluate_node(node, arrays)]


def cut(graph: Graph) -> "Cut":
    """Parts and host steps in the order in which they run. A part has what depends on as many host ops in a row; an
    operand of the host that is an input of the model itself needs no part before it."""
    level: dict[str, int] = {}
    for node in graph:
        before = max((level[name] for name in node.inputs), default=0)
        level[node.name] = before + (node.op == "host")
    found = Cut(Graph(graph.name), {}, [])
    for number in range(max(level.values(), default=0) + 1):
        found.steps.extend(_steps(graph, level, number))
        mine = [node for node in graph if level[node.name] == number and node.op not in ("host", "constant", "input")]
        if mine:
            found.steps.append(_part(graph, mine, found))
    return found


@dataclass(frozen=True, slots=True)
class Cut:
    """`graph`: all parts, each as a program; `parts`: what is known of each, by its name; `steps`: names of programs,
    as a plan has them, and the host's work."""

    graph: Graph
    parts: dict[str, Part]
    steps: list[DeviceStep | HostWork]


def _steps(graph: Graph, level: Mapping[str, int], number: int) -> list[HostWork]:
    """Results of one call are one step."""
    calls: dict[tuple[int, tuple[str, ...]], list[Node]] = {}
    for node in graph:
        if node.op == "host" and level[node.name] == number:
            calls.setdefault((id(node.attrs["run"]), node.inputs), []).append(node)
    return [HostWork(tuple(nodes), tuple(graph[name] for name in nodes[0].inputs)) for nodes in calls.values()]


def _part(graph: Graph, mine: Sequence[Node], found: Cut) -> DeviceStep:
    """The device's nodes of one level become a program of their own."""
    made, program, prefix = found.graph, f"fwd_{len(found.parts)}", f"part{len(found.parts)}"
    names = {node.name: node.name for node in mine}
    inputs: dict[str, str] = {}
    for name in dict.fromkeys(name for node in mine for name in node.inputs if name not in names):
        node = graph[name]
        names[name] = f"{prefix}.{name}"
        if node.op != "constant":
            inputs[names[name]] = name
            attrs = {**(node.attrs if node.op == "input" else {}), "label": names[name]}
            node = Node(names[name], "input", (), attrs, node.shape, node.dtype, node.source)
            made.inputs.append(names[name])
        made.nodes[names[name]] = replace(node, name=names[name])
    for node in mine:
        made.nodes[node.name] = replace(node, inputs=tuple(names[name] for name in node.inputs))
    own = {node.name for node in mine}
    shown = {name for node in graph if node.name not in own for name in node.inputs}
    shown |= {output.value for output in graph.outputs}
    outputs = {f"{node.name}.to_host": node.name for node in mine if node.name in shown}
    made.outputs += [Output(label, name, made[name].dtype, program) for label, name in outputs.items()]
    found.parts[prefix] = Part(program, tuple(inputs), tuple(outputs))
    return DeviceStep(program_name(program), inputs, outputs)
