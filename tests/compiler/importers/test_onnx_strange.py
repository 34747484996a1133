"""Strange ONNX graphs, each of a kind that damaged files found: what a user gets of it."""

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest

import buda_emu as be
from buda_emu.support.errors import HostError, UnsupportedError

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402 - only where onnx is

X = np.linspace(-2, 3, 6, dtype=np.float32).reshape(2, 3)
HELD = np.arange(6, dtype=np.float32).reshape(2, 3)
KINDS = {"f": TensorProto.FLOAT, "i": TensorProto.INT64, "b": TensorProto.BOOL}


def model(nodes, outputs=("z",), inputs=None, held=None, opset=17, kind="f"):
    """Of nodes (op, operands, results, attributes); inputs are shapes by name."""
    info = helper.make_tensor_value_info
    made = [helper.make_node(op, given, gives, **attrs) for op, given, gives, attrs in nodes]
    graph = helper.make_graph(
        made,
        "g",
        [info(name, TensorProto.FLOAT, shape) for name, shape in (inputs or {"x": [2, 3]}).items()],
        [info(name, KINDS[kind], None) for name in outputs],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in (held or {"c": HELD}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def run(proto, *inputs, **options):
    """All outputs; the netlist has no finding, and an image can be written."""
    compiled = be.compile(proto, **options)
    assert not compiled.check(strict=True)
    return compiled(*inputs)


RELU = ("Relu", ["x"], ["z"], {})


# ------------------------------------------------------------------------------------------- outputs without inputs
@pytest.mark.parametrize("effort", ["low", "default"])
@pytest.mark.parametrize(
    ("proto", "expected"),
    [
        (model([("Neg", ["c"], ["z"], {})]), [-HELD]),
        (model([RELU], ["c", "z"]), [HELD, np.maximum(X, 0)]),
        (model([RELU], ["z", "x"]), [np.maximum(X, 0), X]),
        (model([], ["x"]), [X]),
        (model([("Shape", ["x"], ["z"], {})], kind="i"), [np.array([2, 3])]),
        (model([RELU, ("Identity", ["z"], ["w"], {})], ["z", "w", "z"]), [np.maximum(X, 0)] * 3),
        (model([("Sub", ["x", "x"], ["z"], {})]), [np.zeros((2, 3))]),
        (model([RELU], inputs={"x": [2, 3], "unused": [1 << 30]}), [np.maximum(X, 0)]),
    ],
    ids=["constant", "held", "input", "only an input", "shape", "twice", "nothing left", "unused"],
)
def test_outputs_that_are_constants_inputs_or_each_other(proto, expected, effort):
    inputs = [X, np.zeros((0,))][: len(proto.graph.input)]
    found = run(proto, *inputs, effort=effort)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_without_any_input():
    proto = model([("Neg", ["c"], ["z"], {})])
    del proto.graph.input[:]
    np.testing.assert_array_equal(run(proto)[0], -HELD)


@pytest.mark.parametrize("effort", ["low", "default", "high"])
def test_without_outputs(effort):
    with pytest.raises(HostError, match="compile: g: the model has no outputs: there is nothing to compute"):
        be.compile(model([RELU], []), effort=effort)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_a_torch_module_without_outputs():
    torch = pytest.importorskip("torch")

    class Nothing(torch.nn.Module):
        def forward(self, x):
            x + 1

    with pytest.raises(HostError, match="the model has no outputs"):
        be.compile(Nothing(), (torch.ones(2, 3),))


# ------------------------------------------------------------------------------------------------------------ names
@pytest.mark.parametrize(
    "name",
    ["x" * 10_000, "é" * 3_000, "\0", "\x1b[31m", "a\nb: c", "null", "host", "{", "- y", "\u202e", "日本語", " "],
    ids=lambda name: ascii(name[:9]),
)
def test_names_of_any_letters_and_length(name, tmp_path):
    proto = model([("Relu", [name], ["r"], {}), ("Neg", ["r"], [name + "z"], {})], [name + "z"], {name: [2, 3]})
    proto.graph.name = proto.graph.node[0].name = proto.graph.node[1].name = name
    compiled = be.compile(proto, effort="low")
    assert not compiled.check(strict=True)
    assert all(len(line) < 2_000 and line.isprintable() for line in compiled.text.splitlines())
    compiled.save(tmp_path)
    assert be.load(tmp_path / "model.yaml").queues
    assert compiled.io.labels == (name,)
    (found,) = compiled(X)
    np.testing.assert_array_equal(found, -np.maximum(X, 0))


def test_branches_and_loops_are_not_supported_whatever_they_see():
    info = helper.make_tensor_value_info
    branch = helper.make_graph([helper.make_node("Neg", ["x"], ["r"])], "b", [], [info("r", TensorProto.FLOAT, [2, 3])])
    turn = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["again"]), helper.make_node("Add", ["state", "x"], ["next"])],
        "body",
        [
            info("turn", TensorProto.INT64, []),
            info("go", TensorProto.BOOL, []),
            info("state", TensorProto.FLOAT, [2, 3]),
        ],
        [info("again", TensorProto.BOOL, []), info("next", TensorProto.FLOAT, [2, 3])],
    )
    nodes = [
        ("If", ["yes"], ["z"], {"then_branch": branch, "else_branch": branch}),
        ("Loop", ["", "yes", "x"], ["w"], {"body": turn}),
    ]
    with pytest.raises(UnsupportedError, match="not supported: If: 1 time, first at z; Loop: 1 time, first at w"):
        be.compile(model(nodes, ["z", "w"], held={"yes": True}))


