"""Where things are kept between runs."""

import os
import stat
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path  # with what it imports, a twentieth of the time that `check` takes


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
