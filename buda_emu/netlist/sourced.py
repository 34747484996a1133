"""Base class of the objects that have a place in a netlist: frozen data of many fields that is made and copied
quickly.

Every object has `source`, the YAML map it was read from, and `name_node`, the scalar that names it; `at("field")`
gives the place of a field for a diagnostic. Objects made by expansion (NETLIST 1.7) share the source of their
original.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

from buda_emu.netlist import nodes
from buda_emu.netlist.nodes import Mark

NO_MARK = Mark(1, 1, 2)
T = TypeVar("T")
SourcedT = TypeVar("SourcedT", bound="Sourced")


@dataclass_transform(frozen_default=True, kw_only_default=True, eq_default=False, field_specifiers=(field,))
def sourced_dataclass(kind: type[T]) -> type[T]:
    """Make a frozen dataclass with slots whose methods all come from Sourced.

    Generating the methods for every class would take a tenth of the time in which a netlist is checked.
    """
    return dataclasses.dataclass(slots=True, kw_only=True, init=False, eq=False, repr=False)(kind)


@sourced_dataclass
class Sourced:
    """Base of all records that are read from a place in the file."""

    source: nodes.Node | None = field(default=None, compare=False, repr=False)
    name_node: nodes.Scalar | None = field(default=None, compare=False, repr=False)
    # Reading found an error in it: its values are not to be relied on and nothing else is reported for its sake.
    broken: bool = field(default=False, compare=False, repr=False)

    if not TYPE_CHECKING:  # type checkers derive the signature from the fields

        def __init__(self, **values: Any) -> None:
            for name, put, default in _init_fields(type(self)):
                value = values.pop(name) if name in values else default
                if value is MISSING:
                    raise TypeError(f"{type(self).__name__} needs {name}")
                put(self, value)
            if values:
                raise TypeError(f"{type(self).__name__} has no {', '.join(values)}")

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __getstate__(self) -> list[Any]:
        return [get(self) for _, get, _ in _slots(type(self))]

    def __setstate__(self, state: list[Any]) -> None:
        for (_, _, put), value in zip(_slots(type(self)), state, strict=True):
            put(self, value)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in _comparison_fields(type(self)))

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, name) for name in _comparison_fields(type(self))))

    def __repr__(self) -> str:
        shown = ((entry.name, getattr(self, entry.name), entry.default) for entry in fields(self) if entry.repr)
        changed = ", ".join(f"{name}={value!r}" for name, value, default in shown if value != default)
        return f"{type(self).__name__}({changed})"

    def at(self, *keys: str) -> Mark:
        """Return the place in the text of the value under the first of `keys` that was written, else of the
        object's name, else of its map.
        """
        if isinstance(self.source, nodes.Mapping):
            for key in keys:
                value = self.source.find(key)
                if value is not None:
                    return value.mark
        if self.name_node is not None:
            return self.name_node.mark
        if self.source is not None:
            return self.source.mark
        return NO_MARK


def evolve(original: SourcedT, **changes: Any) -> SourcedT:
    """Return a copy with other values in some fields: `dataclasses.replace`, but faster for objects of many fields.
    Raises TypeError for a name that is no field."""
    copy = object.__new__(type(original))
    for name, get, put in _slots(type(original)):
        put(copy, changes.pop(name) if name in changes else get(original))
    if changes:
        raise TypeError(f"{type(original).__name__} has no {', '.join(changes)}")
    return copy


@cache
def _slots(kind: type[Sourced]) -> tuple[tuple[str, Callable[[Any], Any], Callable[[Any, Any], None]], ...]:
    """Return name, getter and setter of each field. These are the slots' own, which do not enforce `frozen`."""
    slots = ((entry.name, getattr(kind, entry.name)) for entry in fields(kind))
    return tuple((name, slot.__get__, slot.__set__) for name, slot in slots)


@cache
def _init_fields(kind: type[Sourced]) -> tuple[tuple[str, Callable[[Any, Any], None], Any], ...]:
    """Return name, setter and default of each field; the default is MISSING for a required one."""
    return tuple((entry.name, getattr(kind, entry.name).__set__, entry.default) for entry in fields(kind))


@cache
def _comparison_fields(kind: type[Sourced]) -> tuple[str, ...]:
    """Return the names of the fields that count when two records are compared."""
    return tuple(entry.name for entry in fields(kind) if entry.compare)
