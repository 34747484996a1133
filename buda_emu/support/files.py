"""File access: every output is written completely or not at all, and only a regular file is ever replaced. Also the
common readers of YAML and JSON files.
"""

import os
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from errno import EBADF, EFBIG, EINVAL, EISDIR
from typing import IO, TYPE_CHECKING, Any, Final, Protocol, cast

from buda_emu.support.errors import BudaError, HostError
from buda_emu.support.lazy import lazy
from buda_emu.support.output_places import remove_empty_folders, resolve_output
from buda_emu.support.records import dataclass

if TYPE_CHECKING:
    import pathlib
else:
    pathlib = lazy("pathlib")

ZIP_SIGNATURE: Final = b"PK\x03\x04"
"""The first bytes of a zip archive, and of each member's header in it."""
_TAR_SIGNATURE: Final = b"ustar"
_TAR_SIGNATURE_AT: Final = 257  # in the header of the first member
_BINARY: int = getattr(os, "O_BINARY", 0)
_COPIED_BYTES: Final = 1 << 20  # at a time, to bound the memory
_TICK_NS: Final = 20_000_000
"""Longer than the time between two ticks of a file system's clock: 10 ms where the kernel has 100 of them a second."""


MODEL_SUFFIXES: Final = (".onnx", ".pt2")
"""Endings of the names of models in files of machine learning frameworks."""


def is_model(path: str) -> bool:
    """Return whether a file is a model of a machine learning framework, by its name."""
    return path.lower().endswith(MODEL_SUFFIXES)


def looks_like_archive(head: bytes) -> bool:
    """Return whether the first bytes of a file, at least 262 of them, are those of a tar or zip archive."""
    return head.startswith(ZIP_SIGNATURE) or head.startswith(_TAR_SIGNATURE, _TAR_SIGNATURE_AT)


class Stream(Protocol):
    """A destination that takes bytes."""

    def write(self, data: bytes, /) -> object:
        """Write all bytes of `data`."""
        ...


def write_file(path: "str | os.PathLike[str]", write: Callable[[IO[bytes]], object], *, durable: bool = False) -> int:
    """Open a file for `write` and return the number of bytes that it wrote.

    A regular file, new or existing, is written beside its place and moved there when it is complete, with the
    permissions that it had; with `durable` once the disk has it. A link is followed, but see `resolve_output`. Devices,
    pipes and `/dev/stdout` are written directly. Where a write fails, folders that `make_folder` made for it and that
    hold nothing are removed. Raises OSError with the name that the caller gave, and what `write` raises.
    """
    name = os.fspath(path)
    try:
        target = resolve_output(name)
        handle = _open_stream(pathlib.Path(name))
        if handle is not None:
            with handle:
                return write_forward(handle, write)
        return _write_and_move(pathlib.Path(target), write, durable)
    except OSError as error:
        remove_empty_folders(os.path.dirname(name) or os.curdir)  # noqa: PTH120
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, name) from None


def read_whole(path: "str | os.PathLike[str]", most_mib: int = 1024) -> bytes:
    """Return the bytes of a file. Raises OSError as opening it does, HostError for a file of more than `most_mib` MiB,
    such as a device that has no end."""
    limit = most_mib << 20
    with open(path, "rb") as file:  # noqa: PTH123 - importing pathlib takes longer than reading a small file
        data = file.read(limit + 1)
    if len(data) > limit:
        raise HostError(f"{os.fspath(path)}: larger than {most_mib} MiB")
    return data


