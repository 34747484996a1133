"""What is compiled: functions as they are written, and the rooms of LLVM code that they call."""

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Final, cast

INTRINSICS: Final = ["buda_emu.arithmetic.jit.intrinsics"]
"""Modules that make LLVM code known to numba: imported before the first kernel is compiled."""


def register_intrinsics(module: str) -> None:
    """Add a module (its dotted name) that defines LLVM code for functions that kernels call, to be imported before a
    kernel is compiled."""
    INTRINSICS.append(module)


class Helper:
    """A Python function that is marked to be compiled by numba, into the kernels that call it. `Kernel` is a
    subclass."""

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(cast(Any, self), function)
        self.py_func: Final = function
        self.shares: Final = "claim_items" in function.__code__.co_names
        """Whether threads may share its items (`jit/thread_team.py`)."""
        self.dispatcher: Any = None
        """numba's, once there is one (`compiling/by_numba.py`)."""
