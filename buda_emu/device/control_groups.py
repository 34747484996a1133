"""The control groups of Linux that this process is in: they may allow less than the machine has.

Folders are plain text: every run asks, and importing pathlib takes longer than the answer.
"""

from collections.abc import Iterator


def groups_2(root: object) -> Iterator[str]:
    """Folders of the groups of version 2, from ours up to the top. `root`: where `proc` and `sys` are."""
    for line in lines(f"{root}/proc/self/cgroup"):
        if line.startswith("0::"):
            yield from _upwards(f"{root}/sys/fs/cgroup", line[3:])


def groups_1(root: object, controller: str) -> Iterator[str]:
    """The same of version 1, for one controller, e.g. memory."""
    for line in lines(f"{root}/proc/self/cgroup"):
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controller in controllers.split(","):
            yield from _upwards(f"{root}/sys/fs/cgroup/{controller}", path)


def number(text: str) -> int | None:
    """An integer, None for anything else."""
    return int(text) if text.strip().isdecimal() else None


def lines(path: str) -> Iterator[str]:
    """The lines of a file of the system, none where it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            text = file.read()
    except OSError:
        return
    yield from text.splitlines()


def _upwards(mount: str, path: str) -> Iterator[str]:
    """The folders of a group and of all above it. In a container the path may be that of the host: the mount counts."""
    names = [name for name in path.split("/") if name not in ("", ".")]
    for count in range(len(names), -1, -1):
        yield "/".join([mount, *names[:count]])
