"""The adapter on standard input and output, and on a port of this computer alone."""

import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from types import ModuleType
from typing import IO, Final

from buda_emu.debugger.dap import break_requests, inspecting, run_control
from buda_emu.debugger.dap.adapter import Adapter

TABLES: Final[tuple[ModuleType, ...]] = (run_control, break_requests, inspecting)
"""Whose requests there are: importing them fills the table."""
_LOOPBACK: Final = "127.0.0.1"


def serve_stdio(source: IO[bytes], sink: IO[bytes]) -> None:
    """One editor, until it goes. What anything prints goes to standard error meanwhile."""
    before, sys.stdout = sys.stdout, sys.stderr
    try:
        Adapter(source, sink).serve()
    finally:
        sys.stdout = before


def serve_port(port: int, told: Callable[[int], None]) -> None:
    """Editors that connect, each with a session of its own, until Ctrl-C. `told` is given the port; 0 takes any that is
    free. Raises OSError where it is in use."""
    with socket.create_server((_LOOPBACK, port)) as server:
        told(server.getsockname()[1])
        while True:
            connection, _ = server.accept()
            Thread(target=_serve_one, args=(connection,), name="buda-emu editor", daemon=True).start()


def _serve_one(connection: socket.socket) -> None:
    with suppress(OSError), connection, connection.makefile("rwb") as stream:
        try:
            Adapter(stream, stream).serve()
        finally:
            connection.shutdown(socket.SHUT_RDWR)  # its reader waits for more, and would keep it open
