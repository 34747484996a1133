"""One writer for all outputs: whole or not at all, devices and pipes written as they come, links followed."""

import io
import os
import re
import stat
import sys
import tarfile
import threading
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import IO

import numpy as np
import pytest

from buda_emu.app.cli.main import main
from buda_emu.support.errors import Exit, HostError
from buda_emu.support.files import change_guard, keep_pipe, read_whole, refuse_pipe, write_file, write_forward

NETLIST = str(Path(__file__).parents[2] / "netlists" / "matmul.yaml")
posix = pytest.mark.skipif(sys.platform == "win32", reason="devices, pipes and permissions of POSIX")


def text(path: Path, content: bytes = b"new") -> int:
    return write_file(path, lambda stream: stream.write(content))


def test_a_new_file(tmp_path: Path) -> None:
    assert text(tmp_path / "a") == 3
    assert (tmp_path / "a").read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@posix
def test_permissions_are_the_users_or_those_that_were(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        text(tmp_path / "a")
        assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640
        (tmp_path / "a").chmod(0o604)
        text(tmp_path / "a", b"again")
        assert (tmp_path / "a").stat().st_mode & 0o777 == 0o604
    finally:
        os.umask(before)


@posix
def test_nobody_else_reads_a_private_file_while_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "a").touch(0o600)
    modes: set[int] = set()

    def write(stream: IO[bytes]) -> None:
        stream.write(b"secret")
        modes.update(path.stat().st_mode & 0o777 for path in tmp_path.iterdir())

    write_file(tmp_path / "a", write)
    assert modes == {0o600}


@pytest.mark.parametrize("fault", [ValueError("no"), KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_what_fails_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path, fault: BaseException) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def fail(stream: io.BufferedIOBase) -> None:
        stream.write(b"half")
        raise fault

    with pytest.raises(type(fault)) as raised:
        write_file(path, fail)
    if isinstance(fault, OSError):
        assert raised.value.filename == str(path)
    assert path.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@posix
def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "link").symlink_to("below/file")
    text(tmp_path / "link")  # leads to no file yet
    text(tmp_path / "link", b"again")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "below" / "file").read_bytes() == b"again"


@posix
def test_devices_are_written_and_stay(tmp_path: Path) -> None:
    number = Path(os.devnull).stat().st_rdev
    text(Path(os.devnull))
    (tmp_path / "link").symlink_to(os.devnull)
    text(tmp_path / "link")
    found = Path(os.devnull).stat()
    assert stat.S_ISCHR(found.st_mode)
    assert found.st_rdev == number


@posix
def test_a_pipe_is_written(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=text, args=(pipe, b"x" * 100_000), daemon=True)
    writer.start()
    assert pipe.read_bytes() == b"x" * 100_000
    writer.join(10)
    assert stat.S_ISFIFO(pipe.lstat().st_mode)


@posix
def test_an_open_file_goes_on(tmp_path: Path) -> None:
    """As with `--json /dev/stdout > file`: what was printed stays, and what is printed next follows."""
    with (tmp_path / "out").open("wb", buffering=0) as stream:
        stream.write(b"before ")
        text(Path(f"/dev/fd/{stream.fileno()}"))
        stream.write(b" behind")
    assert (tmp_path / "out").read_bytes() == b"before new behind"


@pytest.mark.parametrize("name", ["missing/a", "folder", "file/a"])
def test_errors_name_the_file_that_was_asked_for(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=re.escape(name)) as raised:
        text(tmp_path / name)
    assert raised.value.filename == str(tmp_path / name)
    assert raised.value.strerror


def test_the_longest_name_that_a_file_can_have(tmp_path: Path) -> None:
    text(tmp_path / ("n" * 255))


def test_archives_and_arrays_go_to_what_only_goes_forward() -> None:
    """Writers that would like to go back, and write what they cannot know beforehand, behind."""

    class Pipe:
        def __init__(self) -> None:
            self.content = b""

        def write(self, data: bytes) -> int:
            self.content += data
            return len(data)

    def zipped(stream: io.BufferedIOBase) -> None:
        with zipfile.ZipFile(stream, "w") as archive:
            archive.writestr("member", "text")

    def tarred(stream: io.BufferedIOBase) -> None:
        with tarfile.open(fileobj=stream, mode="w") as archive:
            archive.addfile(tarfile.TarInfo("member"), io.BytesIO())

    pipe = Pipe()
    assert write_forward(pipe, zipped) == len(pipe.content)
    assert zipfile.ZipFile(io.BytesIO(pipe.content)).read("member") == b"text"
    pipe = Pipe()
    write_forward(pipe, tarred)
    with tarfile.open(fileobj=io.BytesIO(pipe.content)) as archive:
        assert archive.getnames() == ["member"]
    pipe = Pipe()
    write_forward(pipe, lambda stream: np.save(stream, np.arange(5)))
    assert np.load(io.BytesIO(pipe.content)).tolist() == [0, 1, 2, 3, 4]


