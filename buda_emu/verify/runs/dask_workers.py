"""Tests on an existing Dask cluster: netlists, references and defaults travel by content, results come back in order.

The same promises as `verify.runs.workers`: a netlist that crashes or hangs costs that netlist only, because each slot
of the cluster runs netlists in a child process of its own (`verify.runs.dask_plugin`).
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final
from uuid import uuid4

from buda_emu.errors import HostError
from buda_emu.verify.result import CaseResult
from buda_emu.verify.runs.case import Case, unfinished
from buda_emu.version import __version__

CONNECT_SECONDS: Final = 5
NO_WORKERS_SECONDS: Final = 30
"""For which a cluster may be without workers: whoever started them starts new ones within this time, or never."""
_LOOK_SECONDS: Final = 1
OnResult = Callable[[int, CaseResult], None]


def run_all(
    cases: Sequence[Case],
    address: str,
    *,
    timeout: float,
    on_result: OnResult = lambda _index, _result: None,
    maxfail: int | None = None,
) -> list[CaseResult]:
    """Run every case on the cluster whose scheduler is at `address` (tcp://host:8786), each for at most `timeout` s.

    `on_result` is told of each result as it comes; with `maxfail` nothing is waited for after so many cases that
    did not pass. What a Dask worker ran when it was lost is run again on another one, as often as the scheduler's
    `allowed-failures` says, and has then crashed. Raises HostError when Dask is not installed, the cluster is not
    there, has no workers or runs another version of buda_emu.
    """
    client = _connect(address)
    try:
        _check_workers(client, address)
        return _Run(client, cases, on_result, maxfail).work(timeout)
    finally:
        client.close()


def _connect(address: str) -> Any:
    try:
        import distributed
    except ImportError:
        raise HostError("--dask needs the package distributed: pip install 'buda-emu[dask]'") from None

    async def identity() -> dict[str, Any]:
        """A client that finds nobody would try for long after it has been given up."""
        scheduler: Any = distributed.rpc(address, timeout=CONNECT_SECONDS)
        async with scheduler:
            return await asyncio.wait_for(scheduler.identity(), CONNECT_SECONDS)

    try:
        kind = asyncio.run(identity())["type"]
    except ValueError as error:
        raise HostError(f"--dask {address}: {error}; addresses are like tcp://host:8786") from None
    except (OSError, TimeoutError):
        raise HostError(f"no Dask scheduler answers at {address} within {CONNECT_SECONDS} s") from None
    if kind != "Scheduler":
        raise HostError(f"at {address} is a Dask {kind.lower()}, not a scheduler")
    return distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)


def _check_workers(client: Any, address: str) -> None:
    """Raises HostError unless there are workers with this version of buda_emu."""
    versions: dict[str, str | BaseException] = client.run(version, on_error="return")
    if not versions:
        raise HostError(f"the Dask cluster at {address} has no workers")
    for worker, found in versions.items():
        if isinstance(found, BaseException):
            raise HostError(f"Dask worker {worker} cannot use buda-emu: {type(found).__name__}: {found}")
        if found != __version__:
            raise HostError(
                f"Dask worker {worker} has buda-emu {found}, this is buda-emu {__version__}: install the same there"
            )


def version() -> str:
    """Of buda_emu where this is run."""
    return __version__


class _Run:
    """The cases of one test run on a cluster."""

    def __init__(self, client: Any, cases: Sequence[Case], on_result: OnResult, maxfail: int | None) -> None:
        self._client = client
        self._cases = cases
        self._on_result = on_result
        self._left = maxfail  # that may yet fail
        self._stopped = False
        self._done: SimpleQueue[int] = SimpleQueue()
        self._results: dict[int, CaseResult] = {}
        self._mark = uuid4().hex  # two users of one cluster must not share children or results

    def work(self, timeout: float) -> list[CaseResult]:
        """Send all, take results until there are all, or the first has failed."""
        from buda_emu.verify.runs.dask_plugin import Children

        self._client.register_plugin(Children(self._mark), name=self._mark)
        futures: list[Any] = []
        try:
            for index, case in enumerate(self._cases):
                futures.append(self._sent(index, case, timeout))
            while len(self._results) < len(self._cases) and not self._stopped:
                index = self._next()
                if index is None:
                    self._give_up()
                else:
                    self._finished(index, _result(futures[index], self._cases[index]))
        finally:
            with suppress(Exception):  # the cluster may be gone: what went wrong before is the error
                self._client.cancel(futures)
                self._client.unregister_worker_plugin(self._mark)
        return [self._results[index] for index in sorted(self._results)]

    def _sent(self, index: int, case: Case, timeout: float) -> Any:
        from buda_emu.verify.runs.dask_plugin import run_in_child

        key = f"buda-emu-{self._mark}-{index}"
        future = self._client.submit(run_in_child, by_content(case), self._mark, timeout, key=key, pure=False)

        def done(_future: Any) -> None:
            self._done.put(index)

        future.add_done_callback(done)
        return future

    def _next(self) -> int | None:
        """The number of a case that is done; None when the cluster has lost all its workers."""
        alone_since = None
        while True:
            with suppress(Empty):
                return self._done.get(timeout=_LOOK_SECONDS)
            if self._client.status == "running" and self._client.scheduler_info()["workers"]:
                alone_since = None
                continue
            alone_since = alone_since or time.monotonic()
            if time.monotonic() - alone_since > NO_WORKERS_SECONDS:
                return None

    def _finished(self, index: int, result: CaseResult) -> None:
        self._results[index] = result
        self._on_result(index, result)
        if self._left is not None and result.status not in ("passed", "skipped"):
            self._left -= 1
            self._stopped = self._left <= 0

    def _give_up(self) -> None:
        for index, case in enumerate(self._cases):
            if index not in self._results and not self._stopped:
                self._finished(index, unfinished(case, "crashed", "the Dask cluster has lost all its workers", 0.0))


def _result(future: Any, case: Case) -> CaseResult:
    if future.status == "finished":
        return future.result()
    if future.status == "error":
        error = future.exception()
        text = f"its Dask worker was lost, or could not run it ({type(error).__name__}: {error})"
    else:
        text = f"the Dask scheduler was lost, or dropped it (the task is {future.status})"
    return unfinished(case, "crashed", text, 0.0)


def by_content(case: Case) -> Case:
    """The same case without any path that another machine would have to know."""
    text = case.text
    if text is None:
        with suppress(OSError):  # a file that is not there is said by the worker, as it is for local ones
            text = Path(case.path).read_bytes()
    reference = case.reference.by_content() if case.reference is not None else None
    return replace(case, text=text, reference=reference)
