"""A server that offers a machine to the other processes of a front end over a Unix socket, and its client."""

import contextlib
import os
import pickle
import socket
import struct
import threading
import time
from multiprocessing import util
from multiprocessing.connection import Client, Connection, answer_challenge, deliver_challenge
from multiprocessing.context import AuthenticationError
from pathlib import Path
from typing import Any, Final, cast
from weakref import WeakSet

from buda_emu.app.api.backend.machine import Port
from buda_emu.app.api.backend.socket_address import Key, make_folder, password, socket_path
from buda_emu.app.api.backend.status import warn
from buda_emu.support.errors import HostError, HostTimeoutError

_MOST_BYTES: Final = 64 << 30  # arrays of one message; memory is allocated when a message comes


def send(connection: "Connection[Any, Any]", message: object) -> None:
    """Send an object that can be pickled; the memory of its arrays is not copied. Raises OSError."""
    buffers: list[memoryview] = []

    def collect_buffer(buffer: pickle.PickleBuffer) -> None:
        """Set a large buffer aside, to be sent after the pickled message instead of in it."""
        buffers.append(buffer.raw())

    head = pickle.dumps(message, protocol=5, buffer_callback=collect_buffer)
    connection.send((head, [buffer.nbytes for buffer in buffers]))
    for buffer in buffers:
        while buffer:
            buffer = buffer[os.write(connection.fileno(), buffer) :]


def receive(connection: "Connection[Any, Any]") -> Any:
    """Wait for the next object that the peer sends with `send`, and return it. Raises EOFError when the peer has closed
    the connection, ValueError for a message larger than any tensor, OSError."""
    head, sizes = connection.recv()
    if sum(sizes) > _MOST_BYTES or min(sizes, default=0) < 0:
        raise ValueError(f"a message of {sum(sizes)} bytes")
    buffers = [bytearray(size) for size in sizes]
    for buffer in buffers:
        unread = memoryview(buffer)
        while unread:
            count = os.readv(connection.fileno(), [unread])
            if not count:
                raise EOFError
            unread = unread[count:]
    return pickle.loads(head, buffers=buffers)


