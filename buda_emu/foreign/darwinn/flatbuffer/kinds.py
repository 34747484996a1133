"""Kinds of slots: each kind reads, writes and shows its own values, after the protocol `Kind`."""

import hashlib
import itertools
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from buda_emu.foreign.darwinn.flatbuffer.read import INT32, UINT16, Reader, Table, fields_of, from_plain, to_plain

if TYPE_CHECKING:
    from buda_emu.foreign.darwinn.flatbuffer.write import Writer

TableType: TypeAlias = type[Table]


class _Offset:
    """Base of the kinds whose inline part is an offset."""

    def place(self, writer: "Writer", slot: int, value: Any, position: int, default: Any) -> None:  # noqa: ARG002
        """Write the inline part of a slot into an open table: the offset of the value, which `write` has put at
        `position`."""
        writer.builder.PrependUOffsetTRelativeSlot(slot, position, 0)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number in the `struct` format `code`; `names` makes it an enumeration."""

    code: str
    name: str
    names: Mapping[int, str] | None = None
    format: struct.Struct = field(init=False, compare=False)
    flag: str = field(init=False, compare=False)  # part of the names of the builder's methods, such as Int32

    def __post_init__(self) -> None:
        object.__setattr__(self, "format", struct.Struct("<" + self.code))
        object.__setattr__(self, "flag", _FLAGS[self.code])

    @property
    def size(self) -> int:
        """The size of the number in bytes."""
        return self.format.size

    def read(self, reader: Reader, at: int, before: int) -> Any:  # noqa: ARG002
        """Return the number at `at`. Raises Malformed outside of the buffer, and for a place that is not aligned."""
        reader.inside(at, self.size, self.size, self.name)
        return self.format.unpack_from(reader.data, at)[0]

    def write(self, writer: "Writer", value: Any) -> int:  # noqa: ARG002
        """Write nothing, as a number is inline, and return 0 in place of a position."""
        return 0

    def place(self, writer: "Writer", slot: int, value: Any, position: int, default: Any) -> None:  # noqa: ARG002
        """Write the number into an open table, unless it is the default."""
        getattr(writer.builder, f"Prepend{self.flag}Slot")(slot, value, default)

    def plain(self, value: Any, data: bool) -> Any:  # noqa: ARG002
        """Return the value's name in the enumeration; a value without a name stays a number."""
        if self.names is None:
            return value
        return self.names.get(value, value)

    def unplain(self, value: Any, before: Any) -> Any:  # noqa: ARG002
        """Return the number for a number or an enumeration's name. Raises ValueError or TypeError where it does not
        fit the type."""
        if isinstance(value, str):
            numbers = {name: number for number, name in (self.names or {}).items()}
            if value not in numbers:
                raise ValueError(f"{value!r} is not one of {', '.join(numbers) or 'the names: there are none'}")
            value = numbers[value]
        if self.code == "f":
            value = float(value)
        elif self.code == "?":
            value = bool(value)
        elif not isinstance(value, int):
            raise TypeError(f"{value!r} is not of type {self.name}")
        try:
            return self.format.unpack(self.format.pack(value))[0]
        except (struct.error, OverflowError):
            raise ValueError(f"{value!r} does not fit {self.name}") from None


_FLAGS: Final = {
    "?": "Bool", "b": "Int8", "B": "Uint8", "h": "Int16", "i": "Int32", "I": "Uint32", "q": "Int64", "Q": "Uint64",
    "f": "Float32",
}  # fmt: skip
BOOL: Final = Scalar("?", "bool")
INT: Final = Scalar("i", "int")
UINT: Final = Scalar("I", "uint")
LONG: Final = Scalar("q", "int64")
ULONG: Final = Scalar("Q", "uint64")
FLOAT: Final = Scalar("f", "float")


class Text(_Offset):
    """A string; bytes that are not UTF-8 become surrogates, so that they can be written again."""

    name = "string"

    def read(self, reader: Reader, at: int, before: int) -> str:  # noqa: ARG002
        """Return the string that the offset at `at` points to. Raises Malformed where it does not verify."""
        return reader.text(reader.follow(at))

    def write(self, writer: "Writer", value: str) -> int:
        """Write the string and its NUL, and return its position."""
        return writer.builder.CreateString(value.encode("utf-8", "surrogateescape"))

    def plain(self, value: Any, data: bool) -> Any:  # noqa: ARG002
        """Return the string as it is."""
        return value

    def unplain(self, value: Any, before: Any) -> Any:  # noqa: ARG002
        """Return the string unchanged. Raises TypeError for another type."""
        if not isinstance(value, str):
            raise TypeError(f"{value!r} is not a string")
        return value


TEXT: Final = Text()


