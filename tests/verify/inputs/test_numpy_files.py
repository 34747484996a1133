"""numpy's files, whole and broken in every way that was found: an array, or an error that names the file."""

import io
import os
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from buda_emu.errors import HostError
from buda_emu.verify.inputs.numpy_files import map_npy, npy_of, npz_of

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
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.npy")
    with pytest.raises(HostError, match="no regular file"):
        map_npy(tmp_path / "x.npy")
    with pytest.raises(HostError, match="No such file"):
        map_npy(tmp_path / "missing.npy")
