"""Convolutions of 8-bit integers, against sums that numpy makes of a padded image."""

import numpy as np
import pytest

from buda_emu.foreign.darwinn.twin.operators.products import Scale, Window
from buda_emu.foreign.darwinn.twin.operators.products import convolve as conv
from buda_emu.foreign.darwinn.twin.operators.products import convolve_depthwise as depthwise

pytestmark = pytest.mark.tiny
HALF = 1 << 30  # of a multiplier of 2^31: with an exponent of 1 a sum stays as it is


@pytest.mark.parametrize(
    ("stride", "dilation", "before"), [((1, 1), (1, 1), (1, 1)), ((2, 1), (1, 2), (0, 3)), ((1, 2), (2, 1), (2, 0))]
)
@pytest.mark.parametrize("times", [0, 1, 2])
def test_sums_are_those_of_a_padded_image(stride, dilation, before, times):
    """`times`: channels that a depthwise convolution makes of each, 0: all of all."""
    stream = np.random.default_rng(0)
    image = stream.integers(-9, 9, (2, 5, 6, 3)).astype(np.int32)
    weights = stream.integers(-9, 9, (2, 3, 3, 4) if times == 0 else (2, 3, 3 * times)).astype(np.int32)
    bias = stream.integers(-99, 99, weights.shape[-1]).astype(np.int32)
    wide = np.pad(image, ((0, 0), (before[0], 3), (before[1], 3), (0, 0)))
    out = np.zeros((2, 3, 3, weights.shape[-1]), np.int16)
    want = np.zeros(out.shape, np.int64) + bias
    for row in range(3):
        for column in range(3):
            for ky in range(2):
                for kx in range(3):
                    seen = wide[:, row * stride[0] + ky * dilation[0], column * stride[1] + kx * dilation[1]]
                    held = weights[ky, kx]
                    want[:, row, column] += seen @ held if times == 0 else np.repeat(seen, times, 1) * held
    assert np.abs(want).max() > 127  # some are clamped
    many = len(bias)
    scale = Scale(bias, np.full(many, HALF), np.full(many, 1), 3, -128, 127)
    (depthwise if times else conv)(image, weights, Window(*stride, *dilation, *before), scale, out)
    np.testing.assert_array_equal(out, np.clip(want + 3, -128, 127))
