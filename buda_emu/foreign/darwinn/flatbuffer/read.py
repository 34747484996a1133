"""The verifying reader: refuses every buffer that the C++ verifier of FlatBuffers refuses, before any of it is used
(DARWINN 2), and converts declared tables to plain data and back, the JSON form of any table.

Work is bounded for any input: bytes and numbers are views on the file, equal tables at one place are read once, and a
buffer of which the verifier would visit more than a million tables is refused like there. No declared table contains
itself, so that tables cannot nest 64 deep.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, Final, NamedTuple, Protocol, TypeVar, cast


class Kind(Protocol):
    """The type of a slot: how its values are read from a flatbuffer, written to one (`write`, then `place` while the
    table is open) and made JSON."""

    @property
    def name(self) -> str:
        """The type's name in the docs."""
        ...

    def read(self, reader: Any, at: int, before: int) -> Any:
        """Read the value whose inline part is at `at`. `before` is the value of the slot before it, which says for a
        union what it holds. Raises Malformed where the value does not verify."""
        ...

    def write(self, writer: Any, value: Any) -> int:
        """Write the part of a value that lies outside of its table, before the table is begun, and return its position
        for `place`; 0 where a value has no such part."""
        ...

    def place(self, writer: Any, slot: int, value: Any, position: int, default: Any) -> None:
        """Write the inline part of a slot into an open table: the value itself unless it is the default, or the
        offset of what `write` has put at `position`."""
        ...

    def plain(self, value: Any, data: bool) -> Any:
        """Return the value's JSON form; bytes become size and SHA-256, or stay bytes where `data` is set."""
        ...

    def unplain(self, value: Any, before: Any) -> Any:
        """Return the value for its JSON form, the inverse of `plain` with data. Raises TypeError, ValueError or
        KeyError where it does not fit."""
        ...


@dataclass(frozen=True, slots=True)
class Table:
    """Base of every table. `at` is the table's byte offset in the file it was read from, -1 for a table that was not
    read."""

    at: int = field(default=-1, compare=False, kw_only=True, repr=False)


class Slot(NamedTuple):
    """A declared field. `entry` is the byte offset of its entry in the vtable."""

    name: str
    entry: int
    kind: Kind
    default: Any


@cache
def fields_of(table: type[Table]) -> tuple[Slot, ...]:
    """Return the slots of a table in order."""
    declared = [entry for entry in fields(table) if "kind" in entry.metadata]
    return tuple(Slot(f.name, 4 + 2 * number, f.metadata["kind"], f.default) for number, f in enumerate(declared))


T = TypeVar("T", bound=Table)


def to_plain(table: Table, data: bool = False) -> dict[str, Any]:
    """Return every field by its name: enumerations by name, absent fields as None, bytes as size and SHA-256 unless
    `data` is set."""
    tree: dict[str, Any] = {}
    for name, _entry, kind, _default in fields_of(type(table)):
        value = getattr(table, name)
        tree[name] = None if value is None else kind.plain(value, data)
    return tree


