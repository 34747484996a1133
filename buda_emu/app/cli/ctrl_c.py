"""Handling of Ctrl-C at a prompt: it stops the running command or drops the line being typed, and never ends the
process."""

import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import Any, Self


class CtrlC:
    """A context in which Ctrl-C raises no KeyboardInterrupt at an arbitrary place. From the moment at which a line is
    accepted until the next prompt, Ctrl-C calls `stop` and sets `seen`. Before each prompt `clear` is called, so that
    an interrupt that came too late is forgotten.

    Nothing changes on threads other than the main one, or where the caller ignores Ctrl-C.
    """

    def __init__(self, stop: Callable[[], None], clear: Callable[[], None]) -> None:
        self.seen = False
        self._stop = stop
        self._clear = clear
        self._drop: Callable[[], bool] | None = None
        self._before: Any = None

    def __enter__(self) -> Self:
        if current_thread() is main_thread() and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            self._before = signal.signal(signal.SIGINT, lambda _number, _frame: self._on_signal())
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    @contextmanager
    def reading_line(self, drop: Callable[[], bool]) -> Generator[None]:
        """Mark the block in which a line is read. On Ctrl-C, `drop` discards what was typed; it returns False if the
        line has been accepted already, so that the signal stops the line's command instead."""
        self.seen = False
        self._clear()
        self._drop = drop
        try:
            yield
        finally:
            self._drop = None

    def _on_signal(self) -> None:
        """Drop the line being typed, or else stop the running command."""
        if self._drop is None or not self._drop():
            self.stop_command()

    def stop_command(self) -> None:
        """Stop the command whose line was accepted."""
        self.seen = True
        self._stop()
