"""Values of a JSON object, each checked against its type; wrong values are noted and replaced, so reading goes on."""

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, Final, TypeVar

from buda_emu.foreign.gemini.book import BOOK
from buda_emu.foreign.gemini.boxes import ORIGIN, Box
from buda_emu.foreign.gemini.json_values import a_list, an_object, shown, whole_numbers
from buda_emu.foreign.gemini.model import OutKind, PlaceKind, StoreSource, TensorKind
from buda_emu.support.checker import Diagnostic
from buda_emu.support.checker.suggest import near

T = TypeVar("T")
Object = Mapping[str, Any]
NOWHERE = Box(ORIGIN, ORIGIN)
PLACES: Final[tuple[PlaceKind, ...]] = ("core", "DRAM")
TENSORS: Final[tuple[TensorKind, ...]] = ("ifmap", "weight", "ofmap")
OUTS: Final[tuple[OutKind, ...]] = ("weight", "fmap")
STORES: Final[tuple[StoreSource, ...]] = ("DDR", "CORE")
_MOST = 1 << 62  # beyond, sums and products of a file no longer mean bytes or cycles


class Values:
    """Reads keys of objects. `found`: what was wrong, as diagnostics of rules G001 to G003."""

    def __init__(self, path: str = "") -> None:
        self.path = path
        self.found: list[Diagnostic] = []

    def wrong(self, rule: str, place: str, message: str, hint: str = "") -> None:
        """Note a finding."""
        self.found.append(BOOK.diagnostic(self.path, rule, place, message, hint))

    def missing(self, item: Object, key: str, place: str) -> None:
        """Note that a key is not there."""
        self.wrong("G002", place, f"there is no {key!r}", near(key, [str(name) for name in item]))

    def other(self, place: str, key: str, wanted: str, value: Any) -> None:
        """Note that a value is of another type."""
        self.wrong("G002", f"{place}/{key}", f"{key!r} is {wanted}, not {shown(value)}")

    def object(self, value: Any, place: str) -> Object | None:
        """A JSON object; None, noted, for anything else."""
        found = an_object(value)
        if found is not None:
            return found
        self.wrong("G002", place, f"an object is expected, not {shown(value)}")
        return None

    def integer(self, item: Object, key: str, place: str) -> int:
        """An integer, no boolean."""
        if key not in item:
            self.missing(item, key, place)
            return 0
        value = item[key]
        if type(value) is int and -_MOST < value < _MOST:
            return value
        self.other(place, key, "an integer", value)
        return 0

    def number(self, item: Object, key: str, place: str) -> float:
        """A finite number."""
        if key not in item:
            self.missing(item, key, place)
            return 0
        value = item[key]
        if type(value) in (int, float) and -_MOST < value < _MOST and isfinite(value):
            return value
        self.other(place, key, "a number", value)
        return 0

    def text(self, item: Object, key: str, place: str) -> str:
        """A text."""
        if key not in item:
            self.missing(item, key, place)
            return ""
        value = item[key]
        if isinstance(value, str):
            return value
        self.other(place, key, "a text", value)
        return ""

    def flag(self, item: Object, key: str, place: str, default: bool | None = None) -> bool:
        """True or false; `default` where it may be absent."""
        if key not in item:
            if default is None:
                self.missing(item, key, place)
            return bool(default)
        value = item[key]
        if isinstance(value, bool):
            return value
        self.other(place, key, "true or false", value)
        return False

    def word(self, item: Object, key: str, place: str, words: tuple[T, ...]) -> T:
        """One of some words."""
        if key not in item:
            self.missing(item, key, place)
            return words[0]
        value = item[key]
        for known in words:
            if type(value) is str and value == known:
                return known
        wanted = ", ".join(map(str, words))
        hint = near(value, [str(known) for known in words]) if isinstance(value, str) else ""
        self.wrong("G002", f"{place}/{key}", f"{key!r} is one of {wanted}, not {shown(value)}", hint)
        return words[0]

    def integers(self, item: Object, key: str, place: str, *, optional: bool = False) -> tuple[int, ...]:
        """A list of integers."""
        if key not in item:
            if not optional:
                self.missing(item, key, place)
            return ()
        found = whole_numbers(item[key])
        if found is None:
            self.other(place, key, "a list of integers", item[key])
        return tuple(found or ())

    def items(
        self, item: Object, key: str, place: str, read: Callable[["Values", Object, str], T], *, optional: bool = False
    ) -> tuple[T, ...]:
        """A list of objects, each given to `read` with its place. `optional`: may be absent or null."""
        if key not in item:
            if not optional:
                self.missing(item, key, place)
            return ()
        value = a_list(item[key])
        if value is None:
            if not (optional and item[key] is None):
                self.other(place, key, "a list", item[key])
            return ()
        below = f"{place}/{key}/"
        found: list[T] = []
        for number, one in enumerate(value):
            entry = self.object(one, f"{below}{number}")
            if entry is not None:
                found.append(read(self, entry, f"{below}{number}"))
        return tuple(found)

    def box(self, item: Object, place: str, lower: str = "lower", upper: str = "upper") -> Box:
        """A box of two keys (G003)."""
        if lower not in item or upper not in item:
            self.missing(item, lower if lower not in item else upper, place)
            return NOWHERE
        return self.corners(item[lower], item[upper], place, lower)

    def corners(self, low: Any, high: Any, place: str, name: str) -> Box:
        """A box of two lists of four."""
        first = whole_numbers(low, 4)
        last = whole_numbers(high, 4)
        if first is not None and last is not None:
            a, b, c, d = first
            e, f, g, h = last
            if 0 <= a <= e < _MOST and 0 <= b <= f < _MOST and 0 <= c <= g < _MOST and 0 <= d <= h < _MOST:
                return Box((a, b, c, d), (e, f, g, h))
        return self.no_box(low, high, f"{place}/{name}" if name in ("lower", "upper") else place)

    def no_box(self, low: Any, high: Any, place: str) -> Box:
        """Note that something is not a box."""
        said = f"{shown(low)} to {shown(high)} is not a box: four integers each, 0 <= lower <= upper"
        self.wrong("G003", place, said)
        return NOWHERE
