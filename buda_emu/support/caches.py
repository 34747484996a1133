"""Where caches lie between runs, and whether another user could have written to them."""

import io
import os
import pickle
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from errno import EFBIG, EINVAL
from functools import cache
from typing import Any

_OTHERS = 0o022  # write permission of the group and of everybody
_MOST_LINKS = 40  # as the system follows
_DIGEST_BYTES = 32


def user_caches() -> str:
    """Where this platform keeps a user's caches. Raises RuntimeError where there is no home directory.

    As text, as all paths here: to import pathlib takes a twentieth of the time that `check` takes.
    """
    if sys.platform == "win32":
        return os.environ.get("LOCALAPPDATA") or _at_home("AppData", "Local")
    if sys.platform == "darwin":
        return _at_home("Library", "Caches")
    named = os.environ.get("XDG_CACHE_HOME", "")
    return named if os.path.isabs(named) else _at_home(".cache")  # noqa: PTH117 - a relative one is invalid and ignored


def own_caches() -> str:
    """The folder of everything that this package keeps. Raises RuntimeError as `user_caches` does."""
    return os.path.join(user_caches(), "buda-emu")  # noqa: PTH118


def cache_folder(*names: str) -> str:
    """A folder of `own_caches`; "" where nothing can be kept in it now, see `usable`."""
    try:
        folder = os.path.join(own_caches(), *names)  # noqa: PTH118
    except RuntimeError:  # no home directory
        return ""
    return folder if usable(folder) else ""


def _at_home(*names: str) -> str:
    home = os.path.expanduser("~")  # noqa: PTH111
    if home.startswith("~"):
        raise RuntimeError("there is no home directory")
    return os.path.join(home, *names)  # noqa: PTH118


def is_private(directory: "str | os.PathLike[str]") -> bool:
    """Whether nobody but this user can put files there: a folder of theirs, no link, that others cannot write to."""
    try:
        found = os.lstat(directory)
    except (OSError, ValueError):
        return False
    if not stat.S_ISDIR(found.st_mode):
        return False
    return sys.platform == "win32" or (found.st_uid == os.geteuid() and not found.st_mode & _OTHERS)


def usable(directory: "str | os.PathLike[str]") -> bool:
    """Whether files may be read from that folder, and kept there, now; made if need be, for this user alone.

    Only where nobody else can put files there or another folder in its place: see `distrust`. Ask at each use, the
    permissions of a folder can change. A reason for distrust is logged, once.
    """
    try:
        reason = "" if is_private(directory) else distrust(directory, may_be_missing=True)
        if not reason and not is_private(directory):
            _make(os.path.abspath(directory))  # noqa: PTH100 - no pathlib here
    except (OSError, ValueError):  # nothing is kept on a disk that cannot be written
        return False
    reason = reason or distrust(directory)
    if reason:
        _tell(f"nothing is kept between runs: {reason}")
    return not reason


def distrust(directory: "str | os.PathLike[str]", *, may_be_missing: bool = False) -> str:
    """Why somebody else may have put that folder, or what is in it, there; "" where nobody else can.
    `may_be_missing`: also "" where it is not there yet, and nobody else could put it there.

    The folder is private, and every folder above it belongs to this user or root. Where others can write to one of
    these it is sticky, so that they cannot rename what is not theirs. Links are followed and held to the same.
    """
    if sys.platform == "win32":
        return ""
    trusted = (os.geteuid(), 0)
    path, left = "/", [part for part in os.path.abspath(directory).split("/") if part]  # noqa: PTH100
    left.reverse()
    links = 0
    try:
        while left:
            found = os.lstat(path)
            if found.st_uid not in trusted:
                return f"{path!r} belongs to another user"
            if found.st_mode & _OTHERS and not found.st_mode & stat.S_ISVTX:
                return f"others can write to {path!r}"
            below = os.path.join(path, left.pop())  # noqa: PTH118
            if not stat.S_ISLNK((link := os.lstat(below)).st_mode):
                path = below
                continue
            links += 1
            if link.st_uid not in trusted or links > _MOST_LINKS:
                return f"the link {below!r} belongs to another user"
            target = os.path.join(path, os.readlink(below))  # noqa: PTH115, PTH118
            left += [part for part in reversed(os.path.normpath(target).split("/")) if part]
            path = "/"
    except FileNotFoundError as error:
        return "" if may_be_missing else f"{path!r}: {error.strerror}"
    except OSError as error:
        return f"{path!r}: {error.strerror}"
    return "" if is_private(path) else f"others can write to {path!r}, or it belongs to another user"


def _make(directory: str) -> None:
    """As `os.makedirs`, but the folders above are this user's alone, too, whatever the umask."""
    above = os.path.dirname(directory)  # noqa: PTH120
    if above != directory and not os.path.isdir(above):  # noqa: PTH112
        _make(above)
    try:
        os.mkdir(directory, 0o700)  # noqa: PTH102
    except FileExistsError:
        if not os.path.isdir(directory):  # noqa: PTH112
            raise


