"""How much memory the files of a directory take while they are pushed, beside their queues (docs/run/memory.md).

Only headers are read. A file that cannot be read counts nothing here: its reader says what is wrong with it.
"""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import Any

from buda_emu.errors import HostError
from buda_emu.verify.inputs.numpy_files import npy_header, npz_headers

_MOST_HEADER = 100 << 20  # bytes, as the format's own limit


def copied_bytes(inputs: Path) -> int:
    """Bytes of host copies, at most: archives stay, other files come and go one after the other, and each is there as
    its bytes, as an array, and as float32."""
    files = sorted(path for path in inputs.rglob("*") if path.is_file()) if inputs.is_dir() else [inputs]
    kept = once = 0
    bins: Counter[str] = Counter()
    for path in files:
        with suppress(OSError, HostError):
            suffix, size = path.suffix.lower(), path.stat().st_size
            if suffix == ".npy":
                header = npy_header(path)
                once = max(once, header.bytes + max(size, 4 * header.elements))
            elif suffix == ".bin":
                bins[str(path).rsplit(".", 2)[0]] += 2 * size  # entry by entry, and all in one array
            elif suffix in (".npz", ".safetensors"):
                arrays = list(_npz(path) if suffix == ".npz" else _safetensors(path))
                kept += sum(max(array, 4 * elements) if suffix != ".npz" else array for array, elements in arrays)
                largest = max((elements for _, elements in arrays), default=0)
                once = max(once, size + 8 * largest)
    return kept + max(once, max(bins.values(), default=0))


def _npz(path: Path) -> Iterator[tuple[int, int]]:
    """(bytes, elements) of each array."""
    return ((header.bytes, header.elements) for header in npz_headers(path).values())


def _safetensors(path: Path) -> Iterator[tuple[int, int]]:
    """(bytes, elements) of each tensor."""
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        header: dict[str, Any] = {}
        if length <= _MOST_HEADER:
            with suppress(ValueError, RecursionError):
                header = json.loads(stream.read(length))
    for name, entry in header.items():
        if name != "__metadata__":
            with suppress(KeyError, TypeError, ValueError):
                first, last = entry["data_offsets"]
                yield last - first, prod(entry["shape"])
