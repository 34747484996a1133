"""The rows of a table of measured transactions, `noc.csv`, as transactions that the model takes."""

import csv
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from math import isqrt
from pathlib import Path
from typing import Final

from buda_emu.performance.timing.transfers.transactions import Kind, Transactions, transfer_cycles
from buda_emu.spec.devices import Core, Device, device
from buda_emu.support.errors import HostError

SIZES: Final = tuple(64 << power for power in range(11))
READS: Final = (0, 2, 5)
KINDS: Final[tuple[Kind, ...]] = ("write", "multicast", "linked multicast")
"""What a mechanism is, of patterns that write."""
ARCHS: Final = {2: "wormhole_b0", 3: "blackhole"}
SOME_TO_SOME: Final = (4, 5, 7, 9)
"""Patterns in which several cores act, which start without a barrier and repeat less exactly."""

# Of the measured chips it is only known how many rows and columns they use. Which ones these are shows in the times of
# unlinked multicasts, 16 cycles a hop: wormhole_b0's fifth row is six below its first, its seventh eight; blackhole's
# eighth column is eleven right of its first, its eleventh fourteen.
_ROWS: Final = {"wormhole_b0": (1, 2, 3, 5, 7, 8, 9), "blackhole": (2, 3, 4, 5, 6, 7, 8, 9, 10, 11)}
_COLUMNS: Final = {
    "wormhole_b0": (1, 2, 3, 4, 6, 7, 8, 9),
    "blackhole": (1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15),
}
# The DRAM cores at which the vendor's newer stack reaches its banks, in their order.
BANKS: Final = {
    "wormhole_b0": (
        (0, 11), (0, 1), (0, 5), (0, 7), (5, 1), (5, 11), (5, 2), (5, 9), (5, 8), (5, 3), (5, 5), (5, 7),
    ),
    "blackhole": ((0, 11), (0, 3), (0, 8), (0, 6), (9, 11), (9, 3), (9, 8), (9, 6)),
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One row: its key, and the measured cycles by the bytes of a transaction."""

    arch: str
    pattern: int
    memory: int
    mechanism: int
    count: int
    partners: int
    same_axis: bool
    stateful: bool
    loopback: bool
    noc: int
    measured: Mapping[int, float] = field(compare=False)

    @property
    def family(self) -> str:
        """Return the group of rows that the scorecard gives one line."""
        if self.memory:
            return "DRAM, all cores" if self.pattern in SOME_TO_SOME else "DRAM, one core"
        if self.pattern in SOME_TO_SOME:
            return "several cores to several"
        if self.mechanism:
            return "multicast of one core"
        return "one core to one" if self.pattern < 2 else "one core to several"

    @property
    def held_out(self) -> bool:
        """Return whether the fit must not see this row: a quarter of them, by hash of the key."""
        key = f"{self.arch} {self.pattern} {self.memory} {self.mechanism} {self.count} {self.partners} {self.same_axis}"
        key += f" {self.stateful} {self.loopback} {self.noc}"
        return hashlib.sha256(key.encode()).digest()[0] < 64


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a table. Raises HostError for a value that no row can have."""
    with path.open(newline="", encoding="utf-8") as stream:
        return [parse_row(row, f"{path}, line {line}") for line, row in enumerate(csv.DictReader(stream), 2)]


def parse_row(row: Mapping[str, str], place: str) -> Row:
    """Return one row. Raises HostError that names its place."""
    try:
        pattern = int(row.get("pattern") or 1)
        result = Row(
            arch=ARCHS[int(row.get("arch") or 2)],
            pattern=pattern,
            memory=int(row.get("memory") or 0),
            mechanism=int(row.get("mechanism") or 0),
            count=int(row.get("num_transactions") or 1),
            partners=int(row.get("num_subordinates") or 1),
            same_axis=row.get("same_axis") == "true",
            stateful=row.get("stateful") == "true",
            loopback=row.get("loopback") == "true",
            noc=_noc(row, pattern),
            measured={size: float(row[str(size)]) for size in SIZES if row.get(str(size))},
        )
    except (KeyError, ValueError) as error:
        raise HostError(f"{place}: not a row of measured transactions: {type(error).__name__} {error}") from None
    if not (0 <= result.pattern <= 9 and 0 <= result.mechanism <= 2 and 0 <= result.memory <= 2):
        raise HostError(f"{place}: pattern, mechanism or memory is out of range")
    return result


def _noc(row: Mapping[str, str], pattern: int) -> int:
    """Return the NoC of a row; a table without that column takes the one that the firmware uses."""
    if "noc_index" not in row:
        return int(pattern in READS)
    return int(row["noc_index"] or 0)


@cache
def measured_chip(arch: str) -> Device:
    """Return the chip on which the rows of an architecture were measured."""
    return replace(device(arch), worker_rows=_ROWS[arch], worker_columns=_COLUMNS[arch])


def predict(row: Row, size: int) -> float:
    """Return the modelled cycles of a row for transactions of `size` bytes."""
    return transfer_cycles(transactions_of(row, size), measured_chip(row.arch))


@cache
def _ends(row: Row) -> tuple[tuple[Core, ...], tuple[tuple[Core, ...], ...]]:
    """Return the cores of a row, and the partners of each."""
    if row.memory:
        return _dram_ends(row)
    columns = _COLUMNS[row.arch]
    rows = _ROWS[row.arch]
    wide, tall = _extent(row)
    receivers = tuple((x, y) for y, x in product(rows[:tall], columns[:wide]))
    first = (columns[0], rows[0])
    if row.pattern in (0, 1):
        return (first,), (((columns[0 if row.same_axis else 1], rows[1]),),)
    if row.pattern in (4, 5, 7, 9):
        cores = _multicasters(row, receivers) if row.mechanism else receivers
        return cores, (receivers,) * len(cores)
    core = _single_core(row, first, wide)
    if not row.mechanism:
        receivers = tuple(place for place in receivers if place != core)
    return (core,), (receivers,)


def _single_core(row: Row, first: Core, wide: int) -> Core:
    """Return the core that acts alone: in a corner of the receivers or, if it can, beside them."""
    columns = _COLUMNS[row.arch]
    rows = _ROWS[row.arch]
    alone_inside = row.loopback or row.pattern == 2 or (not row.mechanism and row.pattern != 3)
    if alone_inside or (row.pattern == 3 and wide == len(columns)):
        return first
    if row.pattern == 6:
        return (columns[0], rows[1])
    return (columns[1 if row.pattern == 8 else wide], rows[0])


def _multicasters(row: Row, receivers: tuple[Core, ...]) -> tuple[Core, ...]:
    """Return the cores of a row or column that multicast: the receivers, or the line beside them."""
    columns = _COLUMNS[row.arch]
    rows = _ROWS[row.arch]
    if row.loopback:
        return receivers
    if row.pattern == 7:
        return tuple((x, rows[1]) for x, _ in receivers)
    return tuple((columns[1], y) for _, y in receivers)


def _extent(row: Row) -> tuple[int, int]:
    """Return columns and rows of the grid of partners: a square, or the whole chip; a row or column is whole."""
    wide = len(_COLUMNS[row.arch])
    tall = len(_ROWS[row.arch])
    if row.pattern in (6, 7):
        return wide, 1
    if row.pattern in (8, 9):
        return 1, tall
    side = isqrt(row.partners)
    if row.pattern in (3, 4, 5) and side * side == row.partners and side <= min(wide, tall):
        return side, side
    return wide, tall


def _dram_ends(row: Row) -> tuple[tuple[Core, ...], tuple[tuple[Core, ...], ...]]:
    """Return the cores of a row with DRAM and their banks; each core begins with another bank."""
    columns = _COLUMNS[row.arch]
    rows = _ROWS[row.arch]
    banks = BANKS[row.arch]
    cores = tuple((x, y) for y, x in product(rows, columns))
    if row.pattern not in SOME_TO_SOME:
        cores = cores[:1]
    partners: list[tuple[Core, ...]] = []
    for number in range(len(cores)):
        begin = number % len(banks)
        if row.memory == 2:
            partners.append((banks[begin],))
        else:
            partners.append((*banks[begin:], *banks[:begin]))
    return cores, tuple(partners)


def transactions_of(row: Row, size: int) -> Transactions:
    """Return the transactions of a row."""
    cores, partners = _ends(row)
    return Transactions(
        kind="read" if row.pattern in READS else KINDS[row.mechanism],
        cores=cores,
        partners=partners,
        size=size,
        count=row.count,
        noc=1 if row.noc else 0,
        stateful=row.stateful,
        interleaved=row.memory == 1,
    )


def reader_rate(places: str, size: int, count: int) -> float:
    """Return the bytes a cycle of one of eight cores of blackhole, each of which reads transactions from one channel:
    `beside` their channels, or the first ones `in a row`."""
    banks = BANKS["blackhole"]
    chip = device("blackhole")
    if places == "beside":
        cores = tuple((x + 1, y) for x, y in banks)
    else:
        cores = tuple((x, chip.worker_rows[0]) for x in chip.worker_columns[: len(banks)])
    partners = tuple((bank,) for bank in banks)
    reads = Transactions(kind="read", cores=cores, partners=partners, size=size, count=count, noc=0)
    return size * count / transfer_cycles(reads, chip)
