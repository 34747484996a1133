"""The JSON schema of netlists, for editors: `python -m buda_emu.netlist.schema > schemas/netlist.schema.json`.

Made from the tables that the reader uses (`fields`, `spec.attributes`, `spec.ops`, `spec.formats`), so that it cannot say
something else. It sees values, not names: what depends on several objects is left to the rules (`buda-emu check`). It is
stricter than the reader about words that the reader drops without effect (`relu_mode: foo`).
"""

import json
import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from buda_emu.netlist.fields import (
    DEVICE_FIELDS,
    EXECUTE_FIELDS,
    FIDELITIES,
    FUSED_FIELDS,
    GRAPH_FIELDS,
    INPUT_FIELDS,
    INSTRUCTIONS,
    OP_FIELDS,
    OPCODES,
    PAD_FIELDS,
    QUEUE_FIELDS,
    SECTIONS,
    SETTING_FIELDS,
    SUB_OP_FIELDS,
    Field,
    Table,
)
from buda_emu.netlist.reader.attributes import MAX_SPLICE_INPUTS
from buda_emu.netlist.reader.tms import BROADCAST_DIMS, SLICES
from buda_emu.netlist.scalars import BOOLS, INT32_MAX, INT32_MIN, UINT32_MAX
from buda_emu.spec.archs import ARCHS
from buda_emu.spec.attributes import ATTRIBUTES, AttributeSpec
from buda_emu.spec.blocking import LEGAL_TILE_DIMS
from buda_emu.spec.formats import NETLIST_FORMATS
from buda_emu.spec.ops import OP_TYPES

Schema: TypeAlias = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"

# Where a YAML parser leaves a number or boolean as text (quoted, `1e-3`, `y`), the pattern says what the reader takes.
_INT_TEXT = r"^[+-]?(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)\s*$"
_FLOAT_TEXT = r"^[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|\.(inf|Inf|INF)|\.(nan|NaN|NAN))\s*$"


def schema() -> Schema:
    """The whole schema as plain data."""
    return {
        "$schema": DIALECT,
        "title": "BUDA netlist",
        "description": "Queues, graphs of ops and programs for a tiled device. Sections are read in document order.",
        "type": "object",
        "required": ["devices", "queues", "graphs", "programs"],
        "properties": {
            "devices": _object(DEVICE_FIELDS, SECTIONS["devices"]),
            "queues": _map_of("queue", SECTIONS["queues"], least=1),
            "graphs": _map_of("graph", SECTIONS["graphs"], least=1),
            "programs": {"description": SECTIONS["programs"], "type": "array", "minItems": 1, "items": _ref("program")},
            "fused_ops": {**_map_of("fused_op", SECTIONS["fused_ops"]), "type": ["object", "null"]},
            "test-config": _free("inputs and comparison of a test; not part of the netlist language"),
            "performance-check": _free("expected figures of a performance test; not part of the netlist language"),
        },
        "$defs": {
            **_scalars(),
            "queue": _queue(),
            "graph": _graph(),
            "op": _op(),
            "pad": _object(PAD_FIELDS, INPUT_FIELDS["input_N_pad"].doc),
            "unpad": _object(_without(PAD_FIELDS, "pad_value"), INPUT_FIELDS["input_N_unpad"].doc),
            **_tms(),
            **_attributes(),
            **_fused(),
            **_programs(),
        },
    }


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _free(doc: str) -> Schema:
    return {"description": doc, "type": ["object", "null"]}


def _map_of(name: str, doc: str, least: int = 0) -> Schema:
    limit = {"minProperties": least} if least else {}
    return {"description": doc, "type": "object", **limit, "additionalProperties": _ref(name)}


def _without(table: Table, *names: str) -> Table:
    return {name: field for name, field in table.items() if name not in names}


def _object(table: Table, doc: str, **more: Any) -> Schema:
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
        form["default"] = _plain(field.default)
    if field.example is not None:
        form["examples"] = [field.example]
    return form


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value))  # tuples become lists


