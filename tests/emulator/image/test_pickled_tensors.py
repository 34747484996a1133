"""Pickled tensors: only where they are asked for, numpy's without torch, torch's with it."""

import pickle
import sys
import types

import numpy as np
import pytest

import buda_emu as be
from buda_emu.emulator.image.load import check_image
from buda_emu.emulator.image.rules import ImageError
from buda_emu.support.errors import HostError
from small_images import TOP, members, parts, tar_bytes, values, write

FILE = "tensors/torch.Tensor.w.pkl"


def image_file(tmp_path, data):
    content, files = parts(w=(FILE, {f"{TOP}/{FILE}": data}))
    return write(tmp_path / "p.tti", tar_bytes(members(content, files)))


def load(tmp_path, data):
    return be.load_image(image_file(tmp_path, data), allow_pickle=True)


@pytest.mark.parametrize("shape", [(1, 1, 32, 32), (1, 32, 32), (32, 32), (1, 1, 1, 32, 32)])
def test_numpy_arrays(shape, tmp_path):
    """NETLIST 7.4: a tensor of two dimensions is one entry."""
    array = values(shape)
    image = load(tmp_path, pickle.dumps(array, pickle.HIGHEST_PROTOCOL))
    assert np.array_equal(image.tensor("w"), array.reshape(1, 1, 32, 32))
    with image.emulator(threads=1) as emulator:
        assert np.array_equal(emulator.peek("w"), array.reshape(1, 1, 32, 32))


class Harmful:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def test_no_code_runs_unless_it_is_asked_for(tmp_path):
    mark = tmp_path / "harm"
    path = image_file(tmp_path, pickle.dumps(Harmful(str(mark))))
    with pytest.raises(ImageError, match="can run any code on this machine"):
        be.load_image(path)
    found = check_image(path)
    assert [(item.rule, item.severity) for item in found.diagnostics] == [("image-pickle", "warning")]
    assert not check_image(path, strict=True).ok
    be.load_image(path, allow_pickle=True)  # tensors are lazy
    assert not mark.exists()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "it is not a whole pickle"), (b"\x80\x05junk", "it is not a whole pickle"),
        (pickle.dumps(values())[:-20], "it is not a whole pickle"),
        (pickle.dumps({"a": 1}), "it holds dict, not a tensor"),
        (pickle.dumps(np.array(["x"])), "elements of type <U1"),
        (pickle.dumps(np.zeros((1, 0))), "it holds 0 elements"),
        (pickle.dumps(np.zeros((2, 1, 1, 32, 32))), "has no form"),
    ],
    ids=["empty", "junk", "cut", "dict", "texts", "nothing", "5-D"],
)  # fmt: skip
def test_pickles_that_hold_no_tensor(data, says, tmp_path):
    with pytest.raises(ImageError, match=says) as caught:
        load(tmp_path, data).tensor("w")
    assert caught.value.member == f"{TOP}/{FILE}"


def test_a_tensor_of_the_wrong_shape_is_refused_by_the_push(tmp_path):
    with pytest.raises(HostError, match="push to w"):
        load(tmp_path, pickle.dumps(values((64, 32)))).emulator(threads=1)


def test_a_pickle_of_torch_without_torch(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    data = b"\x80\x04\x8c\x0ctorch._utils\x8c\x12_rebuild_tensor_v2\x93."
    with pytest.raises(HostError, match="needs the Python package torch, which is not installed: pip install torch"):
        load(tmp_path, data).tensor("w")


class FakeTensor:
    """What this package asks of a torch tensor."""

    def __init__(self, array, dtype):
        self.array, self.dtype = array, dtype

    def detach(self):
        return self

    def cpu(self):
        return self

    def float(self):
        return FakeTensor((self.array.astype(np.uint32) << 16).view(np.float32), "float32")

    def numpy(self):
        return self.array


def test_a_bfloat16_tensor_comes_as_float32(tmp_path, monkeypatch):
    """With a stand-in for torch, so that the conversion is tested where torch is not installed."""
    torch = types.ModuleType("torch")
    torch.bfloat16, torch.FakeTensor = "bfloat16", FakeTensor
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(FakeTensor, "__module__", "torch")
    words = (values((32, 32)).view(np.uint32) >> 16).astype(np.uint16)
    image = load(tmp_path, pickle.dumps(FakeTensor(words, "bfloat16")))
    assert np.array_equal(image.tensor("w"), values((1, 1, 32, 32)))


def test_real_torch_tensors(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.int32):
        tensor = torch.arange(1024).reshape(32, 32).to(dtype)
        image = load(tmp_path, pickle.dumps(tensor, pickle.HIGHEST_PROTOCOL))
        assert np.array_equal(image.tensor("w").astype(np.float32), tensor.float().numpy().reshape(1, 1, 32, 32))
