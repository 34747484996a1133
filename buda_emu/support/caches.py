"""Folders of caches that last between runs, and the test whether another user could have written to them."""

import io
import os
import pickle
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import Any, Final

from buda_emu.support.files import read_regular

HAS_OTHER_USERS: Final = hasattr(os, "geteuid")
"""Whether files have owners here. On Windows a folder of a user is theirs; a browser has no users."""
_OTHERS = 0o022  # write permission of the group and of everybody
_MOST_LINKS = 40  # as the system follows
_DIGEST_BYTES = 32  # of SHA-256


def user_caches() -> str:
    """Return the folder in which this platform keeps a user's caches. Raises RuntimeError where there is no home
    directory.

    All paths of this module are text: to import pathlib takes a twentieth of the time that `check` takes.
    """
    if sys.platform == "win32":
        return os.environ.get("LOCALAPPDATA") or _at_home("AppData", "Local")
    if sys.platform == "darwin":
        return _at_home("Library", "Caches")
    configured = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(configured):  # noqa: PTH117 - a relative one is invalid and ignored
        return configured
    return _at_home(".cache")


def own_caches() -> str:
    """Return the folder of all files that this package keeps between runs. Raises RuntimeError as `user_caches`
    does."""
    return os.path.join(user_caches(), "buda-emu")  # noqa: PTH118


def cache_folder(*names: str) -> str:
    """Return the path of a folder below `own_caches`, or "" where it is not `usable` or there is no home directory."""
    try:
        folder = os.path.join(own_caches(), *names)  # noqa: PTH118
    except RuntimeError:  # no home directory
        return ""
    return folder if usable(folder) else ""


def _at_home(*names: str) -> str:
    """Return a path below the user's home directory. Raises RuntimeError where there is none."""
    home = os.path.expanduser("~")  # noqa: PTH111
    if home.startswith("~"):
        raise RuntimeError("there is no home directory")
    return os.path.join(home, *names)  # noqa: PTH118


def is_private(directory: "str | os.PathLike[str]") -> bool:
    """Return whether nobody but this user can put files into a folder: it is theirs, no link, and not writable by
    others."""
    try:
        state = os.lstat(directory)
    except (OSError, ValueError):
        return False
    if not stat.S_ISDIR(state.st_mode):
        return False
    return not HAS_OTHER_USERS or (state.st_uid == os.geteuid() and not state.st_mode & _OTHERS)


def usable(directory: "str | os.PathLike[str]") -> bool:
    """Return whether a folder is safe from other users at this moment, so that its files can be trusted. A missing
    folder is made, for this user alone; False where that fails. Whether files can be written there is not tested.

    A folder is usable only where nobody else can put files there or another folder in its place: see `distrust`. Ask
    before each use, because the permissions of a folder can change. A reason for distrust is logged, once.
    """
    reason = ""
    try:
        if not is_private(directory):
            reason = distrust(directory, may_be_missing=True)
        if not reason and not is_private(directory):
            _make_private_folders(os.path.abspath(directory))  # noqa: PTH100 - no pathlib here
    except (OSError, ValueError):  # nothing is kept on a disk that cannot be written
        return False
    reason = reason or distrust(directory)
    if reason:
        _log_once(f"nothing is kept between runs: {reason}")
    return not reason


def distrust(directory: "str | os.PathLike[str]", *, may_be_missing: bool = False) -> str:
    """Return the reason why another user may have put a folder, or its contents, there; "" where nobody else can.

    Nobody else can where the folder is private and every folder above it belongs to this user or root. A folder above
    to which others can write has to be sticky, so that they cannot rename what is not theirs. Links are followed and
    held to the same. With `may_be_missing` a missing folder is trusted, too, if nobody else could make it.
    """
    if not HAS_OTHER_USERS:
        return ""
    path = "/"
    try:
        # Links of links are followed here, one at a time, so that every folder on the way is looked at.
        remaining = _reversed_parts(os.path.abspath(directory))  # noqa: PTH100
        links = 0
        while remaining:
            reason = _distrust_parent(path)
            if reason:
                return reason
            below = os.path.join(path, remaining.pop())  # noqa: PTH118
            link = os.lstat(below)
            if not stat.S_ISLNK(link.st_mode):
                path = below
                continue
            links += 1
            if link.st_uid not in (os.geteuid(), 0) or links > _MOST_LINKS:
                return f"the link {below!r} belongs to another user"
            target = os.path.join(path, os.readlink(below))  # noqa: PTH115, PTH118
            remaining += _reversed_parts(os.path.normpath(target))
            path = "/"
    except FileNotFoundError as error:
        return "" if may_be_missing else f"{path!r}: {error.strerror}"
    except OSError as error:
        return f"{path!r}: {error.strerror}"
    if is_private(path):
        return ""
    return f"others can write to {path!r}, or it belongs to another user"


def _distrust_parent(path: str) -> str:
    """Return the reason why another user may replace an entry of the folder `path`; "" where nobody else can."""
    state = os.lstat(path)
    if state.st_uid not in (os.geteuid(), 0):
        return f"{path!r} belongs to another user"
    if state.st_mode & _OTHERS and not state.st_mode & stat.S_ISVTX:
        return f"others can write to {path!r}"
    return ""


def _reversed_parts(path: str) -> list[str]:
    """Return the names of an absolute path, the last one first."""
    return [part for part in reversed(path.split("/")) if part]


