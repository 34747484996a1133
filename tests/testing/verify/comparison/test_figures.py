"""Figures of an output, counted by hand."""

import numpy as np
import pytest

from buda_emu.spec.test_config import Comparison
from buda_emu.testing.verify.result import TilePlace
from buda_emu.testing.verify.runs.run_case import figures

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


def test_nothing_matches_nothing():
    nothing = of(np.zeros((0, 1, 32, 32), np.float32), np.zeros((0, 1, 32, 32), np.float32))
    assert (nothing.match, nothing.tiles, nothing.pcc, nothing.max_error) == (1.0, 0, None, None)


def test_the_largest_error_is_among_what_is_finite():
    expected = np.zeros((1, 1, 32, 32), np.float32)
    observed = expected.copy()
    observed[0, 0, 0, 0] = np.nan
    found = of(expected, observed)
    assert (found.max_error, found.max_error_at) == (0.0, (0, 0, 0, 1))


@pytest.fixture
def short_blocks(monkeypatch):
    """Two rows of tiles of 32 x 64 cells at a time."""
    monkeypatch.setattr("buda_emu.testing.verify.comparison._BLOCK", 1 << 12)


@pytest.mark.usefixtures("short_blocks")
@pytest.mark.parametrize(
    ("errors", "largest"),
    [
        ({(0, 0, 5, 1): 2.0, (1, 0, 90, 40): 3.0}, (1, 0, 90, 40)),
        ({(0, 0, 5, 1): 3.0, (1, 0, 90, 40): 2.0}, (0, 0, 5, 1)),
        ({(0, 0, 70, 33): 3.0, (1, 0, 90, 40): 3.0}, (0, 0, 70, 33)),  # the first of equals
    ],
)
def test_figures_over_several_blocks(errors, largest):
    expected = np.zeros((2, 1, 96, 64), np.float32)  # 2 * 3 rows of 2 tiles
    observed = expected.copy()
    for place, by in errors.items():
        observed[place] = by
    found = of(expected, observed)
    assert (found.max_error, found.max_error_at) == (3.0, largest)
    assert (found.tiles, found.bad_tiles, found.match) == (12, 2, (12288 - 2) / 12288)
    first = min(errors)
    assert found.first_bad_tile == TilePlace(first[0], 0, first[2] // 32, first[3] // 32)
    picture = np.zeros((3, 2))
    for (_, _, row, col), by in errors.items():
        picture[row // 32, col // 32] = max(by, picture[row // 32, col // 32])
    assert found.detail.tile_error.tolist() == picture.tolist()


@pytest.mark.usefixtures("short_blocks")
def test_the_correlation_runs_over_blocks():
    expected = np.zeros((1, 1, 128, 64), np.float32)
    expected[0, 0, 64:] = 1.0  # the second block: means 1 and 1/2, the first: 0 and 0
    observed = expected.copy()
    observed[0, 0, 96:] = 0.0
    # E[ab] = 1/4, means 1/2 and 1/4: cov 1/8, variances 1/4 and 3/16
    assert of(expected, observed).pcc == pytest.approx(0.5773502691896258, rel=1e-12)


def test_tall_outputs_share_cells_of_the_picture():
    expected = np.zeros((1, 2, 16 * 130, 32), np.float32)  # 130 rows of tiles of 16 x 32
    observed = expected.copy()
    observed[0, 1, 16 * 129 + 15, 31] = 2.0
    observed[0, 0, 16 * 4, 0] = 1.0
    detail = of(expected, observed, tile_dim=(16, 32)).detail
    assert detail.cell == (3, 1)
    assert detail.tile_error.shape == (44, 1)
    assert np.flatnonzero(detail.tile_error[:, 0]).tolist() == [1, 43]
    assert detail.tile_error[[1, 43], 0].tolist() == [1.0, 2.0]
