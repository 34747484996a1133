"""Inputs of a model whose values decide shapes: a compiled model takes values that mean its shapes, and no others.

What other values mean is asked of onnx's reference evaluator, which knows nothing of rules.
"""

import re

import numpy as np
import pytest

import buda_emu as be
from buda_emu.app.cli.main import main
from buda_emu.compiler.graph.graph import rules_of
from buda_emu.emulator.image.shape_rules import RESULT_SHAPES

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402 - only where onnx is
from onnx.reference import ReferenceEvaluator  # noqa: E402

from buda_emu.compiler.importers.from_onnx.reader import read_proto  # noqa: E402

X = np.arange(1, 7, dtype=np.float32)
FORMS = {
    "Reshape": ((2, 3), (3, 2), (-1, 7)),
    "Squeeze": ((1, 6, 1), (6, 1), (-4, 4)),
    "Unsqueeze": ((2, 3), (2, 1, 3), (-4, 4)),
    "Expand": ((2, 1, 3), (2, 2, 3), (0, 4)),
    "Tile": ((2, 3), (4, 3), (0, 4)),
    "ConstantOfShape": (None, (2, 3), (-1, 5)),
}
"""Of each operator the shape of its operand, the stated shape of its result, and the range of drawn values."""
COUNT = {"Reshape": 2, "Squeeze": 1, "Unsqueeze": 1, "Expand": 3, "Tile": 2, "ConstantOfShape": 2}
DRAWN = 24


