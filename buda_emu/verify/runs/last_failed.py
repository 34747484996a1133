"""Which netlists failed last time, for `--lf`, and how long each took: one small file for each working directory, in
the user's caches.

What cannot be read or written is as if there were nothing: the memory is a convenience.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from buda_emu.caches import kept_in, read_regular
from buda_emu.files import write_file
from buda_emu.verify.result import CaseResult

SCHEMA_VERSION = 2
_MOST_BYTES = 64 << 20  # hundreds of thousands of netlists


def remember(directory: Path, results: Iterable[CaseResult]) -> None:
    """Note what of these results failed, and how long each took; of what was not run this time the last is kept."""
    path = _path(directory)
    if path is None:
        return
    known = _known(path)
    for result in results:
        name = _absolute(directory, result.netlist)
        known[name] = {"failed": result.status not in ("passed", "skipped"), "seconds": round(result.seconds, 3)}
    content = json.dumps({"schema_version": SCHEMA_VERSION, "netlists": dict(sorted(known.items()))})
    with suppress(OSError):
        if path.exists() and not path.is_file():  # who writes to a pipe waits for a reader
            path.unlink()
        write_file(path, lambda stream: stream.write(content.encode()))


def failed_last_time(directory: Path, names: Iterable[str]) -> list[str]:
    """Those of the names that failed when they were last run from this directory."""
    known = recall(directory)
    return [name for name in names if known.get(_absolute(directory, name), {}).get("failed")]


def longest_first(directory: Path, names: Iterable[str]) -> list[int]:
    """The positions of the names in the order in which to begin them: what nothing is known of, then what took longest.

    So the last worker does not begin with the longest when all others are done.
    """
    known = recall(directory)
    taken = [known.get(_absolute(directory, name), {}).get("seconds", float("inf")) for name in names]
    return sorted(range(len(taken)), key=lambda place: -taken[place])


def recall(directory: Path) -> Mapping[str, Mapping[str, Any]]:
    """Absolute path -> whether it failed and the seconds it took, when it was last run from this directory."""
    path = _path(directory)
    return _known(path) if path is not None else {}


def _known(path: Path) -> dict[str, dict[str, Any]]:
    try:
        content = json.loads(read_regular(path, _MOST_BYTES).decode("utf-8"))
        if content["schema_version"] == SCHEMA_VERSION:
            return {
                str(name): {"failed": bool(item["failed"]), "seconds": float(item["seconds"])}
                for name, item in content["netlists"].items()
            }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    return {}


def _absolute(directory: Path, name: str) -> str:
    return os.path.normpath(directory / name)


def _path(directory: Path) -> Path | None:
    digest = hashlib.sha256(os.fsencode(directory.resolve())).hexdigest()[:16]
    folder = kept_in("last-time")
    return Path(folder, f"{digest}.json") if folder else None
