"""Figures of an output, counted by hand."""

import numpy as np
import pytest

from buda_emu.spec.comparison import Comparison
from buda_emu.verify.figures import figures
from buda_emu.verify.result import TilePlace

CLOSE = Comparison("AllClose", atol=0.25, rtol=0.0)
TILE = (32, 32)


def of(expected, observed, comparison=CLOSE, tile_dim=TILE, detail=True):
    return figures(expected, observed, comparison, tile_dim, detail=detail)


def test_equal_outputs():
    values = np.arange(2 * 64 * 96, dtype=np.float32).reshape(2, 1, 64, 96)
    found = of(values, values.copy())
    assert (found.pcc, found.match, found.max_error, found.mean_error) == (pytest.approx(1), 1.0, 0.0, 0.0)
    assert (found.tiles, found.bad_tiles, found.first_bad_tile) == (12, 0, None)
    assert (found.detail.tile_error == np.zeros((2, 3))).all()
    assert found.detail.histogram == ((0.0, 12288),)


def test_errors_their_places_and_tiles():
    expected = np.zeros((2, 1, 64, 96), np.float32)
    observed = expected.copy()
    observed[0, 0, 1, 2] = 0.25  # close
    observed[1, 0, 40, 70] = -3.0  # tile [1, 2] of entry 1
    observed[1, 0, 41, 70] = 0.5
    found = of(expected, observed)
    assert (found.max_error, found.max_error_at) == (3.0, (1, 0, 40, 70))
    assert found.mean_error == 3.75 / 12288
    assert found.match == (12288 - 2) / 12288
    assert (found.tiles, found.bad_tiles) == (12, 1)
    assert found.first_bad_tile == TilePlace(1, 0, 1, 2)
    assert str(found.first_bad_tile) == "entry 1, t 0, tile [1, 2]"
    assert found.detail.tile_error.tolist() == [[0.25, 0, 0], [0, 0, 3.0]]
    assert found.detail.histogram == ((0.0, 12285), (0.1, 2), (1.0, 1))
    assert found.pcc is None  # expected is constant


def test_what_is_not_finite_is_counted_apart():
    expected = np.ones((1, 1, 32, 32), np.float32)
    observed = expected.copy()
    observed[0, 0, 0, :3] = np.nan
    expected[0, 0, 1, 0] = np.inf
    found = of(expected, observed)
    assert (found.not_finite_expected, found.not_finite_observed) == (1, 3)
    assert found.max_error == 0.0
    nothing = of(np.full_like(expected, np.nan), observed)
    assert (nothing.max_error, nothing.mean_error, nothing.max_error_at, nothing.pcc) == (None,) * 4
    assert np.isnan(nothing.detail.tile_error).all()
    assert nothing.detail.histogram == ((0.0, 0),)


def test_big_outputs_share_cells_of_the_picture():
    expected = np.zeros((1, 1, 32, 32 * 130), np.float32)
    observed = expected.copy()
    observed[0, 0, 5, 32 * 129 + 3] = 2.0
    detail = of(expected, observed).detail
    assert detail.cell == (1, 3)
    assert detail.tile_error.shape == (1, 44)
    assert detail.tile_error[0, 43] == 2.0


def test_errors_below_the_least_decade_are_not_equality():
    expected = np.zeros((1, 1, 32, 32), np.float32)
    observed = expected.copy()
    observed[0, 0, 0, 0] = 1e-20
    observed[0, 0, 0, 1] = 1e20
    assert of(expected, observed).detail.histogram[0] == (0.0, 1022)
    assert of(expected, observed).detail.histogram[1] == (1e-12, 1)
    assert of(expected, observed).detail.histogram[-1] == (1e12, 1)


def test_without_pictures_there_is_no_detail():
    values = np.zeros((1, 1, 32, 32), np.float32)
    assert of(values, values, detail=False).detail is None


def test_words_are_numbers():
    expected = np.zeros((1, 1, 32, 32), np.uint32)
    observed = expected.copy()
    observed[0, 0, 0, 0] = 0x7FC00000
    assert of(expected, observed).max_error == 0x7FC00000
