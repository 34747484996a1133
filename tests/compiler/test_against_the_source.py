"""What is said of a compiled model: held against its source, layer by layer, and several sets of inputs in one call."""

import json

import numpy as np
import pytest

import buda_emu as be
from buda_emu.compiler.compilation import made_up
from buda_emu.compiler.compiled import difference, layer_of, value_of
from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Graph
from buda_emu.compiler.lower.layout import dense_layout, padded_size

onnx = pytest.importorskip("onnx")


def model(batch=2, sizes=(40, 50, 7)):
    """x -> relu(x W) -> softmax(. V), with the names that a user would find again."""
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    held = [
        numpy_helper.from_array(rng.standard_normal(shape, np.float32) / 6, name)
        for name, shape in (("W", sizes[:2]), ("V", sizes[1:]))
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "W"], ["h"], name="up"),
        helper.make_node("Relu", ["h"], ["r"], name="act"),
        helper.make_node("MatMul", ["r", "V"], ["s"], name="down"),
        helper.make_node("Softmax", ["s"], ["y"], name="probabilities"),
    ]
    ins = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, sizes[0]])]
    outs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, sizes[2]])]
    return helper.make_model(
        helper.make_graph(nodes, "net", ins, outs, held), opset_imports=[helper.make_opsetid("", 18)]
    )


@pytest.fixture(scope="module")
def compiled():
    return be.compile(model())


def test_ops_have_the_names_of_the_layers_they_are_made_of(compiled):
    assert {layer_of(compiled.graph, compiled.placement, op) for op in compiled.netlist.ops} == {
        "act",
        "down",
        "probabilities",
    }
    assert "probabilities.exp" in compiled.netlist.ops


def test_compare_gives_outputs_and_layers(compiled):
    pytest.importorskip("onnxruntime")
    found = compiled.compare()
    assert found.tool.startswith("onnxruntime")
    assert [item.name for item in found.outputs] == ["y"]
    assert [item.name for item in found.layers] == ["act", "down", "probabilities"]
    assert all(item.pcc is not None and item.pcc > 0.99999 for item in (*found.outputs, *found.layers))
    assert json.loads(json.dumps(found.to_json()))["schema_version"] == 1
    assert [row["name"] for row in found.output_rows] == ["y"]
    assert [row["name"] for row in found.layer_rows] == ["act", "down", "probabilities"]
    assert "probabilities  2x7" in str(found)


def test_inputs_are_given_to_onnxruntime_in_the_element_type_that_it_insists_on():
    pytest.importorskip("onnxruntime")
    from onnx import TensorProto, helper

    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT16, [4, 8]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "half", ends[:1], ends[1:])
    half = be.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), effort="low")
    assert half.compare([np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)]).outputs[0].pcc > 0.999


def test_compare_tells_a_model_that_is_wrong(compiled):
    pytest.importorskip("onnxruntime")
    coarse = be.compile(model(), df="Bfp8_b", fidelity="LoFi").compare(precision="device")
    assert coarse.layers[0].error > 100 * compiled.compare().layers[0].error


