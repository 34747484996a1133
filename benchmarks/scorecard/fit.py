"""Fit the costs of transactions to a table of measured ones, and write them where the model reads them.

A quarter of the rows, chosen by hash, is kept from the fit. From a start that says what each cost means, one cost after
the other is moved as long as the typical error falls; the result depends on nothing but the table.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import log
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final

from buda_emu.performance.timing.transfers.transactions import (
    DATA,
    NocCost,
    Traffic,
    Transactions,
    cycles_of,
    traffic_of,
)
from buda_emu.spec.devices import Device

from .noc import Row, measured_chip, read_rows, transactions_of

TIMING_DATA: Final = Path(__file__).parents[2] / "buda_emu" / "performance" / "timing" / "data"
TARGET: Final = TIMING_DATA / DATA
SOURCE: Final = "transactions measured on silicon, published in tenstorrent/tt-metal (Apache License 2.0)"
LIMIT: Final = 0.5  # of a cell's logarithmic error: beyond it a cell is an outlier and pulls no further
LARGE: Final = 512  # bytes of a transaction from which on a cell counts in full, and in what errors state
SMALL: Final = 0.2  # weight of cells of smaller ones
STEPS: Final = (0.3, 0.1, 0.03, 0.01)
START: Final = NocCost(
    start_read=105.0, start_write=105.0, flit_read=1.05, flit_write=1.03, flit_multicast=1.05, packet=2.0,
    issue_read=25.0, issue_write=22.0, issue_multicast=23.0, issue_dram_read=22.0, issue_dram_write=25.0,
    stateful_read=2.0, stateful_write=2.5, partner=12.0, reserve_hop=16.0, acknowledgement=1.1, turn=0.66,
    linked_turn=0.56, linked_reserve=0.5,
    dram_read=100.0, dram_write=100.0, bank_read=24.0, bank_write=23.0, bank_transaction=2.0,
    crowd_read=0.7, crowd_write=1.0, crowd_port=0.5, crowd_reads=0.4, crowd_free=8.0, drift=400.0,
    spread=0.4, merge=0.7, together=10.0,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cell:
    """Transactions with their traffic, and their measured cycles."""

    transactions: Transactions
    traffic: Traffic
    measured: float

    @property
    def weight(self) -> float:
        """Return what the cell counts in a fit."""
        return 1.0 if self.transactions.size >= LARGE else SMALL

    def modelled(self, cost: NocCost, chip: Device) -> float:
        """Return the modelled cycles."""
        return cycles_of(self.transactions, self.traffic, cost, chip)


def cells_of(rows: Iterable[Row], chip: Device) -> list[Cell]:
    """Return the measured cells of rows; those of small transactions weigh little."""
    cells: list[Cell] = []
    for row in rows:
        for size, cycles in row.measured.items():
            transactions = transactions_of(row, size)
            cells.append(Cell(transactions, traffic_of(transactions, chip), cycles))
    return cells


def loss(cells: Sequence[Cell], cost: NocCost, chip: Device) -> float:
    """Return the weighted mean of the cells' limited logarithmic errors."""
    total = sum(cell.weight * min(abs(log(cell.modelled(cost, chip) / cell.measured)), LIMIT) for cell in cells)
    return total / sum(cell.weight for cell in cells)


def least(start: Mapping[str, float], loss: Callable[[Mapping[str, float]], float]) -> Mapping[str, float]:
    """Return the values with the least loss that steps along single values reach from a start."""
    values = start
    best = loss(start)
    for step in STEPS:
        improved = True
        while improved:
            improved = False
            for name in values:
                for factor in (1 + step, 1 / (1 + step)):
                    trial = {**values, name: values[name] * factor}
                    found = loss(trial)
                    if found < best * (1 - 1e-4):
                        best, values, improved = found, trial, True
                        break
    return values


def fit_cost(cells: Sequence[Cell], chip: Device) -> NocCost:
    """Return the costs with the least loss that steps along single costs reach."""
    return NocCost(**least(asdict(START), lambda values: loss(cells, NocCost(**values), chip)))


def fit_table(path: Path) -> None:
    """Fit every chip of a table, and write the costs with their errors on both parts of it."""
    rows = read_rows(path)
    chips: dict[str, Any] = {}
    for arch in sorted({row.arch for row in rows}):
        chip = measured_chip(arch)
        given = [row for row in rows if row.arch == arch and not row.held_out]
        kept_back = [row for row in rows if row.arch == arch and row.held_out]
        cost = fit_cost(cells_of(given, chip), chip)
        chips[arch] = {
            "cost": {name: float(f"{value:.4g}") for name, value in asdict(cost).items()},
            "fitted": error_summary(_deviations(given, cost, chip)),
            "held_back": error_summary(_deviations(kept_back, cost, chip)),
        }
    content = {"source": SOURCE, "errors": "from 512 bytes up, in per cent", "chips": chips}
    TARGET.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _deviations(rows: Iterable[Row], cost: NocCost, chip: Device) -> list[float]:
    """Return by how many per cent modelled cycles of large transactions are off."""
    deviations: list[float] = []
    for cell in cells_of(rows, chip):
        if cell.transactions.size >= LARGE:
            deviations.append(100 * abs(cell.modelled(cost, chip) / cell.measured - 1))
    return deviations


def error_summary(deviations: Sequence[float]) -> Mapping[str, float]:
    """Return the number of cells and the median and 90th percentile of their errors in per cent."""
    if len(deviations) < 2:
        return {"cells": len(deviations)}
    return {
        "cells": len(deviations),
        "median": round(median(deviations), 2),
        "p90": round(quantiles(deviations, n=10, method="inclusive")[8], 2),
    }
