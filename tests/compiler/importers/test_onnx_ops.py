"""Operators of ONNX models against the evaluators of others."""

import numpy as np
import pytest

import buda_emu as be
from buda_emu.compiler.parted import evaluate
from buda_emu.support.errors import UnsupportedError

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402 - only where onnx is

from buda_emu.compiler.importers.from_onnx.reader import read_proto  # noqa: E402 - only where onnx is

RNG = np.random.default_rng(0)


def model(nodes, inputs, outputs, held=(), opset=21):
    """Of nodes (op, inputs, outputs, attributes), input arrays and held arrays by name, and names of outputs."""
    made = [helper.make_node(op, ins, outs, **attrs) for op, ins, outs, attrs in nodes]
    graph = helper.make_graph(
        made,
        "g",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in inputs.items()
        ],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in dict(held).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def agrees(made, inputs, **tolerance):
    """With onnxruntime, operator by operator: what it puts together saturates sums of bytes on some processors."""
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = runtime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    expected = session.run(None, inputs)
    compiled = be.compile(made)
    assert compiled.check(strict=True) == ()
    for got, want in zip(compiled(*inputs.values()), expected, strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, **({"rtol": 1e-3, "atol": 1e-4} | tolerance))
    compiled.close()
    return compiled


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("op", "gates", "attrs"),
    [
        ("LSTM", 4, {"direction": "bidirectional"}),
        ("LSTM", 4, {"input_forget": 1, "direction": "reverse"}),
        ("GRU", 3, {"direction": "bidirectional", "linear_before_reset": 1}),
        ("GRU", 3, {"activations": ["HardSigmoid", "Softsign"], "direction": "reverse"}),
        ("RNN", 1, {"activations": ["Relu"], "clip": 0.8}),
    ],
)
@pytest.mark.parametrize("lengths", [False, True])
def test_recurrent_layers(op, gates, attrs, lengths):
    steps, batch, width, size = 4, 3, 5, 7
    count = 2 if attrs.get("direction") == "bidirectional" else 1
    held = {
        "w": normal(count, gates * size, width),
        "r": normal(count, gates * size, size),
        "b": normal(count, 2 * gates * size),
        "h": normal(count, batch, size),
        "l": np.array([4, 1, 3], np.int32),
    }
    x = {"x": normal(steps, batch, width)}
    if count == 2 and "activations" in attrs:
        attrs = {**attrs, "activations": attrs["activations"] * 2}
    inputs = ["x", "w", "r", "b", "l" if lengths else "", "h"]
    outputs = ["y", "yh", "yc"][: 3 if op == "LSTM" else 2]
    agrees(model([(op, inputs, outputs, {"hidden_size": size, **attrs})], x, outputs, held, opset=14), x)


def test_a_convolution_that_is_cut_into_taps_takes_no_name_of_another_op():
    """Its pickers are numbered, and so are parts of one (onnx's test_convtranspose_dilations)."""
    inputs = {"x": normal(1, 1, 3, 3), "w": normal(1, 1, 2, 2)}
    agrees(model([("ConvTranspose", ["x", "w"], ["y"], {"dilations": [2, 2]})], inputs, ["y"]), inputs)


def test_a_prime_number_of_places_in_columns():
    """17 x 17 slices of columns that no row of cores divides."""
    nodes = [
        ("MatMul", ["x", "w"], ["h"], {}),
        ("Reshape", ["h", "s"], ["p"], {}),
        ("ConvTranspose", ["p", "k"], ["y"], {"kernel_shape": [3, 3], "strides": [2, 2]}),
    ]
    held = {"w": normal(12, 5 * 64), "s": np.array([2, 5, 8, 8]), "k": normal(5, 2, 3, 3)}
    x = {"x": normal(2, 12)}
    agrees(model(nodes, x, ["y"], held), x, atol=1e-3)


