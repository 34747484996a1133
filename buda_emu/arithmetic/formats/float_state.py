"""The floating-point state of a thread: results need denormals, and rounding to nearest.

Other libraries change it for the whole thread (torch.set_flush_denormal, code that was linked with -ffast-math), and
then a float32 below 2^-126 is zero. `exact_floats` sets the state that IEEE 754 has by default around a call, and what
the caller had after it.
"""

import ctypes
import sys
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, Final, ParamSpec, TypeVar

from buda_emu.support.errors import UnsupportedError

P = ParamSpec("P")
R = TypeVar("R")

_TINY: Final = 5e-324  # flushing concerns all widths at once: Python's own floats show it
_ONE: Final = 1.0  # named, so that Python computes at run time and folds nothing
_PART: Final = 2.0**-60  # less than half of the last bit of 1, so it only counts where rounding is directed
_STATE_BYTES: Final = 256  # fenv_t has 8 to 48


def exact_floats(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a function so that its thread keeps denormals and rounds to nearest while it runs, whatever other libraries
    have set; afterwards the thread's own state is back. The wrapper raises UnsupportedError where that state cannot be
    set."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function in the default floating-point state, and put the thread back into its own afterwards."""
        if _is_exact():
            return function(*args, **kwargs)
        library, _ = _c_library()
        before = ctypes.create_string_buffer(_STATE_BYTES)
        library.fegetenv(before)
        set_exact()
        try:
            return function(*args, **kwargs)
        finally:
            library.fesetenv(before)

    return call


def set_exact() -> None:
    """Make this thread keep denormals and round to nearest, if it does not. Raises UnsupportedError where that cannot
    be done."""
    if _TINY * _ONE != 0 and _ONE + _PART == _ONE == _ONE - _PART:  # `_is_exact`: every kernel asks
        return
    library, default = _c_library()
    library.fesetenv(default)
    if not _is_exact():
        raise UnsupportedError(
            "this thread flushes denormal numbers to zero, or does not round to nearest, and cannot be set back: "
            "results would have wrong bits. Some library in this process has set that"
        )


def _is_exact() -> bool:
    """Return whether this thread keeps denormals and rounds to nearest, by computing with them."""
    return _TINY * _ONE != 0 and _ONE + _PART == _ONE == _ONE - _PART


@cache
def _c_library() -> tuple[Any, Any]:
    """Return the C library, whose functions are called with Python's lock held, and the address of its default
    floating-point state (FE_DFL_ENV). Raises UnsupportedError where there is none."""
    try:
        library = ctypes.PyDLL(None)
        library.fegetenv.argtypes = library.fesetenv.argtypes = [ctypes.c_void_p]
        if sys.platform == "darwin":
            return library, ctypes.addressof(ctypes.c_char.in_dll(library, "_FE_DFL_ENV"))
    except (OSError, TypeError, ValueError, AttributeError):  # no such library, or no such functions
        raise UnsupportedError(
            "this thread flushes denormal numbers to zero, or does not round to nearest: results would have wrong "
            "bits. Some library in this process has set that, and the C library has no means to set it back"
        ) from None
    return library, ctypes.c_void_p(-1)