@dataclass(frozen=True, slots=True)
class Data(_Offset):
    """A vector of bytes; one that is not empty begins at a multiple of `page`, where that is set."""

    page: int = 0
    name = "[ubyte]"

    def read(self, reader: Reader, at: int, before: int) -> memoryview:  # noqa: ARG002
        """Return a view on the bytes of the vector that the offset at `at` points to."""
        return reader.vector(reader.follow(at), 1)

    def write(self, writer: "Writer", value: Any) -> int:
        """Write the bytes, aligned to `page`, and return their position."""
        return writer.data(value, self.page)

    def plain(self, value: Any, data: bool) -> Any:
        """Return the bytes where `data` is set, else their size and digest."""
        return bytes(value) if data else digest(value)

    def unplain(self, value: Any, before: Any) -> Any:  # noqa: ARG002
        """Return the bytes. Raises TypeError for anything else, a digest among others."""
        return _as_bytes(value)


@dataclass(frozen=True, slots=True)
class Blobs(_Offset):
    """A vector of strings that hold bytes."""

    page: int = 0
    name = "[string]"

    def read(self, reader: Reader, at: int, before: int) -> tuple[memoryview, ...]:  # noqa: ARG002
        """Return a view on the bytes of each string of the vector that the offset at `at` points to."""
        return reader.blobs(reader.follow(at))

    def write(self, writer: "Writer", value: Sequence[Any]) -> int:
        """Write the strings, each aligned to `page`, and the vector of their offsets; return the vector's position."""
        return writer.offsets([writer.blob(blob, self.page) for blob in value])

    def plain(self, value: Any, data: bool) -> Any:
        """Return each string's bytes where `data` is set, else their sizes and digests."""
        return [bytes(blob) if data else digest(blob) for blob in value]

    def unplain(self, value: Any, before: Any) -> Any:  # noqa: ARG002
        """Return the bytes of the strings. Raises TypeError where an element is not bytes."""
        return tuple(_as_bytes(blob) for blob in value)


@dataclass(frozen=True, slots=True)
class Numbers(_Offset):
    """A vector of scalars of one type."""

    scalar: Scalar

    @property
    def name(self) -> str:
        """The kind's name in the docs, such as `[int]`."""
        return f"[{self.scalar.name}]"

    def read(self, reader: Reader, at: int, before: int) -> Sequence[Any]:  # noqa: ARG002
        """Return a view on the numbers of the vector that the offset at `at` points to."""
        return reader.vector(reader.follow(at), self.scalar.size).cast(self.scalar.code)  # type: ignore[call-overload]

    def write(self, writer: "Writer", value: Sequence[Any]) -> int:
        """Write the numbers as a vector and return its position."""
        return writer.scalars(self.scalar.flag, self.scalar.size, value)

    def plain(self, value: Any, data: bool) -> Any:  # noqa: ARG002
        """Return the numbers as a list."""
        return list(value)

    def unplain(self, value: Any, before: Any) -> Any:  # noqa: ARG002
        """Return the numbers as a tuple. Raises ValueError or TypeError where one does not fit."""
        return tuple(self.scalar.unplain(number, None) for number in value)


@dataclass(frozen=True, slots=True)
class Structs(_Offset):
    """A vector of structs whose fields are ints; each is read as a tuple."""

    names: tuple[str, ...]

    @property
    def name(self) -> str:
        """The kind's name in the docs, such as `[struct of int start, end]`."""
        return f"[struct of int {', '.join(self.names)}]"

    def read(self, reader: Reader, at: int, before: int) -> tuple[tuple[int, ...], ...]:  # noqa: ARG002
        """Return the structs of the vector that the offset at `at` points to, as tuples of ints. Raises Malformed where
        they do not verify."""
        return reader.structs(reader.follow(at), len(self.names))

    def write(self, writer: "Writer", value: Sequence[Sequence[int]]) -> int:
        """Write the structs one after the other as a vector and return its position."""
        flat = list(itertools.chain.from_iterable(value))
        return writer.scalars(INT.flag, INT.size, flat, len(self.names))

    def plain(self, value: Any, data: bool) -> Any:  # noqa: ARG002
        """Return the structs as dicts by field name."""
        return [dict(zip(self.names, numbers, strict=True)) for numbers in value]

    def unplain(self, value: Any, before: Any) -> Any:  # noqa: ARG002
        """Return the structs as tuples. Raises KeyError, ValueError or TypeError where one does not fit."""
        return tuple(self._fields(entry) for entry in value)

    def _fields(self, entry: Any) -> tuple[int, ...]:
        """Return the fields of one struct, in order, from a mapping by their names. Raises KeyError for a missing
        name, ValueError or TypeError for a value that is no int of 32 bits."""
        return tuple(INT.unplain(entry[name], None) for name in self.names)


