"""The computer that the emulator runs on: its memory and processors, as far as this process may use them."""

import os
from collections.abc import Iterator, Mapping
from typing import Any, Final

from buda_emu.emulator.options import Machine, memory_of, with_memory


def groups_2(root: object) -> Iterator[str]:
    """Yield the folders of this process's control group of version 2 and of all groups above it; none without such
    groups. `root` is the folder that has `proc` and `sys`."""
    for line in lines(f"{root}/proc/self/cgroup"):
        if line.startswith("0::"):
            yield from _upwards(f"{root}/sys/fs/cgroup", line[3:])


def groups_1(root: object, controller: str) -> Iterator[str]:
    """Yield the folders of this process's control group of version 1 for one controller, such as memory, and of all
    groups above it. `root` is the folder that has `proc` and `sys`."""
    for line in lines(f"{root}/proc/self/cgroup"):
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controller in controllers.split(","):
            yield from _upwards(f"{root}/sys/fs/cgroup/{controller}", path)


def number(text: str) -> int | None:
    """Return a text of decimal digits as an integer, None for anything else ("max", "-1", "")."""
    return int(text) if text.strip().isdecimal() else None


def lines(path: str) -> Iterator[str]:
    """Yield the lines of a file, none where it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            text = file.read()
    except OSError:
        return
    yield from text.splitlines()


def _upwards(mount: str, path: str) -> Iterator[str]:
    """Yield the folder of the group `path` below `mount`, and those of all groups above it up to `mount` itself. In a
    container the path may be that of the host, so that lower folders need not exist."""
    names = [name for name in path.split("/") if name not in ("", ".")]
    for count in range(len(names), -1, -1):
        yield "/".join([mount, *names[:count]])


SHARE: Final = 0.75  # of what is available: the limit of a machine where nobody gives one
_FALLBACK: Final = 16 << 30  # where the system says nothing


def size_text(count: int) -> str:
    """Return a size in bytes as text: `812 B`, `1.5 MiB`, `3.0 GiB`."""
    if count < 1 << 10:
        return f"{count} B"
    power = next(power for power in (1, 2, 3, 4) if count < 1 << 10 * (power + 1) or power == 4)
    return f"{count / (1 << 10 * power):.1f} {' KMGT'[power]}iB"


def thread_count(options: Mapping[str, Any]) -> int:
    """Return the threads that options (`emulator.options`) ask for, by default one for each processor that may be
    used."""
    return options.get("threads") or usable_processors()


def machine_of_worker(options: Mapping[str, Any], count: int) -> Machine:
    """Return the machine options (threads, memory limit) for one of `count` processes that share the memory and the
    processors which `options` allow."""
    limit = memory_of(options) or default_memory_limit()
    threads = options.get("threads") or max(1, usable_processors() // count)
    return with_memory(Machine(threads=threads), limit // count)


def default_memory_limit() -> int:
    """Return the bytes that a machine may hold where the caller gives no limit: SHARE of what is available now."""
    return int(available_memory() * SHARE)


def resident_memory(root: str | os.PathLike[str] = "") -> int:
    """Return the bytes of anonymous memory that this process has now, without pages of files; 0 where the system does
    not say. `root` is the folder that has `proc`."""
    counts = next(lines(f"{root}/proc/self/statm"), "").split()
    if len(counts) < 3:
        return 0
    return (int(counts[1]) - int(counts[2])) * os.sysconf("SC_PAGE_SIZE")


def mapped_memory() -> int:
    """Return the bytes of address space that this process has now; 0 where the system does not say."""
    counts = next(lines("/proc/self/statm"), "").split()
    if counts:
        return int(counts[0]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def available_memory(root: str | os.PathLike[str] = "") -> int:
    """Return the bytes that a process can take now before the system swaps or ends it.

    This is the least of what Linux calls available and what is left in each control group of this process; elsewhere
    all of the machine's memory. `root` is the folder that has `proc` and `sys`."""
    limits = [*_available_by_meminfo(root), *_memory_left_in_groups(root)]
    if limits:
        return max(min(limits), 0)
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):  # not a POSIX system
        return _FALLBACK


def _available_by_meminfo(root: object) -> Iterator[int]:
    """Yield the bytes that Linux calls available (MemAvailable), nothing where it does not say."""
    for line in lines(f"{root}/proc/meminfo"):
        name, _, value = line.partition(":")
        if name == "MemAvailable" and value.split():
            yield int(value.split()[0]) << 10


def _memory_left_in_groups(root: object) -> Iterator[int]:
    """Yield the bytes left within the memory limit of each control group of this process, none for a group without
    one."""
    for folder in groups_2(root):
        yield from _remaining(folder, "memory.max", "memory.current", "inactive_file")
    for folder in groups_1(root, "memory"):
        yield from _remaining(folder, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def _remaining(folder: str, limit: str, usage: str, cached: str) -> Iterator[int]:
    """Yield the bytes left within the memory limit of the group in `folder`, nothing without a limit; `limit` and
    `usage` name its files. Unused pages of files (the row `cached` of memory.stat) can be reclaimed and count as
    free."""
    group_limit, used = (number(next(lines(f"{folder}/{name}"), "")) for name in (limit, usage))
    if group_limit is None or used is None:  # "max": no limit
        return
    reclaimable = (
        number(line.split()[-1]) or 0 for line in lines(f"{folder}/memory.stat") if line.startswith(f"{cached} ")
    )
    yield group_limit - used + next(reclaimable, 0)


def usable_processors(root: str | os.PathLike[str] = "") -> int:
    """Return how many threads can run at once, at least 1: the processors that this process is bound to, no more than
    its control groups grant. `root` is the folder that has `proc` and `sys`."""
    try:
        bound = len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        bound = os.cpu_count() or 1
    return max(1, min([bound, *_group_processors(root)]))


def _group_processors(root: object) -> Iterator[int]:
    """Yield how many processors the time quota of each control group pays for, rounded up; nothing for groups without
    one."""
    for folder in groups_2(root):
        yield from _whole_processors(next(lines(f"{folder}/cpu.max"), "").split())
    for folder in groups_1(root, "cpu"):
        yield from _whole_processors([next(lines(f"{folder}/cpu.cfs_{name}_us"), "") for name in ("quota", "period")])


def _whole_processors(quota_and_period: list[str]) -> Iterator[int]:
    """Yield how many processors a quota of time in each period (two texts) pays for, rounded up; nothing where there is
    no quota."""
    if len(quota_and_period) == 2:
        quota, period = (number(text) for text in quota_and_period)
        if quota and period:  # "max", or -1: as much as there is
            yield -(-quota // period)
