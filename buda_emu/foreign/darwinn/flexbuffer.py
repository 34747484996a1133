"""A small bounded reader of FlexBuffer maps (DARWINN 1), for the custom options of an operator.

Values are looked up by key and read one level deep; only the entries of a map that are asked for are read. No byte
outside of the buffer is touched.
"""

import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

# Types of values, by the numbers of FlexBuffers.
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


class TruncatedError(ValueError):
    """An error for an offset or a length that leads out of the bytes."""


@dataclass(frozen=True, slots=True)
class FlexValue:
    """A value: the number of its type, its position, the width of its inline part, and the width (`inner`) of the data
    that it points to."""

    data: memoryview
    type: int
    at: int
    width: int
    inner: int

    def _bytes(self, at: int, size: int) -> memoryview:
        """Return a view on `size` bytes at `at`. Raises TruncatedError where they lead out of the buffer."""
        if at < 0 or size < 0 or at + size > len(self.data):
            raise TruncatedError(f"{size} bytes at {at} of {len(self.data)}")
        return self.data[at : at + size]

    def _number(self, at: int, width: int, signed: bool = False) -> int:
        """Read the integer of `width` bytes at `at`. Raises TruncatedError where it leads out of the buffer or has
        no width of a number."""
        formats = _FORMATS.get(width)
        if formats is None:
            raise TruncatedError(f"a number of {width} bytes")
        return formats[0 if signed else 1].unpack(self._bytes(at, width))[0]

    def _target(self) -> int:
        """Return the position that the inline offset leads to: the offset is subtracted from its own position.
        Raises TruncatedError where it leads out of the buffer."""
        position = self.at - self._number(self.at, self.width)
        if position < 0:
            raise TruncatedError(f"an offset at {self.at} leads out of the bytes")
        return position

    def integer(self) -> int | None:
        """Return the value of an integer; None for any other type."""
        if self.type not in (INT, UINT):
            return None
        return self._number(self.at, self.width, signed=self.type == INT)

    def string(self) -> tuple[int, memoryview] | None:
        """Return position and bytes of a string; None for any other type."""
        if self.type != STRING:
            return None
        at = self._target()
        return at, self._bytes(at, self._number(at - self.inner, self.inner))

    def _count(self, at: int) -> int:
        """Return the number of elements of the vector at `at`. Raises TruncatedError where it is longer than the
        bytes."""
        count = self._number(at - self.inner, self.inner)
        self._bytes(at, count * self.inner)
        return count

    def _item(self, at: int, count: int, number: int) -> "FlexValue":
        """Return element `number` of the untyped vector of `count` elements at `at`, whose types are stored after
        the values."""
        packed = self._number(at + count * self.inner + number, 1)
        return FlexValue(
            data=self.data, type=packed >> 2, at=at + number * self.inner, width=self.inner, inner=1 << (packed & 3)
        )

    def items(self) -> "Iterator[FlexValue] | None":
        """Return an iterator over the values of a vector; None for any other type."""
        if self.type not in (VECTOR, INT_VECTOR):
            return None
        at = self._target()
        count = self._count(at)
        if self.type == VECTOR:
            self._bytes(at + count * self.inner, count)
            return (self._item(at, count, number) for number in range(count))
        return (
            FlexValue(data=self.data, type=INT, at=at + number * self.inner, width=self.inner, inner=0)
            for number in range(count)
        )

    def lookup(self, keys: Collection[bytes]) -> "dict[bytes, FlexValue] | None":
        """Return the values of a map that have these keys; None for any other type. The first of equal keys counts."""
        if self.type != MAP:
            return None
        at = self._target()
        width = self.inner
        key_width = self._number(at - 2 * width, width)
        offset_at = at - 3 * width
        keys_at = offset_at - self._number(offset_at, width)
        count = self._count(at)
        longest = max(map(len, keys), default=0) + 1
        values: dict[bytes, FlexValue] = {}
        for number in range(count):
            key_at = keys_at + number * key_width
            start = key_at - self._number(key_at, key_width)
            key, nul, _ = bytes(self._bytes(start, min(longest, len(self.data) - start))).partition(b"\0")
            if nul and key in keys:
                values.setdefault(key, self._item(at, count, number))
        return values


def root(data: memoryview) -> FlexValue:
    """Return the root value of a buffer. Raises TruncatedError where the bytes hold none."""
    if len(data) < 3:
        raise TruncatedError(f"{len(data)} bytes")
    width = data[-1]
    packed = data[-2]
    if width not in _FORMATS or len(data) < 2 + width:
        raise TruncatedError(f"a root of {width} bytes")
    return FlexValue(data=data, type=packed >> 2, at=len(data) - 2 - width, width=width, inner=1 << (packed & 3))


Plain: TypeAlias = "int | bytes | Sequence[int] | None"
_WIDTH: Final = 8  # bytes of a number that is written


def write_map(values: Mapping[str, Plain]) -> bytes:
    """Write a map of integers, strings of bytes and vectors of integers. Numbers take 8 bytes; keys are sorted."""
    out = bytearray()

    def place(before: bytes, data: bytes) -> int:
        """Append `before` at a multiple of 8 bytes, and `data` behind it; return the position of `data`."""
        out.extend(bytes(-len(out) % _WIDTH) + before)
        out.extend(data)
        return len(out) - len(data)

    names = sorted(values)
    keys = [place(b"", name.encode() + b"\0") for name in names]
    positions: dict[str, int] = {}
    for name in names:
        value = values[name]
        if isinstance(value, bytes):
            positions[name] = place(_encode(len(value)), value + b"\0")
        elif value is not None and not isinstance(value, int):
            types = bytes([_pack_type(INT)]) * len(value)
            positions[name] = place(_encode(len(value)), b"".join(map(_encode, value)) + types)
    key_vector = place(_encode(len(names)), b"")
    for key in keys:
        out.extend(_encode(len(out) - key))
    place(_encode(len(out) - key_vector) + _encode(_WIDTH) + _encode(len(names)), b"")
    vector = len(out)
    for name in names:
        value = values[name]
        if name in positions:
            out.extend(_encode(len(out) - positions[name]))
        else:
            out.extend(_encode(int(value) if isinstance(value, int) else 0))
    out.extend(_pack_type(_type_of(values[name])) for name in names)
    out.extend(bytes(-len(out) % _WIDTH))
    out.extend(_encode(len(out) - vector) + bytes([_pack_type(MAP), _WIDTH]))
    return bytes(out)


def _encode(value: int) -> bytes:
    """Return an integer as 8 bytes, lowest first; a negative one as its two's complement."""
    return value.to_bytes(_WIDTH, "little", signed=value < 0)


def _pack_type(kind: int) -> int:
    """Return the byte that a FlexBuffer stores for a type: its number, and that its values are 8 bytes wide."""
    return kind << 2 | _WIDTH.bit_length() - 1


def _type_of(value: Plain) -> int:
    """Return the number of the FlexBuffer type that a value is written as."""
    if value is None:
        return NULL
    if isinstance(value, bytes):
        return STRING
    return INT if isinstance(value, int) else VECTOR
