"""A connection between two machines: messages of a few words and arrays, which travel as their bytes.

Who connects proves that it knows the secret of the run; the other end closes on everybody else. No code travels, and
nothing that is unpickled.
"""

import hashlib
import hmac
import json
import os
import socket
import ssl
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Condition, Lock, Thread
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from buda_emu.errors import HostError
from buda_emu.records import dataclass
from buda_emu.runtime.machine.part import BUFFERED_BYTES

HANDSHAKE_SECONDS: Final = 10.0
"""For all that is said until both ends know each other."""
MOST_STRANGERS: Final = 128
_LOOK_SECONDS: Final = 0.2
_PAUSE_SECONDS: Final = 0.05
_ATTEMPTS: Final = 12
_WELCOME: Final = b"come in"
_MOST_WORDS: Final = 1 << 20  # bytes
_NONCE: Final = 32
_NUMBERS: Final = "biuf"  # kinds of what arrays may hold
Words = dict[str, Any]
Message = tuple[Words, list[NDArray[Any]]]


@dataclass(frozen=True, slots=True)
class Security:
    """`secret` of the run; `server` and `client`: how connections are encrypted, None where they are not."""

    secret: bytes
    server: ssl.SSLContext | None = None
    client: ssl.SSLContext | None = None


class LinkLostError(Exception):
    """The other end is gone."""


class Link:
    """One end. Several threads may send; one receives."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._sending = Lock()
        with suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def fileno(self) -> int:
        """For `select`."""
        return self._connection.fileno()

    def pending(self) -> int:
        """Bytes that an encrypted connection has read ahead, which `select` does not see."""
        return self._connection.pending() if isinstance(self._connection, ssl.SSLSocket) else 0

    def send(self, words: Words, arrays: Sequence[NDArray[Any]] = ()) -> None:
        """Raises LinkLostError."""
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
        """A time-out counts from the last bytes that the other end took."""
        while memory:
            memory = memory[self._connection.send(memory) :]

    def receive(self) -> Message:
        """The next message. Raises LinkLostError; HostError for what is none."""
        size = int.from_bytes(self._bytes(4), "little")
        if size > _MOST_WORDS:
            raise HostError("a machine was sent something that is not a message of buda-emu")
        try:
            words: Words = json.loads(bytes(self._bytes(size)))
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

    def _bytes(self, count: int) -> bytearray:
        found = bytearray(count)
        self._fill(memoryview(found))
        return found

    def _fill(self, memory: memoryview) -> None:
        try:
            while memory:
                count = self._connection.recv_into(memory)
                if not count:
                    raise LinkLostError
                memory = memory[count:]
        except OSError as error:
            raise LinkLostError from error

    def prove(self, secret: bytes) -> None:
        """To the end that was connected to: this end knows the secret. Raises LinkLostError where it does not let this
        end in."""
        nonce = bytes(self._bytes(_NONCE))
        try:
            self._connection.sendall(hmac.digest(secret, nonce, hashlib.sha256))
        except OSError as error:
            raise LinkLostError from error
        if bytes(self._bytes(len(_WELCOME))) != _WELCOME:
            raise LinkLostError

    def lets_in(self, secret: bytes) -> bool:
        """Whether the end that connected knows the secret, which is then told that it does."""
        nonce = os.urandom(_NONCE)
        try:
            self._connection.sendall(nonce)
            proof = bytes(self._bytes(_NONCE))
            if not hmac.compare_digest(proof, hmac.digest(secret, nonce, hashlib.sha256)):
                return False
            self._connection.sendall(_WELCOME)
        except (OSError, LinkLostError):
            return False
        return True

    def wait_at_most(self, seconds: float | None) -> None:
        """For a message, from now on."""
        self._connection.settimeout(seconds)

    def close(self) -> None:
        """Let the other end know."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()


def listener(host: str) -> socket.socket:
    """A port of this machine that nobody else has."""
    return socket.create_server((host, 0), backlog=256)


