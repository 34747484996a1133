"""Fields of an image's JSON as frozen dataclasses: each dataclass field says how its value is read.

A reader takes the JSON value and gives the field's value, or raises `FieldError` with what it should be.
"""

from collections.abc import Callable, Mapping
from dataclasses import field, fields
from types import MappingProxyType
from typing import Any, Final, TypeVar, cast

from buda_emu.checker.text import shown
from buda_emu.image.rules import Place

_READ: Final = "read"
_NEEDED: Final = "needed"
T = TypeVar("T")
Reader = Callable[[Any], Any]


class FieldError(Exception):
    """A value is not what the field holds; the message says what it holds. Never leaves this room."""


def needed(read: Reader) -> Any:
    """A field without which nothing can be done."""
    return field(metadata={_READ: read, _NEEDED: True})


def wanted(read: Reader, default: Any = None) -> Any:
    """A field of the format whose absence is said and does no harm."""
    return field(default=default, metadata={_READ: read, _NEEDED: False})


def wanted_map(read: Reader) -> Any:
    """The same for an object with any keys."""
    return field(default_factory=empty, metadata={_READ: mapped(read), _NEEDED: False})


def empty() -> Mapping[str, Any]:
    """An object without keys."""
    return MappingProxyType({})


def read_fields(
    kind: type[T], source: Mapping[str, Any], place: Place, where: str, absent: list[str], **given: Any
) -> T:
    """An instance of a dataclass of such fields, with the values `given` for its other ones. Keys that it does not know
    go to its field `extra`.

    Missing fields are appended to `absent` with `where` before their name. Raises ImageError naming the field.
    """
    values: dict[str, Any] = dict(given)
    known = {item.name: item for item in fields(kind) if _READ in item.metadata}  # type: ignore[arg-type]
    for name, item in known.items():
        if name in source:
            values[name] = read_value(item.metadata[_READ], source[name], place, f"{where}{name}")
        elif item.metadata[_NEEDED]:
            raise place.error("image-field", f"field {where}{name} is missing")
        else:
            absent.append(f"{where}{name}")
    used = known.keys() | given.keys()
    values["extra"] = MappingProxyType({key: plain(value) for key, value in source.items() if key not in used})
    return kind(**values)


def read_value(read: Reader, value: Any, place: Place, where: str) -> Any:
    """One value. Raises ImageError naming where it stands."""
    try:
        return read(value)
    except FieldError as error:
        raise place.error("image-field", f"field {shown(where)} is {shown(repr(value))}, not {error}") from None


def plain(value: Any) -> Any:
    """Any JSON, frozen."""
    if isinstance(value, dict):
        return MappingProxyType({key: plain(item) for key, item in json_object(value).items()})
    return tuple(plain(item) for item in json_list(value)) if isinstance(value, list) else value


def json_object(value: Any) -> dict[str, Any]:
    """An object. Raises FieldError."""
    if not isinstance(value, dict):
        raise FieldError("an object")
    return cast("dict[str, Any]", value)


def json_list(value: Any) -> list[Any]:
    """A list. Raises FieldError."""
    if not isinstance(value, list):
        raise FieldError("a list")
    return cast("list[Any]", value)


def text(value: Any) -> str:
    """A string."""
    if not isinstance(value, str):
        raise FieldError("a text")
    return value


def word(value: Any) -> str:
    """A string, or an enum's member as `{"__enum__": "Class.Member"}`: what is behind the last dot (NETLIST 8)."""
    if isinstance(value, dict) and value.keys() == {"__enum__"}:
        return text(value["__enum__"]).rpartition(".")[2]
    return text(value)


def flag(value: Any) -> bool:
    """true or false."""
    if not isinstance(value, bool):
        raise FieldError("true or false")
    return value


def whole(low: int, high: int) -> Reader:
    """A whole number from `low` to `high`."""

    def read(value: Any) -> int:
        if type(value) is not int or not low <= value <= high:
            raise FieldError(f"a whole number from {low} to {high}")
        return value

    return read


def optional(read: Reader) -> Reader:
    """null, or what `read` reads."""
    return lambda value: None if value is None else read(value)


def listed(read: Reader, count: int | None = None) -> Reader:
    """A list, of that many items where a count is given."""

    def read_all(value: Any) -> tuple[Any, ...]:
        items = json_list(value)
        if count is not None and len(items) != count:
            raise FieldError(f"a list of {count}")
        return tuple(read(item) for item in items)

    return read_all


def mapped(read: Reader) -> Reader:
    """An object with any keys."""

    def read_all(value: Any) -> Mapping[str, Any]:
        return MappingProxyType({key: read(item) for key, item in json_object(value).items()})

    return read_all


def shaped(kind: type[T]) -> Reader:
    """An object with the fields of a dataclass."""

    def read(value: Any) -> T:
        source = json_object(value)
        values: dict[str, Any] = {}
        for item in fields(kind):  # type: ignore[arg-type]
            if item.name in source:
                values[item.name] = item.metadata[_READ](source[item.name])
            elif item.metadata[_NEEDED]:
                raise FieldError(f"an object with {item.name}")
        return kind(**values)

    return read


anything: Reader = plain
positive: Reader = whole(1, (1 << 31) - 1)
natural: Reader = whole(0, (1 << 31) - 1)
