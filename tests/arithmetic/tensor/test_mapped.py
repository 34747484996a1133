"""Arrays that are files: found, and their pages given back."""

import sys
from pathlib import Path

import numpy as np
import pytest

from buda_emu.arithmetic.tensor.mapped import FileMappings, map_bytes, page_releaser

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what memory is")


def written(folder: Path, size: int = 3 << 20) -> Path:
    path = folder / "bytes"
    path.write_bytes(np.arange(size // 4, dtype=np.uint32).tobytes())
    return path


def test_map_bytes(tmp_path: Path) -> None:
    with written(tmp_path).open("rb") as stream:
        found = map_bytes(stream, 4100, 1 << 20)
    assert np.array_equal(found.view(np.uint32), np.arange(1025, 1025 + (1 << 18)))
    assert not found.flags.writeable


def test_a_mapping_is_found(tmp_path: Path) -> None:
    path = written(tmp_path)
    with path.open("rb") as stream:
        array = map_bytes(stream, 0, 3 << 20)
    address = array.__array_interface__["data"][0]
    found = FileMappings().of(address, array.nbytes)
    assert found is not None
    assert (found.path, found.shared) == (str(path), True)
    assert FileMappings().of(address, 1 << 40) is None, "more than is mapped"
    own = np.zeros(3 << 20, np.uint8)
    assert FileMappings().of(own.__array_interface__["data"][0], own.nbytes) is None, "memory of its own"


@pytest.mark.parametrize("mode", ["r", "c"])
def test_pages_go_back_and_contents_stay(tmp_path: Path, mode: str) -> None:
    path = written(tmp_path, 64 << 20)
    array = np.memmap(path, np.uint32, mode)  # type: ignore[call-overload]
    if mode == "c":
        array[5] = 7
    before = _resident()
    total = int(array.sum(dtype=np.uint64))
    assert _resident() - before > 48 << 20
    page_releaser(array, shared=mode == "r")()
    assert _resident() - before < 16 << 20
    assert int(array.sum(dtype=np.uint64)) == total


def _resident() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) << 10
