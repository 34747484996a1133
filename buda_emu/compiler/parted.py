"""A compiled model of several parts, with the host's work between them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from buda_emu.checker.diagnostic import Diagnostic
from buda_emu.checker.text import plural
from buda_emu.compiler.compilation import Compilation, within_memory
from buda_emu.compiler.compiled import CompiledModel, as_numpy
from buda_emu.compiler.graph.graph import Array, Graph
from buda_emu.compiler.importers.refusal import REFUSED
from buda_emu.compiler.importers.source import read_model
from buda_emu.compiler.on_host import HostStep, cut, marked
from buda_emu.compiler.options import CompileOptions, OptionWords, with_words
from buda_emu.errors import HostError
from buda_emu.spec.infinity import STAND_IN
from buda_emu.spec.precision import Precision


class PartedModel:
    """What `compile_in_parts` returns: some operators run on the host. `steps`: parts and the host's work, in order."""

    def __init__(self, graph: Graph, steps: Sequence[CompiledModel | HostStep]) -> None:
        self.graph = graph
        self.steps = tuple(steps)

    def __repr__(self) -> str:
        on_host = len(self.steps) - len(self.parts)
        return f"PartedModel({self.graph.name!r}, {plural(len(self.parts), 'part')}, {on_host} on host)"

    @property
    def parts(self) -> tuple[CompiledModel, ...]:
        """The netlists."""
        return tuple(step for step in self.steps if isinstance(step, CompiledModel))

    @property
    def text(self) -> str:
        """All netlists, as documents of one YAML stream, with what the host does in comments."""
        pieces = [f"# {step}\n" if isinstance(step, HostStep) else f"---\n{step.text}" for step in self.steps]
        return "".join(pieces)

    def check(self, strict: bool = True) -> tuple[Diagnostic, ...]:
        """Findings of the checker in all parts."""
        return tuple(found for part in self.parts for found in part.check(strict))

    def __call__(self, *inputs: Any, precision: Precision = "ideal") -> tuple[Array, ...]:
        """The outputs for one set of inputs. Raises HostError for others than the model takes."""
        labels = [self.graph[name].attrs["label"] for name in self.graph.inputs]
        if len(inputs) != len(labels):
            raise HostError(f"{plural(len(inputs), 'input')}, the model takes {len(labels)}: {', '.join(labels)}")
        return self.run({label: as_numpy(item) for label, item in zip(labels, inputs, strict=True)}, precision)

    def run(self, arrays: Mapping[str, Array], precision: Precision = "ideal") -> tuple[Array, ...]:
        """The same with inputs by name."""
        graph = self.graph
        values = {node.name: node.value for node in graph if node.op == "constant"}
        values |= {name: arrays[graph[name].attrs["label"]] for name in graph.inputs}
        for step in self.steps:
            if isinstance(step, HostStep):
                values |= step.run(values)
                continue
            own = {
                step.graph[name].attrs["label"]: values[name] if name in graph.inputs else _finite(values[name])
                for name in step.graph.inputs
            }
            shown = (output.value for output in step.graph.outputs)
            values |= dict(zip(shown, step.run(own, precision), strict=True))
        return tuple(values[output.value].astype(output.dtype) for output in graph.outputs)

    def save(self, folder: str | Path, name: str = "model") -> list[Path]:
        """Write `<name>.0.yaml`, `<name>.0.tti` and so on, a pair for each part; returns all paths. Raises OSError."""
        return [path for number, part in enumerate(self.parts) for path in part.save(folder, f"{name}.{number}")]

    def close(self) -> None:
        """Free the machines that calls made."""
        for part in self.parts:
            part.close()


def _finite(value: Array) -> Array:
    """What goes on to another part, with infinities as the device has them (compiler/frontend_ops/compare.py)."""
    if value.dtype.kind != "f" or not np.isinf(value).any():
        return value
    return np.where(np.isinf(value), np.copysign(np.float32(STAND_IN), value), value)


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
    compilation = Compilation.of(with_words(options, words, "compile_in_parts"))
    graph = compilation.prepared(marked(read_model(source, inputs, on_host), on_host))
    steps = [CompiledModel(*compilation.lowered(step)) if isinstance(step, Graph) else step for step in cut(graph)]
    return PartedModel(graph, steps)


__all__: Sequence[str] = ["PartedModel", "compile_in_parts"]
