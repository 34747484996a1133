"""The control groups of Linux that this process is in: they may allow less than the machine has."""

from collections.abc import Iterator
from pathlib import Path

__all__ = ["groups_1", "groups_2", "lines", "number"]


def groups_2(root: Path) -> Iterator[Path]:
    """Folders of the groups of version 2, from ours up to the top. `root`: where `proc` and `sys` are."""
    for line in lines(root / "proc/self/cgroup"):
        if line.startswith("0::"):
            yield from _upwards(root / "sys/fs/cgroup", line[3:])


def groups_1(root: Path, controller: str) -> Iterator[Path]:
    """The same of version 1, for one controller, e.g. memory."""
    for line in lines(root / "proc/self/cgroup"):
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controller in controllers.split(","):
            yield from _upwards(root / "sys/fs/cgroup" / controller, path)


def number(text: str) -> int | None:
    """A whole number, None for anything else."""
    return int(text) if text.strip().isdecimal() else None


def lines(path: Path) -> Iterator[str]:
    """The lines of a file of the system, none where it cannot be read."""
    try:
        yield from path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return


def _upwards(mount: Path, path: str) -> Iterator[Path]:
    """The folders of a group and of all above it. In a container the path may be that of the host: the mount counts."""
    folder = mount / path.strip("/")
    while folder != mount:
        yield folder
        folder = folder.parent
    yield mount
