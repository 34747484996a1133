"""Threads that share the items of a kernel without going through Python in between.

A kernel goes through `claimed(start, stop)` where it would go through `range(start, stop)`. Called with two numbers it
is just that. Called with the address of a `Board` and SHARED, the kernel's door (`compiling/entry_point.py`) writes on
the board where the code and the arguments are, and helpers, who look at it in `serve`, run the same kernel: each thread
claims the next few items as it comes free. No helper touches Python's lock, neither for the job nor while it waits for
the next one: a thread that waits for a lock lets its processor sleep, and waking one takes longer than most kernels.

A job is open while its owner, who called the kernel, works on it. A helper enters before it reads anything of it, and
leaves when there are no more items; the owner shuts it and waits until nobody is inside.
"""

import time
from array import array
from collections.abc import Iterator
from functools import cache
from typing import Final

from buda_emu.kernels.jit import disabled, helper, kernel

__all__ = [
    "ARGUMENTS",
    "ARGUMENT_BYTES",
    "CLAIMED",
    "CODE",
    "HELPING",
    "INSIDE",
    "LOOKS",
    "NUMBER",
    "OPEN",
    "PARTS",
    "RAISED",
    "SHARED",
    "Board",
    "await_helpers",
    "breathe",
    "claimed",
    "looks_in",
    "read",
    "serve",
]

SHARED: Final = -1
"""In place of `stop`: `start` is the address of a board."""
HELPING: Final = -2
"""The same, for helpers."""

# Words of a board, those that several threads write a cache line apart.
NUMBER: Final = 0  # of the latest job
ELSEWHERE: Final = 1  # the number of the latest job that is done in Python
BUSY: Final = 2  # how many helpers are, with a job that is done in Python
ITEMS: Final = 8
GRAIN: Final = 9  # items in a part
PARTS: Final = 10
LOOKS: Final = 11  # of the owner, when it waits for helpers
CODE: Final = 12
RAISED: Final = 13  # address of what a helper's kernel raised, or 0
CLAIMED: Final = 16  # parts
HELPED: Final = 17  # parts that helpers have claimed
INSIDE: Final = 24  # how many helpers are; and OPEN while they may enter
ARGUMENTS: Final = 32  # of the kernel, as many bytes as they take
ARGUMENT_BYTES: Final = 4096
OPEN: Final = 1 << 32
_WORD_BYTES: Final = 8
_TRIED_LOOKS: Final = 2_000
_TRIES: Final = 3  # in one of them, others may get the processor


class Board:
    """Where the threads of a crew see what to do. One job at a time is on it."""

    __slots__ = ("_words", "address")

    def __init__(self) -> None:
        self._words = array("q", bytes(_WORD_BYTES * ARGUMENTS + ARGUMENT_BYTES))
        self.address, _ = self._words.buffer_info()

    @property
    def number(self) -> int:
        """Of the latest job."""
        return self._words[NUMBER]

    @property
    def done(self) -> bool:
        """Whether nobody works on the latest job, if it was a kernel."""
        return not self._words[INSIDE]

    @property
    def raised(self) -> int:
        """The address of what a helper's kernel raised (`machine_code.kinds.Raised`), or 0."""
        return self._words[RAISED]

    def prepare(self, items: int, grain: int, looks: int) -> None:
        """For a kernel that is then called with `address` and SHARED: threads claim `grain` of the items at a time. The
        owner looks so many times whether all helpers have left; if not, `done` says when they have."""
        words = self._words
        words[ITEMS] = items
        words[GRAIN] = grain
        words[PARTS] = -(-items // grain)
        words[LOOKS] = looks
        words[RAISED] = words[CLAIMED] = words[HELPED] = 0

    def note_busy(self, helpers: int) -> None:
        """So many are with the latest job, which is done in Python."""
        self._words[BUSY] = helpers

    def announce(self) -> None:
        """The next job is done in Python: helpers come back from `serve`."""
        number = self._words[NUMBER] + 1
        self._words[ELSEWHERE] = number
        self._words[NUMBER] = number


@cache
def looks_in(seconds: float) -> int:
    """How many looks take that long, measured once; 0 where kernels are not compiled, as others get nothing done
    meanwhile."""
    if disabled:
        return 0
    board = Board()
    serve(board.address, 0, 1)  # compiled, or loaded
    took: list[float] = []
    for _ in range(_TRIES):
        start = time.perf_counter()
        serve(board.address, 0, _TRIED_LOOKS)
        took.append(time.perf_counter() - start)
    return 1 + int(_TRIED_LOOKS * seconds / min(took))


def add(address: int, word: int, value: int) -> int:
    """Add to int64 number `word` behind the address, at once among all threads; what it was. For kernels only."""
    raise NotImplementedError


def read(address: int, word: int) -> int:
    """int64 number `word` behind the address, read from memory each time. For kernels only."""
    raise NotImplementedError


def work_on(board: int) -> int:
    """Run the kernel of an open job; the address of what it raised, or 0. For kernels only."""
    raise NotImplementedError


def breathe() -> None:
    """Tell the processor, where it can be told, that this thread waits in a loop. For kernels only."""
    raise NotImplementedError


@helper
def claimed(start: int, stop: int) -> Iterator[int]:
    """start .. stop - 1, or this thread's share of the items of a board's job."""
    if stop >= 0:
        for item in range(start, stop):
            yield item
    else:
        items, grain, parts = read(start, ITEMS), read(start, GRAIN), read(start, PARTS)
        own = 0
        while add(start, CLAIMED, 1) < parts:
            part = own if stop == SHARED else parts - 1 - add(start, HELPED, 1)
            own += 1
            for item in range(part * grain, min(part * grain + grain, items)):
                yield item


@kernel
def await_helpers(board: int, looks: int) -> None:
    """Until none of them is busy with a job that is done in Python, for `looks` looks at most."""
    for _ in range(looks):
        if read(board, BUSY) == 0:
            break
        breathe()


@kernel
def serve(board: int, seen: int, looks: int) -> int:
    """A helper's part in all jobs after number `seen`, until one is done in Python, or for `looks` looks there is none.

    The number of the latest job that it knows of.
    """
    left = looks
    while left > 0:
        number = read(board, NUMBER)
        if number == seen:
            left -= 1
            breathe()
            continue
        left, seen = looks, number
        if read(board, ELSEWHERE) == number:
            break
        if add(board, INSIDE, 1) >= OPEN:
            raised = work_on(board)
            if raised != 0:
                add(board, RAISED, raised - read(board, RAISED))
                add(board, CLAIMED, read(board, PARTS))  # nobody claims further ones
        add(board, INSIDE, -1)
    return seen
