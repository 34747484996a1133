"""Values out of a file that nobody has checked: each with its type and range, or a refusal that names it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from buda_emu.errors import HostError

Refuse = Callable[[str], HostError]
MOST = 1 << 62
"""Of what is counted: more were never pushed."""


class Fields:
    """A JSON object; `where` is its place for error texts."""

    def __init__(self, value: Any, where: str, refuse: Refuse) -> None:
        self._where = where
        self._refuse = refuse
        if not isinstance(value, dict):
            raise self.bad("is not an object")
        self._value: dict[str, Any] = value

    def bad(self, what: str) -> HostError:
        """The error to raise."""
        return self._refuse(f"{self._where or 'header'} {what}")

    def names(self) -> list[str]:
        """The keys."""
        return list(self._value)

    def at(self, key: str) -> "Fields":
        """An object in it."""
        return Fields(self._get(key), self._path(key), self._refuse)

    def integer(self, key: str, low: int, high: int) -> int:
        """low..high inclusive."""
        value = self._get(key)
        if type(value) is not int or not low <= value <= high:
            raise self._refuse(f"{self._path(key)} is not an integer from {low} to {high}")
        return value

    def flag(self, key: str) -> bool:
        """True or false."""
        value = self._get(key)
        if type(value) is not bool:
            raise self._refuse(f"{self._path(key)} is not true or false")
        return value

    def text(self, key: str, among: Mapping[str, Any] | Sequence[str] | None = None) -> str:
        """A string, one of `among` where that is given."""
        value = self._get(key)
        if not isinstance(value, str) or (among is not None and value not in among):
            raise self._refuse(f"{self._path(key)} is not a known word")
        return value

    def rows(self, key: str, *kinds: type) -> list[tuple[Any, ...]]:
        """A list of lists, each with one value of each of these types."""
        rows = self._get(key)
        wrong = self._refuse(f"{self._path(key)} is not a list of {[kind.__name__ for kind in kinds]}")
        if not isinstance(rows, list):
            raise wrong
        found: list[tuple[Any, ...]] = []
        for row in cast("list[object]", rows):
            if not isinstance(row, list):
                raise wrong
            items = tuple(cast("list[object]", row))
            if [type(item) for item in items] != list(kinds):
                raise wrong
            found.append(items)
        return found

    def _get(self, key: str) -> Any:
        if key not in self._value:
            raise self._refuse(f"{self._path(key)} is missing")
        return self._value[key]

    def _path(self, key: str) -> str:
        return f"{self._where}.{key}" if self._where else key
