"""The adapter on standard input and output, and on a port of 127.0.0.1 for the editor that knows its token."""

import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Thread, Timer
from types import ModuleType
from typing import IO, Final

from buda_emu.app.debugger.dap import inspecting
from buda_emu.app.debugger.dap import running as break_requests
from buda_emu.app.debugger.dap import running as run_control
from buda_emu.app.debugger.dap.adapter import Adapter
from buda_emu.app.debugger.dap.admission import Admission, hang_up

TABLES: Final[tuple[ModuleType, ...]] = (run_control, break_requests, inspecting)
"""Whose requests there are: importing them fills the table."""
_LOOPBACK: Final = "127.0.0.1"
_PAUSE_SECONDS: Final = 0.05
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
            try:
                connection, _ = server.accept()
            except OSError:  # who connected has left already, or there are no descriptors left
                time.sleep(_PAUSE_SECONDS)
                continue
            admission.receive(connection)
            Thread(target=_serve_one, args=(connection, admission), name="buda-emu editor", daemon=True).start()


def _serve_one(connection: socket.socket, admission: Admission) -> None:
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
                hang_up(connection)  # its reader waits for more, and would keep it open
    finally:
        too_late.cancel()
        admission.release(connection)
