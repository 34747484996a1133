"""The processors of the machine that we run on: how many this process may use."""

import os
from collections.abc import Iterator

from buda_emu.device.control_groups import groups_1, groups_2, lines, number


def usable_processors(root: str | os.PathLike[str] = "") -> int:
    """How many threads can run at once, at least 1: the processors that we are bound to, no more than the control
    groups grant. `root`: where `proc` and `sys` are."""
    try:
        bound = len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        bound = os.cpu_count() or 1
    return max(1, min([bound, *_granted(root)]))


def _granted(root: object) -> Iterator[int]:
    """Processors' worth of time in each period, of each group that we are in; part of a processor is one."""
    for folder in groups_2(root):
        yield from _rounded_up(next(lines(f"{folder}/cpu.max"), "").split())
    for folder in groups_1(root, "cpu"):
        yield from _rounded_up([next(lines(f"{folder}/cpu.cfs_{name}_us"), "") for name in ("quota", "period")])


def _rounded_up(quota_and_period: list[str]) -> Iterator[int]:
    if len(quota_and_period) == 2:
        quota, period = (number(text) for text in quota_and_period)
        if quota and period:  # "max", or -1: as much as there is
            yield -(-quota // period)
