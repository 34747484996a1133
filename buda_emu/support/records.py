"""A `dataclass` like that of the standard library whose methods are compiled when they are first used.

The standard one writes and compiles six functions for every class when its module is imported, which is ten times the
work of all the rest: for a hundred classes a fifth of what a small run takes. Here only `__init__` is compiled, once
there are more than a few objects of the class; the other methods are common to all classes. `fields`, `replace`,
`asdict`, `match`, pickles and `FrozenInstanceError` are the library's, and `repr`, equality and hashes agree with it. A
subclass of such a class must be made here, too: to the library its base is not frozen.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

_FEW = 8  # objects that are cheaper to fill one by one than an `__init__` is to compile

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(
        kind: type[Any] | None = None,
        /,
        *,
        frozen: bool = False,
        slots: bool = False,
        eq: bool = True,
        repr: bool = True,  # noqa: A002 - as in the library
        kw_only: bool = False,
        weakref_slot: bool = False,
    ) -> Any:
        """Make a class a record like `dataclasses.dataclass`, with those of its options that this package uses."""

        def decorate(kind: type[Any]) -> type[Any]:
            """Make a record of the class with the options of the call."""
            return _build_record(kind, frozen, slots, eq, repr, kw_only, weakref_slot)

        if kind is None:
            return decorate
        return decorate(kind)


def _build_record(
    kind: type[Any], frozen: bool, slots: bool, eq: bool, has_repr: bool, kw_only: bool, weakref_slot: bool
) -> Any:
    """Return the class with its fields and methods; `__init__` is compiled with the ninth object."""
    namespace: dict[str, Any] = dict(kind.__dict__)
    kind.__doc__ = kind.__doc__ or kind.__name__  # else the library works out a signature for it
    record: Any = dataclasses.dataclass(
        init=False, repr=False, eq=False, slots=slots, kw_only=kw_only, weakref_slot=weakref_slot
    )(kind)
    if frozen:
        _freeze(record, namespace, slots)
    if has_repr and "__repr__" not in namespace:
        record.__repr__ = _repr
    if eq:
        _add_equality(record, namespace, frozen)

    objects_left = [_FEW]

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        objects_left[0] -= 1
        if objects_left[0] < 0 or not _fill_fields(record, self, args, kwargs):
            record.__init__ = compiled = _compile_init(record, frozen)
            compiled(self, *args, **kwargs)

    record.__init__ = __init__
    return record


def _freeze(record: Any, namespace: dict[str, Any], slots: bool) -> None:
    """Make objects of the class `record` immutable; `namespace` holds what the class itself defines. Raises
    TypeError for a class with methods that set or delete attributes."""
    if "__setattr__" in namespace or "__delattr__" in namespace:
        raise TypeError(f"{record.__name__} is frozen and has methods that change it")
    record.__setattr__ = _no_assignment
    record.__delattr__ = _no_deletion
    if slots and "__getstate__" not in namespace:
        record.__getstate__ = _state
        record.__setstate__ = _put_state


def _add_equality(record: Any, namespace: dict[str, Any], frozen: bool) -> None:
    """Add `__eq__` and `__hash__` to the class `record` by the library's rules: a class that is not frozen has no
    hash. `namespace` holds what the class itself defines."""
    if "__eq__" not in namespace:
        record.__eq__ = _equal
    if "__hash__" not in namespace or ("__eq__" in namespace and namespace["__hash__"] is None):
        record.__hash__ = _hash if frozen else None


def _fill_fields(kind: Any, record: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Fill a new object as its `__init__` would, without compiling one. Return False, with nothing called or set, for
    arguments that do not fit."""
    fields = dataclasses.fields(kind)
    names = [field.name for field in fields if field.init and not field.kw_only]
    arguments = dict(zip(names, args, strict=False))
    if len(args) > len(names) or not arguments.keys().isdisjoint(kwargs):
        return False
    arguments.update(kwargs)
    values = _choose_values(fields, arguments)
    if values is None:
        return False
    put = object.__setattr__ if kind.__setattr__ is _no_assignment else setattr
    for name, value in values:
        put(record, name, value)
    if hasattr(kind, "__post_init__"):
        record.__post_init__()
    return True


def _choose_values(fields: tuple[Any, ...], arguments: dict[str, Any]) -> list[tuple[str, Any]] | None:
    """Return name and value of each field that gets one: its argument or its default. Default factories are called
    last. Return None for an argument without a field, and for a field without a value."""
    values: list[tuple[str, Any]] = []
    factories: list[int] = []
    for field in fields:
        name = field.name
        if field.init and name in arguments:
            value = arguments.pop(name)
        elif field.default is not MISSING:
            value = field.default
        elif field.default_factory is not MISSING:
            value = field.default_factory
            factories.append(len(values))
        elif field.init:
            return None
        else:
            continue
        values.append((name, value))
    if arguments:
        return None
    for number in factories:
        name, make = values[number]
        values[number] = name, make()
    return values


