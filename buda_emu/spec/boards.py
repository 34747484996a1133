"""Boards and clusters: number and architecture of their chips, usable grid, clock, memory, links and host bus.

The table has one row for each board (PERF 5.3; facts that are not there come from the vendor's data sheets, named in
each row). `NAMExN` is a row of N such boards.
"""

from collections.abc import Mapping, Sequence
from itertools import chain, pairwise
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
"""The greatest number of boards in a row."""
_FACTS: Final = "PERF 5.3"
_SHEET_WORMHOLE: Final = "docs.tenstorrent.com/aibs/wormhole/specifications"
_SHEET_BLACKHOLE: Final = "docs.tenstorrent.com/aibs/blackhole/specifications"


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """One board, or a row of equal boards.

    `links` is the number of Ethernet links between neighbouring chips of a board, `between` between neighbouring
    boards, 0 without links. `on_host` holds the chips on the host's bus, `sources` the source of each figure by
    field.
    """

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
        """Return the worker cores of each chip."""
        return self.grid[0] * self.grid[1]

    @property
    def chip(self) -> "Device":
        """Return one of its chips as a device for the rules and the time model. DRAM has the rate that the backend
        measured on the chip (PERF 1), or that of the board's data sheet if it is lower."""
        from dataclasses import replace

        from buda_emu.spec.devices import device

        full_chip = device(self.arch)
        sheet = self.dram_gbps * 1e9 / self.dram_channels / (1 << 30)
        return replace(
            full_chip.with_grid(*self.grid),
            board=self.name,
            clock=self.clock,
            dram_cores=full_chip.dram_cores[: self.dram_channels],
            dram_measured=min(full_chip.dram_measured, sheet),
            neighbour_links=min(filter(None, (self.links, self.between)), default=0),
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
    "grid": "BLACKHOLE 1 [isa], [metal]: so many cores, whole columns; which are harvested is not published",
    "clock": "BLACKHOLE, clock of p100 and p150 boards", "dram": _SHEET_BLACKHOLE,
    "dram_channels": "BLACKHOLE 1 [isa]; which one a p100 lacks is not published",
    "dram_gbps": "BLACKHOLE 1 [metal]: 64 GB/s a channel",
    "links": "BLACKHOLE 1 [isa]: a p100 has no Ethernet links", "host": _SHEET_BLACKHOLE,
})  # fmt: skip
_BLACKHOLE_CABLED: Final = MappingProxyType({
    **_BLACKHOLE,
    "links": "one chip on a board",
    "between": "BLACKHOLE 1 [isa]: a QSFP-DD port has 2 links; one port",
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
            dram_gbps=512, host=_PCIE_5, between=2, sources=_BLACKHOLE_CABLED,
        ),
        Board(  # with firmware 19.5.0 or newer
            name="p150-120", arch="blackhole", chips=1, grid=(10, 12), clock=1350, dram="32 GB GDDR6", dram_channels=8,
            dram_gbps=512, host=_PCIE_5, between=2, sources=_BLACKHOLE_CABLED,
        ),
    )
}  # fmt: skip
"""All boards by name. Sizes and rates are those of each chip."""


def _split_name(name: str) -> tuple[str, int]:
    """Return the board that a name means and how many stand in a row. Raises HostError for an unknown board, and for a
    number that is not possible."""
    word, _, count = name.lower().partition("x")
    if word not in BOARDS or (count and not count.isdecimal()) or name.lower().endswith("x"):
        raise HostError(
            f"no board {name!r}{_board_hint(word)}; boards: {', '.join(BOARDS)}, or several in a row such as n150x4"
        )
    number = int(count or 1)
    if not 1 <= number <= MOST:
        raise HostError(f"board {name!r}: {number} boards; 1 to {MOST} are possible")
    return word, number


def _board_hint(word: str) -> str:
    """Return in parentheses the boards of the architecture that a word names, else the board that was probably meant;
    "" if there is none."""
    hint = near(word, BOARDS)
    of_arch = [board.name for board in BOARDS.values() if word and board.arch.startswith(word)]
    if of_arch:
        hint = f"{word} is an architecture; boards with it: {', '.join(of_arch)}"
    if hint:
        hint = f" ({hint})"
    return hint


def board(name: str) -> Board:
    """Return a board by its name, or a row of several: `n150x4`. Raises HostError for an unknown name, and for a row
    of boards without published links between them."""
    word, number = _split_name(name)
    single = BOARDS[word]
    if number == 1:
        return single
    if not single.between:
        why = single.sources.get("between") or single.sources["links"]
        raise HostError(f"board {name!r}: no links between {word} boards are known ({why}); take one, {word}")
    from dataclasses import replace

    on_host: list[int] = []
    for place in range(number):
        on_host += [chip + single.chips * place for chip in single.on_host]
    return replace(single, name=f"{word}x{number}", chips=single.chips * number, on_host=tuple(on_host))


def single_board(name: str) -> str:
    """Return the name of the board of which a board's name means one or several in a row. Raises HostError for an
    unknown name."""
    return _split_name(name)[0]


