"""The measured collectives of `metal.md` (c), as the model takes them, and the fit of their costs.

Rows whose size is a power of eight, one of three, are kept from the fit.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from math import log
from pathlib import Path
from typing import Any, Final, cast

from buda_emu.performance.timing.transfers.collectives import (
    DATA,
    Collective,
    CollectiveCost,
    CollectiveKind,
    Layout,
    check_links,
    collective_cycles,
    cycles_of,
)
from buda_emu.performance.timing.transfers.rates import speed
from buda_emu.performance.timing.transfers.transactions import device_of
from buda_emu.spec.devices import Device, device
from buda_emu.support.errors import BudaError, HostError

from .fit import LIMIT, TIMING_DATA, error_summary, least

TARGET: Final = TIMING_DATA / DATA
SOURCE: Final = "collectives measured on silicon, published in tenstorrent/tt-metal (Apache License 2.0)"
ARCHS: Final = {"Blackhole": "blackhole", "Wormhole B0": "wormhole_b0"}
LINKS: Final = {"blackhole": 2, "wormhole_b0": 1}
"""Links of each hop that the runs used."""
HELD_OUT: Final = 3
"""Of so many powers of two, one is kept from the fit."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One measured collective: microseconds, and GB/s that each link carried in one direction."""

    arch: str
    collective: Collective
    microseconds: float
    link_rate: float

    @property
    def held_out(self) -> bool:
        """Return whether the fit must not see this row: sizes that are powers of eight."""
        return (self.collective.size.bit_length() - 1) % HELD_OUT == 0

    @property
    def cycles(self) -> float:
        """Return the measured cycles at the chip's clock."""
        return self.microseconds * device(self.arch).clock


def read_rows(path: Path) -> list[Row]:
    """Return the rows of the tables of collectives in a file."""
    rows: list[Row] = []
    heading: re.Match[str] | None = None
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            heading = re.match(r"### (Blackhole|Wormhole B0), (\w+), n=(\d+), (ring|line)", line)
        cells = line.strip("| ").split(" | ")
        if heading is not None and len(cells) == 6 and cells[0].isdecimal():
            rows.append(_row(heading, cells))
    return rows


def _row(heading: re.Match[str], cells: Sequence[str]) -> Row:
    """Return the row of a table under its heading."""
    arch = ARCHS[heading[1]]
    collective = Collective(
        kind=cast("CollectiveKind", heading[2]),
        chips=int(heading[3]),
        size=int(cells[0]),
        layout=cast("Layout", heading[4]),
        links=LINKS[arch],
    )
    return Row(arch=arch, collective=collective, microseconds=float(cells[1]), link_rate=float(cells[4]))


def parse_collective(row: Mapping[str, str], place: str) -> tuple[Collective, Device]:
    """Return the collective of a row of a table with columns, and its chip. Raises BudaError that names its place."""
    try:
        collective = Collective(
            kind=cast("CollectiveKind", row["collective"]),
            chips=int(row["chips"]),
            size=int(row["bytes"]),
            layout=cast("Layout", row["layout"] or "line"),
            links=int(row["links"]) if row.get("links") else None,
        )
        chip = device_of(row["board"].lower())
        check_links(collective, chip)
    except (BudaError, ValueError) as error:
        raise HostError(f"{place}: not a row of collectives: {error}") from None
    return collective, chip


def predict(row: Row) -> float:
    """Return the modelled cycles of a row."""
    return collective_cycles(row.collective, row.arch)


def start_of(chip: Device) -> CollectiveCost:
    """Return the costs at which a fit starts: microseconds, and links at their rate, which cores can feed."""
    rate = speed(chip, {}).rates().ethernet / chip.neighbour_links
    return CollectiveCost(
        start_gather=4.0 * chip.clock, start_reduce=4.0 * chip.clock, start_exchange=3.0 * chip.clock,
        step=2.0 * chip.clock, inside=2.0 * chip.clock,
        link=0.95, ring=0.95, reduce=0.8, gather_core=rate, exchange_core=rate,
    )  # fmt: skip


SHARES: Final = ("link", "ring", "reduce")
"""Costs that are a share of a rate, at most 1."""


def fit_cost(rows: Sequence[Row], chip: Device) -> CollectiveCost:
    """Return the costs with the least mean error that steps along single costs reach."""

    def loss(values: Mapping[str, float]) -> float:
        """Return the mean of the rows' limited logarithmic errors, with shares above 1 out of reach."""
        if any(values[name] > 1 for name in SHARES):
            return LIMIT
        cost = CollectiveCost(**values)
        errors = [abs(log(cycles_of(row.collective, cost, chip) / row.cycles)) for row in rows]
        return sum(min(error, LIMIT) for error in errors) / len(errors)

    return CollectiveCost(**least(asdict(start_of(chip)), loss))


def fit_file(path: Path) -> None:
    """Fit every chip of a file, and write the costs with their errors on both parts of it. Raises HostError for a file
    without rows."""
    rows = read_rows(path)
    if not rows:
        raise HostError(
            f"{path}: no tables of collectives, with headings such as '### Blackhole, all_gather, n=2, line'"
        )
    chips: dict[str, Any] = {}
    for arch in sorted({row.arch for row in rows}):
        chip = device(arch)
        seen = [row for row in rows if row.arch == arch and not row.held_out]
        kept_back = [row for row in rows if row.arch == arch and row.held_out]
        cost = fit_cost(seen, chip)
        chips[arch] = {
            "cost": {entry.name: float(f"{getattr(cost, entry.name):.4g}") for entry in fields(cost)},
            "fitted": error_summary(_deviations(seen, cost, chip)),
            "held_back": error_summary(_deviations(kept_back, cost, chip)),
        }
    content = {"source": SOURCE, "errors": "in per cent", "chips": chips}
    TARGET.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _deviations(rows: Iterable[Row], cost: CollectiveCost, chip: Device) -> list[float]:
    """Return by how many per cent modelled cycles are off."""
    return [100 * abs(cycles_of(row.collective, cost, chip) / row.cycles - 1) for row in rows]


def causes_of(row: Row) -> str:
    """Return what names the rows that share their causes: those of as many chips, all of which but all_to_all move
    the same pieces."""
    kind = "all_to_all" if row.collective.kind == "all_to_all" else "pieces"
    return f"{kind} {row.collective.chips}"


def errors_without_own(rows: Sequence[Row], arch: str) -> Iterator[tuple[Row, str, float]]:
    """Yield each row of a chip with what names its causes and the logarithm of measured over modelled cycles, by costs
    that were fitted to rows of other causes."""
    chip = device(arch)
    ours = [row for row in rows if row.arch == arch]
    for causes in sorted({causes_of(row) for row in ours}):
        cost = fit_cost([row for row in ours if causes_of(row) != causes], chip)
        for row in ours:
            if causes_of(row) == causes:
                yield row, causes, log(row.cycles / cycles_of(row.collective, cost, chip))
