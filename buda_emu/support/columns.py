"""Results as tables of columns: a column is declared once, and terminal tables, rows, CSV, JSON, pages and JSON schemas
are made from it.

`Columns` describe the records of one kind. A column has a key, a type, and a function that gets its value; one with a
title is shown to people. The modules that draw (`report.terminal.text.column_table`, `report.pages.engine.page_table`)
and the one that makes schemas (`report.machine_readable.schema`) read these declarations.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, is_dataclass, replace
from io import StringIO
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar, cast, get_type_hints

from buda_emu.support.lazy import lazy
from buda_emu.support.records import dataclass
from buda_emu.support.version import RESULT_VERSION

if TYPE_CHECKING:
    import csv
else:
    csv = lazy("csv")

T = TypeVar("T")
U = TypeVar("U")
View = Literal["rows", "terminal", "markdown", "page", "json"]
"""A form of output that may show a column: "rows" are plain rows and CSV, "terminal", "markdown" and "page" tables for
people, "json" is JSON with its schema."""
SHOWN: Final[tuple[View, ...]] = ("terminal", "markdown", "page")
"""The views for people."""
EVERYWHERE: Final[tuple[View, ...]] = ("rows", *SHOWN, "json")
DATA: Final[tuple[View, ...]] = ("rows", "json")
"""The views for programs."""
Look = Literal["name", "figure", "word", "words", "verdict", "status"]
"""The look of a column's cells.

A "name" may be cut, a "figure" stands to the right and is sorted by its value, a "word" is never cut, "words" are
sentences that wrap. A "verdict" is a truth value and a "status" a word for the end of a test, both in colour.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Column(Generic[T]):
    """One column of the records of a result.

    `key` names it in data and `title` heads it for people; `get` returns the value of a record. `kind` is the type of
    the value for the schema: a type, `Columns` for an object inside, a list of `Columns` for a list of objects, a dict
    for an object with these keys, or a tuple of alternatives. For people, `text` makes a text of the value, or `shown`
    one of the whole record where the value does not suffice. `views` are the outputs that have the column. A page sorts
    by the value, with `missing` in place of None; `choose` lets its reader restrict the rows to one value; `tip`
    explains the heading. An `optional` column is left out of JSON where its value is None.
    """

    key: str
    kind: Any
    get: Callable[[T], Any]
    title: str = ""
    text: Callable[[Any], str] = str
    shown: Callable[[T], str] | None = None
    look: Look = "name"
    views: tuple[View, ...] = EVERYWHERE
    missing: float = -1.0
    choose: bool = False
    tip: str = ""
    optional: bool = False

    @property
    def name(self) -> str:
        """The name by which code refers to the column."""
        return self.key or self.title

    def cell(self, record: T) -> str:
        """Return the text of a record's cell."""
        if self.shown is not None:
            return self.shown(record)
        return self.text(self.get(record))


def figure(key: str, title: str, get: Callable[[T], Any], text: Callable[[Any], str] = str, **other: Any) -> Column[T]:
    """Return a column of numbers, to the right and sorted by value: a `Column` declared in one line, with `float |
    None` as its type unless `kind` is among the other fields."""
    return Column(key, other.pop("kind", float | None), get, title=title, text=text, look="figure", **other)


