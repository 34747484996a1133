"""Loaded netlists, kept in the user's caches for the next time (docs/run/cache.md).

A file is named by a hash of everything that a result depends on: the document's bytes and name, architecture,
strictness, this package's version and sources, Python's version. Changed inputs find another file, so nothing is ever
out of date. What cannot be read, or does not hold what it should, is as if it were not there; a run never fails for it.
"""

import os
import pickle
import sys
from contextlib import suppress
from typing import Final

from buda_emu.caches import kept_in, read_kept, sources, write_kept
from buda_emu.identity import digest
from buda_emu.netlist import nodes
from buda_emu.netlist.cached.pickled import Result, pickled, unpickled
from buda_emu.version import __version__

MOST_BYTES: Final = 64 << 20  # of all files; those that were not used for longest go first
FOLDER: Final = "netlists"
_MAGIC: Final = b"buda-emu netlist 1\n"


class NetlistCache:
    """The place of one document's result."""

    def __init__(self, data: bytes, path: str, arch: str | None, strict: bool) -> None:
        self._data = data
        self._file = ""
        directory = kept_in(FOLDER)
        if directory:
            self._file = os.path.join(directory, _name(data, path, arch, strict))  # noqa: PTH118 - no pathlib here

    def read(self) -> Result | None:
        """What was kept, None where that is nothing or not to be used."""
        payload = read_kept(self._file, _MAGIC, MOST_BYTES) if self._file else None
        if payload is None:
            return None
        try:
            return unpickled(payload, self._data)
        except Exception:  # noqa: BLE001 - a pickle that is not ours can raise anything
            return None

    def write(self, result: Result, root: nodes.Node) -> None:
        """Keep a result; `root` is the tree that it was read from."""
        if self._file:
            with suppress(RecursionError, pickle.PicklingError):
                write_kept(self._file, _MAGIC, pickled(result, root), MOST_BYTES)


def _name(data: bytes, path: str, arch: str | None, strict: bool) -> str:
    about = (__version__, sources("netlist", "spec"), sys.version, path, arch, strict)
    return digest(about, data)
