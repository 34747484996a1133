"""A worker process, as seen by the process that started it."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing import Pipe
from typing import Any, Final

from buda_emu.workers.job import Job, shares
from buda_emu.workers.wire import packed, unpacked

START_SECONDS: Final = 120.0
"""For a worker to import what it needs."""
_LAST_STANDARD: Final = 2  # standard error's descriptor
_MODULE: Final = "buda_emu.workers.child"


class Process:
    """One process; it has its job from the start. Raises OSError when none can be started, and HostError for a job that
    is not one of `JOBS`."""

    def __init__(self, job: Job, folder: str = "") -> None:
        """`folder`: of the job's files on another machine."""
        job.check()
        self._has: set[int] = set()
        self.connection, there = Pipe()
        number = there.fileno()
        path = os.pathsep.join(item or os.getcwd() for item in sys.path)  # noqa: PTH109
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", _MODULE, str(number)],
                pass_fds=(number, *_handed_over()),
                stdin=None if _is_file(0) else subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path},
            )
        except OSError:
            self.connection.close()
            raise
        finally:
            there.close()
        with suppress(OSError):  # one that died in between is seen when it is read from
            self.connection.send_bytes(packed((job, folder)))

    @property
    def number(self) -> int:
        """Of the process."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether it runs no more."""
        return self._process.poll() is not None

    def is_ready(self) -> None:
        """Take what it says when it has started. Raises EOFError or OSError when it is dead."""
        self.connection.recv_bytes()

    def send(self, item: Any, values: Mapping[int, bytes]) -> None:
        """Give it an item, and of the packed `values` that it shares with others those that it has not had. One that is
        dead is found out by `receive`."""
        new = {number: values[number] for number in shares(item) if number not in self._has}
        self._has.update(new)
        with suppress(OSError):
            self.connection.send_bytes(packed((new, item)))

    def receive(self) -> tuple[bool, Any]:
        """Its answer: (True, result) or (False, BudaError). Raises EOFError or OSError when it is dead."""
        return self.answer(self.connection.recv_bytes())

    @staticmethod
    def answer(data: bytes) -> tuple[bool, Any]:
        """An answer that was received."""
        return unpacked(data)

    def end(self, grace: float = 0.0) -> int:
        """Take it down, after `grace` seconds in which it may die by itself; its exit code."""
        self.connection.close()
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(grace)
        self._process.kill()
        return self._process.wait()


def _handed_over() -> list[int]:
    """Descriptors of files that whoever started this process handed over: /dev/fd/63 is the same file in a worker."""
    try:
        names = os.listdir("/proc/self/fd")  # noqa: PTH208 - numbers, not paths
    except OSError:  # no such list on this system
        return []
    return [number for number in map(int, names) if number > _LAST_STANDARD and _is_file(number)]


def _is_file(number: int) -> bool:
    try:
        return stat.S_ISREG(os.fstat(number).st_mode) and os.get_inheritable(number)
    except OSError:
        return False


def died(code: int) -> str:
    """What is said of an item whose process ended without its result."""
    return f"its worker process died ({how_it_ended(code)})"


def late(timeout: float) -> str:
    """What is said of an item that was not done in time."""
    return f"took longer than {timeout:g} s"


def how_it_ended(code: int) -> str:
    """An exit code in words."""
    if code < 0:
        with suppress(ValueError):
            return f"signal {signal.Signals(-code).name}"
    return f"exit code {code}"
