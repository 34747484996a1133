"""Tensors of an ONNX model that lie in other files are read from its folder alone, and whole."""

import os
import random
import tracemalloc

import numpy as np
import pytest

import buda_emu as be
from buda_emu.arithmetic.tensor.referenced import Referenced
from buda_emu.support.errors import HostError

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402 - only where onnx is

from buda_emu.compiler.importers.from_onnx import initializers as external_data  # noqa: E402 - it imports onnx

WEIGHTS = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def folder(tmp_path):
    """`models`, with a file beside the model, one outside, and ways there."""
    models = tmp_path / "models"
    (models / "below").mkdir(parents=True)
    for path in (models / "held.bin", models / "below" / "held.bin", tmp_path / "held.bin"):
        path.write_bytes(WEIGHTS.tobytes())
    (models / "short.bin").write_bytes(WEIGHTS.tobytes()[:-1])
    (models / "long.bin").write_bytes(WEIGHTS.tobytes() + bytes(4))
    (models / "out.bin").symlink_to("../held.bin")
    (models / "in.bin").symlink_to("below/held.bin")
    (models / "up").symlink_to("..")
    return models


def external(tensor, **said):
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in said.items():
        tensor.external_data.add(key=key, value=value)
    return tensor


def model(**said):
    """x times weights in another file."""
    weights = external(TensorProto(name="w", data_type=TensorProto.FLOAT, dims=WEIGHTS.shape), **said)
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["z"])],
        "g",
        [info("x", TensorProto.FLOAT, [2, 3])],
        [info("z", TensorProto.FLOAT, [2, 4])],
        [weights],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def compiled(folder, proto):
    path = folder / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    return be.compile(path, effort="low")


