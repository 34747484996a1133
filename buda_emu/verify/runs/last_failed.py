"""Which netlists failed last time, for `--lf`: one small file for each working directory, in the user's caches.

What cannot be read or written is as if there were nothing: the memory is a convenience.
"""

import hashlib
import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from buda_emu.caches import usable, user_caches
from buda_emu.files import write_file

SCHEMA_VERSION = 1


def remember(directory: Path, ran: Iterable[str], failed: Iterable[str]) -> None:
    """Note the failed ones among those that ran; what was not run this time keeps what is known of it."""
    path = _path(directory)
    if path is None:
        return
    absolute = {_absolute(directory, name) for name in ran}
    kept = {name for name in recall(directory) if name not in absolute}
    names = sorted(kept | {_absolute(directory, name) for name in failed})
    content = json.dumps({"schema_version": SCHEMA_VERSION, "failed": names})
    with suppress(OSError):
        write_file(path, lambda stream: stream.write(content.encode()))


def recall(directory: Path) -> frozenset[str]:
    """Absolute paths of what failed when it was last run from this directory."""
    path = _path(directory)
    if path is None:
        return frozenset()
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["schema_version"] == SCHEMA_VERSION:
            return frozenset(str(name) for name in content["failed"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return frozenset()


def failed_last_time(directory: Path, names: Iterable[str]) -> list[str]:
    """Those of the names that failed."""
    failed = recall(directory)
    return [name for name in names if _absolute(directory, name) in failed]


def _absolute(directory: Path, name: str) -> str:
    return os.path.normpath(directory / name)


def _path(directory: Path) -> Path | None:
    digest = hashlib.sha256(os.fsencode(directory.resolve())).hexdigest()[:16]
    try:
        folder = user_caches() / "buda-emu" / "last-failed"
    except RuntimeError:  # no home directory
        return None
    return folder / f"{digest}.json" if usable(folder) else None
