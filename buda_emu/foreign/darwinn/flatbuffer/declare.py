"""Declarations of tables: one dataclass for each table, one field for each slot, in slot order.

    @dataclass(frozen=True, slots=True)
    class NumericsConstants(Table):
        zero_point: int = int32()
        dequantization_factor: float = float32()

A union takes two fields, as it takes two slots: `union_type`, then `union`.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from buda_emu.foreign.darwinn.flatbuffer import kinds
from buda_emu.foreign.darwinn.flatbuffer.read import Kind, Table


def _slot(kind: Kind, default: Any = None) -> Any:
    """Return the dataclass field of a slot that holds a value of `kind`, or `default` where the slot is absent."""
    return field(default=default, metadata={"kind": kind})


def boolean() -> Any:
    """Declare a slot that holds a bool, false when absent."""
    return _slot(kinds.BOOL, False)


def int8(names: Mapping[int, str] | None = None) -> Any:
    """Declare a slot that holds a signed byte, an enumeration where `names` are given."""
    return _slot(kinds.Scalar("b", "byte", names), 0)


def int16(names: Mapping[int, str] | None = None) -> Any:
    """Declare a slot that holds a short, an enumeration where `names` are given."""
    return _slot(kinds.Scalar("h", "short", names), 0)


def int32(default: int = 0) -> Any:
    """Declare a slot that holds an int of 32 bits."""
    return _slot(kinds.INT, default)


def uint32() -> Any:
    """Declare a slot that holds an unsigned int of 32 bits."""
    return _slot(kinds.UINT, 0)


def int64() -> Any:
    """Declare a slot that holds an int of 64 bits."""
    return _slot(kinds.LONG, 0)


def uint64() -> Any:
    """Declare a slot that holds an unsigned int of 64 bits."""
    return _slot(kinds.ULONG, 0)


def float32() -> Any:
    """Declare a slot that holds a float of 32 bits."""
    return _slot(kinds.FLOAT, 0.0)


def text() -> Any:
    """Declare a slot that holds a string."""
    return _slot(kinds.TEXT)


def data(page: int = 0) -> Any:
    """Declare a slot that holds a vector of bytes, read as a view on the file. A vector that is not empty begins at a
    multiple of `page` bytes, where that is set."""
    return _slot(kinds.Data(page))


def blobs(page: int = 0) -> Any:
    """Declare a slot that holds a vector of strings of bytes, read as views on the file, each aligned to `page`."""
    return _slot(kinds.Blobs(page))


def numbers(scalar: kinds.Scalar) -> Any:
    """Declare a slot that holds a vector of scalars, read as a view on the file."""
    return _slot(kinds.Numbers(scalar))


def structs(*names: str) -> Any:
    """Declare a slot that holds a vector of structs whose fields are ints with these names."""
    return _slot(kinds.Structs(names))


def one(table: type[Table]) -> Any:
    """Declare a slot that holds a table."""
    return _slot(kinds.One(table))


def many(table: type[Table]) -> Any:
    """Declare a slot that holds a vector of tables."""
    return _slot(kinds.Many(table))


def union_type(names: Mapping[int, str]) -> Any:
    """Declare the slot before a union; its number says which table the union holds."""
    return _slot(kinds.Scalar("B", "union type", names), 0)


def union(members: Mapping[int, type[Table]]) -> Any:
    """Declare a slot that holds a union, whose type is in the slot before. A union of an unknown type is not read; one
    of type 0 is absent."""
    return _slot(kinds.Union(members))
