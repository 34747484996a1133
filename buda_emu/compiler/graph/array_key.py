"""Arrays as keys of dictionaries, without a copy of them."""

import zlib
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.tensor.referenced import Referenced

_SAMPLES: Final = 64
_SMALL: Final = 1 << 20
"""Bytes of an array that is hashed as a whole: pickers of the steps of a loop differ in a single element. And as many
are compared at a time."""


class ArrayKey:
    """Equal to that of an array with the same shape, type and bits. The hash of a large one looks at a few elements
    only; all of them are compared when two are as alike as that. References are equal where they are made of the same
    memory alike."""

    __slots__ = ("_array", "_hash")

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array
        if isinstance(array, Referenced):
            self._hash = hash((array.shape, array.dtype.str, array.key))
            return
        if array.nbytes > _SMALL:
            array = array.flat[np.arange(0, array.size, max(1, array.size // _SAMPLES))]
        self._hash = hash((self._array.shape, array.dtype.str, zlib.crc32(_bits(array).data)))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ArrayKey) or self._hash != other._hash:
            return False
        one, two = self._array, other._array
        if one is two:
            return True
        if isinstance(one, Referenced) or isinstance(two, Referenced):
            return isinstance(one, Referenced) and isinstance(two, Referenced) and one.key == two.key
        if one.shape != two.shape or one.dtype != two.dtype:
            return False
        return _same_memory(one, two) or _same_bits(_bits(one), _bits(two))


def _same_memory(one: NDArray[Any], two: NDArray[Any]) -> bool:
    """Of arrays of one shape and type."""
    return one.strides == two.strides and one.ctypes.data == two.ctypes.data


def _same_bits(one: NDArray[np.uint8], two: NDArray[np.uint8]) -> bool:
    """Of as many bytes, a part at a time: numpy puts one more byte for each of them into memory."""
    parts = (slice(start, start + _SMALL) for start in range(0, one.size, _SMALL))
    return all(np.array_equal(one[part], two[part]) for part in parts)


def _bits(array: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
