"""What is compiled is taken by `check --strict`, and by the vendor's router where its programs are, on both chips."""

import pytest

import buda_emu as be
from shared_files import SHARED
from vendor_router import ARCHS, AVAILABLE, refusal

onnx = pytest.importorskip("onnx")
MODELS = sorted((SHARED / "compile" / "onnx").glob("*.onnx"))
QUICK = {("mlp", "wormhole_b0"), ("lenet", "grayskull"), ("lenet", "wormhole_b0"), ("dlrm", "grayskull")}


def held(model, arch, folder, **words):
    """Compile a model. Neither `check --strict` nor the vendor's programs may find anything."""
    compiled = be.compile(model, arch=arch, **words)
    assert compiled.check(strict=True) == ()
    if AVAILABLE:
        assert refusal(compiled.text, arch, folder, chips=words.get("chips", 1)) == ""
    return compiled


@pytest.mark.parametrize(
    ("path", "arch"),
    [
        pytest.param(path, arch, id=f"{path.stem}-{arch}", marks=() if (path.stem, arch) in QUICK else pytest.mark.slow)
        for path in MODELS
        for arch in ARCHS
    ],
)
def test_models_of_many_families(path, arch, tmp_path):
    held(path, arch, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [{"effort": "low"}, {"effort": "high"}, {"df": "Bfp8_b", "fidelity": "LoFi"}, {"microbatch": 1}]
)
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", ["mobilenet", "bert", "unet"])
def test_every_effort_and_format(name, arch, words, tmp_path):
    held(next(path for path in MODELS if path.stem == name), arch, tmp_path, **words)


def test_no_queue_has_the_name_that_a_copy_of_another_has(tmp_path):
    """Of copies on two chips net2pipe would take a constant `x.1` for that of `x` on chip 1 (NETLIST 1.7)."""
    from onnx import TensorProto, helper

    shapes = {"x": [40, 17], "a": [40, 5], "b": [40, 12], "y": [40, 17]}
    values = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()}
    nodes = [
        helper.make_node("Split", ["x", "sizes"], ["a", "b"], axis=1, name="split"),
        helper.make_node("Concat", ["b", "a"], ["y"], axis=1, name="join"),
    ]
    sizes = helper.make_tensor("sizes", TensorProto.INT64, [2], [5, 12])
    graph = helper.make_graph(nodes, "g", [values["x"]], [values["y"]], [sizes])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    names = [queue.name for queue in be.compile(model).placement.queues.values() if queue.role == "constant"]
    assert any(name.endswith(".1") for name in names)
    compiled = held(model, "wormhole_b0", tmp_path, chips=2)
    assert compiled.placement.copies == 2


def test_inputs_that_are_called_like_copies_of_each_other_are_not_copied(tmp_path):
    from onnx import TensorProto, helper

    names = ["x", "x.1", "y"]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [40, 33]) for name in names]
    nodes = [helper.make_node("Mul", names[:2], ["m"]), helper.make_node("Tanh", ["m"], ["y"])]
    graph = helper.make_graph(nodes, "g", values[:2], values[2:])
    compiled = held(helper.make_model(graph), "wormhole_b0", tmp_path, chips=2)
    assert compiled.placement.copies == 1
