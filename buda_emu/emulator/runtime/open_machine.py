"""The machine that a callable model keeps open from call to call."""

import weakref
from collections.abc import Callable, Generator, Hashable
from contextlib import contextmanager
from threading import RLock

from buda_emu.emulator.runtime.emulator import Emulator
from buda_emu.support.progress import do_nothing

OnMachine = Callable[[Emulator], None]


class OpenMachine:
    """At most one machine, which is opened by the first call that needs it and used by one thread at a time.

    A use that fails closes the machine: its queues may hold inputs that no program has read, and outputs that nobody
    has popped, which the next call would take for its own."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._key: Hashable = None
        self._machine: Emulator | None = None
        self._closing: weakref.finalize[..., OpenMachine] | None = None
        """Closes the machine when this object is collected, or earlier when it is called."""

    @contextmanager
    def use(self, key: Hashable, make: Callable[[], Emulator], keep: OnMachine = do_nothing) -> Generator[Emulator]:
        """Context in which the calling thread alone uses the machine of `key`. `make` opens that machine unless it is
        open; one of another key is closed first. `keep` is called with a machine before it is closed for another key or
        after a failure, to read what is to stay."""
        with self._lock:
            if self._machine is None or self._key != key:
                self._drop(keep)
                machine = make()
                self._closing = weakref.finalize(self, machine.close)
                self._machine = machine
                self._key = key
            try:
                yield self._machine
            except BaseException:
                self._drop(keep)
                raise

    @contextmanager
    def current(self) -> Generator[Emulator | None]:
        """Context in which the calling thread alone uses the machine that is open; None where none is."""
        with self._lock:
            yield self._machine

    def close(self) -> None:
        """Close the machine once no thread uses it; the next use opens a new one."""
        with self._lock:
            self._drop(do_nothing)

    def _drop(self, keep: OnMachine) -> None:
        """Close the machine, if one is open, after `keep` has read what is to stay."""
        machine = self._machine
        close = self._closing
        self._machine = None
        self._closing = None
        if machine is None or close is None:
            return
        try:
            keep(machine)
        finally:
            close()
