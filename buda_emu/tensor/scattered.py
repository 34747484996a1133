"""Arrays put into zeros, by reference where they are."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from buda_emu.tensor.referenced import Referenced


def scattered(array: Any, shape: Sequence[int], places: tuple[Any, ...]) -> Any:
    """Zeros of that shape with the elements of an array at these places, ranges or one list of numbers: float32; a
    reference where the array is one, the array itself where nothing is put around it."""
    if array.dtype == np.float32 and array.shape == tuple(shape) and all(isinstance(item, slice) for item in places):
        return array
    if not isinstance(array, Referenced):
        held = np.zeros(shape, np.float32)
        held[places] = array
        return held
    found = array.astype(np.float32)
    for dim, (size, place) in enumerate(zip(shape, places, strict=True)):
        index = np.full(size, -1, np.int64)
        index[place] = np.arange(array.shape[dim])
        found = found.take_at(dim, index)
    return found
