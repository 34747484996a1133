"""Where things are kept between runs."""

import os
import re
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path  # with what it imports, a twentieth of the time that `check` takes

_OURS = re.compile(r"(kernels)-(.+)-[0-9a-f]{16}|(netlists|last-failed)")


@dataclass(frozen=True, slots=True)
class Kept:
    """One folder of what this package keeps: "kernels" of one version, "netlists" or "last-failed"."""

    path: "Path"
    kind: str
    version: str  # "" where files of all versions lie together
    files: int
    bytes: int


def kept() -> list[Kept]:
    """All that there is, by kind and version. Other files, and links, are not ours. Raises RuntimeError, OSError."""
    folder = own_caches()
    found: list[Kept] = []
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        name = _OURS.fullmatch(path.name)
        if name is not None and is_private(path):
            sizes = list(_sizes(path))
            found.append(Kept(path, name[1] or name[3], name[2] or "", len(sizes), sum(sizes)))
    return found


def _sizes(folder: "Path") -> Iterator[int]:
    """Bytes of every file below; one that vanishes meanwhile is not counted."""
    for path in folder.rglob("*"):
        try:
            found = path.lstat()
        except OSError:
            continue
        if stat.S_ISREG(found.st_mode):
            yield found.st_size


def remove(folder: Kept) -> None:
    """Delete it with all files. Processes that use it go on without. Raises OSError."""
    import shutil

    try:
        shutil.rmtree(folder.path)
    except FileNotFoundError:  # another process deletes, too
        shutil.rmtree(folder.path, ignore_errors=True)


def user_caches() -> "Path":
    """Where this platform keeps a user's caches. Raises RuntimeError where there is no home directory."""
    from pathlib import Path

    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def own_caches() -> "Path":
    """The folder of everything that this package keeps. Raises RuntimeError as `user_caches` does."""
    return user_caches() / "buda-emu"


def is_private(directory: "str | os.PathLike[str]") -> bool:
    """Whether nobody but this user can put files there: a folder of theirs, no link, that others cannot write to."""
    try:
        found = os.lstat(directory)
    except (OSError, ValueError):
        return False
    if not stat.S_ISDIR(found.st_mode):
        return False
    return sys.platform == "win32" or (found.st_uid == os.geteuid() and not found.st_mode & 0o022)
