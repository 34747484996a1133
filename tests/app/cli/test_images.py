"""Verbs that take a netlist take the device image around it, too: above all what `compile` wrote."""

import json

import numpy as np
import pytest

import buda_emu as be
from buda_emu.app.cli.main import main
from buda_emu.emulator.image.opened import image_beside
from buda_emu.testing.verify.runs.collect import Case, Settings, collect
from buda_emu.testing.verify.runs.run_all import by_content
from buda_emu.testing.verify.runs.run_case import run_case

onnx = pytest.importorskip("onnx")
ROWS = 40


def command(*words):
    return main([str(word) for word in words])


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Indices and a factor in, probabilities out; no size is a multiple of 32."""
    rng = np.random.default_rng(0)
    held = {"table": (ROWS, 20), "weight": (20, 7)}
    held = [
        onnx.numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)
        for name, shape in held.items()
    ]
    nodes = [
        onnx.helper.make_node("Gather", ["table", "ids"], ["rows"], name="rows"),
        onnx.helper.make_node("Mul", ["rows", "factor"], ["scaled"], name="scaled"),
        onnx.helper.make_node("MatMul", ["scaled", "weight"], ["scores"], name="scores"),
        onnx.helper.make_node("Softmax", ["scores"], ["y"], name="softmax", axis=-1),
    ]
    info = onnx.helper.make_tensor_value_info
    inputs = [info("ids", onnx.TensorProto.INT64, [9]), info("factor", onnx.TensorProto.FLOAT, [9, 20])]
    graph = onnx.helper.make_graph(nodes, "g", inputs, [info("y", onnx.TensorProto.FLOAT, [9, 7])], held)
    folder = tmp_path_factory.mktemp("model")
    compiled = be.compile(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)]))
    compiled.save(folder)
    arrays = {"ids": rng.integers(0, ROWS, 9), "factor": rng.standard_normal((9, 20)).astype(np.float32)}
    np.savez(folder / "x.npz", **arrays)
    (folder / "y.json").write_text(json.dumps(compiled(*arrays.values())[0].tolist()))
    return folder


def test_made_up_inputs_are_the_models(model, tmp_path):
    """Their padding is what the compiler expects there, and their indices are rows of the table."""
    assert command("run", model / "model.tti", "-q", "--precision", "ideal", "-o", tmp_path) == 0
    y = np.load(tmp_path / "y.npy")
    assert y.shape == (9, 7)
    np.testing.assert_allclose(y.sum(1), 1, rtol=1e-5)
    assert len(np.unique(y, axis=0)) == 9


def test_a_netlist_beside_its_image_is_told_from_it(model, tmp_path, capsys):
    """Without its parameters the netlist of a compiled model computes with made-up numbers, and a softmax over the
    padding of a tile is then no softmax: whoever meets the file alone is told where they are."""
    netlist, image = model / "model.yaml", model / "model.tti"
    assert image_beside(netlist) == str(image)
    assert collect([str(model)]) == [str(image)]
    assert command("run", netlist, "-q") == 0
    assert f"{netlist} is the netlist of {image}, which also holds its parameters" in capsys.readouterr().err
    assert command("perf", netlist, "-q") == 0
    assert capsys.readouterr().err == ""

    other = tmp_path / "model.yaml"
    other.write_text(netlist.read_text())
    assert image_beside(other) is None
    beside = tmp_path / "model.tti"
    beside.write_bytes(b"damaged")
    assert image_beside(other) is None
    beside.write_bytes(image.read_bytes())
    assert image_beside(other) == str(beside)
    other.write_text(f"# edited\n{netlist.read_text()}")
    assert image_beside(other) is None
    assert collect([str(tmp_path)]) == [str(other)]


@pytest.mark.parametrize("form", ["times the first dimension", "a dimension in front", "folder", "rounds"])
def test_several_sets_of_inputs_are_run_in_one_call(model, tmp_path, form):
    """The results of each are those of a run by itself."""
    rng = np.random.default_rng(5)
    ids, factor = rng.integers(0, ROWS, (4, 9)), rng.standard_normal((4, 9, 20)).astype(np.float32)
    words = ("run", model / "model.tti", "-q", "--precision", "device")
    if form == "folder":
        (where := tmp_path / "in").mkdir()
        np.save(where / "ids.npy", ids)
        np.save(where / "factor.npy", factor)
    else:
        flat = form == "times the first dimension"
        where = tmp_path / "all.npz"
        np.savez(where, ids=ids.reshape(-1) if flat else ids, factor=factor.reshape(-1, 20) if flat else factor)
    rounds = ("--param", "p_loop_count=2") if form == "rounds" else ()
    assert command(*words, "--inputs", where, *rounds, "-o", tmp_path / "all") == 0
    found = np.load(tmp_path / "all" / "y.npy")
    assert found.shape == (4, 9, 7)
    for number in range(4):
        np.savez(tmp_path / "one.npz", ids=ids[number], factor=factor[number])
        assert command(*words, "--inputs", tmp_path / "one.npz", "-o", tmp_path / "one") == 0
        assert np.load(tmp_path / "one" / "y.npy").tobytes() == found[number].tobytes()


def test_an_input_of_one_set_goes_with_each_of_the_others(model, tmp_path):
    given = dict(np.load(model / "x.npz"))
    np.savez(tmp_path / "x.npz", ids=np.stack([given["ids"]] * 3), factor=given["factor"])
    words = ("run", model / "model.tti", "-q", "--precision", "ideal", "--inputs", tmp_path / "x.npz")
    assert command(*words, "-o", tmp_path / "y") == 0
    y = np.array(json.loads((model / "y.json").read_text()), np.float32)
    assert np.array_equal(np.load(tmp_path / "y" / "y.npy"), [y, y, y])


@pytest.mark.parametrize(
    ("ids", "factor", "says"),
    [
        ((3, 9), (2, 9, 20), "inputs hold different numbers of the model's own: ids 3, factor 2"),
        ((3, 8), (9, 20), "input ids: shape [3, 8], the model takes [9]"),
    ],
)
def test_input_sets_that_do_not_fit_are_refused(model, tmp_path, capsys, ids, factor, says):
    np.savez(tmp_path / "x.npz", ids=np.zeros(ids, np.int64), factor=np.zeros(factor, np.float32))
    assert command("run", model / "model.tti", "--inputs", tmp_path / "x.npz") == 2
    assert says in capsys.readouterr().err


def test_perf_of_an_image_is_that_of_its_netlist(model, tmp_path):
    for name in ("model.tti", "model.yaml"):
        assert command("perf", model / name, "-q", "--json", tmp_path / f"{name}.json") == 0
    image, text = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("model.tti", "model.yaml"))
    for record in (record for epoch in (*image["epochs"], *text["epochs"]) for record in epoch["ops"]):
        record["flags"].clear()  # only the image knows padding (below)
    assert image["epochs"] == text["epochs"] != []
    assert be.perf(model / "model.tti").cycles == be.perf(model / "model.yaml").cycles


def test_graph_draws_an_image(model, tmp_path):
    for name in ("model.tti", "model.yaml"):
        assert command("graph", model / name, "-o", tmp_path / f"{name}.svg") == 0
    image, text = ((tmp_path / f"{name}.svg").read_text() for name in ("model.tti", "model.yaml"))
    assert image.split("</title>", 1)[1] == text.split("</title>", 1)[1]


def test_numerics_runs_the_model_with_its_parameters(model, tmp_path):
    words = ("--inputs", model / "x.npz", "-q", "--json", tmp_path / "n.json")
    assert command("numerics", model / "model.tti", *words) == 0
    ops = {op["name"]: op for op in json.loads((tmp_path / "n.json").read_text())["ops"]}
    assert ops["scores.matmul"]["total"]["pcc"] > 0.999
    found = be.numerics(model / "model.tti", inputs=model / "x.npz", op="scores.matmul")
    assert [op.name for op in found.ops] == ["scores.matmul"]
    assert found.ops[0].total.pcc == ops["scores.matmul"]["total"]["pcc"]


def test_numerics_names_inputs_that_are_missing(model, tmp_path, capsys):
    np.savez(tmp_path / "x.npz", ids=np.zeros(9, np.int64))
    assert command("numerics", model / "model.tti", "--inputs", tmp_path / "x.npz") == 2
    assert "no factor; the model takes ids, factor" in capsys.readouterr().err


def test_test_compares_what_belongs_to_the_model(model):
    found = be.test(model / "model.tti")
    (case,) = found.cases
    assert case.status == "passed"
    (output,) = case.outputs
    assert output.figures.pcc > 0.999
    assert output.figures.match == 1  # what lies beyond 9 x 7 is no one's


def test_test_takes_the_models_own_tensors(model, tmp_path):
    np.savez(tmp_path / "x.npz", **np.load(model / "x.npz"))
    np.save(tmp_path / "y.npy", np.array(json.loads((model / "y.json").read_text()), np.float32))
    (case,) = be.test(model / "model.tti", reference=tmp_path).cases
    assert case.status == "passed"
    assert {item.source for item in case.inputs} == {"image", "x.npz"}
    np.save(tmp_path / "y.npy", np.zeros((9, 7), np.float32))
    (case,) = be.test(model / "model.tti", reference=tmp_path).cases
    assert case.status == "failed"


def test_a_case_travels_with_its_image(model):
    case = by_content(Case("m.tti", str(model / "model.tti"), settings=Settings(precision="ideal")))
    result = run_case(case)
    assert result.status == "passed", result.message


def test_a_faulty_image_is_rejected(tmp_path):
    (tmp_path / "broken.tti").write_bytes(b"PK\x03\x04")
    (case,) = be.test(tmp_path / "broken.tti").cases
    assert case.status == "rejected"
    assert "image-" in case.message


def test_verbs_that_take_text_only_refuse_images(model, capsys):
    assert command("fmt", "--check", model / "model.tti") == 2
    said = capsys.readouterr().err
    assert "this is an archive, not a netlist" in said
    assert "*.tti" in said


def test_test_shows_the_shapes_of_the_model(model, tmp_path, capsys):
    """A netlist has those of its queues."""
    image = be.test(model / "model.tti", precision="format", expected="ideal")
    text = be.test(model / "model.yaml", precision="format", expected="ideal")
    expected = {output.queue: output.shape for output in be.load_image(model / "model.tti").model.outputs}
    assert {row["output"]: row["shape"] for row in image.output_rows} == expected
    queues = {output.queue: output.shape for case in text.run.cases for output in case.outputs}
    assert {row["output"]: row["shape"] for row in text.output_rows} == queues
    assert command("test", model / "model.tti", "--precision", "format") == 0
    shown = capsys.readouterr().out
    assert all("x".join(map(str, shape)) in shown for shape in expected.values())


def test_perf_knows_the_padding_of_an_image(model):
    """Of a netlist alone nothing says which elements are the model's."""
    image = be.load_image(model / "model.tti")
    shares = image.model.padding_shares
    assert all(0 < share < 1 for share in shares.values())
    assert shares.keys() <= image.netlist.ops.keys()
    flagged = {row["op"] for row in be.perf(model / "model.tti").op_rows if "padding" in row["flags"]}
    assert flagged == {name for name, share in shares.items() if share > 0.5}
    assert not any("padding" in row["flags"] for row in be.perf(model / "model.yaml").op_rows)


@pytest.mark.parametrize("verb", ["perf", "advise"])
def test_an_image_for_other_chips_names_the_board_that_was_asked_for(verb, model, capsys):
    assert command(verb, model / "model.tti", "--board", "p150") == 2
    said = capsys.readouterr().err
    assert "the netlist is for wormhole_b0, p150 has chips of blackhole" in said
    assert "--arch" not in said


@pytest.mark.parametrize(
    "words",
    [
        ["advise", "net.yaml", "--write"],
        ["new", "64x64", "gelu", "-o"],
        ["reduce", "net.yaml", "--check", "false", "-o"],
    ],
)
def test_the_text_of_a_netlist_does_not_get_the_name_of_an_image(words, tmp_path, capsys):
    with pytest.raises(SystemExit):
        command(*words, tmp_path / "net.TTI")
    assert "is the name of a device image, and this is the text of a netlist" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
