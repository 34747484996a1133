"""What failed last time, for `--lf`, and how long it took."""

import json
import os
import sys

import pytest

from buda_emu.testing.verify.result import CaseResult
from buda_emu.testing.verify.runs.verdicts import failed_last_time, longest_first, recall, remember


@pytest.fixture(autouse=True)
def caches(tmp_path, monkeypatch):
    """Nothing is read from or written to the user's own caches."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    return tmp_path / "caches"


def results(*names, status="passed", seconds=1.0):
    return [CaseResult(name, status, seconds=seconds) for name in names]


def test_nothing_is_known_at_first(tmp_path):
    assert failed_last_time(tmp_path, ["a.yaml"]) == []
    assert longest_first(tmp_path, ["b.yaml", "a.yaml"]) == [0, 1]


def test_what_failed_is_known_until_it_runs_again(tmp_path):
    remember(tmp_path, [*results("a.yaml"), *results("b.yaml", status="failed"), *results("c.yaml", status="stopped")])
    assert failed_last_time(tmp_path, ["a.yaml", "./c.yaml", "b.yaml"]) == ["./c.yaml", "b.yaml"]
    remember(tmp_path, results("b.yaml", status="skipped"))
    assert failed_last_time(tmp_path, ["a.yaml", "b.yaml", "c.yaml"]) == ["c.yaml"]


def test_the_unknown_and_then_the_longest_begin(tmp_path):
    remember(tmp_path, [*results("a.yaml", seconds=2), *results("b.yaml", seconds=30), *results("c.yaml", seconds=3)])
    assert longest_first(tmp_path, ["a.yaml", "b.yaml", "new.yaml", "c.yaml"]) == [2, 1, 3, 0]


def test_folders_are_apart(tmp_path):
    remember(tmp_path, results("a.yaml", status="failed"))
    assert recall(tmp_path / "other") == {}


def test_a_spoilt_memory_is_none(tmp_path, caches):
    remember(tmp_path, results("a.yaml", status="failed"))
    (path,) = caches.rglob("*.json")
    spoilt = [
        {"schema_version": 99, "netlists": {}},
        {"schema_version": 2},
        {"schema_version": 2, "netlists": [1]},
        {"schema_version": 2, "netlists": {"a.yaml": {"failed": True, "seconds": "long"}}},
    ]
    for content in ("", "[]", "{}", *map(json.dumps, spoilt)):
        path.write_text(content)
        assert recall(tmp_path) == {}


@pytest.mark.skipif(sys.platform == "win32", reason="files of POSIX")
@pytest.mark.parametrize("odd", ["pipe", "endless", "loop", "folder"])
def test_what_is_no_file_is_no_memory_and_nobody_waits_for_it(tmp_path, caches, odd):
    remember(tmp_path, results("a.yaml", status="failed"))
    (path,) = caches.rglob("*.json")
    path.unlink()
    if odd == "pipe":
        os.mkfifo(path)
    elif odd == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero" if odd == "endless" else path)
    assert recall(tmp_path) == {}
    remember(tmp_path, results("a.yaml", status="failed"))
    assert bool(recall(tmp_path)) is (odd in ("pipe", "endless"))


def test_without_a_place_to_write_nothing_is_remembered(tmp_path, monkeypatch):
    def no_home():
        raise RuntimeError

    monkeypatch.setattr("buda_emu.support.caches.user_caches", no_home)
    remember(tmp_path, results("a.yaml", status="failed"))
    assert recall(tmp_path) == {}
