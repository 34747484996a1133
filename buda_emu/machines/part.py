"""A worker that holds a part of a netlist: it does what the user's machine asks, and sends values to other parts."""

import socket
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from threading import Event, Thread
from typing import Any, Final

from numpy.typing import NDArray

from buda_emu.errors import BudaError, HostError
from buda_emu.machines.cut import Cut
from buda_emu.machines.link import (
    Entrance,
    Inbox,
    Link,
    LinkLostError,
    Message,
    Security,
    Words,
    connect,
    dask_contexts,
    listener,
)
from buda_emu.records import dataclass
from buda_emu.runtime.emulator import Emulator
from buda_emu.spec.precision import Precision
from buda_emu.tensor.packed import packed_tiles, pushed_layout
from buda_emu.workers.wire import packed

START_SECONDS: Final = 120.0
"""For all parts to be there."""
BEAT_SECONDS: Final = 0.5
"""Between two signs of life."""
_TOLD_SECONDS: Final = 0.02  # between two words of where it is, at least


class PeerLostError(HostError):
    """Another part is gone, which is the one to be told about."""


@dataclass(frozen=True, slots=True)
class About:
    """What every part is told: where the user's machine listens, and how the netlist is run. `memory_limit` of each
    part; None: a share of what its machine has. `encrypted`: as the worker's configuration of Dask says."""

    cut: Cut
    precision: Precision
    threads: int | None
    memory_limit: int | None
    host: str
    port: int
    secret: bytes
    encrypted: bool

    @property
    def security(self) -> Security:
        """Of connections of a worker. Raises HostError where it has no certificates."""
        return Security(self.secret, **(dask_contexts("worker") if self.encrypted else {}))


class Share:
    """`runtime.machine.part.Part` by links to the others. `listening`: where those of higher numbers connect."""

    def __init__(self, cut: Cut, number: int, links: dict[int, Link], tell: Callable[[Words], None]) -> None:
        self.number = number
        self._cut = cut
        self._links = links
        self._inboxes = {other: Inbox(link) for other, link in links.items()}
        self._tell = tell
        self._told = 0.0
        self.words: Words = {"at": "", "waits_for": -1}
        self.waited = 0.0

    def owner(self, op: str) -> int:
        return self._cut.owners[op]

    def keepers(self, queue: str) -> frozenset[int]:
        return self._cut.keepers[queue]

    def at(self, op: str) -> None:
        self.words = {"at": op, "waits_for": -1}
        now = time.monotonic()
        if now - self._told > _TOLD_SECONDS:
            self._told = now
            self._tell(self.words)

    def send(self, to: int, arrays: Sequence[NDArray[Any]]) -> None:
        start = time.monotonic()
        try:
            self._links[to].send({}, arrays)
        except LinkLostError:
            raise PeerLostError(f"part {to} is lost") from None
        self.waited += time.monotonic() - start

    def receive(self, source: int) -> list[NDArray[Any]]:
        start = time.monotonic()
        self.words = {**self.words, "waits_for": source}
        try:
            _, arrays = self._inboxes[source].take()
        except LinkLostError:
            raise PeerLostError(f"part {source} is lost") from None
        self.words = {**self.words, "waits_for": -1}
        self.waited += time.monotonic() - start
        return arrays


def holder(about: About) -> Callable[[int], None]:
    """The work of a part, of which the item is its number: until the user's machine lets it go."""

    def hold(number: int) -> None:
        with suppress(LinkLostError), ExitStack() as stack:
            user, links = _connected(about, number, stack)
            _Part(about, number, user, links).serve()

    return hold