def test_columns_in_more_blocks_than_a_row_of_cores_has_room_for():
    """33 x 33 places of a row, of five channels each: they become rows before they are moved."""
    nodes = [
        ("MatMul", ["x", "w"], ["h"], {}),
        ("Reshape", ["h", "s"], ["p"], {}),
        ("Conv", ["p", "k"], ["y"], {"kernel_shape": [3, 3], "strides": [4, 4]}),
    ]
    held = {"w": normal(12, 5 * 33 * 33), "s": np.array([1, 5, 33, 33]), "k": normal(2, 5, 3, 3)}
    x = {"x": normal(1, 12)}
    agrees(model(nodes, x, ["y"], held), x, atol=1e-3)


def quantised(kind):
    """x W + b, relu, then W2 + c, with every tensor quantised, as exporters write it."""
    zero, x = np.array(0 if kind == "int8" else 128, kind), normal(6, 40).clip(-2.5, 2.5)  # -128 is not on the device
    nodes = []
    for name in ("x", "h", "y"):
        nodes += [
            ("QuantizeLinear", [name, f"{name}s", "z"], [f"{name}q"], {}),
            ("DequantizeLinear", [f"{name}q", f"{name}s", "z"], [f"{name}d"], {}),
        ]
    nodes[2:2] = [
        ("DequantizeLinear", ["w", "ws", "wz"], ["wd"], {"axis": 1}),
        ("MatMul", ["xd", "wd"], ["p"], {}),
        ("Add", ["p", "b"], ["a"], {}),
        ("Relu", ["a"], ["h"], {}),
    ]
    nodes[8:8] = [
        ("DequantizeLinear", ["v", "vs"], ["vd"], {}),
        ("MatMul", ["hd", "vd"], ["q"], {}),
        ("Add", ["q", "c"], ["y"], {}),
    ]
    held = {
        "z": zero,
        "xs": np.float32(0.02),
        "hs": np.float32(0.05),
        "ys": np.float32(0.4),
        "b": normal(30),
        "w": RNG.integers(-127, 127, (40, 30)).astype(np.int8),
        "ws": (0.01 + RNG.random(30) / 100).astype(np.float32),
        "c": normal(10),
        "wz": np.zeros(30, np.int8),
        "v": RNG.integers(-127, 127, (30, 10)).astype(np.int8),
        "vs": np.float32(0.01),
    }
    held = {name: np.asarray(array) for name, array in held.items()}
    return model(nodes, {"x": x}, ["yd"], held), {"x": x}


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_a_quantised_model(kind):
    made, inputs = quantised(kind)
    agrees(made, inputs, atol=1e-3)


def test_types_that_the_device_lacks_are_refused_by_name():
    x = {"x": normal(3, 4)}
    nodes = [("QuantizeLinear", ["x", "s", "z"], ["y"], {})]
    held = {"s": np.array(0.1, np.float32), "z": np.array(0, np.int16)}
    with pytest.raises(be.UnsupportedError, match=r"QuantizeLinear \(to int16, which the device does not have\)"):
        be.compile(model(nodes, x, ["y"], held))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("largest", [0, 1])
def test_the_largest_in_order(axis, largest):
    x = {"x": np.round(normal(4, 33, 5) * 2) / 2}  # with equal ones
    held = {"k": np.array([3], np.int64)}
    agrees(model([("TopK", ["x", "k"], ["y", "i"], {"axis": axis, "largest": largest})], x, ["y"], held), x)
    made = model([("TopK", ["x", "k"], ["y", "i"], {"axis": axis, "largest": largest})], x, [], held)
    made.graph.output.append(helper.make_tensor_value_info("i", TensorProto.INT64, None))
    compiled = be.compile(made)
    sign = -1 if largest else 1
    want = np.argsort(sign * x["x"], axis=axis, kind="stable").take(range(3), axis)
    np.testing.assert_array_equal(compiled(x["x"])[0], want)


SCORES, SEEN = normal(2, 5, 7), RNG.random((2, 1, 7)) > 0.4
SEEN[1] = False
CAUSAL = np.where(np.tri(5, 7, dtype=bool), 0, -np.inf).astype(np.float32)
LOST = CAUSAL.copy()
LOST[2] = -np.inf


