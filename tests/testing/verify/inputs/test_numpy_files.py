"""numpy's files, whole and broken in every way that was found: an array, or an error that names the file."""

import io
import os
import sys
import tracemalloc
import warnings
import zipfile
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random

import numpy as np
import pytest

from buda_emu.emulator.inputs.numpy_files import map_npy, npy_of, npz_headers, npz_of, read_npy
from buda_emu.support.errors import HostError

ARRAY = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)


def saved(array: "np.ndarray", **how: bool) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, **how)
    return stream.getvalue()


GOOD = saved(ARRAY)
BROKEN = {
    "empty": b"",
    "magic": GOOD[:6],
    "header": GOOD[:40],
    "short": GOOD[:-1],
    "long": GOOD + b"x",
    "huge": GOOD.replace(b"(1, 2, 3, 4)", b"(99999999999, 4)"),
    "negative": GOOD.replace(b"(1, 2, 3, 4)", b"(-1, 2, 3, 4)"),
    "two negatives": GOOD.replace(b"(1, 2, 3, 4)", b"(-1, -24)"),
    "nested": GOOD.replace(b"{'descr'", b"{" * 8),
    "deep": GOOD.replace(b"{'descr'", b"[" * 8),
    "kind": GOOD.replace(b"'<f4'", b"'<f9'"),
    "records": GOOD.replace(b"'<f4'", b"[('a', '<f4')]"),
    "objects": saved(np.array([{}, 1], dtype=object), allow_pickle=True),
    "nothing": saved(np.empty((2, 2), "V0")) if np.dtype("V0").itemsize == 0 else b"",
    "version": b"\x93NUMPY\x09\x00" + GOOD[8:],
    "zip": b"PK\3\4junk",
}


@pytest.mark.parametrize(
    "array", [ARRAY, np.asfortranarray(ARRAY), ARRAY.astype(">f4"), ARRAY[:0], np.float32(3), np.arange(5)]
)
def test_good_files(tmp_path: Path, array: "np.ndarray") -> None:
    (tmp_path / "x.npy").write_bytes(saved(array))
    np.savez_compressed(tmp_path / "x.npz", a=array, b=ARRAY)
    for found in (npy_of("x", saved(array)), npz_of("x", (tmp_path / "x.npz").read_bytes())["a"]):
        assert found.dtype == np.asarray(array).dtype
        np.testing.assert_array_equal(found, array)
    if np.size(array) and np.ndim(array):
        np.testing.assert_array_equal(map_npy(tmp_path / "x.npy"), array)


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_broken_files(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.npy").write_bytes(data)
    with pytest.raises(HostError, match=r"x\.npy is not a numpy array file: ."):
        map_npy(tmp_path / "x.npy")
    with pytest.raises(HostError, match=r"x is not a numpy archive: ."):
        npz_of("x", data)
    with pytest.raises(HostError, match=r"x is not a numpy array file: ."):
        npy_of("x", data)


def test_an_archive_is_not_unpacked_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kilobytes that hold megabytes; also before a member that is broken."""
    stream = io.BytesIO()
    np.savez_compressed(stream, a=np.zeros(1 << 20, np.float32), b=ARRAY)
    data, needed = stream.getvalue(), (4 << 20) + ARRAY.nbytes
    assert len(data) < 10_000
    assert npz_of("x.npz", data, needed)["a"].nbytes == 4 << 20
    monkeypatch.setattr(np, "empty", lambda *_: pytest.fail("memory is taken"))
    with pytest.raises(HostError, match=r"^x\.npz unpacks to 4\.0 MiB, the memory limit is 1\.0 KiB$"):
        npz_of("x.npz", data, 1024)
    with pytest.raises(HostError, match=r"unpacks to 4\.0 MiB"):
        npz_of("x.npz", data, needed - 1)
    with zipfile.ZipFile(stream, "a") as archive:
        archive.writestr("c.npy", GOOD[:-1])
    with pytest.raises(HostError, match="not a numpy archive"):
        npz_of("x.npz", stream.getvalue())


@pytest.mark.skipif(sys.platform == "win32", reason="pipes")
def test_an_archive_takes_no_more_memory_than_its_arrays() -> None:
    packed = io.BytesIO()
    np.savez_compressed(packed, a=np.zeros(1 << 23, np.float32))
    data = packed.getvalue()
    tracemalloc.start()
    try:
        found = npz_of("in.npz", data)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found["a"].nbytes == 1 << 25
    assert most < 1.3 * (1 << 25)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.npy")
    with pytest.raises(HostError, match="not a regular file"):
        map_npy(tmp_path / "x.npy")
    with pytest.raises(HostError, match="No such file"):
        map_npy(tmp_path / "missing.npy")


WORDS = (b"\xff\xff\xff\x7f", b"\0\0\0\0", b"99999999999", b"-1", b"(", b"'", b"{", b"O", b"PK\3\4", b"PK\5\6", b"\n")


def mutated(seed: int) -> bytes:
    """A good file with a few bytes changed, left out, put in or cut off, most of them in its headers."""
    random = Random(seed)
    stream = io.BytesIO()
    random.choice((np.savez, np.savez_compressed))(stream, a=ARRAY, b=np.zeros(900, np.uint8))
    data = bytearray(random.choice((GOOD, stream.getvalue())))
    for _ in range(random.choice((1, 1, 2, 5))):
        place = random.randrange(min(len(data), 400)) if random.random() < 0.6 else random.randrange(len(data))
        word = random.choice(WORDS)
        match random.randrange(6):
            case 0:
                data[place] ^= 1 << random.randrange(8)
            case 1:
                data[place] = random.randrange(256)
            case 2:
                del data[place : place + random.choice((1, 8, 64))]
            case 3:
                data[place:place] = word
            case 4:
                data[place : place + len(word)] = word
            case _:
                del data[place:]
        if not data:
            break
    return bytes(data)


def refused_or_read(seeds: Iterable[int], path: Path) -> None:
    for seed in seeds:
        data = mutated(seed)
        path.write_bytes(data)
        for read in (
            partial(npy_of, "x", data),
            partial(npz_of, "x", data),
            partial(map_npy, path),
            partial(npz_headers, path),
        ):
            with suppress(HostError):
                read()


def test_mutated_files_are_read_or_refused(tmp_path: Path) -> None:
    refused_or_read(range(200), tmp_path / "x")


@pytest.mark.slow
def test_20_000_mutated_files_are_read_or_refused(tmp_path: Path) -> None:
    refused_or_read(range(1000, 21_000), tmp_path / "x")


def test_a_name_that_occurs_twice_in_an_archive(tmp_path):
    """With the suffix or without: both would be the array of that name, and the last would count."""
    for second in ("x.npy", "x"):
        path = tmp_path / "a.npz"
        with zipfile.ZipFile(path, "w") as archive, warnings.catch_warnings(action="ignore"):
            for name, value in (("x.npy", 1), ("y.npy", 2), (second, 3)):
                stream = io.BytesIO()
                np.save(stream, np.full(3, value))
                archive.writestr(name, stream.getvalue())
        for read in (lambda path=path: npz_of("a", path.read_bytes()), lambda path=path: npz_headers(path)):
            with pytest.raises(HostError, match="is not a numpy archive: it holds 'x' twice: leave one of them"):
                read()


def test_a_file_that_is_not_there_is_not_called_broken(tmp_path: Path) -> None:
    for read in (read_npy, map_npy):
        with pytest.raises(HostError, match=r"nope\.npy: No such file or directory$"):
            read(tmp_path / "nope.npy")
