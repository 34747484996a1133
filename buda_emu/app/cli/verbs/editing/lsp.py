"""`buda-emu lsp`: the language server of netlists, for editors."""

import argparse
import sys
from typing import BinaryIO, cast

from buda_emu.app.cli.output import require_open
from buda_emu.support.errors import Exit, HostError
from buda_emu.support.message_frames import CheckedSource, FrameError


def main(_: argparse.Namespace) -> int:
    """Serve one client until it sends exit or closes its end. Exit code 0. Raises HostError if standard input or output
    is closed, pygls is not installed, or the client sends a header after which nothing can be read."""
    require_open("lsp", "stdin", "stdout")
    try:
        from buda_emu.app.editor.server import make_server
    except ImportError as error:
        if not (error.name or "").startswith(("pygls", "lsprotocol")):
            raise
        raise HostError("lsp: pygls is not installed: pip install 'buda-emu[editor]'") from None
    source = cast(BinaryIO, CheckedSource(sys.stdin.buffer))  # pygls asks for no more than readline and read
    try:
        make_server().start_io(source)
    except FrameError as error:
        raise HostError(f"lsp: the client sent {error}") from None
    return Exit.OK
