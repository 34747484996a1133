"""Links and pipes of other users on the way of an output, and folders that are made for one."""

import errno
import os
import stat
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from buda_emu.app.cli.main import main
from buda_emu.support.errors import HostError
from buda_emu.support.files import write_file
from buda_emu.support.folder_lock import FolderLock
from buda_emu.support.output_places import make_folder, resolve_output
from shared_files import ROOT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="users and links of POSIX")
STRANGER = 12345
NETLIST = str(ROOT / "netlists" / "matmul.yaml")


@pytest.fixture
def shared(tmp_path, monkeypatch):
    """A folder as /tmp is, in which every link and pipe whose name begins with `their` belongs to another user."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    (tmp_path / "own").mkdir()
    lstat = os.lstat

    def seen(path, **more):
        status = lstat(path, **more)
        if not Path(path).name.startswith("their"):
            return status
        fields = list(status)
        fields[stat.ST_UID] = STRANGER
        return os.stat_result(fields)

    monkeypatch.setattr(os, "lstat", seen)
    return folder


def write(path):
    return write_file(path, lambda stream: stream.write(b"new"))


@pytest.mark.parametrize("target", ["file", "missing"])
def test_a_strangers_link_is_refused_in_a_shared_folder(shared, tmp_path, target):
    (tmp_path / "own/file").write_bytes(b"old")
    (shared / "their").symlink_to(tmp_path / "own" / target)
    (shared / "mine").symlink_to("their")
    for name in ("their", "mine", "../shared/their"):
        with pytest.raises(PermissionError, match="a link of another user") as caught:
            write(shared / name)
        assert caught.value.filename == str(shared / name)
    assert [(path.name, path.read_bytes()) for path in (tmp_path / "own").iterdir()] == [("file", b"old")]


def test_a_strangers_link_to_a_folder_is_refused(shared, tmp_path):
    (shared / "their").symlink_to(tmp_path / "own")
    for act in (write, make_folder):
        with pytest.raises(PermissionError, match="a link of another user"):
            act(shared / "their" / "new")
    assert list((tmp_path / "own").iterdir()) == []


def test_other_links_are_followed(shared, tmp_path):
    (shared / "mine").symlink_to(tmp_path / "own/a")
    write(shared / "mine")
    for mode in (0o777, 0o1775):  # of folders without one of the two bits
        shared.chmod(mode)
        (shared / f"their{mode}").symlink_to(tmp_path / f"own/{mode}")
        write(shared / f"their{mode}")
    assert sorted(path.name for path in (tmp_path / "own").iterdir()) == ["1021", "511", "a"]


def test_links_of_the_owner_of_the_folder_are_followed(shared, tmp_path, monkeypatch):
    (shared / "their").symlink_to(tmp_path / "own/a")
    stat_of = os.stat

    def seen(path, **more):
        fields = list(stat_of(path, **more))
        if os.fspath(path) == str(shared):
            fields[stat.ST_UID] = STRANGER
        return os.stat_result(fields)

    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", seen)
        assert resolve_output(str(shared / "their")) == str(tmp_path.resolve() / "own/a")


def test_a_strangers_pipe_is_refused(shared):
    os.mkfifo(shared / "their")
    with pytest.raises(PermissionError, match="a pipe of another user"):
        write(shared / "their")


@pytest.mark.parametrize(
    "words",
    [
        ("run", NETLIST, "-q", "--json", "their"),
        ("run", NETLIST, "-q", "-o", "their"),
        ("perf", NETLIST, "-q", "--csv", "their"),
        ("graph", NETLIST, "-o", "their"),
        ("faults", NETLIST, "-q", "--count", "1", "-o", "their"),
        ("generate", "--count", "1", "-o", "their"),
    ],
)
def test_verbs_write_through_no_strangers_link(shared, tmp_path, monkeypatch, capsys, words):
    """To a file that is not there yet, or a folder."""
    monkeypatch.chdir(shared)
    (shared / "their").symlink_to(tmp_path / "own/new")
    assert main([*words]) == 2
    assert "a link of another user" in capsys.readouterr().err
    assert list((tmp_path / "own").iterdir()) == []


def test_paths_are_resolved_as_the_system_does(tmp_path):
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/up").symlink_to("../a/./b")
    (tmp_path / "round").symlink_to("round")
    for name in ("a/up/../x", "a/b/x", "x", "a//up/", "missing/y", "."):
        assert resolve_output(str(tmp_path / name)) == os.path.realpath(tmp_path / name)
    with pytest.raises(OSError, match=os.strerror(errno.ELOOP)):
        resolve_output(str(tmp_path / "round"))


def test_folders_that_hold_nothing_are_removed_where_the_write_fails(tmp_path):
    """As on a disk that is full: those of this process, and no other."""

    def fail(_stream):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / "before").mkdir()
    make_folder(tmp_path / "before/a/b")
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        write_file(tmp_path / "before/a/b/c", fail)
    assert list(tmp_path.rglob("*")) == [tmp_path / "before"]
    make_folder(tmp_path / "before/a/b")
    write(tmp_path / "before/a/d")
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        write_file(tmp_path / "before/a/b/c", fail)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "before", "d"]


def test_a_folder_that_cannot_be_made_leaves_none_above_it(tmp_path, monkeypatch):
    mkdir = os.mkdir

    def full(path, *more, **named):
        if Path(path).name == "c":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        mkdir(path, *more, **named)

    monkeypatch.setattr(os, "mkdir", full)
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)) as caught:
        make_folder(tmp_path / "a/b/c")
    assert caught.value.filename == str(tmp_path / "a/b/c")
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").touch()
    for name in ("file", "file/below"):
        with suppress(NotADirectoryError), pytest.raises(FileExistsError):
            make_folder(tmp_path / name)


def test_a_folder_has_one_writer(tmp_path):
    first = FolderLock(tmp_path)
    with pytest.raises(HostError) as caught:
        FolderLock(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path}: another process")
    if sys.platform == "linux":
        assert f" (number {os.getpid()}) writes to this folder" in str(caught.value)
    del first
    FolderLock(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_two_campaigns_do_not_share_a_folder(tmp_path, capsys):
    words = ["faults", NETLIST, "-q", "--count", "2", "-o", str(tmp_path / "c")]
    assert main(words) == 0
    capsys.readouterr()
    first = FolderLock(tmp_path / "c")
    assert main(words) == 2
    assert "another process" in capsys.readouterr().err
    del first
    assert main(words) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a folder in use stays")
def test_an_absolute_name_does_not_need_the_present_folder(tmp_path, monkeypatch):
    present = tmp_path / "present"
    present.mkdir()
    monkeypatch.chdir(present)
    present.rmdir()
    make_folder(tmp_path / "a/b")
    write(tmp_path / "a/b/c")
    assert (tmp_path / "a/b/c").read_bytes() == b"new"
    with pytest.raises(FileNotFoundError) as caught:
        write("relative")
    assert caught.value.filename == "relative"