def _scalars() -> Schema:
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


def _list(item: Schema, least: int | None = None, most: int | None = None) -> Schema:
    form: Schema = {"type": "array", "items": item}
    if least is not None:
        form["minItems"] = least
    if most is not None:
        form["maxItems"] = most
    return form


def _one_or_list(item: Schema) -> Schema:
    return {"anyOf": [item, _list(item, 1)]}


def _arch(_: Field) -> Schema:
    words = [name for arch in ARCHS for name in (arch, arch.capitalize(), arch.upper())]
    return _one_or_list({"enum": [*words, "Wormhole_B0"]})


def _pair(field: Field) -> Schema:
    return _list(_ref("integer" if field.name == "grid_loc" else "count"), 2, 2)


def _int(field: Field) -> Schema:
    # Sizes must be positive; for the rest the reader takes any integer.
    return _ref("count" if field.name in ("entries", "t", "input_count") else "integer")


_SHAPES: dict[str, Callable[[Field], Schema]] = {
    "int": _int,
    "bool": lambda _: _ref("boolean"),
    "float": lambda _: _ref("number"),
    "text": lambda _: _ref("name"),
    "word": lambda field: {"enum": [*field.words]},
    "format": lambda _: _ref("format"),
    "formats": lambda _: _list(_ref("format")),
    "fidelity": lambda _: {"enum": [*FIDELITIES]},
    "pair": _pair,
    "ints": lambda _: _list(_ref("integer")),
    "texts": lambda _: _list(_ref("name")),
    "names": lambda _: _list({"type": "string", "pattern": "^(input.*[0-9]|intermed.*[0-9]|dest)"}, 1),
    "tile_dim": lambda _: {"enum": [list(dims) for dims in LEGAL_TILE_DIMS]},
    "device": lambda _: _one_or_list(_ref("integer")),
    "arch": _arch,
    "loc": lambda field: {"enum": [*field.words]},
    "dram": lambda _: _list({"type": "array", "prefixItems": [_ref("integer"), _ref("address")], "minItems": 2}, 1),
    "host": lambda _: _list(
        {
            "anyOf": [
                _ref("address"),
                {"type": "array", "prefixItems": [_ref("integer"), _ref("address")], "minItems": 2, "maxItems": 2},
            ]
        },
        1,
    ),
    "tms": lambda _: _ref("queue_tms"),
    "forks": lambda _: _list({"type": "object", "minProperties": 1, "maxProperties": 1}),
    "attributes": lambda _: {"type": "object"},
    "value": lambda _: _ref("value"),
}


def _queue() -> Schema:
    located = [
        {"if": {"properties": {"loc": {"const": word}}, "required": ["loc"]}, "then": {"required": [word]}}
        for word in QUEUE_FIELDS["loc"].words
    ]
    return _object(QUEUE_FIELDS, "a queue or ram", allOf=located)


def _graph() -> Schema:
    graph = _object(GRAPH_FIELDS, "a graph of ops that run together on one chip; every other key is an op")
    graph["additionalProperties"] = _ref("op")
    return graph


def _op() -> Schema:
    """An op; its attributes depend on its type, and only ethernet_datacopy needs no place."""
    by_type = [
        {
            "if": {"properties": {"type": {"enum": types}}, "required": ["type"]},
            "then": {"properties": {"attributes": _ref(name)}},
        }
        for name, types in _attribute_groups().items()
    ]
    place = {
        "if": {"properties": {"type": {"const": "ethernet_datacopy"}}},
        "else": {"required": ["grid_loc"], "properties": {"grid_loc": {"minItems": 2, "maxItems": 2}}},
    }
    op = _object(OP_FIELDS, "an op: what it computes, where it runs, how its result is cut", allOf=[place, *by_type])
    op["required"] = [name for name in op["required"] if name != "grid_loc"]
    op["patternProperties"] = {
        "^input_[0-9]+_tms$": {"description": INPUT_FIELDS["input_N_tms"].doc, **_ref("op_tms")},
        "^input_[0-9]+_pad$": _ref("pad"),
        "^input_[0-9]+_unpad$": _ref("unpad"),
    }
    return op