def test_a_refusal_shortens_names_and_shows_no_control_characters():
    proto = model([("NoSuchOperator\x1b[2J", ["x"], ["z"], {})])
    proto.graph.node[0].name = "n" * 10_000
    with pytest.raises(UnsupportedError) as caught:
        be.compile(proto)
    assert len(str(caught.value)) < 500
    assert str(caught.value).isprintable()
    assert r"NoSuchOperator\u{1b}[2J: 1 time, first at nnn" in str(caught.value)


# --------------------------------------------------------------------------------------------------- empty and large
def test_values_without_elements_are_constants():
    """Of reductions, joined parts, and an input, as a cache of the first step has none."""
    empty = np.zeros((2, 0), np.float32)
    proto = model(
        [
            ("Slice", ["x", "one", "one", "axes"], ["s"], {}),
            ("Concat", ["s", "x", "past"], ["j"], {"axis": 1}),
            ("MatMul", ["past", "w"], ["m"], {}),
            ("Add", ["j", "m"], ["z"], {}),
        ],
        inputs={"x": [2, 3], "past": [2, 0]},
        held={"one": [1], "axes": [1], "w": np.zeros((0, 3), np.float32)},
    )
    (found,) = run(proto, X, empty)
    np.testing.assert_array_equal(found, X)
    nodes = [("Slice", ["x", "one", "one", "axes"], ["s"], {}), ("ReduceMax", ["s"], ["z"], {"axes": [1]})]
    (found,) = run(model(nodes, held={"one": [1], "axes": [1]}), X)
    np.testing.assert_array_equal(found, np.full((2, 1), -np.inf))


