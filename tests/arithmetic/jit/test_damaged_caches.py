"""Hundreds of damaged files in the caches: nothing of them is used, each run computes the same and heals it."""

import os
import random
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import buda_emu as be
from buda_emu.arithmetic.jit import kernel as jit
from buda_emu.arithmetic.jit.machine_code import disk_cache
from buda_emu.netlist import cache as netlist_cache
from example_netlists import DIRECTORY

pytestmark = pytest.mark.skipif(jit.disabled, reason="nothing is compiled or cached")
QUICK, MANY = 75, 2_000
NETLIST = DIRECTORY / "matmul.yaml"


def triple(x: np.float32) -> np.float32:
    return x * np.float32(3)


def quadruple(x: np.float32) -> np.float32:
    return x * np.float32(4)


@pytest.fixture
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """With two kernels and a netlist in them: their files, and their bytes as they are whole."""
    own = tmp_path / "caches" / "buda-emu"
    monkeypatch.setattr(disk_cache, "own_caches", lambda: own)
    monkeypatch.setattr("buda_emu.support.caches.own_caches", lambda: own)
    assert jit.kernel(triple)(np.float32(1)) == 3
    assert jit.kernel(quadruple)(np.float32(1)) == 4
    be.check(NETLIST)
    (kernel,) = own.rglob("triple-*.o")
    (other,) = own.rglob("quadruple-*.o")
    (netlist,) = (path for path in (own / netlist_cache.FOLDER).iterdir())
    return SimpleNamespace(
        kernel=kernel, netlist=netlist, whole=kernel.read_bytes(), other=other.read_bytes(), text=netlist.read_bytes()
    )


def damaged(stream: random.Random, data: bytes, other: bytes) -> bytes:
    """Bytes flipped, cut, added, zeroed, taken from another file, or nothing of it."""
    changed = bytearray(data)
    kind = stream.randrange(7)
    if kind <= 1:
        for _ in range(stream.choice([1, 1, 2, 8, 64])):
            changed[stream.randrange(len(changed) if kind else 60)] ^= 1 << stream.randrange(8)
    elif kind == 2:
        del changed[stream.randrange(len(changed)) :]
    elif kind == 3:
        changed += stream.randbytes(stream.choice([1, 60, 5000]))
    elif kind == 4:
        first, last = sorted(stream.randrange(len(changed) + 1) for _ in range(2))
        changed[first : last + 1] = bytes(last + 1 - first)
    elif kind == 5:
        at = stream.randrange(1, 60)
        changed = bytearray(other[:at] + data[at:])
    else:
        return stream.choice([b"", b"\0" * len(data), stream.randbytes(len(data)), data[60:], data + data])
    return bytes(changed)


def attack(caches: SimpleNamespace, seeds: range) -> None:
    """Every 25th is also called or loaded, and heals."""
    expected = repr(be.check(NETLIST).netlist)
    for seed in seeds:
        stream = random.Random(seed)
        content = damaged(stream, caches.whole, caches.other)
        caches.kernel.write_bytes(content)
        assert content == caches.whole or disk_cache.read(str(caches.kernel)) is None, seed
        caches.netlist.write_bytes(damaged(stream, caches.text, caches.whole))
        if seed % 25 == 0:
            with jit.compilations() as compiled:
                assert jit.kernel(triple)(np.float32(1)) == 3
            assert len(compiled) == (content != caches.whole)
            assert disk_cache.read(str(caches.kernel)) is not None
        found = be.check(NETLIST)
        assert repr(found.netlist) == expected, seed
        assert caches.netlist.read_bytes() == caches.text, seed


def test_damaged_caches(caches: SimpleNamespace) -> None:
    attack(caches, range(QUICK))


@pytest.mark.slow
def test_two_thousand_damaged_caches(caches: SimpleNamespace) -> None:
    attack(caches, range(QUICK, QUICK + MANY))


def test_a_file_under_another_name_is_not_used(caches: SimpleNamespace) -> None:
    """Whole as it is: another kernel's, or the same one's of other sources, which another folder holds."""
    for name, content in ((caches.kernel.name, caches.other), (caches.kernel.with_suffix(".x").name, caches.whole)):
        renamed = caches.kernel.with_name(name)
        renamed.write_bytes(content)
        assert disk_cache.read(str(renamed)) is None
    with jit.compilations() as compiled:
        assert jit.kernel(triple)(np.float32(1)) == 3
    assert len(compiled) == 1
    assert caches.kernel.read_bytes() != caches.other
    moved = caches.kernel.parent.with_name("kernels-of-others")
    moved.mkdir(0o700)
    (moved / caches.kernel.name).write_bytes(caches.kernel.read_bytes())
    assert disk_cache.read(str(caches.kernel)) is not None
    assert disk_cache.read(str(moved / caches.kernel.name)) is None


@pytest.mark.parametrize("odd", ["folder", "loop", "link", "unreadable", "pipe", "endless"])
def test_what_is_no_file_of_ours(odd: str, caches: SimpleNamespace, tmp_path: Path) -> None:
    for path in (caches.kernel, caches.netlist):
        path.unlink()
        if odd == "folder":
            path.mkdir()
        elif odd == "loop":
            path.symlink_to(path)
        elif odd == "pipe":
            os.mkfifo(path)  # nobody writes to it: who opens it waits
        elif odd == "endless":
            path.symlink_to("/dev/zero")
        elif odd == "link":
            path.symlink_to(tmp_path / "nowhere" / "else")
        else:
            path.touch(0)
    assert jit.kernel(triple)(np.float32(1)) == 3
    assert be.check(NETLIST).ok


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_a_folder_of_somebody_else_is_not_used(caches: SimpleNamespace) -> None:
    """Whole as its files are."""
    os.chown(caches.kernel.parent, 12345, 12345)
    assert disk_cache.read(str(caches.kernel)) is None
    assert disk_cache.machine_code_file(triple, "any") is None
    assert jit.kernel(triple)(np.float32(1)) == 3
