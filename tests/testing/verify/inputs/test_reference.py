"""Tensors from outside: .npy and .bin files of a directory or in memory (NETLIST 5.4)."""

import io
import json
import os

import numpy as np
import pytest

from buda_emu.emulator.inputs.reference import ContentFiles, DirectoryFiles, tensor_names, tensors
from buda_emu.support.errors import HostError

SHAPE = (1, 2, 3)


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def content(**files):
    return ContentFiles("memory", {name.replace("__", "."): data for name, data in files.items()})


def test_bin_files_are_entries_in_order_of_their_numbers():
    values = np.arange(12, dtype="<f4").reshape(2, *SHAPE)
    found = tensors(content(q__0__bin=values[0].tobytes(), q__1__bin=values[1].tobytes()), "q", "Float32", SHAPE)
    assert found is not None
    assert found.source == "q.0.bin .. q.1.bin"
    assert found.array.dtype == np.float32
    assert np.array_equal(found.array, values)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["q.0.bin", "q.2.bin"], r"q\.2\.bin, but there is no q\.1\.bin"),
        (["q.1.bin"], r"q\.1\.bin, but there is no q\.0\.bin"),
        (["q.00.bin"], r"q\.00\.bin, but there is no q\.0\.bin"),
        (["q.bin"], r"q\.bin, but there is no q\.0\.bin"),
    ],
)
def test_entries_after_a_missing_number_are_refused(names, message):
    data = np.zeros(6, "<f4").tobytes()
    with pytest.raises(HostError, match=message):
        tensors(ContentFiles("memory", dict.fromkeys(names, data)), "q", "Float32", SHAPE)
    assert tensors(ContentFiles("memory", dict.fromkeys(names, data)), "r", "Float32", SHAPE) is None


@pytest.mark.parametrize("name", ["q.NPY", "q.0.BIN", "all.Npz", "q.Safetensors"])
def test_a_suffix_in_capital_letters_is_refused_and_not_left_out(tmp_path, name):
    (tmp_path / name).write_bytes(npy(np.zeros((1, *SHAPE))))
    files = DirectoryFiles(tmp_path)
    for read in (lambda: tensors(files, "q", "Float32", SHAPE), lambda: tensor_names(files), files.by_content):
        with pytest.raises(HostError, match=r"the suffix has capital letters: rename it to \.[a-z]+$"):
            read()


def test_raw_formats_are_words():
    words = np.array([1, 2**31, 2**32 - 1, 0, 0x7FC00001, 5], "<u4")
    found = tensors(content(q__0__bin=words.tobytes()), "q", "RawUInt32", SHAPE)
    assert found is not None
    assert found.array.dtype == np.uint32
    assert np.array_equal(found.array.reshape(-1), words)
    kept = tensors(content(q__npy=npy(words.reshape(1, *SHAPE).astype(np.int64))), "q", "RawUInt32", SHAPE)
    assert kept is not None
    assert np.array_equal(kept.array.reshape(-1), words)


def test_npy_goes_before_bin():
    ones = np.ones((3, *SHAPE), np.float64)
    found = tensors(content(q__npy=npy(ones), q__0__bin=b""), "q", "Float16_b", SHAPE)
    assert found is not None
    assert (found.source, found.array.dtype, found.array.shape) == ("q.npy", np.float32, ones.shape)


@pytest.mark.parametrize(
    ("files", "df", "message"),
    [
        ({"q__0__bin": b"\0" * 20}, "Float32", "q.0.bin has 20 bytes, expected 24"),
        ({"q__npy": npy(np.zeros((2, 1, 2, 4)))}, "Float32", r"q.npy has shape \[2, 1, 2, 4\]"),
        ({"q__npy": npy(np.zeros(6))}, "Float32", "has shape"),
        ({"q__npy": b"no array"}, "Float32", "q.npy is not a numpy array file"),
        ({"q__npy": npy(np.zeros((1, *SHAPE), object))}, "Float32", "not a numpy array file"),
        ({"q__npy": npy(np.zeros((1, *SHAPE)))}, "RawUInt32", "takes unsigned integers"),
        ({"q__npy": npy(np.zeros((1, *SHAPE), "U1"))}, "Float32", "expected numbers"),
    ],
)
def test_files_of_another_kind_are_refused(files, df, message):
    with pytest.raises(HostError, match=message):
        tensors(content(**files), "q", df, SHAPE)


