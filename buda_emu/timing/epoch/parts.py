"""How an op's work on one input is cut into parts, and how many of them its output buffer holds."""

from typing import Final

from buda_emu.netlist.model import Op
from buda_emu.timing.epoch.result import INPUT_BUFFERS

LEAST_PARTS: Final = 4
MOST_PARTS: Final = 16


def parts_of(op: Op) -> int:
    """How an op's work on one input is cut."""
    return parts_of_blocks(op.blocking.t, op.blocking.mblock)


def parts_of_blocks(t: int, mblock: tuple[int, int]) -> int:
    """Into whole t slices, but where t is a prime or nearly one."""
    if t >= LEAST_PARTS:
        parts = next(parts for parts in range(min(t, MOST_PARTS), 0, -1) if t % parts == 0)
        return parts if parts >= LEAST_PARTS else MOST_PARTS
    return t * max(1, min(mblock[0] * mblock[1], LEAST_PARTS // t))


def room_of(op: Op, parts: int) -> int:
    """Parts that an output buffer holds: buf_size_mb macroblocks, a t slice each. Where a part is many slices, two
    buffers of one slice are two of a part: one is filled while the other one is sent."""
    return max(1, min(op.buf_size_mb, INPUT_BUFFERS), op.buf_size_mb * parts // op.blocking.t)
