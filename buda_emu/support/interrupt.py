"""The command's own handler of Ctrl-C: KeyboardInterrupt as Python raises it, but later where it would get lost.

A C extension that sees KeyboardInterrupt while it is imported may raise ImportError in its place, or print it; and the
callback of a weak reference, such as importlib has for each module, can raise nothing.
"""

import _thread
import os
import signal
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from importlib.machinery import ExtensionFileLoader
from threading import current_thread, main_thread
from types import FrameType

_AGAIN = 0.001  # seconds until a Ctrl-C that came too early comes again


def interrupt(_number: int, frame: FrameType | None) -> None:
    """Handle SIGINT: raise KeyboardInterrupt at once, or, where a frame on the stack would swallow it, send the signal
    again a millisecond later."""
    while frame is not None:
        if _swallows_interrupt(frame):
            _thread.start_new_thread(_send_again, (_thread.get_ident(),))
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def _swallows_interrupt(frame: FrameType) -> bool:
    """Return whether a frame swallows KeyboardInterrupt: the import of an extension, or importlib's weak callback."""
    if frame.f_code.co_name in ("create_module", "exec_module"):
        return isinstance(frame.f_locals.get("self"), ExtensionFileLoader)
    return frame.f_code.co_qualname == "_get_module_lock.<locals>.cb"


def _send_again(main_thread: int) -> None:
    """Send SIGINT to the main thread again after `_AGAIN` seconds; runs on a thread of its own."""
    time.sleep(_AGAIN)
    if sys.platform == "win32":
        _thread.interrupt_main()
    else:
        signal.pthread_kill(main_thread, signal.SIGINT)  # also ends what it waits for meanwhile


class Terminated(KeyboardInterrupt):
    """Raised where SIGTERM asks the process to end: `timeout`, a job's time limit, a build that is cancelled."""


@contextmanager
def termination_as_interrupt() -> Generator[None]:
    """Raise Terminated for SIGTERM during the block, so that what is done can still be reported. Nothing changes on
    threads other than the main one, or where the process handles SIGTERM in another way already."""
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def terminate(_number: int, _frame: FrameType | None) -> None:
        """Raise Terminated."""
        raise Terminated

    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def end_by_signal(number: int) -> None:
    """End the process as the signal does, once its results are written: by KeyboardInterrupt for SIGINT, else by
    the signal itself, whose number a caller then sees."""
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.stdout.flush()
    sys.stderr.flush()
    os.kill(os.getpid(), number)
