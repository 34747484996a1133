"""Ctrl-C at a prompt: it stops what runs, or drops the current line, and ends nothing."""

import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import Any, Self


class CtrlC:
    """While it is entered no KeyboardInterrupt comes out of nowhere. From the moment at which a line is taken to the
    next prompt Ctrl-C calls `stop` and is `seen`; before the next prompt `clear` is called, for one that came too late.
    Nothing changes on other threads than the main one, and where Ctrl-C is ignored.
    """

    def __init__(self, stop: Callable[[], None], clear: Callable[[], None]) -> None:
        self.seen = False
        self._stop = stop
        self._clear = clear
        self._drop: Callable[[], bool] | None = None
        self._before: Any = None

    def __enter__(self) -> Self:
        if current_thread() is main_thread() and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            self._before = signal.signal(signal.SIGINT, lambda _number, _frame: self._came())
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    @contextmanager
    def asking(self, drop: Callable[[], bool]) -> Generator[None]:
        """A line is asked for. `drop` lets go of what was typed; False where a line was taken already."""
        self.seen = False
        self._clear()
        self._drop = drop
        try:
            yield
        finally:
            self._drop = None

    def _came(self) -> None:
        if self._drop is None or not self._drop():
            self.stop_command()

    def stop_command(self) -> None:
        """It is meant for the command whose line was taken."""
        self.seen = True
        self._stop()