@pytest.mark.parametrize(
    ("nodes", "held", "shape"),
    [
        ([("ConstantOfShape", ["n"], ["z"], {})], [1 << 31, 2], [2, 3]),
        ([("ConstantOfShape", ["n"], ["h"], {}), ("ReduceSum", ["h"], ["z"], {})], [1 << 20, 1 << 20], [2, 3]),
        ([("Expand", ["one", "n"], ["z"], {})], [1 << 29], [2, 3]),
        ([("Tile", ["x", "n"], ["z"], {})], [1 << 40, 1], [2, 3]),
        ([("Tile", ["x", "n"], ["z"], {})], [1, 1 << 26], [2, 3]),
        ([("Pad", ["x", "n"], ["z"], {})], [0, 0, 0, 1 << 30], [2, 3]),
        ([("Trilu", ["x"], ["z"], {})], [0], [40_000, 40_000]),
        ([("CumSum", ["x", "axis"], ["z"], {})], [0], [1, 1 << 20]),
        ([("TopK", ["x", "one_of"], ["z", "k"], {})], [0], [1, 1 << 20]),
        ([("EyeLike", ["x"], ["z"], {})], [0], [40_000, 40_000]),
        ([("ReduceSum", ["x", "axis"], ["z"], {})], [0], [1, 1 << 28]),
        ([("Relu", ["x"], ["z"], {})], [0], [1] * 33),
        ([("Conv", ["x", "kernel"], ["z"], {"pads": [255] * 4})], [0], [1, 1, 512, 512]),
    ],
    ids=lambda value: value[0][0] if isinstance(value[0], tuple) else "",
)
def test_what_takes_too_much_is_refused_before_memory_is_taken(nodes, held, shape):
    proto = model(
        nodes,
        inputs={"x": shape},
        held={
            "n": np.array(held),
            "one": np.ones(1, np.float32),
            "axis": [1],
            "one_of": [1],
            "kernel": np.ones((1, 1, 511, 511), np.float32),
        },
    )
    tracemalloc.start()
    try:
        with pytest.raises(
            UnsupportedError, match=r"compile: g: not supported: .*(elements|the most is [\d,]+)\)?: 1 time"
        ):
            be.compile(proto, effort="low")
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()


def test_columns_are_not_moved_by_matrices_of_gigabytes():
    """A softmax of all dimensions, as it was before opset 13."""
    proto = model([("Softmax", ["x"], ["z"], {"axis": 0})], inputs={"x": [128, 3, 1, 63]}, opset=11)
    tracemalloc.start()
    try:
        compiled = be.compile(proto, effort="low")
        assert tracemalloc.get_traced_memory()[1] < 500 << 20  # a matrix of all columns would take 2.2 GiB
    finally:
        tracemalloc.stop()
    x = np.random.default_rng(0).standard_normal((128, 3, 1, 63), np.float32)
    powers = np.exp(x)
    np.testing.assert_allclose(compiled(x)[0], powers / powers.sum(), rtol=1e-3)


def test_where_memory_ends_the_model_is_refused(monkeypatch):
    def full(*_):
        raise MemoryError("Unable to allocate 8 GiB")

    monkeypatch.setattr("buda_emu.compiler.compilation.run", full)
    with pytest.raises(UnsupportedError, match="compile: not enough memory for the model: Unable to allocate 8 GiB"):
        be.compile(model([RELU]))


# ------------------------------------------------------------------------------------------------------ wrong models
@pytest.mark.parametrize(
    ("node", "said"),
    [
        (("MaxPool", ["p"], ["z"], {"kernel_shape": [3, 3]}), "z: MaxPool cannot be: "),
        (("Softmax", ["x"], ["z"], {"axis": 5}), "z: Softmax cannot be: .*axis"),
        (("Split", ["x", "parts"], ["z", "w"], {"axis": 1}), "z: Split cannot be: "),
        (("Gather", ["x", "nine"], ["z"], {}), "z: Gather cannot be: index 9 or 9 of 2 elements"),
        (("Min", ["x", "x"], ["z"], {"perm": [1]}), "z: Min cannot be: Unrecognized attribute: perm"),
        (
            ("Where", ["x", "x", "x"], ["z"], {}),
            r"z: Where cannot be: operand 0 \(condition\) is float32, none of bool",
        ),
        (("Relu", ["x", "x"], ["z"], {}), "z: Relu cannot be: .*input size 2"),
        (("Flatten", ["x"], ["z"], {"axis": -7}), "z: Flatten cannot be: "),
        (("GlobalAveragePool", ["x"], ["z"], {}), "z: GlobalAveragePool cannot be: "),
        (("Cast", ["x"], ["z"], {"to": 7}), "output 'z' is declared as float32, but its source gives int64"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_what_the_standard_does_not_have_is_a_broken_model(node, said):
    held = {"parts": [1, 1], "nine": [9], "p": np.zeros((1, 1, 2, 2), np.float32)}
    proto = model(
        [node], inputs={"x": [2, 3], "p": [1, 1, 2, 2]}, held={name: held[name] for name in held if name != "p"}
    )
    with pytest.raises(HostError, match=f"compile: g: {said}"):
        be.compile(proto)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda graph: graph.input.add().CopyFrom(graph.input[0]), "x"),
        (lambda graph: graph.initializer.add().CopyFrom(graph.initializer[0]), "c"),
        (lambda graph: graph.node.append(helper.make_node("Neg", ["z"], ["z"])), "z"),
        (lambda graph: graph.node.append(helper.make_node("Neg", ["z"], ["x"])), "x"),
        (lambda graph: graph.node.append(helper.make_node("Neg", ["z"], ["c"])), "c"),
    ],
    ids=["input", "held", "result", "result is an input", "result is held"],
)
def test_two_values_of_one_name(change, name):
    proto = model([RELU])
    change(proto.graph)
    with pytest.raises(HostError, match=f"compile: g: '{name}' is the name of two values"):
        be.compile(proto)


