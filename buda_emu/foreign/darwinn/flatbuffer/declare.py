"""How tables are declared: one dataclass for each, one field for each slot, in slot order.

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
from buda_emu.foreign.darwinn.flatbuffer.table import Kind, Table


def _slot(kind: Kind, default: Any = None) -> Any:
    return field(default=default, metadata={"kind": kind})


def boolean() -> Any:
    """A bool; false when absent."""
    return _slot(kinds.BOOL, False)


def int8(names: Mapping[int, str] | None = None) -> Any:
    """A signed byte, an enumeration where `names` are given."""
    return _slot(kinds.Scalar("b", "byte", names), 0)


def int16(names: Mapping[int, str] | None = None) -> Any:
    """A short, an enumeration where `names` are given."""
    return _slot(kinds.Scalar("h", "short", names), 0)


def int32(default: int = 0) -> Any:
    """An int."""
    return _slot(kinds.INT, default)


def uint32() -> Any:
    """An unsigned int."""
    return _slot(kinds.UINT, 0)


def int64() -> Any:
    """A long."""
    return _slot(kinds.LONG, 0)


def uint64() -> Any:
    """An unsigned long."""
    return _slot(kinds.ULONG, 0)


def float32() -> Any:
    """A float."""
    return _slot(kinds.FLOAT, 0.0)


def text() -> Any:
    """A string."""
    return _slot(kinds.TEXT)


def data(page: int = 0) -> Any:
    """A vector of bytes, a view on the file. `page`: where one that is not empty begins a multiple of so many bytes."""
    return _slot(kinds.Data(page))


def blobs(page: int = 0) -> Any:
    """A vector of strings that hold bytes, views on the file."""
    return _slot(kinds.Blobs(page))


def numbers(scalar: kinds.Scalar) -> Any:
    """A vector of scalars, a view on the file."""
    return _slot(kinds.Numbers(scalar))


def structs(*names: str) -> Any:
    """A vector of structs of ints with these names."""
    return _slot(kinds.Structs(names))


def one(table: type[Table]) -> Any:
    """A table."""
    return _slot(kinds.One(table))


def many(table: type[Table]) -> Any:
    """A vector of tables."""
    return _slot(kinds.Many(table))


def union_type(names: Mapping[int, str]) -> Any:
    """Which table the union in the next slot holds."""
    return _slot(kinds.Scalar("B", "union type", names), 0)


def union(members: Mapping[int, type[Table]]) -> Any:
    """A union; its type stands in the slot before. Not read where the type is unknown, absent where it is 0."""
    return _slot(kinds.Union(members))
