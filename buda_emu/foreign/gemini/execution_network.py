"""Compute the network that a schedule implements: its operators, its seeded weights and inputs, and the values of all
its layers (facts GEMINI 4)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from math import isfinite, prod, sqrt
from typing import Any, Final, TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.kernels.products.matmul import MOST_SUM, integer_product
from buda_emu.emulator.memory.host import default_memory_limit, size_text
from buda_emu.foreign.gemini.boxes import Coordinates
from buda_emu.foreign.gemini.frontend import Layer, Network
from buda_emu.foreign.gemini.json_values import as_object
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError, ScheduleError, UnsupportedError

Array: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[np.float32]
Padding: TypeAlias = tuple[int, int, int, int]
DTYPES: Final[Mapping[str, Any]] = {"int8": np.int8, "float16": np.float16}
_GROUPS: Final[Mapping[str, frozenset[str]]] = {
    "quantize": frozenset({"pre_cal", "post_cal"}),
    "element_wise_add": frozenset({"pre_cal", "post_cal", "fp32_sum_sub_group0", "relu_group"}),
    "max_pool2d": frozenset({"pre_cal", "post_cal", "compare_group"}),
    "avg_pool2d": frozenset({"pre_cal", "post_cal", "fp32_mul_group", "acc_tree_group"}),
}
"""Groups of `module_list` that are understood, by operation."""
_WORDS: Final[Mapping[str, tuple[Any, ...]]] = {
    "sumsub_mode": ("add",),
    "sumsub_group_mode": ("add",),
    "carry_sel": ("round",),
    "round_type": ("round",),
    "cmp_mode": ("cumulative",),
    "cmp_max_en": ("max",),
    "cmp_dim": ("kernel",),
    "mul_group_k_mux": ("scalar",),
    "acc_tree_mode": ("acc",),
    "acc_dim": ("kernel",),
}
"""Words that are understood, wherever they stand."""
CONVOLUTIONS: Final = ("conv2d", "dense")


@dataclass(frozen=True, slots=True)
class Operator:
    """A layer as a function `run(operands, padding, weights)`. The weights are those of the output channels to compute;
    None for layers without weights. `dtype` is the type of the result."""

    layer: Layer
    run: "Callable[[Sequence[Array], Padding, LaidWeights | None], Array]"
    dtype: Any


@dataclass(frozen=True, slots=True)
class LaidWeights:
    """Weights as they lie in memory: int8 values [K, R*S, C], and a float32 scale and bias for each K."""

    values: NDArray[np.int8]
    scale: Floats
    bias: Floats


def make_operator(layer: Layer) -> Operator:
    """Return the operator of a layer. Raises UnsupportedError, by name, for what is not emulated, and ScheduleError for
    a layer that lacks a field."""
    make = _MAKERS.get(layer.operation)
    if make is None:
        raise _unsupported_error(layer, f"operation {layer.operation!r}")
    for dtype in (*layer.input_dtype[: _count_operands(layer)], layer.output_dtype):
        if dtype not in DTYPES:
            raise _unsupported_error(layer, f"data type {dtype!r}")
    compute = make(layer)

    def run(operands: Sequence[Array], padding: Padding, weights: LaidWeights | None) -> Array:
        """Compute the layer, or the part of it that `operands`, `padding` and the channels of `weights` make up: for
        the network's own values the whole layer, for a workload each of its tiles. Scales may overflow without a
        warning."""
        with np.errstate(over="ignore", invalid="ignore"):  # of scales that no network has
            return compute(operands, padding, weights)

    return Operator(layer, run, DTYPES[layer.output_dtype])


def _count_operands(layer: Layer) -> int:
    """Return the number of operands that the operation of a layer takes."""
    if layer.operation == "element_wise_add":
        return 2
    return 1


def _unsupported_error(layer: Layer, feature: str) -> UnsupportedError:
    """Return the error for a feature of a layer that is not emulated."""
    return UnsupportedError(f"layer {layer.name!r}: {feature} is not emulated")


def _read_group(layer: Layer, content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the group of settings under a name in `content`. Raises ScheduleError where there is none,
    UnsupportedError for a setting that is not emulated."""
    group = as_object(content.get(name))
    if group is None:
        raise ScheduleError(f"layer {layer.name!r}: there is no {name!r}")
    for key, words in _WORDS.items():
        if key in group and group[key] not in words:
            raise _unsupported_error(layer, f"{key} {group[key]!r}")
    return group


