"""How much memory the machine has left, and sizes as people write them."""

import os
from pathlib import Path

import pytest

from buda_emu.emulator.memory.host import (
    SHARE,
    available_memory,
    default_memory_limit,
    resident_memory,
    size_text,
)
from buda_emu.support.errors import HostError
from buda_emu.support.options import parse_size

GIB = 1 << 30


def files(root: Path, texts: dict[str, str]) -> Path:
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")
    return root


MEMINFO = {"proc/meminfo": "MemTotal: 33554432 kB\nMemFree: 1048576 kB\nMemAvailable:   16777216 kB\n"}


def test_what_linux_calls_available(tmp_path: Path) -> None:
    assert available_memory(files(tmp_path, MEMINFO)) == 16 * GIB


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"memory.max": "max", "memory.current": "5"}, 16 * GIB),
        ({"memory.max": f"{4 * GIB}", "memory.current": f"{GIB}"}, 3 * GIB),
        (
            {"memory.max": f"{4 * GIB}", "memory.current": f"{GIB}", "memory.stat": f"anon 1\ninactive_file {GIB}\n"},
            4 * GIB,
        ),
        ({"memory.max": f"{GIB}", "memory.current": f"{2 * GIB}"}, 0),
        ({"memory.max": f"{GIB}"}, 16 * GIB),
    ],
    ids=["no limit", "limit", "file pages", "beyond", "no usage"],
)
@pytest.mark.parametrize("folder", ["sys/fs/cgroup/a/b", "sys/fs/cgroup/a", "sys/fs/cgroup"])
def test_a_control_group_and_those_above_it(folder: str, limits: dict[str, str], expected: int, tmp_path: Path) -> None:
    root = files(tmp_path, {**MEMINFO, "proc/self/cgroup": "0::/a/b\n"})
    files(root, {f"{folder}/{name}": text for name, text in limits.items()})
    assert available_memory(root) == expected


def test_a_control_group_of_version_1(tmp_path: Path) -> None:
    groups = "9:cpu,cpuacct:/x\n4:memory:/docker/1\n1:name=systemd:/\n"
    root = files(tmp_path, {**MEMINFO, "proc/self/cgroup": groups})
    folder = "sys/fs/cgroup/memory"  # in a container the group's own folder is the mount
    files(root, {f"{folder}/memory.limit_in_bytes": f"{2 * GIB}\n", f"{folder}/memory.usage_in_bytes": f"{GIB}\n"})
    assert available_memory(root) == GIB
    files(root, {f"{folder}/memory.limit_in_bytes": "9223372036854771712\n"})
    assert available_memory(root) == 16 * GIB


def test_without_those_files_it_is_the_machines_memory(tmp_path: Path) -> None:
    assert available_memory(tmp_path) > 1 << 28


def test_the_default_is_a_share_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("buda_emu.emulator.memory.host.available_memory", lambda: 8 * GIB)
    assert default_memory_limit() == SHARE * 8 * GIB == 6 * GIB


@pytest.mark.parametrize(
    ("text", "size"),
    [("4096", 4096), ("8G", 8 * GIB), ("8g", 8 * GIB), ("8GiB", 8 * GIB), ("8 GB", 8 * GIB), ("1.5M", 3 << 19),
     ("2K", 2048), ("1T", 1024 * GIB), ("100B", 100), ("1", 1)],
)  # fmt: skip
def test_sizes_are_powers_of_1024(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "G", "8X", "-1G", "1e9", "0", "0.0001K", "8 G G", "nan"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(HostError, match="is not a size: write 8G"):
        parse_size(text)


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (3 << 19, "1.5 MiB"), (GIB, "1.0 GiB"),
                        (5000 << 40, "5000.0 TiB")],
)  # fmt: skip
def test_sizes_as_text(count: int, text: str) -> None:
    assert size_text(count) == text


def test_memory_of_the_process_without_pages_of_files(tmp_path: Path) -> None:
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc" / "self" / "statm").write_text("900 500 120 4 0 300 0\n")
    assert resident_memory(tmp_path) == 380 * os.sysconf("SC_PAGE_SIZE")
    assert resident_memory(tmp_path / "none") == 0
