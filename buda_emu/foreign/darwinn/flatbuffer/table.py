"""A declared table and its slots, as plain data and back: the JSON form of any of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, NamedTuple, Protocol, TypeVar


class Kind(Protocol):
    """The type of a slot."""

    @property
    def name(self) -> str:
        """As it stands in the docs."""
        ...

    def read(self, reader: Any, at: int, before: int) -> Any:
        """The value whose inline part stands at `at`. `before`: value of the slot before, for unions."""
        ...

    def write(self, writer: Any, value: Any) -> int:
        """Write what is not inline; where it went."""
        ...

    def place(self, writer: Any, slot: int, value: Any, where: int, default: Any) -> None:
        """Write the inline part into an open table."""
        ...

    def plain(self, value: Any, data: bool) -> Any:
        """As JSON has it; bytes as size and SHA-256, or as they are where `data` is set."""
        ...

    def unplain(self, value: Any, before: Any) -> Any:
        """The inverse of `plain` with data. Raises TypeError, ValueError, KeyError where it cannot be."""
        ...


@dataclass(frozen=True, slots=True)
class Table:
    """Base of every table. `at`: byte offset of the table in the file it was read from, -1 when made by hand."""

    at: int = field(default=-1, compare=False, kw_only=True, repr=False)


class Slot(NamedTuple):
    """A declared field. `entry`: its place in the vtable, in bytes."""

    name: str
    entry: int
    kind: Kind
    default: Any


@cache
def fields_of(table: type[Table]) -> tuple[Slot, ...]:
    """The slots of a table, in order."""
    declared = [item for item in fields(table) if "kind" in item.metadata]
    return tuple(Slot(f.name, 4 + 2 * number, f.metadata["kind"], f.default) for number, f in enumerate(declared))


T = TypeVar("T", bound=Table)


def to_plain(table: Table, data: bool = False) -> dict[str, Any]:
    """Every field by its name: enumerations by name, absent things as None, bytes as `data` says."""
    found: dict[str, Any] = {}
    for name, _entry, kind, _default in fields_of(type(table)):
        value = getattr(table, name)
        found[name] = None if value is None else kind.plain(value, data)
    return found


def from_plain(table: type[T], tree: Any) -> T:
    """The inverse of `to_plain(data=True)`; what is left out has its default.

    Raises ValueError, with table and field, for what does not fit.
    """
    if not isinstance(tree, Mapping):
        raise ValueError(f"{table.__name__}: a mapping of its fields is wanted, not {type(tree).__name__}")
    given: dict[str, Any] = {str(key): value for key, value in tree.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    values: dict[str, Any] = {}
    before: Any = 0
    for name, _entry, kind, default in fields_of(table):
        value = given.pop(name, None)
        if value is not None:
            try:
                value = kind.unplain(value, before)
            except (TypeError, ValueError, KeyError) as error:
                raise ValueError(f"{table.__name__}.{name}: {error}") from None
            values[name] = value
        before = default if value is None else value
    if given:
        raise ValueError(f"{table.__name__} has no field {', '.join(sorted(given))}")
    return table(**values)
