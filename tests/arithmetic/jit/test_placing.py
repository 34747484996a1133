"""Object files of kernels are put into memory without LLVM, and what is no such file is left to it."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from buda_emu.arithmetic.jit import kernel as jit
from buda_emu.arithmetic.jit.machine_code import disk_cache, loading, placing

pytestmark = pytest.mark.skipif(
    jit.disabled or placing.processor() is None, reason="nothing is compiled, or LLVM loads it here"
)
TABLE = np.arange(8, dtype=np.int64) * 3


def work(array: Any, number: int) -> float:
    """Memory, constants, a table of the module, and a sum that is made of vectors."""
    some = np.zeros(16, np.float32)
    for index in range(16):
        some[index] = array[index] * np.float32(1.5)
    if number > 7:
        raise ValueError("too large")
    return some.sum() + TABLE[number]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(disk_cache, "own_caches", lambda: tmp_path / "caches" / "buda-emu")
    assert jit.kernel(work)(np.ones(16, np.float32), 2) == 30
    (found,) = (tmp_path / "caches").rglob("*.o")
    return found


def parts(file: Path) -> tuple[bytes, str, bytes]:
    """All that is kept, the symbol and the object file."""
    whole = disk_cache.read(str(file))
    assert whole is not None
    size = int.from_bytes(whole[:4], "little")
    return whole, whole[4 : 4 + size].decode(), whole[4 + size :]


@pytest.mark.parametrize("by_llvm", [False, True])
def test_both_loaders_give_the_same_function(file: Path, by_llvm: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[str] = []
    with monkeypatch.context() as patched:
        llvm = loading._placed_by_llvm
        patched.setattr(loading, "_placed_by_llvm", lambda *given: used.append("llvm") or llvm(*given))
        if by_llvm:
            patched.setattr(placing, "place_object", lambda *_: None)
        call = loading.load(parts(file)[0], "module", "work")
    assert used == ["llvm"] * by_llvm
    array = np.arange(16, dtype=np.float32)
    assert call(array, 3) == 1.5 * 120 + 9
    assert call(array.astype(np.float64), 3) is NotImplemented
    with pytest.raises(Exception, match="too large"):
        call(array, 8)


def test_what_is_not_understood_is_left_to_llvm(file: Path) -> None:
    _, symbol, code = parts(file)
    assert placing.place_object(code, symbol, loading.OBJECTS) is not None
    for wrong in (b"", b"text", code[:100], code[:-300], b"\x7fELF\x01" + code[5:], code[:18] + b"\xb7" + code[19:]):
        assert placing.place_object(wrong, symbol, loading.OBJECTS) is None
    assert placing.place_object(code, "another", loading.OBJECTS) is None
    assert placing.place_object(code, symbol, {}) is None  # buda_emu.ndarray and others are nowhere


def test_an_altered_file_is_put_somewhere_or_refused(file: Path) -> None:
    """Nothing of it is run: that is what the checksum of what is kept is for."""
    _, symbol, code = parts(file)
    random = np.random.default_rng(0)
    for _ in range(300):
        changed = bytearray(code)
        for position in random.integers(0, len(code), 4):
            changed[position] = random.integers(256)
        placed = placing.place_object(bytes(changed), symbol, loading.OBJECTS)
        assert placed is None or placed > 0


def test_memory_with_code_cannot_be_written(file: Path) -> None:
    _, symbol, code = parts(file)
    address = placing.place_object(code, symbol, loading.OBJECTS)
    assert address is not None
    for line in Path("/proc/self/maps").read_text().splitlines():
        first, last = (int(number, 16) for number in line.split()[0].split("-"))
        if first <= address < last:
            assert line.split()[1] == "r-xp"
            return
    raise AssertionError("the code is nowhere")


def test_the_processor_is_the_same_on_every_core() -> None:
    script = "from buda_emu.arithmetic.jit.machine_code.placing import processor; print(processor())"
    found = {placing.processor()}
    for core in sorted(os.sched_getaffinity(0))[:2]:
        command = [sys.executable, "-c", f"import os; os.sched_setaffinity(0, [{core}])\n{script}"]
        found.add(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
    assert len(found) == 1
    words = (placing.processor() or "").split()
    vendor = b"".join(int(words[number], 16).to_bytes(4, "little") for number in (1, 3, 2)).decode()
    text = Path("/proc/cpuinfo").read_text()
    assert f": {vendor}\n" in text
