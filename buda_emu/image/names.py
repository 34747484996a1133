"""Names of members: what may stand in an archive that nobody here made."""

import re
import unicodedata
from collections.abc import Iterable

from buda_emu.image.rules import Place, shown

TOP = "unzipped_tti"
_MAX_NAME = 1024
_MAX_PART = 255
_DRIVE = re.compile(r"[A-Za-z]:")
_ARCHIVES = (".tti", ".tar", ".zip", ".gz", ".tgz", ".bz2", ".tbz2", ".xz", ".txz", ".zst", ".lz4", ".7z", ".rar")


def checked_name(raw: str, is_folder: bool, place: Place) -> str:
    """The name of a member without a leading `./` and, for a folder, without the slash at its end.

    Raises ImageError for any name that is not a plain relative path below unzipped_tti/, or that is an archive's.
    """
    wrong = place.at(raw)
    name = raw.removesuffix("/") if is_folder else raw
    name = name.removeprefix("./")
    for bad, why in (
        (not name or len(name.encode("utf-8", "replace")) > _MAX_NAME, f"its name has 0 or over {_MAX_NAME} bytes"),
        (not _is_unicode(name), "its name is not UTF-8"),
        (any(ord(character) < 32 or character == "\x7f" for character in name), "its name has control characters"),
        ("\\" in name, "its name has a backslash"),
        (name.startswith("/"), "its name is absolute"),
        (_DRIVE.match(name) is not None, "its name begins with a drive"),
    ):
        if bad:
            raise wrong.error("image-path", why)
    parts = name.split("/")
    if any(part in ("", ".", "..") or part != part.rstrip(" .") for part in parts):
        raise wrong.error("image-path", "its name has a part that is empty, '.' or '..', or ends in a blank or '.'")
    if any(len(part.encode()) > _MAX_PART for part in parts):
        raise wrong.error("image-path", f"a part of its name has over {_MAX_PART} bytes")
    if parts[0] != TOP or (len(parts) == 1 and not is_folder):
        raise wrong.error("image-path", f"it lies outside of {TOP}/")
    if not is_folder and name.lower().endswith(_ARCHIVES):
        raise wrong.error("image-nested", "it is an archive by its name")
    return name


def check_unique(members: Iterable[tuple[str, bool]], place: Place) -> None:
    """Raise ImageError where two members (name, is a folder) would be one file, or one would lie below a file."""
    seen: dict[str, tuple[str, bool]] = {}
    for name, is_folder in members:
        before = seen.get(_folded(name))
        if before is not None:
            raise place.at(name).error("image-twice", f"{shown(before[0])} stands there already")
        seen[_folded(name)] = name, is_folder
    folders = {name.rpartition("/")[0] for name, _ in seen.values()} - {""}
    while folders:
        for name in folders:
            before = seen.setdefault(_folded(name), (name, True))
            if before != (name, True):
                raise place.at(name).error("image-twice", f"{shown(before[0])} is no folder of this name")
        folders = {name.rpartition("/")[0] for name in folders} - {""}


def _folded(name: str) -> str:
    """The same for all spellings that some file system takes for one."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKD", name).casefold())


def _is_unicode(name: str) -> bool:
    """Undecodable bytes of a tar come as lone surrogates."""
    return not any(0xD800 <= ord(character) <= 0xDFFF for character in name)
