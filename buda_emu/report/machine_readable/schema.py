"""The JSON Schema of report.json and of the output of `buda-emu test --json`, derived from the result classes.

`python -m buda_emu.report.machine_readable.schema` prints it; it is stored in schemas/report.schema.json.
"""

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin, is_typeddict

from buda_emu.report.terminal.case_columns import TABLES
from buda_emu.support.columns import Columns, annotations_of
from buda_emu.support.version import RESULT_VERSION
from buda_emu.testing.verify.result import INLINED, TestRun

_PLAIN: Mapping[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    float: {"type": ["number", "null"]},  # strict JSON has no NaN and no infinity
    Any: {},
    dict[str, Any]: {"type": "object"},
    None: {"type": "null"},
    NoneType: {"type": "null"},
}


def schema() -> dict[str, Any]:
    """Return the JSON Schema of the results of a test run, report.json."""
    return schema_of(TestRun, "Results of buda-emu test")


def schema_of(kind: type, title: str, without: Iterable[str] = ()) -> dict[str, Any]:
    """Return the JSON Schema of a dataclass as plain data with `schema_version`, leaving out the fields named in
    `without`."""
    definitions: dict[str, Any] = {}
    form = class_schema(kind, definitions)
    names = [name for name in form["required"] if name not in without]
    return versioned_schema(title, {name: form["properties"][name] for name in names}, definitions)


class Row:
    """The description of a JSON object in a result: the fields of the dataclasses, mappings or columns in `parts`, and
    named fields with their types. A type may be a `Row`, or a tuple of alternatives."""

    def __init__(self, *parts: type | Mapping[str, Any] | Columns[Any], **named_fields: Any) -> None:
        self.fields: dict[str, Any] = {}
        for part in (*parts, named_fields):
            if isinstance(part, Columns):
                part = {column.key: column.kind for column in part.seen_in("json")}
            elif isinstance(part, type):
                part = annotations_of(part)
            self.fields |= part


class Rows(Row):
    """A list of objects of one form."""


def columns_document(title: str, columns: Columns[Any]) -> dict[str, Any]:
    """Return the JSON Schema of the document that `Columns.document` makes of a record, with `schema_version`."""
    definitions: dict[str, Any] = {}
    form = _object_schema(columns, definitions)
    document = versioned_schema(title, form["properties"], definitions)
    document["required"] = ["schema_version", *form["required"]]
    return document


def document(
    title: str, *parts: type | Mapping[str, Any] | Columns[Any], optional: Iterable[str] = (), **named_fields: Any
) -> dict[str, Any]:
    """Return the JSON Schema of an object with `schema_version` and the fields of a `Row`; all are required but those
    in `optional`."""
    definitions: dict[str, Any] = {}
    properties = {name: _type_schema(kind, definitions) for name, kind in Row(*parts, **named_fields).fields.items()}
    form = versioned_schema(title, properties, definitions)
    form["required"] = [name for name in form["required"] if name not in set(optional)]
    return form


def versioned_schema(
    title: str, properties: dict[str, Any], definitions: dict[str, Any], version: int = RESULT_VERSION
) -> dict[str, Any]:
    """Return the JSON Schema of an object with `schema_version` and these properties, all of which are required."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "type": "object",
        "properties": {"schema_version": {"const": version}, **properties},
        "required": ["schema_version", *properties],
        "$defs": definitions,
    }


def text() -> str:
    """Return the content of schemas/report.schema.json."""
    return json.dumps(schema(), indent=2) + "\n"


def class_schema(kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a dataclass or a named tuple; the classes of its fields are added to `definitions`.
    Fields of an inlined record are among those of the record around it, as are the columns of its table.
    """
    hints = annotations_of(kind)
    inlined = dict.fromkeys(hints, False)
    if is_dataclass(kind):
        inlined = {entry.name: entry.metadata == INLINED for entry in fields(kind)}
    properties: dict[str, Any] = {}
    for name, is_inlined in inlined.items():
        if is_inlined:
            properties |= class_schema(hints[name], definitions)["properties"]
        else:
            properties[name] = _type_schema(hints[name], definitions)
    if kind in TABLES:
        for column in TABLES[kind].seen_in("json"):
            if column.key not in properties:
                properties[column.key] = _type_schema(column.kind, definitions)
    return {"type": "object", "properties": properties, "required": [*properties]}


def _type_schema(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of a type, or of columns, a dict, a list or a tuple of alternatives that a result
    declares; records are added to the definitions."""
    if isinstance(kind, Row | Columns | dict | list | tuple):
        return _declared_schema(kind, definitions)
    if kind in _PLAIN:
        return dict(_PLAIN[kind])
    if is_typeddict(kind):
        return _row_schema(Row(kind), definitions)
    if isinstance(kind, type) and (hasattr(kind, "_fields") or is_dataclass(kind)):
        name = kind.__name__
        if name not in definitions:
            definitions[name] = {}  # so that a class may name itself
            definitions[name] = class_schema(kind, definitions)
        return {"$ref": f"#/$defs/{name}"}
    return _generic_schema(kind, definitions)


def _declared_schema(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a `Row`, of columns, of a dict or list of types, or of a tuple of alternatives."""
    if isinstance(kind, Row):
        return _row_schema(kind, definitions)
    if isinstance(kind, Columns):
        return _columns_schema(cast("Columns[Any]", kind), definitions)
    if isinstance(kind, dict):
        return _row_schema(Row(cast("dict[str, Any]", kind)), definitions)
    if isinstance(kind, list):
        return {"type": "array", "items": _type_schema(cast("list[Any]", kind)[0], definitions)}
    return {"anyOf": [_type_schema(alternative, definitions) for alternative in cast("tuple[Any, ...]", kind)]}


def _columns_schema(columns: Columns[Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with the columns; those that have a name are added to `definitions` and referred
    to."""
    form = _object_schema(columns, definitions)
    if not columns.name:
        return form
    definitions[columns.name] = form
    return {"$ref": f"#/$defs/{columns.name}"}


def _object_schema(columns: Columns[Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with the columns."""
    chosen = columns.seen_in("json")
    properties = {column.key: _type_schema(column.kind, definitions) for column in chosen}
    return {
        "type": "object",
        "properties": properties,
        "required": [column.key for column in chosen if not column.optional],
    }


def _row_schema(row: Row, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with the fields of a row, or of a list of such objects."""
    properties = {name: _type_schema(kind, definitions) for name, kind in row.fields.items()}
    form = {"type": "object", "properties": properties, "required": [*properties]}
    if isinstance(row, Rows):
        return {"type": "array", "items": form}
    return form


def _generic_schema(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a literal, a union, a tuple, a list or a mapping; any other type counts as a numpy array of
    two dimensions. Classes in it are added to `definitions`."""
    origin = get_origin(kind)
    args = get_args(kind)
    if origin is Literal:
        return {"enum": list(args)}
    if origin in (UnionType, Union):
        return {"anyOf": [_type_schema(alternative, definitions) for alternative in args]}
    if origin is list or (origin is tuple and args[-1] is Ellipsis):
        return {"type": "array", "items": _type_schema(args[0], definitions)}
    if origin is tuple:
        items = [_type_schema(entry, definitions) for entry in args]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
    if origin in (Mapping, dict):
        return {"type": "object", "additionalProperties": _type_schema(args[1], definitions)}
    return {"type": "array", "items": {"type": "array", "items": {"type": ["number", "null"]}}}  # a 2-D numpy array


if __name__ == "__main__":
    sys.stdout.write(text())
