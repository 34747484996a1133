"""Row-major tensors to tiles and back (LAYOUT 2)."""

import numpy as np
import pytest

from buda_emu.arithmetic.tensor.layout import tilize, untilize
from buda_emu.spec.blocking import LEGAL_TILE_DIMS
from buda_emu.support.errors import HostError

DIMS = pytest.mark.parametrize("tile_dim", LEGAL_TILE_DIMS, ids=[f"{h}x{w}" for h, w in LEGAL_TILE_DIMS])


def random_words(shape) -> np.ndarray:
    return np.random.default_rng(9).integers(0, 1 << 32, shape, dtype=np.uint32)


@DIMS
def test_each_element_has_its_place(tile_dim):
    height, width = tile_dim
    words = random_words((2, 3, 2 * height, 3 * width))
    tiles = tilize(words.view(np.float32), tile_dim).view(np.uint32)
    assert tiles.shape == (2, 3, 2, 3, 32, 32)
    for row in range(2):
        for col in range(3):
            part = words[:, :, row * height : (row + 1) * height, col * width : (col + 1) * width]
            assert (tiles[:, :, row, col, :height, :width] == part).all()
    assert not tiles[..., height:, :].any()
    assert not tiles[..., :, width:].any()


@DIMS
def test_megarow_tiles_are_consecutive_runs(tile_dim):
    run = tile_dim[0] * tile_dim[1]
    words = random_words((2, 3, 2 * tile_dim[0], 3 * tile_dim[1]))
    tiles = tilize(words.view(np.float32), tile_dim, megarow=True).view(np.uint32)
    assert tiles.shape == (2, 3, 2, 3, 32, 32)
    numbered = tiles.reshape(2 * 3 * 2 * 3, 1024)
    host = words.reshape(-1)
    for number, tile in enumerate(numbered):
        assert (tile[:run] == host[number * run : (number + 1) * run]).all()
        assert not tile[run:].any()


@DIMS
@pytest.mark.parametrize("megarow", [False, True])
def test_untilize_is_the_inverse(tile_dim, megarow):
    words = random_words((2, 3, 2 * tile_dim[0], 3 * tile_dim[1]))
    tiles = tilize(words.view(np.float32), tile_dim, megarow)
    assert (untilize(tiles, tile_dim, megarow).view(np.uint32) == words).all()


@pytest.mark.parametrize("megarow", [False, True])
@pytest.mark.parametrize("tile_dim", [(32, 32), (1, 32)])
def test_results_never_share_memory(tile_dim, megarow):
    array = np.zeros((1, 1, *tile_dim), np.float32)
    tiles = tilize(array, tile_dim, megarow)
    assert tiles.flags.c_contiguous
    assert not np.shares_memory(tiles, array)
    back = untilize(tiles, tile_dim, megarow)
    assert back.flags.c_contiguous
    assert not np.shares_memory(back, tiles)


def test_strided_tensors():
    words = random_words((32, 64, 1, 1)).transpose(2, 3, 0, 1)
    assert (untilize(tilize(words.view(np.float32))).view(np.uint32) == words).all()


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.zeros((1, 1, 33, 32), np.float32), "33x32 elements do not divide into tiles of 32x32"),
        (np.zeros((1, 1, 32, 48), np.float32), "32x48"),
        (np.zeros((1, 32, 32), np.float32), "4 dimensions"),
        (np.zeros((1, 1, 32, 32), np.float64), "float64"),
        (np.zeros((1, 1, 32, 32), np.uint32), "uint32"),
    ],
)
def test_what_does_not_fit_is_refused(array, text):
    with pytest.raises(HostError, match=text):
        tilize(array)
