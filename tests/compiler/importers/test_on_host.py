"""Operators that the host runs, and the parts around them."""

import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import buda_emu as be
from buda_emu.app.cli.main import main
from buda_emu.emulator.image.host_plan import HostPlan, HostStep, PlanInput, Result
from buda_emu.emulator.inputs.host_parts import HostParts
from buda_emu.emulator.runtime.emulator import Emulator

onnx = pytest.importorskip("onnx")


def model():
    """h = x W; d = det(h) on the host; y = relu(h) * d + the largest two of h."""
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Det", ["h"], ["d"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Mul", ["r", "d"], ["p"]),
        helper.make_node("Softmax", ["p"], ["s"]),
        helper.make_node("Add", ["s", "h"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 5])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "yd"],
        [numpy_helper.from_array(rng.standard_normal((5, 3)).astype(np.float32), "w")],
    )
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


def test_run_says_which_inputs_it_lacks():
    compiled = be.compile_in_parts(model(), on_host=["Det"])
    (label,) = (entry.label for entry in compiled.plan.given)
    with pytest.raises(be.HostError, match=f"run: a ndarray: give inputs by name \\({label}\\)"):
        compiled.run(np.zeros(3, np.float32))
    with pytest.raises(be.HostError, match=f"inputs: no {label}; the model takes {label}"):
        compiled.run({})


def test_a_model_in_parts_compares_with_its_source_and_says_what_it_costs():
    pytest.importorskip("onnxruntime")
    compiled = be.compile_in_parts(model())
    found = compiled.compare()
    assert [output.name for output in found.outputs] == ["y", "d"]
    assert all(output.pcc is None or output.pcc > 0.9999 for output in found.outputs)
    assert "Det" in repr(compiled.steps)
    assert len(repr(compiled.steps)) < 800  # and not the operator's bytes
    lines = list(compiled.step_lines())
    assert [line.partition(":")[0].split(" ")[0] for line in lines] == ["program", "on", "program"]
    assert str(compiled.report()).startswith("\n".join(lines))
    assert "limited by" in compiled.report()
    assert compiled.perf().cycles == be.perf(compiled).cycles
    x = np.ones((3, 5), np.float32)
    assert compiled.compare(x, precision="device").precision == "device"
    assert be.compile_in_parts(model(), (x,)).example_inputs()[0] is not None
    compiled.close()


def test_the_host_is_recommended_where_it_can_help():
    from onnx import TensorProto, helper

    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 3]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", values[:1], values[1:])
    opset = [helper.make_opsetid("", 18)]
    with pytest.raises(be.UnsupportedError, match=r"open size n .*example inputs\): 1 time, first at x$"):
        be.compile(helper.make_model(graph, opset_imports=opset))
    with pytest.raises(be.UnsupportedError, match=r"be\.compile_in_parts"):
        be.compile(model())
    with pytest.raises(be.UnsupportedError, match=r"not supported: NonZero: 1 time, first at [^;]*$"):
        be.compile(onnx.parser.parse_model(WITH_NONZERO))


WITH_NONZERO = """<ir_version: 8, opset_import: ["" : 18]>
g (float[2, 3] x) => (int64[2, m] y) { y = NonZero (x) }"""
WITH_BRANCH = """<ir_version: 8, opset_import: ["" : 18]>
g (float[n, 3] x) => (float[n, 3] y) {
    r = Relu (x)
    sum = ReduceSum <keepdims = 0> (x)
    zero = Constant <value = float {0}> ()
    c = Greater (sum, zero)
    y = If (c) <
        then_branch = a () => (float[n, 3] p) { p = Identity (r) },
        else_branch = b () => (float[n, 3] q) { q = Neg (r) }
    >
}"""


