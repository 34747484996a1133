"""Small ONNX graphs, seeded, as no exporter of torch writes them: what `acceptance.py` compiles.

`MODELS` names functions that give a model and its inputs.
"""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

Array = NDArray[Any]
Source = tuple[ModelProto, tuple[Array, ...]]
MODELS: dict[str, Callable[[], Source]] = {}
TYPES = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int64): TensorProto.INT64}


def outputs(model: ModelProto, inputs: Sequence[Array]) -> list[Array]:
    """Return the outputs by the onnx package's reference evaluator."""
    names = [value.name for value in model.graph.input]
    results: Any = ReferenceEvaluator(model).run(None, dict(zip(names, inputs, strict=True)))
    return list(results)


def outputs_of_onnxruntime(model: ModelProto, inputs: Sequence[Array]) -> list[Array]:
    """Return the outputs by onnxruntime, node by node, since its fused nodes round elsewhere."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [value.name for value in model.graph.input]
    results: Any = session.run(None, dict(zip(names, inputs, strict=True)))
    return list(results)


def quantise(module: Any, inputs: Sequence[Any]) -> Source:
    """Return a torch module in QDQ form as onnxruntime's tools write it: 8 bits, symmetric, calibrated on its
    inputs."""
    import torch
    from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static

    class Inputs(CalibrationDataReader):
        def __init__(self) -> None:
            self.left = [{f"x{number}": array.numpy() for number, array in enumerate(inputs)}]

        def get_next(self) -> Any:
            return self.left.pop() if self.left else None

    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "plain.onnx"
        quantised = Path(folder) / "quantised.onnx"
        names = [f"x{number}" for number in range(len(inputs))]
        torch.onnx.export(module, tuple(inputs), plain, input_names=names, dynamo=False, opset_version=17)
        options = {"ActivationSymmetric": True, "WeightSymmetric": True}
        quantize_static(
            plain,
            quantised,
            Inputs(),
            per_channel=True,
            extra_options=options,
            activation_type=QuantType.QInt8,
            weight_type=QuantType.QInt8,
        )
        return onnx.load(quantised), tuple(array.numpy() for array in inputs)


Parts = tuple[dict[str, Array], list[Any], dict[str, Array], list[str]]
"""Inputs, nodes, initializers, and names of outputs."""


def graph(build: Callable[[np.random.Generator], Parts]) -> Callable[[], Source]:
    """Enter a graph into the table, by the function that returns its parts; it is seeded by the function's name."""

    def seeded_source() -> Source:
        inputs, nodes, held, names = build(np.random.default_rng(sum(map(ord, build.__name__))))
        body = helper.make_graph(
            nodes,
            build.__name__,
            [helper.make_tensor_value_info(name, TYPES[array.dtype], array.shape) for name, array in inputs.items()],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names],
            [numpy_helper.from_array(array, name) for name, array in held.items()],
        )
        return helper.make_model(body, opset_imports=[helper.make_opsetid("", 18)]), tuple(inputs.values())

    MODELS[build.__name__] = seeded_source
    return seeded_source


def _floats(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape, np.float32)


def _node(kind: str, inputs: str, result: str, **words: Any) -> Any:
    return helper.make_node(kind, inputs.split(), result.split(), **words)


@graph
def strided_and_padded(rng: np.random.Generator) -> Parts:
    """Padding on one side, a window that looks beyond, an average that counts less at borders."""
    held = {"w": _floats(rng, 9, 4, 3, 2) / 4, "b": _floats(rng, 9), "v": _floats(rng, 6, 9, 1, 1)}
    nodes = [
        _node("Conv", "x w b", "c", strides=[2, 1], pads=[1, 0, 0, 1]),
        _node("LeakyRelu", "c", "l", alpha=0.2),
        _node("AveragePool", "l", "p", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]),
        _node("Conv", "p v", "y"),
    ]
    return {"x": _floats(rng, 1, 4, 27, 20)}, nodes, held, ["y"]


