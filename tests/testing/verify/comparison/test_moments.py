"""Correlation of streams that are never held whole."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buda_emu.emulator.op_errors.op_apart import Moments

VALUES = st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3)), min_size=2, max_size=60)


def test_by_hand():
    moments = Moments()
    moments.add(np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.0, 1.0, 0.0, 1.0]))
    assert moments.pcc() == 0.0
    moments.add(np.array([0.0, 1.0, 0.0, 1.0]), np.array([0.0, 1.0, 0.0, 1.0]))
    assert moments.pcc() == pytest.approx(0.5, abs=1e-15)  # E[ab] 3/8, means 1/2
    assert (moments.count, moments.mean_a, moments.mean_b) == (8, 0.5, 0.5)


def test_blocks_of_different_means_by_hand():
    # a: mean 4, deviations -4 -2 0 2 4; b: mean 3, deviations -3 -1 -2 1 5
    a, b = np.array([0.0, 2, 4, 6, 8]), np.array([0.0, 2, 1, 4, 8])
    moments = Moments()
    moments.add(a[:2], b[:2])
    assert (moments.square_a, moments.square_b, moments.product) == (2, 2, 2)
    moments.add(a[2:], b[2:])
    assert (moments.count, moments.mean_a, moments.mean_b) == (5, pytest.approx(4), pytest.approx(3))
    assert (moments.square_a, moments.square_b, moments.product) == pytest.approx((40, 40, 36), rel=1e-14)
    assert moments.pcc() == pytest.approx(0.9, rel=1e-14)


def test_the_first_block_sets_the_means():
    moments = Moments()
    moments.add(np.full(3, 1e-20), np.full(3, -1e-20))
    assert (moments.mean_a, moments.mean_b) == (1e-20, -1e-20)


def test_rounding_does_not_go_beyond_one():
    a, b = np.array([1.3, 1.1]), np.array([3.9000000000000004, 3.3000000000000003])  # computes to 1 + 2^-52
    for sign in (1.0, -1.0):
        moments = Moments()
        moments.add(a, sign * b)
        assert moments.pcc() == sign


def test_constants():
    for a, b, expected in ((1.0, 1.0, 1.0), (1.0, 2.0, None)):
        moments = Moments()
        moments.add(np.full(4, a), np.full(4, b))
        assert moments.pcc() == expected
    moments = Moments()
    moments.add(np.zeros(2), np.array([0.0, 1.0]))
    assert moments.pcc() is None
    assert Moments().pcc() is None


@given(VALUES, st.integers(1, 59))
def test_a_cut_into_blocks_changes_rounding_only(pairs, cut):
    a, b = (np.array(side) for side in zip(*pairs, strict=True))
    if a.std() < 1e-2 or b.std() < 1e-2:
        return
    whole, parts = Moments(), Moments()
    whole.add(a, b)
    for first, last in ((0, cut), (cut, cut), (cut, len(a))):
        parts.add(a[first:last], b[first:last])
    assert parts.pcc() == pytest.approx(whole.pcc(), abs=1e-9)
    assert whole.pcc() == pytest.approx(np.corrcoef(a, b)[0, 1], abs=1e-9)


@given(st.integers(0, 2**32 - 1), st.integers(1, 99), st.floats(-1e3, 1e3), st.floats(-1e3, 1e3))
def test_streams_have_the_figures_of_the_whole(seed, cut, shift_a, shift_b):
    """Against the sums written out: E[(a - mean a) (b - mean b)] and so on, of blocks with different means."""
    stream = np.random.default_rng(seed)
    a, b = stream.standard_normal((2, 100))
    a[cut:] += shift_a
    b[cut:] += shift_b
    moments = Moments()
    moments.add(a[:cut], b[:cut])
    moments.add(a[cut:], b[cut:])
    da, db = a - a.sum() / 100, b - b.sum() / 100
    assert moments.count == 100
    assert moments.square_a == pytest.approx((da * da).sum(), rel=1e-9)
    assert moments.square_b == pytest.approx((db * db).sum(), rel=1e-9)
    direct = (da * db).sum() / np.sqrt((da * da).sum() * (db * db).sum())
    assert moments.pcc() == pytest.approx(direct, abs=1e-9)
