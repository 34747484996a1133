"""Tensors at the host's side: stacking of read entries, convolution prestride."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.tensor.referenced import Referenced
from buda_emu.support.errors import HostError

Array = NDArray[Any]


def stack_entries(array: Array, hstack: int, vstack: int, row_major: bool, untilized: bool = False) -> Array:
    """Return queue entries [w, t, rows, cols] as the host reads them with z folded into columns and rows: [w, t/(h*v),
    rows*v, cols*h] (LAYOUT 3.5). `row_major`: neighbours in z lie side by side before they lie below each other, else
    the reverse. Raises HostError where the factors do not divide t or do not suit an untilized queue."""
    w, t, rows, cols = array.shape
    if hstack < 1 or vstack < 1 or t % (hstack * vstack):
        raise HostError(f"hstack {hstack} and vstack {vstack} do not divide t = {t}")
    if untilized and (hstack != 1 or (vstack != 1 and not row_major)):
        raise HostError("an untilized queue can be stacked by vstack alone, and row-major")
    outer = t // (hstack * vstack)
    if row_major:
        blocks = array.reshape(w, outer, vstack, hstack, rows, cols).transpose(0, 1, 2, 4, 3, 5)
    else:
        blocks = array.reshape(w, outer, hstack, vstack, rows, cols).transpose(0, 1, 3, 4, 2, 5)
    return blocks.reshape(w, outer, vstack * rows, hstack * cols)


def prestride(array: Array, stride: int, xy_offsets: Sequence[tuple[int, int]]) -> Array:
    """Return a convolution's activations rearranged for a strided read: [W, C, H, Wd] -> [W, 1, rows, cols] (LAYOUT 5).

    The window is the bounding box of `xy_offsets` (x, y), at most `stride` wide and high; one row for each window
    position and channel, one column for each strided position, both rounded up to 32 with zeros. Raises HostError for a
    stride below 1 or offsets that do not fill their box.
    """
    if stride < 1:
        raise HostError(f"prestride needs a stride of at least 1, not {stride}")
    wide, high = (min(extent, stride) for extent in _box_size(xy_offsets))
    batch, channels, height, width = array.shape
    down = -(-height // stride)
    across = -(-width // stride)
    padded = np.zeros((batch, channels, down * stride, across * stride), array.dtype)
    padded[:, :, :height, :width] = array
    # [W, C, y div s, y mod s, x div s, x mod s] -> [W, y mod s, x mod s, C, y div s, x div s]
    split = padded.reshape(batch, channels, down, stride, across, stride).transpose(0, 3, 5, 1, 2, 4)
    used = split[:, :high, :wide].reshape(batch, high * wide * channels, down * across)
    result = np.zeros((batch, 1, _up_to_32(used.shape[1]), _up_to_32(used.shape[2])), array.dtype)
    result[:, 0, : used.shape[1], : used.shape[2]] = used
    return result


def _box_size(xy_offsets: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return width and height of the bounding box of the offsets (x, y). Raises HostError where they leave gaps in it,
    or there are none."""
    points = set(xy_offsets)
    if not points:
        raise HostError("prestride needs at least one offset")
    columns = {x for x, _ in points}
    rows = {y for _, y in points}
    wide = max(columns) - min(columns) + 1
    high = max(rows) - min(rows) + 1
    if len(points) != wide * high:
        raise HostError(f"{len(points)} prestride offsets do not fill their {wide}x{high} box")
    return wide, high


def _up_to_32(count: int) -> int:
    """Return a number of elements rounded up to whole tiles of 32."""
    return -(-count // 32) * 32


def scatter(array: Any, shape: Sequence[int], places: tuple[Any, ...]) -> Any:
    """Return float32 zeros of a shape in which the elements of `array` stand at `places`, one range or list of numbers
    for each dimension. A reference stays a reference; a float32 array that fills the shape is returned as it is."""
    if array.dtype == np.float32 and array.shape == tuple(shape) and all(isinstance(entry, slice) for entry in places):
        return array
    if not isinstance(array, Referenced):
        held = np.zeros(shape, np.float32)
        held[places] = array
        return held
    reference = array.astype(np.float32)
    for dim, (size, place) in enumerate(zip(shape, places, strict=True)):
        index = np.full(size, -1, np.int64)
        index[place] = np.arange(array.shape[dim])
        reference = reference.take_at(dim, index)
    return reference
