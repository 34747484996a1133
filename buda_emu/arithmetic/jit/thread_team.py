"""Threads that share the items of a kernel without going through Python in between.

A kernel goes through `claim_items(start, stop)` where it would go through `range(start, stop)`. Called with two numbers
it is just that. Called with the address of a `JobSlot` and SHARED, the kernel's entry point
(`compiling/entry_point.py`) writes into the slot where the code and the arguments are, and helpers, who look at it in
`serve`, run the same kernel: each thread claims the next few items as it comes free. No helper touches Python's lock,
neither for the job nor while it waits for the next one: a thread that waits for a lock lets its processor sleep, and
waking one takes longer than most kernels."""

import time
from collections.abc import Iterator
from functools import cache
from typing import Final

from buda_emu.arithmetic.jit.job_slot import (
    BUSY,
    CLAIMED,
    GRAIN,
    HELPED,
    IN_PYTHON,
    INSIDE,
    ITEMS,
    NUMBER,
    OPEN,
    PARTS,
    RAISED,
    SHARED,
    JobSlot,
    add,
    pause,
    read,
    work_on,
)
from buda_emu.arithmetic.jit.kernel import disabled, helper, kernel

_TRIED_SPINS: Final = 2_000  # rounds of the loop in a try, from whose time that of one round is taken
_TRIES: Final = 3  # the quickest counts: in another one other programs may have had the processor


@cache
def spins_in(seconds: float) -> int:
    """Return how many rounds of a helper's waiting loop (`serve`) take `seconds` on this machine, measured once for
    each value of `seconds`: at least 1, but 0 where kernels are not compiled, because there a thread that waits would
    hold Python's lock."""
    if disabled:
        return 0
    slot = JobSlot()
    serve(slot.address, 0, 1)  # compiled, or loaded
    took: list[float] = []
    for _ in range(_TRIES):
        start = time.perf_counter()
        serve(slot.address, 0, _TRIED_SPINS)
        took.append(time.perf_counter() - start)
    return 1 + int(_TRIED_SPINS * seconds / min(took))


@helper
def claim_items(start: int, stop: int) -> Iterator[int]:
    """Yield the numbers of the items that this thread is to compute: start .. stop - 1 or, where `stop` is SHARED or
    HELPING, those that it claims, a part of the items at a time, of the job in the slot at address `start`. The owner
    (SHARED) claims parts from the front, helpers from the end."""
    if stop >= 0:
        for index in range(start, stop):
            yield index
    else:
        items = read(start, ITEMS)
        grain = read(start, GRAIN)
        parts = read(start, PARTS)
        claims = 0
        while add(start, CLAIMED, 1) < parts:
            part = claims
            if stop != SHARED:
                part = parts - 1 - add(start, HELPED, 1)
            claims += 1
            for index in range(part * grain, min(part * grain + grain, items)):
                yield index


@kernel
def await_helpers(slot: int, spins: int) -> None:
    """Wait until no thread is busy with a job in Python, as the slot at this address counts them
    (`JobSlot.count_busy`), but for no more than `spins` rounds of the loop."""
    for _ in range(spins):
        if read(slot, BUSY) == 0:
            break
        pause()


@kernel
def serve(slot: int, seen: int, spins: int) -> int:
    """Work as a helper on the jobs that come after job number `seen` in the slot at this address. Return the number of
    the latest job seen, when that is one in Python, which the caller then does itself, or when no job came for `spins`
    rounds of the waiting loop. An exception of a kernel ends its job, and is left in the slot (`JobSlot.raised`)."""
    left = spins
    while left > 0:
        number = read(slot, NUMBER)
        if number == seen:
            left -= 1
            pause()
            continue
        left = spins
        seen = number
        if read(slot, IN_PYTHON) == number:
            break
        if add(slot, INSIDE, 1) >= OPEN:
            raised = work_on(slot)
            if raised != 0:
                add(slot, RAISED, raised - read(slot, RAISED))
                add(slot, CLAIMED, read(slot, PARTS))  # nobody claims further ones
        add(slot, INSIDE, -1)
    return seen
