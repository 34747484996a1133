"""Jobs on an existing Dask cluster, with the promises of `pool.py`: each slot of the cluster works on items in a child
process of its own (`dask_plugin.py`), so one that crashes or hangs costs its item only.

Connections are encrypted and certificates asked for as the user's configuration of Dask says (`distributed.comm.tls`,
docs/run/workers.md).
"""

import asyncio
import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, cast
from uuid import uuid4

from buda_emu.support.errors import BudaError, HostError
from buda_emu.support.version import __version__
from buda_emu.support.workers.job import Job, Lost, shares
from buda_emu.support.workers.pool import Answer
from buda_emu.support.workers.wire import pack, unpack

CONNECT_SECONDS: Final = 5  # until a scheduler has to have answered
NO_WORKERS_SECONDS: Final = 30
"""Time for which a cluster may be without workers: its owner starts new ones within this time, or never."""
_LOOK_SECONDS: Final = 1  # between looks whether the cluster still has workers
_TO_BE_DONE: Final = ("pending", "lost")  # what Dask says of tasks
_MOST_CHARACTERS: Final = 200  # of an error in a message of one line
_AHEAD: Final = 4  # items that wait at the scheduler for each thread of the cluster


@contextmanager
def connect(address: str) -> Generator[Any, None, None]:
    """Give a client of the cluster whose scheduler is at `address` (tcp://host:8786), and close it after the block.
    Raises HostError when Dask is not installed, or when the cluster is not there, has no workers or runs another
    version of buda_emu."""
    try:
        import distributed
    except ImportError:
        raise HostError("--dask needs the package distributed: pip install 'buda-emu[dask]'") from None
    with sense(address):
        _find_scheduler(address)
    with ExitStack() as stack:
        with sense(address):
            client: Any = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
            stack.callback(client.close)
            _check_workers(client, address)
        yield client


@contextmanager
def sense(address: str) -> Generator[None, None, None]:
    """Raise HostError in place of an exception by which Dask's code, in the block, stumbles over the answer of the
    scheduler at `address`. That code trusts answers, so any of Python's own kinds counts; errors of this package,
    OSError and MemoryError pass through."""
    try:
        yield
    except (BudaError, OSError, MemoryError):
        raise
    except Exception as error:
        text = f"{type(error).__name__}: {error}".partition("\n")[0][:_MOST_CHARACTERS]
        raise HostError(
            f"the answer of the Dask scheduler at {address} makes no sense ({text}): is this a scheduler of the same "
            "version?"
        ) from error


def _find_scheduler(address: str) -> None:
    """Raise HostError unless a scheduler answers at `address` after a short attempt to reach it."""
    import distributed
    from distributed.security import Security

    async def identity() -> dict[str, Any]:
        """Ask the scheduler for its identity with a time limit; a client would try for long after the caller gave
        up."""
        security: Any = Security()
        how: dict[str, Any] = {"timeout": CONNECT_SECONDS, "connection_args": security.get_connection_args("client")}
        scheduler: Any = distributed.rpc(address, **how)
        async with scheduler:
            return await asyncio.wait_for(scheduler.identity(), CONNECT_SECONDS)

    try:
        answer = asyncio.run(identity())
    except (ValueError, RuntimeError, TypeError) as error:  # the last two: encryption is asked for, or certificates
        raise HostError(f"--dask {address}: {error}; addresses are like tcp://host:8786") from None
    except (OSError, TimeoutError):
        raise HostError(f"no Dask scheduler answers at {address} within {CONNECT_SECONDS} s") from None
    kind = answer["type"]
    if kind != "Scheduler":
        raise HostError(f"at {address} is a Dask {kind.lower()}, not a scheduler")


def _check_workers(client: Any, address: str) -> None:
    """Raise HostError unless there are workers and all have this version of buda_emu."""
    versions: dict[str, object] = client.run(version, on_error="return")
    if not versions:
        raise HostError(f"the Dask cluster at {address} has no workers")
    for worker, installed in versions.items():
        if isinstance(installed, BaseException):
            raise HostError(f"Dask worker {worker} cannot use buda-emu: {type(installed).__name__}: {installed}")
        if installed != __version__:
            raise HostError(
                f"Dask worker {worker} has buda-emu {installed}, this is buda-emu {__version__}: install the same there"
            )


def version() -> str:
    """Return the version of buda_emu in the process that calls this."""
    return __version__


