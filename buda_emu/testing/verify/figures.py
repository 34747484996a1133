"""How far an output is from what was expected, in figures: for tables and pictures, apart from the verdict."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.emulator.op_errors.op_apart import Moments
from buda_emu.spec.test_config import Comparison
from buda_emu.support.records import dataclass
from buda_emu.testing.verify.comparison import Flags, Floats, TileBlock, close, flat_tiles, tile_blocks, tiles_that_hold
from buda_emu.testing.verify.result import OutputDetail, TilePlace

PICTURE_CELLS: Final = 64  # of a heat map in each direction
DECADES: Final = range(-12, 13)  # lower bounds of the histogram's bins: 10**k; smaller errors count for the first


@dataclass(frozen=True, slots=True)
class Figures:
    """The fields of `verify.result.OutputResult` with the same names. A tile is bad when it does not hold by itself."""

    pcc: float | None
    match: float
    max_error: float | None
    mean_error: float | None
    max_error_at: tuple[int, ...] | None
    not_finite_expected: int
    not_finite_observed: int
    tiles: int
    bad_tiles: int
    first_bad_tile: TilePlace | None
    detail: OutputDetail | None


def figures(
    expected: NDArray[Any], observed: NDArray[Any], comparison: Comparison, tile_dim: tuple[int, int], *, detail: bool
) -> Figures:
    """Of two arrays [entries, t, rows, cols] of one shape, looked at in blocks. `detail`: with the data of pictures."""
    summary = _Summary(expected.shape, tile_dim, detail)
    for block in tile_blocks(expected, observed, tile_dim):
        summary.add(block, comparison)
    return summary.result()


class _Summary:
    """Running figures over the blocks of one output."""

    def __init__(self, shape: tuple[int, ...], tile_dim: tuple[int, int], detail: bool) -> None:
        self._size = 0
        self._matches = 0
        self._not_finite = [0, 0]
        self._moments = Moments()
        self._error_sum = 0.0
        self._finite = 0
        self._largest: tuple[float, tuple[int, ...]] | None = None
        self._tiles = self._bad = 0
        self._first_bad: TilePlace | None = None
        self._picture = _Picture(shape[2] // tile_dim[0], shape[3] // tile_dim[1]) if detail else None

    def add(self, block: TileBlock, comparison: Comparison) -> None:
        """One block more."""
        a, b = block.a, block.b
        finite_a, finite_b = np.isfinite(a), np.isfinite(b)
        finite = finite_a & finite_b
        self._size += a.size
        self._not_finite[0] += a.size - int(np.count_nonzero(finite_a))
        self._not_finite[1] += a.size - int(np.count_nonzero(finite_b))
        self._matches += int(np.count_nonzero(close(a, b, comparison.atol, comparison.rtol)))
        self._moments.add(a[finite], b[finite])
        with np.errstate(all="ignore"):
            error = np.abs(a - b)
        self._errors(block, error, finite)
        good = tiles_that_hold(flat_tiles(a), flat_tiles(b), comparison)
        self._tiles += len(good)
        self._bad += int(len(good) - np.count_nonzero(good))
        if self._first_bad is None and not good.all():
            self._first_bad = TilePlace(*block.index(int(np.argmin(good))))
        if self._picture is not None:
            self._picture.add(block, error, finite)

    def _errors(self, block: TileBlock, error: Floats, finite: Flags) -> None:
        count = int(np.count_nonzero(finite))
        if not count:
            return
        self._finite += count
        self._error_sum += float(error[finite].sum())
        error = np.where(finite, error, -1.0)
        place = int(error.argmax())
        largest = float(error.reshape(-1)[place])
        if self._largest is None or largest > self._largest[0]:
            row, height, col, width = (int(i) for i in np.unravel_index(place, error.shape))
            entry, t, r, c = block.index(row * error.shape[2] + col)
            self._largest = largest, (entry, t, r * error.shape[1] + height, c * error.shape[3] + width)

    def result(self) -> Figures:
        """What has been seen."""
        return Figures(
            pcc=self._moments.pcc(),
            match=self._matches / self._size if self._size else 1.0,
            max_error=self._largest[0] if self._largest else None,
            mean_error=self._error_sum / self._finite if self._finite else None,
            max_error_at=self._largest[1] if self._largest else None,
            not_finite_expected=self._not_finite[0],
            not_finite_observed=self._not_finite[1],
            tiles=self._tiles,
            bad_tiles=self._bad,
            first_bad_tile=self._first_bad,
            detail=self._picture.detail() if self._picture is not None else None,
        )


class _Picture:
    """The largest error of each tile position, and how many errors have which size."""

    def __init__(self, rows: int, cols: int) -> None:
        self._cell = -(-rows // PICTURE_CELLS), -(-cols // PICTURE_CELLS)
        self._rows = rows
        self._error = np.full((-(-rows // self._cell[0]), -(-cols // self._cell[1])), np.nan)
        self._bounds = np.array([0.0, *(10.0**k for k in DECADES)])
        self._counts = np.zeros(len(self._bounds), np.int64)

    def add(self, block: TileBlock, error: Floats, finite: Flags) -> None:
        """One block more."""
        largest = np.where(finite, error, -1.0).max(axis=(1, 3))  # [tile rows, tile columns]
        largest[largest < 0] = np.nan
        columns: NDArray[np.int64] = np.arange(largest.shape[1], dtype=np.int64) // self._cell[1]
        for number, line in enumerate(largest):
            row = (block.first_row + number) % self._rows // self._cell[0]
            pooled = np.full(self._error.shape[1], np.nan)
            np.fmax.at(pooled, columns, line)
            np.fmax(self._error[row], pooled, out=self._error[row])
        errors = error[finite]
        bins = np.searchsorted(self._bounds, errors, side="right") - 1
        bins[(bins == 0) & (errors > 0)] = 1  # bin 0 is for equality alone
        self._counts += np.bincount(bins, minlength=len(self._counts))

    def detail(self) -> OutputDetail:
        """The picture so far; empty bins at both ends left out."""
        used = np.flatnonzero(self._counts[1:]) + 1
        kept = range(used[0], used[-1] + 1) if len(used) else range(0)
        bins = [(0.0, int(self._counts[0])), *((float(self._bounds[i]), int(self._counts[i])) for i in kept)]
        return OutputDetail(self._error, self._cell, tuple(bins))
