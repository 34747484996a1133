"""A netlist that runs on several machines, as its user holds it, and restarts after a worker is lost."""

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from select import select
from tempfile import TemporaryDirectory
from typing import Any, Final, Self, TypeVar, Unpack

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.tensor.referenced import Referenced
from buda_emu.emulator.distributed.part import (
    START_SECONDS,
    About,
    Entrance,
    Link,
    LinkLostError,
    Message,
    NetlistPartition,
    Security,
    cut,
    dask_contexts,
    listener,
)
from buda_emu.emulator.options import Machine, parameter_texts
from buda_emu.emulator.runtime.host.exchange import OutputParts
from buda_emu.emulator.runtime.host.host_io import Readout
from buda_emu.netlist.model import Netlist
from buda_emu.netlist.program.parameters import with_declared_names
from buda_emu.spec.precision import Precision
from buda_emu.support.errors import BudaError, HostError
from buda_emu.support.records import dataclass
from buda_emu.support.unmasked import refuse_masked_arrays
from buda_emu.support.workers.job import Job, Workers
from buda_emu.support.workers.spread import Actors
from buda_emu.support.workers.wire import unpack


class WorkerLostError(HostError):
    """A worker died, or gave no sign of life for too long. New machines may repeat the work."""


SLOW_SECONDS: Final = 5.0
"""Seconds without a sign of life after which a slow part is reported; parts send two signs a second."""
LOST_SECONDS: Final = 60.0
"""Seconds without a sign of life after which a part is given up. Signs come every BEAT_SECONDS; a smaller limit would
lose parts on machines that swap or sleep, a larger one reports a lost machine later."""
_GATHER_SECONDS: Final = 2.0  # for the answers of other parts after an error
_UNEVEN: Final = 1.5  # a part that works so many times as long as the others is reported as slow


@dataclass(slots=True)
class _Member:
    """A part as the user's machine knows it: its link, the op that it is in, the part that it waits for, and when it
    last sent anything (`heard`, below 0 once it is gone)."""

    link: Link
    at: str = ""
    waits_for: int = -1
    heard: float = 0.0
    is_reported: bool = False


