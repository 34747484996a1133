"""What layers compute, in IEEE float32 with one rounding each step (facts GEMINI 6). Arrays are N C H W."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from buda_emu.errors import ScheduleError, UnsupportedError
from buda_emu.gemini.frontend import Layer
from buda_emu.gemini.json_values import an_object
from buda_emu.kernels.products.integer_product import MOST_SUM, integer_product

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
    by, plus = np.float32(_number(layer, group, scale)), np.float32(_number(layer, group, offset))

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
    pre, post = _pre(layer, modules), _post(layer, modules)

    def run(operands: Sequence[Array], padding: Padding, weights: LaidWeights | None) -> Array:  # noqa: ARG001
        return post(pre(operands[0]))

    return run


def _add(layer: Layer) -> Callable[..., Array]:
    modules = _modules(layer)
    pre_a, pre_b, post = _pre(layer, modules), _pre(layer, modules, "b"), _post(layer, modules)
    relu = "relu_group" in modules

    def run(operands: Sequence[Array], padding: Padding, weights: LaidWeights | None) -> Array:  # noqa: ARG001
        total = pre_a(operands[0]) + pre_b(operands[1])
        return post(np.maximum(np.float32(0), total) if relu else total)

    return run


def _windows(layer: Layer, values: Array) -> list[Array]:
    """The elements of all windows, one array [N, C, rows, columns] for each place in the window, row by row."""
    (height, width), (down, right) = layer.window, layer.stride
    rows, columns = (values.shape[2] - height) // down + 1, (values.shape[3] - width) // right + 1
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
    pre, post = _pre(layer, modules), _post(layer, modules)

    def run(operands: Sequence[Array], padding: Padding, weights: LaidWeights | None) -> Array:  # noqa: ARG001
        windows = _windows(layer, _around(pre(operands[0]), padding, -np.inf))
        return post(np.maximum.reduce(windows)) if windows else _nothing(layer)

    return run


def _avg_pool(layer: Layer) -> Callable[..., Array]:
    modules = _modules(layer)
    pre, post = _pre(layer, modules), _post(layer, modules)
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
