"""The archive of an image: tar or zip, its members by name, their bytes read where they lie, and how much of anything
it may hold.
"""

import hashlib
import os
import re
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, cast
from unicodedata import normalize

from buda_emu.emulator.image.rules import Place
from buda_emu.support.checker.text import short_line
from buda_emu.support.files import ZIP_SIGNATURE, FileState, change_guard
from buda_emu.support.lazy import lazy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from buda_emu.arithmetic.tensor import mapped as memory
else:
    memory = lazy("buda_emu.arithmetic.tensor.mapped")


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds for an image, far above every real one. They are in bytes unless the comment states another unit."""

    members: int = 200_000  # files and folders
    total_bytes: int = 256 << 30  # of all members, unpacked
    json_bytes: int = 16 << 20  # of one JSON member
    header_bytes: int = 1 << 20  # of a tar's extension header, or after its end
    directory_bytes: int = 24 << 20  # of a zip's central directory
    ratio: int = 100  # times: unpacked to packed, of a zip larger than `ratio_from` unpacked
    ratio_from: int = 256 << 20


LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Member:
    """The position of a member in the archive: `stored` bytes at `offset`, `size` bytes when unpacked. `crc` is None
    where the archive has no checksum for it."""

    name: str
    offset: int
    size: int
    stored: int
    is_folder: bool
    deflated: bool = False
    crc: int | None = None


TOP = "unzipped_tti"
DEVICE = f"{TOP}/device.json"
STATE = "compiled_graph_state"  # the name in device.json of what the compiled netlist says
_MAX_NAME = 1024  # characters: the longest path that macOS opens
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
    """Return the name of a member without a leading `./` and, for a folder, without the slash at its end. Raises
    ImageError for a name that is not a plain relative path below unzipped_tti/, and for a file that is an archive by
    its name."""
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
    """Raise ImageError where two members (name, whether it is a folder) would be one file on some file system, or where
    one would lie below a file. `place` names the archive."""
    seen: dict[str, tuple[str, bool]] = {}
    for name, is_folder in members:
        before = seen.get(_fold_name(name))
        if before is not None:
            raise place.at(name).error("image-twice", f"{short_line(before[0])} is there already")
        seen[_fold_name(name)] = name, is_folder
    folders = {name.rpartition("/")[0] for name, _ in seen.values()} - {""}
    while folders:
        for name in folders:
            before = seen.setdefault(_fold_name(name), (name, True))
            if before != (name, True):
                raise place.at(name).error("image-twice", f"{short_line(before[0])} is not a folder of this name")
        folders = {name.rpartition("/")[0] for name in folders} - {""}


def _fold_name(name: str) -> str:
    """Return a spelling that is the same for all names which some file system takes for one name."""
    if name.isascii():
        return name.lower()
    return normalize("NFC", normalize("NFKD", name).casefold())


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
    """Yield every member of a tar in order. Raises ImageError for everything that is not a plain, whole tar."""
    offset = 0
    extended: dict[str, str] = {}  # what the extension headers before a member say of it
    extensions = 0
    while True:
        header = _read_at(stream, offset, _BLOCK)
        if len(header) < _BLOCK:
            raise place.error(
                "image-archive", f"it ends at byte {offset + len(header)}, without an end mark: it is cut"
            )
        if not any(header):
            break
        info = _parse_tar_header(header, offset, place)
        size = _stated_size(extended.get("size"), info.size, place.at(info.name))
        start = offset + _BLOCK
        offset = offset + _BLOCK + -(-max(size, 0) // _BLOCK) * _BLOCK
        if size < 0 or start + size > length:
            raise place.at(info.name).error(
                "image-archive",
                f"its header states {size} bytes, the archive has {max(0, length - start)} more: it is cut",
            )
        if info.type in _EXTENSIONS:
            extensions += 1
            if extensions > _MOST_EXTENSIONS:
                raise place.error("image-size", f"over {_MOST_EXTENSIONS} extension headers come before a member")
            extended |= _extension_records(info, _read_extension(stream, start, size, place, limits), place)
            continue
        yield _make_tar_member(info, extended, start, size, place)
        extended = {}
        extensions = 0
    if extended:
        raise place.error("image-archive", "it ends after an extension header")
    if length - offset > limits.header_bytes or any(_read_at(stream, offset, length - offset)):
        raise place.error("image-archive", f"there is data after the end mark at byte {offset}")


def _make_tar_member(info: tarfile.TarInfo, extended: dict[str, str], start: int, size: int, place: Place) -> Member:
    """Return a member of a tar from its header and the records of its extension headers (`extended`). Raises ImageError
    for anything but a plain file or folder, and for a name that images do not allow."""
    is_folder = info.type == tarfile.DIRTYPE
    name = checked_name(extended.get("path", info.name), is_folder, place)
    if (not is_folder and info.type not in _FILES) or any(key.startswith("GNU.sparse") for key in extended):
        kind = "a sparse file"
        if info.type not in _FILES:
            kind = _KINDS.get(info.type, f"of type {short_line(info.type.decode('latin-1'))}")
        raise place.at(name).error("image-kind", f"it is {kind}")
    if is_folder and size:
        raise place.at(name).error("image-kind", f"it is a folder with {size} bytes")
    return Member(name=name, offset=start, size=size, stored=size, is_folder=is_folder)


def _parse_tar_header(block: bytes, offset: int, place: Place) -> tarfile.TarInfo:
    """Return the tar header in a block, which lies at `offset`. Raises ImageError for a block that is none."""
    try:
        return tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except (tarfile.TarError, ValueError) as error:
        raise place.error("image-archive", f"no tar header at byte {offset} ({error})") from None


def _stated_size(stated: str | None, size: int, place: Place) -> int:
    """Return the size of a member in bytes: that of its extension header as text (`stated`) if there is one, else that
    of its header. Raises ImageError for a text that is no number."""
    if stated is None:
        return size
    if not (stated.isascii() and stated.isdecimal() and len(stated) < 20):
        raise place.error("image-archive", f"its extension header states {short_line(stated)!r} bytes")
    return int(stated)


def _extension_records(info: tarfile.TarInfo, text: str, place: Place) -> dict[str, str]:
    """Return the records of an extension header, whose content is `text`: those of pax, or the long name of GNU tar as
    `path`. Empty for headers that change no member. Raises ImageError for a global header that names members."""
    if info.type in _GNU:  # where a link leads to is of no interest
        if info.type == tarfile.GNUTYPE_LONGNAME:
            return {"path": text.split("\0", 1)[0]}
        return {}
    records = dict(_pax_records(text.encode("utf-8", "surrogateescape"), place))
    if info.type == tarfile.XGLTYPE:
        if records.keys() & {"path", "size", "linkpath"}:
            raise place.error("image-archive", "a global extension header names members")
        return {}
    return records


def _pax_records(data: bytes, place: Place) -> Iterator[tuple[str, str]]:
    """Yield key and value of each pax record. A record is its own length, a space, `key=value` and a line feed. Raises
    ImageError for a broken one."""
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


def _read_extension(stream: IO[bytes], start: int, size: int, place: Place, limits: Limits) -> str:
    """Return the content of an extension header as text. Raises ImageError where it is larger than `limits` allow."""
    if size > limits.header_bytes:
        raise place.error("image-size", f"an extension header has {size} bytes, the limit is {limits.header_bytes}")
    return _read_at(stream, start, size).decode("utf-8", "surrogateescape")


def _read_at(stream: IO[bytes], offset: int, size: int) -> bytes:
    """Return up to `size` bytes at an offset, fewer where the file ends."""
    stream.seek(offset)
    return stream.read(size)


_ENCRYPTED = 0x01 | 0x20 | 0x40  # and patched data
_UTF8 = 0x800  # flag bit 11 of a zip member: its name is UTF-8
_LOCAL = struct.Struct("<4sHHHHHLLLHH")
_MEMBER_KINDS = {
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
    """Yield every member of a zip in the order of the data. Raises ImageError for everything that is not a plain, whole
    zip."""
    infos = sorted(_read_directory(stream, place, limits), key=lambda info: info.header_offset)
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
        yield Member(
            name=name,
            offset=start,
            size=info.file_size,
            stored=info.compress_size,
            is_folder=is_folder,
            deflated=deflated,
            crc=info.CRC,
        )


class _Bounded:
    """A file for zipfile that is never read in larger parts than a central directory may have."""

    def __init__(self, stream: IO[bytes], limit: int, place: Place) -> None:
        self.seek = stream.seek
        self.tell = stream.tell
        self.seekable = stream.seekable
        self._stream = stream
        self._limit = limit
        self._place = place

    def read(self, size: int = -1) -> bytes:
        """Read up to `size` bytes. Raises ImageError where more than the limit would come."""
        if 0 <= size <= self._limit:
            count = size
        else:
            count = self._limit + 1
        data = self._stream.read(count)
        if len(data) > self._limit:
            raise self._place.error("image-size", f"its central directory has over {self._limit} bytes")
        return data


def _read_directory(stream: IO[bytes], place: Place, limits: Limits) -> list[zipfile.ZipInfo]:
    """Return the entries of a zip's central directory. Raises ImageError for a file that is not a whole zip, or whose
    directory is too large."""
    bounded = cast("IO[bytes]", _Bounded(stream, limits.directory_bytes, place))
    try:
        with zipfile.ZipFile(bounded) as archive:
            return archive.infolist()
    except _BROKEN as error:
        raise place.error("image-archive", f"it is not a whole zip ({short_line(error)})") from None


def _check_kind(info: zipfile.ZipInfo, is_folder: bool, at: Place) -> None:
    """Raise ImageError for a member of a zip that is a link or a device, encrypted, packed in another way than deflate,
    or contradicts itself."""
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFDIR if is_folder else stat.S_IFREG):
        raise at.error("image-kind", f"it is {_MEMBER_KINDS.get(kind, 'of a kind that does not fit its name')}")
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
    """Return the offset of a member's data, from the header before it. Raises ImageError where that disagrees with the
    central directory."""
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
    if (signature, method, name) != (ZIP_SIGNATURE, info.compress_type, info.orig_filename):
        raise at.error("image-archive", "the header before its data says something else than the directory")
    return info.header_offset + _LOCAL.size + name_length + extra_length


_PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7z": "xz", b"\x28\xb5\x2f\xfd": "zstandard", b"7z": "7-Zip"}
_PART = 1 << 20  # bytes read at a time, so that a large member takes no memory


@dataclass(frozen=True, slots=True)
class Archive:
    """An archive whose directory has been read. No file stays open: each read opens it again and makes sure that it has
    not changed since."""

    place: Place
    members: Mapping[str, Member]
    _state: FileState

    def read(self, name: str, limit: int | None = None) -> bytes:
        """Return the bytes of a file in the archive, unpacked and checked against its checksum. Raises ImageError where
        there is no such file, it is larger than `limit` or broken, or the archive has changed since it was opened."""
        member = self.members.get(name)
        at = self.place.at(name)
        if member is None or member.is_folder:
            raise at.error("image-member", "it is not in the archive")
        if limit is not None and member.size > limit:
            raise at.error("image-size", f"it has {member.size} bytes, the limit is {limit}")
        with self._reopen() as stream:
            stream.seek(member.offset)
            if member.deflated:
                data = _inflate(stream, member, at)
            else:
                data = stream.read(member.size)
        self._check_state()
        if len(data) != member.size:
            raise at.error("image-archive", f"it has {len(data)} bytes, the archive states {member.size}")
        if member.crc is not None and zlib.crc32(data) != member.crc:
            raise at.error("image-archive", "its checksum is wrong")
        return data

    def is_plain(self, name: str) -> bool:
        """Return whether a file lies in the archive uncompressed and without a checksum, so that parts of it can be
        used without reading it all."""
        return self.has(name) and not self.members[name].deflated and self.members[name].crc is None

    def map_member(self, name: str) -> "NDArray[np.uint8]":
        """Map the bytes of a file for which `is_plain` holds, without reading them: uint8[size]. Raises ImageError
        where the archive has changed since it was opened, KeyError for an unknown name."""
        member = self.members[name]
        with self._reopen() as stream:
            return memory.map_bytes(stream, member.offset, member.size)

    def change_check(self, name: str) -> Callable[[], None]:
        """Return a function that raises ImageError if the archive has changed since it was opened. Call it before and
        after each use of the mapped bytes of member `name`."""
        place = self.place.at(name)
        return change_guard(place.archive, lambda how: place.error("image-changed", how), self._state)

    def digest(self) -> str:
        """Return the SHA-256 of the whole file in hexadecimal. Raises ImageError where the archive changed."""
        with self._reopen() as stream:
            checksum = hashlib.sha256()
            while data := stream.read(_PART):
                checksum.update(data)
        self._check_state()
        return checksum.hexdigest()

    def _reopen(self) -> IO[bytes]:
        """Open the archive again for a read. Raises ImageError where it has changed since it was opened first."""
        self._check_state()
        return _open_regular_file(self.place)

    def _check_state(self) -> None:
        """Raise ImageError where the archive has changed since it was opened."""
        difference = self._state.difference(self.place.archive)
        if difference:
            raise self.place.error("image-changed", f"the file is not the one that was loaded: {difference}")

    def has(self, name: str) -> bool:
        """Return whether the archive has a file (not a folder) of that name."""
        member = self.members.get(name)
        return member is not None and not member.is_folder


def open_archive(path: str | os.PathLike[str], limits: Limits) -> Archive:
    """Read the member list of a tar or zip archive (a zip begins with PK 03 04, NETLIST 8); no content is unpacked.
    Raises ImageError for a file that is no archive, is packed by another program, is empty, holds a name twice, or is
    beyond `limits`; OSError where the file cannot be opened."""
    place = Place(os.fspath(path))
    with _open_regular_file(place) as stream:
        state = FileState.of(stream.fileno())
        magic = stream.read(8)
        for mark, kind in _PACKED.items():
            if magic.startswith(mark):
                raise place.error("image-archive", f"it is packed with {kind}")
        length = os.fstat(stream.fileno()).st_size
        members: list[Member] = []
        total = 0
        for member in (zip_members if magic.startswith(ZIP_SIGNATURE) else tar_members)(stream, length, place, limits):
            members.append(member)
            total += member.size
            if len(members) > limits.members:
                raise place.error("image-size", f"it has over {limits.members} members")
            if total > limits.total_bytes:
                raise place.error("image-size", f"its members have over {limits.total_bytes} bytes")
            if total > limits.ratio_from and total > limits.ratio * length:
                raise place.error("image-size", f"{length} bytes unpack to more than {limits.ratio} times as many")
        check_unique(((member.name, member.is_folder) for member in members), place)
        if not members:
            raise place.at(TOP).error("image-member", "the archive is empty")
        return Archive(place, {member.name: member for member in members}, state)


def _open_regular_file(place: Place) -> IO[bytes]:
    """Open an archive for reading. Raises ImageError for a path that is no regular file: a pipe would block."""
    if "\0" in place.archive or not stat.S_ISREG(os.stat(place.archive).st_mode):  # noqa: PTH116 - a pipe would block
        raise place.error("image-archive", "it is not a file")
    return open(place.archive, "rb")  # noqa: PTH123 - no path object is needed


def _inflate(stream: IO[bytes], member: Member, at: Place) -> bytes:
    """Return the content of a deflated member, whose packed data begins at the position of `stream`. Raises ImageError
    for broken data, and for data that does not unpack to the size that the archive states."""
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    data = bytearray()
    left = member.stored
    try:
        while left and not unpacker.eof:
            part = stream.read(min(left, _PART))
            if not part:
                break
            left -= len(part)
            while part and len(data) <= member.size:
                data += unpacker.decompress(part, min(_PART, member.size + 1 - len(data)))
                part = unpacker.unconsumed_tail
            if len(data) > member.size:
                raise at.error("image-size", f"it unpacks to more than the {member.size} bytes that the archive states")
    except zlib.error as error:
        raise at.error("image-archive", f"its packed data is broken ({error})") from None
    if left or unpacker.unused_data or not unpacker.eof:
        raise at.error("image-archive", "its packed data ends too early or too late")
    return bytes(data)
