"""Names of members: which ones are allowed in an archive from a stranger."""

import re
from collections.abc import Iterable
from unicodedata import normalize

from buda_emu.checker.text import shown
from buda_emu.image.rules import Place

TOP = "unzipped_tti"
_MAX_NAME = 1024
_BAD = (
    (re.compile("[\ud800-\udfff]"), "its name is not UTF-8"),  # undecodable bytes of a tar come as lone surrogates
    (re.compile(r"[\x00-\x1f\x7f]"), "its name has control characters"),
    (re.compile(r"\\"), "its name has a backslash"),
    (re.compile(r"\A/"), "its name is absolute"),
    (re.compile(r"\A[A-Za-z]:"), "its name begins with a drive"),
    (re.compile(r"(?:\A|/)(?:[^/]*[ .])?(?:/|\Z)"), "a part of its name is empty, '.' or '..', or ends in ' ' or '.'"),
    (re.compile(r"[^/]{256}"), "a part of its name has over 255 characters"),
)
_ARCHIVE = re.compile(r"\.(tti|tar|zip|gz|tgz|bz2|tbz2|xz|txz|zst|lz4|7z|rar)\Z", re.IGNORECASE)


def checked_name(raw: str, is_folder: bool, place: Place) -> str:
    """The name of a member without a leading `./` and, for a folder, without the slash at its end.

    Raises ImageError for any name that is not a plain relative path below unzipped_tti/, or that is an archive's.
    """
    name = (raw.removesuffix("/") if is_folder else raw).removeprefix("./")
    if len(name) > _MAX_NAME:
        raise place.at(raw).error("image-path", f"its name has over {_MAX_NAME} characters")
    for pattern, why in _BAD:
        if pattern.search(name):
            raise place.at(raw).error("image-path", why)
    if not name.startswith(f"{TOP}/") and not (is_folder and name == TOP):
        raise place.at(raw).error("image-path", f"it lies outside of {TOP}/")
    if not is_folder and _ARCHIVE.search(name):
        raise place.at(raw).error("image-nested", "it is an archive by its name")
    return name


def check_unique(members: Iterable[tuple[str, bool]], place: Place) -> None:
    """Raise ImageError where two members (name, is a folder) would be one file, or one would lie below a file."""
    seen: dict[str, tuple[str, bool]] = {}
    for name, is_folder in members:
        before = seen.get(_folded(name))
        if before is not None:
            raise place.at(name).error("image-twice", f"{shown(before[0])} is there already")
        seen[_folded(name)] = name, is_folder
    folders = {name.rpartition("/")[0] for name, _ in seen.values()} - {""}
    while folders:
        for name in folders:
            before = seen.setdefault(_folded(name), (name, True))
            if before != (name, True):
                raise place.at(name).error("image-twice", f"{shown(before[0])} is not a folder of this name")
        folders = {name.rpartition("/")[0] for name in folders} - {""}


def _folded(name: str) -> str:
    """The same for all spellings that some file system takes for one."""
    return name.lower() if name.isascii() else normalize("NFC", normalize("NFKD", name).casefold())