def test_the_command_says_only_what_the_host_cannot_do_either(tmp_path, capsys):
    for name, text in (("nonzero", WITH_NONZERO), ("branch", WITH_BRANCH)):
        onnx.save(onnx.parser.parse_model(text), tmp_path / f"{name}.onnx")
    assert main(["compile", str(tmp_path / "nonzero.onnx")]) == 3
    said = capsys.readouterr().err
    assert "NonZero (on the host: of a size that only the values tell): 1 time" in said
    assert "; keep sizes fixed in the model (TopK, or Where with a mask)" in said
    assert "compile_in_parts" not in said
    assert main(["compile", str(tmp_path / "branch.onnx")]) == 3
    said = capsys.readouterr().err
    assert "the open size n" in said
    assert "If" not in said
    assert main(["compile", str(tmp_path / "branch.onnx"), "--size", "n=2", "--effort", "low"]) == 0
    assert "If" in capsys.readouterr().out


def test_of_a_torch_model_the_way_over_onnx_is_named():
    torch = pytest.importorskip("torch")

    class Determinant(torch.nn.Module):
        def forward(self, x):
            return torch.linalg.det(x)

    class Selected(torch.nn.Module):
        def forward(self, x):
            return x[x > 0]

    with pytest.raises(
        be.UnsupportedError, match=r"_linalg_det.*; export the model with torch\.onnx\.export: .*in_parts"
    ):
        be.compile(Determinant(), torch.eye(3))
    with pytest.raises(be.UnsupportedError) as refused:
        be.compile(Selected(), torch.ones(3))
    assert "torch.onnx" not in str(refused.value)


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


def loop():
    """y = relu(x W), times itself plus x for each of n rounds; z = y + 1 where x's sum is above 0, else y - 1."""
    text = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[3, 3] x) => (float[3, 3] y, float[3, 3] z) <float[3, 3] w = {0.5, -1, 0, 1, 0, 1, -0.5, 2, 1}> {
        h = MatMul (x, w)
        r = Relu (h)
        n = Constant <value = int64 {3}> ()
        go = Constant <value = bool {1}> ()
        y = Loop (n, go, r) <body = once (int64 i, bool c, float[3, 3] v) => (bool more, float[3, 3] next) {
            more = Identity (c)
            p = Mul (v, v)
            next = Add (p, x)
        }>
        zero = Constant <value = float {0}> ()
        one = Constant <value = float {1}> ()
        sum = ReduceSum <keepdims = 0> (x)
        above = Greater (sum, zero)
        z = If (above) <
            then_branch = a () => (float[3, 3] up) { up = Add (y, one) },
            else_branch = b () => (float[3, 3] down) { down = Sub (y, one) }
        >
    }"""
    return onnx.shape_inference.infer_shapes(onnx.parser.parse_model(text))


def test_loops_and_branches_run_on_the_host_with_what_they_see_around_them():
    from onnx.reference import ReferenceEvaluator

    compiled = be.compile_in_parts(loop())
    for seed in range(3):
        x = np.random.default_rng(seed).standard_normal((3, 3)).astype(np.float32) / 3
        for got, want in zip(compiled(x), ReferenceEvaluator(loop()).run(None, {"x": x}), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)
    assert " = Loop(" in compiled.text
    assert " = If(" in compiled.text
    compiled.close()


ENDLESS = """
g (float[3, 3] x) => (float[3, 3] y) {
    n = Constant <value = int64 {9223372036854775807}> ()
    go = Constant <value = bool {1}> ()
    y = Loop (n, go, x) <body = once (int64 i, bool c, float[3, 3] v) => (bool more, float[3, 3] next) {
        more = Identity (c)
        next = Identity (v)
    }>
}"""
NESTED = """
g (float[3, 3] x) => (float[3, 3] y) {
    n = Constant <value = int64 {8}> ()
    go = Constant <value = bool {1}> ()
    y = Loop (n, go, x) <body = once (int64 i, bool c, float[3, 3] v) => (bool more, float[3, 3] next) {
        more = Identity (c)
        next = Loop (n, go, v) <body = again (int64 j, bool d, float[3, 3] w) => (bool yet, float[3, 3] then) {
            yet = Identity (d)
            then = Identity (w)
        }>
    }>
}"""


@pytest.mark.parametrize(
    ("text", "bound", "most", "message"),
    [
        (ENDLESS, "MOST_ROUNDS", 50, "more than 50 rounds of one loop"),
        (NESTED, "MOST_ROUNDS", 50, "more than 50 rounds of one loop"),
        (NESTED, "MOST_SECONDS", 0.0, "more than 0 seconds of one loop"),
    ],
)
def test_a_loop_that_never_ends_is_stopped(text, bound, most, message, monkeypatch):
    """A stranger's model must not hang the machine that runs it."""
    compiled = be.compile_in_parts(parsed(text))
    if text == NESTED:
        np.testing.assert_array_equal(compiled(np.ones((3, 3), np.float32))[0], 1)
    monkeypatch.setattr(f"buda_emu.compiler.importers.from_onnx.evaluator.{bound}", most)
    with pytest.raises(be.ProgramError, match=message):
        compiled(np.ones((3, 3), np.float32))
    compiled.close()


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not hold a process to an amount of memory")
def test_what_the_host_runs_takes_no_more_memory_than_there_is(monkeypatch):
    """Nor does it take all of a machine: here 256 MiB of 64."""
    text = """g (float[3, 3] x, bool c) => (float[3, 3] y) {
        y = If (c) <then_branch = wide () => (float[3, 3] sum) {
            shape = Constant <value_ints = [7456540, 3, 3]> ()
            sizes = Cast <to = 7> (shape)
            large = Expand (x, sizes)
            axes = Constant <value = int64[1] {0}> ()
            sum = ReduceSum <keepdims = 0> (large, axes)
        }, else_branch = same () => (float[3, 3] x2) { x2 = Identity (x) }>
    }"""
    compiled = be.compile_in_parts(parsed(text))
    monkeypatch.setattr("buda_emu.compiler.importers.from_onnx.evaluator.default_memory_limit", lambda: 64 << 20)
    x = np.ones((3, 3), np.float32)
    np.testing.assert_array_equal(compiled(x, np.array(False))[0], x)
    with pytest.raises(be.ProgramError, match=r"on the host: y\S*: If: Unable to allocate 256"):
        compiled(x, np.array(True))
    compiled.close()


