"""The model libraries of the census: each lists its models without building them, and builds any of them small."""

import importlib
import importlib.metadata
import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn

Array = np.ndarray[Any, Any]
Built = tuple[nn.Module, tuple[Tensor, ...]]
"""A module in a small configuration, and its inputs."""

LIBRARIES: Final[Mapping[str, str]] = {
    name: f"{__name__}.{module}"
    for name, module in {
        "transformers": "of_transformers",
        "timm": "of_images",
        "torchvision": "of_images",
        "pytorchcv": "of_images",
        "segmentation_models_pytorch": "of_images",
        "open_clip": "of_images",
        "vit_pytorch": "of_signatures",
        "monai": "of_signatures",
        "diffusers": "of_signatures",
        "x_transformers": "of_flags",
        "torch_geometric": "of_flags",
        "onnx": "of_files",
    }.items()
}
"""By package the module that knows its models: it has a class for each in `SOURCES`."""
_DISTRIBUTIONS: Final = {"open_clip": "open_clip_torch"}
"""Names under which packages are installed, where they differ."""
_MOST_PARAMETERS: Final = 60_000_000


class LibrarySource:
    """The models of one package. Subclasses list them by family, the smallest first, and build one by name."""

    def names(self) -> Iterator[tuple[str, str]]:
        """Yield family and name of each model, without building any."""
        raise NotImplementedError

    def build(self, name: str) -> Built:
        """Return the model in a small configuration, and its inputs."""
        raise NotImplementedError


@dataclass(slots=True)
class Model:
    """A model as the compiler takes it: `source` and `examples` for `be.compile`, `inputs` for one run, and `run`,
    which computes the outputs in the model's own framework."""

    source: Any
    examples: tuple[Any, ...] | None
    inputs: tuple[Any, ...]
    run: Callable[[], list[Array]]
    parameters: int


class Outputs(nn.Module):
    """A model that is called with its inputs by name, and gives its numbers as a tuple: floats, else integers.

    `names`: of the inputs, "" for one by place; `constants`: further arguments."""

    def __init__(self, inner: nn.Module, names: Sequence[str], constants: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.inner = inner
        self.names = tuple(names)
        self.constants = dict(constants or {})

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Return every tensor in the outputs of the model."""
        by_place = [value for name, value in zip(self.names, inputs, strict=True) if not name]
        by_name = {name: value for name, value in zip(self.names, inputs, strict=True) if name}
        tensors = list(_tensors(self.inner(*by_place, **by_name, **self.constants)))
        floats = tuple(tensor for tensor in tensors if tensor.is_floating_point())
        return floats or tuple(tensors)


def _tensors(value: object) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        if value.numel() and not value.is_complex():
            yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _tensors(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _tensors(inner)


def declare_missing_operators() -> None:
    """Declare the operators of torchvision that it describes to torch when it is imported, where its own library of
    them was built for another torch and does not load. Models that do not call them work without."""
    if importlib.util.find_spec("torchvision") is None:
        return
    try:
        importlib.import_module("torchvision")
    except RuntimeError:
        for name in ("nms", "qnms"):
            torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


def installed_libraries() -> list[str]:
    """Return the libraries that are installed, in the order of the table."""
    return [name for name in LIBRARIES if importlib.util.find_spec(name) is not None]


def library_version(name: str) -> str:
    """Return the version of an installed package."""
    return importlib.metadata.version(_DISTRIBUTIONS.get(name, name))


def source_of(library: str) -> LibrarySource:
    """Return the models of a library."""
    return importlib.import_module(LIBRARIES[library]).SOURCES[library]()


def check_size(parameters: int) -> None:
    """Refuse a model that would not be small. Raises ValueError."""
    if parameters > _MOST_PARAMETERS:
        raise ValueError(f"larger than the census takes: {parameters:,} parameters, at most {_MOST_PARAMETERS:,}")
