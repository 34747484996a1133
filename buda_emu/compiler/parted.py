"""Models of which the host runs a part: cut where an operator needs the host, compiled in parts, and run with the work
of the host between them.
"""

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from buda_emu.compiler.compilation import Compilation, CompileOptions, OptionWords, below, with_words, within_memory
from buda_emu.compiler.compiled import as_numpy
from buda_emu.compiler.emit.programs import program_name
from buda_emu.compiler.generate.programs import CompiledPrograms, Part
from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Array, Graph, Node, Output, host_shape
from buda_emu.compiler.graph.registry import front_op
from buda_emu.compiler.importers.operators import REFUSED
from buda_emu.compiler.importers.source import read_model
from buda_emu.compiler.ir.values import Printer, Reader, Tokens
from buda_emu.emulator.image.host_plan import DeviceStep, Given, Gives, HostPlan, HostStep, Result, follow
from buda_emu.spec.precision import Precision
from buda_emu.support.checker.diagnostic import Diagnostic
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import BudaError, HostError, InternalError, ProgramError


def evaluate(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The value of every node, float32 for floats; `inputs` by label."""
    values: dict[str, Array] = {}
    for node in graph:
        if node.op == "input":
            given = np.asarray(inputs[node.attrs["label"]])
            windows = node.attrs.get("windows")
            values[node.name] = windows.apply(given) if windows else given
            continue
        if node.op in ("constant", "state"):
            values[node.name] = node.attrs["value" if node.op == "constant" else "initial"]
            continue
        values[node.name] = evaluate_node(node, [values[name] for name in node.inputs])
    return values


def evaluate_node(node: Node, operands: Sequence[Array]) -> Array:
    """The value of one node."""
    reference = front_op(node.op).reference
    with np.errstate(all="ignore"):
        if reference is not None:
            return np.asarray(reference(*operands, **node.attrs))
        return Builder(Graph()).emit(node.op, *operands, **node.attrs).value


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
        first = self.nodes[0]
        attrs = self.nodes[0].attrs
        results = tuple(Result(node.name, node.shape, node.dtype, node.attrs["place"]) for node in self.nodes)
        file = f"{number}.{attrs['form']}"
        return HostStep(
            kind=attrs["kind"], form=attrs["form"], file=file, operands=first.inputs, results=results, why=attrs["why"]
        )


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

    from buda_emu.compiler.importers.from_onnx.standard import make_evaluator

    try:
        model = ModelProto.FromString(data)
        (_,) = model.graph.node
        return make_evaluator(model)
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
        node = Node(
            name="host", op=op, inputs=(), attrs=Reader({}).map(Tokens(attrs, "host")), shape=(), dtype="float32"
        )
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
    made = found.graph
    program = f"fwd_{len(found.parts)}"
    prefix = f"part{len(found.parts)}"
    names = {node.name: node.name for node in mine}
    inputs: dict[str, str] = {}
    for name in dict.fromkeys(name for node in mine for name in node.inputs if name not in names):
        node = graph[name]
        names[name] = f"{prefix}.{name}"
        if node.op != "constant":
            inputs[names[name]] = name
            attrs = {**(node.attrs if node.op == "input" else {}), "label": names[name]}
            node = Node(
                name=names[name],
                op="input",
                inputs=(),
                attrs=attrs,
                shape=node.shape,
                dtype=node.dtype,
                source=node.source,
            )
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


class PartedModel:
    """What `compile_in_parts` returns: some operators run on the host. `steps`: programs of the netlist and the host's
    work, in order; `compiled`: all programs, None where nothing is left for the device."""

    def __init__(self, graph: Graph, steps: Sequence[DeviceStep | HostWork], compiled: CompiledPrograms | None) -> None:
        self.graph = graph
        self.steps = tuple(steps)
        self.compiled = compiled

    def __repr__(self) -> str:
        parts = 0 if self.compiled is None else len(self.compiled.parts)
        return f"PartedModel({self.graph.name!r}, {plural(parts, 'part')}, {len(self._work)} on host)"

    @property
    def _work(self) -> tuple[HostWork, ...]:
        return tuple(step for step in self.steps if isinstance(step, HostWork))

    @property
    def text(self) -> str:
        """The netlist, with what the host does before each program in comments."""
        said = "".join(
            f"# {step if isinstance(step, HostWork) else f'program {step.program}'}\n" for step in self.steps
        )
        return said + ("" if self.compiled is None else self.compiled.text)

    @cached_property
    def plan(self) -> HostPlan:
        """The steps as an image has them."""
        graph = self.graph
        nodes = [graph[name] for name in graph.inputs]
        given = (
            Given(
                label=item.attrs["label"],
                value=item.name,
                shape=host_shape(item),
                dtype=item.dtype,
                below=below(graph, item),
            )
            for item in nodes
        )
        gives = tuple(Gives(output.label, output.value, output.dtype) for output in graph.outputs)
        read = {name for work in self._work for name in work.nodes[0].inputs} | {item.value for item in gives}
        constants = [node.name for node in graph if node.op == "constant" and node.name in read]
        steps: list[DeviceStep | HostStep] = []
        for step in self.steps:
            steps.append(step.step(len(steps)) if isinstance(step, HostWork) else step)
        files = {name: f"{number}.npy" for number, name in enumerate(constants)}
        return HostPlan(tuple(given), gives, files, tuple(steps))

    def check(self, strict: bool = True) -> tuple[Diagnostic, ...]:
        """Findings of the checker."""
        return () if self.compiled is None else self.compiled.check(strict)

    def __call__(self, *inputs: Any, precision: Precision = "ideal") -> tuple[Array, ...]:
        """The outputs for one set of inputs. Raises HostError for others than the model takes."""
        labels = [item.label for item in self.plan.given]
        if len(inputs) != len(labels):
            raise HostError(f"{plural(len(inputs), 'input')}, the model takes {len(labels)}: {', '.join(labels)}")
        return self.run({label: as_numpy(item) for label, item in zip(labels, inputs, strict=True)}, precision)

    def run(self, arrays: Mapping[str, Array], precision: Precision = "ideal") -> tuple[Array, ...]:
        """The same with inputs by name."""
        values = {name: self.graph[name].value for name in self.plan.constants}
        values |= {item.value: arrays[item.label] for item in self.plan.given}
        runs = {step.file: work.run for step, work in zip(self.plan.on_host, self._work, strict=True)}
        found = follow(
            self.plan,
            values,
            partial(self._device, precision),
            lambda step, operands: compute(runs[step.file], step, operands),
        )
        return tuple(found[item.label] for item in self.plan.gives)

    def _device(self, precision: Precision, step: DeviceStep, given: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs of one program."""
        if self.compiled is None:
            raise InternalError("a step of the device, and no netlist")
        (name,) = (key for key, part in self.compiled.parts.items() if program_name(part.program) == step.program)
        part = self.compiled.parts[name]
        (found,) = self.compiled.rounds([[given[label] for label in part.inputs]], precision=precision, program=name)
        return dict(zip(part.outputs, found, strict=True))

    def save(self, folder: str | Path, name: str = "model") -> tuple[Path, Path]:
        """Write `<name>.yaml` and `<name>.tti`, the netlist and an image of it with the host's parts; returns both.
        Raises HostError where nothing is left for the device, OSError."""
        if self.compiled is None:
            raise HostError(f"compile: {self.graph.name}: the host does all of it: there is no netlist to write")
        members = {step.file: work.data for step, work in zip(self.plan.on_host, self._work, strict=True)}
        members |= {file: _npy(self.graph[name].value) for name, file in self.plan.constants.items()}
        return self.compiled.save(folder, name, host=(self.plan, members))

    def close(self) -> None:
        """Free the machines that calls made."""
        if self.compiled is not None:
            self.compiled.close()


def _npy(array: Array) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


@within_memory()
def compile_in_parts(
    source: Any,
    inputs: Sequence[Any] | None = None,
    *,
    on_host: Sequence[str] = (REFUSED,),
    options: CompileOptions | None = None,
    **words: Unpack[OptionWords],
) -> PartedModel:
    """Compile a model of which some operators run on the host, by name: those of the ONNX model, and front-end ops of
    any (`buda-emu compile --ops`). "*", which is the default, stands for all operators of an ONNX model that cannot
    become ops of the device; what each costs and why it is there, `steps` and `text` say. `source`, `inputs` and
    options as `compile` takes them.

    Raises HostError for a name that the model does not have, and what `compile` raises.
    """
    given = with_words(options, words, "compile_in_parts")
    compilation = Compilation.of(given)
    with compilation.memory.reading(source):
        read = read_model(source, inputs, on_host, sizes=given.sizes)
    graph = compilation.prepared(marked(read, on_host))
    found = cut(graph)
    compiled = CompiledPrograms(*compilation.lowered(found.graph), found.parts) if found.parts else None
    return PartedModel(graph, found.steps, compiled)
