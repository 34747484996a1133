"""Identity matmuls whose activations have several t (OPS 6.2): strips are numbered through them, m_k * u_kt to each."""

import numpy as np
import pytest

import buda_emu as be
from buda_emu.compiler.compile import compile as compile_model

onnx = pytest.importorskip("onnx")


@pytest.fixture(scope="module")
def model():
    """Slices of 70 rows, three tiles each, the last not full, become the rows of one slice, which a product reads."""
    from onnx import TensorProto, helper, numpy_helper

    shape = numpy_helper.from_array(np.array([4 * 70, 32], np.int64), "shape")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["products"], name="products"),
        helper.make_node("Reshape", ["products", "shape"], ["rows"], name="together"),
        helper.make_node("MatMul", ["chosen", "rows"], ["y"], name="choice"),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 70, 32])
    w = helper.make_tensor_value_info("w", TensorProto.FLOAT, [4, 32, 32])
    chosen = helper.make_tensor_value_info("chosen", TensorProto.FLOAT, [8, 4 * 70])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [8, 32])
    graph = helper.make_graph(nodes, "together", [x, w, chosen], [y], [shape])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


@pytest.mark.parametrize("effort", ["low", "default"])
def test_the_inner_dimension_is_the_rows_of_one_t(model, effort):
    compiled = compile_model(model, effort=effort)
    assert compiled.check(strict=True) == ()
    (pick,) = [op for op in compiled.netlist.ops.values() if op.attributes.identity]
    assert pick.attributes.act_t == 4
    assert pick.attributes.m_k * pick.attributes.u_kt == 3


@pytest.mark.parametrize("effort", ["low", "default"])
def test_the_rows_that_are_picked_stay_the_same(model, effort):
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-2, 3, shape).astype(np.float32) for shape in ((4, 70, 32), (4, 32, 32)))
    index = np.array([0, 69, 70, 139, 140, 200, 210, 279])
    chosen = np.eye(280, dtype=np.float32)[index]
    compiled = be.compile(model, effort=effort)
    np.testing.assert_array_equal(compiled(x, w, chosen)[0], (x @ w).reshape(280, 32)[index])
