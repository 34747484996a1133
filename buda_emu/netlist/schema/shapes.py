"""Building blocks: scalars as the reader takes them, and one shape for each kind of field."""

import json
from collections.abc import Callable
from typing import Any, TypeAlias

from buda_emu.netlist.fields import FIDELITIES, Field, Table
from buda_emu.netlist.scalars import BOOLS, INT32_MAX, INT32_MIN, UINT32_MAX
from buda_emu.spec.archs import ARCHS
from buda_emu.spec.blocking import LEGAL_TILE_DIMS
from buda_emu.spec.formats import NETLIST_FORMATS

Schema: TypeAlias = dict[str, Any]

# Where a YAML parser leaves a number or boolean as text (quoted, `1e-3`, `y`), the pattern says what the reader takes.
_INT_TEXT = r"^[+-]?(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)\s*$"
_FLOAT_TEXT = r"^[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|\.(inf|Inf|INF)|\.(nan|NaN|NAN))\s*$"


def ref(name: str) -> Schema:
    """A reference to a definition."""
    return {"$ref": f"#/$defs/{name}"}


def without(table: Table, *names: str) -> Table:
    """A table less some fields."""
    return {name: field for name, field in table.items() if name not in names}


def object_of(table: Table, doc: str, **more: Any) -> Schema:
    """A closed object with the fields of a table."""
    required = [field.name for field in table.values() if field.required]
    return {
        "description": doc,
        "type": "object",
        **({"required": required} if required else {}),
        "properties": {field.name: _field(field) for field in table.values()},
        "additionalProperties": False,
        **more,
    }


def _field(field: Field) -> Schema:
    form: Schema = {"description": field.doc, **_SHAPES[field.kind](field)}
    if field.default not in (None, -1, "", (), {}, (0, 0), (-1, -1)) and not field.required:
        form["default"] = plain(field.default)
    if field.example is not None:
        form["examples"] = [field.example]
    return form


def plain(value: Any) -> Any:
    """A value as JSON has it: tuples become lists."""
    return json.loads(json.dumps(value))


def scalars() -> Schema:
    """Definitions of the scalars (NETLIST 1.1, 11.3 C12)."""
    integer = {"type": "integer", "minimum": INT32_MIN, "maximum": INT32_MAX}
    address = {"type": "integer", "minimum": 0, "maximum": UINT32_MAX}
    return {
        "integer": {"anyOf": [integer, {"type": "string", "pattern": _INT_TEXT}]},
        "address": {"anyOf": [address, {"type": "string", "pattern": _INT_TEXT}]},
        "count": {"anyOf": [{**integer, "minimum": 1}, {"type": "string", "pattern": _INT_TEXT}]},
        "boolean": {"anyOf": [{"type": "boolean"}, {"enum": [*BOOLS]}]},
        "number": {"anyOf": [{"type": "number"}, {"type": "string", "pattern": _FLOAT_TEXT}]},
        "name": {"type": ["string", "integer", "number", "boolean"]},
        "format": {"enum": [*NETLIST_FORMATS]},
        "value": {
            "description": "a boolean, a number, or a variable such as $lptr",
            "type": ["boolean", "integer", "string", "null"],
        },
    }


def list_of(item: Schema, least: int | None = None, most: int | None = None) -> Schema:
    """A list of items, with the least and the greatest length."""
    form: Schema = {"type": "array", "items": item}
    if least is not None:
        form["minItems"] = least
    if most is not None:
        form["maxItems"] = most
    return form


def _one_or_list(item: Schema) -> Schema:
    return {"anyOf": [item, list_of(item, 1)]}


def _arch(_: Field) -> Schema:
    words = [name for arch in ARCHS for name in (arch, arch.capitalize(), arch.upper())]
    return _one_or_list({"enum": [*words, "Wormhole_B0"]})


def _pair(field: Field) -> Schema:
    return list_of(ref("integer" if field.name == "grid_loc" else "count"), 2, 2)


def _int(field: Field) -> Schema:
    # Sizes must be positive; for the rest the reader takes any integer.
    return ref("count" if field.name in ("entries", "t", "input_count") else "integer")


_SHAPES: dict[str, Callable[[Field], Schema]] = {
    "int": _int,
    "bool": lambda _: ref("boolean"),
    "float": lambda _: ref("number"),
    "text": lambda _: ref("name"),
    "word": lambda field: {"enum": [*field.words]},
    "format": lambda _: ref("format"),
    "formats": lambda _: list_of(ref("format")),
    "fidelity": lambda _: {"enum": [*FIDELITIES]},
    "pair": _pair,
    "ints": lambda _: list_of(ref("integer")),
    "texts": lambda _: list_of(ref("name")),
    "names": lambda _: list_of({"type": "string", "pattern": "^(input.*[0-9]|intermed.*[0-9]|dest)"}, 1),
    "tile_dim": lambda _: {"enum": [list(dims) for dims in LEGAL_TILE_DIMS]},
    "device": lambda _: _one_or_list(ref("integer")),
    "arch": _arch,
    "loc": lambda field: {"enum": [*field.words]},
    "dram": lambda _: list_of({"type": "array", "prefixItems": [ref("integer"), ref("address")], "minItems": 2}, 1),
    "host": lambda _: list_of(
        {
            "anyOf": [
                ref("address"),
                {"type": "array", "prefixItems": [ref("integer"), ref("address")], "minItems": 2, "maxItems": 2},
            ]
        },
        1,
    ),
    "tms": lambda _: ref("queue_tms"),
    "forks": lambda _: list_of({"type": "object", "minProperties": 1, "maxProperties": 1}),
    "attributes": lambda _: {"type": "object"},
    "value": lambda _: ref("value"),
}
