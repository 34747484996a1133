"""The chips that a model is distributed over, as a cluster's file describes them.

The model becomes a pipeline: it needs the chips in an order in which each is connected with the next, the first one on
the host's bus.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath

from buda_emu.errors import HostError
from buda_emu.spec.cluster import Cluster, read_cluster

STEPS = 200_000
"""Chips that are tried at most on the way through a cluster."""


@dataclass(frozen=True, slots=True)
class Chips:
    """`ids` of the chips in the order of the pipeline; `harvested`: rows that the chip with the fewest lacks;
    `cluster`: all that the file says."""

    ids: tuple[int, ...]
    harvested: int = 0
    cluster: Cluster | None = field(default=None, compare=False)


def chips_of(chips: int | str | PathLike[str], arch: str) -> int | Chips:
    """A number as it is, or what a file says. Raises HostError."""
    if isinstance(chips, int) and not isinstance(chips, bool):
        return chips
    if isinstance(chips, str) and chips.lstrip("-").isdigit():
        return int(chips)
    if not isinstance(chips, (str, PathLike)):
        raise HostError(f"compile: chips {chips!r} is neither a number nor the file of a cluster")
    try:
        found = read_cluster(chips)
    except HostError as error:
        raise HostError(f"compile: chips takes a number or a file: {error}") from None
    return _in_a_row(fspath(chips), found, arch)


def _in_a_row(path: str, cluster: Cluster, arch: str) -> Chips:
    others = sorted({word.lower() for word in cluster.archs.values()} - {arch})
    if others:
        raise HostError(f"{path}: chips of {', '.join(others)}, the model is compiled for {arch}")
    ids = tuple(cluster.places)
    near: dict[int, set[int]] = {chip: set() for chip in ids}
    for (a, _), (b, _) in cluster.links:
        near[a].add(b)
        near[b].add(a)
    order = _way(ids, cluster.mmio or ids, near)
    if len(order) < len(ids):
        raise HostError(
            f"{path}: no way from the host through all {len(ids)} chips on which each is connected with the next; the "
            f"longest one found has {len(order)}: {order}"
        )
    lacks = max((mask.bit_count() for chip, mask in cluster.masks.items() if chip in near), default=0)
    return Chips(tuple(order), lacks, cluster)


def _way(ids: Sequence[int], first: Sequence[int], near: Mapping[int, set[int]]) -> list[int]:
    """The longest way through connected chips, each once, that is found in `STEPS`: those with the fewest ways on
    first, so that none is left alone."""
    best: list[int] = []
    steps = 0
    for start in sorted(first):
        way = [start]
        taken = {start}
        open_: list[list[int]] = [_onward(start, near, taken)]
        while open_ and steps < STEPS and len(best) < len(ids):
            steps += 1
            if len(way) > len(best):
                best = list(way)
            if open_[-1]:
                chip = open_[-1].pop(0)
                way.append(chip)
                taken.add(chip)
                open_.append(_onward(chip, near, taken))
            else:
                open_.pop()
                taken.discard(way.pop())
    return best


def _onward(chip: int, near: Mapping[int, set[int]], taken: set[int]) -> list[int]:
    """Neighbours that are left, those with the fewest of their own first."""
    return sorted(near[chip] - taken, key=lambda other: (len(near[other] - taken), other))