@pytest.mark.parametrize(
    "said",
    [
        {"location": "held.bin"},
        {"location": "below/held.bin"},
        {"location": "below/../held.bin"},
        {"location": "in.bin"},
        {"location": "long.bin", "offset": "0", "length": "48"},
        {"location": "held.bin", "checksum": "no matter"},
    ],
    ids=str,
)
def test_what_lies_in_the_folder_is_read(said, folder):
    (found,) = compiled(folder, model(**said))(np.ones((2, 3), np.float32))
    np.testing.assert_allclose(found, np.ones((2, 3)) @ WEIGHTS)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"location": "../held.bin"}, "'../held.bin': outside of the model's folder"),
        ({"location": "/etc/hostname"}, "'/etc/hostname': outside of the model's folder"),
        ({"location": "{folder}/../held.bin"}, "outside of the model's folder"),
        ({"location": "out.bin"}, "'out.bin': outside of the model's folder"),
        ({"location": "up/held.bin"}, "'up/held.bin': outside of the model's folder"),
        ({"location": "/dev/zero"}, "outside of the model's folder"),
        ({"location": "missing.bin"}, "'missing.bin': No such file"),
        ({"location": "below"}, "'below': no regular file"),
        ({"location": "pipe"}, "'pipe': no regular file"),
        ({"location": ""}, "names no file"),
        ({}, "names no file"),
        ({"location": "held.bin\0"}, r"'held.bin\\u\{0\}': that names no file"),
        ({"location": "short.bin"}, r"'short.bin': 47 bytes for \[3, 4\], which takes 48"),
        ({"location": "long.bin"}, r"'long.bin': 52 bytes for \[3, 4\], which takes 48"),
        ({"location": "held.bin", "offset": "4"}, r"44 bytes for \[3, 4\], which takes 48"),
        ({"location": "held.bin", "offset": "4", "length": "48"}, "bytes 4 to 52, the file has 48"),
        ({"location": "held.bin", "offset": "99"}, "bytes 99 to 99, the file has 48"),
        ({"location": "held.bin", "length": str(1 << 50)}, "the file has 48"),
        ({"location": "held.bin", "offset": "-4"}, "offset '-4' is not a number of bytes"),
        ({"location": "held.bin", "length": "٤٨"}, "is not a number of bytes"),
        ({"location": "held.bin", "length": "1e1"}, "length '1e1' is not a number of bytes"),
    ],
    ids=str,
)
def test_all_else_is_refused_with_the_tensor_and_the_file(said, message, folder):
    os.mkfifo(folder / "pipe")
    said = {key: value.format(folder=folder) for key, value in said.items()}
    with pytest.raises(HostError, match=rf"compile: tensor 'w' in file .*{message}"):
        compiled(folder, model(**said))


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 60))])
def test_many_tensors_that_name_one_file_are_refused_before_they_are_read(seed, folder, monkeypatch):
    """A hole of a file, named by initializers, and by constants of nodes, until no model has room for all of them."""
    draw = random.Random(seed)
    size, count = draw.randrange(1, 250) << 10, draw.randrange(2, 40)
    with (folder / "hole.bin").open("wb") as file:
        file.truncate(size)
    odd = model(location="held.bin")
    for number in range(count):
        tensor = TensorProto(name=f"t{number}", data_type=TensorProto.FLOAT, dims=[size // 4])
        external(tensor, location="hole.bin", **draw.choice([{}, {"length": str(size)}, {"offset": "0"}]))
        if draw.random() < 0.5:
            odd.graph.initializer.append(tensor)
        else:
            odd.graph.node.append(helper.make_node("Constant", [], [f"t{number}"], value=tensor))
    monkeypatch.setattr(external_data, "MOST_IN_MODEL", WEIGHTS.nbytes + count * size)
    compiled(folder, odd)
    monkeypatch.setattr(external_data, "MOST_IN_MODEL", WEIGHTS.nbytes + count * size - 1)
    tracemalloc.start()
    try:
        with pytest.raises(
            HostError, match=rf"{count + 1} tensors in other files take .* together, and a model has room"
        ):
            compiled(folder, odd)
        assert tracemalloc.get_traced_memory()[1] < max(count * size, 4 << 20)
    finally:
        tracemalloc.stop()


def test_constants_of_nodes_branches_and_functions_too(folder):
    tensor = external(TensorProto(name="t", data_type=TensorProto.FLOAT, dims=[3, 4]), location="../held.bin")
    constant = helper.make_node("Constant", [], ["c"], value=tensor)
    inner = helper.make_graph([constant], "b", [], [helper.make_tensor_value_info("c", TensorProto.FLOAT, [3, 4])])
    branch = helper.make_node("If", ["x"], ["d"], then_branch=inner, else_branch=inner)
    function = helper.make_function("own", "f", [], ["c"], [constant], [helper.make_opsetid("", 17)])
    for change in (
        lambda proto: proto.graph.node.append(constant),
        lambda proto: proto.graph.node.append(branch),
        lambda proto: proto.functions.append(function),
        lambda proto: proto.graph.sparse_initializer.add(values=tensor),
    ):
        proto = model(location="held.bin")
        change(proto)
        with pytest.raises(HostError, match=r"tensor 't' in file '\.\./held\.bin': outside"):
            compiled(folder, proto)


def test_of_a_model_in_memory_no_file_is_looked_for(folder, monkeypatch):
    monkeypatch.chdir(folder)
    with pytest.raises(HostError, match="tensor 'w' lies in another file: give the model's path, or load it with onnx"):
        be.compile(model(location="held.bin"))


def saved(folder, dtype):
    """A model with three large tensors twice: with them inside, and in a file."""
    stream = np.random.default_rng(0)
    held = {
        name: stream.standard_normal(shape).astype(dtype)
        for name, shape in (("t", (1100, 512)), ("a", (512, 1536)), ("b", (768, 1536)))
    }
    info, kind = helper.make_tensor_value_info, helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes = [
        helper.make_node("Gather", ["t", "i"], ["x"]),
        helper.make_node("MatMul", ["x", "a"], ["y"]),
        helper.make_node("Transpose", ["b"], ["c"], perm=[1, 0]),
        helper.make_node("MatMul", ["y", "c"], ["z"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [info("i", TensorProto.INT64, [1, 32])],
        [info("z", kind, [1, 32, 768])],
        [onnx.numpy_helper.from_array(array, name) for name, array in held.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    onnx.save(made, folder / "inside.onnx")
    onnx.save(made, folder / "apart.onnx", save_as_external_data=True, location="held.bin", size_threshold=0)
    return folder / "inside.onnx", folder / "apart.onnx"


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_large_tensors_stay_in_their_file_and_give_the_same(tmp_path, dtype):
    inside, apart = (be.compile(path, effort="low", name="m") for path in saved(tmp_path, dtype))
    assert inside.text == apart.text
    held = dict(apart.tensors())
    assert all(isinstance(array, Referenced) for array in held.values())
    for name, array in inside.tensors():
        assert np.array_equal(array, np.asarray(held[name]))
    pytest.importorskip("onnxruntime")
    assert apart.compare(layers=False).outputs[0].pcc > 0.999


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files are counted in /proc")  # noqa: PTH112
def test_a_file_is_opened_once_for_any_number_of_large_tensors(tmp_path):
    elements = external_data.LARGE // 4
    (tmp_path / "held.bin").write_bytes(np.arange(2 * elements, dtype=np.float32).tobytes())
    proto = model(location="held.bin")
    del proto.graph.initializer[:]
    for number in range(40):
        offset = 4 * (number % 2) * elements
        tensor = TensorProto(name=f"w{number}", data_type=TensorProto.FLOAT, dims=[elements])
        proto.graph.initializer.append(
            external(tensor, location="held.bin", offset=str(offset), length=str(4 * elements))
        )
    files_before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - no directory of files
    references = external_data.map_large_initializers(proto, tmp_path)
    assert len(os.listdir("/proc/self/fd")) <= files_before + 1  # noqa: PTH208
    assert len(references) == 40
    assert np.asarray(references["w1"])[0] == elements
    assert np.asarray(references["w2"])[0] == 0


def test_a_file_that_is_too_short_for_a_large_tensor_is_refused(tmp_path):
    _, path = saved(tmp_path, np.float32)
    data = (tmp_path / "held.bin").read_bytes()
    (tmp_path / "held.bin").write_bytes(data[:-1])
    with pytest.raises(HostError, match=r"tensor 'b' in file 'held.bin': bytes .*: is it the right one\?"):
        be.compile(path)
