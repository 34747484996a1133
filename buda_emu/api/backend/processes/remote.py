"""A machine of another process, reached over its socket."""

import contextlib
import threading
from multiprocessing.connection import Client, Connection
from multiprocessing.context import AuthenticationError
from typing import Any
from weakref import WeakSet

from buda_emu.api.backend.processes.socket_address import Key, password, socket_path
from buda_emu.api.backend.processes.wire import receive, send
from buda_emu.errors import HostError, HostTimeoutError


class RemotePort:
    """A `Port` on a machine of another process: one connection for each thread that uses it.

    Calls raise HostError when the machine's process is not there, or goes away meanwhile.
    """

    def __init__(self, key: Key) -> None:
        self._key = key
        self._own = threading.local()
        self._lock = threading.Lock()
        self._open: WeakSet[Connection[Any, Any]] = WeakSet()  # a thread's own goes with it

    def push(self, name: str, array: Any, df: str, timeout: float, slot: int) -> None:
        self._call("push", name, array, df, timeout, slot)

    def push_packed(self, name: str, data: Any, df: str, timeout: float, slot: int) -> None:
        self._call("push_packed", name, data, df, timeout, slot)

    def read(self, name: str, one: bool, timeout: float, slot: int) -> tuple[Any, str]:
        return self._call("read", name, one, timeout, slot)

    def pop(self, name: str, one: bool, timeout: float) -> None:
        self._call("pop", name, one, timeout)

    def pack(self, name: str, array: Any, df: str) -> tuple[Any, str]:
        return self._call("pack", name, array, df)

    def check(self, name: str) -> bool:
        return self._call("check", name)

    def close(self) -> None:
        """Hang up."""
        with self._lock:
            for connection in list(self._open):
                with contextlib.suppress(OSError):
                    connection.close()
            self._open.clear()
        self._own = threading.local()

    def _call(self, method: str, *arguments: Any) -> Any:
        try:
            connection = self._connection()
            send(connection, (method, arguments))
            kind, value = receive(connection)
        except (OSError, EOFError, AuthenticationError) as error:
            self._own = threading.local()
            reason = str(error) or "it hung up"
            raise HostError(f"no running backend for {self._key[0]} in this family of processes: {reason}") from None
        if kind == "timeout":
            raise HostTimeoutError(value)
        if kind == "error":
            raise HostError(value)
        return value

    def _connection(self) -> "Connection[Any, Any]":
        connection = getattr(self._own, "connection", None)
        if connection is None:
            connection = Client(str(socket_path(self._key)), "AF_UNIX", authkey=password())
            self._own.connection = connection
            with self._lock:
                self._open.add(connection)
        return connection
