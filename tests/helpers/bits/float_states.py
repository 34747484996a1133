"""Threads whose floating-point state another library has changed."""

import ctypes
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

# Place of the control word in fenv_t, and its bits: denormal results, and operands, are zero.
_CONTROL = {"x86_64": (28, 0x8040), "AMD64": (28, 0x8040), "aarch64": (0, 1 << 24)}
needs_states = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in _CONTROL, reason="the layout of fenv_t is not known here"
)


@contextmanager
def own_state() -> Iterator[None]:
    """What is set meanwhile on this thread is forgotten after it."""
    library = ctypes.PyDLL(None)
    before = ctypes.create_string_buffer(256)
    library.fegetenv(before)
    try:
        yield
    finally:
        library.fesetenv(before)


@contextmanager
def flushing() -> Iterator[None]:
    """This thread flushes denormals to zero meanwhile."""
    with own_state():
        set_flushing()
        yield


def set_flushing() -> None:
    """This thread flushes denormals to zero from now on."""
    library = ctypes.PyDLL(None)
    place, bits = _CONTROL[platform.machine()]
    state = ctypes.create_string_buffer(256)
    library.fegetenv(state)
    word = ctypes.c_uint32.from_buffer(state, place)
    word.value |= bits
    library.fesetenv(state)


def flushes() -> bool:
    """Does it?"""
    tiny, one = 5e-324, 1.0
    return tiny * one == 0
