"""Where the members of a zip lie: the central directory, compared with the headers before the data."""

import stat
import struct
import zipfile
from collections.abc import Iterator
from typing import IO, cast

from buda_emu.checker.text import shown
from buda_emu.image.member import Limits, Member
from buda_emu.image.names import checked_name
from buda_emu.image.rules import Place

_ENCRYPTED = 0x01 | 0x20 | 0x40  # and patched data
_UTF8 = 0x800
_LOCAL = struct.Struct("<4sHHHHHLLLHH")
_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}
# What zipfile raises for a file that is not a zip, or a strange one.
_BROKEN = (
    zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, RuntimeError, ValueError, OverflowError, EOFError,
    IndexError, KeyError, struct.error, OSError,
)  # fmt: skip


def zip_members(stream: IO[bytes], length: int, place: Place, limits: Limits) -> Iterator[Member]:
    """Every member in the order of the data. Raises ImageError for all that is not a plain, whole zip."""
    infos = sorted(_directory(stream, place, limits), key=lambda info: info.header_offset)
    end = 0
    for info in infos:
        at = place.at(info.orig_filename)
        if info.header_offset < end or (not end and info.header_offset):
            raise at.error("image-archive", "its data lies within another member's, or where something else is")
        is_folder = info.orig_filename.endswith("/")
        name = checked_name(info.orig_filename, is_folder, place)
        _check_kind(info, is_folder, at)
        start = _data_start(stream, info, at)
        end = start + info.compress_size
        if end > length:
            raise at.error("image-archive", f"its data ends at byte {end}, the archive at {length}: it is cut")
        deflated = info.compress_type == zipfile.ZIP_DEFLATED
        yield Member(name, start, info.file_size, info.compress_size, is_folder, deflated, info.CRC)


class _Bounded:
    """A file for zipfile that is never read in larger parts than a central directory may have."""

    def __init__(self, stream: IO[bytes], limit: int, place: Place) -> None:
        self.seek, self.tell, self.seekable = stream.seek, stream.tell, stream.seekable
        self._stream, self._limit, self._place = stream, limit, place

    def read(self, size: int = -1) -> bytes:
        """As of a file. Raises ImageError for more than the limit."""
        wanted = size if 0 <= size <= self._limit else self._limit + 1
        data = self._stream.read(wanted)
        if len(data) > self._limit:
            raise self._place.error("image-size", f"its central directory has over {self._limit} bytes")
        return data


def _directory(stream: IO[bytes], place: Place, limits: Limits) -> list[zipfile.ZipInfo]:
    bounded = cast("IO[bytes]", _Bounded(stream, limits.directory_bytes, place))
    try:
        with zipfile.ZipFile(bounded) as archive:
            return archive.infolist()
    except _BROKEN as error:
        raise place.error("image-archive", f"it is not a whole zip ({shown(error)})") from None


def _check_kind(info: zipfile.ZipInfo, is_folder: bool, at: Place) -> None:
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFDIR if is_folder else stat.S_IFREG):
        raise at.error("image-kind", f"it is {_KINDS.get(kind, 'of a kind that does not fit its name')}")
    if info.flag_bits & _ENCRYPTED:
        raise at.error("image-kind", "it is encrypted, or a patch")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise at.error("image-kind", "it is packed in another way than stored or deflated")
    if info.compress_type == zipfile.ZIP_STORED and info.file_size != info.compress_size:
        raise at.error(
            "image-archive", f"it is stored as it is, but in {info.compress_size} for {info.file_size} bytes"
        )
    if is_folder and info.file_size:
        raise at.error("image-kind", f"it is a folder with {info.file_size} bytes")


def _data_start(stream: IO[bytes], info: zipfile.ZipInfo, at: Place) -> int:
    """Where the data begins, from the header before it, which must agree with the directory."""
    stream.seek(info.header_offset)
    block = stream.read(_LOCAL.size)
    if len(block) < _LOCAL.size:
        raise at.error("image-archive", "its header lies after the archive's end: it is cut")
    signature, _, flags, method, _, _, _, _, _, name_length, extra_length = _LOCAL.unpack(block)
    raw = stream.read(name_length)
    try:
        name = raw.decode("utf-8" if flags & _UTF8 else "cp437")
    except UnicodeDecodeError:
        name = ""
    if (signature, method, name) != (b"PK\3\4", info.compress_type, info.orig_filename):
        raise at.error("image-archive", "the header before its data says something else than the directory")
    return info.header_offset + _LOCAL.size + name_length + extra_length
