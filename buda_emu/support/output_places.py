"""Where outputs go: folders that are made for them, and links on the way that somebody else may have placed there."""

import errno
import os
import stat
import sys
from contextlib import suppress
from typing import Final

_MOST_LINKS: Final = 40  # of a path, as in Linux (MAXSYMLINKS)
_MADE: Final[set[str]] = set()
"""Folders that this process has made for outputs."""
_NAME_OF_FIFO: Final = "a pipe"
_NAME_OF_LINK: Final = "a link"


def resolve_output(name: str) -> str:
    """Return the path that an output of that name has when all links are followed.

    In a folder that everybody may write to and whose files only their owners may remove, such as `/tmp`, the link or
    pipe of another user is refused, unless that user owns the folder: it would lead the output to where its writer did
    not want it. Linux has the same rule (`fs.protected_symlinks`, `fs.protected_fifos`), but applies it where a file is
    opened by the name of the link, which is not how files are replaced; here it holds for folders of the path, too.
    Raises OSError.
    """
    if sys.platform == "win32":
        return os.path.realpath(name)
    if not os.path.isabs(name):  # noqa: PTH117 - only such a name needs the present folder, which may be gone
        name = os.path.join(os.getcwd(), name)  # noqa: PTH109, PTH118
    waiting = name.split("/")[::-1]
    folder = "/"
    links = 0
    while waiting:
        part = waiting.pop()
        if part == "..":
            folder = os.path.dirname(folder)  # noqa: PTH120
            continue
        if part in ("", "."):
            continue
        path = os.path.join(folder, part)  # noqa: PTH118
        if not _is_link(path, folder, name):
            folder = path
            continue
        links += 1
        if links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
        target = os.readlink(path)  # noqa: PTH115
        if target.startswith("/"):
            folder = "/"
        waiting.extend(target.split("/")[::-1])
    return folder


def _is_link(path: str, folder: str, name: str) -> bool:
    """Return whether a path is a link to follow. Raises OSError for a link or a pipe in `folder` that is refused."""
    try:
        status = os.lstat(path)
    except OSError:  # what is not there yet; whoever opens it meets the reason
        return False
    is_link = stat.S_ISLNK(status.st_mode)
    if (is_link or stat.S_ISFIFO(status.st_mode)) and _is_of_a_stranger(status, os.stat(folder)):  # noqa: PTH116
        kind = _NAME_OF_LINK if is_link else _NAME_OF_FIFO
        reason = f"{path} is {kind} of another user in a folder that everybody may write to: name another file"
        raise PermissionError(errno.EACCES, reason, name)
    return is_link


def _is_of_a_stranger(status: os.stat_result, folder: os.stat_result) -> bool:
    """Return whether a file belongs neither to this user nor to the owner of its folder, which everybody may write
    to."""
    shared = stat.S_ISVTX | stat.S_IWOTH
    return folder.st_mode & shared == shared and status.st_uid not in (os.geteuid(), folder.st_uid)


def make_folder(path: "str | os.PathLike[str]") -> None:
    """Make a folder for outputs, and those above it, where they are not there. Raises OSError, and leaves no new folder
    behind then."""
    name = os.fspath(path)
    missing: list[str] = []
    folder = resolve_output(name)
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)  # noqa: PTH120
    try:
        for folder in reversed(missing):
            with suppress(FileExistsError):  # made by somebody else in between
                os.mkdir(folder)  # noqa: PTH102
                _MADE.add(folder)
        if not os.path.isdir(name):  # noqa: PTH112
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
    except OSError as error:
        remove_empty_folders(missing[0] if missing else name)
        raise OSError(error.errno, error.strerror, name) from None


def remove_empty_folders(name: str) -> None:
    """Remove the folder of that name and those above it as far as `make_folder` made them and they hold nothing."""
    with suppress(OSError):
        folder = os.path.realpath(name)
        while folder in _MADE or not os.path.lexists(folder):
            if folder in _MADE:
                os.rmdir(folder)  # noqa: PTH106
                _MADE.discard(folder)
            folder = os.path.dirname(folder)  # noqa: PTH120
