"""The thread that a program runs on. While the program is stopped, and while none runs, the thread executes requests,
so nothing is ever inspected while it changes.
"""

from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final, Literal, TypeVar

from buda_emu.debugger.machine.stop import Stop
from buda_emu.records import dataclass

T = TypeVar("T")
_AWAKE: Final = 0.1
"""Seconds after which who waits looks up: a signal that came just before it began to wait is handled then."""
_GO: Final = "go"
_ABANDON: Final = "abandon"
_CLOSE: Final = "close"


class AbandonedError(BaseException):
    """Ends a program from inside, because another moment is going back to. No error: nobody catches it."""


@dataclass(frozen=True, slots=True)
class _Reply:
    value: Any = None
    error: BaseException | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Request:
    """`work`: something to do, or what the program is to do. Each has its own way back: who stops waiting for one never
    takes its reply for another's."""

    work: Callable[[], Any] | Literal["go", "abandon", "close"]
    replies: SimpleQueue[_Reply]


class Worker:
    """`run` is what begins or resumes programs, and returns how they ended."""

    def __init__(self, run: Callable[[], Stop]) -> None:
        self._run = run
        self._requests: SimpleQueue[_Request] = SimpleQueue()
        self._thread = Thread(target=self._work, name="buda-emu debug", daemon=True)
        self._thread.start()
        self.held = False  # a program is between two of its steps

    # ------------------------------------------------------------------------------------- for who gives commands
    def call(self, work: Callable[[], T]) -> T:
        """Do something on the thread, while nothing runs. Raises what it raises."""
        return self._ask(work)

    def go(self) -> Stop:
        """Let the program go on, or begin, until it is held or ends."""
        return self._ask(_GO)

    def abandon(self) -> None:
        """End a program that is held."""
        if self.held:
            self._ask(_ABANDON)

    def close(self) -> None:
        """End the program, at the latest when it is held, and the thread."""
        if self._thread.is_alive():
            self._ask(_CLOSE)
            self._thread.join()

    def _ask(self, work: Any) -> Any:
        request = _Request(work, SimpleQueue())
        self._requests.put(request)
        reply = None
        while reply is None:
            with suppress(Empty):
                reply = request.replies.get(timeout=_AWAKE)
        if reply.error is not None:
            raise reply.error
        return reply.value

    # ------------------------------------------------------------------------------------------- on the thread
    def hold(self, stop: Stop) -> None:
        """Tell that the program stands here, and do what is asked until it may go on. Raises AbandonedError."""
        self.held = True
        self._now.replies.put(_Reply(stop))
        self._now = self._serve()
        self.held = False
        if self._now.work != _GO:
            raise AbandonedError

    def _serve(self) -> _Request:
        """Do what is asked; returns the request that ends this."""
        while True:
            request = self._requests.get()
            if isinstance(request.work, str):
                return request
            try:
                reply = _Reply(request.work())
            except BaseException as error:  # noqa: BLE001 - it comes out of `call`
                reply = _Reply(error=error)
            request.replies.put(reply)

    def _work(self) -> None:
        closing = False
        while not closing:
            self._now = self._serve()
            reply = _Reply()
            if self._now.work == _GO:
                try:
                    reply = _Reply(self._run())
                except AbandonedError:
                    pass
                except BaseException as error:  # noqa: BLE001 - it comes out of `go`
                    reply = _Reply(error=error)
            closing = self._now.work == _CLOSE
            self._now.replies.put(reply)
