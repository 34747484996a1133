"""Declared tables and their slots, converted to plain data and back: the JSON form of any table."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, NamedTuple, Protocol, TypeVar


class Kind(Protocol):
    """The type of a slot."""

    @property
    def name(self) -> str:
        """The type's name in the docs."""
        ...

    def read(self, reader: Any, at: int, before: int) -> Any:
        """Read the value whose inline part is at `at`. `before` is the value of the slot before it, for unions."""
        ...

    def write(self, writer: Any, value: Any) -> int:
        """Write the part of a value that is not inline and return its position."""
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
