"""Kernels by which images are resized: the weight of a pixel by its distance."""

import numpy as np
from numpy.typing import NDArray

Weights = NDArray[np.float64]


def triangle(distance: Weights) -> Weights:
    """Linear interpolation: 1 at distance 0, 0 from 1 on."""
    return np.maximum(1 - np.abs(distance), 0)


def cubic(distance: Weights, a: float) -> Weights:
    """Keys' cubic convolution with slope `a` at distance 1, 0 from 2 on."""
    x = np.abs(distance)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((x - 5) * x + 8) * x * a - 4 * a
    return np.where(x < 1, near, np.where(x < 2, far, 0))