def _read_modules(layer: Layer) -> Mapping[str, Any]:
    """Return the groups of a layer's `module_list`, the units that it passes. Raises UnsupportedError for one that
    is not emulated."""
    modules = _read_group(layer, layer.content, "module_list")
    unknown = sorted(set(modules) - _GROUPS[layer.operation])
    if unknown:
        raise _unsupported_error(layer, f"module {unknown[0]!r} of {layer.operation}")
    for name in modules:
        _read_group(layer, modules, name)
    return modules


def _read_number(layer: Layer, group: Mapping[str, Any], key: str) -> float:
    """Return the number under a key of a group. Raises ScheduleError for anything else, an infinite or absurd one
    included."""
    value = group.get(key)
    if type(value) not in (int, float) or not isfinite(value) or abs(value) > 1e30:  # type: ignore[arg-type]
        raise ScheduleError(f"layer {layer.name!r}: {key!r} is a number, not {value!r}")
    return value  # type: ignore[return-value]


def _make_affine(layer: Layer, group: Mapping[str, Any], scale: str, offset: str) -> Callable[[Array], Floats]:
    """Return the function v * scale + offset in float32, rounded after each step. `scale` and `offset` are keys of
    the group."""
    by = np.float32(_read_number(layer, group, scale))
    plus = np.float32(_read_number(layer, group, offset))

    def apply(values: Array) -> Floats:
        """Return values * by + plus as float32."""
        return values.astype(np.float32) * by + plus

    return apply


def _make_input_step(layer: Layer, modules: Mapping[str, Any], operand: str = "a") -> Callable[[Array], Floats]:
    """Return the function that brings operand "a" or "b" to float32 by the scale and zero point in `pre_cal`."""
    return _make_affine(
        layer, _read_group(layer, modules, "pre_cal"), f"requan_scale_{operand}", f"requan_zp_{operand}"
    )


def _make_output_step(layer: Layer, modules: Mapping[str, Any]) -> Callable[[Array], Array]:
    """Return the function that scales float32 results by `post_cal` and converts them to the layer's output type."""
    step = _make_affine(layer, _read_group(layer, modules, "post_cal"), "mul_k", "sum_b")
    return lambda values: _convert_output(layer, step(values))


def _convert_output(layer: Layer, values: Floats) -> Array:
    """Return values in the layer's output type: int8 by rounding half to even and clamping, float16 by casting."""
    if layer.output_dtype == "int8":
        return np.clip(np.rint(values), -128, 127).astype(np.int8)
    return values.astype(np.float16)


def _make_quantize(layer: Layer) -> Callable[..., Array]:
    """Return the function of a `quantize` layer: its operand at another scale, in the output type."""
    modules = _read_modules(layer)
    pre = _make_input_step(layer, modules)
    post = _make_output_step(layer, modules)

    def run(operands: Sequence[Array], padding: Padding, weights: LaidWeights | None) -> Array:  # noqa: ARG001
        """Rescale and convert the operand."""
        return post(pre(operands[0]))

    return run


def _make_add(layer: Layer) -> Callable[..., Array]:
    """Return the function of an `element_wise_add` layer: the sum of both operands in float32, with ReLU where the
    layer has its module."""
    modules = _read_modules(layer)
    pre_a = _make_input_step(layer, modules)
    pre_b = _make_input_step(layer, modules, "b")
    post = _make_output_step(layer, modules)
    relu = "relu_group" in modules

    def run(operands: Sequence[Array], padding: Padding, weights: LaidWeights | None) -> Array:  # noqa: ARG001
        """Add the operands, apply ReLU if there is one, and convert the sum."""
        total = pre_a(operands[0]) + pre_b(operands[1])
        return post(np.maximum(np.float32(0), total) if relu else total)

    return run


