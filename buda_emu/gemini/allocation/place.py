"""Addresses: first fit, in an order that leaves few holes."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from buda_emu.errors import ProgramError
from buda_emu.gemini.allocation.tensors import Resident
from buda_emu.gemini.model import IR

_ORDERS: Final[Sequence[Callable[[Resident], tuple[int, ...]]]] = (
    lambda item: (item.first, -item.room, item.number),
    lambda item: (-item.room, item.first, item.number),
    lambda item: (item.first - item.last, -item.room, item.number),
)
"""Tried one after the other: by time, by size, by length of life."""


def place(ir: IR, core: int, items: Sequence[Resident], buffersize: int) -> list[Resident]:
    """Tensors of a core with addresses, so that none share a byte in a snapshot. Raises ProgramError where first fit
    finds no room in any order, naming core and workload."""
    stuck: Resident | None = None
    for order in _ORDERS:
        placed: list[Resident] = []
        for item in sorted(items, key=order):
            address = _first_fit(item, placed)
            if address + item.room > buffersize:
                stuck = stuck or item
                break
            placed.append(replace(item, address=address))
        else:
            return sorted(placed, key=lambda item: item.number)
    assert stuck is not None  # no order was gone through whole
    x, y = ir.position(core)
    work = ir.cores[core][stuck.first]
    raise ProgramError(
        f"a buffer of {buffersize} bytes is too small for first fit: core {y * ir.xlen + x} has no room for "
        f"{stuck.room} "
        f"more at workload {work.workload_id}",
        kind="allocation",
    )


def _first_fit(item: Resident, placed: Sequence[Resident]) -> int:
    """The lowest address below which nothing that lives at the same time is in the way."""
    beside = sorted(
        (other.address, other.address + other.room)
        for other in placed
        if other.first <= item.last and item.first <= other.last
    )
    at = 0
    for low, high in beside:
        if at + item.room <= low:
            break
        at = max(at, high)
    return at
