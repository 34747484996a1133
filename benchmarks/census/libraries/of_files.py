"""ONNX files that installed packages ship: the small networks and layers that `onnx` tests backends with."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from . import Array, Built, LibrarySource, Model

_ROOMS = {"onnx": ("backend/test/data",), "onnxruntime": ("datasets",)}
_NODES = "node"
"""The folder of single operators, which docs/compile/compile-conformance.md has."""


class OnnxFiles(LibrarySource):
    """All files, by package and path."""

    def names(self) -> Iterator[tuple[str, str]]:
        """Yield the folder and the path of each file."""
        for package, path in _files():
            name = path.parent.name if path.name == "model.onnx" else path.stem
            yield f"{package}/{path.parent.parent.name if path.name == 'model.onnx' else path.parent.name}", name

    def build(self, name: str) -> Built:
        """Raise TypeError: a file is no module."""
        raise TypeError(f"{name} is a file")

    def load(self, name: str) -> Model:
        """Return the model of a file, with random inputs of the shapes that it declares."""
        import onnx
        import onnxruntime

        path = next(path for _, path in _files() if name in (path.parent.name, path.stem))
        proto = onnx.load(path)
        onnxruntime.set_default_logger_severity(4)
        rng = np.random.default_rng(sum(map(ord, name)))
        weights = {tensor.name for tensor in proto.graph.initializer}
        inputs = {entry.name: _draw(entry, rng) for entry in proto.graph.input if entry.name not in weights}
        session = _reference(proto)

        def run() -> list[Array]:
            return [np.asarray(output) for output in session.run(None, inputs)]

        values = tuple(inputs.values())
        parameters = sum(int(np.prod(tensor.dims)) for tensor in proto.graph.initializer)
        return Model(source=proto, examples=values, inputs=values, run=run, parameters=parameters)


def _files() -> Iterator[tuple[str, Path]]:
    for package, rooms in _ROOMS.items():
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            continue
        for room in rooms:
            for path in sorted((Path(spec.origin).parent / room).rglob("*.onnx")):
                if _NODES not in path.parts:
                    yield package, path


def _reference(proto: Any) -> Any:
    """Return what runs the model: onnxruntime, or onnx's own evaluator for operators that are too old for it."""
    import onnx.reference
    import onnxruntime
    from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as MissingKernel

    try:
        return onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    except MissingKernel:
        return onnx.reference.ReferenceEvaluator(proto)


def _draw(entry: Any, rng: np.random.Generator) -> Array:
    import onnx

    tensor = entry.type.tensor_type
    shape = [size.dim_value or 1 for size in tensor.shape.dim]
    kind = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    if kind.kind == "f":
        return rng.standard_normal(shape).astype(kind)
    if kind.kind in "iub":
        return rng.integers(0, 2, shape).astype(kind)
    raise TypeError(f"no inputs of {kind}")


SOURCES = {"onnx": OnnxFiles}
