"""A worker that holds a part of a netlist: how netlists are cut, and the connections between workers."""

import hashlib
import hmac
import json
import os
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from functools import cached_property
from itertools import chain
from queue import Empty, SimpleQueue
from threading import Condition, Event, Lock, Thread
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.tensor.mapped import packed_tiles, pushed_layout
from buda_emu.emulator.options import Machine
from buda_emu.emulator.runtime.emulator import Emulator
from buda_emu.emulator.runtime.machine.gate import BUFFERED_BYTES
from buda_emu.netlist.model import Graph, Netlist, Op
from buda_emu.spec.precision import Precision
from buda_emu.support.errors import BudaError, HostError
from buda_emu.support.records import dataclass
from buda_emu.support.workers.wire import pack

HANDSHAKE_SECONDS: Final = 10.0
"""Time limit for the whole handshake, until both ends have proved themselves."""
MOST_STRANGERS: Final = 128  # so that peers without the secret cannot use up threads and file descriptors
_LOOK_SECONDS: Final = 0.2  # between two looks of the entrance whether it was closed and whose time is over
_PAUSE_SECONDS: Final = 0.05  # after a failed accept; this times the number of the attempt after a failed connect
_ATTEMPTS: Final = 12  # to connect, with pauses of 3.3 s in all
_WELCOME: Final = b"come in"
_MOST_WORDS: Final = 1 << 20  # bytes
_NONCE: Final = 32  # bytes, as many as the SHA-256 digest that answers it
_NUMBERS: Final = "biuf"  # numpy's kinds of elements that an array of a message may have
Words = dict[str, Any]
Message = tuple[Words, list[NDArray[Any]]]


@dataclass(frozen=True, slots=True)
class Security:
    """The `secret` of a run, and the contexts that encrypt connections as `server` and as `client`, None where they are
    not encrypted."""

    secret: bytes
    server: ssl.SSLContext | None = None
    client: ssl.SSLContext | None = None


class LinkLostError(Exception):
    """The other end of a link is gone."""


class Link:
    """One end of a connection. Several threads may send; one receives."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._sending = Lock()
        with suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def fileno(self) -> int:
        """Return the file descriptor, for `select`."""
        return self._connection.fileno()

    def pending(self) -> int:
        """Return the number of bytes that an encrypted connection has read ahead, which `select` does not see."""
        if isinstance(self._connection, ssl.SSLSocket):
            return self._connection.pending()
        return 0

    def send(self, words: Words, arrays: Sequence[NDArray[Any]] = ()) -> None:
        """Send a message: words as JSON, then the bytes of the arrays. May be called by several threads. Raises
        LinkLostError."""
        plain = [np.ascontiguousarray(array) for array in arrays]
        if plain:
            words = {**words, "arrays": [[array.dtype.str, array.shape] for array in plain]}
        head = json.dumps(words).encode()
        try:
            with self._sending:
                self._connection.sendall(len(head).to_bytes(4, "little") + head)
                for array in plain:
                    if array.nbytes:
                        self._send_all(array.data.cast("B"))
        except OSError as error:
            raise LinkLostError from error

    def _send_all(self, memory: memoryview) -> None:
        """Send all bytes. A time-out counts from the last bytes that the other end took."""
        while memory:
            memory = memory[self._connection.send(memory) :]

    def receive(self) -> Message:
        """Wait for the next message, and return it. Raises LinkLostError when the other end is gone or a time-out is
        over, HostError for bytes that are no message."""
        size = int.from_bytes(self._receive_bytes(4), "little")
        if size > _MOST_WORDS:
            raise HostError("a machine was sent something that is not a message of buda-emu")
        try:
            words: Words = json.loads(bytes(self._receive_bytes(size)))
            forms = words.pop("arrays", [])
            arrays = [np.empty(tuple(shape), np.dtype(str(dtype))) for dtype, shape in forms]
            if any(array.dtype.kind not in _NUMBERS for array in arrays):
                raise TypeError("references are not bytes")
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise HostError("a machine was sent something that is not a message of buda-emu") from error
        for array in arrays:
            if array.nbytes:
                self._fill(array.reshape(-1).view(np.uint8).data)
        return words, arrays

    def _receive_bytes(self, count: int) -> bytearray:
        """Receive exactly `count` bytes. Raises LinkLostError."""
        received = bytearray(count)
        self._fill(memoryview(received))
        return received

    def _fill(self, memory: memoryview) -> None:
        """Receive bytes until the memory is full. Raises LinkLostError."""
        try:
            while memory:
                count = self._connection.recv_into(memory)
                if not count:
                    raise LinkLostError
                memory = memory[count:]
        except OSError as error:
            raise LinkLostError from error

    def prove(self, secret: bytes) -> None:
        """Answer the challenge of the end that was connected to, so that it knows that this end has the secret. Raises
        LinkLostError where it refuses."""
        nonce = bytes(self._receive_bytes(_NONCE))
        try:
            self._connection.sendall(hmac.digest(secret, nonce, hashlib.sha256))
        except OSError as error:
            raise LinkLostError from error
        if bytes(self._receive_bytes(len(_WELCOME))) != _WELCOME:
            raise LinkLostError

    def authenticate(self, secret: bytes) -> bool:
        """Challenge the end that connected, and return whether it has the secret; if so, tell it that it is admitted.
        False also when the connection fails."""
        nonce = os.urandom(_NONCE)
        try:
            self._connection.sendall(nonce)
            proof = bytes(self._receive_bytes(_NONCE))
            if not hmac.compare_digest(proof, hmac.digest(secret, nonce, hashlib.sha256)):
                return False
            self._connection.sendall(_WELCOME)
        except (OSError, LinkLostError):
            return False
        return True

    def wait_at_most(self, seconds: float | None) -> None:
        """Set the time-out of later sends and receives in seconds, None for no limit."""
        self._connection.settimeout(seconds)

    def close(self) -> None:
        """Close the connection, so that the other end notices."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()


