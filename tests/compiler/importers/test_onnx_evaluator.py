"""Operators that onnx's evaluator computes for the host: it is used only where it is right, which the compiler finds
out."""

from itertools import product

import numpy as np
import pytest

import buda_emu as be

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402 - only where onnx is

from buda_emu.compiler.importers.from_onnx import host  # noqa: E402
from buda_emu.compiler.importers.from_onnx.evaluator import make_evaluator  # noqa: E402
from buda_emu.compiler.importers.from_onnx.reader import read_proto  # noqa: E402
from buda_emu.compiler.importers.operators import NotSupportedError  # noqa: E402

KINDS = {"f": TensorProto.FLOAT, "i": TensorProto.INT64}


def model(op, shapes, opset, constants=None, kinds="", attributes=None):
    """One operator of inputs a, b and so on, by their shapes; those in `constants` are initializers."""
    names = "abcdefgh"[: len(shapes) + len(constants or {})]
    infos = [
        helper.make_tensor_value_info(name, KINDS[kind], shape)
        for name, kind, shape in zip(names, kinds or "f" * len(shapes), shapes, strict=False)
    ]
    graph = helper.make_graph(
        [helper.make_node(op, list(names), ["y"], **(attributes or {}))],
        "g",
        infos,
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return onnx.shape_inference.infer_shapes(proto)


def sampled(opset, **attributes):
    return model("GridSample", ([2, 3, 4, 5], [2, 3, 2, 2]), opset, attributes=attributes)


@pytest.mark.parametrize(("opset", "modes"), [(16, ["bilinear", "bicubic"]), (20, ["linear", "cubic"])])
def test_samples_of_a_grid_are_those_of_onnxruntime(opset, modes):
    """The names of the modes changed in opset 20, and the evaluator knows the new ones."""
    runtime = pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(0)
    image = rng.standard_normal((2, 3, 4, 5)).astype(np.float32)
    grid = rng.uniform(-1.3, 1.3, (2, 3, 2, 2)).astype(np.float32)
    cases = product([None, "nearest", *modes], ["zeros", "border", "reflection"], [0, 1])
    refused = []
    for mode, padding, align in cases:
        named = {} if mode is None else {"mode": mode}
        proto = sampled(opset, padding_mode=padding, align_corners=align, **named)
        session = runtime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
        try:
            run = make_evaluator(proto)
        except NotSupportedError:
            refused.append((mode, padding))
            continue
        expected = session.run(None, {"a": image, "b": grid})[0]
        np.testing.assert_allclose(run(image, grid)[0], expected, rtol=1e-4, atol=1e-5)
    assert refused == [(modes[1], "border")] * 2


def test_a_model_that_samples_a_grid_runs_also_as_an_image(tmp_path):
    proto = sampled(16)
    rng = np.random.default_rng(1)
    image = rng.standard_normal((2, 3, 4, 5)).astype(np.float32)
    grid = rng.uniform(-1, 1, (2, 3, 2, 2)).astype(np.float32)
    compiled = be.compile_in_parts(proto)
    (found,) = compiled(image, grid)
    (expected,) = make_evaluator(proto)(image, grid)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    compiled.close()


def test_samples_within_a_branch_have_the_evaluators_names_too():
    text = """<ir_version: 8, opset_import: ["" : 16]>
    g (float[1, 1, 2, 2] x, float[1, 1, 1, 2] p, bool c) => (float[1, 1, 1, 1] y) {
        y = If (c) <
            then_branch = a () => (float[1, 1, 1, 1] s) { s = GridSample <mode = "bilinear"> (x, p) },
            else_branch = b () => (float[1, 1, 1, 1] t) { t = GridSample (x, p) }
        >
    }"""
    graph = read_proto(onnx.parser.parse_model(text), on_host=["*"])
    (node,) = [node for node in graph if node.op == "host"]
    values = {"x": np.arange(4).reshape(1, 1, 2, 2), "p": np.zeros((1, 1, 1, 2))}
    for choice in (True, False):
        arrays = [{**values, "c": np.array(choice)}[name.removesuffix(".in")] for name in node.inputs]
        assert node.attrs["run"](*arrays)[0].item() == 1.5


# ------------------------------------------------------------------------------------ tried when the model is compiled
def test_what_the_evaluator_does_not_compute_is_refused_when_the_model_is_compiled():
    """It looks at the mode of a GridSample only when it is run."""
    with pytest.raises(
        be.UnsupportedError, match=r"GridSample \(.*on the host: onnx's evaluator: .*: 1 time, first at y"
    ):
        read_proto(sampled(16, mode="quintic"), on_host=["*"])


def failing(monkeypatch, refuses):
    """Let the evaluator refuse the operands for which `refuses` is true; return all that it was given."""
    given = []

    def make(_):
        def run(*arrays):
            given.append(arrays)
            if refuses(*arrays):
                raise NotSupportedError("onnx's evaluator: no such thing")
            return [np.zeros(())]

        return run

    monkeypatch.setattr(host, "make_evaluator", make)
    return given


DET = ("Det", ([3, 3],), 18)


def test_an_operator_that_fails_for_whatever_it_is_given_is_refused_by_name(monkeypatch):
    given = failing(monkeypatch, lambda _: True)
    with pytest.raises(
        be.UnsupportedError, match=r"Det \(.*on the host: onnx's evaluator: no such thing\): 1 time, first at y"
    ):
        read_proto(model(*DET), on_host=["*"])
    assert [arrays[0].max() for arrays in given] == [0, 1]


@pytest.mark.parametrize("number", [0, 1])
def test_one_that_refuses_only_some_values_is_not(number, monkeypatch):
    failing(monkeypatch, lambda x: x.max() == number)
    assert [node.op for node in read_proto(model(*DET), on_host=["*"])] == ["input", "host"]


def test_one_that_gives_another_shape_is_refused(monkeypatch):
    monkeypatch.setattr(host, "make_evaluator", lambda _: lambda *_: [np.zeros(2)])
    with pytest.raises(be.UnsupportedError, match=r"Det \(.*onnx's evaluator gives shape \[2\], not \[\]"):
        read_proto(model(*DET), on_host=["*"])


def test_too_large_ones_and_those_whose_whole_numbers_nobody_knows_are_not_tried(monkeypatch):
    given = failing(monkeypatch, lambda *_: True)
    monkeypatch.setattr(host, "MOST_TRIED", 9)
    read_proto(model(*DET), on_host=["*"])
    monkeypatch.setattr(host, "MOST_TRIED", 1 << 13)
    read_proto(model("RoiAlign", ([1, 1, 4, 4], [1, 4], [1]), 16, kinds="ffi"), on_host=["*"])
    assert not given


def test_alike_operators_are_tried_once(monkeypatch):
    given = failing(monkeypatch, lambda _: False)
    text = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[3, 3] x, float[2, 2] z) => (float a, float b, float c) { a = Det (x)  b = Det (x)  c = Det (z) }"""
    read_proto(onnx.parser.parse_model(text), on_host=["*"])
    assert [arrays[0].shape for arrays in given] == [(3, 3), (2, 2)]


def test_constants_are_tried_as_they_are(monkeypatch):
    given = failing(monkeypatch, lambda *_: False)
    monkeypatch.setattr(host, "find_shape_fault", lambda *_: "")
    counts = np.array([2, 1])
    read_proto(model("Tile", ([2, 3],), 13, {"b": counts}), on_host=["Tile"])
    np.testing.assert_array_equal(given[0][1], counts)


# --------------------------------------------------------------------------------------------- where it is wrong
@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("opset", [11, 13])
def test_a_softmax_of_several_dimensions_is_not_that_of_the_evaluator(op, opset):
    """Before opset 13, the dimensions from the axis on are one."""
    held = np.random.default_rng(2).standard_normal((2, 3, 4)).astype(np.float32)
    proto = model(op, ([2, 3, 4],), opset, attributes={"axis": 1})
    if opset < 13:
        with pytest.raises(NotSupportedError, match="before opset 13"):
            make_evaluator(proto)
        rows = held.reshape(2, 12)
    else:
        make_evaluator(proto)
        rows = held.transpose(0, 2, 1)
    parts = np.exp(rows) / np.exp(rows).sum(-1, keepdims=True)
    expected = {"Softmax": parts, "LogSoftmax": np.log(parts), "Hardmax": rows == rows.max(-1, keepdims=True)}[op]
    expected = expected.reshape(2, 3, 4) if opset < 13 else expected.transpose(0, 2, 1)
    constant = model(op, (), opset, {"a": held}, attributes={"axis": 1})
    graph = read_proto(constant)
    np.testing.assert_allclose(graph[graph.outputs[0].value].value, expected, rtol=1e-5, atol=1e-6)
    last = model(op, ([2, 3, 4],), opset, attributes={"axis": -1})
    assert make_evaluator(last)(held)[0].shape == (2, 3, 4)


def test_old_batch_norms_are_not_left_to_the_evaluator():
    shapes = ([1, 2, 3], [2], [2], [2], [2])
    with pytest.raises(be.UnsupportedError, match=r"BatchNormalization \(.*before opset 14"):
        read_proto(model("BatchNormalization", shapes, 9), on_host=["BatchNormalization"])
    graph = read_proto(model("BatchNormalization", shapes, 15), on_host=["BatchNormalization"])
    assert "host" in [node.op for node in graph]