def _window_elements(layer: Layer, values: Array) -> list[Array]:
    """Return the elements of all windows, as one array [N, C, rows, columns] for each place in the window, row by row.
    The list is empty where the values are smaller than the window."""
    (height, width) = layer.window
    (down, right) = layer.stride
    rows = (values.shape[2] - height) // down + 1
    columns = (values.shape[3] - width) // right + 1
    if rows > 0 and columns > 0:
        return [
            values[:, :, i : i + (rows - 1) * down + 1 : down, j : j + (columns - 1) * right + 1 : right]
            for i in range(height)
            for j in range(width)
        ]
    return []


def _pad(values: Array, padding: Padding, fill: float) -> Array:
    """Return values [N, C, H, W] with `fill` around rows and columns; `padding` is top, bottom, left, right."""
    top, bottom, left, right = padding
    if not any(padding):
        return values
    return np.pad(values, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=fill)


def _make_max_pool(layer: Layer) -> Callable[..., Array]:
    """Return the function of a `max_pool2d` layer, computed in float32."""
    modules = _read_modules(layer)
    pre = _make_input_step(layer, modules)
    post = _make_output_step(layer, modules)

    def run(operands: Sequence[Array], padding: Padding, weights: LaidWeights | None) -> Array:  # noqa: ARG001
        """Return the greatest element of each window, converted."""
        windows = _window_elements(layer, _pad(pre(operands[0]), padding, -np.inf))
        if windows:
            return post(np.maximum.reduce(windows))
        return _empty_result(layer)

    return run


def _make_avg_pool(layer: Layer) -> Callable[..., Array]:
    """Return the function of an `avg_pool2d` layer: the sum over each window of elements times the layer's own
    factor, in float32."""
    modules = _read_modules(layer)
    pre = _make_input_step(layer, modules)
    post = _make_output_step(layer, modules)
    share = np.float32(_read_number(layer, _read_group(layer, modules, "fp32_mul_group"), "mul_group_k_scalar"))

    def run(operands: Sequence[Array], padding: Padding, weights: LaidWeights | None) -> Array:  # noqa: ARG001
        """Return the sum over each window of elements times the factor, added row by row and converted."""
        windows = _window_elements(layer, _pad(pre(operands[0]) * share, padding, 0))
        if not windows:
            return _empty_result(layer)
        total = windows[0].copy()
        for part in windows[1:]:
            total += part
        return post(total)

    return run


def _empty_result(layer: Layer) -> Array:
    """Return an array without elements, the result for a region smaller than the window; its shape then fails the
    comparison with the tile's."""
    return np.zeros((0, 0, 0, 0), DTYPES[layer.output_dtype])


def _make_convolution(layer: Layer) -> Callable[..., Array]:
    """Return the function of a `conv2d` or `dense` layer: exact sums of int8 products, then scale, bias, ReLU and
    output scale in float32. Raises UnsupportedError, by name, for what is not emulated."""
    quant = _read_group(layer, layer.content, "quant_info")
    zero = _read_number(layer, quant, "input_zero_point1")
    scale = float(_read_number(layer, quant, "input_scale1"))
    _require_plain_convolution(layer, zero)
    offset = np.int16(zero)
    activation = layer.content.get("activation_type")
    requantise: Callable[[Array], Floats] | None = None
    if layer.output_dtype == "int8":
        requantise = _make_affine(layer, quant, "output_scale", "output_zero_point")

    def run(operands: Sequence[Array], padding: Padding, weights: LaidWeights | None) -> Array:
        """Compute the output channels that `weights` has. Raises ScheduleError without weights."""
        if weights is None:
            raise ScheduleError(f"layer {layer.name!r}: there are no weights")
        windows = _window_elements(layer, _pad(operands[0].astype(np.int16) + offset, padding, 0))
        if not windows:
            return _empty_result(layer)
        n, _c, rows, columns = windows[0].shape
        sums = _sum_products(windows, weights)
        factor = (scale * weights.scale.astype(np.float64)).astype(np.float32)
        y = sums.astype(np.float32) * factor + weights.bias
        if activation == "relu":
            y = np.maximum(np.float32(0), y)
        if requantise is not None:
            y = requantise(y)
        result = _convert_output(layer, y)
        return np.ascontiguousarray(result.reshape(n, rows, columns, -1).transpose(0, 3, 1, 2))

    return run


