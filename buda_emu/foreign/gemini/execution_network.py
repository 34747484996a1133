"""The network that a schedule computes: its operators, its seeded weights and inputs, and its values (GEMINI 4)."""

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
from buda_emu.foreign.gemini.json_values import an_object
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
    """A layer as a function. `run(operands, padding, weights)`: weights are [K, R*S, C] int8, scale, bias, of
    the output channels that are wanted; None for layers that have none."""

    layer: Layer
    run: "Callable[[Sequence[Array], Padding, LaidWeights | None], Array]"
    dtype: Any


@dataclass(frozen=True, slots=True)
class LaidWeights:
    """Weights as they lie in memory: values [K, R*S, C], then a scale and a bias for each K."""

    values: NDArray[np.int8]
    scale: Floats
    bias: Floats


def operator(layer: Layer) -> Operator:
    """Raises UnsupportedError for what is not emulated, by name, and ScheduleError for a layer that lacks something."""
    make = _MAKERS.get(layer.operation)
    if make is None:
        raise _unsupported(layer, f"operation {layer.operation!r}")
    for dtype in (*layer.input_dtype[: _operands(layer)], layer.output_dtype):
        if dtype not in DTYPES:
            raise _unsupported(layer, f"data type {dtype!r}")
    compute = make(layer)

    def run(operands: Sequence[Array], padding: Padding, weights: LaidWeights | None) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):  # of scales that no network has
            return compute(operands, padding, weights)

    return Operator(layer, run, DTYPES[layer.output_dtype])


def _operands(layer: Layer) -> int:
    return 2 if layer.operation == "element_wise_add" else 1


def _unsupported(layer: Layer, what: str) -> UnsupportedError:
    return UnsupportedError(f"layer {layer.name!r}: {what} is not emulated")


