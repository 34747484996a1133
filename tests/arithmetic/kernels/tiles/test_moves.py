"""The kernels of embedding, splice and topk, and the count that a matmul makes."""

import numpy as np
import pytest

from buda_emu.arithmetic.kernels.products.matmul import count_beyond
from buda_emu.arithmetic.kernels.tiles.reduce import topk_rows
from buda_emu.arithmetic.kernels.tiles.tile_memory import embedding_tiles, place_tiles

pytestmark = pytest.mark.tiny
F32 = np.float32


def operand(tiles, index, pad_value=0.0, arrange=0):
    positions = np.array(index, np.int32)
    positions.flags.writeable = False
    return tiles, positions, F32(pad_value), arrange


def numbered(w, n):
    return np.arange(w * n * 1024, dtype=F32).reshape(w, n, 1024)


def test_embedding_rows_in_any_range_of_tiles():
    table = numbered(1, 6)  # 64 rows of 3 tiles
    picked = np.full((2, 32), -1)
    picked[0, :3] = 63, 0, 7
    picked[1, 31] = 1
    out = np.full((2, 2 * 3, 1024), np.nan, F32)
    for start, stop in ((5, 12), (0, 5)):
        embedding_tiles(start, stop, out, table, picked, 3)
    rows = out.reshape(2, 2, 3, 32, 32).swapaxes(2, 3).reshape(2, 2, 32, 96)
    flat = table.reshape(64, 96)
    for t in range(2):
        np.testing.assert_array_equal(rows[0, t, :3], flat[[63, 0, 7]])
        assert (rows[0, t, 3:] == 0).all()
        np.testing.assert_array_equal(rows[1, t, 31], flat[1])


def test_places():
    out = np.full((2, 4, 1024), np.nan, F32)
    source = numbered(2, 3)
    taken, places = np.array([1, 0, 2], np.int32), np.array([3, 0, 1], np.int32)
    for start, stop in ((4, 6), (0, 4)):
        place_tiles(start, stop, out, operand(source, [2, -1, 0], 7.5), taken, places)
    np.testing.assert_array_equal(out[:, 0], source[:, 2])
    np.testing.assert_array_equal(out[:, 1], source[:, 0])
    assert (out[:, 3] == 7.5).all()
    assert np.isnan(out[:, 2]).all(), "a tile that nothing is placed at stays as it was"


def test_words_are_placed_as_they_are():
    bits = np.arange(0x7F800000, 0x7F800400, dtype=np.uint32)
    out = np.zeros((1, 1, 1024), F32)
    place_tiles(0, 1, out, operand(bits.view(F32).reshape(1, 1, 1024), [0]), *np.zeros((2, 1), np.int32))
    np.testing.assert_array_equal(out.view(np.uint32).reshape(-1), bits)


def test_elements_beyond_a_limit():
    tiles = np.zeros((2, 2, 1024), F32)
    tiles[0, 0, :4] = 5.0, -5.0, 5.5, -6.0
    tiles[1, 1, :3] = np.nan, np.inf, -np.inf
    counts = np.full(4, 7)
    count_beyond(1, 4, tiles, F32(5), counts)
    assert counts.tolist() == [7, 0, 0, 2]
    count_beyond(0, 1, tiles, F32(5), counts)
    assert counts.tolist() == [2, 0, 0, 2]


def test_topk_applies_its_network_to_every_row_and_core():
    values = np.zeros((1, 4, 1024), F32)
    values.reshape(4, 32, 32)[:, :, 1] = np.arange(128).reshape(4, 32)  # two rows of tiles, two cores
    network = np.array([[0, 1, 1, 0], [2, 3, 1, 1]], np.int32)
    out = np.full((1, 4, 1024), np.nan, F32)
    both = operand(values, range(4))
    for start, stop in ((1, 4), (0, 1)):
        topk_rows(start, stop, out, both, both, network, (2, 4, False), (32, 32))
    best = out.reshape(4, 32, 32)
    np.testing.assert_array_equal(best[:, :, 0], np.arange(128).reshape(4, 32))
    assert (best[:, :, 1:] == 0).all()
