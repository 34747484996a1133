"""Schemas of queues, graphs, ops, attributes, fused ops and programs, and the shapes that they are made of."""

import json
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any, TypeAlias

from buda_emu.netlist.fields import (
    EXECUTE_FIELDS,
    FIDELITY_WORDS,
    FUSED_FIELDS,
    GRAPH_FIELDS,
    INPUT_FIELDS,
    INSTRUCTIONS,
    OP_FIELDS,
    QUEUE_FIELDS,
    SETTING_FIELDS,
    SUB_OP_FIELDS,
    Field,
    Table,
)
from buda_emu.netlist.reader.attributes import MAX_SPLICE_INPUTS
from buda_emu.netlist.reader.queues import BROADCAST_DIMS, SLICES
from buda_emu.netlist.yaml_text import BOOLS, INT32_MAX, INT32_MIN, UINT32_MAX
from buda_emu.spec.archs import ARCHS
from buda_emu.spec.attributes import ATTRIBUTES, AttributeSpec
from buda_emu.spec.blocking import LEGAL_TILE_DIMS
from buda_emu.spec.formats import NETLIST_FORMATS
from buda_emu.spec.ops import OP_TYPES
from buda_emu.spec.varinst import OPCODES

Schema: TypeAlias = dict[str, Any]

# Where a YAML parser leaves a number or boolean as text (quoted, `1e-3`, `y`), the pattern says what the reader takes.
_INT_TEXT = r"^[+-]?(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)\s*$"
_FLOAT_TEXT = r"^[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|\.(inf|Inf|INF)|\.(nan|NaN|NAN))\s*$"


def ref(name: str) -> Schema:
    """Return a reference to the definition `name` of the schema."""
    return {"$ref": f"#/$defs/{name}"}


def without(table: Table, *names: str) -> Table:
    """Return a table without some of its fields."""
    return {name: field for name, field in table.items() if name not in names}


def object_of(table: Table, doc: str, **keywords: Any) -> Schema:
    """Return the schema of a closed object with the fields of a table and the description `doc`; `keywords` are
    further keys of the schema.
    """
    required = [field.name for field in table.values() if field.required]
    return {
        "description": doc,
        "type": "object",
        **({"required": required} if required else {}),
        "properties": {field.name: _field_schema(field) for field in table.values()},
        "additionalProperties": False,
        **keywords,
    }


def _field_schema(field: Field) -> Schema:
    """Return the schema of a field: the shape of its kind, with description, default and example."""
    form: Schema = {"description": field.doc, **_SHAPES[field.kind](field)}
    if field.default not in (None, -1, "", (), {}, (0, 0), (-1, -1)) and not field.required:
        form["default"] = plain(field.default)
    if field.example is not None:
        form["examples"] = [field.example]
    return form


def plain(value: Any) -> Any:
    """Return a value as JSON has it, with lists instead of tuples."""
    return json.loads(json.dumps(value))


def scalars() -> Schema:
    """Return the definitions of the scalars, such as "integer" and "format" (NETLIST 1.1, 11.3 C12)."""
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


def list_of(entry: Schema, least: int | None = None, greatest: int | None = None) -> Schema:
    """Return the schema of a list of `entry`, with the least and the greatest length; None sets no bound."""
    form: Schema = {"type": "array", "items": entry}
    if least is not None:
        form["minItems"] = least
    if greatest is not None:
        form["maxItems"] = greatest
    return form


def _one_or_list(entry: Schema) -> Schema:
    """Return the schema of a value, or of a list of at least one such value."""
    return {"anyOf": [entry, list_of(entry, 1)]}


def _arch_schema(_: Field) -> Schema:
    """Return the schema of `arch`: one architecture or a list of them. The reader takes any case, the schema lower,
    upper and capitalised."""
    words = list(chain.from_iterable((arch, arch.capitalize(), arch.upper()) for arch in ARCHS))
    return _one_or_list({"enum": [*words, "Wormhole_B0"]})


def _pair_schema(field: Field) -> Schema:
    """Return the schema of two sizes, each at least 1; for a place, which may be 0, of two integers."""
    return list_of(ref("integer" if field.name == "grid_loc" else "count"), 2, 2)


def _int_schema(field: Field) -> Schema:
    """Return the schema of an integer field: at least 1 for counts, any for the others."""
    # Sizes must be positive; for the rest the reader takes any integer.
    return ref("count" if field.name in ("entries", "t", "input_count") else "integer")