def _make_private_folders(directory: str) -> None:
    """Make a folder and those above it like `os.makedirs`, but all of them for this user alone, whatever the umask."""
    above = os.path.dirname(directory)  # noqa: PTH120
    if above != directory and not os.path.isdir(above):  # noqa: PTH112
        _make_private_folders(above)
    try:
        os.mkdir(directory, 0o700)  # noqa: PTH102
    except FileExistsError:
        if not os.path.isdir(directory):  # noqa: PTH112
            raise


# ------------------------------------------------------------------------------------------------- files that are kept
def read_cache_file(file: str, magic: bytes, most_bytes: int) -> memoryview | None:
    """Return the payload that `write_cache_file` wrote to this path, and mark the file as used. Return None where
    there is no such file, where it is damaged or larger than `most_bytes`, or where it was written under another
    name. `magic` are the bytes that its kind of file begins with."""
    try:
        data = read_regular(file, most_bytes)
        payload = memoryview(data)[len(magic) + _DIGEST_BYTES :]
        if data[: len(data) - len(payload)] != magic + digest(file, payload):
            return None
        os.utime(file)
    except OSError:
        return None
    return payload


def write_cache_file(file: str, magic: bytes, payload: bytes, most_bytes: int) -> None:
    """Write a file completely or not at all: `magic`, a checksum of its name and payload, and the payload. Where its
    folder is not `usable`, or the disk refuses it, nothing is written and nothing raised. The least recently used files
    of the folder are removed until all take no more than `most_bytes`."""
    folder = os.path.dirname(file)  # noqa: PTH120
    if not usable(folder):
        return
    temporary = f"{file}.{os.getpid()}-{os.urandom(6).hex()}"
    with suppress(OSError):
        try:
            with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
                stream.write(magic + digest(file, payload))
                stream.write(payload)
            os.replace(temporary, file)  # noqa: PTH105 - whole, whoever else writes
        except OSError:
            with suppress(OSError):
                os.unlink(temporary)  # noqa: PTH108
            raise
        _make_room(folder, most_bytes)


def unpickle(names: Mapping[tuple[str, str], Any], payload: memoryview, title: str) -> Any:
    """Return the object of a pickle in which no globals but `names`, by module and name, may occur, so that reading
    runs no other code. `title` names the kind of document in the message. Raises any Exception for a pickle that is not
    ours."""
    return _Unpickler(names, payload, title).load()


class _Unpickler(pickle.Unpickler):
    """An unpickler that finds no globals but the listed ones."""

    def __init__(self, names: Mapping[tuple[str, str], Any], payload: memoryview, title: str) -> None:
        super().__init__(io.BytesIO(payload))
        self._names = names
        self._what = title

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        """Return the listed global of that name. Raises UnpicklingError for any other."""
        listed = self._names.get((module_name, global_name))
        if listed is None:
            raise pickle.UnpicklingError(f"{module_name}.{global_name} is not part of {self._what}")
        return listed


def digest(file: str, payload: "bytes | memoryview") -> bytes:
    """Return the checksum of a payload and of the names of its file and folder. Those names say what the payload was
    made from; under another name it would be taken for something else."""
    import hashlib

    folder, name = os.path.split(file)
    checksum = hashlib.sha256(f"{os.path.basename(folder)}/{name}\0".encode("utf-8", "surrogateescape"))  # noqa: PTH119
    checksum.update(payload)
    return checksum.digest()


@cache
def sources(*rooms: str) -> tuple[tuple[str, int, int, int], ...]:
    """Return name, size and times of every source file in some folders of this package, or in all of it without any;
    empty where the package is not a folder. Two runs with equal lists may share caches: an edit without a new version
    changes the list."""
    package = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120
    folders = [os.path.join(package, room) for room in rooms] or [package]  # noqa: PTH118
    files: list[tuple[str, int, int, int]] = []
    try:
        for folder in folders:
            files += _source_files(folder)
        return tuple(sorted(files))
    except OSError:  # the package is not a folder: it is not edited either
        return ()


def package_file(package: str, name: str) -> str:
    """Return the path of a file of an installed package without importing the package. Raises OSError where it is not
    installed."""
    places = (os.path.join(path, package, name) for path in sys.path)  # noqa: PTH118
    file = next(filter(os.path.isfile, places), None)
    if file is not None:
        return file
    from importlib.util import find_spec  # however else it may be installed

    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise OSError(f"{package} is not installed")
    return os.path.join(os.path.dirname(spec.origin), name)  # noqa: PTH118, PTH120


def _source_files(directory: str) -> Iterator[tuple[str, int, int, int]]:
    """Yield path, size and times of every source file, `.py` or `.json`, below a folder."""
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _source_files(entry.path)
            elif entry.name.endswith((".py", ".json")):
                state = entry.stat()
                yield entry.path, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def _make_room(directory: str, most_bytes: int) -> None:
    """Remove the least recently used files of a folder until the others take at most `most_bytes` together."""
    with os.scandir(directory) as entries:
        states = [(entry.stat(follow_symlinks=False), entry.path) for entry in entries]  # a link may lead nowhere
    files = sorted((state.st_mtime_ns, state.st_size, path) for state, path in states)
    excess = sum(size for _, size, _ in files) - most_bytes
    for _, size, path in files:
        if excess <= 0:
            return
        with suppress(OSError):  # another process was faster
            os.unlink(path)  # noqa: PTH108
        excess -= size


_logged: set[str] = set()


def _log_once(text: str) -> None:
    """Log a warning unless this process has logged it before."""
    if text not in _logged:
        _logged.add(text)
        import logging

        logging.getLogger("buda_emu").warning("buda-emu: %s", text)
