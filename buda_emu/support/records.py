"""`dataclass` as in the standard library, but its methods are written when they are first used.

The standard one writes and compiles six functions for every class when its module is imported, which is ten times the
work of all the rest: for a hundred classes a fifth of what a small run takes. Of a class made here only the `__init__`
is compiled, once there are more than a few objects; the other methods are common to all. `fields`, `replace`,
`asdict`, `match`, pickles and `FrozenInstanceError` are the library's; an object says of itself, equals and hashes what
the library has it do. What is derived from such a class is made here, too: to the library it is not frozen.
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
        """As `dataclasses.dataclass`, with those of its options that are used here."""

        def made(kind: type[Any]) -> type[Any]:
            return _made(kind, frozen, slots, eq, repr, kw_only, weakref_slot)

        return made if kind is None else made(kind)


def _made(kind: type[Any], frozen: bool, slots: bool, eq: bool, shown: bool, kw_only: bool, weakref_slot: bool) -> Any:
    own: dict[str, Any] = dict(kind.__dict__)
    kind.__doc__ = kind.__doc__ or kind.__name__  # else the library works out a signature for it
    made: Any = dataclasses.dataclass(
        init=False, repr=False, eq=False, slots=slots, kw_only=kw_only, weakref_slot=weakref_slot
    )(kind)
    if frozen:
        if "__setattr__" in own or "__delattr__" in own:
            raise TypeError(f"{made.__name__} is frozen and has methods that change it")
        made.__setattr__ = _no_assignment
        made.__delattr__ = _no_deletion
        if slots and "__getstate__" not in own:
            made.__getstate__ = _state
            made.__setstate__ = _put_state
    if shown and "__repr__" not in own:
        made.__repr__ = _text
    if eq:
        if "__eq__" not in own:
            made.__eq__ = _equal
        if "__hash__" not in own or ("__eq__" in own and own["__hash__"] is None):
            made.__hash__ = _hash if frozen else None

    few = [_FEW]

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        few[0] -= 1
        if few[0] < 0 or not _filled(made, self, args, kwargs):
            made.__init__ = written = _init(made, frozen)
            written(self, *args, **kwargs)

    made.__init__ = __init__
    return made


def _filled(kind: Any, item: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Do what the `__init__` would, without writing one; False, with nothing called, for arguments that do not fit."""
    fields = dataclasses.fields(kind)
    names = [field.name for field in fields if field.init and not field.kw_only]
    given = dict(zip(names, args, strict=False))
    if len(args) > len(names) or not given.keys().isdisjoint(kwargs):
        return False
    given.update(kwargs)
    values: list[tuple[str, Any]] = []
    makers: list[int] = []
    for field in fields:
        name = field.name
        if field.init and name in given:
            value = given.pop(name)
        elif field.default is not MISSING:
            value = field.default
        elif field.default_factory is not MISSING:
            value = field.default_factory
            makers.append(len(values))
        elif field.init:
            return False
        else:
            continue
        values.append((name, value))
    if given:
        return False
    for number in makers:
        name, make = values[number]
        values[number] = name, make()
    put = object.__setattr__ if kind.__setattr__ is _no_assignment else setattr
    for name, value in values:
        put(item, name, value)
    if hasattr(kind, "__post_init__"):
        item.__post_init__()
    return True


def _init(kind: Any, frozen: bool) -> Callable[..., None]:
    """What the library writes: a function with a parameter for each field."""
    known: dict[str, Any] = {"object_set": object.__setattr__}
    positional: list[str] = []
    keywords: list[str] = []
    lines: list[str] = []
    for field in dataclasses.fields(kind):
        name = field.name
        given = name
        if field.default is not MISSING:
            known[f"default_{name}"] = field.default
            default = f"default_{name}"
        elif field.default_factory is not MISSING:
            known[f"make_{name}"] = field.default_factory
            given = f"make_{name}() if {name} is MISSING else {name}" if field.init else f"make_{name}()"
            default = "MISSING"
        else:
            default = ""
        if field.init:
            (keywords if field.kw_only else positional).append(f"{name}={default}" if default else name)
        elif default == "":
            continue
        elif field.default is not MISSING:
            given = default
        slot = getattr(kind, name, None)
        if not frozen:
            lines.append(f"self.{name} = {given}")
        elif isinstance(slot, MemberDescriptorType):
            known[f"set_{name}"] = slot.__set__
            lines.append(f"set_{name}(self, {given})")
        else:
            lines.append(f"object_set(self, {name!r}, {given})")
    if hasattr(kind, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = ", ".join(["self", *positional, *(["*", *keywords] if keywords else [])])
    known["MISSING"] = MISSING
    exec(f"def __init__({parameters}):\n " + "\n ".join(lines or ["pass"]), known)
    written = known["__init__"]
    written.__qualname__ = f"{kind.__qualname__}.__init__"
    written.__module__ = kind.__module__
    return written


# ------------------------------------------------------------------------------------------------------ common methods
@cache
def _getter(kind: Any) -> Callable[[Any], tuple[Any, ...]]:
    """What of an object is compared."""
    names = [field.name for field in dataclasses.fields(kind) if field.compare]
    if len(names) > 1:
        return attrgetter(*names)
    return lambda item: tuple(getattr(item, name) for name in names)


@cache
def _hashed(kind: Any) -> Callable[[Any], tuple[Any, ...]]:
    """What of an object is hashed."""
    fields = dataclasses.fields(kind)
    names = [field.name for field in fields if (field.compare if field.hash is None else field.hash)]
    if len(names) > 1:
        return attrgetter(*names)
    return lambda item: tuple(getattr(item, name) for name in names)


def _equal(self: Any, other: object) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    get = _getter(self.__class__)
    return get(self) == get(other)


def _hash(self: Any) -> int:
    return hash(_hashed(self.__class__)(self))


@recursive_repr()
def _text(self: Any) -> str:
    shown = (field.name for field in dataclasses.fields(self) if field.repr)
    return f"{self.__class__.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


def _no_assignment(_self: object, name: str, _value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _no_deletion(_self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _put_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
