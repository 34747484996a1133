"""Runs the command of a reduction on one netlist after the other, on all cores, and says how each ends."""

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from buda_emu.errors import HostError
from buda_emu.records import dataclass

PLACE: Final = "{}"
"""Where the file's name goes in a command; a command without it gets the name at its end."""
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.,+@%:/=-]")
"""A character that a shell may read as something else than itself, within quotes of either kind or without."""
_LONGEST_NAME: Final = 100


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the command ended: its exit code, negative for a signal; None where it took longer than it may."""

    code: int | None

    @property
    def fails(self) -> bool:
        """Anything but success."""
        return self.code != 0

    def __str__(self) -> str:
        if self.code is None:
            return "no end within the time limit"
        return f"signal {-self.code}" if self.code < 0 else f"exit code {self.code}"


class Trials:
    """Runs a shell command on texts. Each trial has a folder of its own, where the file bears the netlist's name with
    `_` for each character that a shell may not read as itself: a command is free to put the place of the name in quotes
    of its own. The folder and all processes of the command are gone when the trial ends.

    Raises HostError where the folder of temporary files has such a character.
    """

    def __init__(self, command: str, name: str, timeout: float, workers: int) -> None:
        self.count = 0
        self.workers = workers
        self._command = command if PLACE in command else f"{command} {PLACE}"
        self._name = _UNSAFE.sub("_", name.replace("/", "_"))[-_LONGEST_NAME:]
        self._parent = tempfile.gettempdir()
        if character := _UNSAFE.search(self._parent):
            raise HostError(
                f"the folder of temporary files, {self._parent!r}, has {character[0]!r} in its name, which a shell may "
                "not read as itself; set TMPDIR to another folder"
            )
        self._timeout = timeout
        self._pool = ThreadPoolExecutor(workers)
        self._running: set[subprocess.Popen[bytes]] = set()

    def run(self, texts: Sequence[str]) -> list[Outcome]:
        """How the command ends on each, in their order; as many at once as there are workers."""
        self.count += len(texts)
        return list(self._pool.map(self._run, texts))

    def _run(self, text: str) -> Outcome:
        with tempfile.TemporaryDirectory(
            prefix="buda-emu-reduce-", dir=self._parent, ignore_cleanup_errors=True
        ) as folder:
            path = Path(folder) / self._name
            path.write_text(text, encoding="utf-8")
            command = self._command.replace(PLACE, str(path))
            with self._process(command) as process:
                try:
                    return Outcome(process.wait(self._timeout))
                except subprocess.TimeoutExpired:
                    return Outcome(None)

    @contextmanager
    def _process(self, command: str) -> "Generator[subprocess.Popen[bytes]]":
        nothing = subprocess.DEVNULL
        process = subprocess.Popen(
            ["/bin/sh", "-c", command], stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True
        )
        self._running.add(process)
        try:
            yield process
        finally:
            _kill(process)
            process.wait()
            self._running.discard(process)

    def close(self) -> None:
        """Ends what still runs."""
        for process in tuple(self._running):
            _kill(process)
        self._pool.shutdown(cancel_futures=True)


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """The process and all that it started, which is a session of its own."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
