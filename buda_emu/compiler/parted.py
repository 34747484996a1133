"""Models with a part that runs on the host: cut at the operators that need the host, compiled in parts, and run with
the host's work between the parts.
"""

import io
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib.util import find_spec
from itertools import chain
from math import prod
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from buda_emu.compiler.compilation import (
    Compilation,
    CompileOptions,
    OptionWords,
    below,
    made_up,
    with_words,
    within_memory,
)
from buda_emu.compiler.compiled import ModelComparison, ModelPerf, ReportText, as_numpy, difference
from buda_emu.compiler.emit.programs import program_name
from buda_emu.compiler.generate import CompiledPrograms, Part
from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.examples import example_inputs, examples_in_order
from buda_emu.compiler.graph.graph import Array, Graph, Node, Origin, Output, host_shape, rules_of
from buda_emu.compiler.graph.registry import front_op
from buda_emu.compiler.importers.operators import REFUSED
from buda_emu.compiler.importers.source import read_model
from buda_emu.compiler.ir.values import Printer, Reader, Tokens
from buda_emu.emulator.image.host_plan import DeviceStep, HostPlan, HostStep, PlanInput, PlanOutput, Result, follow
from buda_emu.emulator.image.model_io import check_input, inputs_by_label
from buda_emu.emulator.runtime.host.host_io import require_names
from buda_emu.spec.precision import Precision
from buda_emu.support.checker.diagnostic import Diagnostic
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import BudaError, HostError, InternalError, ProgramError
from buda_emu.support.options import names_of


