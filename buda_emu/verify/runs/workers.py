"""Tests on worker processes: a netlist that crashes or hangs its worker costs that netlist only.

Workers are spawned, never forked, and kept for many netlists. Results are handed out as they come and returned in the
order of the cases. The pool is our own: `concurrent.futures` gives up as a whole when one process dies.
"""

import multiprocessing
import os
import select
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import Final

from buda_emu.errors import InternalError
from buda_emu.records import dataclass
from buda_emu.verify.result import CaseResult, Status
from buda_emu.verify.runs.case import Case, unfinished

Run = Callable[[Case], CaseResult]
OnResult = Callable[[int, CaseResult], None]
START_SECONDS: Final = 120.0
"""For a worker to import what it needs."""
_IDLE: Final = -1


def run_all(
    cases: Sequence[Case],
    workers: int,
    *,
    timeout: float,
    on_result: OnResult = lambda _index, _result: None,
    maxfail: int | None = None,
    run: Run | None = None,
) -> list[CaseResult]:
    """Run every case on so many processes, each for at most `timeout` seconds.

    `run`: by default `run_case`, which the workers import alone.
    `on_result` is told of each result as it comes. `maxfail`: begin nothing after so many cases that did not pass;
    the result then lacks the cases that were not run. Raises InternalError when workers cannot be started;
    KeyboardInterrupt ends all workers at once and goes on to the caller.
    """
    pool = _Pool(cases, timeout, run, on_result, maxfail)
    try:
        pool.work(min(max(1, workers), len(cases)))
    finally:
        pool.end()
    return [pool.results[index] for index in sorted(pool.results)]


@dataclass(slots=True)
class _Worker:
    """One process; `case` is the number of the one it runs, _IDLE when there is none for it, None while it starts."""

    process: BaseProcess
    connection: Connection
    case: int | None
    since: float