def listener(host: str) -> socket.socket:
    """Open a free port of this machine and return its listening socket."""
    return socket.create_server((host, 0), backlog=256)


class Entrance:
    """A listening socket that makes links with peers who know the secret. Each new connection has a thread and
    HANDSHAKE_SECONDS until its first message is complete. There are at most MOST_STRANGERS unfinished ones: when one
    more comes, the oldest is shut down, so that peers without the secret cannot keep out those who know it. Use it as a
    context manager."""

    def __init__(self, listening: socket.socket, security: Security) -> None:
        self._security = security
        self._listening = listening
        self._listening.settimeout(_LOOK_SECONDS)
        self._lock = Lock()
        self._strangers: dict[socket.socket, float] = {}
        """The time by which to hang up on each connection, by a second handle to do so; the oldest first."""
        self._guests: SimpleQueue[tuple[Link, Words]] = SimpleQueue()
        self._closed = False
        Thread(target=self._accept, daemon=True, name="entrance").start()

    @property
    def port(self) -> int:
        """The port to connect to."""
        return int(self._listening.getsockname()[1])

    def next_guest(self, seconds: float) -> tuple[Link, Words]:
        """Wait for the next peer that has proved the secret, and return its link and the words of its first message.
        Raises TimeoutError when there is none within `seconds`."""
        try:
            return self._guests.get(timeout=max(seconds, 0.001))
        except Empty:
            raise TimeoutError from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening, and close the connections of all peers that `next_guest` has not returned yet."""
        with self._lock:
            self._closed = True
        self._hang_up_on_late(float("inf"))
        with suppress(Empty):
            while True:
                self._guests.get_nowait()[0].close()

    def _accept(self) -> None:
        """Accept connections until the entrance is closed, and shut down those whose handshake takes too long."""
        with self._listening:
            while not self._closed:
                self._hang_up_on_late(time.monotonic())
                try:
                    connection, _ = self._listening.accept()
                except TimeoutError:
                    continue
                except OSError:
                    time.sleep(_PAUSE_SECONDS)  # no file descriptors left, or a caller that left at once
                    continue
                try:
                    self._serve_stranger(connection)
                except (OSError, RuntimeError):  # no file descriptors or no threads left
                    connection.close()

    def _serve_stranger(self, connection: socket.socket) -> None:
        """Serve a new connection on a thread of its own; where there are too many unfinished ones, shut down the
        oldest. Raises OSError, RuntimeError."""
        connection.settimeout(HANDSHAKE_SECONDS)
        handle = connection.dup()
        with self._lock:
            oldest = None
            if len(self._strangers) >= MOST_STRANGERS:
                oldest = next(iter(self._strangers))
            self._strangers[handle] = time.monotonic() + HANDSHAKE_SECONDS
        if oldest is not None:
            self._hang_up_on(oldest)
        try:
            Thread(target=self._greet, args=(connection, handle), daemon=True, name="stranger").start()
        except RuntimeError:
            self._hang_up_on(handle)
            handle.close()
            raise

    def _greet(self, connection: socket.socket, handle: socket.socket) -> None:
        """Authenticate a new connection and receive its first message. Queue it for `next_guest` if that was in time,
        else close it. `handle`: a second handle of the connection, by which another thread may shut it down
        meanwhile."""
        guest: tuple[Link, Words] | None = None
        try:
            if self._security.server is not None:
                connection = self._security.server.wrap_socket(connection, server_side=True)
            link = Link(connection)
            if link.authenticate(self._security.secret):
                guest = link, link.receive()[0]
        except (OSError, LinkLostError, HostError, MemoryError):
            pass
        with self._lock:
            in_time = self._strangers.pop(handle, None) is not None and not self._closed
        handle.close()
        if guest is None or not in_time:
            connection.close()
            return
        guest[0].wait_at_most(None)
        self._guests.put(guest)

    def _hang_up_on_late(self, time_limit: float) -> None:
        """Shut down the unfinished connections whose time is over at `time_limit` (monotonic seconds)."""
        with self._lock:
            late = [handle for handle, due in self._strangers.items() if due <= time_limit]
        for handle in late:
            self._hang_up_on(handle)

    def _hang_up_on(self, handle: socket.socket) -> None:
        """Shut down an unfinished connection, which ends reads and writes of the thread that serves it; nothing if it
        is finished."""
        with self._lock:
            if self._strangers.pop(handle, None) is None:
                return
            with suppress(OSError):
                handle.shutdown(socket.SHUT_RDWR)


def connect(host: str, port: int, security: Security) -> Link:
    """Connect to an entrance, prove the secret, and return the link. Tries again if the entrance closes the connection,
    as it may while many others connect. Raises OSError, and LinkLostError if it closes it on every attempt."""
    for attempt in range(1, _ATTEMPTS):
        with suppress(LinkLostError, ConnectionResetError):
            return _connect_once(host, port, security)
        time.sleep(_PAUSE_SECONDS * attempt)
    return _connect_once(host, port, security)


def _connect_once(host: str, port: int, security: Security) -> Link:
    """Connect to an entrance and prove the secret. Raises OSError, LinkLostError."""
    connection = socket.create_connection((host, port), HANDSHAKE_SECONDS)
    try:
        if security.client is not None:
            connection = security.client.wrap_socket(connection, server_hostname=host)
        link = Link(connection)
        link.prove(security.secret)
    except (OSError, LinkLostError):
        connection.close()
        raise
    link.wait_at_most(None)
    return link


class Inbox:
    """The messages of one link. A thread receives them, up to a limit of bytes, so that the other end need not wait
    until they are taken."""

    def __init__(self, link: Link, capacity: int = BUFFERED_BYTES) -> None:
        self._link = link
        self._capacity = capacity
        self._messages: deque[Message] = deque()
        self._held = 0
        self._ended = False
        self._changed = Condition()
        Thread(target=self._fill, daemon=True, name="inbox").start()

    def _fill(self) -> None:
        """Receive messages until the link ends; wait while more bytes than the capacity have not been taken."""
        try:
            while True:
                message = self._link.receive()
                size = sum(array.nbytes for array in message[1])
                with self._changed:
                    self._changed.wait_for(lambda: not self._messages or self._held < self._capacity)
                    self._messages.append(message)
                    self._held += size
                    self._changed.notify_all()
        except (LinkLostError, HostError, OSError, MemoryError):
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def take(self) -> Message:
        """Wait for the next message, and return it. Raises LinkLostError when the link has ended and there are no
        more."""
        with self._changed:
            self._changed.wait_for(lambda: self._messages or self._ended)
            if not self._messages:
                raise LinkLostError
            message = self._messages.popleft()
            self._held -= sum(array.nbytes for array in message[1])
            self._changed.notify_all()
            return message


def dask_contexts(role: str) -> Mapping[str, ssl.SSLContext]:
    """Return encryption contexts ("server" to listen, "client" to connect) with the certificates in this machine's
    configuration of Dask for a role, such as "worker". Raises HostError where it has none."""
    from distributed.security import Security as OfDask

    security: Any = OfDask()
    contexts = {
        "server": security.get_listen_args(role).get("ssl_context"),
        "client": security.get_connection_args(role).get("ssl_context"),
    }
    if None in contexts.values():
        raise HostError(
            f"the configuration of Dask on {socket.gethostname()} has no certificates of a {role}: "
            f"distributed.comm.tls, ca-file and {role}.cert, or DASK_DISTRIBUTED__COMM__TLS__... in the environment; "
            "options of `dask worker` do not reach the processes that it starts"
        )
    return contexts


_WITHOUT_SUM: Final = 0.25
"""Estimated work of a tile of an op without an inner dimension, where a product of two tiles takes 1. It only balances
parts."""


@dataclass(frozen=True)
class NetlistPartition:
    """A netlist cut into `count` parts; `owners` has the part of each op. Made by `cut`."""

    netlist: Netlist
    count: int
    owners: Mapping[str, int]

    @cached_property
    def keepers(self) -> Mapping[str, frozenset[int]]:
        """For each queue and ram the parts that hold it: those whose ops read or write it, or memory that it shares
        (NETLIST 1.10)."""
        keepers: dict[object, set[int]] = {}
        for op in self.netlist.ops.values():
            for name in op.inputs:
                if name in self.netlist.queues:
                    keepers.setdefault(self._memory_key(name), set()).add(self.owners[op.name])
        for queue in self.netlist.queues.values():
            if queue.input in self.owners:
                keepers.setdefault(self._memory_key(queue.name), set()).add(self.owners[queue.input])
        return {name: frozenset(keepers.get(self._memory_key(name), ())) for name in self.netlist.queues}

    def _memory_key(self, name: str) -> object:
        """Return a key for the memory of a queue or ram, the same for rams on the same buffers, which share it."""
        queue = self.netlist.queues[name]
        if queue.is_ram and queue.buffers:
            return (queue.target_device, queue.loc, queue.buffers)
        return name

    def title(self, part: int) -> str:
        """Return what a part holds, for messages: its chips, or its graphs where the whole netlist is on one chip."""
        graphs = [
            graph for graph in self.netlist.graphs.values() if any(self.owners[op.name] == part for op in graph.ops)
        ]
        chips = sorted({graph.target_device for graph in graphs})
        if len({graph.target_device for graph in self.netlist.graphs.values()}) > 1:
            return f"{'chip' if len(chips) == 1 else 'chips'} {', '.join(map(str, chips))}"
        return f"{'graph' if len(graphs) == 1 else 'graphs'} {', '.join(graph.name for graph in graphs)}"


def _indivisible_units(netlist: Netlist) -> list[list[Graph]]:
    """Return the groups of graphs that stay in one part: those of each chip, or of each temporal graph if there is only
    one chip."""
    graphs = netlist.graphs
    chips = sorted({graph.target_device for graph in graphs.values()})
    if len(chips) > 1:
        return [[graph for graph in graphs.values() if graph.target_device == chip] for chip in chips]
    return [[graphs[name] for name in temporal.graphs] for temporal in netlist.temporal_graphs]


def cut(netlist: Netlist, count_limit: int) -> NetlistPartition:
    """Cut a netlist into at most `count_limit` parts of about equal estimated work. A part has consecutive chips or
    temporal graphs, so that data flows mostly one way."""
    ops = [list(chain.from_iterable(graph.ops for graph in unit)) for unit in _indivisible_units(netlist)]
    places = balance([sum(map(_estimate_work, unit)) for unit in ops], count_limit)
    owners: dict[str, int] = {}
    for unit, place in zip(ops, places, strict=True):
        owners.update((op.name, place) for op in unit)
    return NetlistPartition(netlist, max(places, default=0) + 1, owners)


def balance(weights: Sequence[float], count_limit: int) -> list[int]:
    """Return the number of the part of each unit. Parts are runs of consecutive units, at most `count_limit` of them,
    such that the heaviest part weighs as little as possible."""
    count = len(weights)
    best: list[list[tuple[float, int]]] = [[(0.0, 0)] + [(float("inf"), 0)] * count]  # [parts][units]: weight, begin
    for _ in range(min(count_limit, count)):
        row = [(float("inf"), 0)] * (count + 1)
        for stop in range(1, count + 1):
            row[stop] = min((max(best[-1][start][0], sum(weights[start:stop])), start) for start in range(stop))
        best.append(row)
    parts = min(range(1, len(best)), key=lambda number: (best[number][count][0], number), default=0)
    part_of_unit = [0] * count
    stop = count
    for part in range(parts, 0, -1):
        start = best[part][stop][1]
        part_of_unit[start:stop] = [part - 1] * (stop - start)
        stop = start
    return part_of_unit


def _estimate_work(op: Op) -> float:
    """Return an estimate of the work of an op, in products of two tiles."""
    tiles = op.blocking.t * op.blocking.rows * op.blocking.cols
    inner = op.attributes.inner_tiles
    return tiles * (inner if inner > 0 else _WITHOUT_SUM * len(op.inputs))


START_SECONDS: Final = 120.0
"""Time limit for all parts to connect: workers may still have to start on other machines."""
BEAT_SECONDS: Final = 0.5
"""Time between two signs of life of a part, a small fraction of the time after which it is given up."""
_REPORT_SECONDS: Final = 0.02  # between two words of where it is, at least


class PeerLostError(HostError):
    """The link to another part is gone; that part is the one whose loss is reported."""


@dataclass(frozen=True, slots=True)
class About:
    """The facts that every part gets: where the user's machine listens, and how the netlist is run. The memory limit in
    `machine` is that of each part. `encrypted`: connections are encrypted by the worker's configuration of Dask."""

    cut: NetlistPartition
    precision: Precision
    machine: Machine
    host: str
    port: int
    secret: bytes
    encrypted: bool

    @property
    def security(self) -> Security:
        """Security of a worker's connections. Raises HostError where it has no certificates."""
        return Security(self.secret, **(dask_contexts("worker") if self.encrypted else {}))


