"""Choose the importer for a model."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from buda_emu.compiler.graph.examples import Examples, example_inputs
from buda_emu.compiler.graph.graph import Graph
from buda_emu.compiler.importers.operators import OpenSizes
from buda_emu.support.errors import HostError
from buda_emu.support.unmasked import refuse_masked_arrays


def read_model(
    source: Any,
    inputs: Any,
    on_host: Sequence[str] = (),
    parameters: Path | None = None,
    sizes: Mapping[str, int] | None = None,
) -> Graph:
    """Import a model in any form that `compile` takes, with example inputs as `example_inputs` takes them. Operators
    listed in `on_host` stay as they are if the model's own framework can run them. `parameters` names a file with the
    parameters of a torch module or .pt2 program, `sizes` the sizes that the model leaves open. Raises HostError for a
    model that cannot be read, UnsupportedError for one that cannot be compiled."""
    examples = example_inputs(inputs)
    example_arrays = list(examples.values()) if isinstance(examples, Mapping) else examples
    refuse_masked_arrays(example_arrays, "compile: example inputs")
    open_sizes = OpenSizes(sizes or {})
    graph = _import_by_kind(source, examples, on_host, parameters, open_sizes)
    open_sizes.check(graph.name)
    if not graph.outputs:
        raise HostError(f"compile: {graph.name}: the model has no outputs: there is nothing to compute")
    return graph


def _read_model_file(
    path: Path, inputs: Examples, on_host: Sequence[str], parameters: Path | None, sizes: OpenSizes
) -> Graph:
    """Import the model in a file by the suffix of its name, .onnx or .pt2. `on_host` lists operators of an ONNX model
    for the host, `parameters` names the file with the parameters of a .pt2 program. Raises HostError for any other
    suffix, with the way to export such a model if there is one, for a package that is not installed, and for a file
    without such a model; UnsupportedError for operators that are not supported."""
    suffix = path.suffix.lower()
    if suffix == ".onnx":
        _require_package("onnx", path)
        from buda_emu.compiler.importers.from_onnx.reader import read_file

        return read_file(path, inputs, on_host, sizes)
    if suffix == ".pt2":
        _require_package("torch", path)
        from buda_emu.compiler.importers.from_torch.reader import read_pt2

        return read_pt2(path, parameters, (inputs, sizes))
    raise HostError(f"compile: {path} ends neither in .onnx nor in .pt2{_how_to_export(path)}")


def _import_by_kind(
    source: Any, inputs: Examples, on_host: Sequence[str], parameters: Path | None, sizes: OpenSizes
) -> Graph:
    """Import a model with the importer for its kind, which its type or the suffix of its file shows. Only that
    importer's packages are imported. Raises HostError for a source of any other kind, and for `parameters` beside a
    model that contains its own."""
    kind: type[Any] = type(source)
    if isinstance(source, Mapping):
        raise HostError(
            f"compile: {kind.__name__} is no model: give the torch.nn.Module itself, with load_state_dict if these are "
            "its parameters, or with parameters= and their file; several Programs go to compile_programs"
        )
    if isinstance(source, type):
        raise HostError(f"compile: {source.__name__} is a class: give an object of it, {source.__name__}(...)")
    if any(base.__module__.split(".")[0] == "torch" for base in kind.__mro__):
        from buda_emu.compiler.importers.from_torch.reader import read_torch

        return read_torch(source, inputs, parameters, sizes)
    path = Path(source) if isinstance(source, (str, Path)) else None
    if parameters is not None and (path is None or path.suffix.lower() != ".pt2"):
        raise HostError("compile: parameters= is for a torch module or a .pt2 file: other models contain their own")
    if path is not None:
        return _read_model_file(path, inputs, on_host, parameters, sizes)
    if kind.__name__ == "ModelProto":
        from buda_emu.compiler.importers.from_onnx.reader import read_proto

        return read_proto(source, inputs, on_host=on_host, sizes=sizes)
    if callable(source):
        _refuse_tensors_of_torch(source, inputs)
        _require_package("jax", getattr(source, "__name__", kind.__name__))
        from buda_emu.compiler.importers.from_jax.reader import read_jax

        return read_jax(source, inputs)
    raise HostError(
        f"compile: {kind.__name__} is none of: path, onnx.ModelProto, torch.nn.Module, ExportedProgram, function of JAX"
    )


_EXPORT_OF_TORCH: Final = (
    'write the module with torch.export.save(torch.export.export(module, inputs), "model.pt2"), or compile it in '
    "Python, be.compile(module, inputs)"
)
_EXPORT_OF_TENSORFLOW: Final = (
    "make an ONNX model of it, `python -m tf2onnx.convert {option} MODEL --output model.onnx`"
)
_EXPORTS: Final[Mapping[str, str]] = {
    ".py": _EXPORT_OF_TORCH,
    ".pt": _EXPORT_OF_TORCH,
    ".pth": _EXPORT_OF_TORCH,
    ".bin": _EXPORT_OF_TORCH,
    ".safetensors": _EXPORT_OF_TORCH,
    ".tflite": _EXPORT_OF_TENSORFLOW.format(option="--tflite"),
    ".h5": _EXPORT_OF_TENSORFLOW.format(option="--keras"),
    ".pb": _EXPORT_OF_TENSORFLOW.format(option="--graphdef"),
}
"""How the model of a file that no importer reads, or of its parameters, becomes one that can be read, by suffix."""


def _how_to_export(path: Path) -> str:
    """Return how the model of a file of another framework, or of saved parameters, becomes a file that can be read; ""
    for other files."""
    advice = _EXPORTS.get(path.suffix.partition(":")[0].lower())
    if advice is None:
        return ""
    return f": {advice}"


def _refuse_tensors_of_torch(function: Any, inputs: Examples) -> None:
    """Raise HostError for a function with example inputs of torch. A function is taken for one of JAX; torch's models
    are modules."""
    examples = list(inputs.values()) if isinstance(inputs, Mapping) else inputs or ()
    if any(type(example).__module__.split(".")[0] == "torch" for example in examples):
        name = getattr(function, "__name__", type(function).__name__)
        raise HostError(
            f"compile: {name}: a function must be one of JAX, but its example inputs are of torch: put it into the "
            'forward of a torch.nn.Module, or call torch.compile(function, backend="buda")'
        )


def _require_package(package: str, path: Path | str) -> None:
    """Raise HostError if a package that the model needs is not installed; the project's extra has the same name."""
    if find_spec(package) is None:
        raise HostError(f"compile: {path} needs the package {package}: pip install 'buda-emu[{package}]'")
