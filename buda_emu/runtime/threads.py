"""Splits kernel work over threads. Kernels release the GIL and write disjoint ranges: any split gives the same bits."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from buda_emu.ops.base import serial

# Below this many bytes of operands a second thread costs more than it gains (measured: a hand-over takes about 50 us).
_WORTH_SPLITTING_BYTES = 1 << 19


class WorkerPool:
    """`threads` workers, one of them the caller. Is an `ops.base.Parallel`. Close it when done."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads - 1, "buda-emu") if threads > 1 else None

    def close(self) -> None:
        """Stop the workers."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def __call__(self, kernel: Callable[..., Any], items: int, *args: Any) -> int:
        """Run `kernel(start, stop, *args)` over 0..items in parts; the sum of what the parts return."""
        pool = self._pool
        if pool is None or items < 2 or _operand_bytes(args) < _WORTH_SPLITTING_BYTES:
            return serial(kernel, items, *args)
        parts = min(items, 4 * self.threads)  # a few parts more than threads: they differ in cost
        bounds = [items * part // parts for part in range(parts + 1)]
        total = 0
        waiting: list[Future[Any]] = []
        # the caller works on its own share while the pool takes the rest
        own = max(1, parts // self.threads)
        given = own
        try:
            for part in range(own, parts):
                waiting.append(pool.submit(kernel, bounds[part], bounds[part + 1], *args))
                given = part + 1
        except RuntimeError:  # closed meanwhile by another thread: what is left is the caller's too
            pass
        try:
            for part in (*range(own), *range(given, parts)):
                total += int(kernel(bounds[part], bounds[part + 1], *args) or 0)
        finally:
            results = [future.result() for future in waiting]
        return total + sum(int(result or 0) for result in results)


def _operand_bytes(args: tuple[Any, ...]) -> int:
    return sum(arg.nbytes for arg in args if isinstance(arg, np.ndarray))
