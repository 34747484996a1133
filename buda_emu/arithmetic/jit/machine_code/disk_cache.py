"""Compiled kernels on disk: in the user's cache directory, in a folder named by the version and by the hash of every
source that may be compiled in, a file for each kernel, kinds of arguments and processor.

Machine code is run as it is, so nothing is read or written where others could have put it (`caches.usable`), and a file
whose checksum does not hold is as if it were not there: it is compiled, and written, again. What one process
compiles, others wait for.
"""

import hashlib
import os
import re
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import cache
from types import CodeType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from buda_emu.support.caches import own_caches, package_file, read_cache_file, usable, write_cache_file
from buda_emu.support.version import __version__

if TYPE_CHECKING:
    from pathlib import Path


_ROOMS: Final = ("arithmetic/jit", "arithmetic/kernels", "arithmetic/formats", "spec")  # what a kernel may import from
_PACKAGE: Final = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))  # noqa: PTH100, PTH118, PTH120
_MAGIC: Final = b"buda-emu kernel 2\n"
_MOST_BYTES: Final = 256 << 20  # of a file that is read or written
_LONGEST_WAIT: Final = 60.0  # seconds
_LOOK_AGAIN: Final = 0.02  # seconds; compiling takes far longer
_OF_NO_CONSEQUENCE: Final = {"NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT", "NUMBA_NUM_THREADS", "NUMBA_THREADING_LAYER"}


def cache_folder() -> "Path | None":
    """Return the folder of the compiled kernels of this package, made if need be; None where they cannot be kept,
    because there is no home directory or the folder is not the user's alone."""
    from pathlib import Path

    directory = _cache_directory(os.path.join(_PACKAGE, "arithmetic", "kernels"))  # noqa: PTH118
    if directory:
        return Path(directory)
    return None


def machine_code_file(function: Callable[..., Any], variant: str) -> str | None:
    """Return the path of the cache file for a function's machine code, whether or not it exists. `variant` names all
    that the code depends on besides the function, NUMBA_ variables and sources: kinds of arguments, processor. None
    where the code cannot be kept: its source is no file, it uses a variable of an enclosing function that no text
    determines, or there is no folder to write to."""
    code = function.__code__
    values = tuple(_text_of_constant(cell.cell_contents) for cell in function.__closure__ or ())
    if None in values or not os.path.isfile(code.co_filename):  # noqa: PTH113 - of every kernel
        return None
    directory = _cache_directory(os.path.dirname(code.co_filename))  # noqa: PTH120
    if not directory:
        return None
    settings = sorted(
        variable
        for variable in os.environ.items()
        if variable[0].startswith("NUMBA_") and variable[0] not in _OF_NO_CONSEQUENCE
    )
    constants = [value for value in code.co_consts if not isinstance(value, CodeType)]
    file = os.path.basename(code.co_filename)  # noqa: PTH119
    source = (file, function.__qualname__, code.co_firstlineno, code.co_code, constants, values)
    digest = hashlib.sha256(repr((source, variant, settings)).encode()).hexdigest()[:24]
    return os.path.join(directory, f"{re.sub('[^A-Za-z0-9_]', '', function.__name__)}-{digest}.o")  # noqa: PTH118


def read(file: str) -> bytes | None:
    """Return the machine code that a file of the cache holds; None where there is no such file, where it is damaged,
    and where another user may have put it there."""
    if not usable(os.path.dirname(file)):  # noqa: PTH120
        return None
    content = read_cache_file(file, _MAGIC, _MOST_BYTES)
    if content is None:
        return None
    return bytes(content)