def open_regular(path: "str | os.PathLike[str]") -> int:
    """Open a regular file for reading and return its descriptor. Raises OSError for anything else: a pipe would be
    waited for, and a device may have no end."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _BINARY)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(EINVAL, "no regular file", os.fspath(path))
    return handle


def read_regular(path: "str | os.PathLike[str]", most_bytes: int) -> bytes:
    """Return the bytes of a regular file. Raises OSError as `open_regular` does, and for a file of more bytes."""
    with os.fdopen(open_regular(path), "rb") as stream:
        data = stream.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(EFBIG, os.strerror(EFBIG), os.fspath(path))
    return data


def keep_pipe(name: str, most_mib: int = 1024) -> None:
    """Make a pipe that the caller handed over open readable as often as a file: `/dev/stdin`, or the `/dev/fd/63` of a
    shell's `<(command)`. All that it gives is kept in memory, in a file that takes the place of its descriptor.

    Any other name, and a pipe that is only written to, is left alone. Raises HostError for more than `most_mib` MiB,
    and on systems that cannot open a descriptor anew.
    """
    descriptor = _piped_descriptor(name)
    if descriptor is None:
        return
    if sys.platform != "linux":
        raise HostError(f"{name}: a pipe can be read only once: write what it gives to a file, and name that")
    copy = os.memfd_create("pipe")
    try:
        while part := os.read(descriptor, _COPIED_BYTES):
            if os.fstat(copy).st_size + len(part) > most_mib << 20:
                raise HostError(f"{name}: gives more than {most_mib} MiB: write that to a file, and name it")
            os.write(copy, part)
        readable = os.open(f"/proc/self/fd/{copy}", os.O_RDONLY)  # nobody would see what is written to it
    finally:
        os.close(copy)
    os.lseek(readable, 0, os.SEEK_END)  # a later reader, such as a console, is at the end
    os.dup2(readable, descriptor)
    os.close(readable)


def refuse_pipe(path: str) -> None:
    """Raise HostError for a pipe or a socket: a document is read more than once, and what they give is gone after the
    first time."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116
    except (OSError, ValueError):  # the open that follows raises it
        return
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        raise HostError(
            f"{path}: a pipe can be read only once: write what it gives to a file, or let the command have it as its "
            f"standard input and name /dev/stdin: `... /dev/stdin < {path}`"
        )


def _piped_descriptor(name: str) -> int | None:
    """Return the descriptor of that name where it is a pipe to read from, or is standard input and a terminal or a
    socket. Return None for any other name."""
    if name == "/dev/stdin":
        name = "/dev/fd/0"
    folder, _, digits = name.rpartition("/")
    if not digits.isdecimal() or "\0" in folder or os.path.realpath(folder) not in _descriptor_folders():
        return None
    descriptor = int(digits)
    try:
        mode = os.fstat(descriptor).st_mode
        if descriptor == 0 and (stat.S_ISSOCK(mode) or os.isatty(0)):
            return 0
        if not stat.S_ISFIFO(mode):
            return None
        os.read(descriptor, 0)  # takes nothing; an error where the pipe is written to
    except (OSError, OverflowError):
        return None
    return descriptor


def _descriptor_folders() -> tuple[str, str]:
    """Return the folders in which the system lists the open descriptors of this process."""
    return "/dev/fd", os.path.realpath("/proc/self/fd")


def read_yaml(path: "str | os.PathLike[str]", title: str) -> Any:
    """Return the content of a YAML or JSON file of at most 16 MiB. Raises HostError, with the name of the file and
    `title`, the kind of document expected, for one that cannot be read or parsed."""
    import yaml

    try:
        return yaml.safe_load(read_whole(path, 16).decode())
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        raise HostError(f"{path}: not {title}: {error}") from None


