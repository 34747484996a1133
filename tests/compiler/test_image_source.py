"""An image holds its model, so that a saved model is placed for another board: the same netlist as from the source."""

import io
import json
import tarfile

import numpy as np
import pytest

import buda_emu as be
from buda_emu.app.api.sweep import sweep
from buda_emu.app.cli.main import main
from buda_emu.compiler.image_source import GRAPH, OPTIONS, compile_again
from buda_emu.support.errors import HostError

onnx = pytest.importorskip("onnx")
BOARDS = ("n150", "e150", "p150")


def classifier(seed=0, size=160):
    """Two products, the first of them with a weight of many values, a mask and a softmax."""
    stream = np.random.default_rng(seed)
    arrays = {
        "first": stream.standard_normal((size, size), np.float32),
        "second": stream.standard_normal((size, 16), np.float32),
        "mask": np.where(np.tri(size, dtype=bool), 0.0, -1e4).astype(np.float32),
    }
    nodes = [
        onnx.helper.make_node("MatMul", ["x", "first"], ["hidden"], name="hidden"),
        onnx.helper.make_node("Add", ["hidden", "mask"], ["masked"], name="masked"),
        onnx.helper.make_node("Softmax", ["masked"], ["probs"], name="probs", axis=-1),
        onnx.helper.make_node("MatMul", ["probs", "second"], ["y"], name="y"),
    ]
    info = onnx.helper.make_tensor_value_info
    held = [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()]
    inputs = [info("x", onnx.TensorProto.FLOAT, [size, size])]
    graph = onnx.helper.make_graph(nodes, "g", inputs, [info("y", onnx.TensorProto.FLOAT, [size, 16])], held)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)])


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The files of a model, and of its image."""
    folder = tmp_path_factory.mktemp("model")
    onnx.save(classifier(), folder / "model.onnx")
    be.compile(folder / "model.onnx", effort="low").save(folder)
    return folder


@pytest.mark.parametrize(
    ("board", "options"),
    [
        ("p150", {"effort": "low"}),
        ("e150", {"effort": "low", "df": "Bfp8_b", "fidelity": "LoFi", "fuse": False, "microbatch": 4}),
        ("n150", {"effort": "low", "mixed": [{"match": "hidden*", "df": "Bfp8_b"}]}),
    ],
)
def test_a_model_is_placed_as_from_its_source(options, board, saved, tmp_path):
    be.compile(saved / "model.onnx", arch="wormhole_b0", **options).save(tmp_path)
    assert (
        compile_again(tmp_path / "model.tti", board).text
        == be.compile(saved / "model.onnx", board=board, **options).text
    )


def test_a_sweep_of_boards_places_the_model_of_an_image(saved, capsys):
    image = str(saved / "model.tti")
    points = sweep(image, {"board": BOARDS})
    fresh = [be.perf(be.compile(saved / "model.onnx", board=board, effort="low")) for board in BOARDS]
    assert [point.cycles for point in points] == [model.cycles for model in fresh]
    assert sweep(image, {"board": BOARDS}, workers=2) == points
    as_it_stands = sweep(image, {"clock": ("500",)})
    assert as_it_stands[0].cycles == be.perf(image, what_if={"clock": 500}).cycles
    assert main(["perf", image, "--sweep", "board=n150,n15"]) == 2
    assert "no board 'n15'" in capsys.readouterr().err


def members(path):
    with tarfile.open(path) as archive:
        return {info.name: archive.extractfile(info).read() for info in archive.getmembers() if info.isfile()}


def test_large_parameters_are_not_held_twice(saved):
    files = members(saved / "model.tti")
    source = {name.removeprefix("unzipped_tti/source/"): data for name, data in files.items() if "/source/" in name}
    arrays = [np.load(io.BytesIO(data)) for name, data in source.items() if name.endswith(".npy")]
    assert sorted(array.shape for array in arrays) == [(160, 16), (160, 160)]  # a small weight, and the mask
    assert json.loads(source[OPTIONS])["made_up"] == {"first": ["float32", [160, 160]]}


@pytest.mark.parametrize("precision", ["ideal", "format"])
def test_the_image_runs_as_before(precision, saved):
    x = np.random.default_rng(1).standard_normal((160, 160)).astype(np.float32)
    expected = be.compile(saved / "model.onnx", effort="low")(x, precision=precision)
    assert np.array_equal(be.load_model(saved / "model.tti")(x, precision=precision)[0], expected[0])


def test_an_image_without_its_model_keeps_its_places(saved, tmp_path, capsys):
    path = rewrite(saved / "model.tti", tmp_path, lambda name, data: None if "/source/" in name else data)
    with pytest.raises(HostError, match="does not hold its model"):
        compile_again(path, "p150")
    assert main(["perf", str(path), "--sweep", "board=p150"]) == 2
    assert "the netlist is for wormhole_b0, p150 has chips of blackhole" in " ".join(capsys.readouterr().out.split())


def rewrite(path, folder, change):
    """Write an image again with other members; None leaves one out."""
    result = folder / "changed.tti"
    with tarfile.open(result, "w") as archive:
        for name, data in members(path).items():
            changed = change(name, data)
            if changed is not None:
                info = tarfile.TarInfo(name)
                info.size = len(changed)
                archive.addfile(info, io.BytesIO(changed))
    return result


def made_up(entry):
    """Return a change of the names of parameters that are made up."""
    return lambda data: json.dumps({**json.loads(data), "made_up": entry}).encode()


@pytest.mark.parametrize(
    ("member", "change"),
    [
        (GRAPH, lambda data: data[: len(data) // 2]),
        (GRAPH, lambda data: b"\xff" + data),
        (GRAPH, lambda data: data.replace(b"matmul", b"matmull")),
        (GRAPH, lambda data: data.replace(b"front ", b"core ")),
        (GRAPH, lambda _: None),
        (OPTIONS, lambda data: data[:-3]),
        (OPTIONS, lambda _: b"[]"),
        (OPTIONS, lambda data: data.replace(b'"df"', b'"dff"')),
        (OPTIONS, lambda data: data.replace(b"Float16_b", b"Float17")),
        (OPTIONS, made_up({"nobody": ["float32", [1]]})),
        (OPTIONS, made_up({"first": ["float32", [2, 2]]})),
        (OPTIONS, made_up({"first": ["object", [160, 160]]})),
        (OPTIONS, made_up({"first": 7})),
        (OPTIONS, made_up([])),
        (".npy", lambda data: data[:-4] + b"\1\2\3\4"),
        (".npy", lambda data: data[:-4]),
        (".npy", lambda _: None),
    ],
)
def test_a_broken_source_is_refused(member, change, saved, tmp_path):
    """The netlist and its parameters are not touched by it."""
    path = rewrite(saved / "model.tti", tmp_path, lambda name, data: change(data) if name.endswith(member) else data)
    with pytest.raises(be.BudaError):
        compile_again(path, "n150")
    (point,) = sweep(str(path), {"board": ("n150",)})
    assert point.problem
    assert be.perf(path).cycles == be.perf(saved / "model.tti").cycles
