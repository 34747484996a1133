"""Whose turn it is to run Python, while threads share a function that calls one kernel after the other.

A kernel gives Python's lock away while it computes, and takes it again at its end. Where another thread has it then,
the system puts the thread to sleep, and to wake it takes longer than what the other one does between two kernels. So
the entry points of kernels (`compiling/entry_point.py`) look for a while whether the turn is free before they ask for
the lock. Nobody has to have the turn: it says when to ask, and the lock decides.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

NOBODY_WAITS: Final = 0  # threads share no function
FREE: Final = 1
TAKEN: Final = 2
SPINS: Final = 6_000  # a third of a millisecond where each takes 50 ns; then a thread goes to sleep
TURN: Final[NDArray[np.int64]] = np.zeros(1, np.int64)
"""One word, of all threads of the process, as Python's lock is."""


def take_turns() -> None:
    """Threads share a function from now on; it is the turn of this one."""
    TURN[0] = TAKEN


def turns_are_over() -> None:
    """Kernels that end do not wait for others."""
    TURN[0] = NOBODY_WAITS
