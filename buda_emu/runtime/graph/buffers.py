"""Memory of intermediate tensors, used again and again."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from buda_emu.device.memory_pool import POOL, memory_of
from buda_emu.device.store import TILE_ELEMENTS

_KEEP_BYTES = 512 << 20


class BufferPool:
    """Hands out float32 arrays and takes them back; a fresh one is made when none fits well.

    Of one machine: whoever runs its program, and nobody else at the same time.
    """

    def __init__(self) -> None:
        self._most = _KEEP_BYTES
        # By floats of its memory: what nobody uses, those given back last at the end, with the number of the giving.
        self._free: dict[int, list[tuple[int, NDArray[np.float32]]]] = {}
        self._given = 0
        self._kept = 0  # bytes

    def take(self, entries: int, tiles: int) -> NDArray[np.float32]:
        """An array float32[entries, tiles, 1024] with undefined contents."""
        shape, count = (entries, tiles, TILE_ELEMENTS), entries * tiles * TILE_ELEMENTS
        pieces = self._free.get(count)
        if pieces:
            self._kept -= 4 * count
            _, array = pieces.pop()
        else:
            array = self._other(count)
        return array if array.shape == shape else array.reshape(shape)

    def lend(self, count: int) -> NDArray[np.float32]:
        """float32[count] with undefined contents, to be given back."""
        pieces = self._free.get(count)
        if pieces:
            self._kept -= 4 * count
            return pieces.pop()[1].reshape(-1)
        return self._other(count)

    def _other(self, count: int) -> NDArray[np.float32]:
        """float32[count] where none of that size is here: of the smallest that fits and is not twice as large, or
        fresh."""
        size = min((size for size, pieces in self._free.items() if pieces and count < size <= 2 * count), default=0)
        if not size:
            return POOL.take(count)
        self._kept -= 4 * size
        return self._free[size].pop()[1].reshape(-1)[:count]

    def give_back(self, array: NDArray[Any]) -> None:
        """As `MemoryPool.give`; who wants an array of the same shape next gets this very one."""
        memory = memory_of(array)
        if memory is None or memory.nbytes > self._most:
            return
        size = memory.size
        if array.size != size or array.dtype is not memory.dtype:
            array = memory
        self._given += 1
        pieces = self._free.get(size)
        if pieces is None:
            pieces = self._free[size] = []
        pieces.append((self._given, array))
        self._kept += 4 * size
        if self._kept > self._most:
            self._keep(self._most)

    def leave(self, most: int) -> None:
        """Hold `most` bytes at most that nobody uses, this pool and what closed machines left together."""
        self._most = min(most, _KEEP_BYTES)
        self._keep(self._most)
        POOL.shrink(most - self._kept)

    def _keep(self, most: int) -> None:
        """Let go of those given back first."""
        while self._kept > most:
            pieces = min((pieces for pieces in self._free.values() if pieces), key=lambda pieces: pieces[0][0])
            _, array = pieces.pop(0)
            self._kept -= array.nbytes

    def free(self) -> None:
        """Let go of all that nobody uses: the next machine may have it."""
        free, self._free, self._kept = self._free, {}, 0
        for _, array in sorted((piece for pieces in free.values() for piece in pieces), key=lambda piece: piece[0]):
            POOL.give(array)
