"""The file that holds a machine's state: an uncompressed zip of a JSON header and raw arrays (docs/run/snapshots.md).

Nothing in it is ever executed. Sizes are checked before memory is taken, check sums before anything is believed.
"""

import json
import os
import struct
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from buda_emu.support.errors import HostError
from buda_emu.support.files import write_file

SCHEMA_VERSION = 3  # goes up when an older snapshot can no longer be read
KIND = "buda-emu snapshot"
HEADER = "header.json"
NETLIST = "netlist.yaml"
_MOST_TEXT = 256 << 20  # bytes of the header, and of the netlist
_GROWTH = 32  # at most: bytes of the objects that a byte of JSON stands for
_LEAST_ROOM = 64 << 20  # for these, whatever the limit
_MOST_BYTES_AT_ONCE = 64 << 20  # so that reading takes little memory beside the array
_BROKEN = (
    zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, RuntimeError, ValueError, EOFError, OSError,
    struct.error, MemoryError, RecursionError, OverflowError, KeyError,
)  # fmt: skip


def write(
    path: str | os.PathLike[str],
    header: Mapping[str, Any],
    netlist: bytes | None,
    arrays: Mapping[str, Iterable[NDArray[Any]]],
) -> None:
    """Write a snapshot; a file of that name is replaced when the new one is complete. Raises HostError.

    `arrays`: member name -> pieces, which are stored one after the other, little-endian."""

    def members(stream: IO[bytes]) -> None:
        """Write all members of the zip to a stream."""
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(zipfile.ZipInfo(HEADER), json.dumps(header, indent=1))
            if netlist is not None:
                archive.writestr(zipfile.ZipInfo(NETLIST), netlist)
            for member, pieces in arrays.items():
                with archive.open(zipfile.ZipInfo(member), "w", force_zip64=True) as out:
                    for piece in filter(np.size, pieces):  # nothing of what lies on another machine
                        little = piece.astype(piece.dtype.newbyteorder("<"), order="C", copy=False)
                        out.write(little.data.cast("B"))

    try:
        write_file(path, members, durable=True)
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        raise HostError(f"snapshot {path}: {getattr(error, 'strerror', None) or error}") from None


class Reader:
    """An open snapshot. Every method raises HostError for a file that is not one, or is damaged."""

    def __init__(self, path: str | os.PathLike[str], limit: int) -> None:
        """Open a file and read its header. `limit`: bytes that the machine may hold."""
        self.path = Path(path)
        self._limit = limit
        self._archive = self._translate_errors(lambda: zipfile.ZipFile(self.path))
        self._members = {info.filename: info for info in self._archive.infolist()}
        try:
            if len(self._members) != len(self._archive.infolist()):
                raise self.refusal("a member occurs in it twice")
            self.header = self._read_header()
        except BaseException:
            self._archive.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._archive.close()

    def refusal(self, reason: str) -> HostError:
        """Return the error for a snapshot that is refused."""
        return HostError(f"snapshot {self.path}: {reason}")

    @property
    def netlist(self) -> bytes | None:
        """The netlist's text, None where the snapshot does not keep it."""
        if NETLIST in self._members:
            return self._read_text(NETLIST)
        return None

    def require(self, names: Iterable[str]) -> None:
        """Raise HostError unless the members are the header, the arrays of these names and perhaps the netlist."""
        expected = {*names, HEADER}
        if self._members.keys() - {NETLIST} != expected - {NETLIST}:
            raise self.refusal("its members are not those in its header")

    def require_size(self, member: str, size: int) -> zipfile.ZipInfo:
        """Return the entry of an array's member, which must have `size` bytes. Raises HostError for another size."""
        info = self._uncompressed_member(member)
        if info.file_size != size:
            raise self.refusal(f"{member} has {info.file_size} bytes, not those of its header")
        return info

    def fill(self, member: str, pieces: Iterable[NDArray[Any]]) -> None:
        """Read the member of an array into consecutive pieces. Raises HostError unless its size is theirs and its check
        sum right."""
        pieces = list(filter(np.size, pieces))
        info = self.require_size(member, sum(piece.nbytes for piece in pieces))

        def read() -> None:
            """Read the member to its end, into piece after piece."""
            with self._archive.open(info) as source:
                for piece in pieces:
                    bytes_left = piece.data.cast("B")
                    while bytes_left:
                        data = source.read(min(len(bytes_left), _MOST_BYTES_AT_ONCE))
                        if not data:
                            raise EOFError("it is cut short")
                        bytes_left[: len(data)] = data
                        bytes_left = bytes_left[len(data) :]
                source.read(1)  # the check sum is compared at the end

        self._translate_errors(read)

    def _read_header(self) -> dict[str, Any]:
        """Return the JSON object of the header. Raises HostError for a header too large for the memory limit, and for
        another kind of file."""
        size = self._uncompressed_member(HEADER).file_size
        if size * _GROWTH > max(self._limit, _LEAST_ROOM):
            raise self.refusal(f"its header has {size} bytes, too many to be read within the memory limit")
        header = self._translate_errors(lambda: json.loads(self._read_text(HEADER)))
        if isinstance(header, dict):
            fields = cast("dict[str, Any]", header)
        else:
            fields = {}
        if fields.get("kind") != KIND:
            raise self.refusal("it is not a snapshot of buda-emu")
        return fields

    def _read_text(self, member: str) -> bytes:
        """Return the bytes of a text member. Raises HostError where it is larger than any that buda-emu writes."""
        info = self._uncompressed_member(member)
        if info.file_size > _MOST_TEXT:
            raise self.refusal(f"{member} is larger than any")
        return self._translate_errors(lambda: self._archive.read(info))

    def _uncompressed_member(self, member: str) -> zipfile.ZipInfo:
        """Return the zip entry of a member that is stored uncompressed, so that its size in the file is what it needs
        in memory. Raises HostError where it is missing, compressed or encrypted."""
        info = self._members.get(member)
        if info is None:
            raise self.refusal(f"it has no member {member}")
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size or info.flag_bits & 1:
            raise self.refusal(f"{member} is compressed or encrypted, which buda-emu never writes")
        return info

    def _translate_errors(self, call: Callable[[], Any]) -> Any:
        """Return the result of `call`, which reads the file; errors of a broken file become HostError."""
        try:
            return call()
        except HostError:
            raise
        except _BROKEN as error:
            raise self.refusal(f"it cannot be read: {error}") from None


