"""The lock of a folder that one process at a time may write to; it ends with its holder, however that ends."""

import os
import time
import weakref
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from buda_emu.support.errors import HostError


class FolderLock:
    """A lock on a folder, held until it is released or this object is collected. It leaves no file.

    Raises HostError if another process holds the lock, with the number of that process where the system tells it. Has
    no effect where the system or the file system has no such locks.
    """

    def __init__(self, folder: Path) -> None:
        self._finalizer: weakref.finalize[[int], FolderLock] | None = None
        try:
            import fcntl

            descriptor = os.open(folder, os.O_RDONLY)
        except (ImportError, OSError):  # OSError: a folder that may not be listed
            return
        self._finalizer = weakref.finalize(self, os.close, descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HostError(
                f"{folder}: another process{_holder(descriptor)} writes to this folder: wait until it ends, or give "
                "another folder"
            ) from None
        except OSError:
            return

    def release(self) -> None:
        """Release the lock, so that another process can take it."""
        if self._finalizer is not None:
            self._finalizer()


@contextmanager
def folder_to_ourselves(path: Path) -> Generator[None, None, None]:
    """Hold the lock of a folder during the block. If another process holds it, wait for up to `_MOST_SECONDS`, since
    this lock is only held for short work, and then raise HostError."""
    end = time.monotonic() + _MOST_SECONDS
    while True:
        try:
            lock = FolderLock(path)
            break
        except HostError:
            if time.monotonic() > end:
                raise
        time.sleep(_PAUSE_SECONDS)
    try:
        yield
    finally:
        lock.release()


_MOST_SECONDS: Final = 30.0
"""Time to wait for others that write to a folder. Each of them holds it for milliseconds."""
_PAUSE_SECONDS: Final = 0.02
"""Time between two attempts: with more, a run waits longer than needed; with less, it takes processor time."""


def _holder(descriptor: int) -> str:
    """Return the process that holds the lock of an open file in words; "" where Linux does not tell it."""
    status = os.fstat(descriptor)
    place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    with suppress(OSError):
        for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
            fields = line.split()  # 1: FLOCK ADVISORY WRITE 1234 08:01:5678 0 EOF, as proc_locks(5) says
            if fields[1] == "FLOCK" and fields[5] == place:
                return f" (number {fields[4]})"
    return ""