@dataclass(frozen=True, slots=True)
class FileState:
    """The identity, size and times of a file: equal states mean that nobody has written to it in between.

    `changed_ns`, the time of the last change of its status, cannot be set back by a program, as the time of the last
    write (`written_ns`) can.
    """

    device: int
    inode: int
    size: int
    written_ns: int
    changed_ns: int

    @staticmethod
    def of(path: str | os.PathLike[str] | int) -> "FileState":
        """Read the state of a file, by its path or by an open descriptor. Raises OSError."""
        status = os.stat(path)  # noqa: PTH116 - a descriptor, too
        return FileState(
            device=status.st_dev,
            inode=status.st_ino,
            size=status.st_size,
            written_ns=status.st_mtime_ns,
            changed_ns=status.st_ctime_ns,
        )

    def settle(self) -> "FileState":
        """Wait until a further write would give another time, and return the state. The clock of file systems ticks
        every few milliseconds, and of two writes within a tick the second leaves no trace."""
        while 0 <= time.time_ns() - max(self.written_ns, self.changed_ns) < _TICK_NS:
            time.sleep(_TICK_NS / 4e9)
        return self

    def difference(self, path: str | os.PathLike[str]) -> str:
        """Return in words how the file of that path differs from this state; "" where it does not."""
        try:
            current = FileState.of(path)
        except OSError as error:
            return f"it cannot be looked at any more ({error.strerror})"
        if current == self:
            return ""
        if (current.device, current.inode) != (self.device, self.inode):
            return "another file has its name"
        if current.size != self.size:
            return f"it has {current.size} bytes, and had {self.size} when it was opened"
        return "it was written to, or its status changed"


def change_guard(
    path: str | os.PathLike[str], refuse: Callable[[str], BudaError] | None = None, state: FileState | None = None
) -> Callable[[], None]:
    """Return a function that raises where a file is no longer as it was at this call, or as `state` says.

    Call it before and after each look at a memory-mapped file: the system ends a process that reads pages that are
    gone, and pages that somebody wrote to give other results. `refuse` makes the error from the difference in words, by
    default a HostError. Raises OSError where there is no such file.
    """
    before = FileState.of(path) if state is None else state
    before.settle()

    def check() -> None:
        """Raise the error of a file that is no longer as it was."""
        difference = before.difference(path)
        if difference and refuse is not None:
            raise refuse(difference)
        if difference:
            raise HostError(f"{os.fspath(path)}: the file changed while it was in use: {difference}: begin again")

    return check


def write_forward(stream: Stream, write: Callable[[IO[bytes]], object]) -> int:
    """Let `write` write to a stream that cannot seek, such as a pipe, and return the number of bytes."""
    forward = _Forward(stream)
    write(cast("IO[bytes]", forward))
    return forward.tell()


class _Forward:
    """A file object that can only go forward, with the methods that writers of archives ask for."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._done = 0

    def write(self, data: "bytes | bytearray | memoryview") -> int:
        """Write all bytes and return their number."""
        view = memoryview(data).cast("B")
        self._stream.write(bytes(view))
        self._done += len(view)
        return len(view)

    def tell(self) -> int:
        """Return the number of bytes that were written."""
        return self._done

    def flush(self) -> None:
        """Do nothing: no bytes are buffered."""


def _open_stream(path: "pathlib.Path") -> IO[bytes] | None:
    """Open the device, pipe or open file of that name for writing. Return None where a regular file is, or is to be.
    Raises OSError for a folder, and for an open file that has no name any more."""
    name = str(path.absolute())
    folder, _, number = {"/dev/stdout": "/dev/fd/1", "/dev/stderr": "/dev/fd/2"}.get(name, name).rpartition("/")
    if folder in ("/dev/fd", "/proc/self/fd") and number.isdecimal():
        return os.fdopen(os.dup(int(number)), "wb")  # goes on where others of this process write
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
    if stat.S_ISREG(mode) and not path.samefile(os.path.realpath(path)):
        raise OSError(EBADF, os.strerror(EBADF))  # an open file that has no name any more
    if stat.S_ISREG(mode):
        return None
    return path.open("wb")


def _write_and_move(target: "pathlib.Path", write: Callable[[IO[bytes]], object], durable: bool) -> int:
    """Write a file beside its place, move it there, and return its size in bytes. Where there is a file already, only
    its owner can read the new one until it has the mode of the old one."""
    beside = target.with_name(f".buda-emu-{os.urandom(8).hex()}")
    mode = 0o600 if target.exists() else 0o666
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, mode), "wb") as stream:
            write(stream)
            size = stream.tell()
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
        with suppress(FileNotFoundError):
            beside.chmod(stat.S_IMODE(target.stat().st_mode))
        beside.replace(target)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise
    return size