def _compile_init(kind: Any, frozen: bool) -> Callable[..., None]:
    """Return the `__init__` that the standard library would write: a function with a parameter for each field."""
    namespace: dict[str, Any] = {"object_set": object.__setattr__}
    positional: list[str] = []
    keywords: list[str] = []
    lines: list[str] = []
    for field in dataclasses.fields(kind):
        parameter, expression = _parameter_and_value(field, namespace)
        if field.init and field.kw_only:
            keywords.append(parameter)
        elif field.init:
            positional.append(parameter)
        if expression:
            lines.append(_assignment(kind, field.name, expression, frozen, namespace))
    if hasattr(kind, "__post_init__"):
        lines.append("self.__post_init__()")
    if keywords:
        keywords.insert(0, "*")
    parameters = ", ".join(["self", *positional, *keywords])
    namespace["MISSING"] = MISSING
    exec(f"def __init__({parameters}):\n " + "\n ".join(lines or ["pass"]), namespace)
    function = namespace["__init__"]
    function.__qualname__ = f"{kind.__qualname__}.__init__"
    function.__module__ = kind.__module__
    return function


def _parameter_and_value(field: Any, namespace: dict[str, Any]) -> tuple[str, str]:
    """Return two texts for a generated `__init__`: the parameter of a field with its default, and the expression that
    is assigned to the field, "" for a field that is no parameter and has no default. Defaults and factories are entered
    in `namespace`, where the texts find them."""
    name = field.name
    if field.default is not MISSING:
        default = f"default_{name}"
        namespace[default] = field.default
        expression = name if field.init else default
    elif field.default_factory is not MISSING:
        default = "MISSING"
        namespace[f"make_{name}"] = field.default_factory
        expression = f"make_{name}()"
        if field.init:
            expression = f"make_{name}() if {name} is MISSING else {name}"
    else:
        return name, name if field.init else ""
    return f"{name}={default}", expression


def _assignment(kind: Any, name: str, expression: str, frozen: bool, namespace: dict[str, Any]) -> str:
    """Return the statement of an `__init__` that sets a field to the value of an expression. For a frozen class it
    goes past `_no_assignment`, by a function that is entered in the namespace."""
    if not frozen:
        return f"self.{name} = {expression}"
    slot = getattr(kind, name, None)
    if isinstance(slot, MemberDescriptorType):
        namespace[f"set_{name}"] = slot.__set__
        return f"set_{name}(self, {expression})"
    return f"object_set(self, {name!r}, {expression})"


# ------------------------------------------------------------------------------------------------------ common methods
@cache
def _comparison_getter(kind: Any) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that gives the compared fields of an object as a tuple."""
    return _tuple_getter([field.name for field in dataclasses.fields(kind) if field.compare])


@cache
def _hash_getter(kind: Any) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that gives the hashed fields of an object as a tuple."""
    names: list[str] = []
    for field in dataclasses.fields(kind):
        is_hashed = field.compare if field.hash is None else field.hash
        if is_hashed:
            names.append(field.name)
    return _tuple_getter(names)


def _tuple_getter(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that gives the fields of these names as a tuple, also where there are fewer than two."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda record: tuple(getattr(record, name) for name in names)


def _equal(self: Any, other: object) -> Any:
    """Compare two objects of one class by their compared fields; NotImplemented for another class."""
    if other.__class__ is not self.__class__:
        return NotImplemented
    get = _comparison_getter(self.__class__)
    return get(self) == get(other)


def _hash(self: Any) -> int:
    """Return the hash of an object's hashed fields."""
    return hash(_hash_getter(self.__class__)(self))


@recursive_repr()
def _repr(self: Any) -> str:
    """Return the `repr` of an object: its class and the fields that are shown."""
    names = (field.name for field in dataclasses.fields(self) if field.repr)
    return f"{self.__class__.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


def _no_assignment(_self: object, name: str, _value: object) -> None:
    """Raise FrozenInstanceError, as every assignment to a field of a frozen object does."""
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _no_deletion(_self: object, name: str) -> None:
    """Raise FrozenInstanceError, as every deletion of a field of a frozen object does."""
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    """Return the values of all fields, as a pickle holds them."""
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _put_state(self: Any, state: list[Any]) -> None:
    """Set all fields of a frozen object to the values that a pickle holds."""
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
