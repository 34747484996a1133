"""Somebody wants a run to stop: Ctrl-C while a program runs, and what it is noted in."""

import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import current_thread, main_thread


class Interrupt:
    """`wanted`: what runs is to stop at its next step, whichever machine of a session that is; else what runs next."""

    wanted = False


@contextmanager
def ctrl_c(stop: Callable[[], None]) -> Generator[None]:
    """Meanwhile Ctrl-C calls `stop`, in place of a KeyboardInterrupt wherever this thread happens to be. Nothing
    changes on other threads, and where somebody else handles it, or nobody wants it."""
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    before = signal.signal(signal.SIGINT, lambda _number, _frame: stop())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
