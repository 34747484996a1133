"""Workers that each take one item and work on it for long, all at the same time: the parts of one machine.

They talk to each other and to the process that started them by connections of their own, not through a scheduler.
"""

from collections.abc import Sequence
from typing import Any

from buda_emu.support.workers.job import Job, Lost, Workers
from buda_emu.support.workers.pool import Answer, Process, death_reason

_FATE_SECONDS = 3.0  # until a worker that hung up has said how it ended


class Actors:
    """A group of workers, one for each item, in the order of the items. Closing it ends them at once. Raises OSError
    where no process can be started, and the errors of `dask_cluster.Cluster`."""

    def __init__(self, job: Job, items: Sequence[Any], workers: Workers) -> None:
        self._processes: list[Process] = []
        self._cluster: Any = None
        if workers.dask is not None:
            from buda_emu.support.workers.dask_cluster import Cluster

            self._cluster = Cluster(job, workers.dask, None, {})
            for work_item in items:
                self._cluster.send(work_item)
            return
        try:
            for work_item in items:
                self._processes.append(Process(job))
                self._processes[-1].send(work_item, {})
        except OSError:
            self.close()
            raise

    def has_ended(self, number: int) -> bool:
        """Return whether the worker of that number has stopped running."""
        if self._cluster is not None:
            return bool(self._cluster.is_done(number))
        return self._processes[number].has_ended

    def fate(self, number: int) -> str:
        """Return in words how a worker ended; "" where that is not known."""
        if self._cluster is not None:
            answer = self._cluster.answer_of(number, _FATE_SECONDS)
        else:
            answer = _answer(self._processes[number])
        if isinstance(answer, Lost):
            return answer.text
        if answer is None or answer[0]:
            return ""
        return str(answer[1])

    def close(self) -> None:
        """End all workers at once."""
        for process in self._processes:
            process.end()
        self._processes.clear()
        if self._cluster is not None:
            self._cluster.close()


def _answer(process: Process) -> Answer | None:
    """Return the answer of a process, or how it died; None where it has not ended within some seconds."""
    try:
        while process.connection.poll(_FATE_SECONDS):
            data = process.connection.recv_bytes()
            if data != b"ready":
                return process.answer(data)
    except (EOFError, OSError):
        return Lost("crashed", death_reason(process.end(grace=0.5)), 0.0)
    return None
