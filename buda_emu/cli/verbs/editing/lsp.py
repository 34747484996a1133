"""`buda-emu lsp`: the language server of netlists, for editors."""

import argparse

from buda_emu.errors import Exit, HostError


def main(_: argparse.Namespace) -> int:
    """Serve one client until it says exit or closes its end. Exit code 0."""
    try:
        from buda_emu.editor.server import make_server
    except ImportError as error:
        if not (error.name or "").startswith(("pygls", "lsprotocol")):
            raise
        raise HostError("lsp: pygls is not installed: pip install 'buda-emu[editor]'") from None
    make_server().start_io()
    return Exit.OK