def _tm(name: str, doc: str, argument: Schema) -> Schema:
    one = {"type": "object", "required": [name], "properties": {name: argument}, "additionalProperties": False}
    return {"description": doc, **one}


def _tms() -> Schema:
    """TM lists of queues, ops and scheduled ops. Any scalar in their place means no TMs."""
    transpose = {"description": "swap rows and columns, tiles and elements", "const": "transpose"}
    broadcast = _tm(
        "broadcast",
        "repeat along rows (r), columns (c) or slices (z) n times",
        {
            "type": "object",
            "minProperties": 1,
            "maxProperties": 1,
            "properties": {dim: _ref("integer") for dim in BROADCAST_DIMS},
            "additionalProperties": False,
            "examples": [{"r": 4}],
        },
    )
    docs = {
        "hslice": "cut the columns into n slices of t",
        "hstack": "put n slices of t side by side",
        "vslice": "cut the rows into n slices of t",
        "vstack": "put n slices of t below each other",
    }
    slices = [_tm(word, docs[word], _ref("integer")) for word in SLICES]
    tile_broadcast = _tm(
        "tile_broadcast", "repeat the first row (r), column (c) or element (rc) in a tile", {"enum": ["r", "c", "rc"]}
    )
    three = [_ref("integer"), _ref("integer"), _ref("number")]
    pad = _tm(
        "pad",
        "append tile rows and columns that hold a value: [rows, columns, value]",
        {"type": "array", "prefixItems": three, "minItems": 3, "maxItems": 3, "examples": [[1, 0, 0.0]]},
    )
    return {
        "queue_tms": _tm_list(broadcast, *slices),
        "op_tms": _tm_list(transpose, broadcast, *slices, pad),
        "scheduled_tms": _tm_list(transpose, broadcast, *slices, tile_broadcast),
    }


def _tm_list(*items: Schema) -> Schema:
    return {
        "anyOf": [{"type": ["null", "string"]}, _list({"anyOf": [*items]})],
        "examples": [[{"broadcast": {"r": 4}}]],
    }


