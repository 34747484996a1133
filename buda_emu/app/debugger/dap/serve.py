"""The adapter on standard input and output, and on a port of 127.0.0.1 for the editor that knows its token."""

import hmac
import secrets
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Lock, Thread, Timer
from types import ModuleType
from typing import IO, Final

from buda_emu.app.debugger.dap import inspecting, running
from buda_emu.app.debugger.dap.adapter import Adapter
from buda_emu.support.errors import HostError

_TOKEN_BYTES: Final = 16
MAX_STRANGERS: Final = 32
"""Connections without the token at the same time; when one more comes, the oldest is closed."""


class Admission:
    """The connections of a port: those that have not shown the token, and the one editor that has."""

    def __init__(self) -> None:
        self.token: Final = secrets.token_hex(_TOKEN_BYTES)
        self._lock = Lock()
        self._strangers: dict[socket.socket, None] = {}
        """The oldest first."""
        self._editor: socket.socket | None = None

    def receive(self, connection: socket.socket) -> None:
        """Register a new connection. Where too many have not shown the token, close the oldest of them: a sender
        without the token cannot keep out one that has it."""
        with self._lock:
            oldest = next(iter(self._strangers)) if len(self._strangers) >= MAX_STRANGERS else None
            if oldest is not None:
                del self._strangers[oldest]
            self._strangers[connection] = None
        if oldest is not None:
            hang_up(oldest)

    def admit(self, connection: socket.socket, token: object) -> None:
        """Admit the connection that shows this token. Raises HostError for a wrong token, and while another editor is
        connected."""
        shown = token.encode("utf-8", "surrogatepass") if isinstance(token, str) else b""
        if not hmac.compare_digest(shown, self.token.encode()):
            raise HostError(
                "launch: `token` is missing or wrong; `buda-emu debug --dap --port` printed it when it started"
            )
        with self._lock:
            if self._editor is not None:
                raise HostError("launch: another editor is connected to this port")
            self._editor = connection
            self._strangers.pop(connection, None)

    def release(self, connection: socket.socket) -> None:
        """Forget a connection that has ended."""
        with self._lock:
            self._strangers.pop(connection, None)
            if self._editor is connection:
                self._editor = None


def hang_up(connection: socket.socket) -> None:
    """Shut a connection down, which ends reads and writes that wait on it."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


TABLES: Final[tuple[ModuleType, ...]] = (running, inspecting)
"""The modules that handle requests: importing them fills the table."""
_LOOPBACK: Final = "127.0.0.1"
_PAUSE_SECONDS: Final = 0.05
_STRANGER_SECONDS: Final = 30.0  # in which a connection has to show the token


def serve_stdio(source: IO[bytes], sink: IO[bytes]) -> None:
    """Serve one editor on standard input and output until it leaves. Meanwhile printed text goes to standard error."""
    before = sys.stdout
    sys.stdout = sys.stderr
    try:
        Adapter(source, sink).serve()
    finally:
        sys.stdout = before


def serve_port(port: int, announce: Callable[[int, str], None]) -> None:
    """Serve editors one after the other until Ctrl-C. `announce` receives the port (0 takes any free one) and the token
    that `launch` must hold. Raises OSError where the port is in use."""
    admission = Admission()
    with socket.create_server((_LOOPBACK, port)) as server:
        announce(server.getsockname()[1], admission.token)
        while True:
            try:
                connection, _ = server.accept()
            except OSError:  # the client has left already, or there are no descriptors left
                time.sleep(_PAUSE_SECONDS)
                continue
            admission.receive(connection)
            Thread(target=_serve_connection, args=(connection, admission), name="buda-emu editor", daemon=True).start()


def _serve_connection(connection: socket.socket, admission: Admission) -> None:
    """Serve one connection, which is closed unless it shows the token in time."""
    too_late = Timer(_STRANGER_SECONDS, hang_up, (connection,))
    too_late.daemon = True
    too_late.start()

    def admit(token: object) -> None:
        admission.admit(connection, token)
        too_late.cancel()

    try:
        with suppress(OSError), connection, connection.makefile("rwb") as stream:
            try:
                Adapter(stream, stream, admit).serve()
            finally:
                hang_up(connection)  # the reading thread waits for more, and would keep it open
    finally:
        too_late.cancel()
        admission.release(connection)