def npz(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def test_archives_hold_arrays_by_name():
    values = np.arange(12, dtype=np.float32).reshape(2, *SHAPE)
    files = content(some__npz=npz(q=values, r=values + 1))
    found = tensors(files, "r", "Float32", SHAPE)
    assert (found.source, np.array_equal(found.array, values + 1)) == ("some.npz", True)
    assert tensors(files, "s", "Float32", SHAPE) is None
    assert tensor_names(files) == {"q": "some.npz", "r": "some.npz"}
    with pytest.raises(HostError, match=r"q of some.npz has shape \[2, 1, 2, 3\], expected \[entries, 2, 2, 3\]"):
        tensors(files, "q", "Float32", (2, 2, 3))
    with pytest.raises(HostError, match=r"memory: q is in q.npy and in some.npz"):
        tensor_names(content(q__npy=npy(values), some__npz=npz(q=values)))
    for broken in (b"", b"PK\3\4junk", npy(values)):
        with pytest.raises(HostError, match=r"x\.npz is not a numpy archive"):
            tensors(content(x__npz=broken), "q", "Float32", SHAPE)


def test_safetensors_and_bfloat16():
    pytest.importorskip("safetensors")
    halves = np.array([0x3F80, 0xC000, 0x7F80, 1, 2, 3], "<u2")
    head = json.dumps(
        {
            "q": {"dtype": "BF16", "shape": [1, *SHAPE], "data_offsets": [0, 12]},
            "r": {"dtype": "I8", "shape": [1, *SHAPE], "data_offsets": [12, 18]},
        }
    ).encode()
    data = len(head).to_bytes(8, "little") + head + halves.tobytes() + bytes(range(6))
    files = content(model__safetensors=data)
    expected = (halves.astype(np.uint32) << 16).view(np.float32)
    assert np.array_equal(tensors(files, "q", "Float32", SHAPE).array.reshape(-1), expected)
    assert np.array_equal(tensors(files, "r", "Float32", SHAPE).array.reshape(-1), np.arange(6))
    with pytest.raises(HostError, match=r"x\.safetensors is not a safetensors file"):
        tensors(content(x__safetensors=b"junk"), "q", "Float32", SHAPE)


def test_a_directory_is_read_again_when_a_file_changes(tmp_path):
    files = DirectoryFiles(tmp_path)
    for number in (1, 22):
        np.savez(tmp_path / "all.npz", q=np.full((number, *SHAPE), number, np.float32))
        assert len(tensors(files, "q", "Float32", SHAPE).array) == number
    times = (tmp_path / "all.npz").stat()
    np.savez(tmp_path / "all.npz", q=np.full((22, *SHAPE), 3, np.float32))
    os.utime(tmp_path / "all.npz", ns=(times.st_atime_ns, times.st_mtime_ns))  # the same size and time, other contents
    assert tensors(files, "q", "Float32", SHAPE).array[0, 0, 0, 0] == 3
    assert files.by_content().names() == ["all.npz"]


@pytest.mark.parametrize("shape", [(2, 2, 3), (2, 3), (2, 1, 2, 3)])
def test_t_of_1_may_be_left_out(shape):
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    found = tensors(content(q__npy=npy(values)), "q", "Float32", SHAPE)
    assert np.array_equal(found.array, values.reshape(-1, *SHAPE))


def test_names_of_tensors():
    files = content(q__0__bin=b"", q__1__bin=b"", r__npy=npy(np.zeros(3)), a__init__npy=npy(np.zeros(3)))
    assert set(tensor_names(files)) == {"q", "r", "a.init"}


def test_names_that_lead_out_of_the_directory_are_no_files(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "secret.npy").write_bytes(npy(np.zeros((1, *SHAPE))))
    assert DirectoryFiles(tmp_path / "inner").read("../secret.npy") is None
    assert DirectoryFiles(tmp_path).read("secret.npy") is not None
    assert DirectoryFiles(tmp_path).read("a\0b") is None


def test_by_content_holds_the_same_files(tmp_path):
    (tmp_path / "q.0.bin").write_bytes(b"1234")
    (tmp_path / "notes.txt").write_bytes(b"no tensor")
    files = DirectoryFiles(tmp_path).by_content()
    assert files.contents == {"q.0.bin": b"1234"}
    assert files.where == str(tmp_path)
    assert files.by_content() is files


@pytest.mark.parametrize("folder", ["a/b/net", "a/b", "net", "b", ""])
def test_the_nearest_folder_of_a_netlist_is_taken(tmp_path, folder):
    (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    found = DirectoryFiles.for_netlist(tmp_path, "../a/b/net.yaml")
    assert found.directory == tmp_path / folder
    with pytest.raises(HostError, match="not a directory"):
        DirectoryFiles.for_netlist(tmp_path / "none", "net.yaml")
