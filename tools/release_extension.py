"""The extension for VS Code of a release: packed in a copy of its folder, compared with the files of the project."""

import json
import os
import shutil
import subprocess
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path

from release_commands import ROOT, ReleaseError

FOLDER = ROOT / "editors" / "vscode"
MOST_BYTES = 1 << 20
MOST_SECONDS = 180
"""With every change, the tests beside it take 20 of 25 minutes. npm works for 13 s; 30 s with what it loads, and 220 s
were seen on a machine with two processors and eleven other processes."""
UNREACHABLE = (
    "ENOTFOUND",
    "EAI_AGAIN",
    "ECONNREFUSED",
    "ECONNRESET",
    "ENETUNREACH",
    "EHOSTUNREACH",
    "ETIMEDOUT",
    "ENOTCACHED",
)
"""Codes of npm where its registry does not answer; any other is a fault of the extension."""
WRITTEN = frozenset({"[Content_Types].xml", "extension.vsixmanifest", "extension/out/extension.js"})
"""Files of the package that packing writes."""
INSTALL = ("npm", "ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund", "--fetch-retries=1")
"""Scripts of packages are not needed to pack, and what does not run here cannot change what is packed."""


class NoRegistry(Exception):  # noqa: N818 - no error
    """npm cannot get the packages that pack the extension, for the reason that it says."""


def pack(target: Path, scratch: Path, environment: Mapping[str, str], most_seconds: float = MOST_SECONDS) -> None:
    """Pack the extension into a file, in a copy of its folder, and compare it with what it is packed from. Raises
    NoRegistry where npm has no packages in time, ReleaseError where anything else fails."""
    folder = scratch / "editors" / "vscode"
    shutil.copytree(ROOT / "schemas", scratch / "schemas")
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("node_modules", "out", "*.vsix"))
    end = time.monotonic() + most_seconds
    run_npm(INSTALL, folder, environment, end)
    package = folder / target.name
    run_npm(("npm", "run", "package", "--", "--pre-release", "-o", str(package)), folder, environment, end)
    require_sound(package, (folder / "out" / "README.md").read_bytes())
    shutil.move(package, target)


def run_npm(command: tuple[str, ...], folder: Path, environment: Mapping[str, str], end: float) -> None:
    """Run a command of npm that has to end at a time of the monotonic clock."""
    words = " ".join(command[:3])
    limit = max(end - time.monotonic(), 1.0)
    try:
        process = subprocess.run(
            command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        raise NoRegistry(f"needs more time: {words} did not end in {limit:.0f} s") from None
    if process.returncode == 0:
        return
    printed = process.stdout + process.stderr
    code = next((code for code in UNREACHABLE if code in printed), "")
    if code:
        raise NoRegistry(f"needs npm's registry, which cannot be reached ({code})")
    raise ReleaseError(f"{words}: exit code {process.returncode}\n{printed[-4000:]}")


def require_sound(packed: Path, readme: bytes) -> None:
    """Raise ReleaseError where a packed extension is too big, or has other files than the project: something that
    does not belong there, or another content."""
    size = packed.stat().st_size
    if size > MOST_BYTES:
        raise ReleaseError(f"{packed.name} has {size:,} bytes, more than {MOST_BYTES:,}")
    with zipfile.ZipFile(packed) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    require_same_files(packed.name, contents, packed_sources(readme))
    manifest = json.loads((FOLDER / "package.json").read_text())
    if f'Version="{manifest["version"]}"' not in contents["extension.vsixmanifest"].decode():
        raise ReleaseError(f"{packed.name} is not of version {manifest['version']}")
    program = contents["extension/out/extension.js"].decode()
    commands = [entry["command"] for entry in manifest["contributes"]["commands"]]
    unknown = [name for name in commands if name not in program]
    if unknown:
        raise ReleaseError(f"the program in {packed.name} does not know {', '.join(unknown)}")


def require_same_files(package: str, contents: Mapping[str, bytes], sources: Mapping[str, bytes]) -> None:
    """Raise ReleaseError where a package lacks a file of the project, changes it, or has one that does not belong."""
    names = sources.keys() | WRITTEN
    lacking = sorted(names - contents.keys())
    if lacking:
        raise ReleaseError(f"{package} lacks {', '.join(lacking)}")
    foreign = sorted(contents.keys() - names)
    if foreign:
        raise ReleaseError(f"{package} has, in addition, {', '.join(foreign)}")
    different = sorted(name for name, data in sources.items() if contents[name] != data)
    if different:
        raise ReleaseError(f"{package} has another {', '.join(different)} than the project")


def packed_sources(readme: bytes) -> dict[str, bytes]:
    """Return the contents of all files of the project that are packed as they are, by their names in the package."""
    same = ("package.json", "language-configuration.json", "buda.tmLanguage.json")
    return {
        **{f"extension/{name}": (FOLDER / name).read_bytes() for name in same},
        "extension/LICENSE.txt": (ROOT / "LICENSE").read_bytes(),
        "extension/netlist.schema.json": (ROOT / "schemas" / "netlist.schema.json").read_bytes(),
        "extension/readme.md": readme,
    }
