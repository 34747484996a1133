"""A compiled model of several parts, with the work that the host does between them."""

import io
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from buda_emu.checker.diagnostic import Diagnostic
from buda_emu.checker.text import plural
from buda_emu.compiler.compilation import Compilation, within_memory
from buda_emu.compiler.compiled import as_numpy
from buda_emu.compiler.emit.programs import program_name
from buda_emu.compiler.examples import below
from buda_emu.compiler.generate.programs import CompiledPrograms
from buda_emu.compiler.graph.graph import Array, Graph, host_shape
from buda_emu.compiler.importers.refusal import REFUSED
from buda_emu.compiler.importers.source import read_model
from buda_emu.compiler.on_host import HostWork, compute, cut, marked
from buda_emu.compiler.options import CompileOptions, OptionWords, with_words
from buda_emu.errors import HostError, InternalError
from buda_emu.image.host.plan import DeviceStep, Given, Gives, HostPlan, HostStep, follow
from buda_emu.spec.precision import Precision


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
            Given(item.attrs["label"], item.name, host_shape(item), item.dtype, below(graph, item)) for item in nodes
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
