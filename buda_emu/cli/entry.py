"""Where the process of the command begins: an interrupt ends it quietly even while modules are imported."""

import signal
from typing import NoReturn


def entry() -> NoReturn:
    """Console script."""
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing is open yet that would have to be cleaned up
    from buda_emu.cli.main import entry as run

    signal.signal(signal.SIGINT, before)
    run()
