"""What a kernel is called with: the kind of each argument as text, and plain objects in place of their relatives; and
what it raises."""

import ctypes
import pickle
from collections.abc import Iterable
from typing import Any

import numpy as np


class Raised(Exception):  # noqa: N818 - nobody sees it
    """What a kernel raised, pickled as (class, arguments, place)."""

    def exception(self, kernel: str) -> BaseException:
        """The exception itself. What it was to say is only known where all of it stands in the source."""
        kind, arguments, _ = pickle.loads(self.args[0])
        if all(isinstance(argument, str | int | float) for argument in arguments or ()):
            return kind(*arguments or ())
        return kind(f"raised in kernel {kernel}; with NUMBA_DISABLE_JIT=1 it says why")


def raised_at(address: int, kernel: str) -> BaseException:
    """The exception that a kernel left there: the address and the bytes of a pickle, as numba keeps it."""
    found = _Left.from_address(address)
    return Raised(ctypes.string_at(found.data, found.size)).exception(kernel)


class _Left(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("size", ctypes.c_int32))


def kinds_of(arguments: Iterable[Any]) -> str:
    """The kinds of plain arguments: machine code serves those of equal kinds. Raises TypeError for any other object.

    `i8` and the like are scalars, `f4[3]C` is an array of three dimensions, `r` one that is only read.
    """
    return ", ".join(map(_kind, arguments))


def plain(value: Any) -> Any:
    """The object itself or one of the same value of the class that machine code knows."""
    if isinstance(value, np.ndarray):
        value = value.view(np.ndarray) if type(value) is not np.ndarray else value
        usual = np.dtype(value.dtype.str)
        return value if value.dtype.num == usual.num else value.view(usual)
    if isinstance(value, tuple):
        items: list[Any] = [plain(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, np.bool_):
        return bool(value)
    if type(value) is np.int64 or (isinstance(value, int) and type(value) not in (int, bool)):
        return int(value)
    return value


def _kind(value: Any) -> str:
    if isinstance(value, np.ndarray):
        flags = value.flags
        if not value.dtype.isnative or value.dtype.kind not in "biuf" or not flags.aligned:
            raise TypeError(f"a kernel takes no array of {value.dtype}, unless it is native and aligned")
        layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        return f"{value.dtype.str[1:]}[{value.ndim}]{layout}{'' if flags.writeable else 'r'}"
    if isinstance(value, bool):
        return "b1"
    if isinstance(value, int):
        return "i8"
    if isinstance(value, float):
        return "f8"
    if isinstance(value, (np.integer, np.floating)):
        return value.dtype.str[1:]
    if isinstance(value, tuple):
        name = f"{type(value).__module__}.{type(value).__qualname__}" if hasattr(value, "_fields") else ""
        return f"{name}({kinds_of(value)})"  # pyright: ignore[reportUnknownArgumentType]
    raise TypeError(f"a kernel takes arrays, numbers and tuples of these, no {type(value).__name__}")
