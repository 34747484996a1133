"""Interpolation kernels for resizing images: the weight of a pixel as a function of its distance."""

import numpy as np
from numpy.typing import NDArray

Weights = NDArray[np.float64]


def triangle(distance: Weights) -> Weights:
    """Return the weights of linear interpolation: 1 at distance 0, 0 from distance 1 on."""
    return np.maximum(1 - np.abs(distance), 0)


def cubic(distance: Weights, a: float) -> Weights:
    """Return the weights of Keys' cubic convolution with slope `a` at distance 1; they are 0 from distance 2 on."""
    x = np.abs(distance)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((x - 5) * x + 8) * x * a - 4 * a
    return np.where(x < 1, near, np.where(x < 2, far, 0))
