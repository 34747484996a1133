"""How many processors a process may use, from made-up files of the system."""

import os

import pytest

from buda_emu.emulator.memory.host import usable_processors

MANY = 64


@pytest.fixture
def system(tmp_path, monkeypatch):
    """Writes files, by path, and says below which folder; a machine of MANY processors."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(MANY)), raising=False)

    def write(files):
        for path, content in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(content)
        return tmp_path

    return write


def test_without_groups_all_that_we_are_bound_to(system):
    assert usable_processors(system({})) == MANY


@pytest.mark.parametrize(
    ("quota", "count"),
    [("200000 100000", 2), ("150000 100000", 2), ("1000 100000", 1), ("max 100000", MANY), ("", MANY)],
)
def test_version_2(system, quota, count):
    groups = "sys/fs/cgroup/a"
    files = {"proc/self/cgroup": "0::/a/b\n", f"{groups}/cpu.max": quota, f"{groups}/b/cpu.max": "max 100000"}
    assert usable_processors(system(files)) == count


@pytest.mark.parametrize(("quota", "count"), [("300000", 3), ("-1", MANY), ("nonsense", MANY)])
def test_version_1(system, quota, count):
    folder = "sys/fs/cgroup/cpu/box"
    files = {
        "proc/self/cgroup": "4:cpu,cpuacct:/box\n3:memory:/box\n",
        f"{folder}/cpu.cfs_quota_us": quota,
        f"{folder}/cpu.cfs_period_us": "100000",
    }
    assert usable_processors(system(files)) == count


def test_a_system_that_binds_to_nothing(system, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_processors(system({})) == 1
