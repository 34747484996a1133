"""What loading a large netlist gave, kept in the user's caches for the next time (docs/cache.md).

A file is named by a hash of everything that a result depends on: the document's bytes and name, architecture,
strictness, this package's version and sources, Python's version. Changed inputs find another file, so nothing is ever
out of date. A file is written beside its place and moved there when it is whole, and begins with the checksum of its
content. What cannot be read, or does not hold what it should, is as if it were not there; a run never fails for it.
The folder is used only where no other user can put files, or another folder in its place (`caches.distrust`).
"""

import os
import pickle
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Final

from buda_emu.caches import own_caches, usable
from buda_emu.netlist import nodes
from buda_emu.netlist.pickled import Result, pickled, unpickled
from buda_emu.version import __version__

MOST_BYTES: Final = 64 << 20  # of all files; those that were not used for longest go first
FOLDER: Final = "netlists"
_MAGIC: Final = b"buda-emu netlist 1\n"
_DIGEST_BYTES: Final = 32


class NetlistCache:
    """The place of one document's result."""

    def __init__(self, data: bytes, path: str, arch: str | None, strict: bool) -> None:
        self._data = data
        self._file = ""
        directory = _directory()
        if directory:
            self._file = os.path.join(directory, _name(data, path, arch, strict))  # noqa: PTH118 - no pathlib here

    def read(self) -> Result | None:
        """What was kept, None where that is nothing or not to be used."""
        if not self._file:
            return None
        try:
            with open(self._file, "rb") as file:  # noqa: PTH123
                data = file.read(MOST_BYTES + 1)
            payload = memoryview(data)[len(_MAGIC) + _DIGEST_BYTES :]
            if len(data) > MOST_BYTES or data[: -len(payload)] != _MAGIC + _digest(payload):
                return None
            result = unpickled(payload, self._data)
            os.utime(self._file)  # used: it stays
        except Exception:  # noqa: BLE001 - a pickle that is not ours can raise anything
            return None
        return result

    def write(self, result: Result, root: nodes.Node) -> None:
        """Keep a result; `root` is the tree that it was read from."""
        if not self._file or not usable(os.path.dirname(self._file)):  # noqa: PTH120
            return
        own = f"{self._file}.{os.getpid()}-{time.perf_counter_ns()}"
        with suppress(OSError, RecursionError, pickle.PicklingError):
            payload = pickled(result, root)
            try:
                with os.fdopen(os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                    file.write(_MAGIC + _digest(payload))
                    file.write(payload)
                os.replace(own, self._file)  # noqa: PTH105 - whole, whoever else writes
            except OSError:
                with suppress(OSError):
                    os.unlink(own)  # noqa: PTH108
                raise
            _make_room(os.path.dirname(self._file))  # noqa: PTH120


def _directory() -> str:
    """The folder, made if need be; "" when it cannot be written or is open to others."""
    try:
        directory = own_caches() / FOLDER
    except RuntimeError:  # no home directory
        return ""
    return str(directory) if usable(directory) else ""


def _name(data: bytes, path: str, arch: str | None, strict: bool) -> str:
    import hashlib

    about = repr((__version__, _sources(), sys.version, path, arch, strict))
    digest = hashlib.sha256(about.encode("utf-8", "surrogateescape"))
    digest.update(data)
    return digest.hexdigest()


@cache
def _sources() -> tuple[tuple[str, int, int], ...]:
    """Name, size and time of every source that a result depends on: an edit without a new version is another reader."""
    package = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120
    try:
        rooms = [os.path.join(package, room) for room in ("netlist", "spec")]  # noqa: PTH118
        return tuple(sorted(found for room in rooms for found in _files(room)))
    except OSError:  # the package is no folder: it is not edited either
        return ()


def _files(directory: str) -> Iterator[tuple[str, int, int]]:
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _files(entry.path)
            elif entry.name.endswith(".py"):
                found = entry.stat()
                yield entry.path, found.st_size, found.st_mtime_ns


def _digest(payload: "bytes | memoryview") -> bytes:
    import hashlib

    return hashlib.sha256(payload).digest()


def _make_room(directory: str) -> None:
    """Remove what was not used for longest, so that all files together stay below the limit."""
    with os.scandir(directory) as entries:
        found = sorted((entry.stat().st_mtime_ns, entry.stat().st_size, entry.path) for entry in entries)
    excess = sum(size for _, size, _ in found) - MOST_BYTES
    for _, size, path in found:
        if excess <= 0:
            return
        with suppress(OSError):  # another process was faster
            os.unlink(path)  # noqa: PTH108
        excess -= size