class Share:
    """One machine's side of a run on several machines, which the executor asks who computes and holds what: an
    implementation of `runtime.machine.gate.Part` by links to the other parts."""

    def __init__(
        self, cut: NetlistPartition, number: int, links: dict[int, Link], tell: Callable[[Words], None]
    ) -> None:
        self.number = number
        self._cut = cut
        self._links = links
        self._inboxes = {other: Inbox(link) for other, link in links.items()}
        self._tell = tell
        self._told = 0.0
        self.words: Words = {"at": "", "waits_for": -1}
        self.waited = 0.0

    def owner(self, op: str) -> int:
        """Return the part that computes an op."""
        return self._cut.owners[op]

    def keepers(self, queue: str) -> frozenset[int]:
        """Return the parts that hold the entries of a queue or ram."""
        return self._cut.keepers[queue]

    def at(self, op: str) -> None:
        """Record the op that this part is in, and tell the user's machine, though not more often than every
        _REPORT_SECONDS."""
        self.words = {"at": op, "waits_for": -1}
        clock = time.monotonic()
        if clock - self._told > _REPORT_SECONDS:
            self._told = clock
            self._tell(self.words)

    def send(self, to: int, arrays: Sequence[NDArray[Any]]) -> None:
        """Send a value to part `to`, and add the time that this takes to `waited`. Raises PeerLostError."""
        start = time.monotonic()
        try:
            self._links[to].send({}, arrays)
        except LinkLostError:
            raise PeerLostError(f"part {to} is lost") from None
        self.waited += time.monotonic() - start

    def receive(self, source: int) -> list[NDArray[Any]]:
        """Wait for the next value of part `source`, and return it; adds the time to `waited`. Raises PeerLostError."""
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
    """Return the work of a part, a function of its number: it connects to the user's machine and serves its requests
    until that closes the link."""

    def hold(number: int) -> None:
        """Connect the part of this number, and serve requests until the link to the user's machine ends."""
        with suppress(LinkLostError), ExitStack() as stack:
            user, links = _connect_to_peers(about, number, stack)
            _Part(about, number, user, links).serve()

    return hold