class Columns(Generic[T]):
    """The columns of the records of one kind, in their order.

    A part may be a dataclass or named tuple, which stands for a column for each of its fields; a column of the same key
    takes the place of the field. Schemas define columns with a `name` once and refer to them.
    """

    def __init__(self, *parts: "Column[T] | type[Any]", name: str = "") -> None:
        self.name: Final = name
        self._parts = parts
        self._columns: tuple[Column[T], ...] | None = None

    @property
    def listed(self) -> tuple[Column[T], ...]:
        """All columns in order. A column that is declared by itself replaces that of a record's field of the same
        key."""
        if self._columns is None:
            declared = {part.key: part for part in self._parts if isinstance(part, Column)}
            columns: list[Column[T]] = []
            for part in self._parts:
                if isinstance(part, Column):
                    columns.append(part)
                else:
                    columns += [declared.get(column.key, column) for column in _columns_of_fields(part)]
            columns = list(dict.fromkeys(columns))
            self._columns = tuple(columns)
        return self._columns

    def seen_in(self, view: View, without: Collection[str] = ()) -> list[Column[T]]:
        """Return the columns that an output of the form `view` has, in order, but those whose names are in `without`.
        Views for people have columns with a title, views for programs columns with a key."""
        by_title = view in SHOWN
        return [
            column
            for column in self.listed
            if view in column.views and (column.title if by_title else column.key) and column.name not in without
        ]

    def row(self, record: T) -> dict[str, Any]:
        """Return the values of a record by key, for `pandas.DataFrame` and CSV."""
        return {column.key: column.get(record) for column in self.seen_in("rows")}

    def as_json(self, record: T) -> dict[str, Any]:
        """Return a record as plain data for JSON."""
        content: dict[str, Any] = {}
        for column in self.seen_in("json"):
            value = column.get(record)
            if value is not None or not column.optional:
                content[column.key] = _plain_data(column.kind, value)
        return content

    def document(self, record: T) -> dict[str, Any]:
        """Return a record as a JSON document, with `schema_version`."""
        return {"schema_version": RESULT_VERSION, **self.as_json(record)}

    def within(
        self, _outer: type[U], get: Callable[[U], T], views: tuple[View, ...] = EVERYWHERE
    ) -> "tuple[Column[U], ...]":
        """Return these columns for an outer kind of record that holds one of this kind, so that its `Columns` can
        include them (`*INNER.within(...)`); `get` takes the inner record from the outer one. They are shown in
        `views`."""
        return tuple(replace(_column_of_outer(column, get), views=views) for column in self.listed)


def csv_text(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as `Columns.row` makes them as CSV with a header; there is at least one, and all have its keys."""
    listed = list(rows)
    stream = StringIO()
    writer = csv.DictWriter(stream, list(listed[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(listed)
    return stream.getvalue()


def _column_of_outer(column: Column[T], get: Callable[[U], T]) -> "Column[U]":
    """Return a column for outer records that shows what `column` shows of the inner record, which `get` takes from the
    outer one."""
    value_of = column.get

    def get_inside(record: U) -> Any:
        """Return the value of the record inside."""
        return value_of(get(record))

    return cast("Column[U]", replace(column, get=get_inside))


def _columns_of_fields(kind: type[Any]) -> list[Column[Any]]:
    """Return a column for each field of a dataclass or named tuple. The types are those of its annotations."""
    return [Column(name, hint, attrgetter(name)) for name, hint in annotations_of(kind).items()]


def annotations_of(kind: type[Any]) -> dict[str, Any]:
    """Return the types of the fields of a class. A name that is missing at run time is taken for numpy's `np` or
    `NDArray`."""
    try:
        return get_type_hints(kind)
    except NameError:
        import numpy as np
        from numpy.typing import NDArray

        return get_type_hints(kind, localns={"np": np, "NDArray": NDArray})


def _plain_data(kind: Any, value: Any) -> Any:
    """Return a column's value as plain data for JSON; `kind` tells how it is nested: (kind,) optional, [kind] a list,
    {name: kind} a map, Columns a record."""
    if isinstance(kind, tuple):
        return None if value is None else _plain_data(cast("tuple[Any, ...]", kind)[0], value)
    if isinstance(kind, Columns):
        return cast("Columns[Any]", kind).as_json(value)
    if isinstance(kind, dict):
        kinds = cast("dict[str, Any]", kind)
        return {name: _plain_data(kinds[name], element) for name, element in value.items()}
    if isinstance(kind, list):
        (inner,) = cast("list[Any]", kind)
        return [_plain_data(inner, element) for element in value]
    return _plain_value(value)


def _plain_value(value: Any) -> Any:
    """Return a value that has no columns as plain data: records as dicts, tuples as lists."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, tuple) and hasattr(value, "_asdict"):  # pyright: ignore[reportUnknownArgumentType]
        return _plain_value(cast("Any", value)._asdict())
    if isinstance(value, Mapping):
        return {name: _plain_value(element) for name, element in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_plain_value(element) for element in cast("Iterable[Any]", value)]
    return value
