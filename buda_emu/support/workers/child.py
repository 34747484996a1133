"""A worker process: `python -m buda_emu.support.workers.child FD`, where FD is its end of a pipe. It takes items and
returns results until the process that started it is gone."""

import signal

signal.signal(signal.SIGINT, signal.SIG_IGN)  # first of all: Ctrl-C goes to who started it, who ends it

import os  # noqa: E402
import select  # noqa: E402
import sys  # noqa: E402
import traceback  # noqa: E402
from contextlib import suppress  # noqa: E402
from multiprocessing.connection import Connection  # noqa: E402
from threading import Lock, Thread  # noqa: E402
from typing import Any, NoReturn  # noqa: E402

from buda_emu.support.errors import BudaError, HostError, InternalError  # noqa: E402
from buda_emu.support.screen import clean_streams  # noqa: E402
from buda_emu.support.workers.job import Job, Work, insert_shared_values  # noqa: E402
from buda_emu.support.workers.wire import (  # noqa: E402
    look_in,
    pack,
    unpack,
)


def serve(connection: Connection) -> None:
    """Work on items until the connection closes.

    The first message is the job and the folder of its files ("" where they are at their own paths); all others are
    items with the shared values that are new in them. Each item is answered by (True, result) or (False, BudaError),
    after any number of reports (None, value). Other errors end the process; so do bytes that are not a message, and a
    job that is not one of `JOBS`.
    """
    Thread(target=_end_with_parent, args=(connection,), daemon=True).start()
    with suppress(EOFError, OSError):
        job, folder = unpack(connection.recv_bytes())
        if not isinstance(job, Job):
            raise HostError("the first message to a worker is its job")
        job.load()
        if folder:
            look_in(folder, job.files)
        connection.send_bytes(b"ready")
        sending = Lock()

        def send(answer: tuple[bool | None, object]) -> None:
            data = _pack_answer(answer)
            with sending:  # reports come from any thread
                connection.send_bytes(data)

        work: Work | None = None
        values: dict[int, Any] = {}
        while True:
            new, work_item = unpack(connection.recv_bytes())
            values.update((number, unpack(data)) for number, data in new.items())
            try:
                work = work or job.work(lambda value: send((None, value)))
                answer = True, work(insert_shared_values(work_item, values))
            except BudaError as error:
                answer = False, error
            send(answer)


def _pack_answer(answer: tuple[bool | None, object]) -> bytes:
    """Return an answer as bytes. An error that holds a value which cannot be sent is replaced by its text."""
    try:
        return pack(answer)
    except TypeError:
        if answer[0] is not False:
            raise
        return pack((False, InternalError(f"{type(answer[1]).__name__}: {answer[1]}")))


def _end_with_parent(connection: Connection) -> None:
    """Wait until the other end of the pipe is closed, and end this process then: work that hangs must not outlive a
    caller that was killed. Runs on a thread of its own."""
    watched = select.poll()
    watched.register(connection.fileno(), 0)  # nothing but that the other end is closed
    watched.poll()
    os._exit(1)


def run(number: int) -> NoReturn:
    """Serve at this end of the pipe, the descriptor `number`, as the whole process. Error text is cleaned like all
    output of the command."""
    with clean_streams():
        try:
            serve(Connection(number))
        except Exception:  # noqa: BLE001 - of any kind: the process has failed
            traceback.print_exc()
            sys.exit(1)
    sys.exit(0)


if __name__ == "__main__":
    run(int(sys.argv[1]))
