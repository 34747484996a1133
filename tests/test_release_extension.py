"""The extension of a release: what its package has to hold, and what happens where npm cannot pack it."""

import os
import zipfile

import pytest

import release
import release_extension
from release_commands import ReleaseError

README = b"the packed README"
WRITTEN = {
    "[Content_Types].xml": b"",
    "extension.vsixmanifest": b'<Identity Version="1.0.0"/>',
    "extension/out/extension.js": b"buda-emu.grid buda-emu.install buda-emu.restart",
}


def require_sound_with(tmp_path, changes):
    """Judge a package of the project's files, some of them changed, or left out where the change is None."""
    packed = tmp_path / "some.vsix"
    contents = {**release_extension.packed_sources(README), **WRITTEN, **changes}
    with zipfile.ZipFile(packed, "w") as archive:
        for name, data in contents.items():
            if data is not None:
                archive.writestr(name, data)
    release_extension.require_sound(packed, README)


def test_a_package_of_the_files_of_the_project_is_sound(tmp_path):
    require_sound_with(tmp_path, {})


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"extension/LICENSE.txt": None}, "some.vsix lacks extension/LICENSE.txt"),
        ({"extension/.npmrc": b""}, "some.vsix has, in addition, extension/.npmrc"),
        ({"extension/netlist.schema.json": b"{}"}, "another extension/netlist.schema.json than the project"),
        ({"extension/readme.md": b"older"}, "another extension/readme.md than the project"),
        ({"extension.vsixmanifest": b'<Identity Version="0.9.0"/>'}, "is not of version 1.0.0"),
        ({"extension/out/extension.js": b"buda-emu.grid buda-emu.restart"}, "does not know buda-emu.install"),
        ({"extension/out/extension.js": bytes(release_extension.MOST_BYTES)}, "bytes, more than 1,048,576"),
    ],
)
def test_any_other_package_is_refused(changes, refusal, tmp_path):
    with pytest.raises(ReleaseError, match=refusal):
        require_sound_with(tmp_path, changes)


@pytest.fixture
def npm(tmp_path, monkeypatch):
    """Puts a script in the place of npm."""

    def place(script):
        folder = tmp_path / "bin"
        folder.mkdir()
        (folder / "npm").write_text(f"#!/bin/sh\n{script}\n")
        (folder / "npm").chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    return place


@pytest.fixture
def offline(tmp_path):
    """A release offline, but with the extension."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return release.Release(tmp_path / "dist", True, scratch, packs_offline=True)


@pytest.mark.parametrize(
    ("script", "seconds", "reason"),
    [
        ("echo npm error code ENOTFOUND >&2; exit 1", 180, r"cannot be reached \(ENOTFOUND\)"),
        ("exec sleep 60", 0, r"npm ci --ignore-scripts did not end in 1 s"),
    ],
)
def test_a_release_without_the_registry_says_so_and_goes_on(script, seconds, reason, npm, offline, monkeypatch):
    npm(script)
    monkeypatch.setattr(release_extension.pack, "__defaults__", (seconds,))
    with pytest.raises(release.Skip, match=reason):
        release.pack_extension(offline)


def test_a_release_without_npm_says_so_and_goes_on(offline, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(release.Skip, match="needs npm"):
        release.pack_extension(offline)


def test_an_extension_that_does_not_pack_stops_the_release(npm, offline):
    npm('[ "$1" = ci ] || { echo src/extension.ts: error TS2304; exit 2; }')
    with pytest.raises(ReleaseError, match=r"npm run package: exit code 2\nsrc/extension.ts: error TS2304"):
        release.pack_extension(offline)


def test_offline_alone_packs_nothing(tmp_path):
    with pytest.raises(release.Skip, match="needs the network"):
        release.pack_extension(release.Release(tmp_path, True, tmp_path))
