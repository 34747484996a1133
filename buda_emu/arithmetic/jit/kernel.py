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
from buda_emu.arithmetic.jit.machine_code.loading import Raised, kinds_of, to_plain
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
    """Mark a function as a kernel, which Python calls: it is compiled at the first call with arguments of new kinds,
    and read from disk in later processes. With NUMBA_DISABLE_JIT=1 it stays Python, with numpy's warnings off."""
    if disabled:
        return _without_warnings(function)
    return cast(F, Kernel(function))


def helper(function: F) -> F:
    """Mark a function that only kernels call: it is compiled into each of them. With NUMBA_DISABLE_JIT=1 it stays as it
    is."""
    if disabled:
        return function
    return cast(F, Helper(function))


class Kernel(Helper):
    """A function that is called as machine code, of which there is one piece for each combination of kinds of
    arguments. The piece of the latest call is tried first, so a call with the same kinds costs no search."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._known: dict[str, Callable[..., Any]] = {}
        self._latest: Callable[..., Any] = _refuse_arguments

    def __call__(self, *arguments: Any) -> Any:
        """Call the kernel. Raises TypeError for arguments that no kernel takes, and what the function itself raises."""
        try:
            result = self._latest(*arguments)
            if result is NotImplemented:
                result = self._call_other_entry(arguments)
            return result
        except Raised as raised:
            error = raised.exception(self.py_func.__name__)
        raise error

    def _call_other_entry(self, arguments: tuple[Any, ...]) -> Any:
        """Call the machine code for arguments that the piece of the latest call refused; it is loaded from disk or
        compiled if need be. Raises TypeError for arguments that no kernel takes."""
        for entry in list(self._known.values()):
            result = entry(*arguments)
            if result is not NotImplemented:
                self._latest = entry
                return result
        arguments = tuple(map(to_plain, arguments))  # there may be simpler objects for the same
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
        """Return a function that calls the machine code for arguments of these kinds (`loading.kinds_of`), read from
        disk or compiled."""
        from buda_emu.arithmetic.jit.machine_code.loading import load, processor  # LLVM, not its compiler

        file = disk_cache.machine_code_file(self.py_func, f"{kinds} {processor()}")
        if file is None:
            code = self._compile(arguments)
        else:
            code = disk_cache.read(file) or self._compile_for_all(file, arguments)
        return load(code, self.py_func.__module__, self.py_func.__name__)

    def _compile_for_all(self, file: str, arguments: tuple[Any, ...]) -> bytes:
        """Return machine code that is not in the cache file yet: compile it and write the file, or wait for another
        process that does so, and read it."""
        with disk_cache.compilation_lock(file):
            code = disk_cache.read(file)
            if code is None:
                code = self._compile(arguments)
                disk_cache.write(file, code)
            return code

    def _compile(self, arguments: tuple[Any, ...]) -> bytes:
        """Return the machine code of the kernel for arguments of these kinds, newly compiled; its start and its end are
        announced (`announce`)."""
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
    """The arguments of a call of `compilations`, and the list that it gave."""

    started: Callable[[str], object]
    finished: Callable[[Compilation], object]
    compiled_kernels: list[Compilation]


_watchers: Final[list[_Watcher]] = []


@contextmanager
def compilations(
    started: Callable[[str], object] = do_nothing, finished: Callable[[Compilation], object] = do_nothing
) -> Generator[list[Compilation]]:
    """Watch the kernels that are compiled during the block, in any thread. Yield the list of them, which grows;
    `started` is called with each kernel's name beforehand, `finished` with its entry afterwards.

    A kernel that is read from disk is not in it, and the time of helpers belongs to the kernel that calls them.
    """
    watcher = _Watcher(started, finished, [])
    _watchers.append(watcher)
    try:
        yield watcher.compiled_kernels
    finally:
        _watchers[:] = [other for other in _watchers if other is not watcher]


def announce(name: str, seconds: float | None) -> None:
    """Notify all watchers (`compilations`), and at the end the logger, of a compilation in this process, or in a worker
    that sends it: that it begins if `seconds` is None, else that it is done and took so long."""
    if seconds is None:
        for watcher in list(_watchers):
            watcher.started(name)
        return
    logger = find_logger(LOGGER)
    if logger is not None:
        logger.info("compiled kernel %s for this machine in %.1f s", name, seconds)
    done = Compilation(name, seconds)
    for watcher in list(_watchers):
        watcher.compiled_kernels.append(done)
        watcher.finished(done)


def _refuse_arguments(*_: Any) -> Any:
    """Return NotImplemented for any arguments: stands for the machine code of a kernel that has none yet."""
    return NotImplemented


def _without_warnings(function: F) -> F:
    """Return a function that calls `function` with numpy's warnings off, as compiled code is silent where a scalar
    operation overflows or is invalid."""

    @wraps(function)
    def call(*arguments: Any) -> Any:
        """Call the function with numpy's warnings off."""
        with np.errstate(all="ignore"):
            return function(*arguments)

    return cast(F, call)
