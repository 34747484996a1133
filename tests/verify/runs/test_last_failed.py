"""What failed last time, for `--lf`."""

import json

import pytest

from buda_emu.verify.runs import last_failed
from buda_emu.verify.runs.last_failed import failed_last_time, recall, remember


@pytest.fixture(autouse=True)
def caches(tmp_path, monkeypatch):
    """Nothing is read from or written to the user's own caches."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    return tmp_path / "caches"


def test_nothing_is_known_at_first(tmp_path):
    assert failed_last_time(tmp_path, ["a.yaml"]) == []


def test_what_failed_is_known_until_it_runs_again(tmp_path):
    remember(tmp_path, ["a.yaml", "b.yaml", "c.yaml"], ["b.yaml", "c.yaml"])
    assert failed_last_time(tmp_path, ["a.yaml", "./c.yaml", "b.yaml"]) == ["./c.yaml", "b.yaml"]
    remember(tmp_path, ["b.yaml"], [])
    assert failed_last_time(tmp_path, ["a.yaml", "b.yaml", "c.yaml"]) == ["c.yaml"]


def test_folders_are_apart(tmp_path):
    remember(tmp_path, ["a.yaml"], ["a.yaml"])
    assert recall(tmp_path / "other") == frozenset()


def test_a_spoilt_memory_is_none(tmp_path, caches):
    remember(tmp_path, ["a.yaml"], ["a.yaml"])
    (path,) = caches.rglob("*.json")
    for content in ("", "[]", "{}", json.dumps({"schema_version": 99, "failed": ["x"]}), '{"schema_version": 1}'):
        path.write_text(content)
        assert recall(tmp_path) == frozenset()


def test_without_a_place_to_write_nothing_is_remembered(tmp_path, monkeypatch):
    def no_home():
        raise RuntimeError

    monkeypatch.setattr(last_failed, "user_caches", no_home)
    remember(tmp_path, ["a.yaml"], ["a.yaml"])
    assert recall(tmp_path) == frozenset()
