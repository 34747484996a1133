"""Strict JSON, for files that are read again or that others wrote, at a cost that its size bounds.

The standard library takes NaN, keeps the last of two values with one name, and turns any number of digits into an
integer. None of this is in a file that this package wrote: it is damage, and is refused before it changes a result.
`strict` makes data that such a file can hold.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from buda_emu.support.errors import HostError

MAX_DEPTH = 64  # far above any document here, and far from the limit of recursion
_LOW = -(1 << 63)  # integers are those of 64 bits, with or without a sign
_HIGH = 1 << 64  # likewise


class NameTwiceError(ValueError):
    """Raised for a `name` that occurs twice in one object of a JSON document."""

    def __init__(self, name: str) -> None:
        super().__init__(f"key {name!r} occurs twice")
        self.name = name


def each_name_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a dictionary from the pairs of a JSON object, as `object_pairs_hook` of the standard library, which would
    keep the last of two equal names. Raises NameTwiceError."""
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        names = [name for name, _ in pairs]
        raise NameTwiceError(next(name for name in names if names.count(name) > 1))
    return mapping


def parse(data: bytes) -> Any:
    """Return the value of a JSON document in UTF-8: numbers of 64 bits, no NaN, no name twice in an object, at most 64
    levels. Raises ValueError that says what is wrong."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} is not UTF-8") from None
    try:
        value: Any = json.loads(
            text,
            parse_int=_parse_whole,
            parse_float=_parse_real,
            parse_constant=_refuse_constant,
            object_pairs_hook=each_name_once,
        )
    except RecursionError:
        raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:  # JSONDecodeError among them
        raise ValueError(f"it is not strict JSON: {error}") from None
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        level = list(_inner_collections(level))
        if not level:
            return value
    raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels")


def read_object(data: bytes, place: str, title: str, fix: str) -> dict[str, Any]:
    """Return the object that a JSON document holds. Raises HostError for anything else, with `place` (a file and
    perhaps a line), the kind of document expected, and the `fix`."""
    try:
        value = parse(data)
    except ValueError as error:
        raise HostError(f"{place}: not {title}: {error}: {fix}") from None
    if not isinstance(value, dict):
        raise HostError(f"{place}: not {title}: it is not an object: {fix}")
    return cast("dict[str, Any]", value)


def _inner_collections(level: Sequence[Any]) -> Iterator[Any]:
    """Give the lists and maps directly inside of those of one level."""
    for outer in level:
        values: Sequence[Any] = ()
        if isinstance(outer, dict):
            values = list(cast("Mapping[str, Any]", outer).values())
        elif isinstance(outer, list):
            values = cast("list[Any]", outer)
        yield from (value for value in values if isinstance(value, dict | list))


def _parse_whole(text: str) -> int:
    """Return the value of an integer. Raises ValueError for one that does not fit into 64 bits."""
    value = int(text) if len(text) <= 20 else _HIGH  # int() of a longer text takes ever longer
    if not _LOW <= value < _HIGH:
        raise ValueError("a number has more than 64 bits")
    return value


def _parse_real(text: str) -> float:
    """Return the value of a number with a fraction or an exponent. Raises ValueError for one that is too large."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number is too large")
    return value


def _refuse_constant(text: str) -> float:
    """Raise ValueError for NaN and infinities, which are not in JSON."""
    raise ValueError(f"{text} is not a number")


def strict(value: Any) -> Any:
    """Return the same plain data with null for floats that are not finite."""
    if isinstance(value, dict):
        return {key: strict(element) for key, element in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list | tuple):
        return [strict(element) for element in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
