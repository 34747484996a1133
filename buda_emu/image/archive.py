"""The archive: members by name and their bytes, read where they lie. Nothing is ever unpacked to disk."""

import hashlib
import os
import stat
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from buda_emu.files import FileState, unchanged
from buda_emu.image.containers.tar_index import tar_members
from buda_emu.image.containers.zip_index import zip_members
from buda_emu.image.member import Limits, Member
from buda_emu.image.names import TOP, check_unique
from buda_emu.image.rules import Place
from buda_emu.lazy import lazy

if TYPE_CHECKING:  # checking an image needs no numpy
    import numpy as np
    from numpy.typing import NDArray

    from buda_emu.tensor import mapped as memory
else:
    memory = lazy("buda_emu.tensor.mapped")

_ZIP = b"PK\3\4"
_PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7z": "xz", b"\x28\xb5\x2f\xfd": "zstandard", b"7z": "7-Zip"}
_PART = 1 << 20


@dataclass(frozen=True, slots=True)
class Archive:
    """An open archive. No file stays open: each read opens it again and makes sure that it is still the same."""

    place: Place
    members: Mapping[str, Member]
    _state: FileState

    def read(self, name: str, limit: int | None = None) -> bytes:
        """The bytes of a member. Raises ImageError where there is no such file, or when it is larger than `limit`."""
        member, at = self.members.get(name), self.place.at(name)
        if member is None or member.is_folder:
            raise at.error("image-member", "it is not in the archive")
        if limit is not None and member.size > limit:
            raise at.error("image-size", f"it has {member.size} bytes, the limit is {limit}")
        with self._reopened() as stream:
            stream.seek(member.offset)
            data = _inflated(stream, member, at) if member.deflated else stream.read(member.size)
        self._require_unchanged()
        if len(data) != member.size:
            raise at.error("image-archive", f"it has {len(data)} bytes, the archive states {member.size}")
        if member.crc is not None and zlib.crc32(data) != member.crc:
            raise at.error("image-archive", "its checksum is wrong")
        return data

    def is_plain(self, name: str) -> bool:
        """Whether a file lies in the archive as it is, without a checksum that only all of it tells."""
        return self.has(name) and not self.members[name].deflated and self.members[name].crc is None

    def mapped(self, name: str) -> "NDArray[np.uint8]":
        """The bytes of a file that `is_plain`, none of them read: uint8[size]. Raises ImageError as `read`."""
        member = self.members[name]
        with self._reopened() as stream:
            return memory.map_bytes(stream, member.offset, member.size)

    def unchanged(self, name: str) -> Callable[[], None]:
        """A function that raises ImageError where the file is not the one that was loaded, to be called before and
        after each look at the mapped bytes of a member."""
        place = self.place.at(name)
        return unchanged(place.archive, lambda how: place.error("image-changed", how), self._state)

    def digest(self) -> str:
        """SHA-256 of the whole file, in hexadecimal. Raises ImageError as `read`."""
        with self._reopened() as stream:
            found = hashlib.sha256()
            while data := stream.read(_PART):
                found.update(data)
        self._require_unchanged()
        return found.hexdigest()

    def _reopened(self) -> IO[bytes]:
        self._require_unchanged()
        return _opened(self.place)

    def _require_unchanged(self) -> None:
        difference = self._state.difference(self.place.archive)
        if difference:
            raise self.place.error("image-changed", f"the file is not the one that was loaded: {difference}")

    def has(self, name: str) -> bool:
        """Whether there is a file of that name."""
        member = self.members.get(name)
        return member is not None and not member.is_folder


def open_archive(path: str | os.PathLike[str], limits: Limits) -> Archive:
    """Read where everything lies in a tar or zip (magic PK 03 04, NETLIST 8). Raises ImageError, OSError."""
    place = Place(os.fspath(path))
    with _opened(place) as stream:
        state = FileState.of(stream.fileno())
        magic = stream.read(8)
        for mark, kind in _PACKED.items():
            if magic.startswith(mark):
                raise place.error("image-archive", f"it is packed with {kind}")
        length = os.fstat(stream.fileno()).st_size
        found: list[Member] = []
        total = 0
        for member in (zip_members if magic.startswith(_ZIP) else tar_members)(stream, length, place, limits):
            found.append(member)
            total += member.size
            if len(found) > limits.members:
                raise place.error("image-size", f"it has over {limits.members} members")
            if total > limits.total_bytes:
                raise place.error("image-size", f"its members have over {limits.total_bytes} bytes")
            if total > limits.ratio_from and total > limits.ratio * length:
                raise place.error("image-size", f"{length} bytes unpack to more than {limits.ratio} times as many")
        check_unique(((member.name, member.is_folder) for member in found), place)
        if not found:
            raise place.at(TOP).error("image-member", "the archive is empty")
        return Archive(place, {member.name: member for member in found}, state)


def _opened(place: Place) -> IO[bytes]:
    if "\0" in place.archive or not stat.S_ISREG(os.stat(place.archive).st_mode):  # noqa: PTH116 - a pipe would block
        raise place.error("image-archive", "it is not a file")
    return open(place.archive, "rb")  # noqa: PTH123 - no path object is needed


def _inflated(stream: IO[bytes], member: Member, at: Place) -> bytes:
    """Unpack at most one byte more than the member states. Raises ImageError for data that is not deflate's."""
    unpacker, data, left = zlib.decompressobj(-zlib.MAX_WBITS), bytearray(), member.stored
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
