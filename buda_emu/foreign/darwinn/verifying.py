"""Comparison of a package with a model: which tensors of the twin are its layers, and whether weights, biases, names
and shapes are equal."""

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
    """Tensor numbers of inputs and outputs by the layer's name, and the differences between layers and tensors."""

    inputs: dict[str, int]
    outputs: dict[str, int]
    problems: tuple[str, ...]


def pair(executable: Executable, graph: Graph) -> Pairing:
    """Pair layers with tensors by name. Sizes, types, scales and zero points that differ are problems."""
    problems: list[str] = []
    inputs = _pair_layers(executable.inputs, False, graph, problems)
    outputs = _pair_layers(executable.outputs, True, graph, problems)
    return Pairing(inputs, outputs, tuple(problems))


def _pair_layers(layers: tuple[Layer, ...], outputs: bool, graph: Graph, problems: list[str]) -> dict[str, int]:
    numbers: dict[str, int] = {}
    for layer in layers:
        name = layer.name or ""
        number = graph.number_of(tensor_name(name, graph) if outputs else name)
        if number is None:
            problems.append(f"the model has no tensor {name!r}")
            continue
        numbers[name] = number
        difference = _difference(layer, graph.tensors[number])
        if difference:
            problems.append(f"{name!r}: {difference}")
    return numbers


def tensor_name(layer: str, graph: Graph) -> str:
    """Return the name of an output's tensor: for `X_variable_output` it is X, where X is a variable of the graph."""
    base = layer.removesuffix(VARIABLE_SUFFIX)
    number = graph.number_of(base)
    if base != layer and number is not None and graph.tensors[number].is_variable:
        return base
    return layer


def _difference(layer: Layer, tensor: Tensor) -> str:
    """Describe the first difference between a layer and its tensor; "" where they agree."""
    if layer.element is None or layer.element.dtype != tensor.type:
        return f"the package has {layer.element.name if layer.element else layer.data_type}, the model {tensor.type}"
    elements = layer.elements * layer.execution_count_per_inference
    if elements != prod(tensor.shape):
        return f"the package has {elements} elements, the model {prod(tensor.shape)}"
    if layer.numerics is None or len(tensor.scale) != 1:
        return "there is no one scale"
    scale = layer.numerics.dequantization_factor
    if np.float32(scale) != np.float32(tensor.scale[0]):
        return f"the package's scale is {scale}, the model's {tensor.scale[0]}"
    if layer.element.signed:
        flip = 1 << (8 * layer.element.size - 1)
    else:
        flip = 0
    host_zero = layer.numerics.zero_point - flip
    if host_zero != tensor.zero_point[0]:
        return f"the package's zero point is {host_zero}, the model's {tensor.zero_point[0]}"
    return ""


_BIASED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
_BIAS_BYTES = 16
_EIGHT_BITS = ("int8", "uint8")


@dataclass(frozen=True, slots=True)
class Verification:
    """The figures of a comparison. `matches` means: layers agree, every weight byte is there often enough, every bias
    was found."""

    layers: bool
    weights: int
    """Bytes of 8-bit constants of the model's operators."""
    weights_missing: int
    """Bytes that the package's parameters have too few of."""
    biases: int
    biases_found: int
    differences: tuple[str, ...]
    """Differences between layers and tensors, one line each."""

    @property
    def matches(self) -> bool:
        """Return whether the package was made from this model, as far as bytes can tell."""
        return self.layers and not self.weights_missing and self.biases_found == self.biases


def verify(package: Package, model: "Twin | Source") -> Verification:
    """Compare a package with an uncompiled model.

    The order of weights on the device is not public: their bytes are counted, biases searched. Raises PackageError for
    bytes that are no model, OSError for a file that cannot be opened.
    """
    if isinstance(model, Twin):
        twin = model
    else:
        twin = Twin(model)
    pairing = pair(package.main, twin.graph)
    operations: list[Operation] = list(twin.graph.operations)
    if not pairing.problems:
        outputs = [tensor_name(name, twin.graph) for name in pairing.outputs]
        operations = twin.between(pairing.inputs, outputs)
    blobs = [bytes(executable.parameters) for executable in package.executables if executable.parameters]
    have = sum((_counts(blob) for blob in blobs), np.zeros(256, np.int64))
    need = _weight_counts(twin.graph, operations)
    heads = _bias_heads(twin.graph, operations)
    return Verification(
        layers=not pairing.problems,
        weights=int(need.sum()),
        weights_missing=int(np.maximum(need - have, 0).sum()),
        biases=len(heads),
        biases_found=sum(any(head in blob for blob in blobs) for head in heads),
        differences=pairing.problems,
    )


def _weight_counts(graph: Graph, operations: list[Operation]) -> NDArray[Any]:
    """Count the bytes of 8-bit constants by their value on the device, which flips the sign bit of int8."""
    counts = np.zeros(256, np.int64)
    for number in _constants(operations):
        tensor = graph.tensors[number]
        if tensor.constant is None or tensor.is_variable or tensor.type not in _EIGHT_BITS:
            continue
        tensor_counts = _counts(tensor.constant.tobytes())
        counts += np.roll(tensor_counts, 128) if tensor.type == "int8" else tensor_counts
    return counts


def _bias_heads(graph: Graph, operations: list[Operation]) -> list[bytes]:
    """Return the first bytes of each bias that is a constant of int32."""
    heads: list[bytes] = []
    for number in _biases(operations):
        constant = graph.tensors[number].constant
        if constant is not None and constant.dtype == np.int32:
            heads.append(constant.tobytes()[:_BIAS_BYTES])
    return heads


def _counts(data: bytes) -> NDArray[Any]:
    """Count the bytes of each of the 256 values."""
    return np.bincount(np.frombuffer(data, np.uint8), minlength=256).astype(np.int64)


def _constants(operations: list[Operation]) -> list[int]:
    """Return the numbers of the tensors that operators read, each once, in order."""
    numbers: dict[int, None] = {}
    for operation in operations:
        numbers |= dict.fromkeys(number for number in operation.inputs if number >= 0)
    return list(numbers)


def _biases(operations: list[Operation]) -> list[int]:
    """Return the numbers of the tensors that are biases, each once, in order."""
    codes = {code for code, operator in OPERATORS.items() if operator.name in _BIASED}
    biased = [operation for operation in operations if operation.code in codes and len(operation.inputs) > 2]
    numbers = (operation.inputs[2] for operation in biased)
    return list(dict.fromkeys(number for number in numbers if number >= 0))