@pytest.mark.parametrize("held", [CAUSAL, LOST])
@pytest.mark.parametrize("both", [False, True])
def test_a_softmax_of_rows_of_which_nothing_is_left(held, both):
    """As torch writes its attention: where the softmax is not a number there are zeros."""
    nodes = [
        ("Where", ["seen", "nought", "least"], ["mask"], {}),
        ("Add", ["scores", "mask" if both else "held"], ["s"], {}),
        ("Add", ["s", "held"], ["t"], {}),
        ("Softmax", ["t"], ["p"], {"axis": -1}),
        ("IsNaN", ["p"], ["n"], {}),
        ("Where", ["n", "nought", "p"], ["y"], {}),
        ("Cast", ["n"], ["z"], {"to": TensorProto.FLOAT}),
    ]
    inputs = {"scores": SCORES, "seen": SEEN}
    kept = {"nought": np.zeros((), np.float32), "least": np.full((), -np.inf, np.float32), "held": held}
    agrees(model(nodes, inputs, ["y", "z"], kept), inputs)


@pytest.mark.parametrize(
    ("nodes", "complaint"),
    [
        ([("Mul", ["x", "least"], ["s"], {}), ("Softmax", ["s"], ["p"], {}), ("IsNaN", ["p"], ["n"], {})], "of a mask"),
        ([("Sub", ["x", "least"], ["s"], {}), ("Softmax", ["s"], ["p"], {}), ("IsNaN", ["p"], ["n"], {})], "of a mask"),
        ([("Add", ["x", "most"], ["s"], {}), ("Softmax", ["s"], ["p"], {}), ("IsNaN", ["p"], ["n"], {})], "of a mask"),
    ],
)
def test_other_values_that_are_no_numbers_are_refused(nodes, complaint):
    nodes = [*nodes, ("Cast", ["n"], ["y"], {"to": TensorProto.FLOAT})]
    held = {"least": np.full((), -np.inf, np.float32), "most": np.array([0, 0, 0, np.inf], np.float32)}
    made = model(nodes, {"x": normal(3, 4)}, ["y"], held)
    with pytest.raises(be.UnsupportedError, match=complaint):
        be.compile(made)


def test_positions_counted_from_a_mask():
    """As RoBERTa has them: integers of 64 bits, counted in 32."""
    nodes = [
        ("Cast", ["ids"], ["short"], {"to": TensorProto.INT32}),
        ("CumSum", ["short", "axis"], ["sum"], {}),
        ("Cast", ["sum"], ["y"], {"to": TensorProto.FLOAT}),
    ]
    inputs = {"ids": RNG.integers(0, 2, (2, 9))}
    agrees(model(nodes, inputs, ["y"], {"axis": np.array(1)}), inputs)


def test_indices_that_are_computed_of_constants():
    """onnx's evaluator refuses rows of unequal lengths, which ours picks: their type stays a whole number's."""
    held = {
        "types": np.arange(64)[None] % 2,
        "places": np.arange(19)[None],
        "shape": np.array([3, 19]),
        "table": normal(2, 40),
    }
    nodes = [
        ("GatherElements", ["types", "places"], ["picked"], {"axis": 1}),
        ("Expand", ["picked", "shape"], ["all"], {}),
        ("Gather", ["table", "all"], ["rows"], {}),
        ("Add", ["rows", "x"], ["y"], {}),
    ]
    x = {"x": normal(3, 19, 40)}
    agrees(model(nodes, x, ["y"], held), x)


def test_a_softmax_before_opset_13_is_over_all_dimensions_from_its_axis_on():
    x = {"x": normal(2, 3, 4)}
    graph = read_proto(model([("Softmax", ["x"], ["y"], {"axis": 1})], x, ["y"], opset=11))
    powers = np.exp(x["x"])
    np.testing.assert_allclose(
        evaluate(graph, x)[graph.outputs[0].value], powers / powers.sum((1, 2), keepdims=True), rtol=1e-5
    )


def test_weights_with_a_scale_for_each_channel():
    """And what rounds is added to the whole sum, where its taps are shared out, not to a part of it."""
    own = np.random.default_rng(5)
    x = {"x": own.integers(0, 255, (1, 2, 4, 4)).astype(np.uint8)}
    held = {
        "xs": np.float32(0.02),
        "xz": np.uint8(7),
        "w": own.integers(-99, 99, (3, 2, 2, 2)).astype(np.int8),
        "ws": np.array([0.01, 0.02, 0.03], np.float32),
        "wz": np.zeros(3, np.int8),
        "ys": np.float32(0.1),
        "yz": np.uint8(9),
    }
    nodes = [("QLinearConv", ["x", *held], ["q"], {}), ("DequantizeLinear", ["q", "ys", "yz"], ["y"], {})]
    held = {name: np.asarray(array) for name, array in held.items()}
    agrees(model(nodes, x, ["y"], held), x, atol=1e-3)