class Cluster:
    """A job on the cluster whose scheduler is at `address`.

    An item of a Dask worker that was lost is done again on another one, as often as the scheduler's `allowed-failures`
    says, and counts as crashed after that. `values` holds the packed values that items share, by number; they go from
    worker to worker. Raises HostError as `connect` does.
    """

    def __init__(self, job: Job, address: str, timeout: float | None, values: Mapping[int, bytes]) -> None:
        self._timeout = timeout
        self._values = values
        self._scattered: dict[int, Any] = {}
        self._done: SimpleQueue[int] = SimpleQueue()
        self._futures: dict[int, Any] = {}  # of what has no answer yet
        self._sent = 0
        self._mark = uuid4().hex  # two users of one cluster must not share children or results
        contents = {path: Path(path).read_bytes() for path in job.files}
        self._address = address
        with ExitStack() as stack:
            self._client = stack.enter_context(connect(address))

            from buda_emu.support.workers.dask_plugin import Children  # is there: connect() says when Dask is not

            children = Children(self._mark, pack(replace(job, reports=False)), contents)
            with sense(address):
                self._client.register_plugin(children, name=self._mark)
            self._stack = stack.pop_all()

    def close(self) -> None:
        """Cancel all unfinished items, and end all children."""
        with self._stack, suppress(Exception):  # the cluster may be gone: what went wrong before is the error
            self._client.cancel([*self._futures.values(), *self._scattered.values()])
            self._futures.clear()
            self._client.unregister_worker_plugin(self._mark)

    def answers(self, items: Iterable[Any]) -> Generator[tuple[int, Answer], None, None]:
        """Give the number and the answer of each item as it is done, `Lost` for one whose worker or scheduler was lost.
        Leaving the loop early closes the cluster."""
        numbered = enumerate(items)
        limit = _AHEAD * max(1, self.slots)
        first = self._sent
        done = False
        try:
            waiting = next(numbered, None)
            while waiting is not None or self._futures:
                while waiting is not None and len(self._futures) < limit and not self._is_cut_off:
                    self.send(waiting[1])
                    waiting = next(numbered, None)
                number = self._await_done()
                if number is not None:
                    yield number - first, self._answer(self._futures.pop(number))
                    continue
                lost = Lost("crashed", self._why_lost(), 0.0)
                yield from ((number - first, lost) for number in sorted(self._futures))
                if waiting is not None:
                    yield from ((number, lost) for number, _ in (waiting, *numbered))
                return
            done = True
        finally:
            if not done:
                self.close()

    @property
    def slots(self) -> int:
        """The number of threads of the cluster, 0 if its scheduler was lost."""
        if self._is_cut_off:
            return 0
        with sense(self._address):
            return sum(self._client.nthreads().values())

    @property
    def _is_cut_off(self) -> bool:
        """Return whether the client has given up its scheduler: nothing can be sent any more, and what was is lost."""
        return self._client.status in ("closing", "closed")

    def _why_lost(self) -> str:
        """Return why no more answers will come: the scheduler or all workers were lost."""
        if self._is_cut_off:
            return "the Dask scheduler was lost"
        return "the Dask cluster has lost all its workers"

    def answer_of(self, number: int, seconds: float) -> Answer | None:
        """Return the answer to the item of this number since the start, or None where there is none within
        `seconds`."""
        with sense(self._address), suppress(TimeoutError):
            self._futures[number].exception(timeout=seconds)
        if self._futures[number].status == "pending":
            return None
        return self._answer(self._futures[number])

    def is_done(self, number: int) -> bool:
        """Return whether the item of this number since the start is done, or lost."""
        return self._futures[number].status != "pending"

    def send(self, work_item: Any) -> None:
        """Send an item to the cluster. Its answer comes from `answers` or `answer_of`."""
        from buda_emu.support.workers.dask_plugin import answer_in_child

        number = self._sent
        self._sent = self._sent + 1
        for value in shares(work_item):
            if value not in self._scattered:
                with sense(self._address):
                    self._scattered[value] = self._client.scatter(self._values[value], direct=True, hash=False)
        args = pack(work_item), self._mark, self._timeout, *(self._scattered[value] for value in shares(work_item))
        future = self._client.submit(answer_in_child, *args, key=f"buda-emu-{self._mark}-{number}", pure=False)
        self._futures[number] = future
        self._note_when_done(number)

    def _answer(self, future: Any) -> Answer:
        """Return the answer of a future that is done. Raises HostError where it makes no sense."""
        with sense(self._address):
            return _answer(future)

    def _note_when_done(self, number: int) -> None:
        """Let the item of that number be reported as done as soon as its future is."""

        def done(_future: Any) -> None:
            """Report the item as done."""
            self._done.put(number)

        self._futures[number].add_done_callback(done)

    def _await_done(self) -> int | None:
        """Return the number of an item that is done, or None when the cluster has lost all its workers or its
        scheduler."""
        alone_since = None
        while self._futures or not self._is_cut_off:
            with suppress(Empty):
                number = self._done.get(timeout=_LOOK_SECONDS)
                if self._futures[number].status not in _TO_BE_DONE:
                    return number
                self._note_when_done(number)  # its worker was lost with the result: another one makes it again
                continue
            with sense(self._address):
                has_workers = self._client.status == "running" and self._client.scheduler_info()["workers"]
            if has_workers:
                alone_since = None
                continue
            alone_since = alone_since or time.monotonic()
            if time.monotonic() - alone_since > NO_WORKERS_SECONDS:
                return None
        return None


def _answer(future: Any) -> Answer:
    """Return the answer of a future that is done, or `Lost` where its worker or the scheduler was lost. Raises
    TypeError for something else than an answer."""
    if future.status == "finished":
        answer: Any = unpack(future.result())
        if isinstance(answer, Lost) or (isinstance(answer, tuple) and _is_pair(cast("tuple[Any, ...]", answer))):
            return cast("Answer", answer)
        raise TypeError("it is no answer of a job")
    if future.status == "error":
        error = future.exception()
        text = f"its Dask worker was lost, or could not run it ({type(error).__name__}: {error})"
    else:
        text = f"the Dask scheduler was lost, or dropped it (the task is {future.status})"
    return Lost("crashed", text, 0.0)


def _is_pair(answer: tuple[Any, ...]) -> bool:
    """Return whether a tuple is a result with True, or an error with False."""
    return len(answer) == 2 and (answer[0] is True or (answer[0] is False and isinstance(answer[1], BudaError)))


def processes_of(address: str) -> int:
    """Return the number of worker processes of a cluster. Raises HostError as `connect` does."""
    with connect(address) as client, sense(address):
        return len(client.nthreads())


def find_local_address(address: str) -> str:
    """Return the address at which the scheduler at `address` reaches this machine. Raises OSError."""
    from distributed.comm.addressing import get_address_host
    from distributed.utils import get_ip

    return str(get_ip(get_address_host(address)))