def _connect_to_peers(about: About, number: int, stack: ExitStack) -> tuple[Link, dict[int, Link]]:
    """Connect part `number` to the user's machine and to all other parts, and return the links, those to parts by their
    numbers; they are closed with `stack`. Raises HostError, LinkLostError, OSError, TimeoutError."""
    security = about.security
    try:
        user = stack.enter_context(closing(connect(about.host, about.port, security)))
    except OSError as error:
        raise HostError(f"part {number} does not reach {about.host}:{about.port}: {error}") from None
    address = _own_address(user)
    entrance = stack.enter_context(Entrance(listener(address), security))
    user.send({"part": number, "host": address, "port": entrance.port})
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
    """Return the address of this machine on the network by which it reaches the user's."""
    with socket.socket(fileno=socket.dup(user.fileno())) as copy:
        return str(copy.getsockname()[0])


class _Part:
    """The server of one part of a distributed run: it does what the user's machine asks for."""

    def __init__(self, about: About, number: int, user: Link, links: dict[int, Link]) -> None:
        self._user = user
        self._share = Share(about.cut, number, links, self._tell)
        self._emulator = Emulator(about.cut.netlist, about.precision, **about.machine, part=self._share)
        self._ended = Event()

    def _tell(self, words: Words) -> None:
        """Send words that are no answer, such as signs of life, to the user's machine. Raises LinkLostError."""
        self._user.send(words)

    def _send_signs_of_life(self) -> None:
        """Send signs of life, with the op that the part is in, to the user's machine until the part ends."""
        with suppress(LinkLostError):
            while not self._ended.wait(BEAT_SECONDS):
                self._tell(self._share.words)

    def serve(self) -> None:
        """Answer one request of the user's machine after the other. Raises LinkLostError when that machine is gone."""
        beats = Thread(target=self._send_signs_of_life, daemon=True, name="signs of life")
        beats.start()
        try:
            with self._emulator:
                while True:
                    self._answer(self._user.receive())
        finally:
            self._ended.set()

    def _answer(self, message: Message) -> None:
        """Do one request of the user's machine, and send it the answer or the error."""
        words, arrays = message
        try:
            self._serve_request(words, arrays)
        except PeerLostError as error:
            self._user.send({"answer": "lost", "text": str(error)})
        except BudaError as error:
            self._user.send({"answer": "error", "error": pack(error).hex()})
        except MemoryError as error:
            text = f"part {self._share.number} has not enough memory{f': {error}' if str(error) else ''}"
            self._user.send({"answer": "error", "error": pack(HostError(text)).hex()})

    def _array_to_push(self, words: Words, array: NDArray[Any]) -> Any:
        """Return the array of a push request: the received values, or for packed tiles an array that refers to the
        received bytes."""
        if not words["packed"]:
            return array
        netlist = self._emulator.netlist
        queue = netlist.queues[words["queue"]]
        return packed_tiles(array, pushed_layout(queue.df, queue.blocking, netlist.arch.alignment), queue.name)

    def _serve_request(self, words: Words, arrays: list[NDArray[Any]]) -> None:
        """Do the request that `words` name on this part's emulator, and send its answers. Raises BudaError for a
        request that fails or is unknown, MemoryError."""
        emulator = self._emulator
        match words["do"]:
            case "push":
                emulator.push(words["queue"], self._array_to_push(words, arrays[0]), words["slot"])
                self._user.send({"answer": "done"})
            case "pushed elsewhere":
                emulator.pushed_elsewhere(words["queue"], words["count"], words["slot"])
                self._user.send({"answer": "done"})
            case "run":
                start = time.monotonic()
                waited = self._share.waited
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
                raise HostError(f"a part does not know the request {words['do']!r}")