@dataclass(frozen=True, slots=True)
class One(_Offset):
    """One table, referred to by an offset."""

    table: TableType

    @property
    def name(self) -> str:
        """The name of the table's class."""
        return self.table.__name__

    def read(self, reader: Reader, at: int, before: int) -> Table:  # noqa: ARG002
        """Read and verify the table that the offset at `at` points to. Raises Malformed where it does not verify."""
        return reader.table(self.table, reader.follow(at))

    def write(self, writer: "Writer", value: Table) -> int:
        """Write the table with everything it holds and return its position."""
        return writer.table(value)

    def plain(self, value: Any, data: bool) -> Any:
        """Return the table as a dict by field name."""
        return to_plain(value, data)

    def unplain(self, value: Any, before: Any) -> Any:  # noqa: ARG002
        """Build the table from a dict by field name. Raises ValueError where it does not fit."""
        return from_plain(self.table, value)


@dataclass(frozen=True, slots=True)
class Many(_Offset):
    """A vector of tables of one type."""

    table: TableType

    @property
    def name(self) -> str:
        """The kind's name in the docs, such as `[Layer]`."""
        return f"[{self.table.__name__}]"

    def read(self, reader: Reader, at: int, before: int) -> tuple[Table, ...]:  # noqa: ARG002
        """Read and verify the tables of the vector that the offset at `at` points to. Raises Malformed where one does
        not verify."""
        return reader.tables(self.table, reader.follow(at))

    def write(self, writer: "Writer", value: Sequence[Table]) -> int:
        """Write the tables, then the vector of their offsets, and return the vector's position."""
        return writer.offsets([writer.table(table) for table in value])

    def plain(self, value: Any, data: bool) -> Any:
        """Return the tables as dicts by field name."""
        return [to_plain(table, data) for table in value]

    def unplain(self, value: Any, before: Any) -> Any:  # noqa: ARG002
        """Build the tables from dicts by field name. Raises ValueError where one does not fit."""
        return tuple(from_plain(self.table, tree) for tree in value)


@dataclass(frozen=True, slots=True)
class Union(_Offset):
    """One of several tables; the number in the slot before says which."""

    members: Mapping[int, TableType]

    @property
    def name(self) -> str:
        """The kind's name in the docs, such as `A | B`."""
        return " | ".join(member.__name__ for member in self.members.values())

    def read(self, reader: Reader, at: int, before: int) -> Table | None:
        """Read and verify the table that the offset at `at` points to. `before` is the value of the slot before, the
        number of the table's type; None for a number that is not known. Raises Malformed where the table or the offset
        does not verify."""
        position = reader.follow(at)
        member = self.members.get(before)
        if member is None:
            return None
        return reader.table(member, position)

    def write(self, writer: "Writer", value: Table) -> int:
        """Write the table with everything it holds and return its position."""
        return writer.table(value)

    def plain(self, value: Any, data: bool) -> Any:
        """Return the table as a dict by field name."""
        return to_plain(value, data)

    def unplain(self, value: Any, before: Any) -> Any:
        """Build the table of the type that the slot before names. Raises ValueError for an unknown type or a tree that
        does not fit."""
        member = self.members.get(before)
        if member is None:
            raise ValueError(f"a union of type {before!r} cannot hold anything")
        return One(member).unplain(value, None)


def digest(value: Any) -> dict[str, Any]:
    """Return the size and the SHA-256 of bytes."""
    return {"size": len(value), "sha256": hashlib.sha256(value).hexdigest()}


def _as_bytes(value: Any) -> bytes:
    """Return bytes unchanged. Raises TypeError for any other value, such as the digest of `to_dict` without data."""
    if not isinstance(value, bytes):
        raise TypeError("bytes are wanted here, such as to_dict(data=True) gives them")
    return value


def starts(data: memoryview, base: int, table: Table, name: str) -> list[int]:
    """Return the offsets in the file at which the bytes of a field begin: one for a field of bytes, one for each
    string of a field of strings, none for an absent field.

    `data` is the buffer that the table was read from, which begins `base` bytes into the file.
    """
    reader = Reader(data, base)
    at = table.at - base
    vtable = at - INT32.unpack_from(data, at)[0]
    entry, kind = next((slot.entry, slot.kind) for slot in fields_of(type(table)) if slot.name == name)
    vtable_bytes = UINT16.unpack_from(data, vtable)[0]
    if entry >= vtable_bytes:
        return []
    inline = UINT16.unpack_from(data, vtable + entry)[0]
    if not inline:
        return []
    position_of_field = reader.follow(at + inline)
    positions = [position_of_field]
    if isinstance(kind, Blobs):
        positions = reader.elements(position_of_field)
    return [base + position + 4 for position in positions]