def test_a_file_without_an_end_is_refused():
    with pytest.raises(HostError, match=r"/dev/zero: larger than 1 MiB"):
        read_whole("/dev/zero", 1)


def test_a_whole_file_is_read_up_to_its_limit(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(1 << 20))
    assert len(read_whole(path, 1)) == 1 << 20
    path.write_bytes(bytes((1 << 20) + 1))
    with pytest.raises(HostError, match="larger than 1 MiB"):
        read_whole(path, 1)


@pytest.mark.parametrize(
    "verb",
    [["gemini", "check"], ["vpux", "check"], ["darwinn", "check"], ["check"], ["debug", "--batch", NETLIST, "-x"]],
)
def test_verbs_refuse_what_has_no_end(verb, capsys):
    assert main([*verb, "/dev/zero"]) == Exit.REFUSED
    assert "larger than" in "".join(capsys.readouterr())


def test_what_has_no_end_is_of_no_kind(capsys):
    assert main(["info", "/dev/zero"]) == Exit.REFUSED
    assert (
        "/dev/zero: of no kind that is known here; read as a BUDA netlist, refused, 1 error" in capsys.readouterr().out
    )


def overwrite(path: Path) -> None:
    """The same size, and the last byte another one."""
    with path.open("r+b") as stream:
        stream.seek(-1, os.SEEK_END)
        stream.write(b"?")


def overwrite_and_set_back(path: Path) -> None:
    before = path.stat()
    overwrite(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replace(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(b"?" * path.stat().st_size)
    other.replace(path)


CHANGES = {
    "written to": (overwrite, "it was written to"),
    "written to, times set back": (overwrite_and_set_back, "it was written to, or its status changed"),
    "cut off": (lambda path: os.truncate(path, 2), "it has 2 bytes, and had 4 when it was opened"),
    "longer": (lambda path: os.truncate(path, 9), "it has 9 bytes, and had 4 when it was opened"),
    "replaced": (replace, "another file has its name"),
    "removed": (Path.unlink, "it cannot be looked at any more"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_file_that_changes_while_it_is_in_use(tmp_path: Path, name: str) -> None:
    """At once, too: within one tick of the clock of the file system."""
    change, reason = CHANGES[name]
    path = tmp_path / "a"
    path.write_bytes(b"abcd")
    check = change_guard(path)
    check()
    path.read_bytes()
    check()
    change(path)
    with pytest.raises(HostError, match=f"a: the file changed while it was in use: {reason}"):
        check()


@pytest.mark.skipif(sys.platform != "linux", reason="descriptors are opened anew on Linux alone")
class TestPipesThatAreKept:
    """`keep_pipe` of pipes that this process has open."""

    @staticmethod
    def fill(data: bytes) -> int:
        """The end to read from, of a pipe that gives so many bytes."""
        there, here = os.pipe()

        def write() -> None:
            with os.fdopen(here, "wb") as stream, suppress(BrokenPipeError):
                stream.write(data)

        threading.Thread(target=write, daemon=True).start()
        return there

    @pytest.mark.parametrize("size", [0, 1, 65_536, 3_000_000])
    def test_it_is_read_as_often_as_a_file(self, size: int) -> None:
        data = os.urandom(size)
        descriptor = self.fill(data)
        name = f"/dev/fd/{descriptor}"
        for _ in range(2):  # the second time it is a file already
            keep_pipe(name)
            assert Path(name).read_bytes() == data
        assert os.read(descriptor, 1) == b""  # who reads on is at the end
        with pytest.raises(OSError):  # noqa: PT011 - of whatever kind
            os.write(descriptor, b"x")
        os.close(descriptor)

    def test_too_much_is_refused(self) -> None:
        descriptor = self.fill(bytes(3 << 20))
        with pytest.raises(HostError, match="more than 2 MiB"):
            keep_pipe(f"/proc/self/fd/{descriptor}", most_mib=2)
        os.close(descriptor)

    def test_an_end_to_write_to_is_left_alone(self) -> None:
        there, here = os.pipe()
        keep_pipe(f"/dev/fd/{here}")
        os.write(here, b"x")
        assert os.read(there, 2) == b"x"
        os.close(there)
        os.close(here)

    @pytest.mark.parametrize(
        "name", ["", "7", "/dev/fd/", "/dev/fd/x", "/dev/fd/99999999999999999999", "/dev/null", "fd/0", "a\0/1", "²"]
    )
    def test_other_names_are_left_alone(self, name: str) -> None:
        keep_pipe(name)
        refuse_pipe(name)