def parsed(text, opset=18):
    made = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> {text}')
    return onnx.shape_inference.infer_shapes(made)


def test_attributes_that_a_node_leaves_out_are_the_standards_in_what_it_is_made_of():
    compiled = be.compile_in_parts(parsed("g (int32 n) => (float[10] y) { y = HammingWindow (n) }"))
    (window,) = compiled(np.int32(10))
    np.testing.assert_allclose(window, 25 / 46 - 21 / 46 * np.cos(2 * np.pi * np.arange(10) / 10), rtol=1e-5)
    compiled.close()


def test_the_host_sees_operands_of_their_own_widths():
    compiled = be.compile_in_parts(parsed("g (double[3] x) => (int64[3] y) { y = BitCast <to = 7> (x) }", 26))
    x = np.array([1.0, -2.5, np.pi])
    np.testing.assert_array_equal(compiled(x)[0], x.view(np.int64))
    compiled.close()


def test_what_the_host_lacks_is_said_when_the_model_is_compiled(monkeypatch):
    monkeypatch.setattr("buda_emu.compiler.importers.from_onnx.evaluator.NEEDS", {"Det": ("no_such_module", "Nothing")})
    with pytest.raises(be.UnsupportedError, match="on the host it needs the package Nothing: pip install Nothing"):
        be.compile_in_parts(model())
    old = """g (float[1, 2] a, float[1, 3, 2] x) => (float[1, 2] y, float[1, 3, 2] z) {
        y, z = Scan <num_scan_inputs = 1, body = once (float[2] v, float[2] w) => (float[2] s, float[2] t) {
            s = Add (v, w)
            t = Identity (s)
        }> ("", a, x)
    }"""
    with pytest.raises(be.UnsupportedError, match="before opset 9 onnx's evaluator does not compute it"):
        be.compile_in_parts(parsed(old, 8))


