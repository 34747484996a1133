"""The JSON Schema of report.json and of what `buda-emu test --json` writes, derived from the result classes.

`python -m buda_emu.report.machine_readable.schema` prints it; it stands in schemas/report.schema.json.
"""

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from buda_emu.verify.result import SCHEMA_VERSION, TestRun

_PLAIN: Mapping[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    float: {"type": ["number", "null"]},  # strict JSON has no NaN and no infinity
    Any: {},
    NoneType: {"type": "null"},
}


def schema() -> dict[str, Any]:
    """Of one test run."""
    return schema_of(TestRun, "Results of buda-emu test", SCHEMA_VERSION)


def schema_of(kind: type, title: str, version: int, without: Iterable[str] = ()) -> dict[str, Any]:
    """Of a dataclass as plain data with its version; `without`: fields that are no part of it."""
    definitions: dict[str, Any] = {}
    found = object_of(kind, definitions)
    names = [name for name in found["required"] if name not in without]
    return versioned(title, version, {name: found["properties"][name] for name in names}, definitions)


def versioned(title: str, version: int, properties: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Of an object with a version and these fields, all of which it has."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "type": "object",
        "properties": {"schema_version": {"const": version}, **properties},
        "required": ["schema_version", *properties],
        "$defs": definitions,
    }


def text() -> str:
    """As it stands in schemas/report.schema.json."""
    return json.dumps(schema(), indent=2) + "\n"


def object_of(kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    """Of a dataclass; classes that its fields name go into `definitions`."""
    hints = get_type_hints(kind)
    names = [item.name for item in fields(kind)]
    properties = {name: _of(hints[name], definitions) for name in names}
    return {"type": "object", "properties": properties, "required": names}


def _of(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    if kind in _PLAIN:
        return dict(_PLAIN[kind])
    if is_dataclass(kind) and isinstance(kind, type):
        if kind.__name__ not in definitions:
            definitions[kind.__name__] = {}  # so that a class may name itself
            definitions[kind.__name__] = object_of(kind, definitions)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    origin, args = get_origin(kind), get_args(kind)
    if origin is Literal:
        return {"enum": list(args)}
    if origin is UnionType:
        return {"anyOf": [_of(item, definitions) for item in args]}
    if origin is tuple and args[-1] is Ellipsis:
        return {"type": "array", "items": _of(args[0], definitions)}
    if origin is tuple:
        items = [_of(item, definitions) for item in args]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
    if origin is Mapping:
        return {"type": "object", "additionalProperties": _of(args[1], definitions)}
    return {"type": "array", "items": {"type": "array", "items": {"type": ["number", "null"]}}}  # a 2-D numpy array


if __name__ == "__main__":
    sys.stdout.write(text())
