"""Content identity: what a stored result was computed from, so that it is continued or reused only for the same
contents.

A path is no identity, as another file may have it by now. An identity holds digests of contents, the settings that
change results, and the version and sources of this package. A cache names each result by the digest of its identity, so
that other contents find nothing. A campaign begins with its identity, and is refused for other contents; the message
names the parts that differ.
"""

import hashlib
import os
import stat
from collections.abc import Mapping
from functools import cache
from typing import Any

from buda_emu.support.caches import package_file, sources
from buda_emu.support.errors import HostError
from buda_emu.support.version import __version__

_PART_BYTES = 1 << 20  # read at a time: files of any size take no more memory
_ABSENT = object()


def digest(about: object, *contents: bytes) -> str:
    """Return the SHA-256, in hexadecimal, of plain data (tuples, mappings, numbers, text) and of bytes."""
    hashed = hashlib.sha256(repr(about).encode("utf-8", "surrogateescape"))
    for content in contents:
        hashed.update(content)
    return hashed.hexdigest()


def file_digest(path: "str | os.PathLike[str]") -> str:
    """Return the SHA-256, in hexadecimal, of a file's contents. Raises HostError for a file that cannot be read, and
    for a pipe or a device, which may have no end."""
    hashed = hashlib.sha256()
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116
            raise HostError(f"{os.fspath(path)}: not a regular file: write what it gives to one, and name that")
        with open(path, "rb") as stream:  # noqa: PTH123 - importing pathlib takes longer than reading a small file
            while part := stream.read(_PART_BYTES):
                hashed.update(part)
    except OSError as error:
        raise HostError(f"{os.fspath(path)}: {error.strerror}") from None
    return hashed.hexdigest()


@cache
def package_digest() -> str:
    """Return the SHA-256 of all sources of this package, by content: equal for two installations of the same files."""
    root = os.path.dirname(__file__)  # noqa: PTH120
    hashed = hashlib.sha256()
    for path, *_ in sources():
        hashed.update(f"{os.path.relpath(path, root)}\0{file_digest(path)}\n".encode("utf-8", "surrogateescape"))
    return hashed.hexdigest()


@cache
def library_digests() -> Mapping[str, str]:
    """Return digests of the files in which numpy and numba state their versions, by package; results depend on both.
    Neither is imported. A package that is not installed is left out."""
    digests: dict[str, str] = {}
    for package, name in (("numpy", "version.py"), ("numba", "_version.py")):
        try:
            digests[package] = file_digest(package_file(package, name))
        except (OSError, HostError):
            continue
    return digests


def code_identity() -> dict[str, Any]:
    """Return the parts of an identity that stand for the code: the version, the sources, the libraries."""
    return {
        "version": __version__,
        "sources of buda-emu": package_digest(),
        "version of numpy": library_digests().get("numpy", ""),
        "packages of op types": _op_packages(),
    }


@cache
def _op_packages() -> list[str]:
    """Return names and versions of the installed packages that add op types."""
    from importlib.metadata import entry_points

    declared = {entry.dist for entry in entry_points(group="buda_emu.ops") if entry.dist is not None}
    return sorted(f"{package.name} {package.version}" for package in declared)


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the names of the parts in which two identities differ, those of `after` first."""
    names = [*after, *(name for name in before if name not in after)]
    return [name for name in names if before.get(name, _ABSENT) != after.get(name, _ABSENT)]


def files_identity(files: "Mapping[str, str | os.PathLike[str] | None]") -> dict[str, str | None]:
    """Return, by the role of a file in a result ("netlist", "inputs"), the digest of its contents; None where there is
    no such file. The contents of a folder are those of all files in it, with their names."""
    digests: dict[str, str | None] = {}
    for name, path in files.items():
        digests[name] = None if path is None else _contents_digest(os.fspath(path))
    return digests


def _contents_digest(path: str) -> str:
    """Return the digest of a file, or of all files of a folder with their names."""
    if not os.path.isdir(path):  # noqa: PTH112
        return file_digest(path)
    files: list[str] = []
    for folder, _, names in os.walk(path):
        files += (os.path.join(folder, name) for name in names)  # noqa: PTH118
    return digest([(os.path.relpath(file, path), file_digest(file)) for file in sorted(files)])
