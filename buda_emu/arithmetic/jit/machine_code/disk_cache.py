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
    """Return the folder of the project's compiled kernels; None where they cannot be kept."""
    from pathlib import Path

    directory = _directory(os.path.join(_PACKAGE, "arithmetic", "kernels"))  # noqa: PTH118
    if directory:
        return Path(directory)
    return None


def place(function: Callable[..., Any], variant: str) -> str | None:
    """Return the file for a function's machine code; None where it cannot be kept. `variant` names all that the code
    depends on besides the function."""
    code = function.__code__
    values = tuple(_constant(cell.cell_contents) for cell in function.__closure__ or ())
    if None in values or not os.path.isfile(code.co_filename):  # noqa: PTH113 - of every kernel
        return None
    directory = _directory(os.path.dirname(code.co_filename))  # noqa: PTH120
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
def alone(file: str) -> Generator[None]:
    """Let processes that are about to make the same machine code do so one after the other: look again inside the
    block. None waits longer than a minute, nor where nobody can be waited for."""
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
    """Keep machine code in a file, if that can be."""
    write_cache_file(file, _MAGIC, code, _MOST_BYTES)


def _constant(value: Any) -> str | None:
    """Return a value from the scope around a function as text; None where no text determines the value."""
    if isinstance(value, int | float | str | bytes | np.generic):
        return repr(value)
    function = getattr(value, "py_func", None)
    if function is None:
        return None
    return f"{function.__module__}.{function.__qualname__}"


def _directory(folder: str) -> str:
    """Return the folder for compiled kernels whose source lies in `folder`, made if need be; "" when it cannot be
    written, or others could put files there."""
    try:
        directory = os.path.join(own_caches(), _folder_name(folder))  # noqa: PTH118
    except (OSError, RuntimeError):  # RuntimeError: no home directory
        return ""
    if usable(directory) and os.access(directory, os.W_OK):
        return directory
    return ""


def _folder_name(folder: str) -> str:
    """Return the name of the cache folder of sources in `folder`, which changes with version and sources."""
    if _in_package(folder):
        folder = ""
    return f"kernels-{__version__}-{_known_hash(folder)}"


@cache
def _known_hash(folder: str) -> str:
    """Return `_sources_hash`, computed once by a process: that takes two milliseconds."""
    return _sources_hash(folder)


def _in_package(folder: str) -> bool:
    """Return whether a folder is a part of the rooms whose sources count for every kernel."""
    return any(f"{folder}{os.sep}".startswith(os.path.join(_PACKAGE, room, "")) for room in _ROOMS)  # noqa: PTH118


def _sources_hash(folder: str) -> str:
    """Return the hash of all that compiled code depends on, besides the processor and its own function. `folder` holds
    further sources, "" for none."""
    folders = [os.path.join(_PACKAGE, room) for room in _ROOMS]  # noqa: PTH118
    if folder and not _in_package(folder):
        folders.append(folder)
    digest = hashlib.sha256(f"{np.__version__} {sys.version} {sys.platform}".encode())
    for file in _compiler():
        digest.update(_content(file))
    for directory in sorted(folders):
        for path in sorted(_sources(directory)):
            digest.update(os.path.relpath(path, directory).replace(os.sep, "/").encode())
            digest.update(_content(path))
    return digest.hexdigest()[:16]


def _content(path: str) -> bytes:
    """Return the bytes of a file."""
    with open(path, "rb") as file:  # noqa: PTH123
        return file.read()


def _compiler() -> list[str]:
    """Return the files that state numba's and LLVM's versions: importing the packages takes longer than most runs."""
    return [package_file(package, "_version.py") for package in ("numba", "llvmlite")]


def _sources(folder: str) -> Generator[str]:
    """Yield the Python files below a folder."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _sources(entry.path)
            elif entry.name.endswith(".py"):
                yield entry.path
