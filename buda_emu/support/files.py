"""File access: every output is written completely or not at all, and only a regular file is ever replaced. Also the
common readers of YAML and JSON files.
"""

import os
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from errno import EBADF, EISDIR
from typing import IO, TYPE_CHECKING, Any, Final, Protocol, cast

from buda_emu.support.errors import BudaError, HostError
from buda_emu.support.lazy import lazy
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
_COPIED_BYTES: Final = 1 << 20
_TICK_NS: Final = 20_000_000
"""Longer than the time between two ticks of a file system's clock: 10 ms where the kernel has 100 of them a second."""


def looks_like_archive(head: bytes) -> bool:
    """Return whether the first bytes of a file, at least 262 of them, are those of a tar or zip archive."""
    return head.startswith(ZIP_SIGNATURE) or head.startswith(_TAR_SIGNATURE, _TAR_SIGNATURE_AT)


class Stream(Protocol):
    """What takes bytes."""

    def write(self, data: bytes, /) -> object:
        """Take them all."""
        ...


def write_file(path: "str | os.PathLike[str]", write: Callable[[IO[bytes]], object], *, durable: bool = False) -> int:
    """Let `write` write a file.

    A regular file, new or there, is written beside its place and moved there when it is whole, with the permissions
    that it had; `durable`: once the disk has it. A link is followed. Devices, pipes and `/dev/stdout` are written as
    they come. Returns the number of bytes. Raises OSError with the name that the caller gave, and what `write` raises.
    """
    name = os.fspath(path)
    try:
        handle = _open_stream(pathlib.Path(name))
        if handle is not None:
            with handle:
                return write_forward(handle, write)
        return _replace(pathlib.Path(os.path.realpath(name)), write, durable)
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, name) from None


def read_whole(path: "str | os.PathLike[str]", most_mib: int = 1024) -> bytes:
    """What a file holds. Raises OSError as opening it does, HostError for a file of more than `most_mib` MiB, such as a
    device that has no end."""
    most = most_mib << 20
    with open(path, "rb") as file:  # noqa: PTH123 - importing pathlib takes longer than reading a small file
        data = file.read(most + 1)
    if len(data) > most:
        raise HostError(f"{os.fspath(path)}: larger than {most_mib} MiB")
    return data


def keep_pipe(name: str, most_mib: int = 1024) -> None:
    """Let a pipe that the caller handed over open be read as often as a file: `/dev/stdin`, or the `/dev/fd/63` of a
    shell's `<(command)`. All that it gives is kept in memory, in a file that takes the place of its descriptor.

    Any other name, and a pipe that is only written to, is left alone. Raises HostError for more than `most_mib` MiB,
    and on systems that open no descriptor anew.
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
        readable = os.open(f"/proc/self/fd/{copy}", os.O_RDONLY)  # what would be written to it, nobody would see
    finally:
        os.close(copy)
    os.lseek(readable, 0, os.SEEK_END)  # who reads on there, as a console from standard input, is at the end
    os.dup2(readable, descriptor)
    os.close(readable)


def refuse_pipe(path: str) -> None:
    """Raises HostError for a pipe or a socket: a document is looked at more than once, and what they give is gone after
    the first time."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116
    except (OSError, ValueError):  # told by whoever opens it
        return
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        raise HostError(
            f"{path}: a pipe can be read only once: write what it gives to a file, or let the command have it as its "
            f"standard input and name /dev/stdin: `... /dev/stdin < {path}`"
        )


def _piped_descriptor(name: str) -> int | None:
    """The descriptor of that name where it is a pipe to read from, or is standard input and a terminal or a socket."""
    folder, _, digits = ("/dev/fd/0" if name == "/dev/stdin" else name).rpartition("/")
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
    """Where the system lists the open descriptors of this process."""
    return "/dev/fd", os.path.realpath("/proc/self/fd")


def read_yaml(path: "str | os.PathLike[str]", what: str) -> Any:
    """What a small YAML or JSON file holds. Raises HostError, which names the file and `what` it should be."""
    import yaml

    try:
        return yaml.safe_load(read_whole(path, 16).decode())
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        raise HostError(f"{path}: not {what}: {error}") from None


@dataclass(frozen=True, slots=True)
class FileState:
    """What the system says of a file's contents: equal states mean that nobody has written to it in between. The time
    of the last change of its status (`changed_ns`) is among it, which no program can set back, as it can that of the
    last write."""

    device: int
    inode: int
    size: int
    written_ns: int
    changed_ns: int

    @staticmethod
    def of(path: str | os.PathLike[str] | int) -> "FileState":
        """Read the state of a file, by its path or by an open descriptor. Raises OSError."""
        now = os.stat(path)  # noqa: PTH116 - a descriptor, too
        return FileState(
            device=now.st_dev,
            inode=now.st_ino,
            size=now.st_size,
            written_ns=now.st_mtime_ns,
            changed_ns=now.st_ctime_ns,
        )

    def settle(self) -> "FileState":
        """Wait until a further write gives another time: the clock of file systems ticks every few milliseconds, and
        of two writes within a tick the second leaves no trace."""
        while 0 <= time.time_ns() - max(self.written_ns, self.changed_ns) < _TICK_NS:
            time.sleep(_TICK_NS / 4e9)
        return self

    def difference(self, path: str | os.PathLike[str]) -> str:
        """Say in words how the file of that path differs from this state; "" where it does not."""
        try:
            now = FileState.of(path)
        except OSError as error:
            return f"it cannot be looked at any more ({error.strerror})"
        if now == self:
            return ""
        if (now.device, now.inode) != (self.device, self.inode):
            return "another file has its name"
        if now.size != self.size:
            return f"it has {now.size} bytes, and had {self.size} when it was opened"
        return "it was written to, or its status changed"


def change_guard(
    path: str | os.PathLike[str], refuse: Callable[[str], BudaError] | None = None, state: FileState | None = None
) -> Callable[[], None]:
    """A function that raises where a file is not what it was when this was called, or what `state` says. To be called
    before and after each look at the file's memory: who reads pages that are gone is ended by the system, and who reads
    pages that somebody wrote to computes something else. `refuse` makes the error of the difference in words, by
    default a HostError. Raises OSError where there is no such file."""
    before = (FileState.of(path) if state is None else state).settle()

    def check() -> None:
        difference = before.difference(path)
        if difference and refuse is not None:
            raise refuse(difference)
        if difference:
            raise HostError(f"{os.fspath(path)}: the file changed while it was in use: {difference}: begin again")

    return check


def write_forward(stream: Stream, write: Callable[[IO[bytes]], object]) -> int:
    """Let `write` write to a stream that cannot go back, as a pipe; the number of bytes."""
    forward = _Forward(stream)
    write(cast("IO[bytes]", forward))
    return forward.tell()


class _Forward:
    """Says what it can to those that write archives: to go forward."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._done = 0

    def write(self, data: "bytes | bytearray | memoryview") -> int:
        """All of it."""
        view = memoryview(data).cast("B")
        self._stream.write(bytes(view))
        self._done += len(view)
        return len(view)

    def tell(self) -> int:
        """Bytes so far."""
        return self._done

    def flush(self) -> None:
        """Nothing waits here."""


def _open_stream(path: "pathlib.Path") -> IO[bytes] | None:
    """The device, pipe or open file of that name; None where a regular file is, or is to be."""
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
    return None if stat.S_ISREG(mode) else path.open("wb")


def _replace(target: "pathlib.Path", write: Callable[[IO[bytes]], object], durable: bool) -> int:
    beside = target.with_name(f".buda-emu-{os.urandom(8).hex()}")
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o666), "wb") as stream:
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
