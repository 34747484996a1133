"""Serves a machine to the other processes of a front end, over a local socket."""

import contextlib
import socket
import threading
import time
from multiprocessing import util
from multiprocessing.connection import Client, Connection, answer_challenge, deliver_challenge
from multiprocessing.context import AuthenticationError
from pathlib import Path
from typing import Any, Final

from buda_emu.api.backend.machine import Port
from buda_emu.api.backend.meeting import Key, make_folder, password, socket_path
from buda_emu.api.backend.warn import say
from buda_emu.api.backend.wire import receive, send
from buda_emu.errors import HostTimeoutError

_PAUSE: Final = 0.05  # seconds
METHODS: Final = ("push", "push_packed", "read", "pop", "pack", "check")
"""What a client may call: the methods of Port."""


class Server:
    """A thread that accepts clients, and one for each client. Raises OSError where no socket can be made."""

    def __init__(self, machine: Port, key: Key) -> None:
        self._machine = machine
        self._lock = threading.Lock()
        self._clients: set[Connection[Any, Any]] = set()
        self._closed = False
        self._path = socket_path(key)
        make_folder()
        _make_room(self._path)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(self._path))
        self._socket.listen(16)
        # At the end of the process too, if nobody closes it before.
        self._clean = util.Finalize(None, _remove, (self._path, self._path.stat().st_ino), exitpriority=0)
        threading.Thread(target=self._accept, name="buda-emu-server", daemon=True).start()

    def close(self) -> None:
        """Hang up on every client, and remove the socket and, with the last one, its folder."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            clients = list(self._clients)
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._socket.close()
        for client in clients:
            _hang_up(client)
        self._clean()

    def _accept(self) -> None:
        while not self._closed:
            try:
                caller, _ = self._socket.accept()
            except OSError:
                if not self._closed:
                    time.sleep(_PAUSE)  # no file descriptors left, or a caller that left at once
                continue
            client = Connection(caller.detach())
            with self._lock:
                self._clients.add(client)
                if self._closed:
                    _hang_up(client)
            threading.Thread(target=self._serve, args=(client,), name="buda-emu-client", daemon=True).start()

    def _serve(self, client: "Connection[Any, Any]") -> None:
        with contextlib.suppress(OSError, EOFError, AuthenticationError), client:
            deliver_challenge(client, password())
            answer_challenge(client, password())
            while True:
                method, arguments = receive(client)
                send(client, self._answer(method, arguments))
        with self._lock:
            self._clients.discard(client)

    def _answer(self, method: str, arguments: tuple[Any, ...]) -> tuple[str, Any]:
        if method not in METHODS:
            return "error", f"a machine has no {method}"
        try:
            return "value", getattr(self._machine, method)(*arguments)
        except HostTimeoutError as error:
            return "timeout", str(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, the caller in the other process is told
            return "error", str(error) or type(error).__name__


def _make_room(path: Path) -> None:
    """Take over the address: a socket that nobody serves is removed, one that is served is said."""
    if not path.exists():
        return
    try:
        Client(str(path), "AF_UNIX", authkey=password()).close()
    except (OSError, EOFError, AuthenticationError):
        pass  # its process is gone
    else:
        say("another BackendApi serves this netlist to other processes; from now on they reach the new one", 6)
    path.unlink(missing_ok=True)


def _hang_up(client: "Connection[Any, Any]") -> None:
    """Let reads of both sides end; the thread that serves it closes it."""
    with contextlib.suppress(OSError), socket.fromfd(client.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.shutdown(socket.SHUT_RDWR)


def _remove(path: Path, inode: int) -> None:
    """Remove our socket, not one that took its place, and the folder with the last socket in it."""
    with contextlib.suppress(OSError):
        if path.stat().st_ino == inode:
            path.unlink()
    with contextlib.suppress(OSError):
        path.parent.rmdir()