def model_of(nodes, inputs, outputs, constants=()):
    """`inputs` and `outputs` are name, shape and type."""
    infos = [
        [helper.make_tensor_value_info(name, kind, shape) for name, shape, kind in part] for part in (inputs, outputs)
    ]
    held = [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in constants]
    graph = helper.make_graph(nodes, "model", *infos, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


def one_operator(operator, stated=True):
    """A model of one operator whose shape is decided by the input `by`."""
    shape, result, _ = FORMS[operator]
    inputs = [] if shape is None else [("x", shape, TensorProto.FLOAT)]
    inputs.append(("by", [COUNT[operator]], TensorProto.INT64))
    node = helper.make_node(operator, [name for name, *_ in inputs], ["y"], name="node")
    return model_of([node], inputs, [("y", result if stated else None, TensorProto.FLOAT)])


def data_of(operator):
    shape = FORMS[operator][0]
    return {} if shape is None else {"x": X.reshape(shape)}


def meant(model, arrays):
    """What onnx's evaluator gives, None where it refuses the values."""
    try:
        (result,) = ReferenceEvaluator(model).run(None, arrays)
    except Exception:  # noqa: BLE001 - numpy's many
        return None
    return np.asarray(result)


def drawn(operator):
    stream = np.random.default_rng(7)
    low, high = FORMS[operator][2]
    return [stream.integers(low, high, COUNT[operator]) for _ in range(DRAWN)]


def holds(call, model, arrays):
    """Whether the values mean the model's shape; the call is right then, and else refused by the name of the input."""
    wanted = meant(model, arrays)
    stated = tuple(dim.dim_value for dim in model.graph.output[0].type.tensor_type.shape.dim)
    if wanted is not None and wanted.shape == stated:
        (got,) = call(**arrays)
        assert got.shape == stated
        np.testing.assert_allclose(got, wanted, rtol=1e-2)
        return True
    with pytest.raises(be.HostError, match=r"^input by: ") as error:
        call(**arrays)
    values = [int(value) for value in arrays["by"]]
    assert f"by {values} gives y" in str(error.value)
    assert f"compiled for {list(stated)}" in str(error.value)
    return False


def test_each_operator_with_a_rule_is_tried():
    assert set(FORMS) == set(RESULT_SHAPES)


@pytest.mark.parametrize("operator", FORMS)
def test_values_that_mean_another_shape_are_refused_by_a_call_and_after_loading(operator, tmp_path):
    model = one_operator(operator)
    compiled = be.compile(model, effort="low")
    compiled.save(tmp_path)
    loaded = be.load_model(tmp_path)
    examples = dict(zip(compiled.io.labels, compiled.example_inputs(), strict=True))
    assert holds(compiled, model, examples)
    assert holds(loaded, model, dict(zip(loaded.io.labels, loaded.example_inputs(), strict=True)))
    refused = 0
    for values in drawn(operator):
        arrays = {**data_of(operator), "by": values}
        refused += not holds(compiled, model, arrays)
        assert holds(loaded, model, arrays) == (meant_shape(model, arrays) == FORMS[operator][1])
    assert refused >= 2


def meant_shape(model, arrays):
    result = meant(model, arrays)
    return None if result is None else result.shape


@pytest.mark.parametrize("operator", FORMS)
def test_example_values_say_what_a_model_is_compiled_for(operator):
    """They win over the shape that the model states, and serve where it states none."""
    shapes = set()
    for stated in (True, False):
        model = one_operator(operator, stated=stated)
        for values in drawn(operator):
            arrays = {**data_of(operator), "by": values}
            wanted = meant(model, arrays)
            if wanted is None:
                with pytest.raises(be.UnsupportedError):
                    read_proto(model, arrays)
            elif wanted.size:
                graph = read_proto(model, arrays)
                assert graph[graph.outputs[0].value].shape == wanted.shape
                shapes.add(wanted.shape)
                (rule,) = rules_of(graph)
                rule.check(arrays)
    assert len(shapes) >= 2


def test_the_node_test_of_expand_with_the_rank_of_its_operand():
    """Stated [1, 3, 3]; [1, 1] means [1, 3, 1]."""
    inputs = [("x", [1, 3, 1], TensorProto.FLOAT), ("shape", [2], TensorProto.INT64)]
    model = model_of([helper.make_node("Expand", ["x", "shape"], ["y"])], inputs, [("y", [1, 3, 3], TensorProto.FLOAT)])
    x = np.ones((1, 3, 1), np.float32)
    compiled = be.compile(model, effort="low")
    assert compiled(x, np.array([3, 3]))[0].shape == (1, 3, 3)
    text = "input shape: Expand by [1, 1] gives y the shape [1, 3, 1], the model was compiled for [1, 3, 3]"
    with pytest.raises(be.HostError, match=re.escape(text)):
        compiled(x, np.array([1, 1]))


@pytest.mark.parametrize("values", [np.array([2.5, 3]), np.array([3, 2, 1]), np.array([[3], [2]])])
def test_an_input_that_decides_a_shape_has_its_own_shape_and_type(values):
    compiled = be.compile(one_operator("Reshape"), effort="low")
    with pytest.raises(be.HostError, match="input by"):
        compiled(X.reshape(2, 3), values)


def made_of_parts():
    """A shape of an element of an input, a constant, and another input, moved about."""
    nodes = [
        helper.make_node("Slice", ["sizes", "one", "two"], ["size"]),
        helper.make_node("Unsqueeze", ["other", "nought"], ["row"]),
        helper.make_node("Concat", ["size", "minus", "row"], ["shape"], axis=0),
        helper.make_node("Cast", ["shape"], ["long"], to=TensorProto.INT64),
        helper.make_node("Reshape", ["x", "long"], ["y"]),
    ]
    inputs = [("x", [12], TensorProto.FLOAT), ("sizes", [3], TensorProto.INT32), ("other", [], TensorProto.INT32)]
    constants = [
        ("one", np.array([1])), ("two", np.array([2])), ("nought", np.array([0])), ("minus", np.array([-1], np.int32)),
    ]  # fmt: skip
    return model_of(nodes, inputs, [("y", [2, 2, 3], TensorProto.FLOAT)], constants)


def test_a_shape_that_is_made_of_elements_of_inputs_is_checked():
    compiled = be.compile(made_of_parts(), effort="low")
    x = np.arange(12, dtype=np.float32)
    assert compiled(x, np.array([9, 2, 9]), np.array(3))[0].shape == (2, 2, 3)
    text = "inputs sizes, other: Reshape by [3, -1, 2] gives y the shape [3, 2, 2]"
    with pytest.raises(be.HostError, match=re.escape(text)):
        compiled(x, np.array([2, 3, 2]), np.array(2))


@pytest.mark.parametrize("operator", ["Add", "Mul", "Max"])
def test_a_shape_that_is_computed_from_inputs_is_refused_by_name(operator):
    nodes = [helper.make_node(operator, ["by", "by"], ["shape"]), helper.make_node("Reshape", ["x", "shape"], ["y"])]
    inputs = [("x", [4], TensorProto.FLOAT), ("by", [2], TensorProto.INT64)]
    model = model_of(nodes, inputs, [("y", [2, 2], TensorProto.FLOAT)])
    with pytest.raises(be.UnsupportedError, match=r"Reshape .shape or axes that is computed or an input"):
        read_proto(model)


def test_a_stated_shape_that_no_values_mean_is_refused():
    inputs = [("x", [2, 3], TensorProto.FLOAT), ("by", [2], TensorProto.INT64)]
    for operator, stated in (("Tile", [3, 3]), ("Reshape", [2, 4]), ("Expand", [2, 1])):
        model = model_of([helper.make_node(operator, ["x", "by"], ["y"])], inputs, [("y", stated, TensorProto.FLOAT)])
        with pytest.raises(be.UnsupportedError, match=operator):
            read_proto(model)


def test_one_input_that_decides_two_shapes_must_mean_both():
    nodes = [helper.make_node("Reshape", ["x", "by"], ["y"]), helper.make_node("Tile", ["x", "by"], ["z"])]
    inputs = [("x", [2, 3], TensorProto.FLOAT), ("by", [2], TensorProto.INT64)]
    for tiled, right in (([6, 6], True), ([2, 3], False)):
        outputs = [("y", [3, 2], TensorProto.FLOAT), ("z", tiled, TensorProto.FLOAT)]
        model = model_of(nodes, inputs, outputs)
        if right:
            assert [rule.example for rule in rules_of(read_proto(model))] == [(3, 2), (3, 2)]
        else:
            with pytest.raises(be.UnsupportedError, match="no values of it give the shape"):
                read_proto(model)


def with_a_host_part():
    nodes = [
        helper.make_node("Reshape", ["x", "by"], ["y"]),
        helper.make_node("Det", ["y"], ["det"]),
    ]
    inputs = [("x", [4], TensorProto.FLOAT), ("by", [2], TensorProto.INT64)]
    outputs = [("y", [2, 2], TensorProto.FLOAT), ("det", [], TensorProto.FLOAT)]
    return model_of(nodes, inputs, outputs)


def test_a_model_in_parts_refuses_other_values_before_and_after_loading(tmp_path):
    parted = be.compile_in_parts(with_a_host_part(), effort="low")
    parted.save(tmp_path)
    loaded = be.load_model(tmp_path)
    x = np.array([1, 2, 3, 5], np.float32)
    for call in (parted, loaded):
        np.testing.assert_allclose(call(x, np.array([2, -1]))[0], x.reshape(2, 2), rtol=1e-2)
        assert call(*call.example_inputs())[0].shape == (2, 2)
        with pytest.raises(be.HostError, match=r"input by: Reshape by \[4, 1\] gives y the shape \[4, 1\]"):
            call(x, np.array([4, 1]))


def test_each_of_several_sets_is_checked(tmp_path):
    compiled = be.compile(one_operator("Reshape"), effort="low")
    compiled.save(tmp_path)
    x = np.concatenate([X.reshape(2, 3)] * 2)
    for call in (compiled, be.load_model(tmp_path)):
        assert call(x, np.array([3, 2]))[0].shape == (6, 2)
        assert call(x, np.array([3, 2, -1, 2]))[0].shape == (6, 2)
        with pytest.raises(be.HostError, match=r"input by: Reshape by \[2, 3\]"):
            call(x, np.array([3, 2, 2, 3]))


def test_programs_of_one_netlist_check_their_own_inputs(tmp_path):
    model = one_operator("Reshape")
    programs = {name: be.Program(model, (X.reshape(2, 3), np.array([3, 2])), keeps={}) for name in ("one", "two")}
    compiled = be.compile_programs(programs, effort="low")
    compiled.save(tmp_path)
    for call in (compiled, be.load_model(tmp_path)):
        assert call(X.reshape(2, 3), np.array([3, -1]), program="two")[0].shape == (3, 2)
        with pytest.raises(be.HostError, match=r"input two\.by: Reshape by \[6, 1\]"):
            call(X.reshape(2, 3), np.array([6, 1]), program="two")


def test_the_arrays_of_a_run_are_checked(tmp_path, capsys):
    be.compile(one_operator("Reshape"), effort="low").save(tmp_path)
    command = ["run", str(tmp_path / "model.tti"), "--inputs", str(tmp_path / "x.npz"), "--quiet"]
    np.savez(tmp_path / "x.npz", x=X.reshape(2, 3), by=np.array([3, 2]))
    assert main(command) == 0
    np.savez(tmp_path / "x.npz", x=X.reshape(2, 3), by=np.array([1, 6]))
    assert main(command) != 0
    assert "input by: Reshape by [1, 6]" in capsys.readouterr().err
