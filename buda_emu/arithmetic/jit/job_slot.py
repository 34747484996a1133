"""The job slot of a thread team: memory in which its threads see what to do, and the atomic operations on it.

A job is open while its owner, who called the kernel, works on it. A helper enters before it reads anything of it, and
leaves when there are no more items; the owner shuts it and waits until nobody is inside. Kernels read and change the
words by `add` and `read`, which are LLVM code (`jit/intrinsics.py`).
"""

from array import array
from typing import Final

SHARED: Final = -1
"""In place of `stop`: `start` is the address of a job slot."""
HELPING: Final = -2
"""The same, for helpers."""

# Words of a slot, those that several threads write a cache line apart.
NUMBER: Final = 0  # of the latest job
IN_PYTHON: Final = 1  # the number of the latest job that is done in Python
BUSY: Final = 2  # how many threads work on a job that is done in Python
ITEMS: Final = 8  # how many the job has
GRAIN: Final = 9  # items in a part
PARTS: Final = 10  # how many the job has
SPINS: Final = 11  # rounds of the loop in which the owner waits for helpers
CODE: Final = 12  # address of the kernel
RAISED: Final = 13  # address of what a helper's kernel raised, or 0
CLAIMED: Final = 16  # parts that anybody has claimed
HELPED: Final = 17  # parts that helpers have claimed, from the end
INSIDE: Final = 24  # how many helpers are inside the job, plus OPEN while they may enter
ARGUMENTS: Final = 32  # of the kernel, as many bytes as they take
ARGUMENT_BYTES: Final = 4096  # a page of memory; a kernel that takes more is refused
OPEN: Final = 1 << 32  # a bit of INSIDE above any number of helpers
_WORD_BYTES: Final = 8  # of an int64


class JobSlot:
    """The memory from which the threads of a team take their job. It holds one job at a time; kernels read and write it
    by its `address`."""

    __slots__ = ("_words", "address")

    def __init__(self) -> None:
        self._words = array("q", bytes(_WORD_BYTES * ARGUMENTS + ARGUMENT_BYTES))
        self.address, _ = self._words.buffer_info()

    @property
    def number(self) -> int:
        """The number of the latest job: they count from 1, and 0 is before the first."""
        return self._words[NUMBER]

    @property
    def done(self) -> bool:
        """True where no thread is inside a kernel's job any more: its owner has shut it, and all helpers have left."""
        return not self._words[INSIDE]

    @property
    def busy(self) -> int:
        """The number of threads that are busy with a job that is done in Python, as `count_busy` counts them."""
        return self._words[BUSY]

    @property
    def raised(self) -> int:
        """The address of the exception that a helper's kernel raised in the latest job
        (`machine_code.loading.raised_at`), or 0."""
        return self._words[RAISED]

    def prepare(self, items: int, grain: int, spins: int) -> None:
        """Prepare the slot for a kernel that is then called with `address` and SHARED: threads claim `grain` of the
        `items` at a time. The owner, when it has no more items, tests up to `spins` times whether all helpers have
        left; if they have not, the kernel returns all the same, and `done` says when they have."""
        words = self._words
        words[ITEMS] = items
        words[GRAIN] = grain
        words[PARTS] = -(-items // grain)
        words[SPINS] = spins
        words[RAISED] = words[CLAIMED] = words[HELPED] = 0

    def count_busy(self, change: int) -> None:
        """Add `change`, which may be negative, to the number of threads that are busy with a job that is done in
        Python. Only one thread may call it at a time."""
        self._words[BUSY] += change

    def announce(self) -> None:
        """Announce a new job, one that is done in Python: helpers in compiled code return from `serve`, so that their
        caller does their part."""
        number = self._words[NUMBER] + 1
        self._words[IN_PYTHON] = number
        self._words[NUMBER] = number


def add(address: int, word: int, value: int) -> int:
    """Add to int64 number `word` after the address, atomically, and return the old value. For kernels only: raises
    NotImplementedError in Python."""
    raise NotImplementedError


def read(address: int, word: int) -> int:
    """Return int64 number `word` after the address, read from memory each time. For kernels only: raises
    NotImplementedError in Python."""
    raise NotImplementedError


def work_on(slot: int) -> int:
    """Run the kernel of the open job in the slot at this address, with the arguments that the owner stored there.
    Return the address of the exception that it raised, or 0. For kernels only: raises NotImplementedError in Python."""
    raise NotImplementedError


def pause() -> None:
    """Hint to the processor, where it takes one, that this thread spins. For kernels only: raises NotImplementedError
    in Python."""
    raise NotImplementedError
