"""Tables as plain data, and back: the JSON form of any declared table."""

from collections.abc import Mapping
from typing import Any, TypeVar

from buda_emu.darwinn.flatbuffer.declare import Table, fields_of

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
