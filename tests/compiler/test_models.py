"""Models of many families against what onnxruntime and torch say of them."""

from pathlib import Path

import numpy as np
import pytest

import buda_emu as be
from buda_emu.compiler.compiled import CompiledModel
from shared_files import SHARED

pytest.importorskip("onnx")
MODELS = sorted((SHARED / "compile" / "onnx").glob("*.onnx"))


def case(path):
    """Inputs and expected outputs."""
    with np.load(path.with_suffix(".npz")) as data:
        ins = [data[f"in{n}"] for n in range(sum(key.startswith("in") for key in data.files))]
        return ins, [data[f"out{n}"] for n in range(sum(key.startswith("out") for key in data.files))]


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_outputs_are_those_of_onnxruntime(path):
    inputs, expected = case(path)
    compiled = be.compile(path)
    assert compiled.check(strict=True) == ()
    for got, want in zip(compiled(*inputs), expected, strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=2e-3, atol=2e-4 * max(1.0, float(np.abs(want).max())))


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["grayskull", "blackhole"])
@pytest.mark.parametrize("path", MODELS[:3], ids=lambda path: path.stem)
def test_other_architectures_have_no_findings(path, arch):
    assert be.compile(path, arch=arch).check(strict=True) == ()


@pytest.mark.skipif(not MODELS, reason="needs ../shared")
def test_a_saved_model_runs_from_its_image(tmp_path):
    path = next(item for item in MODELS if item.stem == "dlrm")
    inputs, expected = case(path)
    compiled = be.compile(path)
    _, image = compiled.save(tmp_path)
    held = be.load_image(image)
    arrays = held.model.queues(dict(zip(compiled.io.labels, inputs, strict=True)))
    with held.emulator("ideal") as machine:
        for name, array in arrays.items():
            machine.push(name, array)
        machine.run("run_fwd_0", {"$p_loop_count": 1})
        found = held.host_outputs({item.queue: machine.pop(item.queue) for item in held.model.outputs})
    np.testing.assert_allclose(next(iter(found.values())), expected[0], rtol=1e-3, atol=1e-4)


@pytest.mark.skipif(not MODELS, reason="needs ../shared")
def test_the_model_has_a_pace():
    perf = be.compile(next(item for item in MODELS if item.stem == "mlp")).perf()
    assert perf.cycles > 0
    assert perf.inputs_per_second > 0
    assert len(repr(perf)) < 120
    assert f"{perf.cycles:.0f} cycles for {perf.inputs} input" in repr(perf)


def test_calls_may_be_repeated_and_closed(mlp):
    compiled = be.compile(mlp)
    assert isinstance(compiled, CompiledModel)
    x = np.linspace(-1, 1, 2 * 5, dtype=np.float32).reshape(2, 5)
    first = compiled(x)[0]
    compiled.close()
    np.testing.assert_array_equal(first, compiled(x)[0])


def test_wrong_inputs_are_refused_by_name(mlp):
    compiled = be.compile(mlp)
    with pytest.raises(be.HostError, match="the model takes 1: x"):
        compiled()
    with pytest.raises(be.HostError, match=r"input x: shape \[3\], the model takes \[2, 5\]"):
        compiled(np.zeros(3, np.float32))


def test_run_takes_inputs_by_name_in_any_form(mlp, tmp_path):
    compiled = be.compile(mlp)
    loaded = be.load_model(compiled.save(tmp_path)[1])
    torch = pytest.importorskip("torch")
    x = torch.linspace(-1, 1, 2 * 5).reshape(2, 5)
    np.testing.assert_array_equal(compiled.run({"x": x.requires_grad_()})[0], compiled(x)[0])
    for inputs, kind in ((x, "Tensor"), (x.detach().numpy(), "ndarray"), ((x,), "tuple")):
        for model in (compiled, loaded):
            with pytest.raises(be.HostError, match=rf"run: a {kind}: give inputs by name \(x\), or call the model"):
                model.run(inputs)


