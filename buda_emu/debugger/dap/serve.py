"""The adapter on standard input and output, and on a port of 127.0.0.1 for the editor that knows its token."""

import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from threading import Thread, Timer
from types import ModuleType
from typing import IO, Final

from buda_emu.debugger.dap import break_requests, inspecting, run_control
from buda_emu.debugger.dap.adapter import Adapter
from buda_emu.debugger.dap.admission import Admission

TABLES: Final[tuple[ModuleType, ...]] = (run_control, break_requests, inspecting)
"""Whose requests there are: importing them fills the table."""
_LOOPBACK: Final = "127.0.0.1"
_STRANGER_SECONDS: Final = 30.0  # until a connection has to have shown the token


def serve_stdio(source: IO[bytes], sink: IO[bytes]) -> None:
    """One editor, until it goes. What anything prints goes to standard error meanwhile."""
    before, sys.stdout = sys.stdout, sys.stderr
    try:
        Adapter(source, sink).serve()
    finally:
        sys.stdout = before


def serve_port(port: int, announce: Callable[[int, str], None]) -> None:
    """Serve one editor after the other until Ctrl-C. `announce` gets the port, of which 0 takes any that is free, and
    the token that `launch` has to hold. Raises OSError where the port is in use."""
    admission = Admission()
    with socket.create_server((_LOOPBACK, port)) as server:
        announce(server.getsockname()[1], admission.token)
        while True:
            with suppress(ConnectionError):  # who connected has left already
                connection, _ = server.accept()
                if admission.receive():
                    Thread(target=_serve_one, args=(connection, admission), name="buda-emu editor", daemon=True).start()
                else:
                    connection.close()


def _serve_one(connection: socket.socket, admission: Admission) -> None:
    too_late = Timer(_STRANGER_SECONDS, _hang_up, (connection,))
    too_late.daemon = True
    too_late.start()
    admitted = False

    def admit(token: object) -> None:
        nonlocal admitted
        admission.admit(token)
        admitted = True
        too_late.cancel()

    try:
        with suppress(OSError), connection, connection.makefile("rwb") as stream:
            try:
                Adapter(stream, stream, admit).serve()
            finally:
                _hang_up(connection)  # its reader waits for more, and would keep it open
    finally:
        too_late.cancel()
        admission.release(admitted=admitted)


def _hang_up(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
