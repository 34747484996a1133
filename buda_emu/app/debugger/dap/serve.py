"""The adapter on standard input and output, and on a port of 127.0.0.1 for the editor that knows its token."""

import hmac
import secrets
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from threading import Condition, Thread, Timer
from types import ModuleType
from typing import IO, Final

from buda_emu.app.debugger.dap import inspecting, running
from buda_emu.app.debugger.dap.adapter import Adapter
from buda_emu.support.errors import HostError

_TOKEN_BYTES: Final = 16  # 128 random bits cannot be guessed
MAX_STRANGERS: Final = 32
"""Connections without the token at the same time; when one more comes, another is closed."""
_SECONDS_TO_INITIALIZE: Final = 0.25
"""Seconds in which no connection is closed in favour of a later one; an editor sends `initialize` at once."""
_SECONDS_TO_LAUNCH: Final = 2.0
"""Seconds in which it is not closed after `initialize`, until the token comes with `launch`."""


@dataclass(slots=True)
class _Stranger:
    """A connection that has not shown the token, and the moment from which it may be closed for a later one."""

    closable_from: float
    has_initialized: bool = False


class Admission:
    """The connections of a port: those that have not shown the token, and the one editor that has."""

    def __init__(self) -> None:
        self.token: Final = secrets.token_hex(_TOKEN_BYTES)
        self._changed = Condition()
        """Held while connections are looked at, and notified when a stranger has gone."""
        self._strangers: dict[socket.socket, _Stranger] = {}
        """The oldest first."""
        self._editor: socket.socket | None = None

    def receive(self, connection: socket.socket) -> None:
        """Register a new connection. Where too many have not shown the token, close one of them, first those that have
        not sent `initialize`. Each has some time for its next request before that; until one can be closed this call
        blocks, and later connections stay in the queue of the port, in the order of their coming. So senders without
        the token, however many, make an editor that has it wait, and do not get it closed."""
        oldest: socket.socket | None = None
        with self._changed:
            while len(self._strangers) >= MAX_STRANGERS and oldest is None:
                moment = time.monotonic()
                oldest = self._find_closable(moment)
                if oldest is None:
                    first_moment = min(stranger.closable_from for stranger in self._strangers.values())
                    self._changed.wait(first_moment - moment)
            if oldest is not None:
                del self._strangers[oldest]
            self._strangers[connection] = _Stranger(time.monotonic() + _SECONDS_TO_INITIALIZE)
        if oldest is not None:
            hang_up(oldest)

    def _find_closable(self, moment: float) -> socket.socket | None:
        """Return the connection that may be closed at `moment` for a newer one: the oldest that has not sent
        `initialize`, else the oldest that has; None while each has time left."""
        for has_initialized in (False, True):
            for connection, stranger in self._strangers.items():
                if stranger.has_initialized == has_initialized and stranger.closable_from <= moment:
                    return connection
        return None

    def note_initialize(self, connection: socket.socket) -> None:
        """Give a connection that has sent `initialize` the time to launch; once, however often it sends that."""
        with self._changed:
            stranger = self._strangers.get(connection)
            if stranger is not None and not stranger.has_initialized:
                stranger.has_initialized = True
                stranger.closable_from = time.monotonic() + _SECONDS_TO_LAUNCH

    def admit(self, connection: socket.socket, token: object) -> None:
        """Make this connection that of the editor. Raises HostError for a wrong token, and while another editor is
        connected."""
        shown = token.encode("utf-8", "surrogatepass") if isinstance(token, str) else b""
        if not hmac.compare_digest(shown, self.token.encode()):
            raise HostError(
                "launch: `token` is missing or wrong; `buda-emu debug --dap --port` printed it when it started"
            )
        with self._changed:
            if self._editor is not None:
                raise HostError("launch: another editor is connected to this port")
            self._editor = connection
            self._strangers.pop(connection, None)
            self._changed.notify_all()

    def release(self, connection: socket.socket) -> None:
        """Remove a connection that has ended, so that another one can take its place."""
        with self._changed:
            self._strangers.pop(connection, None)
            self._changed.notify_all()
            if self._editor is connection:
                self._editor = None


def hang_up(connection: socket.socket) -> None:
    """Shut a connection down, which ends reads and writes that wait on it."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


TABLES: Final[tuple[ModuleType, ...]] = (running, inspecting)
"""The modules that handle requests: importing them fills the table."""
_LOOPBACK: Final = "127.0.0.1"
_PAUSE_SECONDS: Final = 0.05  # before another try to accept a connection, so that a failure takes no processor
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
    """Serve editors on a port of 127.0.0.1, one after the other, until Ctrl-C. `announce` receives the port (0 takes
    any free one) and the token that `launch` must hold. Raises OSError where the port is in use."""
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


class _ConnectionGate:
    """The gate of one connection, which is closed unless it shows the token in time."""

    def __init__(self, connection: socket.socket, admission: Admission) -> None:
        self._connection = connection
        self._admission = admission
        self._too_late = Timer(_STRANGER_SECONDS, hang_up, (connection,))
        self._too_late.daemon = True
        self._too_late.start()

    def note_initialize(self) -> None:
        """Give the sender, which has sent `initialize`, time until its `launch` before its connection may be closed for
        a newer one. It is not admitted by this."""
        self._admission.note_initialize(self._connection)

    def admit(self, token: object) -> None:
        """Admit the sender for as long as it stays. Raises HostError for a wrong token, and while another editor is
        connected."""
        self._admission.admit(self._connection, token)
        self._too_late.cancel()

    def leave(self) -> None:
        """Forget the connection, which has ended."""
        self._too_late.cancel()
        self._admission.release(self._connection)


def _serve_connection(connection: socket.socket, admission: Admission) -> None:
    """Serve one connection until it ends, and unregister it."""
    gate = _ConnectionGate(connection, admission)
    try:
        with suppress(OSError), connection, connection.makefile("rwb") as stream:
            try:
                Adapter(stream, stream, gate, on_departure=gate.leave).serve()
            finally:
                hang_up(connection)  # the reading thread waits for more, and would keep it open
    finally:
        gate.leave()
