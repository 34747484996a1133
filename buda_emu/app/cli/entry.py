"""The entry point of the command's process. Ctrl-C ends it quietly, even while modules are imported."""

import gc
import os
import signal
from typing import NoReturn

_COLLECT_AFTER = 20_000
"""New objects between collections of cycles, for the library's 700: importing makes many objects, and no garbage."""


def entry() -> NoReturn:
    """Run the command as the console script `buda-emu`, and end the process with its exit code."""
    gc.set_threshold(_COLLECT_AFTER, 10, 10)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # to start the threads of BLAS takes a seventh of numpy's import
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing is open yet that would have to be cleaned up
    from buda_emu.app.cli.main import entry as run
    from buda_emu.support.interrupt import interrupt

    signal.signal(signal.SIGINT, interrupt if before is signal.default_int_handler else before)
    run()
