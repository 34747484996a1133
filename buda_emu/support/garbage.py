"""Pauses Python's garbage collector while many lasting objects are made: a netlist is loaded, a kernel compiled."""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def no_collections() -> Generator[None]:
    """Who makes very many objects and no garbage (a netlist that is loaded, a kernel that is compiled) would lose up to
    a third of the time to collections. Reference counts go on."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
