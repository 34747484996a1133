"""Tables of functions kept in the user's caches: by the definition one takes longer to work out than a small netlist
to run.

A file is named by a hash of all that the table depends on, so nothing is ever out of date. One that is damaged, or
maybe somebody else's, is as if it were not there (`caches.py`).
"""

import hashlib
import os
import sys
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.caches import kept_in, read_kept, sources, write_kept

FOLDER: Final = "tables"
MOST_BYTES: Final = 16 << 20  # of all files; those that were not used for longest go first
_ROOMS: Final = ("tensix", "formats", "spec")
_MAGIC: Final = b"buda-emu table 1\n"
_Table = NDArray[np.uint16]


def kept_table(name: str, about: object, make: Callable[[], _Table]) -> _Table:
    """uint16[65536], read-only: what `make` gives, or gave in an earlier process for the same `name` and `about`, an
    object whose `repr` says all that the table depends on but this package's sources."""
    file = _file(name, about)
    kept = read_kept(file, _MAGIC, MOST_BYTES) if file else None
    if kept is not None and len(kept) == (1 << 16) * 2:
        table = np.frombuffer(kept, "<u2").astype(np.uint16)  # a copy, which begins where numbers may
    else:
        table = make()
        if file:
            write_kept(file, _MAGIC, table.astype("<u2").tobytes(), MOST_BYTES)
    table.flags.writeable = False
    return table


def _file(name: str, about: object) -> str:
    """Its place; "" where nothing can be kept."""
    folder = kept_in(FOLDER)
    if not folder:
        return ""
    text = repr((about, sources(*_ROOMS), sys.version, np.__version__))
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:24]
    return os.path.join(folder, f"{name}-{digest}")  # noqa: PTH118