Refuse = Callable[[str], HostError]
MOST = 1 << 62
"""Upper bound for counters in a file; no machine has ever counted further."""


class Fields:
    """A JSON object whose values are checked as they are read: every method but `bad` and `names` raises the error of
    `refuse` for a value that is missing or wrong. `place` is its position in the header, for error texts."""

    def __init__(self, value: Any, place: str, refuse: Refuse) -> None:
        self._where = place
        self._refuse = refuse
        if not isinstance(value, dict):
            raise self.bad("is not an object")
        self._value: dict[str, Any] = value

    def bad(self, problem: str) -> HostError:
        """Return the error for this object, to be raised by the caller."""
        return self._refuse(f"{self._where or 'header'} {problem}")

    def names(self) -> list[str]:
        """Return the keys."""
        return list(self._value)

    def at(self, key: str) -> "Fields":
        """Return the object under a key."""
        return Fields(self._get(key), self._path(key), self._refuse)

    def integer(self, key: str, low: int, high: int) -> int:
        """Return an integer from `low` to `high`, both included."""
        value = self._get(key)
        if type(value) is not int or not low <= value <= high:
            raise self._refuse(f"{self._path(key)} is not an integer from {low} to {high}")
        return value

    def flag(self, key: str) -> bool:
        """Return a value that must be true or false."""
        value = self._get(key)
        if type(value) is not bool:
            raise self._refuse(f"{self._path(key)} is not true or false")
        return value

    def text(self, key: str, among: Mapping[str, Any] | Sequence[str] | None = None) -> str:
        """Return a string, which must be one of `among` where that is given."""
        value = self._get(key)
        if not isinstance(value, str) or (among is not None and value not in among):
            raise self._refuse(f"{self._path(key)} is not a known word")
        return value

    def rows(self, key: str, *kinds: type) -> list[tuple[Any, ...]]:
        """Return the list of lists under a key, each with one value of each of the types `kinds`."""
        rows = self._get(key)
        wrong = self._refuse(f"{self._path(key)} is not a list of {[kind.__name__ for kind in kinds]}")
        if not isinstance(rows, list):
            raise wrong
        result: list[tuple[Any, ...]] = []
        for row in cast("list[object]", rows):
            if not isinstance(row, list):
                raise wrong
            items = tuple(cast("list[object]", row))
            if [type(value) for value in items] != list(kinds):
                raise wrong
            result.append(items)
        return result

    def _get(self, key: str) -> Any:
        """Return the value under a key. Raises HostError where it is missing."""
        if key not in self._value:
            raise self._refuse(f"{self._path(key)} is missing")
        return self._value[key]

    def _path(self, key: str) -> str:
        """Return the position of a key in the header."""
        return f"{self._where}.{key}" if self._where else key
