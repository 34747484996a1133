"""`buda-emu lsp`: the language server of netlists, for editors."""

import argparse

from buda_emu.app.cli.output import require_open
from buda_emu.support.errors import Exit, HostError


def main(_: argparse.Namespace) -> int:
    """Serve one client until it sends exit or closes its end. Exit code 0. Raises HostError if standard input or output
    is closed, or pygls is not installed."""
    require_open("lsp", "stdin", "stdout")
    try:
        from buda_emu.app.editor.server import make_server
    except ImportError as error:
        if not (error.name or "").startswith(("pygls", "lsprotocol")):
            raise
        raise HostError("lsp: pygls is not installed: pip install 'buda-emu[editor]'") from None
    make_server().start_io()
    return Exit.OK
