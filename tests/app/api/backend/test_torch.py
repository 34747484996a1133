"""PyTorch tensors in and out (NETLIST 7.4), where torch is installed: `pip install buda-emu[torch]`."""

import subprocess
import sys

import numpy as np
import pytest

from app.api.backend.small import entries, machine
from buda_emu.app import backend_api as api
from shared_files import ROOT

torch = pytest.importorskip("torch", reason="torch is not installed")
OK = api.BackendStatusCode.Success
WORDS = {
    torch.float32: "Float32", torch.bfloat16: "Float16_b", torch.float16: "Float16", torch.int32: "Int32",
    torch.int8: "Int8",
}  # fmt: skip
DTYPES = {word: dtype for dtype, word in WORDS.items()} | {"RawUInt32": torch.int32}


def build(tensor, word=None):
    """PyBUDA's builder as NETLIST 7.4 has it: contiguous, int64 as words, 2-D tensors declared as three dimensions."""
    if tensor.dtype == torch.int64:
        tensor, word = tensor.to(torch.int32), "RawUInt32"
    tensor = tensor.contiguous()
    dim = max(tensor.dim(), 3)
    shape = [1] * (4 - tensor.dim()) + list(tensor.shape)
    strides = [tensor.element_size() * int(np.prod(shape[n + 1 :])) for n in range(4)]
    word = api.get_format_from_string(word or WORDS[tensor.dtype])
    return api.PytorchTensorDesc(tensor, tensor.element_size(), word, dim, shape, strides)


def as_torch(desc):
    """A tensor on the memory of a descriptor, as a front end takes it."""
    return torch.frombuffer(desc, dtype=DTYPES[desc.format.name]).reshape(desc.shape)


def numbers(count, dtype):
    return torch.from_numpy(entries(count)).to(dtype)


@pytest.mark.parametrize("dtype", WORDS, ids=str)
@pytest.mark.parametrize("quantise", [True, False])
def test_element_types(tmp_path, dtype, quantise):
    word = WORDS[dtype]
    backend, descs = machine(tmp_path, quantise=quantise, unread=word)
    tensor = numbers(1, dtype)
    assert api.push_input(descs["x"], build(tensor), True, 0, -1) == OK
    out = api.PytorchTensorDesc()
    assert api.get_output(descs["x"], out, True, 0, 0) == OK
    found = as_torch(out)
    assert found.dtype == (dtype if quantise else torch.float32)
    assert torch.equal(found.to(dtype), tensor)
    assert api.free_tensor(out) == OK
    backend.finish()


def test_a_batch_of_three_dimensions_through_a_program(tmp_path):
    backend, descs = machine(tmp_path, "Silicon", df="Float16_b")
    batch = numbers(2, torch.bfloat16).reshape(2, 64, 32)
    assert api.push_input(descs["c"], build(batch[:1].reshape(64, 32)), True, 1, 0) == OK  # two dimensions
    assert api.push_input(descs["a"], build(batch), False, 1, -1) == OK
    assert backend.run_program("p", {"$p_loop_count": "1"}) == OK
    out = api.PytorchTensorDesc()
    out.dim = 3
    for _ in range(10):
        if (status := api.get_output(descs["o"], out, False, 1, 0)) != api.BackendStatusCode.TimeoutError:
            break
    assert status == OK
    assert torch.equal(as_torch(out), batch.reshape(1, 2, 64, 32))
    assert api.pop_output(descs["o"], False, 1) == OK
    assert backend.wait_for_idle() == OK
    backend.finish()


def test_int64_goes_as_words(tmp_path):
    backend, descs = machine(tmp_path, unread="RawUInt32")
    tensor = numbers(1, torch.int64)
    assert api.push_input(descs["x"], build(tensor), True, 0, -1) == OK
    out = api.PytorchTensorDesc()
    assert api.get_output(descs["x"], out, True, 0, 0) == OK
    assert torch.equal(as_torch(out).to(torch.int64), tensor)
    backend.finish()


def test_nothing_is_copied_and_the_tensor_stays_alive():
    tensor = torch.arange(24, dtype=torch.float32).reshape(1, 2, 3, 4)
    desc = build(tensor)
    assert desc.address == tensor.data_ptr()
    np.asarray(desc)[0, 0, 0, 0] = 7
    assert tensor[0, 0, 0, 0] == 7
    as_torch(desc)[0, 0, 0, 1] = 8
    assert tensor[0, 0, 0, 1] == 8
    expected = tensor.tolist()
    del tensor
    assert as_torch(desc).tolist() == expected


def test_a_view_into_a_larger_tensor():
    tensor = torch.arange(48, dtype=torch.float32).reshape(2, 2, 3, 4)[1:]
    assert as_torch(build(tensor)).tolist() == tensor.tolist()
    strides = [4 * stride for stride in tensor.stride()]
    with pytest.raises(RuntimeError, match="needs 192 bytes, the tensor has 96"):
        api.PytorchTensorDesc(tensor, 4, api.DataFormat.Float32, 4, (2, 2, 3, 4), strides)


def test_a_tensor_elsewhere_is_refused():
    with pytest.raises(RuntimeError, match="lies on meta"):
        build(torch.zeros(1, 2, 3, 4, device="meta"))


def test_pushing_arrays_does_not_import_torch(tmp_path, child_environment):
    script = f"""
import pathlib, sys
sys.path[:0] = {[str(ROOT / "tests"), str(ROOT / "tests/helpers")]!r}
from app.api.backend.small import entries, machine, push
backend, descs = machine(pathlib.Path({str(tmp_path)!r}))
push(descs["a"], entries(2))
backend.finish()
print("torch" in sys.modules)
"""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=child_environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "False", done.stderr