def board_with_grid(arch: str, grid: tuple[int, int]) -> Board | None:
    """Return a board whose chips have this grid of usable cores; None if there is none on sale."""
    return next((board for board in BOARDS.values() if (board.arch, board.grid) == (arch, grid)), None)


def largest_board(arch: str) -> Board | None:
    """Return the board of one chip of an architecture with the most usable cores; None if there is none."""
    boards = [board for board in BOARDS.values() if board.arch == arch and board.chips == 1]
    return max(boards, key=lambda board: board.cores, default=None)


def agreed_arch(name: str | None, arch: str | None) -> str | None:
    """Return the architecture on which a board's name and an `arch` word agree, either of which may be absent; None
    if both are. Raises HostError where they differ, or for an unknown board.
    """
    if not name:
        return arch or None
    named_board = board(name)
    if arch and arch != named_board.arch:
        raise HostError(
            f"board {named_board.name} has chips of {named_board.arch}, not of {arch}: leave out one of the two"
        )
    return named_board.arch


End = tuple[int, int]
"""A chip and its Ethernet channel."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Chips and their links, as a cluster file describes them (NETLIST 7.3).

    By a chip's id: its place, the word of its architecture and the mask of its harvested rows (the last two where
    they are stated). `mmio` holds the chips on the host's bus.
    """

    places: Mapping[int, tuple[int, ...]]
    archs: Mapping[int, str]
    links: tuple[tuple[End, End], ...]
    mmio: tuple[int, ...]
    masks: Mapping[int, int]


LINKS: Final = 4
"""The number of links between two neighbouring chips that no cluster file describes."""
_FAR: Final = 8
"""The first of a chip's channels that lead to the chip before it."""


def row_of_chips(ids: Sequence[int]) -> Cluster:
    """Return a cluster of the chips with these ids in a row, each linked to the next one by `LINKS` links, with the
    first on the host's bus."""
    links: list[tuple[End, End]] = []
    for chip, following in pairwise(ids):
        links += [((chip, channel), (following, _FAR + channel)) for channel in range(LINKS)]
    return Cluster(
        places={chip: (place, 0, 0, 0) for place, chip in enumerate(ids)},
        archs={},
        links=tuple(links),
        mmio=tuple(ids[:1]),
        masks={},
    )


def read_cluster(path: "str | PathLike[str]") -> Cluster:
    """Read the cluster of a file. Raises HostError for a file that cannot be read or is no valid cluster file."""
    return cluster_of(read_yaml(path, "the file of a cluster"), str(path))


def cluster_of(content: Any, path: str) -> Cluster:
    """Return the cluster that the content of a cluster file describes. Raises HostError that names `path`."""
    if not isinstance(content, dict) or not isinstance(cast("Any", content).get("chips"), dict):
        raise HostError(f"{path}: no file of a cluster: it has no map `chips` of ids and places (NETLIST 7.3)")
    try:
        cluster = _parse_cluster(content)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise HostError(f"{path}: not a valid cluster file: {type(error).__name__}: {error}") from None
    connected = set(cluster.mmio)
    for link in cluster.links:
        connected.update(chip for chip, _ in link)
    if strange := sorted(connected - set(cluster.places)):
        raise HostError(f"{path}: connections of chips that `chips` does not have: {strange}")
    return cluster


def _parse_cluster(content: Any) -> Cluster:
    """Parse a cluster file. Raises TypeError, ValueError, KeyError or AttributeError for content of another form."""
    maps = cast("Mapping[str, Mapping[Any, Any]]", content)
    lists = cast("Mapping[str, Sequence[Any]]", content)
    mmio = chain.from_iterable(map(_mmio_ids, lists.get("chips_with_mmio") or ()))
    return Cluster(
        places={int(chip): tuple(int(value) for value in place) for chip, place in maps["chips"].items()},
        archs={int(chip): str(word) for chip, word in (maps.get("arch") or {}).items()},
        links=tuple(_link(ends) for ends in lists.get("ethernet_connections") or ()),
        mmio=tuple(map(int, mmio)),
        masks={int(chip): int(entry["harvest_mask"]) for chip, entry in (maps.get("harvesting") or {}).items()},
    )


def _link(ends: Sequence[Mapping[str, Any]]) -> tuple[End, End]:
    """Return the two ends of a connection in a cluster file. Raises ValueError unless it has two."""
    if len(ends) != 2:
        raise ValueError(f"a connection of {len(ends)} ends, not two")
    near, far = ((int(end["chip"]), int(end["chan"])) for end in ends)
    return near, far


def _mmio_ids(entry: Any) -> Sequence[Any]:
    """Return the chips of one entry of `chips_with_mmio`, `- 0: 0` or `- 0`."""
    if isinstance(entry, dict):
        return tuple(cast("Mapping[Any, Any]", entry))
    return (entry,)


def another_placement(board: str) -> str:
    """Return the ways to a netlist for a board, for the second line of a message."""
    return (
        f"a netlist has its own places: compile the model with --board {board}, or "
        "`buda-emu perf MODEL --sweep board=...`, which places a model (.onnx, .pt2, an image of `compile`) again for "
        "each board"
    )
