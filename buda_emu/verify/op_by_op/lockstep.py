"""Two runs of one netlist side by side: results of the same op meet, are looked at in place, and are let go.

Nothing is kept, so memory stays that of the two machines. Both machines take one input of an epoch at a time: their
plans differ in conversions, so they would cut an epoch at different inputs otherwise.
"""

from collections.abc import Callable
from threading import Condition, Thread
from typing import Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.errors import InternalError
from buda_emu.netlist.model import Op
from buda_emu.runtime.machine.listeners import Listener

Tiles = NDArray[np.float32]
Key = tuple[str, str]  # "op" or "queue", and its name
Look = Callable[[Key, Tiles, Tiles], None]
_WAIT_SECONDS: Final = 0.5  # how long a wait is deaf to Ctrl-C on platforms where it is


class PartnerFailedError(Exception):
    """Raised in a run whose partner has failed; the partner's error is the one to tell."""


class Rendezvous:
    """The place where side 0 and side 1 meet. `look` is called with the key and both tensors while both wait."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._condition = Condition()
        self._offers: dict[int, tuple[Key, Tiles]] = {}
        self._gone: set[int] = set()
        self._failed = False

    def meet(self, side: int, key: Key, tiles: Tiles) -> None:
        """Wait for the other side's tensor of the same key. Raises PartnerFailedError when there will be none."""
        with self._condition:
            self._check()
            other = self._offers.get(1 - side)
            if other is None:
                self._offers[side] = key, tiles
                while side in self._offers:
                    if 1 - side in self._gone:
                        raise InternalError(f"two runs of one netlist differ: only one of them came to {key}")
                    self._condition.wait(_WAIT_SECONDS)
                    self._check()
                return
            if other[0] != key:
                raise InternalError(f"two runs of one netlist differ: one is at {key}, the other at {other[0]}")
            pair = (tiles, other[1]) if side == 0 else (other[1], tiles)
            self._look(key, *pair)
            self._offers.clear()
            self._condition.notify_all()

    def leave(self, side: int, *, failed: bool) -> None:
        """This side comes no more."""
        with self._condition:
            self._gone.add(side)
            self._failed = self._failed or failed
            self._condition.notify_all()

    def _check(self) -> None:
        if self._failed:
            raise PartnerFailedError


class Side(Listener):
    """Takes the results of ops of one run, on side 0 or 1, to the meeting."""

    def __init__(self, meeting: Rendezvous, side: int) -> None:
        self._meeting = meeting
        self._side = side

    def op_value(self, op: Op, tiles: Tiles, inputs: int) -> None:  # noqa: ARG002 - always 1 here
        """The result of an op for one input."""
        self._meeting.meet(self._side, ("op", op.name), tiles)


def run_both(first: Callable[[], None], second: Callable[[], None], meeting: Rendezvous) -> None:
    """Run side 0 on a thread of its own and side 1 here, to the end of both.

    Raises what failed. Where both failed before they met again it is an interruption, else the error of side 0, the
    simpler run.
    """
    errors: dict[int, BaseException] = {}

    def run(side: int, work: Callable[[], None]) -> None:
        failed = True
        try:
            work()
            failed = False
        except BaseException as error:  # noqa: BLE001 - handed to the caller below
            errors[side] = error
        finally:
            meeting.leave(side, failed=failed)

    thread = Thread(target=run, args=(0, first), name="expected run")
    thread.start()
    run(1, second)
    thread.join()
    told = [side for side, error in errors.items() if not isinstance(error, PartnerFailedError)]
    if told:
        raise errors[min(told, key=lambda side: (isinstance(errors[side], Exception), side))]
