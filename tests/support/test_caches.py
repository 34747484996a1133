"""A cache is used only where nobody else can put files, or another folder in its place."""

import logging
import os
import sys
from pathlib import Path

import pytest

from buda_emu.support import caches
from buda_emu.support.caches import user_caches

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
SOMEBODY = 54321


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(caches, "_logged", set())
    found = tmp_path / "above" / "caches" / "leaf"
    assert caches.usable(found)
    return found


def owned_by_somebody(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`path` belongs to another user from now on, as far as `os.lstat` says."""
    real, entry = os.lstat, os.lstat(path)

    def lstat(name: str) -> os.stat_result:
        found = real(name)
        if (found.st_dev, found.st_ino) != (entry.st_dev, entry.st_ino):
            return found
        return os.stat_result((*found[:4], SOMEBODY, *found[5:]))

    monkeypatch.setattr(os, "lstat", lstat)


def test_what_is_made_is_for_this_user_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        assert caches.usable(tmp_path / "a" / "b" / "c")
    finally:
        os.umask(before)
    for path in (tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "c"):
        assert path.stat().st_mode & 0o777 == 0o700


def test_nothing_is_made_in_a_folder_of_somebody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "theirs").mkdir()
    owned_by_somebody(tmp_path / "theirs", monkeypatch)
    assert not caches.usable(tmp_path / "theirs" / "caches" / "leaf")
    assert not list((tmp_path / "theirs").iterdir())


@pytest.mark.parametrize("level", range(3))
def test_a_folder_above_that_belongs_to_somebody_else(
    folder: Path, level: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    theirs = (folder, *folder.parents)[level]
    owned_by_somebody(theirs, monkeypatch)
    with caplog.at_level(logging.WARNING):
        assert not caches.usable(folder)
        assert not caches.usable(folder)
    (record,) = caplog.records
    assert record.message.startswith("buda-emu: nothing is kept between runs: ")
    assert repr(str(theirs)) in caplog.text
    assert "another user" in caplog.text


@pytest.mark.parametrize("level", range(1, 3))
@pytest.mark.parametrize("others", [0o20, 0o02])
def test_a_folder_above_that_others_can_write_to(folder: Path, level: int, others: int) -> None:
    above = (folder, *folder.parents)[level]
    above.chmod(0o700 | others)
    assert caches.distrust(folder) == f"others can write to {str(above)!r}"
    above.chmod(0o1700 | others)  # sticky: they cannot rename what is ours
    assert caches.distrust(folder) == ""


def test_a_folder_that_others_can_write_to_is_not_made_good_by_stickiness(folder: Path) -> None:
    folder.chmod(0o1777)
    assert "others can write" in caches.distrust(folder)


def test_links_are_followed_and_held_to_the_same(folder: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    folder.parent.rename(elsewhere)
    folder.parent.symlink_to("../elsewhere")
    assert caches.distrust(folder) == ""
    elsewhere.chmod(0o777)
    assert caches.distrust(folder) == f"others can write to {str(elsewhere)!r}"


def test_a_link_of_somebody_else(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "link").symlink_to(folder.parent)
    owned_by_somebody(tmp_path / "link", monkeypatch)
    assert "the link" in caches.distrust(tmp_path / "link" / "leaf")


def test_links_that_lead_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert caches.distrust(tmp_path / "a" / "leaf") != ""
    assert not caches.usable(tmp_path / "a" / "leaf")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_that_was_really_given_away(folder: Path) -> None:
    os.chown(folder.parent, SOMEBODY, -1)
    assert "belongs to another user" in caches.distrust(folder)


def test_nothing_is_remembered(folder: Path) -> None:
    folder.parent.chmod(0o777)
    assert not caches.usable(folder)
    folder.parent.chmod(0o700)
    assert caches.usable(folder)


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="the variable is of other systems")
@pytest.mark.parametrize("named", ["", "caches", "./caches", "../caches", "~/caches"])
def test_a_relative_folder_in_the_environment_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    """As the specification of XDG_CACHE_HOME asks for."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", named)
    assert user_caches() == str(tmp_path / ".cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    assert user_caches() == str(tmp_path / "elsewhere")


def test_links_that_lead_nowhere_do_not_keep_a_folder_from_being_cleared(folder: Path) -> None:
    """The least used files go, whatever else lies there."""
    (folder / "loop").symlink_to("loop")
    (folder / "dangling").symlink_to("nowhere")
    for number in range(8):
        caches.write_cache_file(str(folder / f"f{number}"), b"magic", bytes(1000), 3000)
        os.utime(folder / f"f{number}", ns=(0, number))
    left = [path.stat().st_size for path in folder.iterdir() if path.is_file()]
    assert 0 < sum(left) <= 3000
