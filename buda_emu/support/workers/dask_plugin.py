"""The part of a job that runs on a Dask worker: items in child processes, because a worker's threads can be neither
stopped nor saved from a crash. Children are kept for many items; there are at most as many as the worker has
threads."""

import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from distributed import WorkerPlugin, get_worker

from buda_emu.support.errors import HostError
from buda_emu.support.workers import wire
from buda_emu.support.workers.job import Job, Lost, shares
from buda_emu.support.workers.pool import START_SECONDS, Answer, Process, death_reason, timeout_reason
from buda_emu.support.workers.wire import pack, unpack


class Children(WorkerPlugin):  # type: ignore[misc]  # distributed carries no type information
    """The child processes of one Dask worker for one job. The contents of the job's files travel with this object."""

    def __init__(self, name: str, job: bytes, contents: dict[str, bytes]) -> None:
        self.name = name
        self._job = job
        self._contents = contents

    def setup(self, worker: Any) -> None:
        """Unpack and check the job, and write its files, when the plugin is registered on the worker."""
        job = unpack(self._job)
        if not isinstance(job, Job):
            raise HostError("workers are told a job first")
        job.check()
        self._folder = ""
        if self._contents:
            self._folder = str(Path(worker.local_directory) / self.name)
            wire.write(self._contents, Path(self._folder))
        self._made = job
        self._idle: list[_Child] = []
        self._all: list[_Child] = []
        self._lock = Lock()

    def teardown(self, worker: Any) -> None:  # noqa: ARG002 - Dask's interface
        """End all children when the job or the worker ends."""
        with self._lock:
            for child in self._all:
                child.end()
            self._all.clear()
            self._idle.clear()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def answer(self, work_item: Any, values: Mapping[int, bytes], timeout: float | None) -> Any:
        """Return the answer of a free child to an item. `values`: packed values that the item shares with others."""
        with self._lock:
            child = self._idle.pop() if self._idle else None
            if child is None:
                child = _Child(self._made, self._folder)
                self._all.append(child)
        answer = child.answer(work_item, values, timeout)
        with self._lock:
            if child.alive:
                self._idle.append(child)
            elif child in self._all:
                self._all.remove(child)
        return answer


def answer_in_child(work_item: bytes, plugin_name: str, timeout: float | None, *values: bytes) -> bytes:
    """Let a child process answer a packed item, from a thread of the Dask worker, and return the packed answer.
    `plugin_name` is that of the job's `Children` on this worker; `values` are the shared values of the item, in its
    order; `timeout` is in seconds."""
    plugin: Any = get_worker().plugins[plugin_name]
    content = unpack(work_item)
    return pack(plugin.answer(content, dict(zip(shares(content), values, strict=True)), timeout))


class _Child:
    """A child process that works on one item after the other."""

    def __init__(self, job: Job, folder: str) -> None:
        self._process = Process(job, folder)
        self._ready = False
        self.alive = True

    def answer(self, work_item: Any, values: Mapping[int, bytes], timeout: float | None) -> Answer:
        """Return the answer of the process to an item, or `Lost` where it crashed or was late."""
        start = time.monotonic()
        try:
            if not self._ready:
                if not self._process.connection.poll(START_SECONDS):
                    self.end()
                    text = f"its worker process did not start within {START_SECONDS:g} s"
                    return Lost("crashed", text, time.monotonic() - start)
                self._process.await_ready()
                self._ready = True
                start = time.monotonic()
            self._process.send(work_item, values)
            if self._process.connection.poll(timeout):
                return self._process.receive()
        except (EOFError, OSError):
            return Lost("crashed", death_reason(self.end(grace=0.5)), time.monotonic() - start)
        self.end()
        return Lost("timeout", timeout_reason(timeout or 0.0), time.monotonic() - start)

    def end(self, grace: float = 0.0) -> int:
        """End the process, after `grace` seconds in which it may exit by itself, and return its exit code."""
        self.alive = False
        return self._process.end(grace)
