"""What a board is: how many chips of which architecture, what is left of each chip, clock, memory, links, host.

One row a board (PERF 5.3; for what the facts do not have the vendor's data sheets, named in each row). `NAMExN` is N
such boards in a row.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from os import PathLike
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

from buda_emu.support.checker.suggest import near
from buda_emu.support.errors import HostError
from buda_emu.support.files import read_yaml
from buda_emu.support.records import dataclass

if TYPE_CHECKING:
    from buda_emu.spec.devices import Device


MOST: Final = 16
"""Boards in a row."""
_FACTS: Final = "PERF 5.3"
_SHEET_WORMHOLE: Final = "docs.tenstorrent.com/aibs/wormhole/specifications"
_SHEET_BLACKHOLE: Final = "docs.tenstorrent.com/aibs/blackhole/specifications"


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """One board, or several alike in a row. `links`: Ethernet links between neighbouring chips of a board, `between`:
    between neighbouring boards, 0 where they are not linked; `on_host`: chips on the host's bus; `sources`: by field
    where its figure comes from."""

    name: str
    arch: str
    chips: int
    grid: tuple[int, int]  # rows and columns of worker cores of each chip, after harvesting
    clock: int  # MHz
    dram: str
    dram_channels: int  # of each chip
    dram_gbps: float  # GB/s of each chip, as its data sheet says
    host: str
    links: int = 0
    between: int = 0
    on_host: tuple[int, ...] = (0,)
    sources: Mapping[str, str]

    @property
    def cores(self) -> int:
        """Worker cores of each chip."""
        return self.grid[0] * self.grid[1]

    @property
    def chip(self) -> "Device":
        """Each of its chips, as rules and the time model take it. DRAM gives what the backend measured of its chip
        (PERF 1), or what the data sheet of the board says where that is less."""
        from dataclasses import replace

        from buda_emu.spec.devices import device

        whole = device(self.arch)
        sheet = self.dram_gbps * 1e9 / self.dram_channels / (1 << 30)
        return replace(
            whole.with_grid(*self.grid),
            board=self.name,
            clock=self.clock,
            dram_cores=whole.dram_cores[: self.dram_channels],
            dram_measured=min(whole.dram_measured, sheet),
            neighbour_links=min(filter(None, (self.links, self.between)), default=whole.neighbour_links),
        )


_GRAYSKULL: Final = MappingProxyType({
    "grid": f"{_FACTS}; harvested rows are of that chip, wherever they are (PERF 1)", "clock": _FACTS, "dram": _FACTS,
    "dram_channels": "PERF 1", "dram_gbps": _FACTS, "links": "PERF 1: no Ethernet cores", "host": _FACTS,
})  # fmt: skip
_WORMHOLE: Final = MappingProxyType({
    "grid": f"{_FACTS}; the last rows are harvested (PERF 1)", "clock": _FACTS, "dram": _FACTS,
    "dram_channels": "PERF 1", "dram_gbps": _FACTS,
    "links": f"{_FACTS}: 400GbE between the chips; taken as 4 links of 100 Gbit/s, how many is not published",
    "between": f"{_SHEET_WORMHOLE}: a QSFP-DD port has 400GbE; one port, taken as 4 links of 100 Gbit/s",
    "host": _FACTS,
})  # fmt: skip
_BLACKHOLE: Final = MappingProxyType({
    "grid": f"{_SHEET_BLACKHOLE}: so many cores, whole columns; which are harvested is not published",
    "clock": f"{_SHEET_BLACKHOLE}: at most", "dram": _SHEET_BLACKHOLE, "dram_gbps": _SHEET_BLACKHOLE,
    "dram_channels": f"PERF 1, as many as {_SHEET_BLACKHOLE} has memory for; which one is missing is not published",
    "links": f"{_SHEET_BLACKHOLE} has ports of 800G, not how many links they are", "host": _SHEET_BLACKHOLE,
})  # fmt: skip

_PCIE_4 = "PCIe 4.0 x16"
_PCIE_5 = "PCIe 5.0 x16"
BOARDS: Final[Mapping[str, Board]] = {
    board.name: board
    for board in (
        Board(
            name="e75", arch="grayskull", chips=1, grid=(8, 12), clock=1000, dram="8 GB LPDDR4", dram_channels=8,
            dram_gbps=102.4, host=_PCIE_4, sources=_GRAYSKULL,
        ),
        Board(
            name="e150", arch="grayskull", chips=1, grid=(10, 12), clock=1200, dram="8 GB LPDDR4", dram_channels=8,
            dram_gbps=118.4, host=_PCIE_4, sources=_GRAYSKULL,
        ),
        Board(
            name="n150", arch="wormhole_b0", chips=1, grid=(9, 8), clock=1000, dram="12 GB GDDR6", dram_channels=6,
            dram_gbps=288, host=_PCIE_4, between=4, sources=_WORMHOLE,
        ),
        Board(
            name="n300", arch="wormhole_b0", chips=2, grid=(8, 8), clock=1000, dram="12 GB GDDR6", dram_channels=6,
            dram_gbps=288, host=_PCIE_4, links=4, between=4, sources=_WORMHOLE,
        ),
        Board(
            name="p100", arch="blackhole", chips=1, grid=(10, 12), clock=1350, dram="28 GB GDDR6", dram_channels=7,
            dram_gbps=448, host=_PCIE_5, sources=_BLACKHOLE,
        ),
        Board(
            name="p150", arch="blackhole", chips=1, grid=(10, 14), clock=1350, dram="32 GB GDDR6", dram_channels=8,
            dram_gbps=512, host=_PCIE_5, sources=_BLACKHOLE,
        ),
    )
}  # fmt: skip
"""Sizes and rates are those of each chip."""


def board(name: str) -> Board:
    """A board by its name, or several in a row: `n150x4`. Raises HostError for one that is not known, and for several
    of which nothing is published about links between them."""
    word, _, count = name.lower().partition("x")
    one = BOARDS.get(word)
    if one is None or (count and not count.isdecimal()) or name.lower().endswith("x"):
        hint = near(word, BOARDS)
        raise HostError(
            f"no board {name!r}{f' ({hint})' if hint else ''}; boards: {', '.join(BOARDS)}, "
            "or several in a row such as n150x4"
        )
    number = int(count or 1)
    if not 1 <= number <= MOST:
        raise HostError(f"board {name!r}: {number} boards; 1 to {MOST} are possible")
    if number == 1:
        return one
    if not one.between:
        why = one.sources.get("between") or one.sources["links"]
        raise HostError(f"board {name!r}: no links between {word} boards are known ({why}); take one, {word}")
    from dataclasses import replace

    return replace(
        one,
        name=f"{word}x{number}",
        chips=one.chips * number,
        on_host=tuple(chip + one.chips * place for place in range(number) for chip in one.on_host),
    )


def agreed_arch(name: str | None, arch: str | None) -> str | None:
    """The architecture that a board and `arch` mean, None for none of both. Raises HostError where they differ, and
    what `board` does."""
    if not name:
        return arch or None
    found = board(name)
    if arch and arch != found.arch:
        raise HostError(f"board {found.name} has chips of {found.arch}, not of {arch}: leave out one of the two")
    return found.arch


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
    return Cluster(
        places={chip: (place, 0, 0, 0) for place, chip in enumerate(ids)},
        archs={},
        links=links,
        mmio=tuple(ids[:1]),
        masks={},
    )


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
            places={int(chip): tuple(int(value) for value in place) for chip, place in maps["chips"].items()},
            archs={int(chip): str(word) for chip, word in (maps.get("arch") or {}).items()},
            links=tuple(_link(ends) for ends in lists.get("ethernet_connections") or ()),
            mmio=tuple(int(chip) for item in lists.get("chips_with_mmio") or () for chip in _ids(item)),
            masks={int(chip): int(item["harvest_mask"]) for chip, item in (maps.get("harvesting") or {}).items()},
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
