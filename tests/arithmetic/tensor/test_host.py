"""Shapes at the host's side (LAYOUT 1, 3.5, 5; NETLIST 7.4)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buda_emu.arithmetic.tensor.host import prestride, stack_entries
from buda_emu.support.errors import HostError


@given(w=st.integers(1, 2), zo=st.integers(1, 2), h=st.integers(1, 3), v=st.integers(1, 3), row_major=st.booleans())
def test_stacking_is_the_formula(w, zo, h, v, row_major):
    rows, cols = 2, 3
    array = np.arange(w * zo * h * v * rows * cols, dtype=np.float32).reshape(w, zo * h * v, rows, cols)
    result = stack_entries(array, h, v, row_major)
    assert result.shape == (w, zo, v * rows, h * cols)
    for outer in range(zo):
        for vr in range(v):
            for hc in range(h):
                z = (outer * v + vr) * h + hc if row_major else (outer * h + hc) * v + vr
                block = result[:, outer, vr * rows : (vr + 1) * rows, hc * cols : (hc + 1) * cols]
                assert (block == array[:, z]).all()


def test_stacking_limits():
    array = np.zeros((1, 6, 2, 2), np.float32)
    for h, v in ((4, 1), (1, 4), (2, 2), (0, 1), (1, 0)):
        with pytest.raises(HostError, match="do not divide t = 6"):
            stack_entries(array, h, v, row_major=True)
    assert stack_entries(array, 1, 3, row_major=True, untilized=True).shape == (1, 2, 6, 2)
    for h, v, row_major in ((2, 1, True), (1, 2, False)):
        with pytest.raises(HostError, match="untilized"):
            stack_entries(array, h, v, row_major, untilized=True)


def full_window(stride):
    return [(x, y) for x in range(stride) for y in range(stride)]


@given(
    sizes=st.tuples(st.integers(1, 2), st.integers(1, 4), st.integers(1, 9), st.integers(1, 9)),
    stride=st.integers(1, 4),
    window=st.tuples(st.integers(1, 5), st.integers(1, 5)),
)
def test_prestride_is_the_closed_form(sizes, stride, window):
    batch, channels, height, width = sizes
    array = np.arange(1, 1 + batch * channels * height * width, dtype=np.float32).reshape(sizes)
    result = prestride(array, stride, [(x, y) for x in range(window[0]) for y in range(window[1])])
    wx, wy = min(window[0], stride), min(window[1], stride)
    padded_h, padded_w = -(-height // stride) * stride, -(-width // stride) * stride
    rows, cols = -(-channels * wx * wy // 32) * 32, -(-padded_h * padded_w // stride**2 // 32) * 32
    expected = np.zeros((batch, 1, rows, cols), np.float32)
    for c in range(channels):
        for y in range(height):
            for x in range(width):
                if y % stride < wy and x % stride < wx:
                    row = (y % stride * wx + x % stride) * channels + c
                    expected[:, 0, row, y // stride * (padded_w // stride) + x // stride] = array[:, c, y, x]
    assert result.shape == expected.shape
    assert (result == expected).all()


def test_stride_one_lays_images_out_in_rows():
    array = np.arange(2 * 64, dtype=np.float32).reshape(1, 2, 8, 8)
    result = prestride(array, 1, full_window(1))
    assert result.shape == (1, 1, 32, 64)
    assert (result[0, 0, :2] == array.reshape(2, 64)).all()


@pytest.mark.parametrize(
    ("stride", "offsets", "text"),
    [
        (0, [(0, 0)], "stride of at least 1"),
        (2, [], "at least one offset"),
        (2, [(0, 0), (1, 1)], "2 prestride offsets do not fill their 2x2 box"),
    ],
)
def test_prestride_limits(stride, offsets, text):
    with pytest.raises(HostError, match=text):
        prestride(np.zeros((1, 1, 4, 4), np.float32), stride, offsets)