def test_a_held_value_under_the_name_of_an_input_is_its_default():
    proto = model([RELU], held={"x": HELD})
    np.testing.assert_array_equal(run(proto)[0], HELD)


@pytest.mark.parametrize("shape", [[9, 9], [2, 4], [2], [], [2, 3, 1], ["n", 4]], ids=str)
def test_an_output_of_another_shape_than_the_model_declares_has_its_own(shape):
    proto = model([RELU])
    proto.graph.output[0].CopyFrom(helper.make_tensor_value_info("z", TensorProto.FLOAT, shape))
    np.testing.assert_array_equal(run(proto, X)[0], np.maximum(X, 0))


@pytest.mark.parametrize("shape", [[2, 3], ["n", 3], [None, None]], ids=str)
def test_an_output_whose_open_sizes_are_any(shape):
    proto = model([RELU])
    proto.graph.output[0].CopyFrom(helper.make_tensor_value_info("z", TensorProto.FLOAT, shape))
    np.testing.assert_array_equal(run(proto, X)[0], np.maximum(X, 0))


def test_example_inputs_of_another_shape_change_that_of_the_outputs():
    proto = model([RELU])
    proto.graph.output[0].CopyFrom(helper.make_tensor_value_info("z", TensorProto.FLOAT, [2, 3]))
    taller = np.concatenate([X, X])
    np.testing.assert_array_equal(be.compile(proto, (taller,))(taller)[0], np.maximum(taller, 0))


# ------------------------------------------------------------------------------------------------ versions, tensors
@pytest.mark.parametrize("kind", ["model", "function"])
@pytest.mark.parametrize(
    ("domain", "version", "error"),
    [
        ("", -1, HostError),
        ("", 0, HostError),
        ("", 99, UnsupportedError),
        ("", 1 << 31, UnsupportedError),
        ("", 1 << 62, UnsupportedError),
        ("ai.onnx.ml", 99, UnsupportedError),
        ("own", 1 << 31, UnsupportedError),
        ("own", -(1 << 31) - 1, HostError),
    ],
)
def test_versions_of_operators_that_onnx_does_not_know(kind, domain, version, error):
    proto = model([RELU])
    opset = helper.make_opsetid(domain, version)
    if kind == "function":
        body = [helper.make_node("Neg", ["a"], ["b"])]
        proto.functions.append(helper.make_function("own", "f", ["a"], ["b"], body, [opset]))
    else:
        del proto.opset_import[:]
        proto.opset_import.extend([opset] if not domain else [opset, helper.make_opsetid("", 17)])
    name = domain or r"ai\.onnx"
    with pytest.raises(error, match=rf"^compile: opset of {name}: {version}: onnx \S+ knows 1 to \d+$"):
        be.compile(proto)


