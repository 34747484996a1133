"""Arrays of an IR text: each named by a digest of its type, shape and bytes, all arrays of a file in an .npz of the
same name.
"""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buda_emu.errors import HostError
from buda_emu.files import write_file
from buda_emu.verify.inputs.numpy_files import npz_of

Array = NDArray[Any]
Arrays = dict[str, Array]


def digest(array: Array) -> str:
    """Twelve letters that equal arrays share, and others do not."""
    found = hashlib.sha256(f"{array.dtype.str} {array.shape}".encode())
    found.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data if array.size else b"")
    return found.hexdigest()[:12]


def save_arrays(path: Path, arrays: Arrays) -> None:
    """All of them into one file, whole or not at all. Raises OSError."""
    write_file(path, lambda stream: np.savez(stream, allow_pickle=False, **arrays))


def load_arrays(path: Path) -> Arrays:
    """Those of a file; none where it is not there. Raises HostError for a file of something else, and for an array
    that is not the one that was saved under its name."""
    arrays = npz_of(str(path), path) if path.exists() else {}
    for name, array in arrays.items():
        if digest(array) != name:
            raise HostError(f"{path}: array {name} is another one than was saved: write text and arrays again")
    return arrays


def equal(one: Any, two: Any) -> bool:
    """Whether two arrays have the same type, shape and bits."""
    if one.dtype != two.dtype or one.shape != two.shape:
        return False
    mine, theirs = (np.ascontiguousarray(item).reshape(-1).view(np.uint8) for item in (one, two))
    return bool(np.array_equal(mine, theirs))