def _require_plain_convolution(layer: Layer, zero: float) -> None:
    """Raise UnsupportedError, by name, for a convolution that is not emulated. `zero` is its input_zero_point1, which
    must keep sums within int32 and values within int16."""
    if layer.input_dtype[:2] != ("int8", "int8"):
        raise _unsupported_error(layer, f"{layer.operation} of {' and '.join(layer.input_dtype[:2])}")
    activation = layer.content.get("activation_type")
    if activation not in (None, "relu"):
        raise _unsupported_error(layer, f"activation {activation!r}")
    for key in ("groups", "dilation", "dilations"):
        if layer.content.get(key, 1) not in (1, [1, 1]):
            raise _unsupported_error(layer, f"{key} {layer.content[key]!r}")
    if len(layer.input_shapes) < 2 or layer.input_shapes[1][1] != layer.input_shapes[0][1]:
        raise _unsupported_error(layer, "a grouped convolution")
    taps = layer.input_shapes[1][1] * layer.window[0] * layer.window[1]
    if zero != int(zero) or (128 + abs(zero)) * 128 * taps > MOST_SUM or abs(zero) > 1 << 14:
        raise _unsupported_error(layer, f"input_zero_point1 {zero}")


def _sum_products(windows: Sequence[Array], weights: LaidWeights) -> NDArray[np.int32]:
    """Return the exact sums of products, [N * rows * columns, K]."""
    n, c, rows, columns = windows[0].shape
    patches = np.empty((n, rows, columns, len(windows), c), np.int16)
    for tap, part in enumerate(windows):
        patches[:, :, :, tap] = part.transpose(0, 2, 3, 1)
    count = weights.values.shape[0]
    sums = np.empty((n * rows * columns, count), np.int32)
    flat_weights = np.ascontiguousarray(weights.values.reshape(count, -1), np.int16)
    integer_product(patches.reshape(len(sums), -1), flat_weights, sums)
    return sums


_MAKERS: Final[Mapping[str, Callable[[Layer], Callable[..., Array]]]] = {
    "quantize": _make_quantize,
    "element_wise_add": _make_add,
    "max_pool2d": _make_max_pool,
    "avg_pool2d": _make_avg_pool,
    "conv2d": _make_convolution,
    "dense": _make_convolution,
}


Weights: TypeAlias = tuple[NDArray[np.int8], NDArray[np.float32], NDArray[np.float32]]
"""The weights of a layer: values [K, C, R, S], scale [K], bias [K]."""

_MOST = 1 << 31  # elements: more take at least 2 GiB, and are mistakes


def hash_values(name: str, seed: int, count: int) -> NDArray[np.uint32]:
    """Return h(name, i) for i below `count`: MurmurHash3's finaliser over a sequence that begins with the name's CRC
    (facts GEMINI 6). Raises UnsupportedError for more than 2^31 values."""
    if count > _MOST:
        raise UnsupportedError(f"{name}: {count} values are more than {_MOST}")
    start = np.uint32((crc32(name.encode()) ^ seed) & 0xFFFFFFFF)
    h = start + np.arange(count, dtype=np.uint32) * np.uint32(0x9E3779B9)
    h ^= h >> np.uint32(16)
    h *= np.uint32(0x85EBCA6B)
    h ^= h >> np.uint32(13)
    h *= np.uint32(0xC2B2AE35)
    h ^= h >> np.uint32(16)
    return h


def unit_values(name: str, seed: int, count: int) -> NDArray[np.float32]:
    """Return u = (h >> 8) / 2^24 for `count` hashes: at least 0, below 1, exact in float32."""
    return (hash_values(name, seed, count) >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)


def seeded_weights(layer: str, shape: Coordinates, seed: int) -> Weights:
    """Return int8 weights [K, C, R, S], scale [K] and bias [K] of a convolution, made from the seed."""
    k, c, r, s = shape
    words = hash_values(f"{layer}/weight", seed, k * c * r * s)
    values = ((words >> np.uint32(24)) % np.uint32(255)).astype(np.int16) - 127
    step = np.float32(1 / (64 * sqrt(c * r * s)))
    scale = step * (np.float32(0.75) + np.float32(0.5) * unit_values(f"{layer}/scale", seed, k))
    bias = unit_values(f"{layer}/bias", seed, k) * np.float32(0.5) - np.float32(0.25)
    return values.astype(np.int8).reshape(shape), scale, bias


