"""Verdicts are kept and taken again, and never where anything that they depend on changed."""

import os
import pickle
import sys
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from buda_emu.emulator.inputs.reference import DirectoryFiles
from buda_emu.support.caches import digest
from buda_emu.testing.verify.result import CaseResult
from buda_emu.testing.verify.runs import verdicts
from buda_emu.testing.verify.runs.collect import Case, Settings
from buda_emu.testing.verify.runs.run_case import run_case
from buda_emu.testing.verify.runs.verdicts import Verdicts
from report.results import nop

TIMEOUT = 600.0


@pytest.fixture
def caches(tmp_path, monkeypatch):
    monkeypatch.setattr("buda_emu.support.caches.own_caches", lambda: tmp_path / "caches")
    return tmp_path / "caches" / verdicts.FOLDER


@pytest.fixture
def case(tmp_path, caches):
    """A netlist in a file and tensors in a folder."""
    (tmp_path / "net.yaml").write_text(nop())
    (tmp_path / "tensors").mkdir()
    np.save(tmp_path / "tensors" / "a.npy", np.full((1, 1, 32, 32), 0.3, np.float32))
    files = DirectoryFiles(tmp_path / "tensors")
    return Case("net.yaml", str(tmp_path / "net.yaml"), None, files, ("defaults.yaml", b"test-config: {}"), Settings())


def known(case, **more):
    return Verdicts([case], **{"timeout": TIMEOUT, **more}).find(0)


def verdict_of(case, **more):
    """Its verdict, kept."""
    kept = Verdicts([case], **{"timeout": TIMEOUT, **more})
    result = run_case(case)
    kept.keep(0, result)
    return result


def same(a, b):
    """Equal in every field, arrays too."""
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b, equal_nan=True)
    if is_dataclass(a):
        return type(a) is type(b) and all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def test_a_verdict_answers_in_every_field(case):
    full = replace(case, settings=Settings("format", per_op=True, detail=True))
    assert known(full) is None
    result = verdict_of(full)
    assert result.outputs[0].figures.detail is not None
    assert result.ops
    again = known(full)
    assert again.from_cache
    assert same(replace(again, from_cache=False), result)


def test_what_stops_or_is_rejected_is_kept(case, tmp_path):
    (tmp_path / "net.yaml").write_text(nop(broken=True))
    result = verdict_of(case)
    assert known(case).stopped == result.stopped
    (tmp_path / "net.yaml").write_text(nop().replace("Float16_b", "Float99"))
    assert verdict_of(case).status == "rejected"
    assert "Float99" in known(case).message


def test_what_lacks_memory_is_not_kept(case):
    result = verdict_of(replace(case, settings=replace(case.settings, machine={"memory_limit": 1})))
    assert result.status == "unsupported"
    assert known(case) is None
    short = replace(result, status="rejected", message="q needs 1.00 GiB more; raise the memory limit")
    Verdicts([case], timeout=TIMEOUT).keep(0, short)
    assert known(case) is None


def changed_netlist(case, folder):
    path = folder / "net.yaml"
    times = path.stat()
    path.write_text(path.read_text().replace("uniform_upper_bound: 1", "uniform_upper_bound: 2"))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # the same size and time
    return case


def changed_tensor(case, folder):
    path = folder / "tensors" / "a.npy"
    times, data = path.stat(), bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    return case


def another_tensor(case, folder):
    (folder / "tensors" / "a.npy").rename(folder / "tensors" / "o.npy")
    return case


CHANGES = {
    "netlist": changed_netlist, "tensor": changed_tensor, "tensors": another_tensor,
    "defaults": lambda case, _: replace(case, defaults=("defaults.yaml", b"test-config: { }")),
    "name": lambda case, _: replace(case, name="./net.yaml"),
    "no tensors": lambda case, _: replace(case, reference=None),
    **{
        name: lambda case, _, name=name, value=value: replace(case, settings=replace(case.settings, **{name: value}))
        for name, value in {
            "precision": "format", "expected": "format", "compare": "strict", "seed": 1, "arch": "wormhole_b0",
            "programs": ("p",), "parameters": (("$x", "1"),), "per_op": True, "detail": True, "perf": True,
            "threshold": 0.5, "allow_pickle": True, "coverage": True,
        }.items()
    },
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGES)
def test_what_a_verdict_depends_on_is_never_answered(what, case, tmp_path):
    verdict_of(case)
    assert known(case) is not None
    assert known(CHANGES[what](case, tmp_path)) is None


def test_every_setting_is_told_apart_or_changes_nothing():
    named = {field.name for field in fields(Settings)}
    assert named == set(CHANGES) & named | {"machine", "cache"}


@pytest.mark.parametrize(
    ("name", "value"),
    [("__version__", "0.0.0"), ("sources", lambda: (("a.py", 1, 2),)), ("library_digests", lambda: {"numpy": "0.0"})],
)
def test_another_version_is_not_answered(name, value, case, monkeypatch):
    verdict_of(case)
    assert known(case) is not None
    monkeypatch.setattr(verdicts, name, value)
    assert known(case) is None


def test_threads_and_the_worker_share_of_memory_change_nothing(case):
    verdict_of(case)
    assert (
        known(replace(case, settings=replace(case.settings, machine={"threads": 7, "memory_limit": 1 << 30})))
        is not None
    )
    assert known(case, most_bytes=1 << 20) is None  # that was asked for


def test_a_verdict_that_took_longer_than_is_allowed_does_not_answer(case):
    result = verdict_of(case)
    assert known(case, timeout=result.seconds / 2) is None


def test_what_changes_while_it_is_tested_is_not_kept(case, tmp_path):
    kept = Verdicts([case], timeout=TIMEOUT)
    result = run_case(case)
    changed_netlist(case, tmp_path)
    kept.keep(0, result)
    assert known(case) is None
    (tmp_path / "net.yaml").write_text(nop())
    assert known(case) is None


def test_a_netlist_that_is_not_there(case, tmp_path):
    (tmp_path / "net.yaml").unlink()
    assert verdict_of(case).status == "rejected"
    assert known(case) is None


class Bomb:
    """Runs code when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.marker),)


def test_no_file_can_change_a_verdict_or_run_code(case, caches, tmp_path):
    verdict_of(case)
    (path,) = caches.iterdir()
    good = path.read_bytes()
    head = len(b"buda-emu verdict 1\n")
    payloads = [
        b"",
        b".",
        pickle.dumps(Bomb(tmp_path / "marker")),
        pickle.dumps(17),
        pickle.dumps(CaseResult("net.yaml", "crashed")),
    ]
    damaged = [b"", good[:30], good[:-1], good[:-1] + bytes([good[-1] ^ 1]), good[:25] + b"?" + good[26:]]
    for content in [*damaged, *(good[:head] + digest(str(path), payload) + payload for payload in payloads)]:
        path.write_bytes(content)
        assert known(case) is None
    assert not (tmp_path / "marker").exists()
    path.write_bytes(good)
    assert known(case) is not None


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_a_folder_that_others_can_write_to_is_not_used(case, caches):
    verdict_of(case)
    caches.chmod(0o777)
    assert known(case) is None
    caches.chmod(0o700)
    assert known(case) is not None
