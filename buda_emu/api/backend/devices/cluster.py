"""Several chips, as system parameters describe them: texts by key `system-...` (NETLIST 7.3)."""

from collections.abc import Iterable, Mapping
from typing import Any

from buda_emu.spec.cluster import Cluster

_END = "-"
Links = dict[int, dict[int, tuple[int, int]]]
"""Chip and channel at the other end, by chip and channel."""
Place = tuple[int, ...]  # x, y, rack, shelf


def system_parameters(cluster: Cluster) -> dict[str, str]:
    """The parameters of a cluster."""
    found = {
        "system-device-number_of_chips": str(len(cluster.places)),
        "system-device-chips_with_mmio": "".join(f"{chip}{_END}" for chip in cluster.mmio),
        "system-device-num_mmio_devices": str(len(cluster.mmio)),
        "system-device-chip_locations": _joined((chip, *place) for chip, place in cluster.places.items()),
        "system-device-ethernet_connections": _joined(
            (*near, *far) for link in cluster.links for near, far in (link, link[::-1])
        ),
    }
    for chip, arch in cluster.archs.items():
        found[f"system-device{chip}-type"] = arch.upper()
    for chip in cluster.places:
        mask = cluster.masks.get(chip, 0)
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
