"""Requests to stop a run: Ctrl-C while a program runs, and how it is recorded."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from signal import SIGINT, default_int_handler
from threading import current_thread, main_thread
from typing import Any, Final

from buda_emu.interrupt import interrupt

# What `signal.signal` and `signal.getsignal` call. They look up an enum for every handler, and catch the ValueError of
# those that are functions: three calls for each move of a debugger are 5 % of a run of a millisecond.
_SIGNAL: Final[Any] = import_module("_signal")


class Interrupt:
    """`wanted`: what runs is to stop at its next step, whichever machine of a session that is; else what runs next."""

    wanted = False


@contextmanager
def ctrl_c(stop: Callable[[], None]) -> Generator[None]:
    """Meanwhile Ctrl-C calls `stop`, in place of a KeyboardInterrupt wherever this thread happens to be. Nothing
    changes on other threads, and where somebody else handles it, or nobody wants it."""
    before = _SIGNAL.getsignal(SIGINT)
    if current_thread() is not main_thread() or before not in (default_int_handler, interrupt):
        yield
        return

    def handle(_number: int, _frame: object) -> None:
        stop()

    _SIGNAL.signal(SIGINT, handle)
    try:
        yield
    finally:
        _SIGNAL.signal(SIGINT, before)
