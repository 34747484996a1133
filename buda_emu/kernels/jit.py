"""The `kernel` and `helper` decorators: compiled without the GIL, exact arithmetic only, kept on disk between runs.

A kernel is compiled at its first call, for the types of the arguments: explicit signatures would compile, or load,
every kernel of a module when it is imported. So call a kernel always with the same types: C-contiguous arrays, each
always writable or always read-only, Python ints and bools, numpy scalars for floats. Another type is compiled anew.

Compiled code lies in the user's cache directory, in a folder named by the version and by the hash of every source that
may be compiled in: numba itself misses the edit of a helper or constant that stands in another file. Where that folder
cannot be written, kernels are compiled in every process.

`NUMBA_DISABLE_JIT=1` makes every kernel and helper the plain Python function it is written as, with the same bits.
"""

import hashlib
import os
import pickle
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import cache, partial, wraps
from pathlib import Path
from threading import Lock
from typing import Any, Final, NamedTuple, TypeVar, cast

import numba
import numpy as np
from numba.core import config as numba_config
from numba.core import event as numba_event
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.runtime.nrt import rtsys

from buda_emu.caches import own_caches, usable
from buda_emu.version import __version__

__all__ = ["Compilation", "cache_folder", "compilations", "helper", "kernel"]

F = TypeVar("F", bound=Callable[..., Any])

_njit: Final[Any] = partial(numba.njit, nogil=True, error_model="numpy")
_config: Final[Any] = numba_config
_KNOWN_NUMBA: Final = numba.__version__.startswith("0.68.")  # where loading without registries has been tried
_ROOMS: Final = ("kernels", "numerics", "spec")  # what a kernel may import functions and constants from
_MAGIC: Final = b"buda-emu kernel 1\n"
_DIGEST_BYTES: Final = 32
_settings_lock = Lock()


def kernel(function: F) -> F:
    """A function that Python calls: compiled once for the types of its arguments, then read from disk."""
    if _config.DISABLE_JIT:
        return _quiet(function)
    dispatcher = _njit(function)
    directory = _cache_directory(Path(function.__code__.co_filename).parent)
    if directory is not None:
        # A folder that vanished, or a source that is no file, leaves the kernel without a cache.
        with suppress(OSError, RuntimeError):
            dispatcher._cache = _KernelCache(function, directory)
    return dispatcher


