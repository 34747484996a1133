"""What each row of cores of a picker works on is counted as one would count it by hand."""

import numpy as np
import pytest

from buda_emu.compiler.lower import picker
from buda_emu.compiler.lower.picker import PickTable, WorkDivision


def a_table(pairs, t, rows, inner, tiles):
    rng = np.random.default_rng(pairs)
    places = {tuple(int(rng.integers(0, most)) for most in (t, rows, inner)) for _ in range(pairs)}
    found = np.array(sorted(places), np.int64).reshape(-1, 3)
    which = rng.integers(0, tiles, len(found))
    return PickTable(t, rows, *found.T, which, np.ones((tiles, 32, 32), np.float32), plain=True)


@pytest.mark.parametrize("dense", [0, 1 << 30])
@pytest.mark.parametrize("cut", [WorkDivision(1), WorkDivision(3, 2, 3), WorkDivision(2, 6, 1), WorkDivision(12, 1, 2)])
@pytest.mark.parametrize("pairs", [1, 7, 300])
def test_strips_ublocks_pairs_and_tiles_of_the_fullest_row_of_cores(monkeypatch, dense, cut, pairs):
    monkeypatch.setattr(picker, "_DENSE", dense)
    table = a_table(pairs, t=3, rows=12, inner=6, tiles=5)
    block = 12 // cut.grid_rows
    strips, ublocks, of, tiles = ([set() for _ in range(cut.grid_rows)] for _ in range(4))
    for slice, row, which, inner in zip(table.slice, table.row, table.which, table.inner, strict=True):
        core = int(row) // block
        strip = int(slice), int(inner) // cut.u_kt
        strips[core].add(strip)
        ublocks[core].add((*strip, int(row) % block // cut.u_rt))
        of[core].add((int(slice), int(row), int(inner)))
        tiles[core].add(int(which))
    counts = table.counts(cut)
    assert counts.strips == max(3, *map(len, strips))
    assert (counts.ublocks, counts.pairs, counts.tiles) == tuple(max(map(len, kind)) for kind in (ublocks, of, tiles))
