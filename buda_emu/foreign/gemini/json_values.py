"""Values of decoded JSON with a check of their type.

The functions return the value with its type, or None if it has another type. The reader of schedules notes a wrong
value as a finding and puts a default in its place, so that reading goes on.
"""

import json
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, Final, TypeVar, cast

from buda_emu.foreign.gemini.book import BOOK
from buda_emu.foreign.gemini.boxes import ORIGIN, Box
from buda_emu.foreign.gemini.model import OutKind, PlaceKind, StoreSource, TensorKind
from buda_emu.support.checker import Diagnostic
from buda_emu.support.checker.suggest import near

_SHOWN = 40  # keys or items of a value in a message


def as_list(value: Any, count: int | None = None) -> list[Any] | None:
    """Return the value if it is a list, and of length `count` where that is given; else None."""
    if not isinstance(value, list):
        return None
    entries = cast("list[Any]", value)
    if count in (None, len(entries)):
        return entries
    return None


def as_object(value: Any) -> Mapping[str, Any] | None:
    """Return the value if it is a JSON object, else None."""
    if isinstance(value, Mapping):
        return cast("Mapping[str, Any]", value)
    return None


def as_integers(
    value: Any, count: int | None = None, least: int = -(1 << 62), limit: int = 1 << 62
) -> list[int] | None:
    """Return the value if it is a list (of length `count` where given) of integers from `least` up to, not
    including, `limit`, else None. Booleans are not integers."""
    entries = as_list(value, count)
    if entries is not None and all(type(entry) is int and least <= entry < limit for entry in entries):
        return entries
    return None


def as_texts(value: Any) -> list[str] | None:
    """Return the value if it is a list of strings, else None."""
    entries = as_list(value)
    if entries is not None and all(isinstance(entry, str) for entry in entries):
        return entries
    return None


def describe(value: Any) -> str:
    """Return the value as text for a message, shortened where it is long."""
    items = as_list(value)
    content = as_object(value)
    if content is not None and len(content) > _SHOWN:
        return "an object"
    if items is not None and len(items) > _SHOWN:
        return f"a list of {len(items)}"
    try:
        text = json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return "a value that JSON does not have"
    if len(text) <= _SHOWN:
        return text
    return f"{text[:_SHOWN]}..."


T = TypeVar("T")
Object = Mapping[str, Any]
NOWHERE = Box(ORIGIN, ORIGIN)
PLACES: Final[tuple[PlaceKind, ...]] = ("core", "DRAM")
TENSORS: Final[tuple[TensorKind, ...]] = ("ifmap", "weight", "ofmap")
OUTS: Final[tuple[OutKind, ...]] = ("weight", "fmap")
STORES: Final[tuple[StoreSource, ...]] = ("DDR", "CORE")
_MOST = 1 << 62  # beyond, sums and products of a file no longer mean bytes or cycles