class _Pool:
    def __init__(
        self, cases: Sequence[Case], timeout: float, run: Run | None, on_result: OnResult, maxfail: int | None
    ) -> None:
        self.results: dict[int, CaseResult] = {}
        self._cases = cases
        self._timeout = timeout
        self._run = run
        self._on_result = on_result
        self._left = maxfail  # that may yet fail
        self._waiting = list(range(len(cases)))[::-1]
        self._workers: list[_Worker] = []
        self._any_started = False
        self._context = multiprocessing.get_context("spawn")

    def work(self, most: int) -> None:
        """Until every case has its result, or the first has failed."""
        for _ in range(most):
            self._start()
        while self._waiting or any(worker.case is not None and worker.case >= 0 for worker in self._workers):
            handles = [handle for worker in self._workers for handle in (worker.connection, worker.process.sentinel)]
            ready = set(wait(handles, self._seconds_left()))
            for worker in list(self._workers):
                if worker.connection in ready or worker.process.sentinel in ready:
                    self._attend(worker)
            self._end_the_late()

    def end(self) -> None:
        """Take every worker down."""
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            self._bury(worker)
        self._workers.clear()

    def _start(self) -> None:
        here, there = self._context.Pipe()
        process = self._context.Process(target=serve, args=(there, self._run), daemon=True, name="buda-emu worker")
        try:
            process.start()
        except OSError as error:  # no processes or no memory left
            here.close()
            there.close()
            self._not_started(f"could not start ({error.strerror or error})")
            return
        there.close()
        self._workers.append(_Worker(process, here, None, time.monotonic()))

    def _seconds_left(self) -> float | None:
        """Until the first deadline."""
        deadline = min((self._deadline(worker) for worker in self._workers), default=0.0)
        return None if deadline == float("inf") else max(0.0, deadline - time.monotonic())

    def _deadline(self, worker: _Worker) -> float:
        if worker.case == _IDLE:
            return float("inf")
        return worker.since + (START_SECONDS if worker.case is None else self._timeout)

    def _attend(self, worker: _Worker) -> None:
        """A worker is ready, has a result, or is dead."""
        try:
            if not worker.connection.poll():
                raise EOFError  # its process ended without a word
            result = worker.connection.recv()
        except (EOFError, OSError):
            self._lost(worker)
            return
        self._any_started = True
        if worker.case is not None and worker.case >= 0:
            self._finished(worker.case, result)
        self._give(worker)

    def _give(self, worker: _Worker) -> None:
        if not self._waiting:
            worker.case = _IDLE
            return
        worker.case, worker.since = self._waiting.pop(), time.monotonic()
        with suppress(OSError):  # a worker that died in between is seen by its sentinel
            worker.connection.send(self._cases[worker.case])

    def _finished(self, number: int, result: CaseResult) -> None:
        self.results[number] = result
        self._on_result(number, result)
        if self._left is None or result.status in ("passed", "skipped"):
            return
        self._left -= 1
        if self._left <= 0:
            self._waiting.clear()
            for worker in self._workers:
                if worker.case != number:
                    worker.case = _IDLE  # whatever it does is not waited for

    def _lost(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        self._bury(worker)
        if worker.case is None:
            self._not_started(f"could not start ({how_it_ended(worker.process.exitcode)})")
            return
        if worker.case >= 0:
            text = died(worker.process.exitcode)
            self._finished(worker.case, self._unfinished(worker, "crashed", text))
        if self._waiting:
            self._start()

    def _not_started(self, how: str) -> None:
        """It costs one netlist, so that a machine that can start no more processes comes to an end. As long as none
        has ever started, the others may; raises InternalError when none does."""
        if not self._any_started:
            if not self._workers:
                raise InternalError(f"a worker process {how}")
            return
        if self._waiting:
            number = self._waiting.pop()
            text = f"the worker process for it {how}"
            self._finished(number, unfinished(self._cases[number], "crashed", text, 0.0))
        if self._waiting:
            self._start()

    def _end_the_late(self) -> None:
        now = time.monotonic()
        for worker in [item for item in self._workers if self._deadline(item) <= now]:
            worker.process.kill()
            self._bury(worker)
            self._workers.remove(worker)
            if worker.case is None:
                self._not_started(f"did not start within {START_SECONDS:.0f} s")
                continue
            text = late(self._timeout)
            self._finished(worker.case, self._unfinished(worker, "timeout", text))
            if self._waiting:
                self._start()

    def _unfinished(self, worker: _Worker, status: Status, text: str) -> CaseResult:
        assert worker.case is not None
        return unfinished(self._cases[worker.case], status, text, time.monotonic() - worker.since)

    @staticmethod
    def _bury(worker: _Worker) -> None:
        worker.process.join()
        worker.connection.close()


def died(code: int | None) -> str:
    """What is said of a case whose process ended without its result."""
    return f"its worker process died ({how_it_ended(code)})"


def late(timeout: float) -> str:
    """What is said of a case that was not done in time."""
    return f"took longer than {timeout:g} s"


def how_it_ended(code: int | None) -> str:
    """An exit code in words."""
    if code is not None and code < 0:
        with suppress(ValueError):
            return f"signal {signal.Signals(-code).name}"
    return f"exit code {code}"


def serve(connection: Connection, run: Run | None = None) -> None:
    """The work of a worker process: cases in, results out, until the pool is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the pool, which ends its workers
    if run is None:
        from buda_emu.verify.runs.run_case import run_case as run
    Thread(target=_end_with_parent, args=(connection,), daemon=True).start()
    with suppress(EOFError, OSError):
        connection.send("ready")
        while True:
            connection.send(run(connection.recv()))


def _end_with_parent(connection: Connection) -> None:
    """A netlist that hangs must not outlive a pool that was killed."""
    watched = select.poll()
    watched.register(connection.fileno(), 0)  # nothing but that the other end is closed
    watched.poll()
    os._exit(1)