class Machines:
    """A netlist on `workers`.

    It has as many parts as there are workers, or chips (temporal graphs where there is one chip) if these are fewer:
    see `cut`. `machine` is how each part computes. `tell` is called with a sentence about each slow part. Use it as a
    context manager. Raises HostError where parts cannot be started, or do not connect within START_SECONDS."""

    def __init__(
        self,
        netlist: Netlist,
        workers: Workers,
        precision: Precision = "format",
        *,
        tell: Callable[[str], None] = lambda _: None,
        **machine: Unpack[Machine],
    ) -> None:
        self.netlist = netlist
        self._tell = tell
        self._stack = ExitStack()
        self.cut: NetlistPartition = cut(netlist, workers.count)
        self._broken = False
        try:
            self._start(workers, precision, machine)
        except BaseException:
            self._stack.close()
            raise

    def _start(self, workers: Workers, precision: Precision, machine: Machine) -> None:
        """Start the parts on the workers, wait until all are connected, and send each the addresses of the others.
        Raises WorkerLostError for a part that ended, HostError for one that is late."""
        security = Security(os.urandom(32))
        host = "127.0.0.1"
        encrypted = False
        if workers.dask is not None:
            from buda_emu.support.workers.dask_cluster import find_local_address, processes_of

            self.cut = cut(self.netlist, processes_of(workers.dask))
            host = find_local_address(workers.dask)
            encrypted = workers.dask.startswith("tls")
            if encrypted:
                security = Security(security.secret, **dask_contexts("client"))
        entrance = self._stack.enter_context(Entrance(listener(host), security))
        about = About(
            cut=self.cut,
            precision=precision,
            machine=machine,
            host=host,
            port=entrance.port,
            secret=security.secret,
            encrypted=encrypted,
        )
        job = Job("buda_emu.emulator.distributed.part:holder", about)
        numbers = range(self.cut.count)
        self._actors = self._stack.enter_context(closing(Actors(job, numbers, workers)))
        connected: dict[int, tuple[Link, tuple[str, int]]] = {}
        deadline = time.monotonic() + START_SECONDS
        while len(connected) < self.cut.count:
            try:
                link, words = entrance.next_guest(min(1.0, deadline - time.monotonic()))
            except TimeoutError:
                self._require_alive([number for number in numbers if number not in connected], deadline)
                continue
            self._stack.enter_context(closing(link))
            link.wait_at_most(LOST_SECONDS)
            connected[words["part"]] = link, (words["host"], words["port"])
        self._members = [_Member(connected[number][0]) for number in numbers]
        for number, member in enumerate(self._members):
            self._send(number, member, {"parts": [connected[other][1] for other in numbers]})

    def _require_alive(self, missing: Sequence[int], deadline: float) -> None:
        """Raise WorkerLostError if one of these parts, which have not connected yet, has ended, and HostError if the
        deadline is past."""
        late = time.monotonic() > deadline
        for number in missing:
            if self._actors.has_ended(number):
                raise WorkerLostError(
                    f"{self._part_name(number)} is lost: {self._actors.fate(number)}, before it began"
                )
            if late:
                fate = self._actors.fate(number)
                why = " (a cluster needs a free thread for each part)"
                if fate:
                    why = f": {fate}"
                raise HostError(f"{self._part_name(number)} did not start within {START_SECONDS:g} s{why}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the parts on all workers, and close connections and files."""
        self._stack.close()

    # --------------------------------------------------------------------------------------------- what a user asks
    def push(self, queue: str, array: Any, slot: int | None = None) -> None:
        """Push entries to the parts that hold the queue; the other parts only count them. Tiles of an image travel in
        the bytes of their format. Raises as `Emulator.push`, and HostError for a part that is lost."""
        packed = None
        if isinstance(array, Referenced):
            packed = array.packed
        refuse_masked_arrays(array, f"push to {queue}")
        array = array if packed is not None else np.asarray(array)
        keepers = self.cut.keepers[queue]
        words = {"do": "push", "queue": queue, "slot": slot, "packed": packed is not None}
        elsewhere = {"do": "pushed elsewhere", "queue": queue, "count": len(array), "slot": slot}
        for number, member in enumerate(self._members):
            if number in keepers:
                self._send(number, member, words, [array if packed is None else packed()])
            else:
                self._send(number, member, elsewhere)
        if packed is not None:
            packed()  # raises where the image changed while its bytes were sent
        self._wait_until_done()

    def run(self, program: str, parameters: Mapping[str, object] | None = None) -> None:
        """Run a program on all parts, to its end. Raises as `Emulator.run`, and HostError for a part that is lost, with
        the op that it was in. Reports a part that worked much longer than the others."""
        declared = with_declared_names(self.netlist.programs.values(), parameter_texts(parameters))
        request = {"do": "run", "program": program, "parameters": declared}
        for number, member in enumerate(self._members):
            self._send(number, member, request)
        self._report_uneven(self._wait_until_done())

    def outputs_in_parts(self, readout: Readout = "host") -> Iterator[OutputParts]:
        """Yield all outputs, each with an iterator of its entries, first those of part 0; within a part in the
        netlist's order. Entries that the caller does not take are skipped. Raises as `run`."""
        for number, member in enumerate(self._members):
            queues = [
                queue.name for queue in self.netlist.queues.values() if self.cut.owners.get(queue.input) == number
            ]
            self._send(number, member, {"do": "outputs", "queues": queues, "readout": readout})
            words, _ = self._receive_from(number)
            while words["answer"] == "output":
                dtype = np.dtype(str(words["form"][0]))
                shape = tuple(words["form"][1])
                remaining = [shape[0]]

                def entries(left: list[int] = remaining, number: int = number) -> Iterator[NDArray[Any]]:
                    """Yield the arrays of an output that its part sends."""
                    while left[0] > 0:
                        _, arrays = self._receive_from(number)
                        left[0] -= len(arrays[0])
                        yield arrays[0]

                parts = entries()
                yield OutputParts(words["queue"], shape, dtype, parts)
                for _ in parts:  # what was not looked at
                    pass
                words, _ = self._receive_from(number)

    def save(self, folder: Path) -> None:
        """Let each part write its state to a file of its own in `folder`, which all workers must reach. Raises as
        `run`."""
        self._request_all("save", folder)

    def restore(self, folder: Path) -> None:
        """Let each part read the state that the part of its number has saved in `folder`; the netlist must be cut in
        the same way. Raises as `run`."""
        self._request_all("restore", folder)

    def _request_all(self, request: str, folder: Path) -> None:
        """Send a request, with the path of a file for each part in `folder`, to all parts, and wait until all have done
        it."""
        for number, member in enumerate(self._members):
            self._send(number, member, {"do": request, "path": str(folder / f"part-{number}")})
        self._wait_until_done()

    # ------------------------------------------------------------------------------------------------------ answers
    def _send(self, number: int, member: _Member, words: dict[str, Any], arrays: Sequence[NDArray[Any]] = ()) -> None:
        """Send a message, words and arrays, to the part of this number. Raises HostError for a part that is lost, now
        or earlier."""
        if self._broken:
            raise HostError("a part of this netlist is lost: start again")
        member.heard = time.monotonic()
        try:
            member.link.send(words, arrays)
        except LinkLostError as error:
            raise (self._silent_error if isinstance(error.__cause__, TimeoutError) else self._lost_error)(
                number
            ) from None

    def _wait_until_done(self) -> dict[int, dict[str, Any]]:
        """Wait until all parts have done the last request, and return their answers by number. Raises the error of the
        first part that failed by itself, WorkerLostError for one that is lost."""
        done: dict[int, dict[str, Any]] = {}
        failed: dict[int, BudaError] = {}
        lost: list[int] = []
        end = float("inf")
        while len(done) + len(failed) < len(self._members) and time.monotonic() < end:
            waiting = [n for n in range(len(self._members)) if n not in done and n not in failed and n not in lost]
            if not waiting:
                break
            for number, words in self._receive_answers(waiting, lost):
                if words["answer"] == "done":
                    done[number] = words
                elif words["answer"] == "error":
                    failed[number] = unpack(bytes.fromhex(words["error"]))
                else:  # it has lost another part, whose loss is the one to report
                    lost.append(number)
            if failed or self._parts_without_link(lost):
                end = min(end, time.monotonic() + _GATHER_SECONDS)
        self._raise_failure(failed, lost)
        return done

    def _parts_without_link(self, numbers: Sequence[int]) -> list[int]:
        """Return those of these parts whose own connection is gone."""
        return [number for number in numbers if self._members[number].heard < 0]

    def _raise_failure(self, failed: Mapping[int, BudaError], lost: Sequence[int]) -> None:
        """Raise the error that matters most, if there is any: that of the first part in `failed`, unless another part
        is disconnected; then the loss of that part; then WorkerLostError where parts in `lost` have only lost each
        other."""
        gone = self._parts_without_link(lost)
        if failed and (len(failed) == len(self._members) or not gone):
            self._broken = len(failed) < len(self._members)
            raise failed[min(failed)]
        if gone:
            raise self._lost_error(gone[0])
        if lost:
            self._broken = True
            message = "the parts of this netlist have lost each other: is the network between workers open?"
            raise WorkerLostError(message)

    def _receive_answers(self, numbers: Sequence[int], lost: list[int]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield (number, words) of the answers that these parts have sent, waiting at most half a second. Records signs
        of life; parts that are gone are appended to `lost`. Raises HostError for a part that is silent too long."""
        members = self._members
        ready, _, _ = select([members[number].link for number in numbers], [], [], 0.5)
        for number in numbers:
            member = members[number]
            if member.link not in ready and not member.link.pending():
                self._require_signs(number)
                continue
            try:
                words, _ = member.link.receive()
            except LinkLostError:
                member.heard = -1.0
                lost.append(number)
                continue
            if not self._is_sign_of_life(member, words):
                yield number, words

    def _receive_from(self, number: int) -> Message:
        """Wait for the next answer of one part, and return it. Raises the error that the part sent, and HostError when
        it is lost."""
        member = self._members[number]
        while True:
            ready, _, _ = select([member.link], [], [], 0.5)
            if not ready and not member.link.pending():
                self._require_signs(number)
                continue
            try:
                words, arrays = member.link.receive()
            except LinkLostError:
                raise self._lost_error(number) from None
            if self._is_sign_of_life(member, words):
                continue
            if words["answer"] == "error":
                raise unpack(bytes.fromhex(words["error"]))
            return words, arrays

    def _is_sign_of_life(self, member: _Member, words: dict[str, Any]) -> bool:
        """Record that a part has sent a message with these words, and return True for a sign of life, False for an
        answer."""
        member.heard = time.monotonic()
        if member.is_reported:
            member.is_reported = False
            self._tell(f"{self._part_name(self._members.index(member))} goes on")
        if "answer" in words:
            return False
        member.at = words["at"]
        member.waits_for = words["waits_for"]
        return True

    def _require_signs(self, number: int) -> None:
        """Report a part once if it has given no sign of life for SLOW_SECONDS. Raises HostError after LOST_SECONDS."""
        member = self._members[number]
        silent = time.monotonic() - member.heard
        if silent > LOST_SECONDS:
            raise self._silent_error(number)
        if silent > SLOW_SECONDS and not member.is_reported:
            member.is_reported = True
            self._tell(
                f"{self._part_name(number)} gives no sign of life since {silent:.0f} s{self._last_op_words(number)}"
            )

    def _silent_error(self, number: int) -> HostError:
        """Mark the machines as broken, and return the error for a part that is given up because it is silent."""
        self._broken = True
        return WorkerLostError(
            f"{self._part_name(number)} gave no sign of life for {LOST_SECONDS:g} s{self._last_op_words(number)}"
        )

    def _lost_error(self, number: int) -> HostError:
        """Mark the machines as broken, and return the error for a part whose connection or process is gone."""
        self._broken = True
        fate = self._actors.fate(number) or "its connection was closed"
        return WorkerLostError(f"{self._part_name(number)} is lost: {fate}{self._last_op_words(number)}")

    def _part_name(self, number: int) -> str:
        """Return in words, for messages, a part's number and what it holds."""
        return f"worker {number} of {self.cut.count} ({self.cut.title(number)})"

    def _last_op_words(self, number: int) -> str:
        """Return, as the end of a message, the op that a part was last known to be in; "" where it was in none."""
        at = self._members[number].at
        if not at:
            return ""
        graph = next(graph.name for graph in self.netlist.graphs.values() if any(op.name == at for op in graph.ops))
        return f", last in op {at} of graph {graph}"

    def _report_uneven(self, answers: Mapping[int, Mapping[str, Any]]) -> None:
        """Report the part that worked longest, if that was much longer than the others, which wait for it. `answers`:
        those to a run, by number."""
        busy = {number: float(words["busy"]) for number, words in answers.items()}
        if len(busy) < 2:
            return
        slowest = max(busy, key=lambda number: busy[number])
        rest = [seconds for number, seconds in busy.items() if number != slowest]
        mean = sum(rest) / len(rest)
        if busy[slowest] > max(_UNEVEN * mean, 1.0):
            self._tell(
                f"{self._part_name(slowest)} is the slow one: {busy[slowest]:.1f} s of work, "
                f"the others {mean:.1f} s each"
            )


RESTARTS: Final = 3
"""The number of lost workers that a run survives."""
R = TypeVar("R")


class SavedState:
    """The states that all parts saved last, between two programs, from which new machines go on. `done`: the number of
    programs that had run by then, 0 where nothing is saved."""

    def __init__(self, stack: ExitStack, *, is_local: bool) -> None:
        """`stack`: files are removed with it. `is_local`: workers write files where this process finds them."""
        self._stack = stack
        self._is_local = is_local
        self._folder: Path | None = None
        self.done = 0

    def save(self, machines: Machines, done: int) -> None:
        """Let all parts save the state after `done` programs, then delete the state before it. Does nothing where
        workers write files that this process cannot reach."""
        if not self._is_local:
            return
        if self._folder is None:
            folder_context = TemporaryDirectory(prefix="buda-emu-run-", ignore_cleanup_errors=True)
            self._folder = Path(self._stack.enter_context(folder_context))
        folder = self._folder / str(done)
        folder.mkdir(exist_ok=True)
        machines.save(folder)
        before = self._folder / str(self.done)
        self.done = done
        shutil.rmtree(before, ignore_errors=True)

    def restore(self, machines: Machines) -> int:
        """Bring new machines to the last saved state, and return how many programs had run in it: 0, and no change,
        without one."""
        if self.done and self._folder is not None:
            machines.restore(self._folder / str(self.done))
        return self.done

    @property
    def place(self) -> str:
        """The state from which a restart goes on, in words."""
        if self.done:
            return f"from the snapshot after program {self.done}"
        return "from the beginning"


def run_with_restarts(
    make: Callable[[], Machines],
    work: Callable[[Machines, SavedState], R],
    tell: Callable[[str], None],
    *,
    is_local: bool,
) -> R:
    """Return the result of `work` on the machines that `make` returns. Where a worker is lost, machines are made again
    and `work` is repeated, which begins with `SavedState.restore` and so goes on from the last snapshot; `RESTARTS`
    times at most. `tell` is called with a sentence about each restart; `is_local`: workers write files where this
    process finds them. Raises what both raise, and the last WorkerLostError."""
    with ExitStack() as stack:
        saved = SavedState(stack, is_local=is_local)
        for _ in range(RESTARTS):
            try:
                with make() as machines:
                    return work(machines, saved)
            except WorkerLostError as error:
                tell(f"{error}: all parts start again {saved.place}")
        with make() as machines:
            return work(machines, saved)