def _connected(about: About, number: int, stack: ExitStack) -> tuple[Link, dict[int, Link]]:
    """Links to the user's machine and to all other parts. Raises HostError, LinkLostError, OSError."""
    security = about.security
    try:
        user = stack.enter_context(closing(connect(about.host, about.port, security)))
    except OSError as error:
        raise HostError(f"part {number} does not reach {about.host}:{about.port}: {error}") from None
    own = _own_address(user)
    entrance = stack.enter_context(Entrance(listener(own), security))
    user.send({"part": number, "host": own, "port": entrance.port})
    words, _ = user.receive()
    links: dict[int, Link] = {}
    for other in range(number):
        host, port = words["parts"][other]
        links[other] = stack.enter_context(closing(connect(host, port, security)))
        links[other].send({"part": number})
    deadline = time.monotonic() + START_SECONDS
    while len(links) < about.cut.count - 1:
        link, words = entrance.next_guest(deadline - time.monotonic())
        links[int(words["part"])] = stack.enter_context(closing(link))
    return user, links


def _own_address(user: Link) -> str:
    """Of this machine, as it reaches the user's."""
    with socket.socket(fileno=socket.dup(user.fileno())) as copy:
        return str(copy.getsockname()[0])


class _Part:
    def __init__(self, about: About, number: int, user: Link, links: dict[int, Link]) -> None:
        self._user = user
        self._share = Share(about.cut, number, links, self._tell)
        self._emulator = Emulator(
            about.cut.netlist, about.precision, about.threads, memory_limit=about.memory_limit, part=self._share
        )
        self._ended = Event()

    def _tell(self, words: Words) -> None:
        self._user.send(words)

    def _beat(self) -> None:
        with suppress(LinkLostError):
            while not self._ended.wait(BEAT_SECONDS):
                self._tell(self._share.words)

    def serve(self) -> None:
        """One request after the other. Raises LinkLostError when the user's machine is gone."""
        beats = Thread(target=self._beat, daemon=True, name="signs of life")
        beats.start()
        try:
            with self._emulator:
                while True:
                    self._answer(self._user.receive())
        finally:
            self._ended.set()

    def _answer(self, message: Message) -> None:
        words, arrays = message
        try:
            self._do(words, arrays)
        except PeerLostError as error:
            self._user.send({"answer": "lost", "text": str(error)})
        except BudaError as error:
            self._user.send({"answer": "error", "error": packed(error).hex()})
        except MemoryError as error:
            text = f"part {self._share.number} has not enough memory{f': {error}' if str(error) else ''}"
            self._user.send({"answer": "error", "error": packed(HostError(text)).hex()})

    def _pushed(self, words: Words, array: NDArray[Any]) -> Any:
        """What is pushed: an array, or tiles that came as their bytes, and are kept so."""
        if not words["packed"]:
            return array
        netlist = self._emulator.netlist
        queue = netlist.queues[words["queue"]]
        return packed_tiles(array, pushed_layout(queue.df, queue.blocking, netlist.arch.alignment), queue.name)

    def _do(self, words: Words, arrays: list[NDArray[Any]]) -> None:
        emulator = self._emulator
        match words["do"]:
            case "push":
                emulator.push(words["queue"], self._pushed(words, arrays[0]), words["slot"])
                self._user.send({"answer": "done"})
            case "pushed elsewhere":
                emulator.pushed_elsewhere(words["queue"], words["count"], words["slot"])
                self._user.send({"answer": "done"})
            case "run":
                start, waited = time.monotonic(), self._share.waited
                emulator.run(words["program"], words["parameters"])
                waited = self._share.waited - waited
                self._user.send({"answer": "done", "busy": time.monotonic() - start - waited, "waited": waited})
            case "save":
                emulator.save(words["path"])
                self._user.send({"answer": "done"})
            case "restore":
                emulator.restore(words["path"])
                self._user.send({"answer": "done"})
            case "outputs":
                for output in emulator.outputs_in_parts(words["readout"]):
                    if output.queue not in words["queues"]:
                        continue
                    form = [output.dtype.str, list(output.shape)]
                    self._user.send({"answer": "output", "queue": output.queue, "form": form})
                    for part in output.parts:
                        self._user.send({"answer": "entries"}, [part])
                self._user.send({"answer": "done"})
            case _:
                raise HostError(f"a part does not know what {words['do']!r} is")
