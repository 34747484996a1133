"""An ONNX model as onnxruntime runs it, value by value."""

from collections.abc import Container, Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import onnx

from buda_emu.compiler.graph.graph import Array
from buda_emu.compiler.importers.from_onnx.external import take_in
from buda_emu.errors import HostError


class OnnxOrigin:
    """An onnx.ModelProto. `names`: of its values in the imported graph. `folder` of the files that large tensors lie
    in."""

    def __init__(self, model: Any, names: Mapping[str, str]) -> None:
        self.folder: Path | None = None
        self._model = model
        self._names = names

    @property
    def tool(self) -> str:
        """What runs it."""
        return f"onnxruntime {version('onnxruntime')}"

    def values(self, inputs: Sequence[Array], wanted: Container[str]) -> tuple[list[Array], dict[str, Array]]:
        """Outputs and inner values. Raises HostError without onnxruntime, or where it refuses the model."""
        try:
            runtime: Any = import_module("onnxruntime")
        except ImportError:
            raise HostError("compare: onnxruntime is not installed: pip install 'buda-emu[compare]'") from None
        own = onnx.ModelProto()
        own.CopyFrom(self._model)
        if self.folder is not None:
            take_in(own, self.folder)
        graph = own.graph
        results = [value.name for value in graph.output]
        given = {item.name for item in (*graph.initializer, *graph.input)}
        inner = [name for name, node in self._names.items() if node in wanted and name not in given and name]
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in inner if name not in results)
        held = {item.name for item in graph.initializer}
        feeds = [value.name for value in graph.input if value.name not in held]
        options = runtime.SessionOptions()
        options.log_severity_level = 4
        try:
            session = runtime.InferenceSession(own.SerializeToString(), options, providers=["CPUExecutionProvider"])
            found = dict(
                zip(
                    [item.name for item in session.get_outputs()],
                    session.run(None, dict(zip(feeds, inputs, strict=True))),
                    strict=True,
                )
            )
        except Exception as error:  # noqa: BLE001 - onnxruntime raises kinds of its own
            raise HostError(f"compare: onnxruntime cannot run the model: {str(error).splitlines()[0]}") from None
        return [found[name] for name in results], {self._names[name]: found[name] for name in inner}
