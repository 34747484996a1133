"""Functions of single elements, on regions of tiles."""

import numpy as np
import pytest

from buda_emu.arithmetic.kernels.functions import elementary as room

pytestmark = pytest.mark.tiny
F32 = np.float32


def tiles(stream):
    return stream.uniform(0.5, 2, (2, 1, 1024)).astype(F32)


def inside(runs, length):
    """The region: so many runs of elements, 32 apart."""
    found = np.zeros(1024, bool)
    for run in range(runs):
        found[32 * run : 32 * run + length] = True
    return found


@pytest.mark.parametrize(("runs", "length"), [(1, 1024), (1, 40), (3, 5)])
@pytest.mark.parametrize(
    ("code", "want"),
    [(room.ABS, np.abs), (room.SQUARE, np.square), (room.SQRT, np.sqrt), (room.RECIPROCAL, np.reciprocal)],
)
def test_only_the_region_of_the_items_changes(code, want, runs, length):
    before = tiles(np.random.default_rng(code))
    after, failed = before.copy(), np.zeros(2, np.bool_)
    room.elementary_tiles(1, 2, after, (runs, length), failed, code, F32(0), 0)
    region = inside(runs, length)
    np.testing.assert_array_equal(after[1, 0, region], want(before[1, 0, region]))
    np.testing.assert_array_equal(after[1, 0, ~region], before[1, 0, ~region])
    np.testing.assert_array_equal(after[0], before[0])
    assert not failed.any()


def test_a_tile_that_the_reference_would_abort_on_is_named():
    x = tiles(np.random.default_rng(9))
    x[1, 0, 70] = -1
    failed = np.zeros(2, np.bool_)
    room.elementary_tiles(0, 2, x, (32, 7), failed, room.SQRT, F32(0), 0)
    assert failed.tolist() == [False, True]


def test_a_power_is_its_products_and_a_leak_is_below_zero_only():
    x = np.linspace(-2, 2, 1024, dtype=F32).reshape(1, 1, 1024)
    failed, power, leak = np.zeros(1, np.bool_), x.copy(), x.copy()
    room.elementary_tiles(0, 1, power, (1, 1024), failed, room.POWER, F32(0), 3)
    np.testing.assert_array_equal(power, x * (x * x))
    room.elementary_tiles(0, 1, leak, (1, 1024), failed, room.LRELU, F32(0.25), 0)
    np.testing.assert_array_equal(leak, np.where(x > 0, x, x / 4))


@pytest.mark.parametrize(("runs", "length"), [(1, 40), (3, 5)])
def test_dropout_and_what_lies_outside(runs, length):
    before = tiles(np.random.default_rng(1))
    keep = (np.arange(1024) % 3 > 0).astype(F32)
    region, after = inside(runs, length), before.copy()
    room.dropout_tiles(0, 2, after, (runs, length), keep, F32(2))
    np.testing.assert_array_equal(after[:, 0], np.where(region, before[:, 0] * keep * 2, before[:, 0]))
    room.clear_outside(0, 2, after, (runs, length))
    assert (after[:, 0, ~region] == 0).all()
    np.testing.assert_array_equal(after[:, 0, region], (before[:, 0] * keep * 2)[:, region])
