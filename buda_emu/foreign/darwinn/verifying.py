"""Does a package hold a model: which tensors of the twin are its layers, and whether weights, biases, names and shapes
are equal.
"""

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buda_emu.foreign.darwinn.idl import Executable, Layer
from buda_emu.foreign.darwinn.model import Package
from buda_emu.foreign.darwinn.reading import Source
from buda_emu.foreign.darwinn.rules.package import VARIABLE_SUFFIX
from buda_emu.foreign.darwinn.twin import Twin
from buda_emu.foreign.darwinn.twin.graph import Graph, Operation, Tensor
from buda_emu.foreign.darwinn.twin.operators import OPERATORS


@dataclass(frozen=True, slots=True)
class Pairing:
    """Tensor numbers of inputs and outputs by the layer's name, and what does not agree."""

    inputs: dict[str, int]
    outputs: dict[str, int]
    problems: tuple[str, ...]


def pair(executable: Executable, graph: Graph) -> Pairing:
    """Layers to tensors by name; sizes, types, scales and zero points are to agree."""
    problems: list[str] = []

    def find(layers: tuple[Layer, ...], outputs: bool) -> dict[str, int]:
        found: dict[str, int] = {}
        for layer in layers:
            name = layer.name or ""
            number = graph.named(tensor_name(name, graph) if outputs else name)
            if number is None:
                problems.append(f"the model has no tensor {name!r}")
                continue
            found[name] = number
            wrong = _differs(layer, graph.tensors[number])
            if wrong:
                problems.append(f"{name!r}: {wrong}")
        return found

    inputs, outputs = find(executable.inputs, False), find(executable.outputs, True)
    return Pairing(inputs, outputs, tuple(problems))


def tensor_name(layer: str, graph: Graph) -> str:
    """The tensor of an output: `X_variable_output` is the variable X."""
    base = layer.removesuffix(VARIABLE_SUFFIX)
    number = graph.named(base)
    return base if base != layer and number is not None and graph.tensors[number].is_variable else layer


def _differs(layer: Layer, tensor: Tensor) -> str:
    """How a layer and its tensor disagree; "" where they agree."""
    if layer.element is None or layer.element.dtype != tensor.type:
        return f"the package has {layer.element.name if layer.element else layer.data_type}, the model {tensor.type}"
    elements = layer.elements * layer.execution_count_per_inference
    if elements != prod(tensor.shape):
        return f"the package has {elements} elements, the model {prod(tensor.shape)}"
    if layer.numerics is None or len(tensor.scale) != 1:
        return "there is no one scale"
    scale = layer.numerics.dequantization_factor
    zero = layer.numerics.zero_point
    if np.float32(scale) != np.float32(tensor.scale[0]):
        return f"the package's scale is {scale}, the model's {tensor.scale[0]}"
    host_zero = zero - (1 << (8 * layer.element.size - 1) if layer.element.signed else 0)
    if host_zero != tensor.zero_point[0]:
        return f"the package's zero point is {host_zero}, the model's {tensor.zero_point[0]}"
    return ""


_BIASED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
_BIAS_BYTES = 16
_EIGHT_BITS = ("int8", "uint8")


@dataclass(frozen=True, slots=True)
class Verification:
    """What was compared. `matches`: layers agree, every weight byte is there often enough, every bias was found."""

    layers: bool
    weights: int
    """Bytes of 8-bit constants of the model's operators."""
    weights_missing: int
    """Bytes that the package's parameters have too few of."""
    biases: int
    biases_found: int
    differences: tuple[str, ...]
    """How the layers disagree, one line each."""

    @property
    def matches(self) -> bool:
        """Whether the package was made from this model, as far as bytes can say."""
        return self.layers and not self.weights_missing and self.biases_found == self.biases


def verify(package: Package, model: "Twin | Source") -> Verification:
    """Hold a package against an uncompiled model.

    The order of weights on the device is not public: their bytes are counted, biases searched. Raises PackageError for
    what is not a model, OSError for a file that cannot be opened.
    """
    twin = model if isinstance(model, Twin) else Twin(model)
    pairing = pair(package.main, twin.graph)
    operations: list[Operation] = list(twin.graph.operations)
    if not pairing.problems:
        outputs = [tensor_name(name, twin.graph) for name in pairing.outputs]
        operations = twin.between(pairing.inputs, outputs)
    blobs = [bytes(item.parameters) for item in package.executables if item.parameters]
    have = sum((_counts(blob) for blob in blobs), np.zeros(256, np.int64))
    need = np.zeros(256, np.int64)
    biases = found = 0
    for number in _constants(operations):
        tensor = twin.graph.tensors[number]
        if tensor.constant is None or tensor.is_variable or tensor.type not in _EIGHT_BITS:
            continue
        data = tensor.constant.tobytes()
        need += np.roll(_counts(data), 128) if tensor.type == "int8" else _counts(data)
    for number in _biases(operations):
        constant = twin.graph.tensors[number].constant
        if constant is not None and constant.dtype == np.int32:
            biases += 1
            head = constant.tobytes()[:_BIAS_BYTES]
            found += any(head in blob for blob in blobs)
    missing = int(np.maximum(need - have, 0).sum())
    return Verification(
        layers=not pairing.problems,
        weights=int(need.sum()),
        weights_missing=missing,
        biases=biases,
        biases_found=found,
        differences=pairing.problems,
    )


def _counts(data: bytes) -> NDArray[Any]:
    """How often each byte value occurs."""
    return np.bincount(np.frombuffer(data, np.uint8), minlength=256).astype(np.int64)


def _constants(operations: list[Operation]) -> list[int]:
    """Tensors that operators read, each once."""
    return list(dict.fromkeys(number for item in operations for number in item.inputs if number >= 0))


def _biases(operations: list[Operation]) -> list[int]:
    """Tensors that are biases, each once."""
    codes = {code for code, item in OPERATORS.items() if item.name in _BIASED}
    numbers = (item.inputs[2] for item in operations if item.code in codes and len(item.inputs) > 2)
    return list(dict.fromkeys(number for number in numbers if number >= 0))
