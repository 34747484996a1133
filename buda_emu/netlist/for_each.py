"""Per-netlist storage for values that are computed once and shared by all machines that run the netlist."""

import weakref
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

from buda_emu.netlist.model import Netlist

T = TypeVar("T")


class ForEach(Generic[T]):
    """A value for each netlist, made on first use and dropped with the netlist. The value must not refer to the
    netlist."""

    def __init__(self, make: Callable[[Netlist], T]) -> None:
        self._make = make
        # By id because equal netlists each have a value of their own.
        self._entries: dict[int, tuple[weakref.ref[Netlist], T]] = {}
        self._lock = Lock()

    def of(self, netlist: Netlist) -> T:
        """Return the value of a netlist, and make it by the function given if there is none yet."""
        number = id(netlist)
        with self._lock:
            entry = self._entries.get(number)
            if entry is not None and entry[0]() is netlist:
                return entry[1]
            value = self._make(netlist)
            self._entries[number] = weakref.ref(netlist, lambda reference: self._forget(number, reference)), value
            return value

    def _forget(self, number: int, reference: "weakref.ref[Netlist]") -> None:
        """Drop an entry whose netlist was freed, unless a new netlist has taken over the id since."""
        entry = self._entries.get(number)
        if entry is not None and entry[0] is reference:
            self._entries.pop(number, None)
