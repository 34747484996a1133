"""Limits of settings files: which settings a file may not decide, and which files are trusted. Entering a repository
gives it no trust.

What widens trust (code that runs, hosts that work is sent to, more memory, files outside) is taken from the command
line or the API alone. A file is looked for upward as far as the root of the repository or the user's home, never in or
beyond a folder that others can write to.
"""

import argparse
import os
import stat
import sys
from collections.abc import Mapping
from typing import Final

from buda_emu.errors import HostError

NEVER: Final[Mapping[str, str]] = {
    "allow-pickle": "a pickle can run any code",
    "check-command": "it is run in a shell",
    "command": "a command of the debugger can write files",
    "script": "a command of the debugger can write files",
    "port": "everybody who reaches the port can give commands",
    "dask": "a scheduler runs the work of this command on other machines",
}
"""Options that no settings file has, and why."""
LOWERS: Final = "memory-limit"
"""The option that a settings file may lower, and not raise."""
FILE_WORDS: Final = frozenset({"FILE", "FILE.npy", "DIR", "OLD", "OTHER", "RAW", "MODEL"})
"""Metavars of options that name a file or folder, alone or after `NAME=`."""
_FILE_OR_NUMBER: Final = "chips"
"""The option that names a file where it is not a number."""
_OTHERS: Final = 0o022  # write permission of the group and of everybody


def kind(name: str, action: argparse.Action) -> str:
    """How far a setting of this option is trusted: `never`, `lowers`, `file` (one within the project), `free`."""
    if name in NEVER:
        return "never"
    if name == LOWERS:
        return "lowers"
    word = action.metavar.rpartition("=")[2] if isinstance(action.metavar, str) and action.nargs != 0 else ""
    return "file" if word in FILE_WORDS or name == _FILE_OR_NUMBER else "free"


def refusal(name: str) -> str:
    """What is said of a setting that no file has; "" of any other."""
    return f"no setting, because {NEVER[name]}: give --{name} on the command line" if name in NEVER else ""


def require_within(name: str, action: argparse.Action, text: str, folder: str) -> None:
    """Raises HostError where a setting in a file of `folder` names a file outside of it, and of the current folder."""
    if kind(name, action) != "file" or (name == _FILE_OR_NUMBER and text.isdecimal()):
        return
    file = text.partition("=")[2] if isinstance(action.metavar, str) and "=" in action.metavar else text
    if not (_within(file, folder) or _within(file, ".")):
        raise HostError(f"{file} lies outside of {folder or 'this folder'}: give --{name} on the command line")


def _within(path: str, folder: str) -> bool:
    """Whether a path, its links followed, leads into a folder."""
    inside, outside = os.path.realpath(path), os.path.realpath(folder or ".")
    return inside == outside or inside.startswith(outside.rstrip(os.sep) + os.sep)


# --------------------------------------------------------------------------------------------------------- where
def highest(folder: str) -> str:
    """The last folder that may have settings for this one: the root of the repository that it is in, else the user's
    home, else the folder itself."""
    home = os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111 - importing pathlib takes longer than all of this
    above = folder
    while True:
        if os.path.lexists(os.path.join(above, ".git")):  # noqa: PTH118
            return above
        if above == home:
            return home
        parent = os.path.dirname(above)  # noqa: PTH120
        if parent == above:
            return folder
        above = parent


def why_not(path: str, what: str = "folder") -> str:
    """Why settings in a folder, or a file of them, links followed, are not trusted; "" where only this user and root
    can have written them."""
    if sys.platform == "win32":
        return ""
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError as error:
        return error.strerror or str(error)
    if found.st_uid not in (os.geteuid(), 0):
        return f"the {what} belongs to another user"
    others = found.st_mode & _OTHERS
    if others == stat.S_IWGRP and found.st_gid == os.getegid() == os.geteuid():  # a group of this user alone
        return ""
    return f"others can write to the {what}" if others else ""
