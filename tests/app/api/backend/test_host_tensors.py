"""Dimensions and strides of host tensors (NETLIST 7.4, LAYOUT 5)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buda_emu.app import backend_api as api
from buda_emu.app.api.backend.host_tensors import apply_strides, move_batch_back, move_batch_first
from buda_emu.support.errors import HostError


@pytest.mark.parametrize(
    ("dim", "shape", "pushed"),
    [
        (4, (2, 3, 4, 5), (2, 3, 4, 5)),
        (3, (1, 3, 4, 5), (3, 1, 4, 5)),
        (2, (1, 1, 4, 5), (4, 1, 1, 5)),
        (1, (1, 1, 1, 5), (5, 1, 1, 1)),
    ],
)
def test_the_outermost_dimension_becomes_the_batch(dim, shape, pushed):
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    first = move_batch_first(array, dim)
    assert first.shape == pushed
    assert np.shares_memory(first, array)
    assert first.ravel().tolist() == array.ravel().tolist()
    back = move_batch_back(first, dim)
    assert back.flags.c_contiguous
    np.testing.assert_array_equal(back, array)


@pytest.mark.parametrize(("dim", "said"), [(3, "the unused ones must be 1"), (0, "1 to 4 dimensions"), (5, "1 to 4")])
def test_dimensions_that_are_refused(dim, said):
    with pytest.raises(HostError, match=said):
        move_batch_first(np.zeros((2, 1, 4, 4), np.float32), dim)


def by_elements(array, stride, offsets):
    """NETLIST 7.4 Prestride, element by element."""
    w, depth, rows, cols = array.shape
    wx = min(max(x for x, _ in offsets) - min(x for x, _ in offsets) + 1, stride)
    wy = min(max(y for _, y in offsets) - min(y for _, y in offsets) + 1, stride)
    y_pad, x_pad = -(-rows // stride) * stride, -(-cols // stride) * stride
    height, width = -(-depth * wx * wy // 32) * 32, -(-(x_pad * y_pad // stride**2) // 32) * 32
    result = np.zeros((w, 1, height, width), array.dtype)
    for n, z, y, x in np.ndindex(w, depth, rows, cols):
        if y % stride < wy and x % stride < wx:
            row = (y % stride) * wx * depth + (x % stride) * depth + z
            result[n, 0, row, (y // stride) * (x_pad // stride) + x // stride] = array[n, z, y, x]
    return result


@settings(deadline=None)
@given(
    st.tuples(st.integers(1, 2), st.integers(1, 4), st.integers(1, 9), st.integers(1, 9)),
    st.integers(1, 4), st.integers(1, 4), st.integers(1, 4), st.sampled_from(["Float32", "Float16"]),
)  # fmt: skip
def test_prestride(shape, stride, kernel_x, kernel_y, word):
    array = np.arange(1, np.prod(shape) + 1, dtype={"Float32": "f4", "Float16": "f2"}[word]).reshape(shape)
    strides = api.StrideDescriptor()
    strides.stride = stride
    strides.xy_offsets = [(x, y) for x in range(kernel_x) for y in range(kernel_y)]
    found = apply_strides(array, strides, word)
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, by_elements(array, stride, strides.xy_offsets))


@pytest.mark.parametrize(
    ("offsets", "word", "said"),
    [([(0, 0)], "Int8", "Int8 cannot be strided"), ([], "Float32", "needs at least one offset"),
     ([(0, 0), (1, 1)], "Float16", "2 prestride offsets do not fill their 2x2 box")],
)  # fmt: skip
def test_prestride_refuses(offsets, word, said):
    strides = api.StrideDescriptor()
    strides.stride, strides.xy_offsets = 2, offsets
    with pytest.raises(HostError, match=said):
        apply_strides(np.zeros((1, 1, 4, 4), np.float32), strides, word)