def seeded_input(name: str, shape: Coordinates, seed: int) -> NDArray[np.float16]:
    """Return a network input of shape N C H W, made from the seed: float16 values from -2 to 2."""
    n, c, h, w = shape
    values = unit_values(name, seed, n * c * h * w) * np.float32(4) - np.float32(2)
    return values.astype(np.float16).reshape(shape)


_WIDEST: Final = 4  # bytes of an element while it is computed
_HELD_BYTES: Final = 4  # of an element of at most 2 bytes: here, and in the DRAM that a schedule reads
_BYTES_OF_VIEW: Final = 200  # of numpy, one for each place in a window


class Values:
    """Everything about a network that does not depend on a schedule: operators, weights, inputs, and in `outputs` the
    result of each layer computed without tiles."""

    def __init__(
        self, network: Network, scheduled_layers: "set[str]", seed: int, weights: "Mapping[str, Weights] | None"
    ) -> None:
        self.network = network
        self.operators: dict[str, Operator] = {}
        self.weights: dict[str, Weights] = {}
        self.inputs: dict[str, NDArray[Any]] = {}
        self.outputs: dict[str, NDArray[Any]] = {}
        order = _sort_layers(network, scheduled_layers)
        _require_memory([network.layers[name] for name in order])
        for name in order:
            self._add(network.layers[name], seed, weights or {})

    def of(self, name: str) -> NDArray[Any]:
        """Return the output of a layer, or an input of the network."""
        if name in self.inputs:
            return self.inputs[name]
        return self.outputs[name]

    def weights_in_memory(self, layer: str) -> LaidWeights | None:
        """Return all weights of a layer in the layout that operators take, None for a layer without weights."""
        if layer not in self.weights:
            return None
        values, scale, bias = self.weights[layer]
        k, c, r, s = values.shape
        return LaidWeights(values.reshape(k, c, r * s).transpose(0, 2, 1), scale, bias)

    def _add(self, layer: Layer, seed: int, weights: Mapping[str, Weights]) -> None:
        """Compute a layer without tiles, with weights of the caller or from the seed. Raises ScheduleError where
        shapes or types do not fit those of its operands."""
        self.operators[layer.name] = make_operator(layer)
        names = self.network.operands(layer)
        if len(names) > min(len(layer.input_shapes), len(layer.input_dtype)):
            problem = f"reads {plural(len(names), 'operand')}, and has fewer shapes or types of inputs"
            raise ScheduleError(f"layer {layer.name!r} {problem}")
        for name, shape, dtype in zip(names, layer.input_shapes, layer.input_dtype, strict=False):
            if name not in self.network.layers and name not in self.inputs:
                self._add_input(layer, name, shape, dtype, seed)
            self._require_operand(layer, name, shape, dtype)
        if len(names) < _count_operands(layer):
            raise ScheduleError(f"layer {layer.name!r}: {layer.operation} of {plural(len(names), 'operand')}")
        _require_size(layer, layer.output_shape)
        if layer.operation in CONVOLUTIONS:
            self.weights[layer.name] = self._layer_weights(layer, seed, weights)
        values = self.operators[layer.name].run(
            [self.of(name) for name in names], layer.needs(layer.box)[1], self.weights_in_memory(layer.name)
        )
        if values.shape != layer.output_shape:
            problem = f"computes {list(values.shape)}, output_shape is {list(layer.output_shape)}"
            raise ScheduleError(f"layer {layer.name!r} {problem}")
        self.outputs[layer.name] = values

    def _require_operand(self, layer: Layer, name: str, shape: Coordinates, dtype: str) -> None:
        """Raise ScheduleError if an operand has another shape or type than the layer states."""
        source_array = self.of(name)
        if source_array.shape != shape or source_array.dtype != DTYPES[dtype]:
            actual = f"{list(source_array.shape)} {source_array.dtype}"
            raise ScheduleError(f"layer {layer.name!r} reads {list(shape)} {dtype} of {name!r}, which is {actual}")

    def _add_input(self, layer: Layer, name: str, shape: Coordinates, dtype: str, seed: int) -> None:
        """Make a network input that a layer reads from the seed. Raises UnsupportedError for a type other than
        float16."""
        _require_size(layer, shape)
        if dtype != "float16":
            raise UnsupportedError(f"layer {layer.name!r}: a network input of {dtype!r} is not emulated")
        self.inputs[name] = seeded_input(name, shape, seed)

    def _layer_weights(self, layer: Layer, seed: int, caller_weights: Mapping[str, Weights]) -> Weights:
        """Return the weights of a convolution, the caller's or else made from the seed. Raises ScheduleError for
        shapes that do not fit the layer, HostError for weights of the caller that do not."""
        shape = layer.input_shapes[1]
        _require_size(layer, shape)
        if shape[2:] != layer.window or shape[0] != layer.output_shape[1]:
            raise ScheduleError(f"layer {layer.name!r}: weights {list(shape)} do not fit its kernel and output_shape")
        if layer.name not in caller_weights:
            return seeded_weights(layer.name, shape, seed)
        values, scale, bias = caller_weights[layer.name]
        if values.shape != shape or values.dtype != np.int8 or scale.shape != (shape[0],) or bias.shape != (shape[0],):
            raise HostError(f"weights of {layer.name!r} are int8 {list(shape)}, scale and bias [{shape[0]}]")
        return values, scale.astype(np.float32), bias.astype(np.float32)