def helper(function: F) -> F:
    """A function that only kernels call: compiled into each, it needs neither a cache nor a way in from Python."""
    if _config.DISABLE_JIT:
        return function
    return _njit(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


class Compilation(NamedTuple):
    """One kernel that was compiled, and how long that took."""

    kernel: str
    seconds: float


@contextmanager
def compilations(started: Callable[[str], object] = lambda _: None) -> Generator[list[Compilation]]:
    """What is compiled meanwhile, in any thread; the list grows. `started` is told each kernel's name beforehand.

    A kernel that is read from disk is not in it.
    """
    found: list[Compilation] = []
    with numba_event.install_listener("numba:compile", _Stopwatch(found, started)):
        yield found


class _Stopwatch(numba_event.Listener):  # pyright: ignore[reportUntypedBaseClass]
    """Notes compilations; what is compiled for the sake of another kernel belongs to that. numba has a lock on them."""

    def __init__(self, found: list[Compilation], started: Callable[[str], object]) -> None:
        self._found = found
        self._started = started
        self._open: list[tuple[str, float]] = []

    def on_start(self, event: Any) -> None:
        """A compilation begins."""
        name = event.data["dispatcher"].py_func.__name__
        if not self._open:
            self._started(name)
        self._open.append((name, time.perf_counter()))

    def on_end(self, event: Any) -> None:  # noqa: ARG002 - numba calls it
        """It ends, well or not."""
        name, start = self._open.pop()
        if not self._open:
            self._found.append(Compilation(name, time.perf_counter() - start))


def cache_folder() -> Path | None:
    """Where the project's compiled kernels are kept; None when they cannot be."""
    return _cache_directory(Path(__file__).parent)


def _quiet(function: F) -> F:
    """The plain function, silent like compiled code where a scalar operation overflows or is invalid."""

    @wraps(function)
    def call(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*arguments)

    return cast(F, call)


class _CheckedFiles(IndexDataCacheFile):  # pyright: ignore[reportUntypedBaseClass]
    """numba's files, each with the checksum of its content in front: damaged machine code ends the process. What does
    not hold what it should is as if it were not there, so it is compiled, and written, again."""

    def __init__(self, files: Any) -> None:
        vars(self).update(vars(files))

    def _load_index(self) -> dict[Any, str]:
        try:
            version, stamp, overloads = _checked(self._index_path)
        except FileNotFoundError:
            return {}
        return overloads if (version, stamp) == (self._version, self._source_stamp) else {}

    def _save_index(self, overloads: dict[Any, str]) -> None:
        self._write(self._index_path, (self._version, self._source_stamp, overloads))

    def _load_data(self, name: str) -> Any:
        return _checked(self._data_path(name))

    def _save_data(self, name: str, data: Any) -> None:
        self._write(self._data_path(name), data)

    def _write(self, path: str, content: Any) -> None:
        payload = self._dump(content)
        with self._open_for_write(path) as file:
            file.write(_MAGIC + hashlib.sha256(payload).digest())
            file.write(payload)


def _checked(path: str) -> Any:
    """The content of a file. Raises FileNotFoundError also for a damaged one."""
    with open(path, "rb") as file:  # noqa: PTH123 - once for each kernel
        data = file.read()
    payload = memoryview(data)[len(_MAGIC) + _DIGEST_BYTES :]
    if data[: len(data) - len(payload)] != _MAGIC + hashlib.sha256(payload).digest():
        raise FileNotFoundError(path)
    return pickle.loads(payload)


class _KernelCache(FunctionCache):  # pyright: ignore[reportUntypedBaseClass]
    """numba's cache, but no run fails for it: what cannot be read is compiled, what cannot be written is not kept.
    And nothing is read or written where others could have put it."""

    def __init__(self, function: Callable[..., Any], directory: Path) -> None:
        with _numba_cache_at(directory):
            super().__init__(function)
        if not Path(self.cache_path).is_relative_to(directory):  # numba's own choice, when ours cannot be written
            raise OSError(f"{directory} cannot be written")
        self._directory = directory
        self._cache_file = _CheckedFiles(self._cache_file)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function, or None."""
        if not usable(self._directory):
            return None
        try:
            if not _KNOWN_NUMBA:
                return super().load_overload(sig, target_context)
            # numba would fill its registries of types and functions first, which takes longer than all else here.
            # Machine code needs the runtime's symbols only; a compilation fills the registries by itself.
            rtsys.initialize(target_context)
            with self._guard_against_spurious_io_errors():
                return self._load_overload(sig, target_context)
        except (OSError, EOFError, pickle.UnpicklingError):
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keeps the compiled function."""
        if usable(self._directory):
            with suppress(OSError, EOFError, pickle.UnpicklingError):
                super().save_overload(sig, data)


@contextmanager
def _numba_cache_at(directory: Path) -> Generator[None]:
    """numba reads these settings when a cache is made; the caller's own functions keep theirs."""
    ours = {"CACHE_DIR": str(directory), "CACHE_LOCATOR_CLASSES": ""}
    with _settings_lock:
        before = {name: getattr(_config, name) for name in ours if hasattr(_config, name)}
        try:
            for name in before:
                setattr(_config, name, ours[name])
            yield
        finally:
            for name, value in before.items():
                setattr(_config, name, value)


def _cache_directory(sources: Path) -> Path | None:
    """The folder for compiled kernels whose file lies in `sources`, made if need be; None when it cannot be written,
    or others could put files there: compiled code is run as it is."""
    try:
        directory = own_caches() / _folder_name(sources)
    except (OSError, RuntimeError):  # RuntimeError: no home directory
        return None
    return directory if usable(directory) and os.access(directory, os.W_OK) else None


@cache
def _folder_name(sources: Path) -> str:
    return f"kernels-{__version__}-{_sources_hash(sources)}"


def _sources_hash(sources: Path) -> str:
    """Hash of all that compiled code depends on, besides what numba itself compares (its version, the processor)."""
    package = Path(__file__).parent.parent
    folders = {package / room for room in _ROOMS}
    if not any(sources.is_relative_to(folder) for folder in folders):
        folders.add(sources)
    digest = hashlib.sha256(f"{numba.__version__} {np.__version__} {sys.version}".encode())
    for folder in sorted(map(str, folders)):
        for path in sorted(_sources(folder)):
            digest.update(os.path.relpath(path, folder).replace(os.sep, "/").encode())
            with open(path, "rb") as file:  # noqa: PTH123 - at every start: pathlib takes three times as long
                digest.update(file.read())
    return digest.hexdigest()[:16]


def _sources(folder: str) -> Generator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _sources(entry.path)
            elif entry.name.endswith(".py"):
                yield entry.path
