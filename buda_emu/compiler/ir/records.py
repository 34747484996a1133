"""Records read from a text, with each field checked against its declared type."""

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints, is_typeddict

import numpy as np

from buda_emu.compiler.ir.tokens import Tokens

T = TypeVar("T")


def made(kind: type[T], values: Mapping[str, Any], tokens: Tokens, what: str) -> T:
    """A record of that kind. Raises IrError for a field that it does not have or that is missing, and for a value of
    another type."""
    hints, needed = _declared(kind)
    for name, value in values.items():
        if name not in hints:
            tokens.fail(f"{what}: there is no field {name}: {', '.join(hints)}")
        if not conforms(value, hints[name]):
            tokens.fail(f"{what}: {name} cannot be {str(value)[:60]}")
    missing = [name for name in needed if name not in values]
    if missing:
        tokens.fail(f"{what}: {missing[0]} is missing")
    try:
        return kind(**values)
    except (TypeError, ValueError) as error:  # a rule of the record itself
        tokens.fail(f"{what}: {error}")


@cache
def _declared(kind: type[Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Types of all fields, and those without a default."""
    hints = get_type_hints(kind)
    if is_dataclass(kind):
        own = {item.name: hints[item.name] for item in fields(kind) if item.init and not item.name.startswith("_")}
        needed = [item.name for item in fields(kind) if item.default is MISSING and item.default_factory is MISSING]
        return own, tuple(needed)
    return hints, tuple(name for name in hints if name not in kind._field_defaults)


def conforms(value: Any, hint: Any) -> bool:
    """Whether a value has a declared type."""
    if hint is Any:
        return True
    if is_typeddict(hint):  # of attributes: the verifier knows which an op has, and their values
        return isinstance(value, dict)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(conforms(value, item) for item in arguments)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        items = cast("tuple[Any, ...]", value)
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return all(conforms(item, arguments[0]) for item in items)
        return len(items) == len(arguments) and all(map(conforms, items, arguments))
    if origin in (list, frozenset):
        return isinstance(value, origin) and all(conforms(item, arguments[0]) for item in cast("list[Any]", value))
    if origin is np.ndarray:
        return isinstance(value, np.ndarray)
    if isinstance(origin, type):
        return isinstance(value, origin)
    if hint in (int, np.int64):
        return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return isinstance(value, (int, float)) if hint is float else hint is None or isinstance(value, hint)
