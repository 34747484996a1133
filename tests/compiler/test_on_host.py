"""Operators that the host runs, and the parts around them."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import buda_emu as be

onnx = pytest.importorskip("onnx")


def model():
    """h = x W; d = det(h) on the host; y = relu(h) * d + the largest two of h."""
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Det", ["h"], ["d"]),
        helper.make_node("Relu", ["h"], ["r"]), helper.make_node("Mul", ["r", "d"], ["p"]),
        helper.make_node("Softmax", ["p"], ["s"]), helper.make_node("Add", ["s", "h"], ["y"]),
    ]  # fmt: skip
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 5])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "yd"],
        [numpy_helper.from_array(rng.standard_normal((5, 3)).astype(np.float32), "w")],
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    return onnx.shape_inference.infer_shapes(made)


def expected(x):
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(model()).run(None, {"x": x})


@pytest.mark.parametrize("names", [["Det"], ["Det", "softmax"], ["Det", "Softmax", "Relu"]])
def test_a_model_around_operators_of_the_host(names):
    x = np.random.default_rng(1).standard_normal((3, 5)).astype(np.float32)
    with pytest.raises(be.UnsupportedError, match="Det: 1 time"):
        be.compile(model())
    compiled = be.compile_in_parts(model(), on_host=names)
    assert compiled.check(strict=True) == ()
    for got, want in zip(compiled(x), expected(x), strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)
    assert compiled.text.count("on the host: ") == len(names)
    compiled.close()


def test_a_name_that_the_model_has_not_is_refused():
    with pytest.raises(be.HostError, match="on_host 'TopK': the model has no such operator"):
        be.compile_in_parts(model(), on_host=["Det", "TopK"])


def test_a_size_that_only_values_tell_cannot_leave_the_device():
    from onnx import TensorProto, helper

    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])
    y = helper.make_tensor_value_info("y", TensorProto.INT64, None)
    graph = helper.make_graph([helper.make_node("NonZero", ["x"], ["y"])], "g", [x], [y])
    with pytest.raises(be.UnsupportedError, match="on the host: of a size that only the values tell"):
        be.compile_in_parts(helper.make_model(graph), on_host=["NonZero"])


def test_the_command_writes_a_netlist_for_each_part(tmp_path):
    onnx.save(model(), tmp_path / "g.onnx")
    exe = Path(sys.executable).parent / "buda-emu"
    line = [exe, "compile", tmp_path / "g.onnx", "--on-host", "Det", "-o", tmp_path / "out"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, check=True)
    assert "= Det(" in done.stdout
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "model.0.tti", "model.0.yaml", "model.1.tti", "model.1.yaml",
    ]  # fmt: skip