def _attribute_groups() -> dict[str, list[str]]:
    """Op types by the attributes that they may have; a group is named for its first type."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for op in OP_TYPES:
        legal = tuple(name for name, spec in ATTRIBUTES.items() if spec.types is None or op in spec.types)
        groups.setdefault(legal, []).append(op)
    return {f"{types[0]}_attributes": types for types in groups.values()}


def _attributes() -> Schema:
    definitions: Schema = {
        f"attribute_{spec.name}": _attribute(spec) for spec in ATTRIBUTES.values() if spec.kind != "splice"
    }
    splice = ATTRIBUTES["inputs"]
    for name, types in _attribute_groups().items():
        legal = [
            spec.name
            for spec in ATTRIBUTES.values()
            if spec.kind != "splice" and (spec.types is None or types[0] in spec.types)
        ]
        definitions[name] = _attribute_map(legal, f"attributes of {', '.join(types)}", least=1)
        if splice.types is not None and types[0] in splice.types:
            values = _list(_ref("integer"), 3, 3)
            pattern = f"^input[0-{MAX_SPLICE_INPUTS - 1}]$"
            definitions[name]["patternProperties"] = {pattern: {"description": splice.doc, **values}}
    return definitions


def _attribute_map(names: Iterable[str], doc: str, least: int = 0) -> Schema:
    return {
        "description": doc,
        "type": "object",
        **({"minProperties": least} if least else {}),
        "properties": {name: _ref(f"attribute_{name}") for name in names},
        "additionalProperties": False,
    }


def _attribute(spec: AttributeSpec) -> Schema:
    shapes: dict[str, Schema] = {
        "int": _ref("integer"),
        "float": _ref("number"),
        "bool": _ref("boolean"),
        "text": _ref("name"),
        # NETLIST 11.2 B1: frontends write `sfpu_op: invalid` for none
        "word": {"enum": [*spec.words, *(("invalid",) if spec.name == "sfpu_op" else ())]},
        "ints": _list(_ref("integer"), 1),
        "broadcasts": {
            "type": "object",
            "patternProperties": {"^input_[0-9]+$": _ref("integer")},
            "additionalProperties": False,
            "examples": [{"input_1": 4}],
        },
    }
    form: Schema = {"description": spec.doc, **shapes[spec.kind]}
    if spec.default not in ("", (), -1):
        form["default"] = _plain(spec.default)
    return form


def _fused() -> Schema:
    types = [name for name, op in OP_TYPES.items() if op.in_fused]
    legal = [spec.name for spec in ATTRIBUTES.values() if spec.fused_types != ()]
    by_type = [
        {
            "if": {"properties": {"attributes": {"required": [spec.name]}}, "required": ["attributes"]},
            "then": {"properties": {"type": {"enum": [*spec.fused_types]}}},
        }
        for spec in ATTRIBUTES.values()
        if spec.fused_types
    ]
    sub_op = _object(
        SUB_OP_FIELDS, "a scheduled op; t and ublock_order are those of the op that uses it", allOf=by_type
    )
    sub_op["properties"]["type"]["enum"] = types
    sub_op["properties"]["attributes"] = _attribute_map(legal, SUB_OP_FIELDS["attributes"].doc)
    sub_op["patternProperties"] = {
        "^input_[0-9]+_tms$": {"description": INPUT_FIELDS["input_N_tms"].doc, **_ref("scheduled_tms")}
    }
    entry = {"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": _ref("scheduled_op")}
    fused_op = _object(FUSED_FIELDS, "schedules of small ops that run as one op")
    fused_op["properties"]["schedules"] = {"description": FUSED_FIELDS["schedules"].doc, **_list(_list(entry, 1), 1)}
    fused_op["properties"]["intermediates"] |= {"examples": [1]}
    del fused_op["additionalProperties"]  # unknown keys are ignored
    return {"fused_op": fused_op, "scheduled_op": sub_op}


def _programs() -> Schema:
    settings = {
        "description": "{queue: settings} for the queues of the graph",
        "type": ["object", "null"],
        "additionalProperties": _object(SETTING_FIELDS, "pointers and flags of one queue"),
    }
    execute = _object(EXECUTE_FIELDS, INSTRUCTIONS["execute"].doc)
    execute["properties"]["queue_settings"] = settings
    names = _list({"type": "string"})
    operands: dict[str, Schema] = {
        "names": names,
        "declarations": {"anyOf": [names, {"type": "object", "additionalProperties": _ref("value")}]},
        "varinst": {
            "type": "array",
            "prefixItems": [{"type": "string"}, {"enum": [*OPCODES], "description": "; ".join(OPCODES.values())}],
            "items": _ref("value"),
            "minItems": 2,
            "maxItems": 4,
            "examples": [["$lptr", "incwrap", "$c_microbatch_size", 8]],
        },
        "count": _ref("value"),
        "none": {},
        "execute": execute,
    }
    forms = {form.name: {"description": form.doc, **operands[form.operand]} for form in INSTRUCTIONS.values()}
    one = {"type": "object", "minProperties": 1, "maxProperties": 1, "properties": forms, "additionalProperties": False}
    return {
        "program": {
            "description": "{name: [instructions]}",
            "type": "object",
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": {"anyOf": [{"type": "null"}, _list(_ref("instruction"))]},
        },
        "instruction": {"anyOf": [{"const": "endloop", "description": INSTRUCTIONS["endloop"].doc}, one]},
    }


def text() -> str:
    """The schema file."""
    return json.dumps(schema(), indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())
