"""The `kernel` and `helper` decorators: compiled without the GIL, exact arithmetic only, kept on disk between runs.

A kernel is compiled at its first call, for the kinds of the arguments. So call a kernel always with the same kinds:
C-contiguous arrays, each always writable or always read-only, Python ints and bools, numpy scalars for floats, and
tuples of these. Another kind is compiled separately. What it returns is None or a number.

Numba compiles (`compiling`), and is imported only then: what was compiled before is machine code with an entry
point for Python, which is read from disk and called (`machine_code`) without numba.

`NUMBA_DISABLE_JIT=1` makes every kernel and helper the plain Python function it is written as, with the same bits.
"""

import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import wraps
from threading import RLock
from typing import Any, Final, NamedTuple, TypeVar, cast

import numpy as np

from buda_emu.arithmetic.jit.machine_code import disk_cache
from buda_emu.arithmetic.jit.machine_code.disk_cache import cache_folder
from buda_emu.arithmetic.jit.machine_code.loading import Raised, kinds_of, plain
from buda_emu.arithmetic.jit.sources import Helper
from buda_emu.support.progress import do_nothing, find_logger

__all__ = ["Compilation", "Kernel", "announce", "cache_folder", "compilations", "disabled", "helper", "kernel"]

F = TypeVar("F", bound=Callable[..., Any])
disabled: Final = os.environ.get("NUMBA_DISABLE_JIT", "0").strip() not in ("", "0")
"""Whether kernels are plain Python functions: as numba reads its setting."""

LOGGER: Final = "buda_emu.kernels"
"""The logger that gets a line of level INFO for each kernel that is compiled."""

_lock: Final = RLock()


def kernel(function: F) -> F:
    """Mark a function that Python calls: it is compiled once for the kinds of its arguments, then read from disk."""
    if disabled:
        return _quiet(function)
    return cast(F, Kernel(function))


def helper(function: F) -> F:
    """Mark a function that only kernels call: it is compiled into each of them."""
    if disabled:
        return function
    return cast(F, Helper(function))


class Kernel(Helper):
    """A compiled function. Where arguments are of a kind that it has met, calling it is calling machine code."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._known: dict[str, Callable[..., Any]] = {}
        self._latest: Callable[..., Any] = _knows_nothing

    def __call__(self, *arguments: Any) -> Any:
        """Call the kernel. Raises TypeError for arguments that no kernel takes, and the errors of the function."""
        try:
            result = self._latest(*arguments)
            if result is NotImplemented:
                result = self._call_other_entry(arguments)
            return result
        except Raised as raised:
            error = raised.exception(self.py_func.__name__)
        raise error

    def _call_other_entry(self, arguments: tuple[Any, ...]) -> Any:
        """Call the machine code for arguments that the latest one does not take; it is loaded from disk or compiled if
        need be. Raises TypeError for arguments that no kernel takes."""
        for entry in list(self._known.values()):
            result = entry(*arguments)
            if result is not NotImplemented:
                self._latest = entry
                return result
        arguments = tuple(map(plain, arguments))  # there may be simpler objects for the same
        kinds = kinds_of(arguments)
        with _lock:
            entry = self._known.get(kinds)
            if entry is None:
                entry = self._known[kinds] = self._load(kinds, arguments)
        self._latest = entry
        result = entry(*arguments)
        if result is NotImplemented:
            raise TypeError(f"kernel {self.py_func.__name__} cannot be called with ({kinds})")
        return result

    def _load(self, kinds: str, arguments: tuple[Any, ...]) -> Callable[..., Any]:
        """Return a function that calls the machine code for arguments of these kinds, read from disk or compiled."""
        from buda_emu.arithmetic.jit.machine_code.loading import load, processor  # LLVM, not its compiler

        place = disk_cache.place(self.py_func, f"{kinds} {processor()}")
        if place is None:
            code = self._compile(arguments)
        else:
            code = disk_cache.read(place) or self._compile_for_all(place, arguments)
        return load(code, self.py_func.__module__, self.py_func.__name__)

    def _compile_for_all(self, place: str, arguments: tuple[Any, ...]) -> bytes:
        """Return the machine code at `place` on disk, which this process compiles and writes unless another process,
        which it waits for, just did."""
        with disk_cache.alone(place):
            code = disk_cache.read(place)
            if code is None:
                code = self._compile(arguments)
                disk_cache.write(place, code)
            return code

    def _compile(self, arguments: tuple[Any, ...]) -> bytes:
        """Return the machine code of the kernel for these arguments, newly compiled, and announce the compilation
        before and after."""
        name = self.py_func.__name__
        announce(name, None)
        start = time.perf_counter()
        from buda_emu.arithmetic.jit.compiling.by_numba import machine_code  # numba

        code = machine_code(self, arguments)
        announce(name, time.perf_counter() - start)
        return code


class Compilation(NamedTuple):
    """One kernel that was compiled, and how long that took."""

    kernel: str
    seconds: float


class _Watcher(NamedTuple):
    started: Callable[[str], object]
    finished: Callable[[Compilation], object]
    found: list[Compilation]


_watchers: Final[list[_Watcher]] = []


@contextmanager
def compilations(
    started: Callable[[str], object] = do_nothing, finished: Callable[[Compilation], object] = do_nothing
) -> Generator[list[Compilation]]:
    """Give the list of the kernels that are compiled during the block, in any thread; it grows. `started` is called
    with each kernel's name beforehand, `finished` with its entry afterwards.

    A kernel that is read from disk is not in it, and the time of helpers belongs to the kernel that calls them.
    """
    watcher = _Watcher(started, finished, [])
    _watchers.append(watcher)
    try:
        yield watcher.found
    finally:
        _watchers[:] = [other for other in _watchers if other is not watcher]


def announce(name: str, seconds: float | None) -> None:
    """Tell all watchers, and the logger, of a kernel that is compiled in this process, or in a worker that reports it:
    that it begins if `seconds` is None, else that it is done and took so long."""
    if seconds is None:
        for watcher in list(_watchers):
            watcher.started(name)
        return
    logger = find_logger(LOGGER)
    if logger is not None:
        logger.info("compiled kernel %s for this machine in %.1f s", name, seconds)
    done = Compilation(name, seconds)
    for watcher in list(_watchers):
        watcher.found.append(done)
        watcher.finished(done)


def _knows_nothing(*_: Any) -> Any:
    """Return NotImplemented, as machine code for no arguments would."""
    return NotImplemented


def _quiet(function: F) -> F:
    """Return a function that calls `function` with numpy's warnings off, as compiled code is silent where a scalar
    operation overflows or is invalid."""

    @wraps(function)
    def call(*arguments: Any) -> Any:
        """Call the function with numpy's warnings off."""
        with np.errstate(all="ignore"):
            return function(*arguments)

    return cast(F, call)