REDUCTIONS = ["none", "add", "mul", "max", "min"]


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("held", [False, True])
def test_values_are_scattered_and_reduced(reduction, held):
    """By indices that are an input or constant, some counted from the end."""
    count = 5 if reduction == "none" else 6  # with no reduction onnxruntime leaves open which of several values counts
    index = np.argsort(RNG.random((3, count, 3)), 1) - 5 if reduction == "none" else RNG.integers(-5, 5, (3, count, 3))
    picked = RNG.permutation(20)[:7] if reduction == "none" else RNG.integers(0, 20, 7)
    places = np.stack(np.unravel_index(picked, (4, 5)), -1)
    places[0] -= 4, 5
    inputs = {"x": normal(4, 5, 3), "values": normal(3, count, 3), "rows": normal(7, 3)}
    indices = {"index": index, "places": places}
    nodes = [
        ("ScatterElements", ["x", "index", "values"], ["y"], {"axis": -2, "reduction": reduction}),
        ("ScatterND", ["x", "places", "rows"], ["z"], {"reduction": reduction}),
    ]
    inputs = inputs if held else {**inputs, **indices}
    agrees(model(nodes, inputs, ["y", "z"], indices if held else {}), inputs)


def test_values_that_are_not_finite_are_told_apart():
    nodes = [("IsNaN", ["x"], ["n"], {}), ("Where", ["n", "nought", "x"], ["z"], {})]
    for positive, negative in ((0, 0), (0, 1), (1, 0), (1, 1)):
        attrs = {"detect_positive": positive, "detect_negative": negative}
        nodes.append(("IsInf", ["x"], [f"i{positive}{negative}"], attrs))
    shown = ["n", *(f"i{signs}" for signs in ("00", "01", "10", "11"))]
    nodes += [("Cast", [name], [f"{name}_shown"], {"to": TensorProto.FLOAT}) for name in shown]
    inputs = {"x": np.array([np.nan, np.inf, -np.inf, 0, 1, -3], np.float32)}
    agrees(
        model(nodes, inputs, ["z", *(f"{name}_shown" for name in shown)], {"nought": np.zeros((), np.float32)}), inputs
    )


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "asymmetric", "align_corners"])
@pytest.mark.parametrize("outside", [0, 1])
def test_images_shrink_with_a_kernel_as_wide_as_a_pixel(mode, coordinates, outside):
    attrs = {"mode": mode, "antialias": 1, "coordinate_transformation_mode": coordinates, "exclude_outside": outside}
    nodes = [
        ("Resize", ["x", "", "", "sizes"], ["y"], attrs),
        ("Resize", ["x", "", "scales"], ["z"], attrs),
    ]
    held = {"sizes": np.array([1, 2, 4, 20]), "scales": np.array([1, 1, 0.4, 0.63], np.float32)}
    inputs = {"x": normal(1, 2, 9, 7)}
    agrees(model(nodes, inputs, ["y", "z"], held), inputs)


@pytest.mark.parametrize("op", ["Gather", "GatherElements", "ScatterElements", "ScatterND"])
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 12))])
def test_negative_indices_that_are_an_input_count_from_the_end(op, seed):
    rng = np.random.default_rng(seed)
    axis = int(rng.integers(2)) if op != "ScatterND" else 0
    sizes = (7, 4)
    held = rng.standard_normal(sizes).astype(np.float32)
    is_input = bool(rng.integers(2)) or op.startswith("Scatter")
    shape = {"Gather": (3,), "ScatterND": (3, 1)}.get(op, (3, 4) if axis == 0 else (7, 3))
    if op == "ScatterElements":  # no place twice
        index = np.argsort(rng.random(sizes), axis=axis)[: shape[0], : shape[1]] - sizes[axis]
    elif op == "ScatterND":
        index = rng.permutation(7)[:3].reshape(shape) - 7
    else:
        index = rng.integers(-sizes[axis], sizes[axis], shape)
    inputs = ({"x": held} if is_input else {}) | {"i": index.astype(np.int64)}
    if op.startswith("Scatter"):
        inputs["u"] = rng.standard_normal((3, 4) if op == "ScatterND" else shape).astype(np.float32)
    attrs = {} if op == "ScatterND" else {"axis": axis}
    names = ["x", "i", *(["u"] if "u" in inputs else [])]
    agrees(model([(op, names, ["y"], attrs)], inputs, ["y"], {} if is_input else {"x": held}), inputs)


