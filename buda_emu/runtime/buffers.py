"""Memory of intermediate tensors, used again and again."""

import numpy as np
from numpy.typing import NDArray

from buda_emu.device.spare import SPARE
from buda_emu.device.store import TILE_ELEMENTS

_KEEP_BYTES = 512 << 20


class BufferPool:
    """Hands out float32 arrays and takes them back; a fresh one is made when none fits well."""

    def __init__(self) -> None:
        self._free: list[NDArray[np.float32]] = []
        self._free_bytes = 0

    def take(self, entries: int, tiles: int) -> NDArray[np.float32]:
        """An array float32[entries, tiles, 1024] with undefined contents."""
        need = entries * tiles * TILE_ELEMENTS
        best = -1
        for position, flat in enumerate(self._free):
            if need <= flat.size <= 2 * need and (best < 0 or flat.size < self._free[best].size):
                best = position
        if best >= 0:
            flat = self._free.pop(best)
            self._free_bytes -= flat.nbytes
        else:
            flat = SPARE.take(need)
        return flat[:need].reshape(entries, tiles, TILE_ELEMENTS)

    def give_back(self, array: NDArray[np.float32]) -> None:
        """Take an array of `take` back; nobody may use it any more."""
        flat = array
        while isinstance(flat.base, np.ndarray):
            flat = flat.base
        if self._free_bytes + flat.nbytes <= _KEEP_BYTES:
            self._free.append(flat)
            self._free_bytes += flat.nbytes

    def free(self) -> None:
        """Let go of all that nobody uses."""
        for flat in self._free:
            SPARE.give(flat)
        self._free.clear()
        self._free_bytes = 0
