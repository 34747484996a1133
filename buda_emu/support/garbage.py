"""A pause of Python's garbage collector while many lasting objects are made."""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def no_collections() -> Generator[None]:
    """Pause garbage collection for code that makes very many objects and no garbage (a netlist that is loaded, a kernel
    that is compiled), which loses up to a third of its time to collections. Reference counts go on."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
