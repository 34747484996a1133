"""Tiles that are moved as memory: what kernels do with addresses, and Python with views, is the same."""

import numpy as np
import pytest

from buda_emu.arithmetic.jit.kernel import kernel
from buda_emu.arithmetic.kernels.tiles.tile_memory import (
    EDGE,
    NO_RELU,
    RELU_FROM,
    RELU_WITHIN,
    add_row,
    add_tile,
    copy_tile,
    expect_tile,
    fill_tile,
    is_finite,
    is_zero,
    relu_tile,
    tile_at,
    transpose_tile,
    working_tiles,
)

pytestmark = pytest.mark.tiny
F32 = np.float32


@kernel
def moved(out, source, value):
    """Eight tiles made of two, one of them by way of working memory."""
    work = working_tiles()
    first, second = tile_at(source, 0, 0), tile_at(source, 1, 1)
    for part in range(3):
        expect_tile(tile_at(work, 0, 7), part, 3)  # changes nothing, there nor elsewhere
        expect_tile(tile_at(out, 1, 4), part, 3)
    copy_tile(tile_at(work, 0, 7), first)
    fill_tile(tile_at(work, 0, 0), value)
    copy_tile(tile_at(out, 0, 0), tile_at(work, 0, 7))
    copy_tile(tile_at(out, 0, 1), tile_at(work, 0, 0))
    transpose_tile(tile_at(out, 0, 2), first)
    add_tile(tile_at(out, 0, 3), first, second)
    add_row(tile_at(out, 0, 4), first, second)
    for relu in (0, 1, 2):
        copy_tile(tile_at(out, 1, relu), first)
        relu_tile(tile_at(out, 1, relu), relu, value)


@kernel
def looked_at(source, tile):
    """Whether it is zero, and whether it is finite."""
    found = tile_at(source, 0, tile)
    return 10 * is_zero(found) + is_finite(found)


def test_each_move():
    source = np.random.default_rng(0).uniform(-2, 2, (2, 2, 1024)).astype(F32)
    source[0, 0, :3] = np.nan, -0.0, np.inf
    first, second, limit = source[0, 0], source[1, 1], F32(0.5)
    out = np.zeros((2, 5, 1024), F32)
    moved(out, source, limit)
    square = first.reshape(EDGE, EDGE)
    np.testing.assert_array_equal(out[0, 0].view(np.uint32), first.view(np.uint32))
    assert (out[0, 1] == limit).all()
    np.testing.assert_array_equal(out[0, 2].reshape(EDGE, EDGE), square.T)
    np.testing.assert_array_equal(out[0, 3], first + second)
    np.testing.assert_array_equal(out[0, 4].reshape(EDGE, EDGE), square + second[:EDGE])
    assert not out[1, 3:].any()
    assert (NO_RELU, RELU_FROM, RELU_WITHIN) == (0, 1, 2)
    np.testing.assert_array_equal(out[1, 0], first)
    np.testing.assert_array_equal(out[1, 1], np.where(first >= limit, first, 0))
    np.testing.assert_array_equal(out[1, 2], np.where(np.isnan(first), 0, np.clip(first, 0, limit)))


@pytest.mark.parametrize("place", [0, 7, 8, 1023])
@pytest.mark.parametrize(
    ("value", "want"),
    [(0.0, 11), (-0.0, 11), (1e-45, 1), (-3.4028235e38, 1), (np.inf, 0), (-np.inf, 0), (np.nan, 0)],
)
def test_one_element_tells_that_a_tile_is_not_zero_or_not_finite(place, value, want):
    source = np.zeros((1, 2, 1024), F32)
    source[0, 1, place] = value
    assert looked_at(source, 1) == want
    assert looked_at(source, 0) == 11