@pytest.mark.parametrize("pads", [(-1, 2), (3, -3), (-3, 4), (7, 0), (-1, 9), (-2, -1)])
def test_a_side_that_is_cut_off_is_not_repeated_on_the_other(pads):
    """onnxruntime cuts off what is negative first, and repeats the rest as often as it takes."""
    x = normal(2, 5)
    held = {"pads": np.array([0, pads[0], 0, pads[1]])}
    agrees(model([("Pad", ["x", "pads"], ["y"], {"mode": "wrap"})], {"x": x}, ["y"], held), {"x": x})


@pytest.mark.parametrize("operator", ["ArgMax", "ArgMin"])
def test_places_are_integers_for_what_reads_them(operator):
    nodes = [
        helper.make_node(operator, ["x"], ["place"], axis=-1),
        helper.make_node("Mod", ["place", "four"], ["y"]),
    ]
    proto = helper.make_model(
        helper.make_graph(
            nodes,
            "places",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 17])],
            [helper.make_tensor_value_info("y", TensorProto.INT64, [3, 1])],
            [helper.make_tensor("four", TensorProto.INT64, [], [4])],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
    )
    x = np.random.default_rng(0).standard_normal((3, 17)).astype(np.float32)
    (result,) = be.compile(proto, effort="low")(x)
    places = (x if operator == "ArgMax" else -x).argmax(-1, keepdims=True)
    assert result.dtype == np.int64
    assert np.array_equal(result, places % 4)


WHOLE = np.array([[2, 3, 5], [-2, 7, 1]])


@pytest.mark.parametrize(
    ("op", "x", "others", "attrs"),
    [
        ("Pow", np.abs(WHOLE), {"p": np.array([1.5, 0.5, 2], np.float32)}, {}),
        ("Pow", np.abs(WHOLE), {"p": np.array([3, 2, 4], np.float32)}, {}),
        ("ReduceMean", WHOLE, {"axes": np.array([1])}, {}),
        ("ReduceMean", -WHOLE.astype(np.int32), {}, {"keepdims": 0}),
        ("ReduceL2", WHOLE.astype(np.int32), {"axes": np.array([0])}, {}),
    ],
)
@pytest.mark.parametrize("held", [True, False])
def test_results_of_integers_are_cut_towards_0(op, x, others, attrs, held):
    """A fraction is cut off before anything else reads it."""
    if op != "Pow" and not held:
        pytest.skip("axes are constants")
    nodes = [(op, ["x", *others], ["y"], attrs), ("Cast", ["y"], ["z"], {"to": TensorProto.FLOAT})]
    inputs = {"x": x} if held else {"x": x, **others}
    agrees(model(nodes, inputs, ["z"], others if held else {}), inputs, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("op", "others", "attrs"),
    [
        ("Resize", {"": np.zeros(0), "sizes": np.array([1, 1, 3, 4])}, {"mode": "linear"}),
        ("ReduceLogSumExp", {}, {}),
    ],
)
def test_fractions_of_integers_that_runtimes_convert_differently_are_refused(op, others, attrs):
    x = np.arange(4, dtype=np.int32).reshape(1, 1, 2, 2)
    names = ["x", "", "", "sizes"] if op == "Resize" else ["x"]
    held = {name: array for name, array in others.items() if name}
    with pytest.raises(UnsupportedError, match=f"{op} .*integers"):
        be.compile(model([(op, names, ["y"], attrs)], {"x": x}, ["y"], held))