def from_plain(table: type[T], tree: Any) -> T:
    """Build a table from a mapping of its fields, the inverse of `to_plain(data=True)`; an absent field has its
    default.

    Raises ValueError, with table and field, for a value that does not fit.
    """
    if not isinstance(tree, Mapping):
        raise ValueError(f"{table.__name__}: a mapping of its fields is wanted, not {type(tree).__name__}")
    remaining: dict[str, Any] = {str(key): value for key, value in tree.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    values: dict[str, Any] = {}
    before: Any = 0
    for name, _entry, kind, default in fields_of(table):
        value = remaining.pop(name, None)
        if value is not None:
            try:
                value = kind.unplain(value, before)
            except (TypeError, ValueError, KeyError) as error:
                raise ValueError(f"{table.__name__}.{name}: {error}") from None
            values[name] = value
        before = default if value is None else value
    if remaining:
        raise ValueError(f"{table.__name__} has no field {', '.join(sorted(remaining))}")
    return table(**values)


_UINT32: Final = struct.Struct("<I")
INT32: Final = struct.Struct("<i")
UINT16: Final = struct.Struct("<H")
_MOST_TABLES: Final = 1_000_000  # the verifier's default
_LONGEST: Final = (1 << 31) - 1  # offsets of flatbuffers are 32 bits, and the verifier takes no larger ones
_SPARE_TEXT: Final = 1 << 16  # bytes that are allowed to strings beyond twice the file; longer vectors count as tables


class Malformed(Exception):  # noqa: N818 - says what the bytes are
    """An error for bytes that do not verify. `offset` is the place in the file, `path` the table and field, innermost
    first."""

    def __init__(self, problem: str, offset: int) -> None:
        super().__init__(problem)
        self.problem = problem
        self.offset = offset
        self.path: list[str] = []

    def __str__(self) -> str:
        path = "".join(reversed(self.path)).lstrip(".")
        if path:
            return f"{path}: {self.problem}"
        return self.problem


def read(table: type[T], data: memoryview, base: int = 0) -> T:
    """Read and verify the root table of a buffer that begins `base` bytes into the file. Raises Malformed where it does
    not verify."""
    reader = Reader(data, base)
    return cast(T, reader.table(table, reader.follow(0)))


class Reader:
    """A reader of one buffer. Positions are relative to the buffer; offsets in errors and in tables are relative to
    the file."""

    __slots__ = ("_tables", "_text", "_visits", "base", "data", "size")

    def __init__(self, data: memoryview, base: int) -> None:
        self.data = data
        self.size = len(data)
        self.base = base
        self._visits = 0
        self._text = 2 * len(data) + _SPARE_TEXT
        # values by kind and position, each with the number of tables that the verifier visits for it
        self._tables: dict[tuple[object, int], tuple[Any, int]] = {}

    def inside(self, at: int, size: int, aligned: int, label: str) -> None:
        """Raise Malformed unless `size` bytes at `at` are in the buffer and `at` is a multiple of `aligned`."""
        if at < 0 or size >= self.size or at > self.size - size:
            raise Malformed(f"{label} of {size} bytes at {at} of {self.size}", self.base + min(max(at, 0), self.size))
        if at % aligned:
            raise Malformed(f"{label} at {at} is not at a multiple of {aligned}", self.base + at)

    def follow(self, at: int) -> int:
        """Return the position that the offset at `at` points to. Raises Malformed where it leads out of the buffer."""
        self.inside(at, 4, 4, "offset")
        offset = _UINT32.unpack_from(self.data, at)[0]
        if not 0 < offset <= _LONGEST or at + offset >= self.size:
            raise Malformed(f"offset {offset} at {at} leads out of the {self.size} bytes", self.base + at)
        return at + offset

    def table(self, table: type[Table], at: int) -> Any:
        """Read and verify the table of the class `table` at `at`, or return the one that was read there before. Raises
        Malformed where it does not verify."""
        cached = self._tables.get((table, at))
        if cached is not None:
            self._visit(cached[1], at)
            return cached[0]
        before = self._visits
        self._visit(1, at)
        vtable, length = self._vtable(at)
        values: dict[str, Any] = {}
        last = 0
        for name, entry, kind, _default in fields_of(table):
            value = None
            inline = 0
            if entry + 2 <= length:
                inline = UINT16.unpack_from(self.data, vtable + entry)[0]
            if inline:
                try:
                    value = values[name] = kind.read(self, at + inline, last)
                except Malformed as error:
                    error.path.append(f".{name}")
                    raise
            last = value or 0
        record = table(at=self.base + at, **values)
        self._tables[table, at] = (record, self._visits - before)
        return record

    def _vtable(self, at: int) -> tuple[int, int]:
        """Return position and length of the vtable of the table at `at`. Raises Malformed where it does not verify."""
        self.inside(at, 4, 4, "table")
        vtable = at - INT32.unpack_from(self.data, at)[0]
        self.inside(vtable, 2, 2, "vtable")
        length = UINT16.unpack_from(self.data, vtable)[0]
        if length % 2:
            raise Malformed(f"vtable of odd length {length}", self.base + vtable)
        self.inside(vtable, length, 2, "vtable")
        return vtable, length

    def tables(self, table: type[Table], at: int) -> tuple[Any, ...]:
        """Read and verify the vector of tables at `at`, or return the one that was read there before. Raises Malformed
        where one does not verify."""
        cached = self._tables.get((("vector", table), at))
        if cached is not None:
            self._visit(cached[1], at)
            return cached[0]
        before = self._visits
        items: list[Any] = []
        for number, position in enumerate(self.elements(at)):
            try:
                items.append(self.table(table, position))
            except Malformed as error:
                error.path.append(f"[{number}]")
                raise
        value = tuple(items)
        self._tables[("vector", table), at] = (value, self._visits - before)
        return value

    def elements(self, at: int) -> list[int]:
        """Return the positions that the elements of a vector of offsets point to. They are not checked here. Raises
        Malformed for a vector that leads out of the buffer or is too long."""
        view = self.vector(at, 4)
        count = len(view) // 4
        if count > _MOST_TABLES:
            raise Malformed(f"a vector of {count} tables", self.base + at)
        return [at + 4 + 4 * i + offset for i, offset in enumerate(struct.unpack(f"<{count}I", view))]

    def vector(self, at: int, size: int) -> memoryview:
        """Return the bytes of the elements, of `size` bytes each, of the vector at `at`. Raises Malformed where they
        lead out of the buffer."""
        count = self._length(at, size)
        return self.data[at + 4 : at + 4 + count * size]

    def structs(self, at: int, width: int) -> tuple[tuple[int, ...], ...]:
        """Read the vector of structs of `width` signed 32-bit ints at `at`. Raises Malformed for one beyond the
        file."""
        cached = self._tables.get((width, at))
        if cached is None:
            view = self.vector(at, 4 * width)
            # A large vector makes as many tuples as it is long. Each counts like a table, so that vectors that
            # overlap cannot use up the memory.
            if len(view) >= _SPARE_TEXT:
                self._visit(len(view) // (4 * width), at)
            cached = (tuple(struct.iter_unpack(f"<{width}i", view)), 0)
            self._tables[width, at] = cached
        return cached[0]

    def text(self, at: int) -> str:
        """Return the string at `at`. Raises Malformed where it leads out of the buffer, and for strings that overlap so
        often that they hold more than twice the file."""
        cached = self._tables.get((str, at))
        if cached is None:
            view = self._string(at)
            self._text -= len(view)
            if self._text < 0:
                raise Malformed("strings that overlap hold more than twice the file; not read", self.base + at)
            cached = (bytes(view).decode("utf-8", "surrogateescape"), 0)
            self._tables[str, at] = cached
        return cached[0]

    def blobs(self, at: int) -> tuple[memoryview, ...]:
        """Return views on the bytes of the strings of the vector at `at`. Raises Malformed where one leads out of the
        buffer."""
        items: list[memoryview] = []
        views: dict[int, memoryview] = {}
        for number, position in enumerate(self.elements(at)):
            try:
                view = views.get(position)
                if view is None:
                    view = views[position] = self._string(position)
                items.append(view)
            except Malformed as error:
                error.path.append(f"[{number}]")
                raise
        return tuple(items)

    def _string(self, at: int) -> memoryview:
        """Return a view on the bytes of the string at `at`, without its NUL. Raises Malformed where it leads out of
        the buffer or has no NUL."""
        count = self._length(at, 1)
        end = at + 4 + count
        self.inside(end, 1, 1, "the NUL of a string")
        if self.data[end]:
            raise Malformed("a string without its NUL", self.base + end)
        return self.data[at + 4 : end]

    def _length(self, at: int, size: int) -> int:
        """Return the number of elements, of `size` bytes each, of the vector at `at`. Raises Malformed where they
        lead out of the buffer."""
        self.inside(at, 4, 4, "length of a vector")
        count = _UINT32.unpack_from(self.data, at)[0]
        if count * size > _LONGEST:
            raise Malformed(f"a vector of {count} elements", self.base + at)
        self.inside(at, 4 + count * size, 1, "vector")
        return count

    def _visit(self, tables: int, at: int) -> None:
        """Count `tables` more visited tables, as the verifier of the FlatBuffers library does, which visits a table
        again for every reference to it. Raises Malformed, with the place `at`, beyond _MOST_TABLES."""
        self._visits += tables
        if self._visits > _MOST_TABLES:
            raise Malformed(f"more than {_MOST_TABLES:,} tables", self.base + at)
