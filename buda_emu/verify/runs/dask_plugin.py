"""What runs on a Dask worker: netlists in child processes, because a worker's threads can be neither stopped nor saved
from a crash. Children are kept for many netlists; there are at most as many as the worker has threads."""

import subprocess
import sys
import time
from multiprocessing import Pipe
from threading import Lock
from typing import Any

from distributed import WorkerPlugin, get_worker

from buda_emu.verify.result import CaseResult
from buda_emu.verify.runs.case import Case, unfinished
from buda_emu.verify.runs.workers import START_SECONDS, died, late


class Children(WorkerPlugin):  # type: ignore[misc]  # distributed carries no type information
    """The child processes of one Dask worker for one test run."""

    def __init__(self, mark: str) -> None:
        self.name = mark

    def setup(self, worker: Any) -> None:  # noqa: ARG002 - Dask's interface
        """When the worker gets to know the plugin."""
        self._idle: list[_Child] = []
        self._all: list[_Child] = []
        self._lock = Lock()

    def teardown(self, worker: Any) -> None:  # noqa: ARG002
        """When the test run or the worker ends."""
        with self._lock:
            for child in self._all:
                child.end()
            self._all.clear()
            self._idle.clear()

    def run(self, case: Case, timeout: float) -> CaseResult:
        """One netlist."""
        with self._lock:
            child = self._idle.pop() if self._idle else None
            if child is None:
                child = _Child()
                self._all.append(child)
        result = child.run(case, timeout)
        with self._lock:
            if child.alive:
                self._idle.append(child)
            elif child in self._all:
                self._all.remove(child)
        return result


def run_in_child(case: Case, mark: str, timeout: float) -> CaseResult:
    """The task: runs on a thread of the worker."""
    plugin: Any = get_worker().plugins[mark]
    return plugin.run(case, timeout)


class _Child:
    """A process that runs one case after the other (`verify.runs.child`)."""

    def __init__(self) -> None:
        self._here, there = Pipe()
        number = there.fileno()
        command = [sys.executable, "-m", "buda_emu.verify.runs.child", str(number)]
        self._process = subprocess.Popen(command, pass_fds=(number,), stdin=subprocess.DEVNULL)
        there.close()
        self._ready = False
        self.alive = True

    def run(self, case: Case, timeout: float) -> CaseResult:
        """Its result, or that it crashed or was late."""
        start = time.monotonic()
        try:
            if not self._ready:
                if not self._here.poll(START_SECONDS):
                    self.end()
                    text = f"its worker process did not start within {START_SECONDS:g} s"
                    return unfinished(case, "crashed", text, _since(start))
                self._here.recv()
                self._ready = True
                start = time.monotonic()
            self._here.send(case)
            if self._here.poll(timeout):
                return self._here.recv()
        except (EOFError, OSError):
            code = self.end()
            return unfinished(case, "crashed", died(code), _since(start))
        self.end()
        return unfinished(case, "timeout", late(timeout), _since(start))

    def end(self) -> int:
        """Take the process down; its exit code."""
        self.alive = False
        self._here.close()
        if self._process.poll() is None:
            try:
                return self._process.wait(0.5)  # it may just be dying by itself
            except subprocess.TimeoutExpired:
                self._process.kill()
        return self._process.wait()


def _since(start: float) -> float:
    return time.monotonic() - start
