"""The JSON Schema of report.json and of the output of `buda-emu test --json`, derived from the result classes.

`python -m buda_emu.report.machine_readable.schema` prints it; it is stored in schemas/report.schema.json.
"""

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

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


def _array_names() -> Mapping[str, Any]:
    """Return the names that modules of results import for type checkers alone. Only schemas need numpy."""
    import numpy as np
    from numpy.typing import NDArray

    return {"np": np, "NDArray": NDArray}


def schema() -> dict[str, Any]:
    """Return the schema of one test run."""
    return schema_of(TestRun, "Results of buda-emu test")


def schema_of(kind: type, title: str, without: Iterable[str] = ()) -> dict[str, Any]:
    """Return the schema of a dataclass as plain data with a version, without the fields `without`."""
    definitions: dict[str, Any] = {}
    form = object_of(kind, definitions)
    names = [name for name in form["required"] if name not in without]
    return versioned(title, {name: form["properties"][name] for name in names}, definitions)


class Row:
    """An object inside of a result: the fields of the dataclasses `parts`, and named fields with their types.

    A type may be a `Row`, or a tuple of alternatives.
    """

    def __init__(self, *parts: type | Mapping[str, Any], **named_fields: Any) -> None:
        self.fields: dict[str, Any] = {}
        for part in (*parts, named_fields):
            self.fields |= get_type_hints(part, localns=_array_names()) if isinstance(part, type) else part


class Rows(Row):
    """A list of objects of one form."""


def document(
    title: str, *parts: type | Mapping[str, Any], optional: Iterable[str] = (), **named_fields: Any
) -> dict[str, Any]:
    """Return the schema of a `Row` with a version; all fields are required but those in `optional`."""
    definitions: dict[str, Any] = {}
    properties = {name: _of(kind, definitions) for name, kind in Row(*parts, **named_fields).fields.items()}
    form = versioned(title, properties, definitions)
    form["required"] = [name for name in form["required"] if name not in set(optional)]
    return form


def versioned(
    title: str, properties: dict[str, Any], definitions: dict[str, Any], version: int = RESULT_VERSION
) -> dict[str, Any]:
    """Return the schema of an object with a version and these fields, all of which are required."""
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


def object_of(kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a dataclass or a named tuple; the classes of its fields are added to `definitions`. Fields
    of an inlined record are among those of the record around it."""
    hints = get_type_hints(kind, localns=_array_names())
    if is_dataclass(kind):
        inlined = {entry.name: entry.metadata == INLINED for entry in fields(kind)}
    else:
        inlined = dict.fromkeys(hints, False)
    properties: dict[str, Any] = {}
    for name, is_inlined in inlined.items():
        if is_inlined:
            properties |= object_of(hints[name], definitions)["properties"]
        else:
            properties[name] = _of(hints[name], definitions)
    return {"type": "object", "properties": properties, "required": [*properties]}


def _of(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    if isinstance(kind, Row):
        fields_of_it = {name: _of(inner, definitions) for name, inner in kind.fields.items()}
        row = {"type": "object", "properties": fields_of_it, "required": [*fields_of_it]}
        return {"type": "array", "items": row} if isinstance(kind, Rows) else row
    if isinstance(kind, tuple):
        return {"anyOf": [_of(alternative, definitions) for alternative in cast("tuple[Any, ...]", kind)]}
    if kind in _PLAIN:
        return dict(_PLAIN[kind])
    if isinstance(kind, type) and (hasattr(kind, "_fields") or is_dataclass(kind)):
        name = kind.__name__
        if name not in definitions:
            definitions[name] = {}  # so that a class may name itself
            definitions[name] = object_of(kind, definitions)
        return {"$ref": f"#/$defs/{name}"}
    origin = get_origin(kind)
    args = get_args(kind)
    if origin is Literal:
        return {"enum": list(args)}
    if origin is UnionType or origin is Union:
        return {"anyOf": [_of(alternative, definitions) for alternative in args]}
    if origin is tuple and args[-1] is Ellipsis:
        return {"type": "array", "items": _of(args[0], definitions)}
    if origin is tuple:
        items = [_of(alternative, definitions) for alternative in args]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
    if origin is list:
        return {"type": "array", "items": _of(args[0], definitions)}
    if origin is Mapping or origin is dict:
        return {"type": "object", "additionalProperties": _of(args[1], definitions)}
    return {"type": "array", "items": {"type": "array", "items": {"type": ["number", "null"]}}}  # a 2-D numpy array


if __name__ == "__main__":
    sys.stdout.write(text())
