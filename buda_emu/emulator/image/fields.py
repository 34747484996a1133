"""Fields of an image's JSON as frozen dataclasses: each dataclass field says how its value is read.

A reader takes the JSON value and gives the field's value, or raises `FieldError` with what it should be.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import field, fields
from types import MappingProxyType
from typing import Any, Final, TypeVar, cast

from buda_emu.emulator.image.rules import ImageError, Place, Steps, together
from buda_emu.spec.formats import FORMATS
from buda_emu.support.checker.text import short_line
from buda_emu.support.strict_json import parse

_READ: Final = "read"
_NEEDED: Final = "needed"
MISSING: Final = "this field is missing"
T = TypeVar("T")
Reader = Callable[[Any], Any]


class FieldError(Exception):
    """A value is not what the field holds; the message says what it holds. Never leaves this room.

    `steps`: where below the field, `value`: what stands there.
    """

    steps: Steps = ()
    value: Any = None

    def below(self, step: str | int, value: Any) -> "FieldError":
        """The same, of a field that has that value under a key or at a number."""
        self.value = self.value if self.steps else value
        self.steps = (step, *self.steps)
        return self


def needed(read: Reader, **default: Any) -> Any:
    """A field without which nothing can be done; a default is for who makes one."""
    return field(metadata={_READ: read, _NEEDED: True}, **default)


def wanted(read: Reader, default: Any = None) -> Any:
    """A field of the format whose absence is said and does no harm."""
    return field(default=default, metadata={_READ: read, _NEEDED: False})


def wanted_map(read: Reader) -> Any:
    """The same for an object with any keys."""
    return field(default_factory=empty, metadata={_READ: mapped(read), _NEEDED: False})


def empty() -> Mapping[str, Any]:
    """An object without keys."""
    return MappingProxyType({})


def read_fields(kind: type[T], source: Mapping[str, Any], place: Place, absent: list[Place], **given: Any) -> T:
    """An instance of a dataclass of such fields, with the values `given` for its other ones. Keys that it does not know
    go to its field `extra`.

    Missing fields are appended to `absent`. Raises one ImageError for all fields that are wrong.
    """
    values: dict[str, Any] = dict(given)
    wrong: list[ImageError] = []
    known = {item.name: item for item in fields(kind) if _READ in item.metadata}  # type: ignore[arg-type]
    for name, item in known.items():
        at = place.below(name)
        if name in source:
            with noted(wrong):
                values[name] = read_value(item.metadata[_READ], source[name], at)
        elif item.metadata[_NEEDED]:
            wrong.append(at.error("image-field", MISSING))
        else:
            absent.append(at)
    if wrong:
        raise together(wrong)
    extra = {key: plain(value) for key, value in source.items() if key not in known and key not in given}
    values["extra"] = MappingProxyType(extra)
    return kind(**values)


@contextmanager
def noted(wrong: list[ImageError]) -> Generator[None]:
    """An ImageError that is raised within is appended to `wrong`, and what follows goes on."""
    try:
        yield
    except ImageError as error:
        wrong.append(error)


def read_value(read: Reader, value: Any, place: Place) -> Any:
    """One value. Raises ImageError for the place where something else stands."""
    try:
        return read(value)
    except FieldError as error:
        found = error.value if error.steps else value
        raise place.below(*error.steps).error("image-field", f"{short_line(repr(found))} is not {error}") from None


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
    """A string, or an enum's member as `{"__enum__": "Class.Member"}`: what is after the last dot (NETLIST 8)."""
    if isinstance(value, dict) and value.keys() == {"__enum__"}:
        return text(value["__enum__"]).rpartition(".")[2]
    return text(value)


def number_format(value: Any) -> str:
    """The name of one."""
    name = word(value)
    if name not in FORMATS:
        raise FieldError("a number format")
    return name


def flag(value: Any) -> bool:
    """true or false."""
    if not isinstance(value, bool):
        raise FieldError("true or false")
    return value


def whole(low: int, high: int) -> Reader:
    """An integer from `low` to `high`."""

    def read(value: Any) -> int:
        if type(value) is not int or not low <= value <= high:
            raise FieldError(f"an integer from {low} to {high}")
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
        return tuple(below(read, index, item) for index, item in enumerate(items))

    return read_all


def mapped(read: Reader) -> Reader:
    """An object with any keys."""

    def read_all(value: Any) -> Mapping[str, Any]:
        return MappingProxyType({key: below(read, key, item) for key, item in json_object(value).items()})

    return read_all


def shaped(kind: type[T], *, closed: bool = False) -> Reader:
    """An object with the fields of a dataclass, and no others where it is `closed`."""

    def read(value: Any) -> T:
        source = json_object(value)
        known = {item.name: item for item in fields(kind) if _READ in item.metadata}  # type: ignore[arg-type]
        values: dict[str, Any] = {}
        for name, item in known.items():
            if name in source:
                values[name] = below(item.metadata[_READ], name, source[name])
            elif item.metadata[_NEEDED]:
                raise FieldError(f"an object with {name}")
        for name in source if closed else ():
            if name not in known:
                raise FieldError(f"a value that belongs here: the fields are {', '.join(known)}").below(
                    name, source[name]
                )
        return kind(**values)

    return read


def below(read: Reader, step: str | int, value: Any) -> Any:
    """What stands in a value under a key or at a number."""
    try:
        return read(value)
    except FieldError as error:
        raise error.below(step, value) from None


anything: Reader = plain
positive: Reader = whole(1, (1 << 31) - 1)
natural: Reader = whole(0, (1 << 31) - 1)


def parse_object(data: bytes, place: Place) -> dict[str, Any]:
    """The object that a JSON member holds. Raises ImageError for everything else."""
    try:
        value = parse(data)
    except ValueError as error:
        raise place.error("image-json", short_line(error)) from None
    if not isinstance(value, dict):
        raise place.error("image-json", "it is not an object")
    return cast("dict[str, Any]", value)
