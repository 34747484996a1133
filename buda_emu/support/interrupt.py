"""The command's own handler of Ctrl-C: KeyboardInterrupt as Python raises it, but later where it would get lost.

A C extension that sees KeyboardInterrupt while it is imported may raise ImportError in its place, or print it; and the
callback of a weak reference, such as importlib has for each module, can raise nothing.
"""

import _thread
import signal
import sys
import time
from importlib.machinery import ExtensionFileLoader
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
    """Send SIGINT again after a while."""
    time.sleep(_AGAIN)
    if sys.platform == "win32":
        _thread.interrupt_main()
    else:
        signal.pthread_kill(main_thread, signal.SIGINT)  # also ends what it waits for meanwhile
