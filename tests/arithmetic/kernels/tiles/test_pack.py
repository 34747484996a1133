import numpy as np
import pytest

from buda_emu.arithmetic.kernels.tiles.tile_memory import RELU_FROM, RELU_WITHIN, accumulate_tiles, relu_tiles
from buda_emu.emulator.ops.common import relu

pytestmark = pytest.mark.tiny


def values():
    first = [-1.0, -0.0, 0.0, 0.25, 0.5, 0.75, np.inf, -np.inf, np.nan]
    tiles = np.zeros((1, 2, 1024), np.float32)
    tiles[:, :, : len(first)] = first
    return tiles


def relu_both(clamp, threshold):
    tiles = values()
    expected = relu(tiles, "max" if clamp else "min", threshold)
    relu_tiles(0, 2, tiles, RELU_WITHIN if clamp else RELU_FROM, np.float32(threshold))
    np.testing.assert_array_equal(tiles.view(np.uint32), expected.view(np.uint32))
    return tiles[0, 1, :9].tolist()


def test_min_zeroes_what_is_below():
    # OPS 5: x >= h ? x : +0
    assert relu_both(False, 0.5) == [0, 0, 0, 0, 0.5, 0.75, np.inf, 0, 0]
    kept = relu_both(False, 0.0)
    assert str(kept[1]) == "-0.0", "threshold 0 keeps -0"
    assert kept[0] == 0


def test_max_clamps():
    # OPS 5: x >= h ? h : (x >= 0 ? x : +0)
    assert relu_both(True, 0.5) == [0, 0, 0, 0.25, 0.5, 0.5, 0.5, 0, 0]
    assert str(relu_both(True, 0.5)[1]) == "-0.0"


def test_threshold_is_a_full_float32():
    assert relu_both(False, 0.1)[3] == 0.25
    assert relu_both(True, 0.1)[3] == np.float32(0.1)


def test_accumulate_adds_the_new_to_the_previous():
    new, previous = values(), values()
    previous[0, 0, 3] = np.float32(2.0**25)
    accumulate_tiles(0, 1, new, previous)
    assert new[0, 0, :6].tolist() == [-2.0, 0.0, 0.0, 2.0**25, 1.0, 1.5]
    np.testing.assert_array_equal(new[0, 1], values()[0, 1])
