"""Several chips: the file that describes them, and the system parameters that say the same (NETLIST 7.3).

A file of a cluster has maps `arch` and `chips` (id to place x, y, rack, shelf), a list `ethernet_connections` of two
ends each, a list `chips_with_mmio`, and a map `harvesting`. System parameters are texts by key `system-...`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

_END = "-"
Links = dict[int, dict[int, tuple[int, int]]]
"""Chip and channel at the other end, by chip and channel."""
Place = tuple[int, ...]  # x, y, rack, shelf


def system_parameters(cluster: Mapping[str, Any]) -> dict[str, str]:
    """The parameters of a cluster's file."""
    found: dict[str, str] = {}
    places: Mapping[Any, Any] = cluster.get("chips") or {}
    masks: Mapping[Any, Any] = cluster.get("harvesting") or {}
    mmio: list[Any] = cluster.get("chips_with_mmio") or []
    links: list[Any] = cluster.get("ethernet_connections") or []
    found["system-device-number_of_chips"] = str(len(places))
    found["system-device-chips_with_mmio"] = "".join(f"{chip}{_END}" for item in mmio for chip in item)
    found["system-device-num_mmio_devices"] = str(len(mmio))
    found["system-device-chip_locations"] = _joined((chip, *place) for chip, place in places.items())
    ends = [[(int(end["chip"]), int(end["chan"])) for end in link] for link in links]
    found["system-device-ethernet_connections"] = _joined(
        (*near, *far) for link in ends for near, far in (link, link[::-1])
    )
    archs: Mapping[Any, Any] = cluster.get("arch") or {}
    for chip, arch in archs.items():
        found[f"system-device{chip}-type"] = str(arch).upper()
    for chip in places:
        mask = int(masks[chip]["harvest_mask"]) if chip in masks else 0
        found[f"system-device{chip}-harvesting_mask"] = str(mask)
        found[f"system-device{chip}-num_harvested_rows"] = str(mask.bit_count())
    return found


def places_of(parameters: Mapping[str, str]) -> dict[int, Place]:
    """Place of each chip."""
    rows = _split(parameters.get("system-device-chip_locations", ""))
    return {chip: tuple(place) for chip, *place in rows}


def links_of(parameters: Mapping[str, str]) -> Links:
    """Ethernet connections, both ways."""
    found: Links = {}
    for chip, channel, other, far in _split(parameters.get("system-device-ethernet_connections", "")):
        found.setdefault(chip, {})[channel] = (other, far)
    return found


def mask_of(parameters: Mapping[str, str], chip: int) -> int:
    """Harvesting mask of a chip; 0 where nothing is said."""
    return int(parameters.get(f"system-device{chip}-harvesting_mask", "0"), 0)


def _joined(rows: Iterable[Iterable[Any]]) -> str:
    """`1,2,3,-4,5,6,-`, as such parameters are written."""
    return "".join("".join(f"{value}," for value in row) + _END for row in rows)


def _split(text: str) -> list[list[int]]:
    """The inverse of `_joined`. Raises RuntimeError."""
    try:
        return [[int(value) for value in row.rstrip(",").split(",")] for row in text.split(_END) if row]
    except ValueError as error:
        raise RuntimeError(f"system parameter {text!r}: {error}") from error