@pytest.mark.parametrize(("version", "error"), [(-1, HostError), (1 << 62, UnsupportedError)])
def test_versions_of_the_format_that_onnx_does_not_know(version, error):
    proto = model([RELU])
    proto.ir_version = version
    with pytest.raises(error, match=rf"^compile: ir_version: {version}: onnx \S+ knows 1 to \d+$"):
        be.compile(proto)


@pytest.mark.parametrize("domain", ["", "ai.onnx", "own"])
def test_a_domain_with_two_versions(domain):
    proto = model([RELU])
    proto.opset_import.extend([helper.make_opsetid("own", 1), helper.make_opsetid(domain, 7)])
    number = 17 if domain != "own" else 1
    with pytest.raises(HostError, match=rf"^compile: opset of .*: {number} and 7: a model has one$"):
        be.compile(proto)
    proto.opset_import[-1].CopyFrom(proto.opset_import[0])
    np.testing.assert_array_equal(run(proto, X)[0], np.maximum(X, 0))


def tensor(data_type=TensorProto.FLOAT, dims=(2, 3), **fields):
    return TensorProto(name="c", data_type=data_type, dims=dims, **fields)


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (tensor(raw_data=b"1234"), r"4 bytes for float32 of shape \[2, 3\], which takes 24"),
        (tensor(raw_data=bytes(999)), "999 bytes for float32"),
        (tensor(raw_data=b""), "0 bytes for float32"),
        (tensor(TensorProto.DOUBLE, raw_data=bytes(24)), r"24 bytes for float64 of shape \[2, 3\], which takes 48"),
        (tensor(dims=(1 << 31, 1 << 31), raw_data=b""), "0 bytes for float32 of shape"),
        (tensor(dims=(-2, -3), raw_data=bytes(24)), r"shape \[-2, -3\] has a size below 0"),
        (tensor(0, raw_data=bytes(24)), "0 is the number of no element type"),
        (tensor(99, raw_data=bytes(24)), "99 is the number of no element type"),
        (tensor(), r"0 values for shape \[2, 3\], which takes 6"),
        (tensor(float_data=[1] * 5), "5 values for shape"),
        (tensor(TensorProto.FLOAT16, int32_data=[1] * 7), "7 values for shape"),
        (tensor(float_data=[1] * 6, raw_data=bytes(24)), "values in float_data and raw_data, and a tensor has one"),
        (tensor(float_data=[1] * 6, int64_data=[1]), "values in float_data and int64_data"),
        (tensor(int64_data=[1] * 6), "values in int64_data, where float32 has them in float_data or raw_data"),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else "",
)
def test_an_initializer_that_does_not_hold_what_it_says(held, said):
    proto = model([("Add", ["x", "c"], ["z"], {})])
    proto.graph.initializer[0].CopyFrom(held)
    with pytest.raises(HostError, match=f"^compile: g: initializer 'c': {said}"):
        be.compile(proto)


