"""A small bounded reader of FlexBuffer maps (DARWINN 1), for the custom options of an operator.

Values are looked up by key and read one level deep; a map costs nothing but what is asked of it. Nothing outside of the
bytes is touched.
"""

import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

NULL = 0
INT = 1
UINT = 2
STRING = 5
MAP = 9
VECTOR = 10
INT_VECTOR = 11
_FORMATS: Final = {
    1: (struct.Struct("<b"), struct.Struct("<B")),
    2: (struct.Struct("<h"), struct.Struct("<H")),
    4: (struct.Struct("<i"), struct.Struct("<I")),
    8: (struct.Struct("<q"), struct.Struct("<Q")),
}


class Cut(ValueError):  # noqa: N818 - says what the bytes are
    """The bytes lead out of themselves."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value: its type's number, where it stands, and the width of its inline part and of what it points to."""

    data: memoryview
    type: int
    at: int
    width: int
    inner: int

    def _bytes(self, at: int, size: int) -> memoryview:
        if at < 0 or size < 0 or at + size > len(self.data):
            raise Cut(f"{size} bytes at {at} of {len(self.data)}")
        return self.data[at : at + size]

    def _number(self, at: int, width: int, signed: bool = False) -> int:
        formats = _FORMATS.get(width)
        if formats is None:
            raise Cut(f"a number of {width} bytes")
        return formats[0 if signed else 1].unpack(self._bytes(at, width))[0]

    def _target(self) -> int:
        """Where the inline offset leads: it is subtracted from its own position."""
        where = self.at - self._number(self.at, self.width)
        if where < 0:
            raise Cut(f"an offset at {self.at} leads out of the bytes")
        return where

    def integer(self) -> int | None:
        """An integer; None for any other type."""
        if self.type not in (INT, UINT):
            return None
        return self._number(self.at, self.width, signed=self.type == INT)

    def string(self) -> tuple[int, memoryview] | None:
        """Where a string begins, and its bytes; None for any other type."""
        if self.type != STRING:
            return None
        at = self._target()
        return at, self._bytes(at, self._number(at - self.inner, self.inner))

    def _count(self, at: int) -> int:
        """Elements of the vector at `at`, which are there."""
        count = self._number(at - self.inner, self.inner)
        self._bytes(at, count * self.inner)
        return count

    def _item(self, at: int, count: int, number: int) -> "Value":
        """An element of an untyped vector: the types stand after the values."""
        packed = self._number(at + count * self.inner + number, 1)
        return Value(
            data=self.data, type=packed >> 2, at=at + number * self.inner, width=self.inner, inner=1 << (packed & 3)
        )

    def items(self) -> "Iterator[Value] | None":
        """The values of a vector, one at a time; None for any other type."""
        if self.type not in (VECTOR, INT_VECTOR):
            return None
        at = self._target()
        count = self._count(at)
        if self.type == VECTOR:
            self._bytes(at + count * self.inner, count)
            return (self._item(at, count, number) for number in range(count))
        return (
            Value(data=self.data, type=INT, at=at + number * self.inner, width=self.inner, inner=0)
            for number in range(count)
        )

    def lookup(self, keys: Collection[bytes]) -> "dict[bytes, Value] | None":
        """The values of a map that have these keys; None for any other type."""
        if self.type != MAP:
            return None
        at = self._target()
        width = self.inner
        key_width = self._number(at - 2 * width, width)
        offset_at = at - 3 * width
        keys_at = offset_at - self._number(offset_at, width)
        count = self._count(at)
        longest = max(map(len, keys), default=0) + 1
        found: dict[bytes, Value] = {}
        for number in range(count):
            key_at = keys_at + number * key_width
            start = key_at - self._number(key_at, key_width)
            key, nul, _ = bytes(self._bytes(start, min(longest, len(self.data) - start))).partition(b"\0")
            if nul and key in keys:
                found.setdefault(key, self._item(at, count, number))
        return found


def root(data: memoryview) -> Value:
    """The root value. Raises Cut."""
    if len(data) < 3:
        raise Cut(f"{len(data)} bytes")
    width = data[-1]
    packed = data[-2]
    if width not in _FORMATS or len(data) < 2 + width:
        raise Cut(f"a root of {width} bytes")
    return Value(data=data, type=packed >> 2, at=len(data) - 2 - width, width=width, inner=1 << (packed & 3))


Plain: TypeAlias = "int | bytes | Sequence[int] | None"


def write_map(values: Mapping[str, Plain]) -> bytes:
    """A map of integers, strings of bytes and vectors of integers, every number of 8 bytes; keys are sorted."""
    width = 8
    log = 3
    out = bytearray()

    def number(value: int) -> bytes:
        return value.to_bytes(width, "little", signed=value < 0)

    def place(before: bytes, data: bytes) -> int:
        out.extend(bytes(-len(out) % width) + before)
        out.extend(data)
        return len(out) - len(data)

    names = sorted(values)
    keys = [place(b"", name.encode() + b"\0") for name in names]
    at: dict[str, int] = {}
    for name in names:
        value = values[name]
        if isinstance(value, bytes):
            at[name] = place(number(len(value)), value + b"\0")
        elif value is not None and not isinstance(value, int):
            types = bytes([INT << 2 | log]) * len(value)
            at[name] = place(number(len(value)), b"".join(map(number, value)) + types)
    key_vector = place(number(len(names)), b"")
    for where in keys:
        out.extend(number(len(out) - where))
    place(number(len(out) - key_vector) + number(width) + number(len(names)), b"")
    vector = len(out)
    types = bytearray()
    for name in names:
        value = values[name]
        out.extend(number(len(out) - at[name] if name in at else int(value) if isinstance(value, int) else 0))
        kind = STRING if isinstance(value, bytes) else VECTOR if name in at else NULL if value is None else INT
        types.append(kind << 2 | log)
    out.extend(types)
    out.extend(bytes(-len(out) % width))
    out.extend(number(len(out) - vector) + bytes([MAP << 2 | log, width]))
    return bytes(out)