def _require_memory(layers: Sequence[Layer]) -> None:
    """Raise UnsupportedError where computing the whole network needs more memory than there is. Shapes come from a file
    and may be absurd, so this runs before anything is computed."""
    held = sum(_HELD_BYTES * (prod(layer.output_shape) + sum(map(prod, layer.input_shapes[1:]))) for layer in layers)
    largest = max(layers, key=_peak_bytes, default=None)
    needed = held + (_peak_bytes(largest) if largest is not None else 0)
    limit = default_memory_limit()
    if largest is not None and needed > limit:
        raise UnsupportedError(
            f"the network needs {size_text(needed)} when it is computed at once, {size_text(limit)} can be had: layer "
            f"{largest.name!r} has the most, {list(largest.input_shapes[0])} to {list(largest.output_shape)}"
        )


def _peak_bytes(layer: Layer) -> int:
    """Return the bytes that computing a layer takes: its padded operand, the intermediate values, and for convolutions
    the elements of all windows."""
    shape = (0, 0, 0, 0)
    if layer.input_shapes:
        shape = layer.input_shapes[0]
    n, c, height, width = shape
    top, bottom, left, right = layer.padding
    padded = n * c * (height + top + bottom) * (width + left + right)
    window = prod(layer.window)
    if layer.operation in CONVOLUTIONS:
        elements = n * c * prod(layer.output_shape[2:]) * window
    else:
        elements = 0
    return 2 * _WIDEST * (padded + prod(layer.output_shape)) + 2 * elements + _BYTES_OF_VIEW * window


def _require_size(layer: Layer, shape: Coordinates) -> None:
    """Raise UnsupportedError for an array of a layer with more than 2^31 elements."""
    if np.prod(np.array(shape, np.float64)) > _MOST:
        raise UnsupportedError(f"layer {layer.name!r}: {list(shape)} has more than {_MOST} elements")


def _sort_layers(network: Network, scheduled_layers: "set[str]") -> list[str]:
    """Return the layers that a schedule computes and all layers before them, every layer after those that it reads.
    Raises ScheduleError for an unknown layer or a cycle, UnsupportedError for a layer of the host."""
    graph: dict[str, list[str]] = {}
    left = sorted(scheduled_layers)
    while left:
        name = left.pop()
        if name in graph:
            continue
        layer = network.layers.get(name)
        if layer is None:
            raise ScheduleError(f"the network has no layer {name!r}")
        if layer.on_host:
            raise UnsupportedError(f"layer {name!r}: {layer.operation!r} of the host is not emulated")
        graph[name] = [operand for operand in network.operands(layer) if operand in network.layers]
        left += graph[name]
    try:
        return list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        raise ScheduleError(f"layers read each other in a circle: {' <- '.join(error.args[1])}") from None
