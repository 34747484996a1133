"""Who may drive the debugger through a port: one editor at a time, which knows the token of this process.

Every user of the computer, and every page in a browser, can connect to a port of 127.0.0.1. A debugger reads and writes
files with the rights of whoever started it, so a connection is served only when its `launch` holds the token.
"""

import hmac
import secrets
import socket
from contextlib import suppress
from threading import Lock
from typing import Final

from buda_emu.support.errors import HostError

_TOKEN_BYTES: Final = 16
MOST_STRANGERS: Final = 32
"""Connections without the token at the same time; where one more comes, the oldest is hung up on."""


class Admission:
    """Keeps the connections of a port, and admits the editor that shows the token."""

    def __init__(self) -> None:
        self.token: Final = secrets.token_hex(_TOKEN_BYTES)
        self._lock = Lock()
        self._strangers: dict[socket.socket, None] = {}
        """The oldest first."""
        self._editor: socket.socket | None = None

    def receive(self, connection: socket.socket) -> None:
        """Take note of a new connection. Where too many have not shown the token, hang up on the one that is there for
        longest: who does not know the token keeps out nobody who does."""
        with self._lock:
            oldest = next(iter(self._strangers)) if len(self._strangers) >= MOST_STRANGERS else None
            if oldest is not None:
                del self._strangers[oldest]
            self._strangers[connection] = None
        if oldest is not None:
            hang_up(oldest)

    def admit(self, connection: socket.socket, token: object) -> None:
        """Admit the connection that shows this token. Raises HostError for a wrong one, and while an editor is
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
    """End what reads and writes there."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
