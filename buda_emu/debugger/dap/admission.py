"""Who may drive the debugger through a port: one editor at a time, which knows the token of this process.

Every user of the computer, and every page in a browser, can connect to a port of 127.0.0.1. A debugger reads and writes
files with the rights of whoever started it, so a connection is served only when its `launch` holds the token.
"""

import hmac
import secrets
from threading import Lock
from typing import Final

from buda_emu.errors import HostError

_TOKEN_BYTES: Final = 16
MOST_STRANGERS: Final = 32
"""Connections without the token at the same time; more are closed at once."""


class Admission:
    """Counts the connections of a port, and admits the editor that shows the token."""

    def __init__(self) -> None:
        self.token: Final = secrets.token_hex(_TOKEN_BYTES)
        self._lock = Lock()
        self._strangers = 0
        self._occupied = False

    def receive(self) -> bool:
        """Count a new connection; False where there are too many that have not shown the token."""
        with self._lock:
            if self._strangers == MOST_STRANGERS:
                return False
            self._strangers += 1
            return True

    def admit(self, token: object) -> None:
        """Admit the connection that shows this token. Raises HostError for a wrong one, and while an editor is
        connected."""
        shown = token.encode("utf-8", "surrogatepass") if isinstance(token, str) else b""
        if not hmac.compare_digest(shown, self.token.encode()):
            raise HostError(
                "launch: `token` is missing or wrong; `buda-emu debug --dap --port` printed it when it started"
            )
        with self._lock:
            if self._occupied:
                raise HostError("launch: another editor is connected to this port")
            self._occupied = True
            self._strangers -= 1

    def release(self, *, admitted: bool) -> None:
        """A connection has ended."""
        with self._lock:
            if admitted:
                self._occupied = False
            else:
                self._strangers -= 1
