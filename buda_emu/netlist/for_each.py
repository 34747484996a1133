"""Values that are computed once for each netlist and kept as long as the netlist: for all machines that run it."""

import weakref
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

from buda_emu.netlist.model import Netlist

T = TypeVar("T")


class ForEach(Generic[T]):
    """An object for each netlist, made when it is first asked for. It must not hold the netlist itself."""

    def __init__(self, make: Callable[[Netlist], T]) -> None:
        self._make = make
        self._found: dict[int, tuple[weakref.ref[Netlist], T]] = {}  # by id: equal netlists are two
        self._lock = Lock()

    def of(self, netlist: Netlist) -> T:
        """That of a netlist."""
        number = id(netlist)
        with self._lock:
            known = self._found.get(number)
            if known is not None and known[0]() is netlist:
                return known[1]
            made = self._make(netlist)
            self._found[number] = weakref.ref(netlist, lambda gone: self._forget(number, gone)), made
            return made

    def _forget(self, number: int, gone: "weakref.ref[Netlist]") -> None:
        known = self._found.get(number)
        if known is not None and known[0] is gone:
            self._found.pop(number, None)
