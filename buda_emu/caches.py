"""Where things are kept between runs."""

import os
import sys
from pathlib import Path


def user_caches() -> Path:
    """Where this platform keeps a user's caches. Raises RuntimeError where there is no home directory."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