def test_without_onnxruntime_it_says_what_to_install(compiled, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    with pytest.raises(be.HostError, match=r"pip install 'buda-emu\[compare\]'"):
        compiled.compare()


def test_numerics_are_told_by_layer(compiled):
    found = compiled.numerics()
    assert [layer.layer for layer in found.layers] == ["act", "down", "probabilities"]
    assert sum(len(layer.ops) for layer in found.layers) == len(compiled.netlist.ops)
    assert all(layer.own >= 0 and layer.worst in layer.ops for layer in found.layers)
    assert found.worst(1)[0].own == max(layer.own for layer in found.layers) > 0
    assert "main cause" in str(found)
    assert json.loads(json.dumps(found.to_json()))["layers"][0]["layer"] == "act"
    assert [row["layer"] for row in found.rows] == ["act", "down", "probabilities"]
    assert [row["own_error"] for row in found.rows] == [layer.own for layer in found.layers]


def test_numerics_of_one_op(compiled):
    found = compiled.numerics([np.ones((2, 40), np.float32)], only="act")
    assert [layer.layer for layer in found.layers] == ["act"]
    with pytest.raises(be.HostError, match="no op 'nothing'"):
        compiled.numerics(only="nothing")


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_several_sets_stream_in_one_call(compiled, count):
    x = np.random.default_rng(1).standard_normal((2 * count, 40), np.float32)
    (whole,) = compiled(x)
    parts = [compiled(part)[0] for part in np.split(x, count)]
    np.testing.assert_array_equal(whole, np.concatenate(parts))


def test_an_input_of_the_models_own_shape_goes_with_each_set():
    from onnx import TensorProto, helper

    ins = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 5]) for name in "ab"]
    outs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 5])]
    both = be.compile(
        helper.make_model(helper.make_graph([helper.make_node("Sub", ["a", "b"], ["y"])], "g", ins, outs))
    )
    a, b = np.arange(15, dtype=np.float32).reshape(3, 5), np.ones((1, 5), np.float32)
    np.testing.assert_array_equal(both(a, b)[0], a - b)
    with pytest.raises(be.HostError, match="different numbers of the model's own: a 3, b 2"):
        both(a, np.ones((2, 5), np.float32))


def test_inputs_are_made_up_within_their_tables():
    b = Builder(Graph("g"))
    ids, x = b.input("ids", (4, 30), "int64"), b.input("x", (3,), "float32")
    b.embedding(np.zeros((5, 8), np.float32), ids)
    words, numbers = made_up(b.graph)
    assert words.dtype == np.int64
    assert set(words.ravel()) == set(range(5))
    assert numbers.shape == x.shape
    np.testing.assert_array_equal(made_up(b.graph, 3)[1], made_up(b.graph, 3)[1])


def test_a_value_is_read_out_of_its_tiles():
    layout = dense_layout((3, 4, 40), [1], [0], [2])
    values = np.arange(3 * 4 * 40, dtype=np.float32).reshape(3, 4, 40)
    held = np.full(layout.extent, -1, np.float32)
    held[:, :3, :40] = values.transpose(1, 0, 2)
    tiles = held.reshape(4, 1, 32, 2, 32).transpose(0, 1, 3, 2, 4).reshape(8, 1024)
    np.testing.assert_array_equal(value_of(tiles, layout), values.ravel())


def test_differences_leave_infinities_out():
    found = difference("v", np.array([1.0, 2.0, np.inf, -np.inf]), np.array([1.0, 2.5, 2.0**100, 0.0]))
    assert found.max_error == 0.5
    assert found.not_finite == 1
    assert difference("v", np.ones(3), np.ones(3)).pcc == 1
    assert difference("v", np.zeros(2), np.zeros(2)).error == 0
    assert difference("v", np.zeros(2), np.ones(2)).error is None


@pytest.mark.parametrize(
    ("tiles", "expected"),
    [(1, 1), (9, 9), (10, 10), (11, 12), (13, 14), (24, 24), (25, 25), (37, 40), (47, 48), (98, 98), (392, 392),
     (1004, 1008), (1571, 1600)],
)  # fmt: skip
def test_sizes_that_no_grid_divides_grow_a_little(tiles, expected):
    assert padded_size(32 * tiles) == padded_size(32 * tiles - 31) == 32 * expected


def test_outputs_keep_their_names_where_layers_are_called_like_them():
    from onnx import TensorProto, helper

    ins = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 5])]
    outs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 5]) for name in ("y", "z/0:1")]
    nodes = [helper.make_node("Exp", ["x"], ["y"]), helper.make_node("Neg", ["y"], ["z/0:1"], name="y.Exp")]
    found = be.compile(helper.make_model(helper.make_graph(nodes, "g", ins, outs)))
    assert found.check(strict=True) == ()
    assert [(item.label, item.queue) for item in found.io.outputs] == [("y", "y"), ("z/0:1", "z_0_1")]
    np.testing.assert_allclose(found(np.ones((1, 5), np.float32))[1], -np.exp(np.ones((1, 5))), rtol=1e-6)
