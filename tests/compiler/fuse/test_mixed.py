"""Formats op by op."""

import numpy as np
import pytest
import yaml

import buda_emu as be
from buda_emu.support.errors import HostWarning

onnx = pytest.importorskip("onnx")


def model():
    """first: a product, its bias and a clamp; second: a product and a softmax."""
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    held = {"w": rng.standard_normal((40, 50)), "b": rng.standard_normal(50), "v": rng.standard_normal((50, 33))}
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["h"], name="layer.0.first"),
        helper.make_node("Relu", ["h"], ["r"], name="layer.0.relu"),
        helper.make_node("MatMul", ["r", "v"], ["p"], name="layer.1.second"),
        helper.make_node("Softmax", ["p"], ["y"], name="layer.1.softmax"),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [8, 40])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [8, 33])],
        [numpy_helper.from_array(array.astype(np.float32), name) for name, array in held.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def fields(compiled):
    """(out_df, acc_df, fidelity) of every op."""
    return {
        op.name: (op.out_df, op.acc_df, op.math_fidelity)
        for graph in compiled.netlist.graphs.values()
        for op in graph.ops
    }


@pytest.mark.parametrize("arch", ["wormhole_b0", "grayskull", "blackhole"])
def test_rules_name_ops_by_pattern_and_the_last_one_holds(arch):
    rules = [{"match": "*", "fidelity": "HiFi2"}, {"match": "layer.0.*", "df": "Bfp8_b", "fidelity": "LoFi"}]
    plain, mixed = (be.compile(model(), arch=arch, mixed=item) for item in (None, rules))
    assert mixed.check(strict=True) == ()
    found = fields(mixed)
    assert {item for name, item in found.items() if name.startswith("layer.0")} == {("Bfp8_b", "Float16_b", "LoFi")}
    others = [item for name, item in found.items() if not name.startswith("layer.0")]
    assert set(others) == {("Float16_b", "Float16_b", "HiFi2")}
    x = np.linspace(-1, 1, 320, dtype=np.float32).reshape(8, 40)
    np.testing.assert_array_equal(mixed(x)[0], plain(x)[0])
    assert not np.array_equal(mixed(x, precision="device")[0], plain(x, precision="device")[0])
    np.testing.assert_allclose(mixed(x, precision="device")[0], plain(x)[0], atol=0.1)


def test_sums_of_some_ops_may_be_wider(tmp_path):
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump([{"match": "layer.1.second*", "acc_df": "Float32"}]))
    mixed = be.compile(model(), mixed=path)
    assert mixed.check(strict=True) == ()
    wide = [name.startswith("layer.1.second") for name, item in fields(mixed).items() if item[1] == "Float32"]
    assert wide == [True]


@pytest.mark.parametrize(
    ("rules", "arch", "complaint"),
    [
        ({"match": "*"}, "wormhole_b0", "not a list of maps"),
        ([{"df": "Bfp8_b"}], "wormhole_b0", r"rule 1: not a map with a pattern `match`"),
        ([{"match": "*", "format": "Bfp8_b"}], "wormhole_b0", "rule 1: 'format' is not one of: match, df"),
        ([{"match": "*", "df": "Bfp3"}], "wormhole_b0", "df 'Bfp3' is not one of"),
        ([{"match": "*", "df": ["Bfp8"]}], "wormhole_b0", r"df \['Bfp8'\] is not one of"),
        ([{"match": "*", "df": "Float16"}], "wormhole_b0", "another exponent width than --df Float16_b"),
        ([{"match": "*", "acc_df": "Float32"}], "grayskull", "grayskull has no Float32"),
    ],
)
def test_rules_that_are_none_are_refused(rules, arch, complaint):
    with pytest.raises(be.HostError, match=complaint):
        be.compile(model(), arch=arch, mixed=rules)


def test_a_file_that_is_none_is_refused(tmp_path):
    (tmp_path / "bad.yaml").write_text("[")
    for name in ("bad.yaml", "missing.yaml"):
        with pytest.raises(be.HostError, match=f"{name}: not rules of formats"):
            be.compile(model(), mixed=tmp_path / name)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize(("df", "other"), [("Float16_b", "Bfp8_b"), ("Bfp8_b", "Float16_b")])
def test_what_writes_a_state_gives_the_format_of_its_ram(df, other):
    """Rules are for ops: a ram keeps the model's format, and who writes it packs that (V079)."""
    torch = pytest.importorskip("torch")
    net, words = torch.nn.Linear(40, 7), {"loss": "mse", "df": df, "effort": "low"}
    training = be.compile(net, (torch.zeros(8, 40),), mixed=[{"match": "*", "df": other}], **words)
    assert training.check(strict=True) == ()
    found = {op.out_df for graph in training.netlist.graphs.values() for op in graph.ops}
    assert found == {df, other}


@pytest.mark.parametrize("inner", [384, 576, 704])
def test_wide_operands_of_a_product_have_room(inner):
    """Blocks are cut for the formats that operands have, not for that of the op which reads them."""
    from onnx import TensorProto, helper, numpy_helper

    graph = helper.make_graph(
        [helper.make_node("Sigmoid", ["x"], ["s"]), helper.make_node("MatMul", ["s", "w"], ["y"], name="narrow")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [512, inner])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [512, 32])],
        [numpy_helper.from_array(np.ones((inner, 32), np.float32), "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    rules = [{"match": "narrow", "df": "Bfp8_b"}]
    compiled = be.compile(model, arch="grayskull", effort="low", mixed=rules)
    (product,) = [op.op for op in compiled.placement.ops.values() if op.op.type == "matmul"]
    assert product.precision.reads == ("Float16_b", "Bfp8_b")
    assert compiled.check(strict=True) == ()


def test_a_rule_that_fits_no_op_is_reported_at_the_line_of_the_caller():
    rules = [{"match": "*", "df": "Bfp8_b"}, {"match": "layr.0.first*", "fidelity": "LoFi"}]
    with pytest.warns(HostWarning) as warned:
        be.compile(model(), mixed=rules, effort="low")
    (warning,) = warned
    assert "mixed: rule 2: no op of the model matches 'layr.0.first*'" in str(warning.message)
    assert "did you mean 'layer.0.first'?" in str(warning.message)
    assert warning.filename == __file__


@pytest.mark.filterwarnings("error")
def test_rules_that_fit_are_not_reported():
    be.compile(model(), mixed=[{"match": "*", "df": "Bfp8_b"}, {"match": "*softmax*", "df": "Float16_b"}], effort="low")


def test_the_command_prints_which_rule_fits_no_op(tmp_path, capsys):
    from buda_emu.app.cli.main import main

    onnx.save(model(), tmp_path / "model.onnx")
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump([{"match": "nothing*", "df": "Bfp8_b"}]))
    arguments = ["compile", tmp_path / "model.onnx", "--mixed", tmp_path / "rules.yaml", "--effort", "low"]
    assert main([*map(str, arguments)]) == 0
    error = capsys.readouterr().err
    assert "warning: compile: " in error
    assert "rule 1: no op of the model matches 'nothing*'" in error
    assert "names are such as layer.0.first" in error
