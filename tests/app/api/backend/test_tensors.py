"""Tensor descriptors: what they point to, hold, export and pickle (NETLIST 7.2)."""

import ctypes
import gc
import pickle
import sys
import weakref

import ml_dtypes
import numpy as np
import pytest

from app.api.backend.front_end import describe
from buda_emu.app import backend_api as api

SHAPE = (1, 2, 3, 4)


def numbers(dtype=np.float32):
    return np.arange(24).astype(dtype).reshape(SHAPE)


def capsule(array, name=b"tensor"):
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return make(("PyCapsule_New", ctypes.pythonapi))(array.ctypes.data, name, None)


def test_empty():
    empty = api.PytorchTensorDesc()
    assert (empty.itemsize, empty.dim, empty.shape, empty.strides) == (0, 4, [0] * 4, [0] * 4)
    assert empty.format == api.DataFormat.Invalid
    assert empty.address == 0
    with pytest.raises(RuntimeError if sys.version_info >= (3, 12) else SystemError):
        memoryview(empty)
    with pytest.raises(RuntimeError, match="is empty"):
        empty.elements()


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.int8, np.uint8, np.uint16, np.uint32])
def test_exports_the_memory_it_points_to(dtype):
    array = numbers(dtype)
    word = {"uint8": "UInt8", "uint16": "UInt16"}.get(array.dtype.name)
    desc = describe(array, word)
    view = memoryview(desc)
    assert (view.shape, view.ndim, view.itemsize) == (SHAPE, 4, array.itemsize)
    seen = np.asarray(desc)
    assert seen.dtype == array.dtype
    seen[0, 1, 2, 3] = 5
    assert array[0, 1, 2, 3] == 5
    assert np.frombuffer(desc, dtype).sum() == array.sum()


def test_bfloat16_is_words():
    array = numbers(ml_dtypes.bfloat16)
    desc = describe(array, "Float16_b")
    assert np.asarray(desc).view(ml_dtypes.bfloat16).tolist() == array.tolist()


def test_strides_and_other_owners():
    array = np.arange(48, dtype=np.float32).reshape(1, 2, 3, 8)[..., ::2]
    assert np.asarray(describe(array)).tolist() == array.tolist()
    whole = numbers()
    strides = whole.strides
    for owner in (whole.tobytes(), bytearray(whole.tobytes()), memoryview(whole), capsule(whole), capsule(whole, None)):
        desc = api.PytorchTensorDesc(owner, 4, api.DataFormat.Float32, 4, SHAPE, strides)
        assert desc.elements().tolist() == whole.tolist()


def test_what_is_read_only_stays_so():
    whole = numbers()
    for owner in (whole.tobytes(), memoryview(whole).toreadonly()):
        desc = api.PytorchTensorDesc(owner, 4, api.DataFormat.Float32, 4, SHAPE, whole.strides)
        assert memoryview(desc).readonly
        with pytest.raises(ValueError, match="read-only"):
            desc.elements()[0] = 1
    assert not memoryview(describe(whole)).readonly


def test_keeps_its_owner_alive_and_no_longer():
    array = numbers()
    alive = weakref.ref(array)
    desc = describe(array)
    expected = array.tolist()
    del array
    gc.collect()
    assert desc.elements().tolist() == expected
    seen = desc.elements()
    del desc
    gc.collect()
    assert seen.tolist() == expected
    del seen
    gc.collect()
    assert alive() is None


def test_fields_can_be_set():
    desc = describe(numbers())
    desc.shape, desc.strides, desc.dim = [1, 1, 6, 4], [96, 96, 16, 4], 2
    assert desc.elements().tolist() == numbers().reshape(1, 1, 6, 4).tolist()
    desc.shape = [1, 1, 7, 4]
    with pytest.raises(RuntimeError, match="reaches beyond 96 bytes"):
        desc.elements()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (([1.0], 4, "Float32", 4, SHAPE, (96, 48, 16, 4)), "no tensor, no capsule, and no buffer"),
        ((numbers(), 4, "Float32", 4, (2, 2, 3, 4), (96, 48, 16, 4)), "needs 192 bytes, the tensor has 96"),
        ((numbers(), 4, "Float32", 4, (1, 2, 3), (96, 48, 16)), "shape has 4 numbers"),
        ((numbers(), 4, "Float32", 4, SHAPE, (96, 48, 16, -4)), "none may be negative"),
    ],
)
def test_refused(arguments, said):
    with pytest.raises(RuntimeError, match=said):
        api.PytorchTensorDesc(*arguments)


def test_what_is_no_host_tensor():
    with pytest.raises(RuntimeError, match="cannot have format Bfp8_b"):
        describe(numbers(), "Bfp8_b").elements()
    with pytest.raises(RuntimeError, match="an element of Float16 has 2 bytes, not itemsize 4"):
        describe(numbers(), "Float16").elements()


def test_pickle_finds_the_memory_in_this_process():
    array = numbers()
    desc = describe(array, dim=3)
    assert desc.__getstate__() == (
        array.ctypes.data,
        4,
        api.DataFormat.Float32,
        list(SHAPE),
        list(array.strides),
        3,
    )
    copy = pickle.loads(pickle.dumps(desc))
    del desc
    assert (copy.shape, copy.dim, copy.elements().tolist()) == (list(SHAPE), 3, array.tolist())
    pickled = pickle.dumps(copy)
    del copy
    gc.collect()
    gone = pickle.loads(pickled)
    assert gone.address == array.ctypes.data
    with pytest.raises(RuntimeError, match="points to memory that is gone"):
        gone.elements()


def test_print(capsys):
    assert describe(numbers()).print() is None
    said = capsys.readouterr().out
    assert said.startswith("PytorchTensorDesc: itemsize 4, format Float32")
    assert "shape [1, 2, 3, 4]" in said
    api.TilizedTensorDesc().print()
    assert capsys.readouterr().out == (
        "TilizedTensorDesc: num_buffers 0, buf_size_bytes 0, format Invalid, without data\n"
    )


def test_tilized_pickle_drops_the_data():
    packed = api.TilizedTensorDesc()
    packed.adopt(np.zeros((2, 64), np.uint8), "Bfp8_b")
    assert packed.__getstate__() == (2, 64, api.DataFormat.Bfp8_b)
    copy = pickle.loads(pickle.dumps(packed))
    assert (copy.num_buffers, copy.buf_size_bytes, copy.format) == (2, 64, api.DataFormat.Bfp8_b)
    with pytest.raises(RuntimeError, match="has no data"):
        copy.buffers()
    packed.buf_size_bytes = 65
    with pytest.raises(RuntimeError, match="not 2 buffers of 65"):
        packed.buffers()


def test_stride_descriptor():
    strides = api.StrideDescriptor()
    assert (strides.stride, strides.xy_offsets) == (-1, [])
    strides.stride, strides.xy_offsets = 2, [(0, 0), (1, 0)]
    assert strides.__getstate__() == ([(0, 0), (1, 0)], 2)
    assert pickle.loads(pickle.dumps(strides)) == strides != api.StrideDescriptor()
    assert repr(strides) == "StrideDescriptor(stride=2, xy_offsets=[(0, 0), (1, 0)])"
