"""The cases of the census: the models that the libraries list, and any of them with weights, inputs and a reference."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor, nn

from .libraries import Array, Model, Outputs, check_size, source_of
from .rows import Case


def list_cases(library: str) -> Iterator[Case]:
    """Yield the models of a library, in torch's form; of files in the form of ONNX."""
    form = "onnx" if library == "onnx" else "torch"
    for family, name in source_of(library).names():
        yield Case(library, family, name, form)


def build_model(library: str, name: str, form: str, seed: int) -> Model:
    """Return a model with weights and inputs by the seed and its name."""
    torch.manual_seed(seed + sum(map(ord, name)))
    source = source_of(library)
    if library == "onnx":
        return source.load(name)  # type: ignore[attr-defined]
    module, inputs = source.build(name)
    model = _model_of_module(settle(module), inputs)
    check_size(model.parameters)
    if form == "onnx":
        return replace(model, source=export_onnx(module, inputs), examples=None)
    return model


def _model_of_module(module: nn.Module, inputs: tuple[Tensor, ...]) -> Model:
    """Return the model of a module of torch."""
    parameters = sum(parameter.numel() for parameter in module.parameters())

    def run() -> list[Array]:
        with torch.no_grad():
            outputs = module(*inputs)
        return [output.float().numpy() if output.is_floating_point() else output.numpy() for output in outputs]

    return Model(source=module, examples=inputs, inputs=inputs, run=run, parameters=parameters)


def masks_of(model: Model) -> tuple[str, ...]:
    """Return the names of the masks among the inputs that a model takes by name."""
    return tuple(name for name in getattr(model.source, "names", ()) if name.endswith("_mask"))


def leave_out(model: Model, names: Collection[str]) -> Model:
    """Return a model of torch without these inputs, for which it takes its own defaults."""
    outputs: Outputs = model.source
    remaining = [(name, value) for name, value in zip(outputs.names, model.inputs, strict=True) if name not in names]
    module = Outputs(outputs.inner, [name for name, _ in remaining], outputs.constants)
    return _model_of_module(module.eval(), tuple(value for _, value in remaining))


def settle(module: nn.Module) -> nn.Module:
    """Put a module into eval mode, with batch norms whose statistics are not 0 and 1, and with random values for
    parameters that begin as nothing, which would hide faults, or as whatever the memory held."""
    for part in module.modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm) and isinstance(part.running_mean, Tensor):
            nn.init.uniform_(part.running_mean, -0.5, 0.5)
            assert part.running_var is not None
            nn.init.uniform_(part.running_var, 0.5, 1.5)
    with torch.no_grad():
        for parameter in module.parameters():
            if not parameter.numel() or not parameter.is_floating_point():
                continue
            size = parameter.abs().max()
            if not 1e-3 < size < 1e3:  # nor is NaN
                parameter.normal_(std=0.1)
    return module.eval()


def export_onnx(module: nn.Module, inputs: tuple[Tensor, ...]) -> Any:
    """Return the ONNX model that torch exports."""
    import onnx

    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        torch.onnx.export(module, inputs, path, dynamo=False, opset_version=17)
        return onnx.load(path)
