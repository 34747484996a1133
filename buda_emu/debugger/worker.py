"""The thread that a program runs on. While the program is held, and while none runs, it does what it is asked, so
nothing is ever looked at while it changes.
"""

from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, TypeVar

from buda_emu.debugger.stop import Stop
from buda_emu.records import dataclass

T = TypeVar("T")


class AbandonedError(BaseException):
    """Ends a program from inside, because another moment is going back to. No error: nobody catches it."""


@dataclass(frozen=True, slots=True)
class _Reply:
    value: Any = None
    error: BaseException | None = None


_GO: Final = object()
_ABANDON: Final = object()
_CLOSE: Final = object()


class Worker:
    """`run` is what begins or resumes programs, and returns how they ended."""

    def __init__(self, run: Callable[[], Stop]) -> None:
        self._run = run
        self._requests: SimpleQueue[Any] = SimpleQueue()
        self._replies: SimpleQueue[_Reply] = SimpleQueue()
        self._thread = Thread(target=self._work, name="buda-emu debug", daemon=True)
        self._thread.start()
        self.held = False  # a program is between two of its steps

    # ------------------------------------------------------------------------------------- for who gives commands
    def call(self, work: Callable[[], T]) -> T:
        """Do something on the thread, while nothing runs. Raises what it raises."""
        self._requests.put(work)
        return self._answer(lambda: None)

    def go(self, interrupt: Callable[[], None]) -> Stop:
        """Let the program go on, or begin, until it is held or ends. Ctrl-C calls `interrupt` and waits on."""
        self._requests.put(_GO)
        return self._answer(interrupt)

    def abandon(self) -> None:
        """End a program that is held."""
        if self.held:
            self._requests.put(_ABANDON)
            self._answer(lambda: None)

    def close(self) -> None:
        """End the program and the thread."""
        self.abandon()
        self._requests.put(_CLOSE)
        self._thread.join()

    def _answer(self, interrupt: Callable[[], None]) -> Any:
        while True:
            try:
                reply = self._replies.get()
                break
            except KeyboardInterrupt:
                interrupt()
        if reply.error is not None:
            raise reply.error
        return reply.value

    # ------------------------------------------------------------------------------------------- on the thread
    def hold(self, stop: Stop) -> None:
        """Tell that the program stands here, and do what is asked until it may go on. Raises AbandonedError."""
        self.held = True
        self._replies.put(_Reply(stop))
        request = self._serve()
        self.held = False
        if request is not _GO:
            raise AbandonedError

    def _serve(self) -> object:
        """Do what is asked; returns the request that ends this."""
        while True:
            request = self._requests.get()
            if request in (_GO, _ABANDON, _CLOSE):
                return request
            try:
                reply = _Reply(request())
            except BaseException as error:  # noqa: BLE001 - it comes out of `call`
                reply = _Reply(error=error)
            self._replies.put(reply)

    def _work(self) -> None:
        while self._serve() is _GO:
            try:
                reply = _Reply(self._run())
            except AbandonedError:
                reply = _Reply()
            except BaseException as error:  # noqa: BLE001 - it comes out of `go`
                reply = _Reply(error=error)
            self._replies.put(reply)
