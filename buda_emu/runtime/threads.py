"""Splits kernel work over threads. Kernels release the GIL and write disjoint ranges: any split gives the same bits."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from typing import Any, Final

import numpy as np

from buda_emu.ops.base import serial

# Below this many bytes of operands a second thread costs more than it gains (measured: a hand-over takes about 50 us).
_WORTH_SPLITTING_BYTES: Final = 1 << 19
PARTS_PER_THREAD: Final = 4


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
        todo = deque(parts(items, self.threads))

        def work() -> int:
            total = 0
            while True:
                try:
                    start, stop = todo.popleft()
                except IndexError:
                    return total
                total += int(kernel(start, stop, *args) or 0)

        helpers: list[Future[int]] = []
        with suppress(RuntimeError):  # closed meanwhile by another thread: the caller does all
            for _ in range(min(self.threads, len(todo)) - 1):
                helpers.append(pool.submit(work))
        try:
            total = work()
        finally:
            todo.clear()  # where the kernel failed
            results = [helper.result() for helper in helpers if not helper.cancel()]
        return total + sum(results)


def parts(items: int, threads: int) -> list[tuple[int, int]]:
    """Ranges that cover 0..items: a few more than there are threads, as they and the processors differ in speed."""
    count = min(items, PARTS_PER_THREAD * threads)
    return list(pairwise(items * part // count for part in range(count + 1)))


def _operand_bytes(args: tuple[Any, ...]) -> int:
    return sum(arg.nbytes for arg in args if isinstance(arg, np.ndarray))