@pytest.mark.parametrize(
    ("held", "kind"),
    [
        (tensor(TensorProto.STRING, string_data=[b"a"] * 6), "of type string"),
        (tensor(TensorProto.INT4, raw_data=bytes(3)), "of type int4"),
        (tensor(TensorProto.COMPLEX64, raw_data=bytes(48)), "of type complex64"),
        (tensor(raw_data=bytes(24), segment=TensorProto.Segment(begin=0, end=6)), "in segments"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_initializers_of_other_kinds_are_refused_by_name(held, kind):
    proto = model([("Add", ["x", "c"], ["z"], {})])
    proto.graph.initializer[0].CopyFrom(held)
    with pytest.raises(UnsupportedError, match=f"not supported: initializer {kind}[^;]*: 1 time, first at c"):
        be.compile(proto)


def test_an_initializer_in_each_field_is_read():
    values = [1, 0, 3, 4, 5, 6]
    halves = np.float16(values).view(np.uint16)
    for held in (
        tensor(float_data=values),
        tensor(raw_data=np.float32(values).tobytes()),
        tensor(TensorProto.DOUBLE, double_data=values),
        tensor(TensorProto.FLOAT16, int32_data=[int(half) for half in halves]),
    ):
        proto = model([("Identity", ["c"], ["w"], {}), ("Add", ["x", "x"], ["z"], {})], ["w", "z"])
        proto.graph.initializer[0].CopyFrom(held)
        proto.graph.output[0].ClearField("type")
        np.testing.assert_array_equal(be.compile(proto, effort="low")(X)[0], np.reshape(values, (2, 3)))


def test_sparse_tensors_are_refused_by_name():
    sparse = helper.make_sparse_tensor(
        numpy_helper.from_array(np.ones(2, np.float32), "s"), numpy_helper.from_array(np.array([0, 5]), "i"), [2, 3]
    )
    proto = model([("Add", ["x", "s"], ["z"], {})], ["z"])
    proto.graph.sparse_initializer.append(sparse)
    with pytest.raises(UnsupportedError, match="not supported: sparse initializers: 1 time, first at s"):
        be.compile(proto)
    proto = model([("Constant", [], ["s"], {"sparse_value": sparse}), ("Add", ["x", "s"], ["z"], {})])
    with pytest.raises(UnsupportedError, match=r"not supported: Constant .*a sparse tensor"):
        be.compile(proto)


@pytest.mark.parametrize("number", [-2, 99])
def test_an_output_of_a_type_that_there_is_not(number):
    proto = model([RELU])
    proto.graph.output[0].type.tensor_type.elem_type = number
    with pytest.raises((HostError, UnsupportedError), match=rf"g.*{number}"):
        be.compile(proto)


def test_an_output_whose_type_nobody_says():
    proto = model([RELU])
    proto.graph.output[0].ClearField("type")
    np.testing.assert_array_equal(run(proto, X)[0], np.maximum(X, 0))


def test_a_function_that_is_called_with_too_many_operands():
    proto = model([RELU])
    opset = [helper.make_opsetid("", 17)]
    proto.functions.append(
        helper.make_function("own", "f", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])], opset)
    )
    proto.opset_import.add(domain="own", version=1)
    proto.graph.node.append(helper.make_node("f", ["x", "x"], ["w"], domain="own"))
    with pytest.raises(HostError, match=r"compile: g is not a whole ONNX model .*onnx\.checker"):
        be.compile(proto)


@pytest.mark.parametrize(
    "nodes",
    [
        [("Add", ["x", "nan"], ["z"], {})],
        [("Identity", ["nan"], ["z"], {})],
        [("Where", ["yes", "nan", "x"], ["z"], {})],
    ],
    ids=lambda nodes: nodes[0][0],
)
def test_constants_with_nan_are_refused(nodes):
    held = {"nan": np.array([[np.nan, 1, 2]] * 2, np.float32), "yes": np.array([[True, False, True]] * 2)}
    with pytest.raises(UnsupportedError, match="NaN"):
        be.compile(model(nodes, held=held), effort="low")


def test_whole_numbers_that_float32_does_not_hold_are_refused():
    for number in ((1 << 24) + 1, (1 << 53) + 1, (1 << 63) - 1):
        held = {"c": np.array([number, 3])}
        with pytest.raises(UnsupportedError, match=f"c: the constant {number} is not exact in float32, in which the"):
            be.compile(model([("Identity", ["c"], ["z"], {})], held=held, kind="i"), effort="low")
    (found,) = run(model([("Identity", ["c"], ["z"], {})], held={"c": np.array([1 << 40, -3])}, kind="i"), X)
    np.testing.assert_array_equal(found, [1 << 40, -3])


# ------------------------------------------------------------------------- where onnx's evaluator is not the standard
def test_batch_norms_of_constants_take_the_given_statistics():
    held = {
        "c": HELD.reshape(1, 2, 3),
        "s": np.float32([2, 3]),
        "b": np.float32([1, -1]),
        "m": np.float32([1, 2]),
        "v": np.float32([4, 1]),
    }
    proto = model([("BatchNormalization", ["c", "s", "b", "m", "v"], ["z"], {})], held=held, opset=13)
    scale, shift, mean, variance = (held[name][:, None] for name in "sbmv")
    expected = (held["c"] - mean) / np.sqrt(variance + 1e-5) * scale + shift
    np.testing.assert_allclose(run(proto, X, effort="low")[0], expected, rtol=1e-5)


