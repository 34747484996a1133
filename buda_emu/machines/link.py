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
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Condition, Lock, Thread
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.errors import HostError
from buda_emu.records import dataclass
from buda_emu.runtime.machine.part import BUFFERED_BYTES

HANDSHAKE_SECONDS: Final = 10.0
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
        except (ValueError, TypeError, AttributeError) as error:
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
        """To the end that was connected to: this end knows the secret. Raises LinkLostError."""
        nonce = bytes(self._bytes(_NONCE))
        try:
            self._connection.sendall(hmac.digest(secret, nonce, hashlib.sha256))
        except OSError as error:
            raise LinkLostError from error

    def is_proved(self, secret: bytes) -> bool:
        """Whether the end that connected knows the secret."""
        nonce = os.urandom(_NONCE)
        try:
            self._connection.sendall(nonce)
            return hmac.compare_digest(bytes(self._bytes(_NONCE)), hmac.digest(secret, nonce, hashlib.sha256))
        except (OSError, LinkLostError):
            return False

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


def accept(listening: socket.socket, security: Security, seconds: float) -> Link | None:
    """The next who connects; None for one that does not know the secret. Raises TimeoutError when nobody does in
    time."""
    listening.settimeout(max(seconds, 0.001))
    connection, _ = listening.accept()
    connection.settimeout(HANDSHAKE_SECONDS)
    try:
        if security.server is not None:
            connection = security.server.wrap_socket(connection, server_side=True)
        link = Link(connection)
        if link.is_proved(security.secret):
            link.wait_at_most(None)
            return link
    except OSError:
        pass
    connection.close()
    return None


def connect(host: str, port: int, security: Security) -> Link:
    """To a listener. Raises OSError, LinkLostError."""
    connection = socket.create_connection((host, port), HANDSHAKE_SECONDS)
    if security.client is not None:
        connection = security.client.wrap_socket(connection, server_hostname=host)
    link = Link(connection)
    link.prove(security.secret)
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