def test_capitals_in_the_suffix_do_not_hide_a_model(mlp, tmp_path):
    path = tmp_path / "NET.ONNX"
    path.write_bytes(mlp.SerializeToString())
    image = Path(be.compile(path).save(tmp_path / "saved")[1])
    image = image.rename(image.with_suffix(".TTI"))
    assert be.load_model(image.parent).io == be.load_model(image).io
    with pytest.raises(be.HostError, match="is a model that is not compiled"):
        be.load_model(path)


@pytest.mark.parametrize("name", ["model.py", "model.py:model", "weights.pt", "weights.pth"])
def test_what_is_no_model_file_yet_is_told_how_to_become_one(name):
    with pytest.raises(be.HostError, match=r"ends neither in .onnx nor in .pt2: write the module with torch\.export"):
        be.compile(name)


def test_every_unsupported_operator_is_named_with_its_count():
    from onnx import TensorProto, helper

    nodes = [helper.make_node("NonZero", ["x"], [f"n{k}"]) for k in range(2)]
    nodes.append(helper.make_node("Det", ["x"], ["d"]))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 2])
    outs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("n0", "n1", "d")]
    model = helper.make_model(helper.make_graph(nodes, "g", [x], outs))
    with pytest.raises(be.UnsupportedError, match=r"NonZero: 2 times.*Det: 1 time"):
        be.compile(model)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [({"arch": "jawbridge"}, "arch 'jawbridge'"), ({"df": "Int8"}, "df 'Int8'"), ({"fidelity": "Hi"}, "fidelity 'Hi'")],
)
def test_wrong_words_are_refused(mlp, options, complaint):
    with pytest.raises(be.HostError, match=complaint):
        be.compile(mlp, **options)


@pytest.mark.parametrize("name", ["none.onnx", "none.txt", "none.pt2"])
def test_a_file_that_is_no_model_is_refused(tmp_path, name):
    if name.endswith("pt2"):
        pytest.importorskip("torch")
    (tmp_path / name).write_bytes(b"\x00nothing")
    with pytest.raises(be.HostError, match="none"):
        be.compile(tmp_path / name)


@pytest.fixture
def mlp():
    """x [2, 5] -> softmax(relu(x W + b))."""
    from onnx import TensorProto, helper, numpy_helper

    weights = np.linspace(-1, 1, 15, dtype=np.float32).reshape(5, 3)
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Softmax", ["r"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "mlp",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 5])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])],
        [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(np.ones(3, np.float32), "b")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


@pytest.mark.filterwarnings("error")
def test_sources_of_other_types_are_refused_with_what_to_give():
    torch = pytest.importorskip("torch")
    module = torch.nn.Linear(3, 2)
    x = torch.ones(1, 3)
    sources = (module.state_dict(), {"a": 3}, torch.nn.Linear, [module], None, b"m.onnx", module.parameters(), x)
    for source in sources:
        for compile_it in (be.compile, be.compile_in_parts, lambda s, x: be.compile_training(s, x, loss="mse")):
            with pytest.raises(be.HostError, match=r"^compile: \w+ is "):
                compile_it(source, (x,))
    with pytest.raises(be.HostError, match=r"^compile: OrderedDict is no model: give the torch\.nn\.Module itself"):
        be.compile(module.state_dict(), (x,))
    for programs, says in (
        (module, "Linear is no Program"),
        (module.state_dict(), "'weight' is a Tensor, not a Program"),
    ):
        with pytest.raises(be.HostError, match=f"^compile_programs: {says}"):
            be.compile_programs(programs)
    with pytest.raises(be.HostError, match=r"^compile: options is a dict, not CompileOptions"):
        be.compile(module, (x,), options={"df": "Float32"})


def test_inputs_that_the_module_itself_does_not_take_are_told_from_what_cannot_be_traced(capfd):
    torch = pytest.importorskip("torch")
    module = torch.nn.BatchNorm1d(3)
    for given in ((torch.ones(4, 2),), (torch.ones(4, 3), torch.ones(4, 3))):
        with pytest.raises(be.HostError, match=r"BatchNorm1d cannot run with these inputs, in torch itself either: "):
            be.compile(torch.nn.Sequential(module)[0], given)
    assert module.num_batches_tracked == 0
    assert capfd.readouterr().err == ""
