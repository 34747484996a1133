"""Threads that share the items of a kernel without going through Python in between.

A kernel goes through `claimed(start, stop)` where it would go through `range(start, stop)`. Called with two numbers it
is just that. Called with the address of a `Job` and OWNER or HELPER, several threads run the kernel at once, and each
claims the next few items as it comes free. Nobody touches Python's lock from the first item to the last, nor while a
helper then waits for the next job: a thread that waits for a lock lets its processor sleep, and waking one takes longer
than most kernels.

So a kernel that returns something cannot share its items: a helper comes back only with the next job.
"""

import time
from array import array
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

from buda_emu.kernels.jit import helper, kernel

__all__ = [
    "HELPER",
    "OWNER",
    "Job",
    "breathe",
    "can_share",
    "claimed",
    "looks_in",
    "read",
    "wait_for_change",
]

# Roles of a thread, passed in place of `stop`.
OWNER: Final = -1
HELPER: Final = -2

# Words of a job, those that several threads write a cache line apart.
TOTAL: Final = 0
GRAIN: Final = 1
BOARD: Final = 2  # the address of the number of the latest job
NUMBER: Final = 3
LOOKS: Final = 4
NEXT: Final = 8
JOINED: Final = 16
LEFT: Final = 24
_TRIED_LOOKS: Final = 2_000
_TRIES: Final = 3  # in one of them, others may get the processor
_ZEROS: Final = (0,) * (32 - LOOKS - 1)


class Job:
    """Items to share. `board` is the address of an int64, the number of the latest job; the owner makes it `number`.

    Waiting ends after `looks` looks at it.
    """

    __slots__ = ("_words", "address")

    def __init__(self, items: int, grain: int, board: int, number: int, looks: int) -> None:
        self._words = array("q", (items, grain, board, number, looks, *_ZEROS))
        self.address, _ = self._words.buffer_info()

    @property
    def all_left(self) -> bool:
        """Whether every helper that joined has left. Once the items are claimed it stays so."""
        return self._words[LEFT] == self._words[JOINED]

    def join(self) -> None:
        """A helper says, before it calls the kernel, that it is to be waited for."""
        add_to_word(self.address, JOINED, 1)

    def leave(self) -> None:
        """A helper whose kernel failed is not to be waited for any more."""
        add_to_word(self.address, LEFT, 1)

    def call_off(self) -> None:
        """Nobody claims further items."""
        add_to_word(self.address, NEXT, self._words[TOTAL])


def can_share(function: Callable[..., Any]) -> bool:
    """Whether it is a compiled kernel that goes through `claimed`."""
    written = getattr(function, "py_func", None)
    return written is not None and "claimed" in written.__code__.co_names


@cache
def looks_in(seconds: float) -> int:
    """How many looks take that long, measured once; 0 where kernels are not compiled, as others get nothing done
    meanwhile."""
    if not hasattr(wait_for_change, "py_func"):
        return 0
    board = array("q", [0])
    address, _ = board.buffer_info()
    wait_for_change(address, 0, 1)  # compiled, or loaded
    took: list[float] = []
    for _ in range(_TRIES):
        start = time.perf_counter()
        wait_for_change(address, 0, _TRIED_LOOKS)
        took.append(time.perf_counter() - start)
    return 1 + int(_TRIED_LOOKS * seconds / min(took))


def add(address: int, word: int, value: int) -> int:
    """Add to int64 number `word` behind the address, at once among all threads; what it was. For kernels only."""
    raise NotImplementedError


def read(address: int, word: int) -> int:
    """int64 number `word` behind the address, read from memory each time. For kernels only."""
    raise NotImplementedError


def breathe() -> None:
    """Tell the processor, where it can be told, that this thread waits in a loop. For kernels only."""
    raise NotImplementedError


@helper
def claimed(start: int, stop: int) -> Iterator[int]:
    """start .. stop - 1, or this thread's share of a job's items: `start` is its address, `stop` the thread's role."""
    if stop >= 0:
        for item in range(start, stop):
            yield item
    else:
        if stop == OWNER:
            board = read(start, BOARD)  # which only owners change, one at a time
            add(board, 0, read(start, NUMBER) - read(board, 0))
        total, grain = read(start, TOTAL), read(start, GRAIN)
        first = add(start, NEXT, grain)
        while first < total:
            for item in range(first, min(first + grain, total)):
                yield item
            first = add(start, NEXT, grain)
        if stop == OWNER:
            _wait_for_helpers(start)
        else:
            add(start, LEFT, 1)
            _wait_for_change(read(start, BOARD), read(start, NUMBER), read(start, LOOKS))


@helper
def _wait_for_helpers(job: int) -> None:
    for _ in range(read(job, LOOKS)):
        if read(job, LEFT) == read(job, JOINED):
            return
        breathe()


@helper
def _wait_for_change(board: int, number: int, looks: int) -> None:
    for _ in range(looks):
        if read(board, 0) != number:
            return
        breathe()


@kernel
def wait_for_change(board: int, number: int, looks: int) -> None:
    """Until the int64 at that address is not `number`, or `looks` looks are over."""
    _wait_for_change(board, number, looks)


@kernel
def add_to_word(address: int, word: int, value: int) -> None:
    """Add to an int64 that other threads use."""
    add(address, word, value)