def test_infinities_that_the_host_hands_on_are_what_the_device_has_for_them(monkeypatch):
    from onnx.reference import ReferenceEvaluator

    text = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[2, 3] x, bool[2, 3] c) => (float[2, 3] y) <float below = {-inf}, float zero = {0}> {
        m = Where (c, x, below)
        n = Neg (m)
        y = Where (c, n, zero)
    }"""
    made = onnx.shape_inference.infer_shapes(onnx.parser.parse_model(text))
    x, c = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([[1, 1, 0], [0, 1, 1]], bool)
    compiled = be.compile_in_parts(made, on_host=["Neg"])
    pushed, push = [], Emulator.push
    monkeypatch.setattr(
        Emulator, "push", lambda self, queue, array, *args: pushed.append(array) or push(self, queue, array, *args)
    )
    want = ReferenceEvaluator(made).run(None, {"x": x, "c": c})[0]
    np.testing.assert_allclose(compiled(x, c)[0], want, rtol=1e-3, atol=1e-5)
    assert all(np.isfinite(array).all() for array in pushed)
    assert max(array.max() for array in pushed) == 2.0**100
    compiled.close()


def test_what_is_refused_runs_on_the_host_and_says_why_and_what_crosses():
    compiled = be.compile_in_parts(model())
    (step,) = (step for step in compiled.steps if not hasattr(step, "program"))
    assert str(step) == "on the host: d.host = Det(first); 40 bytes in and out; no operator of the device".replace(
        "first", step.operands[0].name
    )
    assert step.traffic == (9 + 1) * 4
    x = np.random.default_rng(1).standard_normal((3, 5)).astype(np.float32)
    np.testing.assert_allclose(compiled(x)[0], expected(x)[0], rtol=1e-3, atol=1e-4)
    compiled.close()


def test_an_operator_that_nobody_knows_is_refused():
    from onnx import TensorProto, helper

    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])
    graph = helper.make_graph([helper.make_node("NoSuch", ["x"], ["y"])], "g", [x], [y])
    with pytest.raises(be.UnsupportedError, match="NoSuch"):
        be.compile_in_parts(helper.make_model(graph))


def test_values_that_the_evaluator_refuses_are_said():
    from onnx import TensorProto, helper

    table = helper.make_tensor_value_info("t", TensorProto.INT32, [3])
    shift = helper.make_tensor_value_info("s", TensorProto.INT64, [2])
    y = helper.make_tensor_value_info("y", TensorProto.INT32, [2])
    nodes = [helper.make_node("Gather", ["t", "s"], ["y"])]
    compiled = be.compile_in_parts(
        helper.make_model(helper.make_graph(nodes, "g", [table, shift], [y])), on_host=["Gather"]
    )
    assert compiled(np.arange(3, dtype=np.int32), np.array([2, 0]))[0].tolist() == [2, 0]
    with pytest.raises(be.ProgramError, match=r"on the host: y\.host: Gather: "):
        compiled(np.arange(3, dtype=np.int32), np.array([7, 0]))


@pytest.mark.parametrize("options", [[], ["--on-host", "Det"]])
def test_the_command_writes_one_netlist_and_an_image_with_the_hosts_parts(options, tmp_path):
    onnx.save(model(), tmp_path / "g.onnx")
    exe = Path(sys.executable).parent / "buda-emu"
    line = [exe, "compile", tmp_path / "g.onnx", *options, "-o", tmp_path / "out"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, check=True)
    assert "= Det(" in done.stdout
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["model.tti", "model.yaml"]


@pytest.mark.parametrize("names", [["Det"], ["Det", "softmax"]])
def test_an_image_with_host_parts_is_run_tested_and_timed(names, tmp_path, capsys):
    compiled = be.compile_in_parts(model(), on_host=names)
    _, image = compiled.save(tmp_path)
    compiled.close()
    x = np.random.default_rng(1).standard_normal((3, 5)).astype(np.float32)
    np.savez(tmp_path / "x.npz", x=x)
    line = ["--inputs", str(tmp_path / "x.npz"), "-o", str(tmp_path / "out"), "--precision", "ideal"]
    assert main(["run", str(image), *line]) == 0
    assert "on the host: d.host = Det" in capsys.readouterr().out
    for name, want in zip("yd", expected(x), strict=True):
        np.testing.assert_allclose(np.load(tmp_path / "out" / f"{name}.npy"), want, rtol=1e-3, atol=1e-4)
    assert main(["check", "--strict", str(image)]) == 0
    assert main(["test", str(image)]) == 0
    assert main(["perf", str(image), "--json", str(tmp_path / "perf.json")]) == 0
    assert re.search(r"on the host, measured, not in these figures: d\.host = Det: [\d,]+ us", capsys.readouterr().out)
    steps = json.loads((tmp_path / "perf.json").read_text())["host_parts"]
    assert [item["step"].rpartition(" = ")[2] for item in steps] == names
    assert all(item["seconds"] > 0 for item in steps)
    assert main(["numerics", str(image)]) == 3
    assert "the host computes between its programs" in capsys.readouterr().err
    assert main(["run", str(image), "--readout", "raw"]) == 2
    assert "an image with host parts is run whole" in capsys.readouterr().err


def test_a_step_of_the_host_that_refuses_made_up_values_is_not_timed():
    from onnx import TensorProto, helper

    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    step = HostStep("Relu", "onnx", "0.onnx", ("x",), (Result("y", (3,), "float32"),))
    image = SimpleNamespace(
        path="m.tti",
        host_file=lambda _: helper.make_model(graph).SerializeToString(),
        model=SimpleNamespace(host=HostPlan((PlanInput("x", "x", (4,), "float32"),), (), {}, (step,)), outputs=()),
    )
    (found,) = HostParts(image).time_steps(seed=0)
    assert str(found).startswith("y = Relu: not measured: on the host: y: Relu gives [4], not the [3]")


def test_inputs_of_an_image_with_host_parts_are_the_models(tmp_path, capsys):
    _, image = be.compile_in_parts(model()).save(tmp_path)
    for arrays, said in (
        ({}, "inputs: no x; the model takes x"),
        ({"x": np.zeros((2, 5), np.float32)}, "input x: shape [2, 5], the model takes [3, 5]"),
        ({"x": np.zeros((3, 5), np.float32), "z": np.zeros(1)}, "inputs: unknown z"),
    ):
        np.savez(tmp_path / "x.npz", **arrays)
        assert main(["run", str(image), "--inputs", str(tmp_path / "x.npz")]) == 2
        assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b'"program": "run_fwd_1"', b'"program": "run_fwd_9"', "is not a program of the netlist"),
        (b'"file": "1.onnx"', b'"file": "7.onnx"', "7.onnx is not in the archive's folder host"),
        (b'"form": "onnx"', b'"form": "code"', "is not one of onnx, numpy"),
        (b'"value": "d.host"', b'"value": "e.host"', "value 'e.host'"),
    ],
)
def test_a_plan_that_does_not_fit_is_found(old, new, said, tmp_path, capsys):
    _, image = be.compile_in_parts(model()).save(tmp_path)
    data = image.read_bytes()
    assert len(old) == len(new)
    assert old in data
    image.write_bytes(data.replace(old, new, 1))
    assert main(["check", str(image)]) == 2
    found = capsys.readouterr()
    assert said in found.out + found.err


def test_what_is_all_on_the_host_has_no_netlist(tmp_path):
    compiled = be.compile_in_parts(parsed("g (double[3] x) => (int64[3] y) { y = BitCast <to = 7> (x) }", 26))
    with pytest.raises(be.HostError, match="the host does all of it"):
        compiled.save(tmp_path)


def test_the_command_refuses_without_a_host(tmp_path, capsys):
    onnx.save(model(), tmp_path / "g.onnx")
    assert main(["compile", str(tmp_path / "g.onnx"), "--no-host"]) == 3
    assert "g: not supported: Det: 1 time" in capsys.readouterr().err


def test_an_operator_of_onnxruntimes_quantisation_is_refused_with_the_form_that_compiles():
    from onnx import TensorProto, helper

    ends = [helper.make_tensor_value_info(name, TensorProto.UINT8, [8, 8]) for name in "xy"]
    node = helper.make_node("QGemm", ["x", "x", "x"], ["y"], name="q", domain="com.microsoft")
    versions = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    quantised = helper.make_model(helper.make_graph([node], "g", ends[:1], ends[1:]), opset_imports=versions)
    with pytest.raises(be.UnsupportedError, match=r"no such operator; quantise in QDQ form instead: quantize_static"):
        be.compile_in_parts(quantised)