class RemotePort:
    """A `Port` on a machine of another process, with one connection for each thread that uses it.

    Calls raise HostError when the machine's process is not there, or ends meanwhile.
    """

    def __init__(self, key: Key) -> None:
        self._key = key
        self._local = threading.local()
        self._lock = threading.Lock()
        self._connections: WeakSet[Connection[Any, Any]] = WeakSet()  # the connection of a thread ends with it

    def push(self, name: str, array: Any, df: str, timeout: float, slot: int) -> None:
        """Write a tensor [w, z, r, c] declared as format `df` to a queue, or to `slot` of a ram, of the other
        process."""
        self._call("push", name, array, df, timeout, slot)

    def push_packed(self, name: str, data: Any, df: str, timeout: float, slot: int) -> None:
        """Write packed entries of format `df` to a queue, or to `slot` of a ram, of the other process."""
        self._call("push_packed", name, data, df, timeout, slot)

    def read(self, name: str, single: bool, timeout: float, slot: int) -> tuple[Any, str]:
        """Return entries of a queue, or of `slot` of a ram, of the other process without popping them, and their
        format."""
        return self._call("read", name, single, timeout, slot)

    def pop(self, name: str, single: bool, timeout: float) -> None:
        """Remove one entry from the front of a queue of the other process if `single`, else `input_count` of them."""
        self._call("pop", name, single, timeout)

    def pack(self, name: str, array: Any, df: str) -> tuple[Any, str]:
        """Return the tensor packed as the queue's buffers would hold it, and the queue's format; the other process
        packs."""
        return self._call("pack", name, array, df)

    def is_untilized(self, name: str) -> bool:
        """Ask the other process whether the device untilizes the entries of a queue."""
        return self._call("is_untilized", name)

    def close(self) -> None:
        """Close the connections of all threads."""
        with self._lock:
            for connection in list(self._connections):
                with contextlib.suppress(OSError):
                    connection.close()
            self._connections.clear()
        self._local = threading.local()

    def _call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the machine in the process that has it, and return its result. Raise HostTimeoutError if the
        method did, HostError for any other error of the method, or if no process answers."""
        try:
            connection = self._connection()
            send(connection, (method, arguments))
            kind, value = receive(connection)
        except (OSError, EOFError, AuthenticationError) as error:
            self._local = threading.local()
            reason = str(error) or "it hung up"
            raise HostError(f"no running backend for {self._key[0]} in this family of processes: {reason}") from None
        if kind == "timeout":
            raise HostTimeoutError(value)
        if kind == "error":
            raise HostError(value)
        return value

    def _connection(self) -> "Connection[Any, Any]":
        """Return the calling thread's connection to the machine's process, opened at its first use."""
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = Client(str(socket_path(self._key)), "AF_UNIX", authkey=password())
            self._local.connection = connection
            with self._lock:
                self._connections.add(connection)
        return connection


_PAUSE: Final = 0.05  # seconds
_AUTHENTICATION_SECONDS: Final = 5  # for each step of the authentication
_MOST_UNAUTHENTICATED: Final = 128  # clients that authenticate at the same time; further ones are closed
METHODS: Final = ("push", "push_packed", "read", "pop", "pack", "is_untilized")
"""The methods that a client may call: those of Port."""


class Server:
    """A server with a thread that accepts clients, and one for each client. Raises OSError where no socket can be made,
    and HostError where its folder belongs to somebody else."""

    def __init__(self, machine: Port, key: Key) -> None:
        self._machine = machine
        self._lock = threading.Lock()
        self._clients: set[Connection[Any, Any]] = set()
        self._unauthenticated = 0  # clients that have not shown yet that they know the password
        self._closed = False
        self._path = socket_path(key)
        make_folder()
        _take_over_address(self._path)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(self._path))
        self._socket.listen(16)
        # The socket is removed at the end of the process, too, if nobody closes the server before.
        self._clean = util.Finalize(None, _remove_socket, (self._path, self._path.stat().st_ino), exitpriority=0)
        threading.Thread(target=self._accept, name="buda-emu-server", daemon=True).start()

    def close(self) -> None:
        """Close the connection of every client, and remove the socket, and its folder if that is empty then. A second
        call does nothing."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            clients = list(self._clients)
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._socket.close()
        for client in clients:
            _shut_down_connection(client)
        self._clean()

    def _accept(self) -> None:
        """Accept connections until the server is closed, each served by its own thread. Connections are refused while
        too many have not proved that they know the password."""
        while not self._closed:
            try:
                caller, _ = self._socket.accept()
            except OSError:
                if not self._closed:
                    time.sleep(_PAUSE)  # no file descriptors left, or a caller that left at once
                continue
            with self._lock:
                too_many = self._unauthenticated >= _MOST_UNAUTHENTICATED
                self._unauthenticated += not too_many
            if too_many:
                caller.close()
                continue
            _set_timeout(caller, _AUTHENTICATION_SECONDS)
            client = Connection(caller.detach())
            with self._lock:
                self._clients.add(client)
                if self._closed:
                    _shut_down_connection(client)
            try:
                threading.Thread(target=self._serve, args=(client,), name="buda-emu-client", daemon=True).start()
            except RuntimeError:  # no threads left
                with self._lock:
                    self._clients.discard(client)
                    self._unauthenticated -= 1
                client.close()

    def _serve(self, client: "Connection[Any, Any]") -> None:
        """Answer the requests of one client, once it has authenticated, until it closes the connection or sends a
        broken message."""
        try:
            with client:
                if self._authenticate(client):
                    while True:
                        send(client, self._answer(*_parse_request(receive(client))))
        except (OSError, EOFError):
            pass  # the client is gone
        except Exception as error:  # noqa: BLE001 - a message can be broken in any way, and ends that client only
            problem = f"a client of the machine sent what is not a request ({type(error).__name__})"
            warn(f"{problem}; the connection is closed", 6)
        finally:
            with self._lock:
                self._clients.discard(client)

    def _authenticate(self, client: "Connection[Any, Any]") -> bool:
        """Exchange proofs of the password with a client. Returns False for a wrong one; raises OSError or EOFError when
        the client takes too long or leaves."""
        try:
            deliver_challenge(client, password())
            answer_challenge(client, password())
            with socket.fromfd(client.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as line:
                _set_timeout(line, 0)
        except AuthenticationError:
            return False
        finally:
            with self._lock:
                self._unauthenticated -= 1
        return True

    def _answer(self, method: str, arguments: tuple[Any, ...]) -> tuple[str, Any]:
        """Return the reply to one request: `value` with the method's result, or `timeout` or `error` with a
        message."""
        if method not in METHODS:
            return "error", f"a machine has no {method}"
        try:
            return "value", getattr(self._machine, method)(*arguments)
        except HostTimeoutError as error:
            return "timeout", str(error)
        except Exception as error:  # noqa: BLE001 - the caller in the other process gets every error
            return "error", str(error) or type(error).__name__


def _parse_request(message: Any) -> tuple[str, tuple[Any, ...]]:
    """Split a message into the method and the arguments of a request. Raises ValueError or TypeError for any other
    message."""
    method, arguments = message
    if not isinstance(method, str) or not isinstance(arguments, tuple):
        raise TypeError("a request is a name and a tuple")
    return method, cast("tuple[Any, ...]", arguments)


def _set_timeout(line: socket.socket, seconds: int) -> None:
    """Limit each read and write of a socket to a number of seconds; 0 removes the limit."""
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        line.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", seconds, 0))


def _take_over_address(path: Path) -> None:
    """Remove the socket at an address, if there is one, so that a new server can bind to it; warn if another server
    still uses it."""
    if not path.exists():
        return
    try:
        Client(str(path), "AF_UNIX", authkey=password()).close()
    except (OSError, EOFError, AuthenticationError):
        pass  # its process is gone
    else:
        warn("another BackendApi serves this netlist to other processes; from now on they reach the new one", 6)
    path.unlink(missing_ok=True)


def _shut_down_connection(client: "Connection[Any, Any]") -> None:
    """Shut a client's connection down for reading and writing, so that the thread that serves the client ends and
    closes it."""
    with contextlib.suppress(OSError), socket.fromfd(client.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.shutdown(socket.SHUT_RDWR)


def _remove_socket(path: Path, inode: int) -> None:
    """Remove the socket at `path` if it still has this inode, so that one that took its place stays; then remove its
    folder if that is empty."""
    with contextlib.suppress(OSError):
        if path.stat().st_ino == inode:
            path.unlink()
    with contextlib.suppress(OSError):
        path.parent.rmdir()