# ------------------------------------------------------------------------------------------------- files that are kept
def read_regular(file: "str | os.PathLike[str]", most_bytes: int) -> bytes:
    """What a regular file holds. Raises OSError for one of more bytes, and for anything else: a pipe would be waited
    for, and a device may have no end."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(file, flags), "rb") as stream:
        state = os.fstat(stream.fileno())
        if not stat.S_ISREG(state.st_mode):
            raise OSError(EINVAL, "not a regular file", os.fspath(file))
        data = stream.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(EFBIG, os.strerror(EFBIG), os.fspath(file))
    return data


def read_cache_file(file: str, magic: bytes, most_bytes: int) -> memoryview | None:
    """What `write_kept` wrote there, which then counts as used; None where that is nothing, damaged, or was written
    as another file."""
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
    """Write a file whole or not at all, after `magic` and a checksum of its name and bytes, where its folder is
    `usable`.

    Files of that folder that were not used for longest are removed, until all take no more than `most_bytes`.
    """
    folder = os.path.dirname(file)  # noqa: PTH120
    if not usable(folder):
        return
    own = f"{file}.{os.getpid()}-{os.urandom(6).hex()}"
    with suppress(OSError):
        try:
            with os.fdopen(os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
                stream.write(magic + digest(file, payload))
                stream.write(payload)
            os.replace(own, file)  # noqa: PTH105 - whole, whoever else writes
        except OSError:
            with suppress(OSError):
                os.unlink(own)  # noqa: PTH108
            raise
        _make_room(folder, most_bytes)


def unpickle(names: Mapping[tuple[str, str], Any], payload: memoryview, what: str) -> Any:
    """The object of a pickle that knows these names, by module and name, and no other, so that reading runs no code but
    theirs. `what` it is part of, for the message. Raises any Exception for a pickle that is not ours."""
    return _Unpickler(names, payload, what).load()


class _Unpickler(pickle.Unpickler):
    def __init__(self, names: Mapping[tuple[str, str], Any], payload: memoryview, what: str) -> None:
        super().__init__(io.BytesIO(payload))
        self._names = names
        self._what = what

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        """What is known by that name."""
        found = self._names.get((module_name, global_name))
        if found is None:
            raise pickle.UnpicklingError(f"{module_name}.{global_name} is not part of {self._what}")
        return found


def digest(file: str, payload: "bytes | memoryview") -> bytes:
    """The checksum of what is kept, and of the names of its file and folder, which say what it was made of: under
    another name it would be taken for something else."""
    import hashlib

    folder, name = os.path.split(file)
    found = hashlib.sha256(f"{os.path.basename(folder)}/{name}\0".encode("utf-8", "surrogateescape"))  # noqa: PTH119
    found.update(payload)
    return found.digest()


@cache
def sources(*rooms: str) -> tuple[tuple[str, int, int, int], ...]:
    """Name, size and times of every source of some folders of this package, without any: of all of it.

    An edit without a new version makes what was kept another package's.
    """
    package = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120
    try:
        folders = [os.path.join(package, room) for room in rooms] or [package]  # noqa: PTH118
        return tuple(sorted(found for folder in folders for found in _files(folder)))
    except OSError:  # the package is not a folder: it is not edited either
        return ()


def package_file(package: str, name: str) -> str:
    """The path of a file of an installed package, which is not imported. Raises OSError where it is not installed."""
    places = (os.path.join(path, package, name) for path in sys.path)  # noqa: PTH118
    file = next(filter(os.path.isfile, places), None)
    if file is not None:
        return file
    from importlib.util import find_spec  # however else it may be installed

    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise OSError(f"{package} is not installed")
    return os.path.join(os.path.dirname(spec.origin), name)  # noqa: PTH118, PTH120


def _files(directory: str) -> Iterator[tuple[str, int, int, int]]:
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _files(entry.path)
            elif entry.name.endswith((".py", ".json")):
                found = entry.stat()
                yield entry.path, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _make_room(directory: str, most_bytes: int) -> None:
    """Remove what was not used for longest, so that all files together stay below the limit."""
    with os.scandir(directory) as entries:
        states = [(entry.stat(follow_symlinks=False), entry.path) for entry in entries]  # a link may lead nowhere
    found = sorted((state.st_mtime_ns, state.st_size, path) for state, path in states)
    excess = sum(size for _, size, _ in found) - most_bytes
    for _, size, path in found:
        if excess <= 0:
            return
        with suppress(OSError):  # another process was faster
            os.unlink(path)  # noqa: PTH108
        excess -= size


_told: set[str] = set()


def _tell(text: str) -> None:
    if text not in _told:
        _told.add(text)
        import logging

        logging.getLogger("buda_emu").warning("buda-emu: %s", text)
