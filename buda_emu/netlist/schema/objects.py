"""Queues, graphs, ops, TM lists, attributes and fused ops."""

from collections.abc import Iterable

from buda_emu.netlist.fields import FUSED_FIELDS, GRAPH_FIELDS, INPUT_FIELDS, OP_FIELDS, QUEUE_FIELDS, SUB_OP_FIELDS
from buda_emu.netlist.reader.attributes import MAX_SPLICE_INPUTS
from buda_emu.netlist.reader.tms import BROADCAST_DIMS, SLICES
from buda_emu.netlist.schema.shapes import Schema, list_of, object_of, plain, ref
from buda_emu.spec.attributes import ATTRIBUTES, AttributeSpec
from buda_emu.spec.ops import OP_TYPES


def queue() -> Schema:
    """A queue; `loc` says which list of allocations it needs."""
    located = [
        {"if": {"properties": {"loc": {"const": word}}, "required": ["loc"]}, "then": {"required": [word]}}
        for word in QUEUE_FIELDS["loc"].words
    ]
    return object_of(QUEUE_FIELDS, "a queue or ram", allOf=located)


def graph() -> Schema:
    """A graph; every key but two names an op."""
    graph = object_of(GRAPH_FIELDS, "a graph of ops that run together on one chip; every other key is an op")
    graph["additionalProperties"] = ref("op")
    return graph


def op() -> Schema:
    """An op; its attributes depend on its type, and only ethernet_datacopy needs no place."""
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


def _tm(name: str, doc: str, argument: Schema) -> Schema:
    one = {"type": "object", "required": [name], "properties": {name: argument}, "additionalProperties": False}
    return {"description": doc, **one}


def tm_lists() -> Schema:
    """TM lists of queues, ops and scheduled ops. Any scalar in their place means no TMs."""
    transpose = {"description": "swap rows and columns, tiles and elements", "const": "transpose"}
    broadcast = _tm(
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
    slices = [_tm(word, docs[word], ref("integer")) for word in SLICES]
    tile_broadcast = _tm(
        "tile_broadcast", "repeat the first row (r), column (c) or element (rc) in a tile", {"enum": ["r", "c", "rc"]}
    )
    three = [ref("integer"), ref("integer"), ref("number")]
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
        "anyOf": [{"type": ["null", "string"]}, list_of({"anyOf": [*items]})],
        "examples": [[{"broadcast": {"r": 4}}]],
    }


def _attribute_groups() -> dict[str, list[str]]:
    """Op types by the attributes that they may have; a group is named for its first type."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for op in OP_TYPES:
        legal = tuple(name for name, spec in ATTRIBUTES.items() if spec.types is None or op in spec.types)
        groups.setdefault(legal, []).append(op)
    return {f"{types[0]}_attributes": types for types in groups.values()}


def attributes() -> Schema:
    """Definitions: every attribute once, and the legal ones of each group of op types."""
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
            values = list_of(ref("integer"), 3, 3)
            pattern = f"^input[0-{MAX_SPLICE_INPUTS - 1}]$"
            definitions[name]["patternProperties"] = {pattern: {"description": splice.doc, **values}}
    return definitions


def _attribute_map(names: Iterable[str], doc: str, least: int = 0) -> Schema:
    return {
        "description": doc,
        "type": "object",
        **({"minProperties": least} if least else {}),
        "properties": {name: ref(f"attribute_{name}") for name in names},
        "additionalProperties": False,
    }


def _attribute(spec: AttributeSpec) -> Schema:
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
    """Definitions of a fused op and of a scheduled op."""
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