class Values:
    """Reads keys of objects and collects wrong values in `findings`, as diagnostics of rules G001 to G003."""

    def __init__(self, path: str = "") -> None:
        self.path = path
        self.findings: list[Diagnostic] = []

    def note_finding(self, rule: str, place: str, message: str, hint: str = "") -> None:
        """Add a finding of a rule at a place of the document, a JSON pointer."""
        self.findings.append(BOOK.diagnostic(self.path, rule, place, message, hint))

    def note_missing(self, entry: Object, key: str, place: str) -> None:
        """Add a finding (G002) for a key that the object at `place` does not have."""
        self.note_finding("G002", place, f"there is no {key!r}", near(key, [str(name) for name in entry]))

    def note_type(self, place: str, key: str, expected: str, value: Any) -> None:
        """Add a finding (G002) for a value under a key of the object at `place` that is not `expected`."""
        self.note_finding("G002", f"{place}/{key}", f"{key!r} is {expected}, not {describe(value)}")

    def object(self, value: Any, place: str) -> Object | None:
        """Return the value if it is a JSON object; otherwise note a finding and return None."""
        content = as_object(value)
        if content is not None:
            return content
        self.note_finding("G002", place, f"an object is expected, not {describe(value)}")
        return None

    def integer(self, entry: Object, key: str, place: str) -> int:
        """Return the integer under a key of an object; 0, with a finding, where there is none. Booleans and numbers
        beyond 2^62 are none."""
        if key not in entry:
            self.note_missing(entry, key, place)
            return 0
        value = entry[key]
        if type(value) is int and -_MOST < value < _MOST:
            return value
        self.note_type(place, key, "an integer", value)
        return 0

    def number(self, entry: Object, key: str, place: str) -> float:
        """Return the finite number under a key of an object; 0, with a finding, where there is none. Booleans and
        numbers beyond 2^62 are none."""
        if key not in entry:
            self.note_missing(entry, key, place)
            return 0
        value = entry[key]
        if type(value) in (int, float) and -_MOST < value < _MOST and isfinite(value):
            return value
        self.note_type(place, key, "a number", value)
        return 0

    def text(self, entry: Object, key: str, place: str) -> str:
        """Return the string under a key of an object; "", with a finding, where there is none."""
        if key not in entry:
            self.note_missing(entry, key, place)
            return ""
        value = entry[key]
        if isinstance(value, str):
            return value
        self.note_type(place, key, "a text", value)
        return ""

    def flag(self, entry: Object, key: str, place: str, default: bool | None = None) -> bool:
        """Return the boolean under a key of an object; False, with a finding, where there is none. A key with a
        `default` may be absent."""
        if key not in entry:
            if default is None:
                self.note_missing(entry, key, place)
            return bool(default)
        value = entry[key]
        if isinstance(value, bool):
            return value
        self.note_type(place, key, "true or false", value)
        return False

    def word(self, entry: Object, key: str, place: str, words: tuple[T, ...]) -> T:
        """Return the word under a key of an object, one of `words`; the first of these, with a finding, for any
        other."""
        if key not in entry:
            self.note_missing(entry, key, place)
            return words[0]
        value = entry[key]
        for word in words:
            if type(value) is str and value == word:
                return word
        choices = ", ".join(map(str, words))
        if isinstance(value, str):
            hint = near(value, [str(word) for word in words])
        else:
            hint = ""
        self.note_finding("G002", f"{place}/{key}", f"{key!r} is one of {choices}, not {describe(value)}", hint)
        return words[0]

    def integers(self, entry: Object, key: str, place: str, *, optional: bool = False) -> tuple[int, ...]:
        """Return the list of integers under a key of an object; none, with a finding, for anything else. An
        `optional` key may be absent."""
        if key not in entry:
            if not optional:
                self.note_missing(entry, key, place)
            return ()
        numbers = as_integers(entry[key])
        if numbers is None:
            self.note_type(place, key, "a list of integers", entry[key])
        return tuple(numbers or ())

    def items(
        self,
        parent: Object,
        key: str,
        place: str,
        read: Callable[["Values", Object, str], T],
        *,
        optional: bool = False,
    ) -> tuple[T, ...]:
        """Return the records of a list of objects under a key of `parent`, made by `read` from each object and its
        place. An `optional` list may be absent or null."""
        if key not in parent:
            if not optional:
                self.note_missing(parent, key, place)
            return ()
        value = as_list(parent[key])
        if value is None:
            if not (optional and parent[key] is None):
                self.note_type(place, key, "a list", parent[key])
            return ()
        below = f"{place}/{key}/"
        records: list[T] = []
        for number, child in enumerate(value):
            entry = self.object(child, f"{below}{number}")
            if entry is not None:
                records.append(read(self, entry, f"{below}{number}"))
        return tuple(records)

    def box(self, entry: Object, place: str, lower: str = "lower", upper: str = "upper") -> Box:
        """Return the box of the keys of its two corners; a box of one element, and a finding (G002, G003), where one is
        missing or wrong."""
        if lower not in entry or upper not in entry:
            self.note_missing(entry, lower if lower not in entry else upper, place)
            return NOWHERE
        return self.corners(entry[lower], entry[upper], place, lower)

    def corners(self, low: Any, high: Any, place: str, name: str) -> Box:
        """Return the box of two corners, each a list of four integers, or a box of one element and a finding (G003)
        for others. `name` is the key of the lower corner."""
        first = as_integers(low, 4)
        last = as_integers(high, 4)
        if first is not None and last is not None:
            a, b, c, d = first
            e, f, g, h = last
            if 0 <= a <= e < _MOST and 0 <= b <= f < _MOST and 0 <= c <= g < _MOST and 0 <= d <= h < _MOST:
                return Box((a, b, c, d), (e, f, g, h))
        return self.note_box(low, high, f"{place}/{name}" if name in ("lower", "upper") else place)

    def note_box(self, low: Any, high: Any, place: str) -> Box:
        """Add a finding for two corners that make no box, and return a box of one element in its place."""
        problem = f"{describe(low)} to {describe(high)} is not a box: four integers each, 0 <= lower <= upper"
        self.note_finding("G003", place, problem)
        return NOWHERE
