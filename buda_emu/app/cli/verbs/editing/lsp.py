"""`buda-emu lsp`: the language server of netlists, for editors."""

import argparse
import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType
from typing import BinaryIO, cast

from buda_emu.app.cli.output import require_open
from buda_emu.support.errors import Exit, HostError
from buda_emu.support.message_frames import CheckedSource, FrameError


@contextmanager
def signals_end_the_process() -> Generator[None]:
    """End the process at once on Ctrl-C and SIGTERM during the block: an exception would wait for the thread that reads
    standard input, until the client sends something. The first process of a container ends on SIGTERM, too, which it
    would ignore without a handler. A signal that the caller ignores stays ignored."""
    numbers = [number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) is not signal.SIG_IGN]
    if current_thread() is not main_thread():
        numbers = []
    before = {number: signal.signal(number, _end_process) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end_process(number: int, _frame: FrameType | None) -> None:
    """Handle a signal: end the process at once, with exit code 128 + `number`, since nothing is open that needs to be
    closed."""
    os._exit(128 + number)


def main(_: argparse.Namespace) -> int:
    """Serve one client until it sends exit or closes its end. Exit code 0, or 128 and the number of a signal.

    Raises HostError if standard input or output is closed, pygls is not installed, or the client sends a header after
    which nothing can be read.
    """
    require_open("lsp", "stdin", "stdout")
    try:
        from buda_emu.app.editor.server import make_server
    except ImportError as error:
        if not (error.name or "").startswith(("pygls", "lsprotocol")):
            raise
        raise HostError("lsp: pygls is not installed: pip install 'buda-emu[editor]'") from None
    source = cast(BinaryIO, CheckedSource(sys.stdin.buffer))  # pygls asks for no more than readline and read
    try:
        with signals_end_the_process():
            make_server().start_io(source)
    except FrameError as error:
        raise HostError(f"lsp: the client sent {error}") from None
    return Exit.OK
