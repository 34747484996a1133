"""Memory of intermediate tensors, used again and again."""

import numpy as np
from numpy.typing import NDArray

from buda_emu.device.spare import SPARE, SpareMemory
from buda_emu.device.store import TILE_ELEMENTS

_KEEP_BYTES = 512 << 20


class BufferPool:
    """Hands out float32 arrays and takes them back; a fresh one is made when none fits well."""

    def __init__(self) -> None:
        self._most = _KEEP_BYTES
        self._spare = SpareMemory(_KEEP_BYTES, least=0, fresh=SPARE.take)
        self.give_back = self._spare.give

    def take(self, entries: int, tiles: int) -> NDArray[np.float32]:
        """An array float32[entries, tiles, 1024] with undefined contents."""
        return self._spare.take(entries * tiles * TILE_ELEMENTS).reshape(entries, tiles, TILE_ELEMENTS)

    def lend(self, count: int) -> NDArray[np.float32]:
        """float32[count] with undefined contents, to be given back."""
        return self._spare.take(count)

    def leave(self, most: int) -> None:
        """Hold `most` bytes at most that nobody uses, this pool and what closed machines left together."""
        own = min(most, _KEEP_BYTES)
        if own != self._most:
            self._spare.limit(own)
            self._most = own
        SPARE.shrink(most - self._spare.kept)

    def free(self) -> None:
        """Let go of all that nobody uses."""
        self._spare.drop(into=SPARE)
