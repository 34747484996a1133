"""Fields of an image's JSON as frozen dataclasses. Each dataclass field has a reader, which turns the JSON value into
the field's value or raises `FieldError` with what the value should be."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import field, fields
from types import MappingProxyType
from typing import Any, Final, TypeVar, cast

from buda_emu.emulator.image.rules import ImageError, Place, Steps, combine_errors
from buda_emu.spec.formats import FORMATS
from buda_emu.support.checker.text import short_line
from buda_emu.support.strict_json import parse

_READ: Final = "read"
_NEEDED: Final = "needed"
MISSING: Final = "this field is missing"
T = TypeVar("T")
Reader = Callable[[Any], Any]


class FieldError(Exception):
    """The error of a reader; its message says what the field holds. It never leaves this package.

    `steps` is the place below the field, `value` the JSON value that stands there."""

    steps: Steps = ()
    value: Any = None

    def below(self, step: str | int, value: Any) -> "FieldError":
        """Add to this error, and return it, the key or number `step` under which the wrong field stands, and its
        `value`. Called at each level that the error passes."""
        self.value = self.value if self.steps else value
        self.steps = (step, *self.steps)
        return self


def required_field(read: Reader, **default: Any) -> Any:
    """Declare a dataclass field that `read` reads, and without which the image is refused. `default` serves only code
    that builds an instance."""
    return field(metadata={_READ: read, _NEEDED: True}, **default)


def optional_field(read: Reader, default: Any = None) -> Any:
    """Declare a dataclass field that `read` reads; where the JSON lacks it, it is `default`, and its absence is
    reported as a warning."""
    return field(default=default, metadata={_READ: read, _NEEDED: False})


def optional_map_field(read: Reader) -> Any:
    """Declare an optional dataclass field that holds an object with any keys, whose values `read` reads; empty where it
    is absent."""
    return field(default_factory=empty, metadata={_READ: map_of(read), _NEEDED: False})


def empty() -> Mapping[str, Any]:
    """Return a read-only mapping without keys."""
    return MappingProxyType({})


def read_fields(kind: type[T], source: Mapping[str, Any], place: Place, absent: list[Place], **others: Any) -> T:
    """Return an instance of the dataclass `kind`, whose fields are declared by the functions above, from the JSON
    object `source`, with the values `others` for its other fields. Keys that it does not know go to its field `extra`.
    Missing optional fields are appended to `absent`. Raises one ImageError, below `place`, for all fields that are
    wrong."""
    values: dict[str, Any] = dict(others)
    wrong: list[ImageError] = []
    declarations = {declaration.name: declaration for declaration in fields(kind) if _READ in declaration.metadata}  # type: ignore[arg-type]
    for name, declaration in declarations.items():
        at = place.below(name)
        if name in source:
            with collect_errors(wrong):
                values[name] = read_value(declaration.metadata[_READ], source[name], at)
        elif declaration.metadata[_NEEDED]:
            wrong.append(at.error("image-field", MISSING))
        else:
            absent.append(at)
    if wrong:
        raise combine_errors(wrong)
    extra = {key: plain(value) for key, value in source.items() if key not in declarations and key not in others}
    values["extra"] = MappingProxyType(extra)
    return kind(**values)


@contextmanager
def collect_errors(wrong: list[ImageError]) -> Generator[None]:
    """Context that appends an ImageError raised inside to `wrong` and goes on after the block, so that several errors
    are reported together."""
    try:
        yield
    except ImageError as error:
        wrong.append(error)


def read_value(read: Reader, value: Any, place: Place) -> Any:
    """Return the value that `read` makes of a JSON value. Raises ImageError, which names the place of the wrong value,
    for what `read` refuses."""
    try:
        return read(value)
    except FieldError as error:
        wrong_value = error.value if error.steps else value
        raise place.below(*error.steps).error(
            "image-field", f"{short_line(repr(wrong_value))} is not {error}"
        ) from None


def plain(value: Any) -> Any:
    """Return any JSON value with objects and lists made immutable."""
    if isinstance(value, dict):
        return MappingProxyType({key: plain(entry) for key, entry in json_object(value).items()})
    if isinstance(value, list):
        return tuple(plain(entry) for entry in json_list(value))
    return value


def json_object(value: Any) -> dict[str, Any]:
    """Return an object unchanged. Raises FieldError for any other value."""
    if not isinstance(value, dict):
        raise FieldError("an object")
    return cast("dict[str, Any]", value)


def json_list(value: Any) -> list[Any]:
    """Return a list unchanged. Raises FieldError for any other value."""
    if not isinstance(value, list):
        raise FieldError("a list")
    return cast("list[Any]", value)


def text(value: Any) -> str:
    """Return a string unchanged. Raises FieldError for any other value."""
    if not isinstance(value, str):
        raise FieldError("a text")
    return value


def word(value: Any) -> str:
    """Return a string, or the last part of an enum's member `{"__enum__": "Class.Member"}` (NETLIST 8). Raises
    FieldError for any other value."""
    if isinstance(value, dict) and value.keys() == {"__enum__"}:
        return text(value["__enum__"]).rpartition(".")[2]
    return text(value)


def number_format(value: Any) -> str:
    """Return a string or enum member that names a number format. Raises FieldError for any other value."""
    name = word(value)
    if name not in FORMATS:
        raise FieldError("a number format")
    return name


def flag(value: Any) -> bool:
    """Return true or false. Raises FieldError for any other value."""
    if not isinstance(value, bool):
        raise FieldError("true or false")
    return value


def integer_between(low: int, high: int) -> Reader:
    """Return a reader of integers from `low` to `high`, both included."""

    def read(value: Any) -> int:
        """Return the integer unchanged. Raises FieldError for any other value."""
        if type(value) is not int or not low <= value <= high:
            raise FieldError(f"an integer from {low} to {high}")
        return value

    return read


def optional(read: Reader) -> Reader:
    """Return a reader that takes null as None, and any other value as `read` does."""
    return lambda value: None if value is None else read(value)


def list_of(read: Reader, count: int | None = None) -> Reader:
    """Return a reader of lists, whose entries `read` reads, into tuples; of exactly `count` entries where a count is
    given."""

    def read_all(value: Any) -> tuple[Any, ...]:
        """Read each entry of the list, and return them as a tuple."""
        entries = json_list(value)
        if count is not None and len(entries) != count:
            raise FieldError(f"a list of {count}")
        return tuple(below(read, index, entry) for index, entry in enumerate(entries))

    return read_all


def map_of(read: Reader) -> Reader:
    """Return a reader of objects with any keys, whose values `read` reads, into read-only mappings."""

    def read_all(value: Any) -> Mapping[str, Any]:
        """Read each value of the object, and return it read-only."""
        return MappingProxyType({key: below(read, key, entry) for key, entry in json_object(value).items()})

    return read_all


def object_of(kind: type[T], *, closed: bool = False) -> Reader:
    """Return a reader of objects into instances of the dataclass `kind`; unknown keys are ignored, or refused if
    `closed`."""

    def read(value: Any) -> T:
        """Return the dataclass instance that an object describes. Raises FieldError for missing fields, wrong values
        and, where closed, unknown keys."""
        source = json_object(value)
        declarations = {declaration.name: declaration for declaration in fields(kind) if _READ in declaration.metadata}  # type: ignore[arg-type]
        values: dict[str, Any] = {}
        for name, declaration in declarations.items():
            if name in source:
                values[name] = below(declaration.metadata[_READ], name, source[name])
            elif declaration.metadata[_NEEDED]:
                raise FieldError(f"an object with {name}")
        for name in source if closed else ():
            if name not in declarations:
                raise FieldError(f"a value that belongs here: the fields are {', '.join(declarations)}").below(
                    name, source[name]
                )
        return kind(**values)

    return read


def below(read: Reader, step: str | int, value: Any) -> Any:
    """Return what `read` makes of a value that stands under the key or number `step` of another. Raises FieldError with
    that step in its place."""
    try:
        return read(value)
    except FieldError as error:
        raise error.below(step, value) from None


anything: Reader = plain
positive: Reader = integer_between(1, (1 << 31) - 1)
natural: Reader = integer_between(0, (1 << 31) - 1)


def parse_object(data: bytes, place: Place) -> dict[str, Any]:
    """Parse the JSON object that a member holds. Raises ImageError for everything else."""
    try:
        value = parse(data)
    except ValueError as error:
        raise place.error("image-json", short_line(error)) from None
    if not isinstance(value, dict):
        raise place.error("image-json", "it is not an object")
    return cast("dict[str, Any]", value)