@graph
def normalised(rng: np.random.Generator) -> Parts:
    """Norms by layer, batch and power sums along odd axes."""
    held = {"s": _floats(rng, 33), "b": _floats(rng, 33), "axes": np.array([1])}
    nodes = [
        _node("LayerNormalization", "x s b", "n", axis=-1),
        _node("ReduceL2", "n axes", "l", keepdims=1),
        _node("Div", "n l", "d"),
        _node("Softmax", "d", "m", axis=1),
        _node("Mul", "m x", "y"),
    ]
    return {"x": _floats(rng, 2, 40, 33)}, nodes, held, ["y"]


@graph
def gathered(rng: np.random.Generator) -> Parts:
    """A table, slices with steps, tiles and concatenation."""
    held = {
        "table": _floats(rng, 90, 24),
        "starts": np.array([1]),
        "ends": np.array([20]),
        "axes": np.array([1]),
        "steps": np.array([3]),
        "times": np.array([1, 2, 1]),
        "w": _floats(rng, 24, 17),
    }
    nodes = [
        _node("Gather", "table i", "e"),
        _node("Slice", "e starts ends axes steps", "s"),
        _node("Tile", "s times", "t"),
        _node("Concat", "e t", "c", axis=1),
        _node("MatMul", "c w", "m"),
        _node("HardSwish", "m", "y"),
    ]
    return {"i": rng.integers(0, 90, (2, 22))}, nodes, held, ["y"]


@graph
def recurrent(rng: np.random.Generator) -> Parts:
    """Both directions of a GRU, with their last states."""
    held = {"w": _floats(rng, 2, 60, 11) / 3, "r": _floats(rng, 2, 60, 20) / 4, "b": _floats(rng, 2, 120) / 4}
    nodes = [_node("GRU", "x w r b", "y h", hidden_size=20, direction="bidirectional", linear_before_reset=1)]
    return {"x": _floats(rng, 7, 3, 11)}, nodes, held, ["y", "h"]


@graph
def resized(rng: np.random.Generator) -> Parts:
    """Up by two, depth to space, transposed convolution, clipped."""
    held = {
        "w": _floats(rng, 12, 8, 3, 3) / 5,
        "scales": np.array([1, 1, 2, 2], np.float32),
        "low": np.array(-0.5, np.float32),
        "t": _floats(rng, 3, 5, 2, 2),
    }
    nodes = [
        _node("Conv", "x w", "c", pads=[1, 1, 1, 1]),
        _node("DepthToSpace", "c", "d", blocksize=2),
        helper.make_node("Resize", ["d", "", "scales"], ["r"], mode="nearest"),
        _node("ConvTranspose", "r t", "u", strides=[2, 2]),
        _node("Clip", "u low", "y"),
    ]
    return {"x": _floats(rng, 1, 8, 9, 7)}, nodes, held, ["y"]


@graph
def fan_out(rng: np.random.Generator) -> Parts:
    """One value that many nodes read, each cut differently."""
    held = {f"w{n}": _floats(rng, 64, 20 + 40 * n) / 8 for n in range(6)}
    nodes = [_node("Tanh", "x", "t")]
    for n in range(6):
        nodes += [_node("MatMul", f"t w{n}", f"m{n}"), _node("Sigmoid", f"m{n}", f"y{n}")]
    return {"x": _floats(rng, 70, 64)}, nodes, held, ["t", *(f"y{n}" for n in range(6))]


@graph
def products_of_inputs(rng: np.random.Generator) -> Parts:
    """No parameters at all: products, transposes and maxima of inputs."""
    nodes = [
        _node("Transpose", "b", "bt", perm=[0, 2, 1]),
        _node("MatMul", "a bt", "p"),
        _node("Max", "p c", "m"),
        _node("Einsum", "m a", "y", equation="bij,bid->bjd"),
    ]
    return {"a": _floats(rng, 3, 45, 20), "b": _floats(rng, 3, 37, 20), "c": _floats(rng, 45, 37)}, nodes, {}, ["y"]
