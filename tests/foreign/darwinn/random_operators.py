"""Random models of one operator, for every operator of the twin (DARWINN_TWIN 4)."""

from collections.abc import Callable
from typing import Any

import numpy as np

from buda_emu.foreign.darwinn import tflite
from buda_emu.foreign.darwinn.flatbuffer import Table
from foreign.darwinn.tflite_models import T, model

Random = np.random.Generator
_RANGE = {"uint8": (0, 255), "int8": (-128, 127)}


def _type(r: Random) -> str:
    return str(r.choice(["uint8", "int8"]))


def _scale(r: Random, low: float = -9, high: float = 1) -> float:
    return float(np.float32(2.0 ** r.uniform(low, high)))


def _zero(r: Random, dtype: str) -> int:
    low, high = _RANGE[dtype]
    return int(r.choice([low, high, (low + high + 1) // 2, r.integers(low, high + 1)]))


def _tensor(r: Random, name: str, dtype: str, shape: tuple[int, ...], low: float = -9, high: float = 1) -> T:
    return T(name, dtype, shape, [_scale(r, low, high)], [_zero(r, dtype)])


def _values(r: Random, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    low, high = _RANGE[dtype]
    return r.integers(low, high + 1, shape).astype(dtype)


def _window(r: Random, size: tuple[int, int]) -> tuple[int, int, int, int, int, int, int, tuple[int, int]]:
    """Kernel, stride, dilation, padding, and the output's size."""
    while True:
        kh, kw = r.integers(1, 5, 2)
        stride = r.integers(1, 4, 2)
        dilation = r.integers(1, 4, 2) if r.random() < 0.3 else np.array([1, 1])
        padding = int(r.integers(0, 2))
        out = []
        for n, k, s, d in zip(size, (kh, kw), stride, dilation, strict=True):
            out.append(-(-n // s) if padding == 0 else (n - (k - 1) * d - 1 + s) // s)
        if min(out) > 0:
            return (*map(int, (kh, kw, *stride, *dilation)), padding, (int(out[0]), int(out[1])))


def _convolution(r: Random, depthwise: bool) -> bytes:
    dtype = _type(r)
    n, h, w, c = (int(v) for v in (r.integers(1, 3), r.integers(1, 9), r.integers(1, 9), r.integers(1, 9)))
    kh, kw, sh, sw, dh, dw, padding, out = _window(r, (h, w))
    multiplier = int(r.integers(1, 4)) if depthwise else 1
    o = c * multiplier if depthwise else int(r.integers(1, 9))
    shape = (1, kh, kw, o) if depthwise else (o, kh, kw, c)
    x = _tensor(r, "x", dtype, (n, h, w, c))
    channels = o if dtype == "int8" and r.random() < 0.8 else 1
    scale = [_scale(r, -9, 0) for _ in range(channels)]
    zero = [0] * channels if dtype == "int8" else [_zero(r, dtype)]
    weights = T("w", dtype, shape, scale, zero, 3 if depthwise else 0, _values(r, dtype, shape))
    if dtype == "int8":
        weights.data = np.maximum(weights.data, -127)
    size = np.sqrt(kh * kw * (1 if depthwise else c)) * 100 * 100 * x.scale[0] * max(scale)
    data = r.integers(-20000, 20001, o).astype(np.int32)
    bias = T("b", "int32", (o,), [float(np.float32(x.scale[0] * s)) for s in scale], [0] * channels, 0, data)
    y = T("y", dtype, (n, *out, o), [float(np.float32(size / 128 * 2.0 ** r.uniform(-2, 2)))], [_zero(r, dtype)])
    act = int(r.choice([0, 1, 3, 2]))
    if depthwise:
        options = tflite.DepthwiseOptions(padding, sw, sh, multiplier, act, dw, dh)
        return model("DEPTHWISE_CONV_2D", [x, weights, bias], [y], options, 3)
    return model("CONV_2D", [x, weights, bias], [y], tflite.ConvOptions(padding, sw, sh, act, dw, dh), 3)


def conv(r: Random) -> bytes:
    return _convolution(r, False)


def depthwise(r: Random) -> bytes:
    return _convolution(r, True)


def average_pool(r: Random) -> bytes:
    dtype = _type(r)
    n, h, w, c = (int(v) for v in (r.integers(1, 3), r.integers(1, 9), r.integers(1, 9), r.integers(1, 5)))
    while True:
        kh, kw, sh, sw, dh, dw, padding, out = _window(r, (h, w))
        if dh == dw == 1:
            break
    x = _tensor(r, "x", dtype, (n, h, w, c))
    y = T("y", dtype, (n, *out, c), x.scale, x.zero)
    return model("AVERAGE_POOL_2D", [x], [y], tflite.PoolOptions(padding, sw, sh, kw, kh, int(r.integers(0, 4))), 2)


def fully_connected(r: Random) -> bytes:
    """One scale, or, for int8, one for each channel; kernels ignore the zero points of channels."""
    dtype = _type(r)
    n, i, o = (int(v) for v in (r.integers(1, 4), r.integers(1, 40), r.integers(1, 12)))
    keep_dimensions = bool(r.random() < 0.3)
    leading = (n, int(r.integers(1, 4))) if keep_dimensions else (n,)
    x = _tensor(r, "x", dtype, (*leading, i))
    channels = o if dtype == "int8" and r.random() < 0.5 else 1
    scale = [_scale(r, -9, 0) for _ in range(channels)]
    if dtype == "int8":
        zero = [int(v) for v in r.integers(-128, 128, channels)] if r.random() < 0.3 else [0] * channels
    else:
        zero = [_zero(r, dtype)]
    w = T("w", dtype, (o, i), scale, zero, 0, _values(r, dtype, (o, i)))
    bias = None
    if r.random() < 0.8:
        data = r.integers(-20000, 20001, o).astype(np.int32)
        bias = T("b", "int32", (o,), [float(np.float32(x.scale[0] * s)) for s in scale], [0] * channels, 0, data)
    size = np.sqrt(i) * 100 * 100 * x.scale[0] * max(scale)
    y = T("y", dtype, (*leading, o), [float(np.float32(size / 128 * 2.0 ** r.uniform(-2, 2)))], [_zero(r, dtype)])
    options = tflite.FullyConnectedOptions(act=int(r.integers(0, 4)), keep_num_dims=keep_dimensions)
    return model("FULLY_CONNECTED", [x, w, bias], [y], options, 4)


def _broadcast(r: Random, most: int) -> tuple[list[int], list[int], tuple[int, ...]]:
    """Two shapes of up to `most` dimensions that broadcast, often to more than either, and the shape of the result."""
    full = [int(v) for v in r.integers(1, 5, int(r.integers(1, most + 1)))]
    if r.random() < 0.3:
        return full, full, tuple(full)
    first = [1 if r.random() < 0.3 else n for n in full]
    second = [1 if r.random() < 0.3 else n for n in full]
    shorter = second[int(r.integers(0, len(second) + 1)) :] if r.random() < 0.3 else second
    pair = (first, shorter) if r.random() < 0.5 else (shorter, first)
    return *pair, tuple(np.broadcast_shapes(first, shorter))


_Scale = Callable[[float, float], float]


def _binary(
    name: str, size: _Scale, spread: tuple[float, float], options: Callable[[Random], Table | None], **limits: Any
) -> Callable[[Random], bytes]:
    """Makes models of a binary operator. `size`: the output's scale from those of both operands, which is then varied
    by powers of two in `spread`; `limits`: `types`, the operator's `version`, whether `second_only` is broadcast."""

    def make(r: Random) -> bytes:
        dtype = str(r.choice(limits.get("types", ["uint8", "int8"])))
        first, second, shape = _broadcast(r, 6)
        first = list(shape) if limits.get("second_only") else first
        a, b = _tensor(r, "a", dtype, tuple(first), -6, 0), _tensor(r, "b", dtype, tuple(second), -6, 0)
        if r.random() < 0.3:
            b.data = _values(r, dtype, tuple(second))
        scale = size(a.scale[0], b.scale[0]) * 2.0 ** r.uniform(*spread)
        y = T("y", dtype, shape, [float(np.float32(scale))], [_zero(r, dtype)])
        return model(name, [a, b], [y], options(r), limits.get("version", 2))

    return make


def _product(a: float, b: float) -> float:
    return 100 * a * b


def _larger_square(a: float, b: float) -> float:
    return 100 * max(a, b) ** 2


add = _binary("ADD", max, (-1.5, 3), lambda r: tflite.AddOptions(int(r.integers(0, 4))))
subtract = _binary("SUB", max, (-1.5, 3), lambda r: tflite.SubOptions(int(r.integers(0, 4))))
multiply = _binary("MUL", _product, (-3, 3), lambda r: tflite.MulOptions(int(r.integers(0, 4))))
squared_difference = _binary(
    "SQUARED_DIFFERENCE", _larger_square, (-1, 5), lambda _: tflite.SquaredDifferenceOptions(), types=["int8"]
)
maximum = _binary("MAXIMUM", max, (0, 0), lambda _: tflite.MaximumMinimumOptions())
minimum = _binary("MINIMUM", max, (0, 0), lambda _: tflite.MaximumMinimumOptions())
prelu = _binary("PRELU", max, (-2, 2), lambda _: None, second_only=True, version=1)


def _unary(name: str, options: Callable[[Random], Table | None]) -> Callable[[Random], bytes]:
    """Makes models of an activation that is an operator of its own."""

    def make(r: Random) -> bytes:
        dtype = _type(r)
        shape = tuple(int(v) for v in r.integers(1, 5, int(r.integers(1, 5))))
        x = _tensor(r, "x", dtype, shape, -6, 0)
        y = T("y", dtype, shape, [float(np.float32(x.scale[0] * 2.0 ** r.uniform(-2, 2)))], [_zero(r, dtype)])
        return model(name, [x], [y], options(r), 2)

    return make


relu = _unary("RELU", lambda _: None)
relu6 = _unary("RELU6", lambda _: None)
leaky_relu = _unary("LEAKY_RELU", lambda r: tflite.LeakyReluOptions(float(np.float32(r.uniform(0.01, 2)))))


def quantize(r: Random) -> bytes:
    shape = tuple(int(v) for v in r.integers(1, 6, 3))
    x = _tensor(r, "x", _type(r), shape)
    y = _tensor(r, "y", _type(r), shape)
    if r.random() < 0.3:
        y.scale = x.scale
    return model("QUANTIZE", [x], [y], None, 1)


def pad(r: Random) -> bytes:
    dtype = _type(r)
    shape = tuple(int(v) for v in r.integers(1, 5, 4))
    ends = r.integers(0, 3, (4, 2)).astype(np.int32)
    x = _tensor(r, "x", dtype, shape)
    y = T("y", dtype, tuple(shape + ends.sum(axis=1)), x.scale, x.zero)
    return model("PAD", [x, T("p", "int32", (4, 2), data=ends)], [y], tflite.PadOptions(), 2)


def concatenation(r: Random) -> bytes:
    dtype = _type(r)
    rank = int(r.integers(1, 5))
    axis = int(r.integers(0, rank))
    shape = [int(v) for v in r.integers(1, 5, rank)]
    y = _tensor(r, "y", dtype, (), -6, 0)
    parts = []
    for number in range(int(r.integers(1, 5))):
        own = list(shape)
        own[axis] = int(r.integers(1, 5))
        same = dtype == "int8" or r.random() < 0.3
        other = _tensor(r, f"x{number}", dtype, tuple(own), -6, 0)
        parts.append(T(f"x{number}", dtype, own, y.scale, y.zero) if same else other)
    shape[axis] = sum(part.shape[axis] for part in parts)
    y.shape = shape
    return model("CONCATENATION", parts, [y], tflite.ConcatenationOptions(axis if r.random() < 0.7 else axis - rank), 2)


def split(r: Random) -> bytes:
    dtype = _type(r)
    shape = [int(v) for v in r.integers(1, 4, 4)]
    axis, number = int(r.integers(0, 4)), int(r.integers(1, 4))
    x = _tensor(r, "x", dtype, ())
    x.shape = [n * number if i == axis else n for i, n in enumerate(shape)]
    outputs = [T(f"y{n}", dtype, shape, x.scale, x.zero) for n in range(number)]
    return model("SPLIT", [T("a", "int32", (), data=np.int32(axis)), x], outputs, tflite.SplitOptions(number), 2)


def reshape(r: Random) -> bytes:
    dtype = _type(r)
    x = _tensor(r, "x", dtype, (2, 3, 4))
    y = T("y", dtype, (4, 6), x.scale, x.zero)
    return model("RESHAPE", [x, T("s", "int32", (2,), data=np.array([4, 6], np.int32))], [y], tflite.ReshapeOptions())


def resize_bilinear(r: Random) -> bytes:
    shape = tuple(int(v) for v in (r.integers(1, 3), r.integers(1, 8), r.integers(1, 8), r.integers(1, 4)))
    size = r.integers(1, 20, 2).astype(np.int32)
    x = _tensor(r, "x", "uint8", shape)
    y = T("y", "uint8", (shape[0], *size, shape[3]), x.scale, x.zero)
    how = [(False, False), (True, False), (False, True)][int(r.integers(0, 3))]
    return model(
        "RESIZE_BILINEAR", [x, T("s", "int32", (2,), data=size)], [y], tflite.ResizeBilinearOptions(0, 0, *how), 3
    )


def softmax(r: Random) -> bytes:
    dtype = _type(r)
    # beyond some 500 elements of nearly equal probability ai-edge-litert aborts
    shape = (int(r.integers(1, 4)), int(r.integers(1, 400) if r.random() < 0.2 else r.integers(1, 40)))
    x = T("x", dtype, shape, [_scale(r, -9, 3)], [_zero(r, dtype)])
    y = T("y", dtype, shape, [1 / 256], [0 if dtype == "uint8" else -128])
    return model("SOFTMAX", [x], [y], tflite.SoftmaxOptions(float(r.choice([1.0, 0.5, 2.0, 0.1]))), 2)


def arg_max(r: Random) -> bytes:
    dtype = _type(r)
    shape = tuple(int(v) for v in r.integers(1, 6, int(r.integers(1, 5))))
    axis = int(r.integers(-len(shape), len(shape)))
    kind = str(r.choice(["int32", "int64"]))
    y = T("y", kind, tuple(n for i, n in enumerate(shape) if i != axis % len(shape)))
    number = {"int32": 2, "int64": 4}[kind]
    a = T("a", "int32", (1,) if r.random() < 0.5 else (), data=np.full((1,), axis, np.int32))
    return model("ARG_MAX", [_tensor(r, "x", dtype, shape), a], [y], tflite.ArgMaxOptions(number), 2)


def lstm(r: Random) -> bytes:
    batch, time, inputs, units = (
        int(v) for v in (r.integers(1, 3), r.integers(1, 6), r.integers(1, 9), r.integers(1, 9))
    )
    major = bool(r.integers(0, 2))
    x = _tensor(r, "x", "int8", (time, batch, inputs) if major else (batch, time, inputs), -8, -2)
    ws = [
        T(f"w{n}", "int8", (units, inputs), [_scale(r, -9, -4)], [0], 0, _values(r, "int8", (units, inputs)))
        for n in range(4)
    ]
    vs = [
        T(f"v{n}", "int8", (units, units), [_scale(r, -9, -4)], [0], 0, _values(r, "int8", (units, units)))
        for n in range(4)
    ]
    for item in (*ws, *vs):
        item.data = np.maximum(item.data, -127)
    bs = [
        T(
            f"b{n}",
            "int32",
            (units,),
            [x.scale[0] * ws[n].scale[0]],
            [0],
            0,
            r.integers(-3000, 3001, units).astype(np.int32),
        )
        for n in range(4)
    ]
    hidden = _tensor(r, "h", "int8", (batch, units), -8, -6)
    hidden.variable = True
    power = int(r.integers(-15, -8))
    cell = T("c", "int16", (batch, units), [2.0**power], [0], variable=True)
    y = T("y", "int8", (time, batch, units) if major else (batch, time, units), hidden.scale, hidden.zero)
    middle = [T(f"i{n}", "int16", (0,), [2.0**-12], [0]) for n in range(4)]
    middle.append(T("i4", "int8", (0,), hidden.scale, hidden.zero))
    given = [x, *ws, *vs, None, None, None, *bs, None, None, hidden, cell, None, None, None, None]
    clip = float(r.choice([0.0, 10.0, 1.0, 0.3]))
    options = tflite.SequenceLstmOptions(4, clip, 0.0, major)
    return model("UNIDIRECTIONAL_SEQUENCE_LSTM", given, [y], options, 1, middle)


MAKERS: dict[str, Callable[[Random], bytes]] = {
    "CONV_2D": conv, "DEPTHWISE_CONV_2D": depthwise, "AVERAGE_POOL_2D": average_pool,
    "FULLY_CONNECTED": fully_connected, "ADD": add, "SUB": subtract, "MUL": multiply,
    "SQUARED_DIFFERENCE": squared_difference, "MAXIMUM": maximum, "MINIMUM": minimum, "PRELU": prelu, "RELU": relu,
    "RELU6": relu6, "LEAKY_RELU": leaky_relu, "QUANTIZE": quantize, "PAD": pad, "CONCATENATION": concatenation,
    "SPLIT": split, "RESHAPE": reshape, "RESIZE_BILINEAR": resize_bilinear, "SOFTMAX": softmax, "ARG_MAX": arg_max,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": lstm,
}  # fmt: skip