@pytest.mark.parametrize("op", ["GlobalMaxPool", "GlobalAveragePool"])
def test_pools_of_constants_keep_their_dimensions(op):
    (found,) = run(model([(op, ["c"], ["z"], {})], held={"c": HELD.reshape(2, 3, 1)}), X, effort="low")
    np.testing.assert_array_equal(found, HELD.reshape(2, 3, 1))


def test_hardmax_before_opset_13_is_over_all_dimensions_from_the_axis_on():
    x = np.random.default_rng(3).standard_normal((2, 3, 4)).astype(np.float32)
    (found,) = run(model([("Hardmax", ["x"], ["z"], {"axis": 1})], inputs={"x": [2, 3, 4]}, opset=11), x, effort="low")
    expected = (x == x.max(axis=(1, 2), keepdims=True)).astype(np.float32)
    np.testing.assert_array_equal(found, expected)


def test_functions_that_call_functions_are_counted_before_they_are_put_in_place():
    """Each calls the one before it twice: 2^40 operators."""
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    functions = [helper.make_function("own", "f0", ["a"], ["b"], [helper.make_node("Relu", ["a"], ["b"])], sets)]
    for number in range(1, 41):
        calls = [helper.make_node(f"f{number - 1}", [a], [b], domain="own") for a, b in (("a", "t"), ("t", "b"))]
        functions.append(helper.make_function("own", f"f{number}", ["a"], ["b"], calls, sets))
    proto = model([("f40", ["x"], ["z"], {"domain": "own"})])
    proto.functions.extend(functions)
    proto.opset_import.append(sets[1])
    with pytest.raises(UnsupportedError, match="131,072 operators, and more, with its own functions in place"):
        be.compile(proto)
    del proto.functions[5:]
    proto.graph.node[0].op_type = "f4"
    np.testing.assert_allclose(run(proto, X)[0], X.clip(0))


@pytest.mark.parametrize(
    ("most", "message"), [("MOST_COMPUTED", "of constants, of shape"), ("MOST_GROWN", "computed so")]
)
def test_constants_that_are_computed_of_each_other_do_not_grow_for_ever(most, message, monkeypatch):
    monkeypatch.setattr(f"buda_emu.compiler.graph.builder.{most}", 1000)
    last = ("Add", ["x", "s"], ["z"], {})
    few = [*doubled_of("c", 3), ("ReduceSum", ["c3"], ["s"], {"keepdims": 0}), last]
    np.testing.assert_allclose(run(model(few), X)[0], X + 8 * HELD.sum())
    many = [*doubled_of("c", 9), ("ReduceSum", ["c9"], ["s"], {"keepdims": 0}), last]
    with pytest.raises(UnsupportedError, match=message):
        be.compile(model(many))


def doubled_of(name, count):
    """Nodes that double a value again and again."""
    names = [name, *(f"{name}{number}" for number in range(1, count + 1))]
    return [("Concat", [a, a], [b], {"axis": 0}) for a, b in pairwise(names)]


def test_a_long_chain_becomes_several_fused_ops():
    nodes = [("Add" if k % 2 else "Mul", [f"v{k}", "k"], [f"v{k + 1}"], {}) for k in range(600)]
    held = {"k": np.float32(1.001)}
    compiled = be.compile(model(nodes, ["v600"], {"v0": [2, 3]}, held), effort="low")
    assert not compiled.check(strict=True)
    want = X.astype(np.float64)
    for k in range(600):
        want = want + 1.001 if k % 2 else want * 1.001
    np.testing.assert_allclose(compiled(X)[0], want, rtol=1e-4)
    assert max(len(op.steps) for op in compiled.placement.tiles.ops.values()) == 128
