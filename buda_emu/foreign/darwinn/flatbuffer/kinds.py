"""What a slot can hold: each kind reads, writes and shows its own values."""

import hashlib
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from buda_emu.foreign.darwinn.flatbuffer.read import INT32, UINT16, Reader
from buda_emu.foreign.darwinn.flatbuffer.table import Table, fields_of, from_plain, to_plain

if TYPE_CHECKING:
    from buda_emu.foreign.darwinn.flatbuffer.write import Writer

TableType: TypeAlias = type[Table]


class _Offset:
    """What kinds have in common whose inline part is an offset."""

    def place(self, writer: "Writer", slot: int, value: Any, where: int, default: Any) -> None:  # noqa: ARG002
        """An offset."""
        writer.builder.PrependUOffsetTRelativeSlot(slot, where, 0)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number of `struct` format `code`; `names` makes it an enumeration."""

    code: str
    name: str
    names: Mapping[int, str] | None = None
    format: struct.Struct = field(init=False, compare=False)
    flag: str = field(init=False, compare=False)  # of the builder's methods: Int32

    def __post_init__(self) -> None:
        object.__setattr__(self, "format", struct.Struct("<" + self.code))
        object.__setattr__(self, "flag", _FLAGS[self.code])

    @property
    def size(self) -> int:
        """Bytes."""
        return self.format.size

    def read(self, reader: Reader, at: int, before: int) -> Any:  # noqa: ARG002
        """A number, bounds and alignment checked."""
        reader.inside(at, self.size, self.size, self.name)
        return self.format.unpack_from(reader.data, at)[0]

    def write(self, writer: "Writer", value: Any) -> int:  # noqa: ARG002
        """Nothing: it is inline."""
        return 0

    def place(self, writer: "Writer", slot: int, value: Any, where: int, default: Any) -> None:  # noqa: ARG002
        """The number, unless it is the default."""
        getattr(writer.builder, f"Prepend{self.flag}Slot")(slot, value, default)

    def plain(self, value: Any, data: bool) -> Any:  # noqa: ARG002
        """The name in an enumeration; a value without one stays a number."""
        return self.names.get(value, value) if self.names is not None else value

    def unplain(self, value: Any, before: Any) -> Any:  # noqa: ARG002
        """The number; refused where it does not fit."""
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
    """A string; bytes that are not UTF-8 are kept as surrogates, so that they can be written again."""

    name = "string"

    def read(self, reader: Reader, at: int, before: int) -> str:  # noqa: ARG002
        """Decoded."""
        return reader.text(reader.follow(at))

    def write(self, writer: "Writer", value: str) -> int:
        """The string and its NUL."""
        return writer.builder.CreateString(value.encode("utf-8", "surrogateescape"))

    def plain(self, value: Any, data: bool) -> Any:  # noqa: ARG002
        """As it is."""
        return value

    def unplain(self, value: Any, before: Any) -> Any:  # noqa: ARG002
        """As it is."""
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
        """A view on the file."""
        return reader.vector(reader.follow(at), 1)

    def write(self, writer: "Writer", value: Any) -> int:
        """Aligned as the kind asks for."""
        return writer.data(value, self.page)

    def plain(self, value: Any, data: bool) -> Any:
        """Bytes, or their number and digest."""
        return bytes(value) if data else digest(value)

    def unplain(self, value: Any, before: Any) -> Any:  # noqa: ARG002
        """Bytes; their digest is not enough."""
        return _as_bytes(value)


@dataclass(frozen=True, slots=True)
class Blobs(_Offset):
    """A vector of strings that hold bytes."""

    page: int = 0
    name = "[string]"

    def read(self, reader: Reader, at: int, before: int) -> tuple[memoryview, ...]:  # noqa: ARG002
        """Views on the file."""
        return reader.blobs(reader.follow(at))

    def write(self, writer: "Writer", value: Sequence[Any]) -> int:
        """Each aligned as the kind asks for."""
        return writer.offsets([writer.blob(item, self.page) for item in value])

    def plain(self, value: Any, data: bool) -> Any:
        """As `Data`, each."""
        return [bytes(item) if data else digest(item) for item in value]

    def unplain(self, value: Any, before: Any) -> Any:  # noqa: ARG002
        """As `Data`, each."""
        return tuple(_as_bytes(item) for item in value)


@dataclass(frozen=True, slots=True)
class Numbers(_Offset):
    """A vector of scalars."""

    scalar: Scalar

    @property
    def name(self) -> str:
        """As `[int]`."""
        return f"[{self.scalar.name}]"

    def read(self, reader: Reader, at: int, before: int) -> Sequence[Any]:  # noqa: ARG002
        """A view on the file."""
        return reader.vector(reader.follow(at), self.scalar.size).cast(self.scalar.code)  # type: ignore[call-overload]

    def write(self, writer: "Writer", value: Sequence[Any]) -> int:
        """One after the other."""
        return writer.scalars(self.scalar.flag, self.scalar.size, value)

    def plain(self, value: Any, data: bool) -> Any:  # noqa: ARG002
        """A list."""
        return list(value)

    def unplain(self, value: Any, before: Any) -> Any:  # noqa: ARG002
        """A tuple."""
        return tuple(self.scalar.unplain(item, None) for item in value)


@dataclass(frozen=True, slots=True)
class Structs(_Offset):
    """A vector of structs of ints; read as tuples."""

    names: tuple[str, ...]

    @property
    def name(self) -> str:
        """As `[struct of start, end]`."""
        return f"[struct of int {', '.join(self.names)}]"

    def read(self, reader: Reader, at: int, before: int) -> tuple[tuple[int, ...], ...]:  # noqa: ARG002
        """Tuples."""
        return reader.structs(reader.follow(at), len(self.names))

    def write(self, writer: "Writer", value: Sequence[Sequence[int]]) -> int:
        """One after the other."""
        flat = [number for item in value for number in item]
        return writer.scalars(INT.flag, INT.size, flat, len(self.names))

    def plain(self, value: Any, data: bool) -> Any:  # noqa: ARG002
        """Dicts."""
        return [dict(zip(self.names, item, strict=True)) for item in value]

    def unplain(self, value: Any, before: Any) -> Any:  # noqa: ARG002
        """Tuples."""
        return tuple(tuple(INT.unplain(item[name], None) for name in self.names) for item in value)


@dataclass(frozen=True, slots=True)
class One(_Offset):
    """A table."""

    table: TableType

    @property
    def name(self) -> str:
        """The table's."""
        return self.table.__name__

    def read(self, reader: Reader, at: int, before: int) -> Table:  # noqa: ARG002
        """Verified."""
        return reader.table(self.table, reader.follow(at))

    def write(self, writer: "Writer", value: Table) -> int:
        """The table and all in it."""
        return writer.table(value)

    def plain(self, value: Any, data: bool) -> Any:
        """A dict."""
        return to_plain(value, data)

    def unplain(self, value: Any, before: Any) -> Any:  # noqa: ARG002
        """A table."""
        return from_plain(self.table, value)


