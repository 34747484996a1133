"""Tables of measured silicon figures, copied with what the model says of each row."""

import csv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from buda_emu.performance.timing import collective_cycles, collective_interval, transfer_interval
from buda_emu.performance.timing.uncertainty import Part, interval_of
from buda_emu.support.errors import HostError

from . import collectives, gemm, noc

Columns = Mapping[str, str]
Predict = Callable[[Columns, str], Columns]
"""The new columns of a row, by the row and its place in the file."""


def predict_table(table: Path, target: Path) -> None:
    """Write a copy of a table with the modelled figures. Raises HostError for a table of no such kind, and for a row
    that is wrong; nothing is written then."""
    with table.open(newline="", encoding="utf-8") as stream:
        reader = csv.DictReader(stream)
        header = list(reader.fieldnames or ())
        predict, added = _kind_of(header, table)
        rows = [{**row, **predict(row, f"{table}, line {reader.line_num}")} for row in reader]
    with target.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, [*header, *added], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _kind_of(header: list[str], table: Path) -> tuple[Predict, list[str]]:
    """Return how the rows of a table are predicted, and the columns that this adds."""
    for needed, predict, added in _KINDS:
        if needed <= set(header):
            return predict, added
    kinds = " or ".join(", ".join(sorted(needed)) for needed, _, _ in _KINDS)
    raise HostError(f"{table}: not a table of transactions, products or collectives; its columns must include {kinds}")


def _transactions(row: Columns, place: str) -> Columns:
    """Return the modelled cycles of a row of transactions for each size, with their intervals."""
    parsed = noc.parse_row(row, place)
    cells: dict[str, str] = {}
    for size in noc.SIZES:
        transfers = noc.transactions_of(parsed, size)
        interval = transfer_interval(transfers, noc.measured_chip(parsed.arch))
        cells[f"predicted_{size}"] = f"{noc.predict(parsed, size):.1f}"
        cells[f"low_{size}"] = f"{interval.low:.1f}"
        cells[f"high_{size}"] = f"{interval.high:.1f}"
    return cells


def _product(row: Columns, place: str) -> Columns:
    """Return the modelled cycles of one product of a row, with their interval."""
    product = gemm.parse_product(row, place)
    cycles = gemm.predict(product)
    interval = interval_of([Part("product", f"{product.arch} {gemm.error_topic(product)}", cycles)])
    return {"predicted": f"{cycles:.1f}", "low": f"{interval.low:.1f}", "high": f"{interval.high:.1f}"}


def _collective(row: Columns, place: str) -> Columns:
    """Return the modelled cycles of a row of collectives, with their interval."""
    collective, chip = collectives.parse_collective(row, place)
    cycles = collective_cycles(collective, chip)
    interval = collective_interval(collective, chip)
    return {"predicted": f"{cycles:.1f}", "low": f"{interval.low:.1f}", "high": f"{interval.high:.1f}"}


_KINDS: Final[tuple[tuple[set[str], Predict, list[str]], ...]] = (
    (
        {"board", "M", "K", "N", "grid", "dtype", "fidelity", "in0_storage", "out_storage"},
        _product,
        ["predicted", "low", "high"],
    ),
    ({"board", "collective", "chips", "layout", "bytes"}, _collective, ["predicted", "low", "high"]),
    (
        {"pattern", "num_transactions"},
        _transactions,
        [f"{word}_{size}" for word in ("predicted", "low", "high") for size in noc.SIZES],
    ),
)
