"""The network itself: operators, weights and inputs, and its values when every layer is computed at once."""

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.checker.text import plural
from buda_emu.device.host_memory import default_memory_limit, size_text
from buda_emu.errors import HostError, ScheduleError, UnsupportedError
from buda_emu.gemini.boxes import Coordinates
from buda_emu.gemini.execution.operators import CONVOLUTIONS, DTYPES, LaidWeights, Operator, operator
from buda_emu.gemini.execution.seeded import Weights, seeded_input, seeded_weights
from buda_emu.gemini.frontend import Layer, Network

_MOST = 1 << 31
_WIDEST: Final = 4  # bytes of an element while it is computed
_HELD_BYTES: Final = 4  # of an element of at most 2 bytes: here, and in the DRAM that a schedule reads
_BYTES_OF_VIEW: Final = 200  # of numpy, one for each place in a window


class Values:
    """Everything about a network that does not depend on a schedule. `outputs`: by layer, of the un-tiled run."""

    def __init__(
        self, network: Network, wanted: "set[str]", seed: int, weights: "Mapping[str, Weights] | None"
    ) -> None:
        self.network = network
        self.operators: dict[str, Operator] = {}
        self.weights: dict[str, Weights] = {}
        self.inputs: dict[str, NDArray[Any]] = {}
        self.outputs: dict[str, NDArray[Any]] = {}
        order = _order(network, wanted)
        _require_memory([network.layers[name] for name in order])
        for name in order:
            self._add(network.layers[name], seed, weights or {})

    def of(self, name: str) -> NDArray[Any]:
        """Output of a layer, or an input of the network."""
        return self.inputs[name] if name in self.inputs else self.outputs[name]

    def laid(self, layer: str) -> LaidWeights | None:
        """All weights of a layer as an operator takes them."""
        if layer not in self.weights:
            return None
        values, scale, bias = self.weights[layer]
        k, c, r, s = values.shape
        return LaidWeights(values.reshape(k, c, r * s).transpose(0, 2, 1), scale, bias)

    def _add(self, layer: Layer, seed: int, weights: Mapping[str, Weights]) -> None:
        self.operators[layer.name] = operator(layer)
        names = self.network.operands(layer)
        if len(names) > min(len(layer.input_shapes), len(layer.input_dtype)):
            said = f"reads {plural(len(names), 'operand')}, and has fewer shapes or types of inputs"
            raise ScheduleError(f"layer {layer.name!r} {said}")
        for name, shape, dtype in zip(names, layer.input_shapes, layer.input_dtype, strict=False):
            if name not in self.network.layers and name not in self.inputs:
                _small(layer, shape)
                if dtype != "float16":
                    raise UnsupportedError(f"layer {layer.name!r}: a network input of {dtype!r} is not emulated")
                self.inputs[name] = seeded_input(name, shape, seed)
            there = self.of(name)
            if there.shape != shape or there.dtype != DTYPES[dtype]:
                found = f"{list(there.shape)} {there.dtype}"
                raise ScheduleError(f"layer {layer.name!r} reads {list(shape)} {dtype} of {name!r}, which is {found}")
        if len(names) < (2 if layer.operation == "element_wise_add" else 1):
            raise ScheduleError(f"layer {layer.name!r}: {layer.operation} of {plural(len(names), 'operand')}")
        _small(layer, layer.output_shape)
        if layer.operation in CONVOLUTIONS:
            self.weights[layer.name] = self._weights(layer, seed, weights)
        values = self.operators[layer.name].run(
            [self.of(name) for name in names], layer.needs(layer.box)[1], self.laid(layer.name)
        )
        if values.shape != layer.output_shape:
            said = f"computes {list(values.shape)}, output_shape is {list(layer.output_shape)}"
            raise ScheduleError(f"layer {layer.name!r} {said}")
        self.outputs[layer.name] = values

    def _weights(self, layer: Layer, seed: int, given: Mapping[str, Weights]) -> Weights:
        shape = layer.input_shapes[1]
        _small(layer, shape)
        if shape[2:] != layer.window or shape[0] != layer.output_shape[1]:
            raise ScheduleError(f"layer {layer.name!r}: weights {list(shape)} do not fit its kernel and output_shape")
        if layer.name not in given:
            return seeded_weights(layer.name, shape, seed)
        values, scale, bias = given[layer.name]
        if values.shape != shape or values.dtype != np.int8 or scale.shape != (shape[0],) or bias.shape != (shape[0],):
            raise HostError(f"weights of {layer.name!r} are int8 {list(shape)}, scale and bias [{shape[0]}]")
        return values, scale.astype(np.float32), bias.astype(np.float32)


def _require_memory(layers: Sequence[Layer]) -> None:
    """Raises UnsupportedError where the network at once needs more memory than there is: shapes are what a file says,
    and nothing is computed before."""
    held = sum(_HELD_BYTES * (prod(one.output_shape) + sum(map(prod, one.input_shapes[1:]))) for one in layers)
    largest = max(layers, key=_bytes_while_computed, default=None)
    needed = held + (_bytes_while_computed(largest) if largest is not None else 0)
    limit = default_memory_limit()
    if largest is not None and needed > limit:
        raise UnsupportedError(
            f"the network needs {size_text(needed)} when it is computed at once, {size_text(limit)} can be had: layer "
            f"{largest.name!r} has the most, {list(largest.input_shapes[0])} to {list(largest.output_shape)}"
        )


def _bytes_while_computed(layer: Layer) -> int:
    """Of the padded operand, of what is computed step by step, and of the windows: of a convolution their elements."""
    n, c, height, width = layer.input_shapes[0] if layer.input_shapes else (0, 0, 0, 0)
    top, bottom, left, right = layer.padding
    padded = n * c * (height + top + bottom) * (width + left + right)
    window = prod(layer.window)
    elements = n * c * prod(layer.output_shape[2:]) * window if layer.operation in CONVOLUTIONS else 0
    return 2 * _WIDEST * (padded + prod(layer.output_shape)) + 2 * elements + _BYTES_OF_VIEW * window


def _small(layer: Layer, shape: Coordinates) -> None:
    if np.prod(np.array(shape, np.float64)) > _MOST:
        raise UnsupportedError(f"layer {layer.name!r}: {list(shape)} has more than {_MOST} elements")


def _order(network: Network, wanted: "set[str]") -> list[str]:
    """Layers that a schedule computes and all before them, each after those that it reads."""
    graph: dict[str, list[str]] = {}
    left = sorted(wanted)
    while left:
        name = left.pop()
        if name in graph:
            continue
        layer = network.layers.get(name)
        if layer is None:
            raise ScheduleError(f"the network has no layer {name!r}")
        if layer.on_host:
            raise UnsupportedError(f"layer {name!r}: {layer.operation!r} of the host is not emulated")
        graph[name] = [item for item in network.operands(layer) if item in network.layers]
        left += graph[name]
    try:
        return list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        raise ScheduleError(f"layers read each other in a circle: {' <- '.join(error.args[1])}") from None
