"""Which tensors of a twin are the layers of a package (DARWINN_TWIN 1)."""

from dataclasses import dataclass
from math import prod

import numpy as np

from buda_emu.darwinn.idl import Executable, Layer
from buda_emu.darwinn.rules.layers import VARIABLE_SUFFIX
from buda_emu.darwinn.twin.graph import Graph, Tensor


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
    scale, zero = layer.numerics.dequantization_factor, layer.numerics.zero_point
    if np.float32(scale) != np.float32(tensor.scale[0]):
        return f"the package's scale is {scale}, the model's {tensor.scale[0]}"
    host_zero = zero - (1 << (8 * layer.element.size - 1) if layer.element.signed else 0)
    if host_zero != tensor.zero_point[0]:
        return f"the package's zero point is {host_zero}, the model's {tensor.zero_point[0]}"
    return ""
