"""Correlation of streams that are never held whole."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buda_emu.verify.moments import Moments

VALUES = st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3)), min_size=2, max_size=60)


def test_by_hand():
    moments = Moments()
    moments.add(np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.0, 1.0, 0.0, 1.0]))
    assert moments.pcc() == 0.0
    moments.add(np.array([0.0, 1.0, 0.0, 1.0]), np.array([0.0, 1.0, 0.0, 1.0]))
    assert moments.pcc() == pytest.approx(0.5, abs=1e-15)  # E[ab] 3/8, means 1/2
    assert (moments.count, moments.mean_a, moments.mean_b) == (8, 0.5, 0.5)


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