def evaluate(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return the value of every node of a graph of the compiler, computed with numpy, floats in float32: what the
    device's results are compared with. `inputs` are by label."""
    values: dict[str, Array] = {}
    for node in graph:
        if node.op == "input":
            array = np.asarray(inputs[node.attrs["label"]])
            windows = node.attrs.get("windows")
            values[node.name] = windows.apply(array) if windows else array
            continue
        if node.op in ("constant", "state"):
            values[node.name] = node.attrs["value" if node.op == "constant" else "initial"]
            continue
        values[node.name] = evaluate_node(node, [values[name] for name in node.inputs])
    return values


def evaluate_node(node: Node, operands: Sequence[Array]) -> Array:
    """Compute and return the value of one node for the values of its operands, by its numpy reference or by its
    decomposition."""
    reference = front_op(node.op).reference
    with np.errstate(all="ignore"):
        if reference is not None:
            return np.asarray(reference(*operands, **node.attrs))
        return Builder(Graph()).emit(node.op, *operands, **node.attrs).value


Run = Callable[..., Sequence[Array]]


@dataclass(frozen=True, slots=True)
class HostWork:
    """One call of an operator that the host computes, with numpy or onnx's evaluator: `nodes` are its results,
    `operands` the values that it reads."""

    nodes: tuple[Node, ...]
    operands: tuple[Node, ...] = ()

    def __repr__(self) -> str:
        return f"<HostWork {self}>"

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
        """The bytes that describe the operator in an image."""
        return self.nodes[0].attrs["data"]

    @property
    def run(self) -> Run:
        """The function that computes the operator."""
        return self.nodes[0].attrs["run"]

    def step(self, number: int) -> HostStep:
        """Return the work as an image stores it: step `number` of its host plan."""
        first = self.nodes[0]
        attrs = self.nodes[0].attrs
        results = tuple(Result(node.name, node.shape, node.dtype, node.attrs["place"]) for node in self.nodes)
        file = f"{number}.{attrs['form']}"
        return HostStep(
            kind=attrs["kind"], form=attrs["form"], file=file, operands=first.inputs, results=results, why=attrs["why"]
        )


def compute(run: Run, step: HostStep, operands: Sequence[Array]) -> list[Array]:
    """Compute the results of a host step. Raises ProgramError if the operator refuses the values or gives other shapes
    than the model says."""
    try:
        outputs = run(*operands)
        results = [np.asarray(outputs[result.place]).astype(result.dtype) for result in step.results]
    except Exception as error:  # onnx's evaluator raises many kinds
        raise ProgramError(f"on the host: {step.results[0].value}: {step.kind}: {error}") from error
    for result, array in zip(step.results, results, strict=True):
        if array.shape != result.shape:
            shapes = f"{list(array.shape)}, not the {list(result.shape)} that the model says"
            raise ProgramError(f"on the host: {result.value}: {step.kind} gives {shapes}")
    return results


def operator_from_image(form: str, data: bytes) -> Run:
    """Return the function that computes an operator stored in an image. Raises HostError for bytes that describe none,
    or if a package that it needs is not installed."""
    if form == "numpy":
        return _numpy_operator(data)
    if find_spec("onnx") is None:
        raise HostError("the host's part of this image needs the package onnx: pip install 'buda-emu[onnx]'")
    from onnx import ModelProto

    from buda_emu.compiler.importers.from_onnx.evaluator import make_evaluator

    try:
        model = ModelProto.FromString(data)
        (_,) = model.graph.node
        return make_evaluator(model)
    except Exception as error:  # protobuf and onnx raise many kinds for damaged bytes
        raise HostError(f"no ONNX graph of one operator that onnx's evaluator knows: {error}") from error


def mark_host_ops(graph: Graph, names: Sequence[str]) -> Graph:
    """Return the graph with all front-end ops of the types `names` turned into `host` ops. Raises HostError for a type
    that no op of the model has."""
    nodes = {name: _as_host_op(node) if node.op in names else node for name, node in graph.nodes.items()}
    kinds = {node.attrs["kind"] for node in nodes.values() if node.op == "host"}
    for name in names:
        if name != REFUSED and name not in kinds:
            raise HostError(f"compile: on_host {name!r}: the model has no such operator")
    return Graph(graph.name, nodes, graph.inputs, graph.outputs)


def _as_host_op(node: Node) -> Node:
    """Return a node as an op that the host computes with numpy because the caller asked for it."""
    data = f"{node.op} {Printer().map(node.attrs)}".encode()
    attrs = {
        "kind": node.op,
        "form": "numpy",
        "data": data,
        "run": _numpy_operator(data),
        "place": 0,
        "shape": node.shape,
    }
    return replace(node, op="host", attrs={**attrs, "why": "asked for"})


def _numpy_operator(data: bytes) -> Run:
    """Return a function that computes a front-end op with numpy, from its name and attributes as text. Raises HostError
    for text that names no front-end op."""
    try:
        op, _, attrs = data.decode().partition(" ")
        node = Node(
            name="host", op=op, inputs=(), attrs=Reader({}).map(Tokens(attrs, "host")), shape=(), dtype="float32"
        )
        front_op(op)
    except (ValueError, KeyError, BudaError) as error:
        raise HostError(f"no front-end op and its attributes: {error}") from None
    return lambda *arrays: [evaluate_node(node, arrays)]


def cut(graph: Graph) -> "PartedGraph":
    """Cut a graph with `host` ops into parts and host steps, in the order in which they run.

    The level of a node is the largest number of host ops on a path to it, itself included. Level by level, the host ops
    run first and then all other nodes, as one part. Level 0 has no host op, so the first part runs before every host
    step unless all nodes wait for the host.
    """
    level: dict[str, int] = {}
    for node in graph:
        before = max((level[name] for name in node.inputs), default=0)
        level[node.name] = before + (node.op == "host")
    parted = PartedGraph(Graph(graph.name), {}, [])
    for number in range(max(level.values(), default=0) + 1):
        parted.steps.extend(_host_steps(graph, level, number))
        device_nodes = [
            node for node in graph if level[node.name] == number and node.op not in ("host", "constant", "input")
        ]
        if device_nodes:
            parted.steps.append(_add_part(graph, device_nodes, parted))
    return parted


@dataclass(frozen=True, slots=True)
class PartedGraph:
    """A graph cut into parts. `graph`: all parts, each as a program; `parts`: inputs and outputs of each, by name;
    `steps`: programs, as a plan names them, and the host's work."""

    graph: Graph
    parts: dict[str, Part]
    steps: list[DeviceStep | HostWork]


def _host_steps(graph: Graph, level: Mapping[str, int], number: int) -> list[HostWork]:
    """Return the steps that the host runs at level `number` of a model cut into parts, one per call of an operator,
    which may give several nodes. `level`: for each node the largest number of host ops on a path to it."""
    calls: dict[tuple[int, tuple[str, ...]], list[Node]] = {}
    for node in graph:
        if node.op == "host" and level[node.name] == number:
            calls.setdefault((id(node.attrs["run"]), node.inputs), []).append(node)
    return [HostWork(tuple(nodes), tuple(graph[name] for name in nodes[0].inputs)) for nodes in calls.values()]


def _operands_from_outside(graph: Graph, nodes: Sequence[Node]) -> list[Node]:
    """Return the operands of the nodes that are not among them, each once, in the order in which they are read."""
    names = {node.name for node in nodes}
    operands = dict.fromkeys(chain.from_iterable(node.inputs for node in nodes))
    return [graph[name] for name in operands if name not in names]


def _as_input(node: Node, label: str) -> Node:
    """Return an input node of this label for a value from outside of a part. An input of the model keeps its
    attributes, except its rules about shapes, which the host plan has."""
    if node.op == "input":
        attrs = {name: value for name, value in node.attrs.items() if name != "rules"}  # the plan has them
    else:
        attrs = {}
    return Node(
        name=label,
        op="input",
        inputs=(),
        attrs={**attrs, "label": label},
        shape=node.shape,
        dtype=node.dtype,
        source=node.source,
    )


def _outputs_of_part(graph: Graph, part_names: Collection[str]) -> set[str]:
    """Return the values that nodes outside of a part read, and the outputs of the graph."""
    shown = set(chain.from_iterable(node.inputs for node in graph if node.name not in part_names))
    return shown | {output.value for output in graph.outputs}


def _add_part(graph: Graph, nodes: Sequence[Node], parted: PartedGraph) -> DeviceStep:
    """Add the device's nodes of one level to `parted` as a program of its own, whose inputs are the values from
    outside, and return the step that runs it."""
    whole_graph = parted.graph
    program = f"fwd_{len(parted.parts)}"
    prefix = f"part{len(parted.parts)}"
    names = {node.name: node.name for node in nodes}
    inputs: dict[str, str] = {}
    for node in _operands_from_outside(graph, nodes):
        name_in_part = f"{prefix}.{node.name}"
        names[node.name] = name_in_part
        if node.op != "constant":
            inputs[name_in_part] = node.name
            node = _as_input(node, name_in_part)
            whole_graph.inputs.append(name_in_part)
        whole_graph.nodes[name_in_part] = replace(node, name=name_in_part)
    for node in nodes:
        whole_graph.nodes[node.name] = replace(node, inputs=tuple(names[name] for name in node.inputs))
    shown = _outputs_of_part(graph, {node.name for node in nodes})
    outputs = {f"{node.name}.to_host": node.name for node in nodes if node.name in shown}
    whole_graph.outputs += [Output(label, name, whole_graph[name].dtype, program) for label, name in outputs.items()]
    parted.parts[prefix] = Part(program, tuple(inputs), tuple(outputs))
    return DeviceStep(program_name(program), inputs, outputs)


def _plan_input(graph: Graph, node: Node) -> PlanInput:
    """Return an input node of the model as a host plan describes it: label, shape, element type and bound of its
    values."""
    return PlanInput(
        label=node.attrs["label"],
        value=node.name,
        shape=host_shape(node),
        dtype=node.dtype,
        below=below(graph, node),
    )


class PartedModel:
    """A model compiled by `compile_in_parts`, with operators that run on the host. `steps`: programs of the netlist and
    the host's work, in order; `compiled`: all programs, None if the host does everything."""

    def __init__(
        self,
        graph: Graph,
        steps: Sequence[DeviceStep | HostWork],
        compiled: CompiledPrograms | None,
        origin: Origin | None = None,
        examples: Sequence[Any] | None = None,
    ) -> None:
        self.graph = graph
        self.steps = tuple(steps)
        self.compiled = compiled
        self.origin = origin
        self._examples = examples

    def __repr__(self) -> str:
        if self.compiled is None:
            parts = 0
        else:
            parts = len(self.compiled.parts)
        return f"PartedModel({self.graph.name!r}, {plural(parts, 'part')}, {len(self._host_work)} on host)"

    @property
    def _host_work(self) -> tuple[HostWork, ...]:
        """The steps that run on the host."""
        return tuple(step for step in self.steps if isinstance(step, HostWork))

    @property
    def on_device(self) -> CompiledPrograms:
        """The programs of the device. Raises HostError if the host does everything."""
        if self.compiled is None:
            raise HostError(f"compile: {self.graph.name}: the host does all of it: there is no netlist")
        return self.compiled

    def step_lines(self) -> Iterator[str]:
        """Yield a line for each step, in order: a program of the netlist, or the work of the host with its bytes and
        the reason for it."""
        for step in self.steps:
            if isinstance(step, HostWork):
                yield str(step)
            else:
                yield f"program {step.program}"

    @property
    def text(self) -> str:
        """The netlist, with comments that say what the host does before each program."""
        comments = "".join(f"# {line}\n" for line in self.step_lines())
        return comments + ("" if self.compiled is None else self.compiled.text)

    @cached_property
    def plan(self) -> HostPlan:
        """The steps as an image stores them."""
        graph = self.graph
        inputs = tuple(_plan_input(graph, graph[name]) for name in graph.inputs)
        outputs = tuple(PlanOutput(output.label, output.value, output.dtype) for output in graph.outputs)
        read = {output.value for output in outputs}
        for work in self._host_work:
            read.update(work.nodes[0].inputs)
        constants = [node.name for node in graph if node.op == "constant" and node.name in read]
        steps: list[DeviceStep | HostStep] = []
        for number, step in enumerate(self.steps):
            steps.append(step.step(number) if isinstance(step, HostWork) else step)
        files = {name: f"{number}.npy" for number, name in enumerate(constants)}
        return HostPlan(given=inputs, gives=outputs, constants=files, steps=tuple(steps), rules=rules_of(graph))

    def check(self, strict: bool = True) -> tuple[Diagnostic, ...]:
        """Return the findings of the checker in the netlist, none if all is well or if the host does everything; with
        `strict` also those about pipes and streams."""
        if self.compiled is None:
            return ()
        return self.compiled.check(strict)

    def __call__(self, *inputs: Any, precision: Precision = "ideal", **named: Any) -> tuple[Array, ...]:
        """Return the outputs for one set of inputs, in order or by their names. Raises HostError for other inputs than
        the model takes."""
        arrays = inputs_by_label([entry.label for entry in self.plan.given], inputs, named)
        return self.run({label: as_numpy(array) for label, array in arrays.items()}, precision)

    def run(self, arrays: Mapping[str, Array], precision: Precision = "ideal") -> tuple[Array, ...]:
        """Return the outputs for inputs by name. Raises HostError for a name that the model does not have, an input
        that is missing, and one of another shape or element type, ProgramError if an operator of the host refuses its
        values."""
        labels = [entry.label for entry in self.plan.given]
        require_names(arrays, labels)
        missing = [label for label in labels if label not in arrays]
        if missing:
            raise HostError(f"inputs: no {', '.join(missing)}; the model takes {', '.join(labels)}")
        values = {name: self.graph[name].value for name in self.plan.constants}
        for entry in self.plan.given:
            values[entry.value] = check_input(arrays[entry.label], entry.label, entry.shape, entry.dtype)
        runs = {step.file: work.run for step, work in zip(self.plan.on_host, self._host_work, strict=True)}
        values_by_name = follow(
            self.plan,
            values,
            partial(self._run_device_step, precision),
            lambda step, operands: compute(runs[step.file], step, operands),
        )
        return tuple(values_by_name[output.label] for output in self.plan.gives)

    def _run_device_step(
        self, precision: Precision, step: DeviceStep, operands: Mapping[str, Array]
    ) -> dict[str, Array]:
        """Run the program of a step on operands by label, and return its outputs by label."""
        if self.compiled is None:
            raise InternalError("a step of the device, and no netlist")
        (name,) = (key for key, part in self.compiled.parts.items() if program_name(part.program) == step.program)
        part = self.compiled.parts[name]
        (arrays,) = self.compiled.rounds(
            [[operands[label] for label in part.inputs]], precision=precision, program=name
        )
        return dict(zip(part.outputs, arrays, strict=True))

    def example_inputs(self, seed: int = 0) -> tuple[Array, ...]:
        """Return the example inputs that the model was compiled with, or random ones from the seed if there were
        none."""
        if self._examples is not None:
            return tuple(map(as_numpy, self._examples))
        return made_up(self.graph, seed)

    def compare(self, inputs: Any = None, *, precision: Precision = "ideal") -> ModelComparison:
        """Compare the outputs with those of the model as its own framework runs it. `inputs`: one set, as `compile`
        takes example inputs, or None for those. Print the result for a table. Raises HostError if the framework is not
        installed or refuses the inputs, and what a call raises."""
        if self.origin is None:
            raise HostError("compare: the model was not imported: there is nothing to compare it with")
        examples = example_inputs(inputs)
        if examples is None:
            examples = self.example_inputs()
        labels = [entry.label for entry in self.plan.given]
        if isinstance(examples, Mapping):
            by_label = inputs_by_label(labels, (), examples)
        else:
            by_label = inputs_by_label(labels, examples, {})
        arrays = {label: as_numpy(array) for label, array in by_label.items()}
        expected, _ = self.origin.values(list(arrays.values()), ())
        outputs = zip(self.plan.gives, expected, self.run(arrays, precision), strict=True)
        return ModelComparison(
            model=self.graph.name,
            tool=self.origin.tool,
            precision=precision,
            outputs=tuple(difference(output.label, want, got) for output, want, got in outputs),
            layers=(),
        )

    def perf(self) -> ModelPerf:
        """Return the modelled cycles of the programs, without the host's steps. Raises HostError if the host does
        everything."""
        return self.on_device.perf()

    def report(self) -> ReportText:
        """Describe the steps, and where the modelled time of the programs goes: for each epoch what sets its pace."""
        lines = "\n".join(self.step_lines())
        if self.compiled is None:
            return ReportText(lines)
        return ReportText(f"{lines}\n\n{self.compiled.report()}")

    def save(self, folder: str | Path, name: str = "model") -> tuple[Path, Path]:
        """Write `<name>.yaml` and `<name>.tti`, the netlist and an image of it with the host's parts, and return both
        paths. Raises HostError if the host does everything, OSError."""
        if self.compiled is None:
            raise HostError(f"compile: {self.graph.name}: the host does all of it: there is no netlist to write")
        members = {step.file: work.data for step, work in zip(self.plan.on_host, self._host_work, strict=True)}
        members |= {file: _npy_bytes(self.graph[name].value) for name, file in self.plan.constants.items()}
        return self.compiled.save(folder, name, host=(self.plan, members))

    def close(self) -> None:
        """Free the machines that calls opened; the next call opens a new one."""
        if self.compiled is not None:
            self.compiled.close()


def _npy_bytes(array: Array) -> bytes:
    """Return an array as the content of a .npy file."""
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


@within_memory()
def compile_in_parts(
    source: Any,
    inputs: Any = None,
    *,
    on_host: str | Sequence[str] = (REFUSED,),
    options: CompileOptions | None = None,
    **words: Unpack[OptionWords],
) -> PartedModel:
    """Compile a model with some operators on the host, given by name: operators of the ONNX model, and front-end ops of
    any model (`buda-emu compile --ops`). "*", the default, stands for all operators of an ONNX model that cannot become
    ops of the device; `steps` and `text` say what each costs and why it runs on the host. `source`, `inputs` and
    options are those of `compile`.

    Raises HostError for a name that the model does not have, and what `compile` raises.
    """
    resolved_options = with_words(options, words, "compile_in_parts")
    compilation = Compilation.of(resolved_options)
    examples = example_inputs(inputs)
    host_names = names_of(on_host)
    with compilation.loading(source):
        read = read_model(source, examples, host_names, sizes=resolved_options.sizes)
    origin = read.origin
    in_order = examples_in_order(examples, read)
    graph = compilation.prepare(mark_host_ops(read, host_names))
    parted = cut(graph)
    if parted.parts:
        compiled = CompiledPrograms(*compilation.place_core_graph(parted.graph), parted.parts)
    else:
        compiled = None
    return PartedModel(graph, parted.steps, compiled, origin=origin, examples=in_order)
