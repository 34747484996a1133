"""ONNX models of one operator with random attributes, away from their defaults."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Array = NDArray[Any]


class Model(NamedTuple):
    """A model of one operator. `held`: operands that are initializers."""

    op: str
    inputs: Mapping[str, Array | None]
    attributes: Mapping[str, Any]
    held: Sequence[str] = ()
    results: int = 1
    opset: int = 21

    def proto(self) -> Any:
        """Return it as an onnx.ModelProto."""
        names = [name if array is not None else "" for name, array in self.inputs.items()]
        outputs = [f"y{place}" for place in range(self.results)]
        node = helper.make_node(self.op, names, outputs, **self.attributes)
        arrays = {name: array for name, array in self.inputs.items() if array is not None}
        values = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in arrays.items()
            if name not in self.held
        ]
        tensors = [numpy_helper.from_array(arrays[name], name) for name in self.held if name in arrays]
        results = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in outputs]
        for item in results:
            item.ClearField("type")
        graph = helper.make_graph([node], "g", values, results, tensors)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)

    def feeds(self) -> dict[str, Array]:
        """Return the operands that are inputs."""
        return {name: array for name, array in self.inputs.items() if array is not None and name not in self.held}


DRAWN: dict[str, Callable[[random.Random], Model]] = {}
"""By the name of an operator or a group of like ones."""


def draws(make: Callable[[random.Random], Model]) -> Callable[[random.Random], Model]:
    """Add a function that draws a model to the table, under its own name."""
    DRAWN[make.__name__] = make
    return make


def draw(name: str, seed: int) -> Model:
    """Return the model of an operator for a seed."""
    return DRAWN[name](random.Random(f"{name} {seed}"))


def floats(rng: random.Random, *shape: int, low: float = -2.0, high: float = 2.0) -> Array:
    """Return floats in a range, drawn evenly."""
    return np.random.default_rng(rng.randrange(1 << 30)).uniform(low, high, shape).astype(np.float32)


def integers(rng: random.Random, *shape: int, low: int = 0, high: int = 5, dtype: Any = np.int64) -> Array:
    """Return integers in a range, drawn evenly."""
    return np.random.default_rng(rng.randrange(1 << 30)).integers(low, high, shape).astype(dtype)


def some(rng: random.Random, **attributes: Any) -> dict[str, Any]:
    """Return some of the attributes."""
    return {name: value for name, value in attributes.items() if rng.random() < 0.6}


def pixels(rng: random.Random, rank: int, low: int = 3, high: int = 8) -> tuple[int, ...]:
    """Return random sizes of an image."""
    return tuple(rng.randint(low, high) for _ in range(rank))


# ------------------------------------------------------------------------------------------------------------- resize
@draws
def resize(rng: random.Random) -> Model:
    mode = rng.choice(["nearest", "linear", "cubic"])
    rank = 1 if mode != "cubic" and rng.random() < 0.3 else 2
    opset = rng.choice([11, 13, 18, 19, 21])
    forms = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"]
    forms += ["half_pixel_symmetric"] if opset >= 19 else []
    forms += ["tf_half_pixel_for_nn"] if opset < 13 else []
    form = rng.choice(forms)
    rounding = rng.choice(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    attributes = some(
        rng, cubic_coeff_a=rng.choice([-0.5, -0.75]), exclude_outside=rng.randint(0, 1), nearest_mode=rounding
    )
    if mode != "cubic":
        attributes.pop("exclude_outside", None)  # onnxruntime takes it for cubic only
    attributes |= {"mode": mode, "coordinate_transformation_mode": form}
    shape = (1, 2, *pixels(rng, rank))
    some_axes = opset >= 18 and rng.random() < 0.5
    axes = list(range(2, 2 + rank)) if some_axes else list(range(2 + rank))
    if some_axes:
        attributes["axes"] = axes = rng.choice([axes, axes[::-1]])
    held: dict[str, Array | None] = {"roi": None, "scales": None, "sizes": None}
    if form == "tf_crop_and_resize":
        starts = [0.0 if axis < 2 else rng.choice([0.0, 0.1, 0.3, -0.2]) for axis in axes]
        ends = [1.0 if start == 0 else rng.choice([0.8, 0.7, 1.2]) for start in starts]
        held["roi"] = np.array(starts + ends, np.float32)
        attributes |= some(rng, extrapolation_value=rng.choice([0.0, 10.0]))
    elif opset < 13:
        held["roi"] = np.zeros(0, np.float32)
    if rng.random() < 0.5:
        sizes = [shape[axis] if axis < 2 else rng.randint(1, 13) for axis in axes]
        if some_axes and rng.random() < 0.6:
            attributes["keep_aspect_ratio_policy"] = rng.choice(["stretch", "not_larger", "not_smaller"])
        held["sizes"] = np.array(sizes, np.int64)
        if opset < 13:
            held["scales"] = np.zeros(0, np.float32)
    else:
        held["scales"] = np.array(
            [1.0 if axis < 2 else rng.choice([0.6, 0.8, 1.0, 1.5, 2.0, 2.3]) for axis in axes], np.float32
        )
    while list(held) and held[list(held)[-1]] is None:
        held.pop(list(held)[-1])
    return Model("Resize", {"x": floats(rng, *shape), **held}, attributes, tuple(held), opset=opset)


@draws
def upsample(rng: random.Random) -> Model:
    scales = np.array([1, 1, rng.choice([1.0, 1.5, 2.0, 2.6]), rng.choice([1.0, 2.0, 3.3])], np.float32)
    x = floats(rng, 1, 2, *pixels(rng, 2))
    op, opset = rng.choice([("Upsample", 9), ("Resize", 10)])
    return Model(op, {"x": x, "scales": scales}, {"mode": rng.choice(["nearest", "linear"])}, ("scales",), opset=opset)


# ------------------------------------------------------------------------------------------------------------ windows
def _window(rng: random.Random, rank: int, *, dilated: bool = True) -> tuple[list[int], dict[str, Any]]:
    kernel = [rng.randint(1, 3) for _ in range(rank)]
    pads = [rng.randint(0, k // 2) for k in kernel * 2]
    auto = rng.choice(["NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"])
    strides = [rng.randint(1, 3) for _ in kernel]
    if auto.startswith("SAME"):  # of smaller windows onnxruntime makes negative pads
        strides = [rng.randint(1, k) for k in kernel]
    attributes = some(rng, strides=strides)
    if dilated and not auto.startswith("SAME"):
        attributes |= some(rng, dilations=[rng.randint(1, 2) for _ in kernel])
    attributes |= {"pads": pads} if auto == "NOTSET" else {"auto_pad": auto}
    return kernel, attributes


@draws
def pools(rng: random.Random) -> Model:
    rank, op = rng.randint(1, 3), rng.choice(["MaxPool", "AveragePool", "LpPool"])
    kernel, attributes = _window(rng, rank, dilated=op != "AveragePool")
    attributes["kernel_shape"] = kernel
    if op != "LpPool" and "auto_pad" not in attributes:
        attributes |= some(rng, ceil_mode=1)
    if op == "AveragePool":
        attributes |= some(rng, count_include_pad=1)
    if op == "MaxPool":
        attributes |= some(rng, storage_order=1)
    if op == "LpPool":
        attributes |= some(rng, p=rng.choice([1, 2, 3]))
        attributes.pop("dilations", None)
    x = floats(rng, 2, 3, *pixels(rng, rank, 5, 9))
    return Model(op, {"x": x}, attributes, opset=rng.choice([19, 21]) if op != "LpPool" else 18)


@draws
def global_pools(rng: random.Random) -> Model:
    op = rng.choice(["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
    attributes = some(rng, p=rng.choice([1, 2, 3])) if op == "GlobalLpPool" else {}
    return Model(op, {"x": floats(rng, 2, 3, *pixels(rng, 2))}, attributes)


@draws
def convolutions(rng: random.Random) -> Model:
    rank, group = rng.randint(1, 3), rng.choice([1, 2])
    kernel, attributes = _window(rng, rank)
    w, bias = floats(rng, 6, 4 // group, *kernel), floats(rng, 6)
    attributes |= some(rng, kernel_shape=kernel) | {"group": group}
    inputs = {"x": floats(rng, 2, 4, *pixels(rng, rank, 6, 9)), "w": w} | some(rng, b=bias)
    return Model("Conv", inputs, attributes, ("w", "b"))


@draws
def transposed_convolutions(rng: random.Random) -> Model:
    rank, group = rng.randint(1, 2), rng.choice([1, 2])
    kernel = [rng.randint(1, 3) for _ in range(rank)]
    strides, size = [rng.randint(1, 3) for _ in kernel], pixels(rng, rank, 3, 6)
    attributes: dict[str, Any] = {"group": group, "strides": strides} | some(rng, kernel_shape=kernel)
    choice = rng.choice(["pads", "pads", "SAME_UPPER", "SAME_LOWER", "output_shape"])
    if choice == "pads":
        attributes |= {"pads": [rng.randint(0, k // 2) for k in kernel * 2]}
        attributes |= some(rng, dilations=[rng.randint(1, 2) for _ in kernel])
        attributes |= some(rng, output_padding=[rng.randrange(s) for s in strides])
    elif choice == "output_shape":
        least = [(n - 1) * s + k for n, s, k in zip(size, strides, kernel, strict=True)]
        attributes |= {"output_shape": [n - rng.randint(0, k - 1) for n, k in zip(least, kernel, strict=True)]}
        attributes |= some(rng, auto_pad=rng.choice(["SAME_UPPER", "SAME_LOWER"]))
    else:
        attributes["auto_pad"] = choice
    inputs = {"x": floats(rng, 2, 4, *size), "w": floats(rng, 4, 6 // group, *kernel)} | some(rng, b=floats(rng, 6))
    return Model("ConvTranspose", inputs, attributes, ("w", "b"))


# --------------------------------------------------------------------------------------------------- element by element
@draws
def activations(rng: random.Random) -> Model:
    a, b = rng.choice([0.05, 0.4, 1.3]), rng.choice([0.2, 0.7])
    op, attributes = rng.choice(
        [
            ("LeakyRelu", {"alpha": a}), ("ThresholdedRelu", {"alpha": a}), ("Elu", {"alpha": a}),
            ("Selu", {"alpha": a, "gamma": b}), ("Celu", {"alpha": a}), ("HardSigmoid", {"alpha": a, "beta": b}),
            ("Gelu", {"approximate": "tanh"}), ("Gelu", {"approximate": "none"}), ("Shrink", {"lambd": a, "bias": b}),
            ("Selu", {"gamma": b}), ("HardSigmoid", {"beta": b}), ("Shrink", {"lambd": a}),
        ]
    )  # fmt: skip
    return Model(op, {"x": floats(rng, 3, 17, low=-3, high=3)}, attributes)


@draws
def clips(rng: random.Random) -> Model:
    x = floats(rng, 3, 5)
    if rng.random() < 0.4:
        return Model("Clip", {"x": x}, some(rng, min=-0.5, max=0.7), opset=6)
    low, high = (np.array(value, np.float32) if rng.random() < 0.6 else None for value in (-0.5, 0.7))
    held = ("low", "high") if rng.random() < 0.7 else ()
    inputs: dict[str, Array | None] = {"x": x, "low": low} if high is None else {"x": x, "low": low, "high": high}
    return Model("Clip", inputs if high is not None or low is not None else {"x": x}, {}, held)


@draws
def broadcasts_of_old(rng: random.Random) -> Model:
    op, axis = rng.choice(["Add", "Sub", "Mul", "Div", "Pow"]), rng.choice([0, 1, 2, -1, -3, None])
    shape = (2, 3, 4)
    first = 2 if axis is None else axis % 3
    second = shape[first : first + rng.randint(1, 3 - first)] if axis is not None else shape[rng.randint(0, 2) :]
    attributes = {"broadcast": 1} | ({"axis": axis} if axis is not None else {})
    return Model(op, {"x": floats(rng, *shape, low=0.5), "y": floats(rng, *second, low=0.5)}, attributes, opset=6)


@draws
def remainders(rng: random.Random) -> Model:
    kind = rng.choice([np.float32, np.int32])
    x = integers(rng, 3, 5, low=-9, high=10, dtype=kind)
    y = integers(rng, 3, 5, low=1, high=5, dtype=kind) * kind(rng.choice([-1, 1]))
    return Model("Mod", {"x": x, "y": y}, {"fmod": 1 if kind is np.float32 else rng.randint(0, 1)})


@draws
def casts(rng: random.Random) -> Model:
    kind = rng.choice([TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL, TensorProto.FLOAT, TensorProto.UINT8])
    return Model("Cast", {"x": floats(rng, 3, 5, low=0.0)}, {"to": kind})


# -------------------------------------------------------------------------------------------------------------- moves
@draws
def paddings(rng: random.Random) -> Model:
    mode, opset = rng.choice(["constant", "edge", "reflect", "wrap"]), rng.choice([2, 11, 19, 21])
    mode = "edge" if mode == "wrap" and opset < 19 else mode
    x, least = floats(rng, 3, 4, 5), -1 if mode == "constant" else 0
    if opset == 2:
        pads = [rng.randint(0, 2) for _ in range(6)]
        return Model("Pad", {"x": x}, {"pads": pads, "mode": mode} | some(rng, value=1.5), opset=2)
    axes = rng.choice([None, [0, 2], [-1], [2, 1]]) if opset >= 19 else None
    count = 3 if axes is None else len(axes)
    inputs: dict[str, Array | None] = {"x": x, "pads": np.array([rng.randint(least, 2) for _ in range(2 * count)])}
    inputs["value"] = np.array(1.5, np.float32) if mode == "constant" and rng.random() < 0.6 else None
    if axes is not None:
        inputs["axes"] = np.array(axes)
    elif inputs["value"] is None:
        del inputs["value"]
    return Model("Pad", inputs, {"mode": mode}, ("pads", "value", "axes"), opset=opset)


@draws
def moves(rng: random.Random) -> Model:
    x, axis = floats(rng, 4, 6, 8), rng.choice([0, 1, 2, -1, -2])
    index = integers(rng, 2, 3, high=4)
    return rng.choice(
        [
            Model("Transpose", {"x": x}, {"perm": rng.choice([[2, 0, 1], [1, 0, 2]])}),
            Model("Flatten", {"x": x}, {"axis": axis}),
            Model("Flatten", {"x": x}, {"axis": 3}),
            Model("Concat", {"x": x, "y": x + 1}, {"axis": axis}),
            Model("Split", {"x": x}, {"axis": axis, "num_outputs": 3}, results=3),
            Model("Split", {"x": x, "s": np.array([1, 3])}, {"axis": 0}, ("s",), results=2),
            Model("Gather", {"x": x, "i": index}, {"axis": axis}, rng.choice([(), ("i",)])),
            Model("GatherElements", {"x": x, "i": integers(rng, 4, 6, 8, high=4)}, {"axis": axis}),
            Model("GatherND", {"x": x, "i": integers(rng, 4, 2, 1, high=6)}, {"batch_dims": 1}, ("i",)),
            Model("GatherND", {"x": x, "i": integers(rng, 5, 2, high=4)}, {}, ("i",)),
            Model("DepthToSpace", {"x": floats(rng, 2, 8, 2, 3)}, {"blocksize": 2, "mode": rng.choice(["DCR", "CRD"])}),
            Model("SpaceToDepth", {"x": floats(rng, 2, 2, 4, 6)}, {"blocksize": 2}),
            Model("Trilu", {"x": x, "k": np.array(rng.randint(-3, 3))}, {"upper": rng.randint(0, 1)}, ("k",)),
            Model("Squeeze", {"x": x[:1, :, None], "a": np.array([0, -2])}, {}, ("a",)),
            Model("Unsqueeze", {"x": x, "a": np.array([-1, 1])}, {}, ("a",)),
            Model("Reshape", {"x": x, "s": np.array([0, -1, 2])}, some(rng, allowzero=0), ("s",)),
            Model("Reshape", {"x": x, "s": np.array([4, -1])}, {"allowzero": 1}, ("s",)),
            Model("Shape", {"x": x}, some(rng, start=1, end=-1), opset=15),
            Model("EyeLike", {"x": x[0]}, some(rng, k=rng.randint(-2, 2), dtype=TensorProto.FLOAT)),
            Model("OneHot", {"i": integers(rng, 2, 3), "d": np.array(5), "v": np.array([-1, 2], np.float32)},
                  some(rng, axis=rng.choice([0, 1, -1])), ("d", "v")),
            Model("Slice", {"x": x, "s": np.array([-1, 0]), "e": np.array([-9, 5]),
                            "a": np.array([axis % 3, (axis + 1) % 3]), "t": np.array([-2, 2])}, {},
                  ("s", "e", "a", "t")),
            Model("Slice", {"x": x}, {"starts": [1, 0], "ends": [3, -1], "axes": [0, 2]}, opset=9),
        ]
    )  # fmt: skip


# --------------------------------------------------------------------------------------------------------- reductions
@draws
def reductions(rng: random.Random) -> Model:
    op = rng.choice(["Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare"])
    axes = rng.choice([[0], [-1], [0, 2], [1, 2], []])
    x, attributes = floats(rng, 3, 4, 5, low=0.2), some(rng, keepdims=rng.randint(0, 1))
    if rng.random() < 0.4:
        return Model(f"Reduce{op}", {"x": x}, attributes | ({"axes": axes} if axes else {}), opset=11)
    attributes |= some(rng, noop_with_empty_axes=rng.randint(0, 1))
    inputs: dict[str, Array | None] = {"x": x, "axes": np.array(axes, np.int64)} if axes else {"x": x}
    return Model(f"Reduce{op}", inputs, attributes, ("axes",), opset=20)


@draws
def places(rng: random.Random) -> Model:
    attributes = some(rng, axis=rng.choice([0, 1, -1]), keepdims=0, select_last_index=rng.randint(0, 1))
    x = integers(rng, 4, 7, high=4).astype(np.float32)
    return Model(rng.choice(["ArgMax", "ArgMin"]), {"x": x}, attributes)


@draws
def softmaxes(rng: random.Random) -> Model:
    op, opset = rng.choice(["Softmax", "LogSoftmax", "Hardmax"]), rng.choice([11, 13])
    return Model(op, {"x": floats(rng, 2, 3, 4)}, some(rng, axis=rng.choice([0, 1, -1, -2])), opset=opset)


@draws
def order_of_values(rng: random.Random) -> Model:
    x = np.random.default_rng(rng.randrange(1 << 30)).permutation(24).reshape(4, 6).astype(np.float32)
    attributes = some(rng, axis=rng.choice([0, 1, -1]), largest=0)
    return Model("TopK", {"x": x, "k": np.array([3])}, attributes | some(rng, sorted=1), ("k",), results=2)


@draws
def running(rng: random.Random) -> Model:
    attributes = some(rng, exclusive=1, reverse=1)
    return Model("CumSum", {"x": floats(rng, 3, 5), "a": np.array(rng.choice([0, 1, -1]))}, attributes, ("a",))


@draws
def norms(rng: random.Random) -> Model:
    epsilon, x = rng.choice([1e-5, 0.1, 1.5]), floats(rng, 3, 6, 4, 5)
    scale, bias = floats(rng, 6, low=0.5), floats(rng, 6)
    mean, variance = floats(rng, 6), floats(rng, 6, low=0.5)
    axis = rng.choice([-1, -2, 1, 2])
    shape = x.shape[axis:]
    held = ("scale", "bias", "mean", "var")
    return rng.choice(
        [
            Model("BatchNormalization", {"x": x, "scale": scale, "bias": bias, "mean": mean, "var": variance},
                  some(rng, epsilon=epsilon, momentum=0.3), held, opset=15),
            Model("BatchNormalization", {"x": x, "scale": scale, "bias": bias, "mean": mean, "var": variance},
                  some(rng, epsilon=epsilon, momentum=0.3) | {"spatial": 1}, held, opset=7),
            Model("InstanceNormalization", {"x": x, "scale": scale, "bias": bias}, some(rng, epsilon=epsilon), held),
            Model("GroupNormalization", {"x": x, "scale": scale, "bias": bias},
                  some(rng, epsilon=epsilon) | {"num_groups": rng.choice([1, 2, 3, 6])}, held),
            Model("LayerNormalization",
                  {"x": x, "scale": floats(rng, *shape, low=0.5)} | some(rng, bias=floats(rng, *shape)),
                  some(rng, epsilon=epsilon, stash_type=1) | {"axis": axis}, held),
            Model("LpNormalization", {"x": x}, some(rng, axis=rng.choice([0, 1, -1]), p=rng.choice([1, 2]))),
            Model("LRN", {"x": x}, some(rng, alpha=0.3, beta=0.5, bias=2.0) | {"size": rng.choice([1, 3, 5])}),
            Model("MeanVarianceNormalization", {"x": x}, some(rng, axes=rng.choice([[0, 1], [2, 3]]))),
        ]
    )  # fmt: skip


# ----------------------------------------------------------------------------------------------------------- products
@draws
def gemm(rng: random.Random) -> Model:
    first, second = rng.randint(0, 1), rng.randint(0, 1)
    x, y = floats(rng, 3, 4), floats(rng, 4, 5)
    inputs = {"x": x.T.copy() if first else x, "y": y.T.copy() if second else y}
    inputs |= some(rng, c=floats(rng, *rng.choice([(5,), (3, 5), (1, 5), (3, 1)])))
    attributes = some(rng, alpha=0.5, beta=rng.choice([0.0, 2.5])) | {"transA": first, "transB": second}
    return Model("Gemm", inputs, attributes)


@draws
def recurrent(rng: random.Random) -> Model:
    op, direction = rng.choice(["RNN", "GRU", "LSTM"]), rng.choice(["forward", "reverse", "bidirectional"])
    count, gates, size = 1 + (direction == "bidirectional"), {"RNN": 1, "GRU": 3, "LSTM": 4}[op], 4
    attributes: dict[str, Any] = {"hidden_size": size, "direction": direction} | some(rng, clip=rng.choice([0.4, 5.0]))
    if op == "GRU":
        attributes |= some(rng, linear_before_reset=1)
    if op == "LSTM":
        attributes |= some(rng, input_forget=1)
    names = {"RNN": 1, "GRU": 2, "LSTM": 3}[op] * count
    if rng.random() < 0.5:
        attributes["activations"] = [rng.choice(["Relu", "Sigmoid", "Tanh", "Softsign", "HardSigmoid", "LeakyRelu"])
                                     for _ in range(names)]  # fmt: skip
    inputs: dict[str, Array | None] = {
        "x": floats(rng, 3, 2, 5),
        "w": floats(rng, count, gates * size, 5, low=-0.5, high=0.5),
        "r": floats(rng, count, gates * size, size, low=-0.5, high=0.5),
        "b": rng.choice([None, floats(rng, count, 2 * gates * size)]),
        "l": rng.choice([None, np.array([3, 2], np.int32)]),
        "h": rng.choice([None, floats(rng, count, 2, size)]),
    }
    if op == "LSTM":
        inputs["c"] = rng.choice([None, floats(rng, count, 2, size)])
        inputs["p"] = rng.choice([None, floats(rng, count, 3 * size)])
    return Model(op, inputs, attributes, ("w", "r", "b", "l", "h", "c", "p"), 3 if op == "LSTM" else 2, 14)


@draws
def einsum(rng: random.Random) -> Model:
    text = rng.choice(["ij,jk->ik", "bij,bkj->bik", "ij,kj->ki", "bi,bj->bij", "ijk->ki", "ij,ij->i"])
    size = {"i": 3, "j": 4, "k": 5, "b": 2}
    left = text.split("->")[0].split(",")
    inputs = {f"x{n}": floats(rng, *(size[letter] for letter in word)) for n, word in enumerate(left)}
    return Model("Einsum", inputs, {"equation": text})


# ---------------------------------------------------------------------------------------------------------- quantised
@draws
def quantised(rng: random.Random) -> Model:
    axis, kind = rng.choice([0, 1, -1]), rng.choice([np.int8, np.uint8])
    x = floats(rng, 4, 6, low=-9, high=9)
    each = rng.random() < 0.6
    shape = (x.shape[axis],) if each else ()
    attributes = {"axis": axis} if each else {}
    scale, zero = floats(rng, *shape, low=0.1, high=0.3), integers(rng, *shape, high=9, dtype=kind)
    if rng.random() < 0.5:
        return Model("QuantizeLinear", {"x": x, "s": scale, "z": zero}, attributes | some(rng, saturate=0), ("s", "z"))
    q = integers(rng, 4, 6, high=100, dtype=kind)
    return Model("DequantizeLinear", {"x": q, "s": scale, "z": zero}, attributes, ("s", "z"))
