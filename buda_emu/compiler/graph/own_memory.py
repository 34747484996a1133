"""Large constants of a model in memory of their own: a model may change its parameters after it was compiled."""

import shutil
import tempfile
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from buda_emu.compiler.graph.array_key import ArrayKey
from buda_emu.compiler.graph.graph import Array
from buda_emu.tensor.mapped import giving_back, map_bytes
from buda_emu.tensor.referenced import LARGE, Referenced, referenced

KEPT: Final = 1 << 30
"""Bytes of copies that stay in memory; the others lie in temporary files, and their pages come and go."""
_SPARE: Final = 1 << 30
"""Bytes that are left free where temporary files lie."""


class OwnMemory:
    """One copy of each, however many forms of the model are lowered and however many constants are made of it: these
    refer to the copy, and are transposed, cut and padded when somebody reads them.

    A temporary file has no name, and ends with the last array that lies in it. Where there is no room for one, the copy
    stays in memory.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self._held: dict[ArrayKey, tuple[Array, Callable[[], None]]] = {}
        self._left = kept

    def of(self, array: Array, name: str) -> Any:
        """The array by reference to its copy; a small one, one of whole numbers, and one that is held by reference
        already as it is. A transposed or reshaped one has the copy of the original. `name` is for messages."""
        if isinstance(array, Referenced) or array.dtype.kind != "f" or array.nbytes < LARGE:
            return array
        order = sorted(range(array.ndim), key=lambda axis: -array.strides[axis])
        in_memory_order = array.transpose(order)
        flat = in_memory_order.reshape(-1)
        key = ArrayKey(flat)
        if key not in self._held:
            self._held[key] = self._copy(flat, is_own=not np.may_share_memory(flat, array))
        copy, give_back = self._held[key]
        own = referenced(copy.reshape(in_memory_order.shape), name, give_back)
        return own.transpose(np.argsort(order).tolist())

    def _copy(self, flat: Array, *, is_own: bool) -> tuple[Array, Callable[[], None]]:
        """A copy, and what gives its pages back. `is_own`: it is one already."""
        if flat.nbytes > self._left and _disk_has_room(flat.nbytes):
            return _in_file(flat)
        self._left -= flat.nbytes
        return flat if is_own else flat.copy(), _nothing


def _in_file(flat: Array) -> tuple[Array, Callable[[], None]]:
    with tempfile.TemporaryFile() as stream:
        stream.write(flat.data)
        stream.flush()
        copy = map_bytes(stream, 0, flat.nbytes).view(flat.dtype)
    return copy, giving_back(copy)


def in_memory(size: int) -> int:
    """How many of so many bytes of copies are going to be in memory."""
    return min(size, KEPT) if _disk_has_room(size) else size


def _disk_has_room(size: int) -> bool:
    return shutil.disk_usage(tempfile.gettempdir()).free > size + _SPARE


def _nothing() -> None:
    """Of memory that is no file's."""
