"""Where the members of a tar lie: headers read one by one, with the names and sizes that extension headers give.

`tarfile` decodes header blocks but does not walk them: it would end quietly at a damaged header, follow sizes
backwards, and read extension headers of any size.
"""

import tarfile
from collections.abc import Iterator
from typing import IO

from buda_emu.checker.text import shown
from buda_emu.image.member import Limits, Member
from buda_emu.image.names import checked_name
from buda_emu.image.rules import Place

_BLOCK = tarfile.BLOCKSIZE
_FILES = (tarfile.REGTYPE, tarfile.AREGTYPE)
_GNU = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
_MOST_RECORDS = 256  # of one extension header; tar writes a dozen
_MOST_EXTENSIONS = 8  # headers in front of one member
_LENGTH_DIGITS = 8  # of a record
_EXTENSIONS = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.XGLTYPE, *_GNU)
_KINDS = {
    tarfile.LNKTYPE: "a hard link",
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.CHRTYPE: "a character device",
    tarfile.BLKTYPE: "a block device",
    tarfile.FIFOTYPE: "a pipe",
    tarfile.GNUTYPE_SPARSE: "a sparse file",
}


def tar_members(stream: IO[bytes], length: int, place: Place, limits: Limits) -> Iterator[Member]:
    """Every member in order. Raises ImageError for all that is not a plain, whole tar."""
    offset = 0
    extended: dict[str, str] = {}  # what the extension headers before a member say of it
    extensions = 0
    while True:
        header = _read(stream, offset, _BLOCK)
        if len(header) < _BLOCK:
            raise place.error(
                "image-archive", f"it ends at byte {offset + len(header)}, without an end mark: it is cut"
            )
        if not any(header):
            break
        info = _header(header, offset, place)
        size = _size(extended.get("size"), info.size, place.at(info.name))
        start, offset = offset + _BLOCK, offset + _BLOCK + -(-max(size, 0) // _BLOCK) * _BLOCK
        if size < 0 or start + size > length:
            raise place.at(info.name).error(
                "image-archive",
                f"its header states {size} bytes, the archive has {max(0, length - start)} more: it is cut",
            )
        if info.type in _EXTENSIONS:
            extensions += 1
            if extensions > _MOST_EXTENSIONS:
                raise place.error("image-size", f"over {_MOST_EXTENSIONS} extension headers come before a member")
            extended |= _extension(info, _text(stream, start, size, place, limits), place)
            continue
        yield _member(info, extended, start, size, place)
        extended, extensions = {}, 0
    if extended:
        raise place.error("image-archive", "it ends after an extension header")
    if length - offset > limits.header_bytes or any(_read(stream, offset, length - offset)):
        raise place.error("image-archive", f"there is data after the end mark at byte {offset}")


def _member(info: tarfile.TarInfo, extended: dict[str, str], start: int, size: int, place: Place) -> Member:
    is_folder = info.type == tarfile.DIRTYPE
    name = checked_name(extended.get("path", info.name), is_folder, place)
    if (not is_folder and info.type not in _FILES) or any(key.startswith("GNU.sparse") for key in extended):
        kind = (
            _KINDS.get(info.type, f"of type {shown(info.type.decode('latin-1'))}")
            if info.type not in _FILES
            else "a sparse file"
        )
        raise place.at(name).error("image-kind", f"it is {kind}")
    if is_folder and size:
        raise place.at(name).error("image-kind", f"it is a folder with {size} bytes")
    return Member(name, start, size, size, is_folder)


def _header(block: bytes, offset: int, place: Place) -> tarfile.TarInfo:
    try:
        return tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except (tarfile.TarError, ValueError) as error:
        raise place.error("image-archive", f"no tar header at byte {offset} ({error})") from None


def _size(stated: str | None, size: int, place: Place) -> int:
    """An extension header may state the size."""
    if stated is None:
        return size
    if not (stated.isascii() and stated.isdecimal() and len(stated) < 20):
        raise place.error("image-archive", f"its extension header states {shown(stated)!r} bytes")
    return int(stated)


def _extension(info: tarfile.TarInfo, text: str, place: Place) -> dict[str, str]:
    """What an extension header says: the records of pax, or GNU's long name."""
    if info.type in _GNU:  # where a link leads to is of no interest
        return {"path": text.split("\0", 1)[0]} if info.type == tarfile.GNUTYPE_LONGNAME else {}
    records = dict(_records(text.encode("utf-8", "surrogateescape"), place))
    if info.type == tarfile.XGLTYPE:
        if records.keys() & {"path", "size", "linkpath"}:
            raise place.error("image-archive", "a global extension header names members")
        return {}
    return records


def _records(data: bytes, place: Place) -> Iterator[tuple[str, str]]:
    """Keys and values: each record is its own length, a space, `key=value` and a line feed."""
    position = 0
    for _ in range(_MOST_RECORDS):
        if position == len(data):
            return
        space = data.find(b" ", position, position + _LENGTH_DIGITS + 1)
        count = data[position : max(space, position)]
        end = position + (int(count) if count.isdigit() else 0)
        key, equals, value = data[space + 1 : end].partition(b"=")
        if not equals or not value.endswith(b"\n") or end > len(data):
            raise place.error("image-archive", "an extension header has a broken record")
        position = end
        yield key.decode("utf-8", "surrogateescape"), value[:-1].decode("utf-8", "surrogateescape")
    if position < len(data):
        raise place.error("image-size", f"an extension header has over {_MOST_RECORDS} records")


def _text(stream: IO[bytes], start: int, size: int, place: Place, limits: Limits) -> str:
    if size > limits.header_bytes:
        raise place.error("image-size", f"an extension header has {size} bytes, the limit is {limits.header_bytes}")
    return _read(stream, start, size).decode("utf-8", "surrogateescape")


def _read(stream: IO[bytes], offset: int, size: int) -> bytes:
    stream.seek(offset)
    return stream.read(size)