_SHAPES: dict[str, Callable[[Field], Schema]] = {
    "int": _int_schema,
    "bool": lambda _: ref("boolean"),
    "float": lambda _: ref("number"),
    "text": lambda _: ref("name"),
    "word": lambda field: {"enum": [*field.words]},
    "format": lambda _: ref("format"),
    "formats": lambda _: list_of(ref("format")),
    "fidelity": lambda _: {"enum": [*FIDELITY_WORDS]},
    "pair": _pair_schema,
    "ints": lambda _: list_of(ref("integer")),
    "texts": lambda _: list_of(ref("name")),
    "names": lambda _: list_of({"type": "string", "pattern": "^(input.*[0-9]|intermed.*[0-9]|dest)"}, 1),
    "tile_dim": lambda _: {"enum": [list(dims) for dims in LEGAL_TILE_DIMS]},
    "device": lambda _: _one_or_list(ref("integer")),
    "arch": _arch_schema,
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


def queue() -> Schema:
    """Return the schema of a queue; `loc` decides which list of allocations it needs."""
    located = [
        {"if": {"properties": {"loc": {"const": word}}, "required": ["loc"]}, "then": {"required": [word]}}
        for word in QUEUE_FIELDS["loc"].words
    ]
    return object_of(QUEUE_FIELDS, "a queue or ram", allOf=located)


def graph() -> Schema:
    """Return the schema of a graph; every key but two names an op."""
    graph = object_of(GRAPH_FIELDS, "a graph of ops that run together on one chip; every other key is an op")
    graph["additionalProperties"] = ref("op")
    return graph


def op() -> Schema:
    """Return the schema of an op; its attributes depend on its type, and only ethernet_datacopy needs no place."""
    by_type = [
        {
            "if": {"properties": {"type": {"enum": types}}, "required": ["type"]},
            "then": {"properties": {"attributes": ref(name)}},
        }
        for name, types in _attribute_groups().items()
    ]
    place = {
        "if": {"properties": {"type": {"const": "ethernet_datacopy"}}},
        "else": {"required": ["grid_loc"], "properties": {"grid_loc": {"minItems": 2, "maxItems": 2}}},
    }
    op = object_of(OP_FIELDS, "an op: what it computes, where it runs, how its result is cut", allOf=[place, *by_type])
    op["required"] = [name for name in op["required"] if name != "grid_loc"]
    op["patternProperties"] = {
        "^input_[0-9]+_tms$": {"description": INPUT_FIELDS["input_N_tms"].doc, **ref("op_tms")},
        "^input_[0-9]+_pad$": ref("pad"),
        "^input_[0-9]+_unpad$": ref("unpad"),
    }
    return op


def _tm_schema(name: str, doc: str, argument: Schema) -> Schema:
    """Return the schema of a TM with an argument, `{name: argument}`."""
    form = {"type": "object", "required": [name], "properties": {name: argument}, "additionalProperties": False}
    return {"description": doc, **form}


def tm_lists() -> Schema:
    """Return the definitions of the TM lists of queues, ops and scheduled ops. Any scalar in their place means no
    TMs."""
    transpose = {"description": "swap rows and columns, tiles and elements", "const": "transpose"}
    broadcast = _tm_schema(
        "broadcast",
        "repeat along rows (r), columns (c) or slices (z) n times",
        {
            "type": "object",
            "minProperties": 1,
            "maxProperties": 1,
            "properties": {dim: ref("integer") for dim in BROADCAST_DIMS},
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
    slices = [_tm_schema(word, docs[word], ref("integer")) for word in SLICES]
    tile_broadcast = _tm_schema(
        "tile_broadcast", "repeat the first row (r), column (c) or element (rc) in a tile", {"enum": ["r", "c", "rc"]}
    )
    three = [ref("integer"), ref("integer"), ref("number")]
    pad = _tm_schema(
        "pad",
        "append tile rows and columns that hold a value: [rows, columns, value]",
        {"type": "array", "prefixItems": three, "minItems": 3, "maxItems": 3, "examples": [[1, 0, 0.0]]},
    )
    return {
        "queue_tms": _tm_list_schema(broadcast, *slices),
        "op_tms": _tm_list_schema(transpose, broadcast, *slices, pad),
        "scheduled_tms": _tm_list_schema(transpose, broadcast, *slices, tile_broadcast),
    }


def _tm_list_schema(*items: Schema) -> Schema:
    """Return the schema of a list of these TMs; null and words stand for a list without any."""
    return {
        "anyOf": [{"type": ["null", "string"]}, list_of({"anyOf": [*items]})],
        "examples": [[{"broadcast": {"r": 4}}]],
    }


def _attribute_groups() -> dict[str, list[str]]:
    """Return the op types by the attributes that they may have; a group is named for its first type."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for op in OP_TYPES:
        legal = tuple(name for name, spec in ATTRIBUTES.items() if spec.types is None or op in spec.types)
        groups.setdefault(legal, []).append(op)
    return {f"{types[0]}_attributes": types for types in groups.values()}


def attributes() -> Schema:
    """Return the definitions of every attribute, and of the legal attributes of each group of op types."""
    definitions: Schema = {
        f"attribute_{spec.name}": _attribute_schema(spec) for spec in ATTRIBUTES.values() if spec.kind != "splice"
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
            values = list_of(ref("integer"), 3, 3)
            pattern = f"^input[0-{MAX_SPLICE_INPUTS - 1}]$"
            definitions[name]["patternProperties"] = {pattern: {"description": splice.doc, **values}}
    return definitions


def _attribute_map(names: Iterable[str], doc: str, least: int = 0) -> Schema:
    """Return the schema of a map of these attributes and no others, with at least `least` of them."""
    return {
        "description": doc,
        "type": "object",
        **({"minProperties": least} if least else {}),
        "properties": {name: ref(f"attribute_{name}") for name in names},
        "additionalProperties": False,
    }


def _attribute_schema(spec: AttributeSpec) -> Schema:
    """Return the schema of one attribute: the form of its kind, with description and default."""
    shapes: dict[str, Schema] = {
        "int": ref("integer"),
        "float": ref("number"),
        "bool": ref("boolean"),
        "text": ref("name"),
        # NETLIST 11.2 B1: frontends write `sfpu_op: invalid` for none
        "word": {"enum": [*spec.words, *(("invalid",) if spec.name == "sfpu_op" else ())]},
        "ints": list_of(ref("integer"), 1),
        "broadcasts": {
            "type": "object",
            "patternProperties": {"^input_[0-9]+$": ref("integer")},
            "additionalProperties": False,
            "examples": [{"input_1": 4}],
        },
    }
    form: Schema = {"description": spec.doc, **shapes[spec.kind]}
    if spec.default not in ("", (), -1):
        form["default"] = plain(spec.default)
    return form


def fused_ops() -> Schema:
    """Return the definitions of a fused op and of a scheduled op."""
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
    sub_op = object_of(
        SUB_OP_FIELDS, "a scheduled op; t and ublock_order are those of the op that uses it", allOf=by_type
    )
    sub_op["properties"]["type"]["enum"] = types
    sub_op["properties"]["attributes"] = _attribute_map(legal, SUB_OP_FIELDS["attributes"].doc)
    sub_op["patternProperties"] = {
        "^input_[0-9]+_tms$": {"description": INPUT_FIELDS["input_N_tms"].doc, **ref("scheduled_tms")}
    }
    entry = {"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": ref("scheduled_op")}
    fused_op = object_of(FUSED_FIELDS, "schedules of small ops that run as one op")
    fused_op["properties"]["schedules"] = {
        "description": FUSED_FIELDS["schedules"].doc,
        **list_of(list_of(entry, 1), 1),
    }
    fused_op["properties"]["intermediates"] |= {"examples": [1]}
    del fused_op["additionalProperties"]  # unknown keys are ignored
    return {"fused_op": fused_op, "scheduled_op": sub_op}


def programs() -> Schema:
    """Return the definitions of a program and of an instruction."""
    settings = {
        "description": "{queue: settings} for the queues of the graph",
        "type": ["object", "null"],
        "additionalProperties": object_of(SETTING_FIELDS, "pointers and flags of one queue"),
    }
    execute = object_of(EXECUTE_FIELDS, INSTRUCTIONS["execute"].doc)
    execute["properties"]["queue_settings"] = settings
    names = list_of({"type": "string"})
    forms_of_opcodes = "; ".join(opcode.doc for opcode in OPCODES.values())
    operands: dict[str, Schema] = {
        "names": names,
        "declarations": {"anyOf": [names, {"type": "object", "additionalProperties": ref("integer")}]},
        "varinst": {
            "type": "array",
            "prefixItems": [{"type": "string"}, {"enum": [*OPCODES], "description": forms_of_opcodes}],
            "items": ref("value"),
            "minItems": 2,
            "maxItems": 4,
            "examples": [["$lptr", "incwrap", "$c_microbatch_size", 8]],
        },
        "count": ref("value"),
        "none": {},
        "execute": execute,
    }
    forms = {form.name: {"description": form.doc, **operands[form.operand]} for form in INSTRUCTIONS.values()}
    instruction = {
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "properties": forms,
        "additionalProperties": False,
    }
    return {
        "program": {
            "description": "{name: [instructions]}",
            "type": "object",
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": {"anyOf": [{"type": "null"}, list_of(ref("instruction"))]},
        },
        "instruction": {"anyOf": [{"const": "endloop", "description": INSTRUCTIONS["endloop"].doc}, instruction]},
    }