@contextmanager
def compilation_lock(file: str) -> Generator[None]:
    """Hold the lock of a cache file during the block, so that of several processes about to compile a kernel only one
    does: read the file again inside the block, because another process may just have written it. The block runs without
    the lock after a wait of a minute, and where the system has no such locks."""
    try:
        import fcntl
    except ImportError:  # no POSIX
        yield
        return
    lock = f"{file}.lock"
    try:
        opened = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        yield
        return
    try:
        latest = time.monotonic() + _LONGEST_WAIT
        while time.monotonic() < latest:
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(_LOOK_AGAIN)
            except OSError:  # of a disk without locks
                break
        yield
    finally:
        with suppress(OSError):
            os.unlink(lock)  # noqa: PTH108 - who waits for it holds it open, and finds the machine code
        os.close(opened)


def write(file: str, code: bytes) -> None:
    """Write machine code to a file of the cache, completely or not at all; where that is not possible nothing is
    raised."""
    write_cache_file(file, _MAGIC, code, _MOST_BYTES)


def _text_of_constant(value: Any) -> str | None:
    """Return a text that determines a value which a kernel takes from an enclosing function: a number, a string or
    another kernel or helper; None for any other value."""
    if isinstance(value, int | float | str | bytes | np.generic):
        return repr(value)
    function = getattr(value, "py_func", None)
    if function is None:
        return None
    return f"{function.__module__}.{function.__qualname__}"


def _cache_directory(folder: str) -> str:
    """Return the cache folder of the kernels whose sources lie in `folder`, made if need be; "" when it cannot be
    written, or others could put files there."""
    try:
        directory = os.path.join(own_caches(), _folder_name(folder))  # noqa: PTH118
    except (OSError, RuntimeError):  # RuntimeError: no home directory
        return ""
    if usable(directory) and os.access(directory, os.W_OK):
        return directory
    return ""


def _folder_name(folder: str) -> str:
    """Return the name of the cache folder of kernels whose sources lie in `folder`: it contains the version and the
    hash of all sources that may be compiled in."""
    if _is_in_hashed_rooms(folder):
        folder = ""
    return f"kernels-{__version__}-{_remembered_sources_hash(folder)}"


@cache
def _remembered_sources_hash(folder: str) -> str:
    """Return `_sources_hash`, computed once for each folder in a process: that takes two milliseconds."""
    return _sources_hash(folder)


def _is_in_hashed_rooms(folder: str) -> bool:
    """Return whether a folder lies in one of the rooms whose sources are part of every hash (`_ROOMS`)."""
    return any(f"{folder}{os.sep}".startswith(os.path.join(_PACKAGE, room, "")) for room in _ROOMS)  # noqa: PTH118


def _sources_hash(folder: str) -> str:
    """Return the hash of all that compiled code depends on besides the processor and its own function: Python, numpy,
    numba, LLVM, and the sources of the rooms that kernels may import from. `folder` holds further sources, "" for
    none."""
    folders = [os.path.join(_PACKAGE, room) for room in _ROOMS]  # noqa: PTH118
    if folder and not _is_in_hashed_rooms(folder):
        folders.append(folder)
    digest = hashlib.sha256(f"{np.__version__} {sys.version} {sys.platform}".encode())
    for file in _compiler_version_files():
        digest.update(_read_bytes(file))
    for directory in sorted(folders):
        for path in sorted(_python_files(directory)):
            digest.update(os.path.relpath(path, directory).replace(os.sep, "/").encode())
            digest.update(_read_bytes(path))
    return digest.hexdigest()[:16]


def _read_bytes(path: str) -> bytes:
    """Return the bytes of a file."""
    with open(path, "rb") as file:  # noqa: PTH123
        return file.read()


def _compiler_version_files() -> list[str]:
    """Return the paths of the files that state numba's and llvmlite's versions; they are read as files because
    importing the packages takes longer than most runs."""
    return [package_file(package, "_version.py") for package in ("numba", "llvmlite")]


def _python_files(folder: str) -> Generator[str]:
    """Yield the paths of the Python files below a folder, in no particular order."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _python_files(entry.path)
            elif entry.name.endswith(".py"):
                yield entry.path