def _group(layer: Layer, content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = an_object(content.get(name))
    if found is None:
        raise ScheduleError(f"layer {layer.name!r}: there is no {name!r}")
    for key, words in _WORDS.items():
        if key in found and found[key] not in words:
            raise _unsupported(layer, f"{key} {found[key]!r}")
    return found


def _modules(layer: Layer) -> Mapping[str, Any]:
    modules = _group(layer, layer.content, "module_list")
    unknown = sorted(set(modules) - _GROUPS[layer.operation])
    if unknown:
        raise _unsupported(layer, f"module {unknown[0]!r} of {layer.operation}")
    for name in modules:
        _group(layer, modules, name)
    return modules


def _number(layer: Layer, group: Mapping[str, Any], key: str) -> float:
    value = group.get(key)
    if type(value) not in (int, float) or not isfinite(value) or abs(value) > 1e30:  # type: ignore[arg-type]
        raise ScheduleError(f"layer {layer.name!r}: {key!r} is a number, not {value!r}")
    return value  # type: ignore[return-value]


def _affine(layer: Layer, group: Mapping[str, Any], scale: str, offset: str) -> Callable[[Array], Floats]:
    """v * scale + offset, rounded twice."""
    by = np.float32(_number(layer, group, scale))
    plus = np.float32(_number(layer, group, offset))

    def apply(values: Array) -> Floats:
        return values.astype(np.float32) * by + plus

    return apply


def _pre(layer: Layer, modules: Mapping[str, Any], operand: str = "a") -> Callable[[Array], Floats]:
    return _affine(layer, _group(layer, modules, "pre_cal"), f"requan_scale_{operand}", f"requan_zp_{operand}")


def _post(layer: Layer, modules: Mapping[str, Any]) -> Callable[[Array], Array]:
    step = _affine(layer, _group(layer, modules, "post_cal"), "mul_k", "sum_b")
    return lambda values: _output(layer, step(values))


def _output(layer: Layer, values: Floats) -> Array:
    """To the layer's type: int8 by rounding half to even and clamping, float16 by converting."""
    if layer.output_dtype == "int8":
        return np.clip(np.rint(values), -128, 127).astype(np.int8)
    return values.astype(np.float16)


def _quantize(layer: Layer) -> Callable[..., Array]:
    modules = _modules(layer)
    pre = _pre(layer, modules)
    post = _post(layer, modules)

    def run(operands: Sequence[Array], padding: Padding, weights: LaidWeights | None) -> Array:  # noqa: ARG001
        return post(pre(operands[0]))

    return run


def _add(layer: Layer) -> Callable[..., Array]:
    modules = _modules(layer)
    pre_a = _pre(layer, modules)
    pre_b = _pre(layer, modules, "b")
    post = _post(layer, modules)
    relu = "relu_group" in modules

    def run(operands: Sequence[Array], padding: Padding, weights: LaidWeights | None) -> Array:  # noqa: ARG001
        total = pre_a(operands[0]) + pre_b(operands[1])
        return post(np.maximum(np.float32(0), total) if relu else total)

    return run


def _windows(layer: Layer, values: Array) -> list[Array]:
    """The elements of all windows, one array [N, C, rows, columns] for each place in the window, row by row."""
    (height, width) = layer.window
    (down, right) = layer.stride
    rows = (values.shape[2] - height) // down + 1
    columns = (values.shape[3] - width) // right + 1
    return (
        [
            values[:, :, i : i + (rows - 1) * down + 1 : down, j : j + (columns - 1) * right + 1 : right]
            for i in range(height)
            for j in range(width)
        ]
        if rows > 0 and columns > 0
        else []
    )


def _around(values: Array, padding: Padding, fill: float) -> Array:
    top, bottom, left, right = padding
    if not any(padding):
        return values
    return np.pad(values, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=fill)


def _max_pool(layer: Layer) -> Callable[..., Array]:
    modules = _modules(layer)
    pre = _pre(layer, modules)
    post = _post(layer, modules)

    def run(operands: Sequence[Array], padding: Padding, weights: LaidWeights | None) -> Array:  # noqa: ARG001
        windows = _windows(layer, _around(pre(operands[0]), padding, -np.inf))
        return post(np.maximum.reduce(windows)) if windows else _nothing(layer)

    return run


def _avg_pool(layer: Layer) -> Callable[..., Array]:
    modules = _modules(layer)
    pre = _pre(layer, modules)
    post = _post(layer, modules)
    share = np.float32(_number(layer, _group(layer, modules, "fp32_mul_group"), "mul_group_k_scalar"))

    def run(operands: Sequence[Array], padding: Padding, weights: LaidWeights | None) -> Array:  # noqa: ARG001
        windows = _windows(layer, _around(pre(operands[0]) * share, padding, 0))
        if not windows:
            return _nothing(layer)
        total = windows[0].copy()
        for part in windows[1:]:
            total += part
        return post(total)

    return run


def _nothing(layer: Layer) -> Array:
    """Of a region smaller than the window: no element, which is a tile of the wrong shape."""
    return np.zeros((0, 0, 0, 0), DTYPES[layer.output_dtype])


def _convolution(layer: Layer) -> Callable[..., Array]:
    quant = _group(layer, layer.content, "quant_info")
    zero = _number(layer, quant, "input_zero_point1")
    scale = float(_number(layer, quant, "input_scale1"))
    if layer.input_dtype[:2] != ("int8", "int8"):
        raise _unsupported(layer, f"{layer.operation} of {' and '.join(layer.input_dtype[:2])}")
    activation = layer.content.get("activation_type")
    if activation not in (None, "relu"):
        raise _unsupported(layer, f"activation {activation!r}")
    for key in ("groups", "dilation", "dilations"):
        if layer.content.get(key, 1) not in (1, [1, 1]):
            raise _unsupported(layer, f"{key} {layer.content[key]!r}")
    if len(layer.input_shapes) < 2 or layer.input_shapes[1][1] != layer.input_shapes[0][1]:
        raise _unsupported(layer, "a grouped convolution")
    taps = layer.input_shapes[1][1] * layer.window[0] * layer.window[1]
    if zero != int(zero) or (128 + abs(zero)) * 128 * taps > MOST_SUM or abs(zero) > 1 << 14:
        raise _unsupported(layer, f"input_zero_point1 {zero}")
    offset = np.int16(zero)
    scaled = layer.output_dtype == "int8"
    last = _affine(layer, quant, "output_scale", "output_zero_point") if scaled else None

    def run(operands: Sequence[Array], padding: Padding, weights: LaidWeights | None) -> Array:
        if weights is None:
            raise ScheduleError(f"layer {layer.name!r}: there are no weights")
        values = _around(operands[0].astype(np.int16) + offset, padding, 0)
        windows = _windows(layer, values)
        if not windows:
            return _nothing(layer)
        n, c, rows, columns = windows[0].shape
        patches = np.empty((n, rows, columns, len(windows), c), np.int16)
        for tap, part in enumerate(windows):
            patches[:, :, :, tap] = part.transpose(0, 2, 3, 1)
        count = weights.values.shape[0]
        sums = np.empty((n * rows * columns, count), np.int32)
        columns_of = np.ascontiguousarray(weights.values.reshape(count, -1), np.int16)
        integer_product(patches.reshape(len(sums), -1), columns_of, sums)
        factor = (scale * weights.scale.astype(np.float64)).astype(np.float32)
        y = sums.astype(np.float32) * factor + weights.bias
        if activation == "relu":
            y = np.maximum(np.float32(0), y)
        result = _output(layer, last(y) if last is not None else y)
        return np.ascontiguousarray(result.reshape(n, rows, columns, count).transpose(0, 3, 1, 2))

    return run


_MAKERS: Final[Mapping[str, Callable[[Layer], Callable[..., Array]]]] = {
    "quantize": _quantize,
    "element_wise_add": _add,
    "max_pool2d": _max_pool,
    "avg_pool2d": _avg_pool,
    "conv2d": _convolution,
    "dense": _convolution,
}


Weights: TypeAlias = tuple[NDArray[np.int8], NDArray[np.float32], NDArray[np.float32]]
"""Of a layer: [K, C, R, S], scale [K], bias [K]."""

_MOST = 1 << 31  # elements


def hashes(name: str, seed: int, count: int) -> NDArray[np.uint32]:
    """h(name, i) for i below count: MurmurHash3's finaliser over a sequence that begins with the name's CRC."""
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


def units(name: str, seed: int, count: int) -> NDArray[np.float32]:
    """u = (h >> 8) / 2^24, from 0 on and below 1; exact in float32."""
    return (hashes(name, seed, count) >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)


def seeded_weights(layer: str, shape: Coordinates, seed: int) -> Weights:
    """Of a convolution with weights [K, C, R, S]."""
    k, c, r, s = shape
    words = hashes(f"{layer}/weight", seed, k * c * r * s)
    values = ((words >> np.uint32(24)) % np.uint32(255)).astype(np.int16) - 127
    step = np.float32(1 / (64 * sqrt(c * r * s)))
    scale = step * (np.float32(0.75) + np.float32(0.5) * units(f"{layer}/scale", seed, k))
    bias = units(f"{layer}/bias", seed, k) * np.float32(0.5) - np.float32(0.25)
    return values.astype(np.int8).reshape(shape), scale, bias


def seeded_input(name: str, shape: Coordinates, seed: int) -> NDArray[np.float16]:
    """A network input, N C H W."""
    n, c, h, w = shape
    values = units(name, seed, n * c * h * w) * np.float32(4) - np.float32(2)
    return values.astype(np.float16).reshape(shape)


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
