"""Which importer reads a model."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from buda_emu.compiler.graph.graph import Graph
from buda_emu.compiler.importers.operators import OpenSizes
from buda_emu.support.errors import HostError
from buda_emu.support.unmasked import refuse_masked_arrays


def read_model(
    source: Any,
    inputs: Sequence[Any] | None,
    on_host: Sequence[str] = (),
    parameters: Path | None = None,
    sizes: Mapping[str, int] | None = None,
) -> Graph:
    """The graph of a model as it is given to `compile`; operators `on_host` stay as they are, where the model's own
    framework can run them; `parameters` of a torch module or a .pt2 file in another file; `sizes` that it leaves open.
    Raises HostError, UnsupportedError."""
    refuse_masked_arrays(inputs, "compile: example inputs")
    given = OpenSizes(sizes or {})
    graph = _read(source, inputs, on_host, parameters, given)
    given.check(graph.name)
    if not graph.outputs:
        raise HostError(f"compile: {graph.name}: the model has no outputs: there is nothing to compute")
    return graph


def _read(
    source: Any, inputs: Sequence[Any] | None, on_host: Sequence[str], parameters: Path | None, sizes: OpenSizes
) -> Graph:
    kind: type[Any] = type(source)
    if any(base.__module__.split(".")[0] == "torch" for base in kind.__mro__):
        from buda_emu.compiler.importers.from_torch.reader import read_torch

        return read_torch(source, inputs, parameters, sizes)
    path = Path(source) if isinstance(source, (str, Path)) else Path()
    if parameters is not None and path.suffix != ".pt2":
        raise HostError("compile: parameters: of a torch module or a .pt2 file: other models have their own")
    if isinstance(source, (str, Path)):
        if path.suffix == ".onnx":
            _need("onnx", path)
            from buda_emu.compiler.importers.from_onnx.reader import read_file

            return read_file(path, inputs, on_host, sizes)
        if path.suffix == ".pt2":
            _need("torch", path)
            from buda_emu.compiler.importers.from_torch.reader import read_pt2

            return read_pt2(path, parameters, (inputs, sizes))
        raise HostError(f"compile: {path} ends neither in .onnx nor in .pt2")
    if kind.__name__ == "ModelProto":
        from buda_emu.compiler.importers.from_onnx.reader import read_proto

        return read_proto(source, inputs, on_host=on_host, sizes=sizes)
    if callable(source):
        _need("jax", getattr(source, "__name__", kind.__name__))
        from buda_emu.compiler.importers.from_jax.reader import read_jax

        return read_jax(source, inputs)
    raise HostError(
        f"compile: {kind.__name__} is none of: path, onnx.ModelProto, torch.nn.Module, ExportedProgram, function of JAX"
    )


def _need(package: str, path: Path | str) -> None:
    """Raises HostError where what reads a file is not installed; the extra has the package's name."""
    if find_spec(package) is None:
        raise HostError(f"compile: {path} needs the package {package}: pip install 'buda-emu[{package}]'")