class Entrance:
    """A `listener` at which links are made with those who know the secret.

    Each stranger has a thread and HANDSHAKE_SECONDS for all that it has to say until its first message is there. There
    are at most MOST_STRANGERS at once; where one more comes, the one that is there for longest is hung up on. So nobody
    who does not know the secret keeps out those who do. Use it as a context manager.
    """

    def __init__(self, listening: socket.socket, security: Security) -> None:
        self._security = security
        self._listening = listening
        self._listening.settimeout(_LOOK_SECONDS)
        self._lock = Lock()
        self._strangers: dict[socket.socket, float] = {}
        """A second handle of each connection, to hang up with, and when that is due; the oldest first."""
        self._guests: SimpleQueue[tuple[Link, Words]] = SimpleQueue()
        self._closed = False
        Thread(target=self._accept, daemon=True, name="entrance").start()

    @property
    def port(self) -> int:
        """Where to connect to."""
        return int(self._listening.getsockname()[1])

    def next_guest(self, seconds: float) -> tuple[Link, Words]:
        """The next who is let in, with the words of its first message. Raises TimeoutError when nobody is in time."""
        try:
            return self._guests.get(timeout=max(seconds, 0.001))
        except Empty:
            raise TimeoutError from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up on all who have not been taken."""
        with self._lock:
            self._closed = True
        self._hang_up_on_late(float("inf"))
        with suppress(Empty):
            while True:
                self._guests.get_nowait()[0].close()

    def _accept(self) -> None:
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
                    self._receive(connection)
                except (OSError, RuntimeError):  # no file descriptors or no threads left
                    connection.close()

    def _receive(self, connection: socket.socket) -> None:
        connection.settimeout(HANDSHAKE_SECONDS)
        handle = connection.dup()
        with self._lock:
            oldest = next(iter(self._strangers)) if len(self._strangers) >= MOST_STRANGERS else None
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
        guest: tuple[Link, Words] | None = None
        try:
            if self._security.server is not None:
                connection = self._security.server.wrap_socket(connection, server_side=True)
            link = Link(connection)
            if link.lets_in(self._security.secret):
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

    def _hang_up_on_late(self, now: float) -> None:
        with self._lock:
            late = [handle for handle, due in self._strangers.items() if due <= now]
        for handle in late:
            self._hang_up_on(handle)

    def _hang_up_on(self, handle: socket.socket) -> None:
        """Reads and writes of the thread that serves it end."""
        with self._lock:
            if self._strangers.pop(handle, None) is None:
                return
            with suppress(OSError):
                handle.shutdown(socket.SHUT_RDWR)


def connect(host: str, port: int, security: Security) -> Link:
    """To an entrance, several times where it hangs up, as it may while many strangers are there. Raises OSError, and
    LinkLostError where it never lets this end in."""
    for attempt in range(1, _ATTEMPTS):
        with suppress(LinkLostError, ConnectionResetError):
            return _connected(host, port, security)
        time.sleep(_PAUSE_SECONDS * attempt)
    return _connected(host, port, security)


def _connected(host: str, port: int, security: Security) -> Link:
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
    """Messages of one link, received by a thread of its own, so that the other end can go on; at most so many bytes."""

    def __init__(self, link: Link, most: int = BUFFERED_BYTES) -> None:
        self._link, self._most = link, most
        self._messages: deque[Message] = deque()
        self._held = 0
        self._ended = False
        self._changed = Condition()
        Thread(target=self._fill, daemon=True, name="inbox").start()

    def _fill(self) -> None:
        try:
            while True:
                message = self._link.receive()
                size = sum(array.nbytes for array in message[1])
                with self._changed:
                    self._changed.wait_for(lambda: not self._messages or self._held < self._most)
                    self._messages.append(message)
                    self._held += size
                    self._changed.notify_all()
        except (LinkLostError, HostError, OSError, MemoryError):
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def take(self) -> Message:
        """The next message. Raises LinkLostError when there will be none."""
        with self._changed:
            self._changed.wait_for(lambda: self._messages or self._ended)
            if not self._messages:
                raise LinkLostError
            message = self._messages.popleft()
            self._held -= sum(array.nbytes for array in message[1])
            self._changed.notify_all()
            return message


def dask_contexts(role: str) -> Mapping[str, ssl.SSLContext]:
    """The certificates of this machine's configuration of Dask: those to listen and to connect with. Raises HostError
    where it has none for this role."""
    from distributed.security import Security as OfDask

    security: Any = OfDask()
    found = {
        "server": security.get_listen_args(role).get("ssl_context"),
        "client": security.get_connection_args(role).get("ssl_context"),
    }
    if None in found.values():
        raise HostError(
            f"the configuration of Dask on {socket.gethostname()} has no certificates of a {role}: "
            f"distributed.comm.tls, ca-file and {role}.cert, or DASK_DISTRIBUTED__COMM__TLS__... in the environment; "
            "options of `dask worker` do not reach the processes that it starts"
        )
    return found