@dataclass(frozen=True, slots=True)
class Many(_Offset):
    """A vector of tables."""

    table: TableType

    @property
    def name(self) -> str:
        """As `[Layer]`."""
        return f"[{self.table.__name__}]"

    def read(self, reader: Reader, at: int, before: int) -> tuple[Table, ...]:  # noqa: ARG002
        """Verified."""
        return reader.tables(self.table, reader.follow(at))

    def write(self, writer: "Writer", value: Sequence[Table]) -> int:
        """Each, then the offsets."""
        return writer.offsets([writer.table(item) for item in value])

    def plain(self, value: Any, data: bool) -> Any:
        """A list of dicts."""
        one = One(self.table)
        return [one.plain(item, data) for item in value]

    def unplain(self, value: Any, before: Any) -> Any:  # noqa: ARG002
        """A tuple of tables."""
        one = One(self.table)
        return tuple(one.unplain(item, None) for item in value)


@dataclass(frozen=True, slots=True)
class Union(_Offset):
    """One of several tables, by the number in the slot before."""

    members: Mapping[int, TableType]

    @property
    def name(self) -> str:
        """As `A | B`."""
        return " | ".join(member.__name__ for member in self.members.values())

    def read(self, reader: Reader, at: int, before: int) -> Table | None:
        """Verified where the type is known; an unknown one is not looked at."""
        where = reader.follow(at)
        member = self.members.get(before)
        return None if member is None else reader.table(member, where)

    def write(self, writer: "Writer", value: Table) -> int:
        """The table and all in it."""
        return writer.table(value)

    def plain(self, value: Any, data: bool) -> Any:
        """A dict."""
        return to_plain(value, data)

    def unplain(self, value: Any, before: Any) -> Any:
        """A table of the type that the slot before names."""
        member = self.members.get(before)
        if member is None:
            raise ValueError(f"a union of type {before!r} cannot hold anything")
        return One(member).unplain(value, None)


def digest(value: Any) -> dict[str, Any]:
    """Size and SHA-256 of bytes."""
    return {"size": len(value), "sha256": hashlib.sha256(value).hexdigest()}


def _as_bytes(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError("bytes are wanted here, such as to_dict(data=True) gives them")
    return value


def starts(data: memoryview, base: int, table: Table, name: str) -> list[int]:
    """Where, in the file, the bytes of a field of bytes begin, or of each string in a field of strings.

    `data` is the buffer that the table was read from, which begins `base` bytes into the file.
    """
    reader = Reader(data, base)
    at = table.at - base
    vtable = at - INT32.unpack_from(data, at)[0]
    entry, kind = next((slot.entry, slot.kind) for slot in fields_of(type(table)) if slot.name == name)
    inline = UINT16.unpack_from(data, vtable + entry)[0] if entry < UINT16.unpack_from(data, vtable)[0] else 0
    if not inline:
        return []
    where = reader.follow(at + inline)
    positions = reader.elements(where) if isinstance(kind, Blobs) else [where]
    return [base + position + 4 for position in positions]
