"""Several chips: the file that describes them, as the vendor's tools write it (NETLIST 7.3).

Maps `arch` (id to word) and `chips` (id to place x, y, rack, shelf), a list `ethernet_connections` of two ends each, a
list `chips_with_mmio`, and a map `harvesting`. Only `chips` must be there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from os import PathLike
from typing import Any, Final, cast

from buda_emu.errors import HostError
from buda_emu.files import read_yaml

End = tuple[int, int]
"""A chip and its Ethernet channel."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """By a chip's id its place, the word of its architecture and the mask of its harvested rows (these two where they
    are stated); the links; and the chips that the host reaches itself."""

    places: Mapping[int, tuple[int, ...]]
    archs: Mapping[int, str]
    links: tuple[tuple[End, End], ...]
    mmio: tuple[int, ...]
    masks: Mapping[int, int]


LINKS: Final = 4
"""Between two neighbouring chips, where no file describes them."""
_FAR: Final = 8
"""Channels of a chip that lead to the one before it begin here."""


def row_of_chips(ids: Sequence[int]) -> Cluster:
    """Chips in a row, each connected with the next one, the first on the host's bus."""
    links = tuple(((a, channel), (b, _FAR + channel)) for a, b in pairwise(ids) for channel in range(LINKS))
    return Cluster({chip: (place, 0, 0, 0) for place, chip in enumerate(ids)}, {}, links, tuple(ids[:1]), {})


def read_cluster(path: "str | PathLike[str]") -> Cluster:
    """The cluster of a file. Raises HostError."""
    return cluster_of(read_yaml(path, "the file of a cluster"), str(path))


def cluster_of(content: Any, where: str) -> Cluster:
    """The cluster that such a file's content says; `where` it stands. Raises HostError."""
    if not isinstance(content, dict) or not isinstance(cast("Any", content).get("chips"), dict):
        raise HostError(f"{where}: no file of a cluster: it has no map `chips` of ids and places (NETLIST 7.3)")
    maps = cast("Mapping[str, Mapping[Any, Any]]", content)
    lists = cast("Mapping[str, Sequence[Any]]", content)
    try:
        found = Cluster(
            {int(chip): tuple(int(value) for value in place) for chip, place in maps["chips"].items()},
            {int(chip): str(word) for chip, word in (maps.get("arch") or {}).items()},
            tuple(_link(ends) for ends in lists.get("ethernet_connections") or ()),
            tuple(int(chip) for item in lists.get("chips_with_mmio") or () for chip in _ids(item)),
            {int(chip): int(item["harvest_mask"]) for chip, item in (maps.get("harvesting") or {}).items()},
        )
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise HostError(f"{where}: not a valid cluster file: {type(error).__name__}: {error}") from None
    named = {chip for link in found.links for chip, _ in link} | set(found.mmio)
    if strange := sorted(named - set(found.places)):
        raise HostError(f"{where}: connections of chips that `chips` does not have: {strange}")
    return found


def _link(ends: Sequence[Mapping[str, Any]]) -> tuple[End, End]:
    if len(ends) != 2:
        raise ValueError(f"a connection of {len(ends)} ends, not two")
    near, far = ((int(end["chip"]), int(end["chan"])) for end in ends)
    return near, far


def _ids(item: Any) -> Sequence[Any]:
    """`- 0: 0` or `- 0`."""
    return tuple(cast("Mapping[Any, Any]", item)) if isinstance(item, dict) else (item,)
