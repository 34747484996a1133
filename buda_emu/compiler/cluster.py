"""The chips that a model is cut over, as a cluster's file describes them (NETLIST 7.3).

Such a file has maps `arch` and `chips` (id to place), a list `ethernet_connections` of two ends each, a list
`chips_with_mmio`, and a map `harvesting`. The model becomes a pipeline: it needs the chips in an order in which each is
connected with the next, the first one on the host's bus.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, cast

from buda_emu.errors import HostError

STEPS = 200_000
"""Chips that are tried at most on the way through a cluster."""


@dataclass(frozen=True, slots=True)
class Chips:
    """`ids` of the chips in the order of the pipeline; `harvested`: rows that the chip with the fewest lacks."""

    ids: tuple[int, ...]
    harvested: int = 0


def chips_of(chips: int | str | PathLike[str], arch: str) -> int | Chips:
    """A number as it is, or what a file says. Raises HostError."""
    if isinstance(chips, int) and not isinstance(chips, bool):
        return chips
    if isinstance(chips, str) and chips.lstrip("-").isdigit():
        return int(chips)
    if not isinstance(chips, (str, PathLike)):
        raise HostError(f"compile: chips {chips!r} is neither a number nor the file of a cluster")
    path = Path(chips)
    return _read(path, _parsed(path), arch)


def _parsed(path: Path) -> Mapping[Any, Any]:
    import yaml

    try:
        found = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError, ValueError, RecursionError) as error:
        raise HostError(f"compile: chips: a number, or the file of a cluster, not {path}: {error}") from None
    if not isinstance(found, dict) or not isinstance(cast("Any", found).get("chips"), dict):
        raise HostError(f"{path}: no file of a cluster: it has no map `chips` of ids and places (NETLIST 7.3)")
    return cast("Mapping[Any, Any]", found)


def _read(path: Path, cluster: Mapping[Any, Any], arch: str) -> Chips:
    try:
        ids = [int(chip) for chip in cluster["chips"]]
        words: Mapping[Any, Any] = cluster.get("arch") or {}
        lacks: Mapping[Any, Any] = cluster.get("harvesting") or {}
        archs = {int(chip): str(word).lower() for chip, word in words.items()}
        links = [tuple(int(end["chip"]) for end in link) for link in cluster.get("ethernet_connections") or ()]
        masks = {int(chip): int(item["harvest_mask"]) for chip, item in lacks.items()}
        first = [int(chip) for item in cluster.get("chips_with_mmio") or () for chip in _values(item)]
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise HostError(f"{path}: not what a file of a cluster holds: {type(error).__name__}: {error}") from None
    others = sorted({word for word in archs.values() if word != arch})
    if others:
        raise HostError(f"{path}: chips of {', '.join(others)}, the model is compiled for {arch}")
    strange = sorted({chip for ends in links for chip in ends} - set(ids) | set(first) - set(ids))
    if strange or any(len(ends) != 2 for ends in links):
        raise HostError(f"{path}: connections of chips that `chips` does not have: {strange or 'not two ends each'}")
    near: dict[int, set[int]] = {chip: set() for chip in ids}
    for a, b in links:
        near[a].add(b)
        near[b].add(a)
    order = _way(ids, first or ids, near)
    if len(order) < len(ids):
        raise HostError(
            f"{path}: no way from the host through all {len(ids)} chips on which each is connected with the next; the "
            f"longest one found has {len(order)}: {order}"
        )
    return Chips(tuple(order), max((mask.bit_count() for chip, mask in masks.items() if chip in near), default=0))


def _values(item: Any) -> Sequence[Any]:
    """`- 0: 0` or `- 0`."""
    return tuple(cast("Mapping[Any, Any]", item)) if isinstance(item, dict) else (item,)


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
