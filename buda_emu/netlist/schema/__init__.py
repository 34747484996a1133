"""The JSON schema of netlists, for editors: `python -m buda_emu.netlist.schema > schemas/netlist.schema.json`.

Made from the tables that the reader uses (`fields`, `spec.attributes`, `spec.ops`, `spec.formats`), so that it cannot
say something else. It sees values, not names: what depends on several objects is left to the rules (`buda-emu check`).
It is stricter than the reader about words that the reader drops without effect (`relu_mode: foo`).
"""

import json
from collections.abc import Iterable
from dataclasses import Field, fields
from typing import Any

from buda_emu.netlist.fields import (
    DEVICE_FIELDS,
    INPUT_FIELDS,
    OWN_SECTION,
    OWN_WORDS,
    PAD_FIELDS,
    SECTIONS,
)
from buda_emu.netlist.schema.objects import (
    Schema,
    attributes,
    fused_ops,
    graph,
    list_of,
    object_of,
    op,
    plain,
    programs,
    queue,
    ref,
    scalars,
    tm_lists,
    without,
)
from buda_emu.spec.test_config import STIMULUS_KINDS, Comparison, Stimulus

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema() -> Schema:
    """Return the whole JSON schema of netlists as plain data."""
    return {
        "$schema": DIALECT,
        "title": "BUDA netlist",
        "description": "Queues, graphs of ops and programs for a tiled device. Sections are read in document order.",
        "type": "object",
        "required": ["devices", "queues", "graphs", "programs"],
        "properties": {
            "devices": object_of(DEVICE_FIELDS, SECTIONS["devices"]),
            "queues": _map_of("queue", SECTIONS["queues"], least=1),
            "graphs": _map_of("graph", SECTIONS["graphs"], least=1),
            "programs": {"description": SECTIONS["programs"], "type": "array", "minItems": 1, "items": ref("program")},
            "fused_ops": {**_map_of("fused_op", SECTIONS["fused_ops"]), "type": ["object", "null"]},
            "test-config": test_config_section(),
            OWN_SECTION: {
                "description": "what the netlist tells this emulator alone",
                "type": ["object", "null"],
                "properties": {
                    key: {
                        "description": "; ".join(f"{word}: {doc}" for word, doc in words.items()),
                        "enum": list(words),
                    }
                    for key, words in OWN_WORDS.items()
                },
                "additionalProperties": False,
            },
            "performance-check": {
                "description": "expected figures of a performance test; not part of the netlist language",
                "type": ["object", "null"],
            },
        },
        "$defs": {
            **scalars(),
            "queue": queue(),
            "graph": graph(),
            "op": op(),
            "pad": object_of(PAD_FIELDS, INPUT_FIELDS["input_N_pad"].doc),
            "unpad": object_of(without(PAD_FIELDS, "pad_value"), INPUT_FIELDS["input_N_unpad"].doc),
            **tm_lists(),
            **attributes(),
            **fused_ops(),
            **programs(),
            **test_config_definitions(),
        },
    }


def _map_of(name: str, doc: str, least: int = 0) -> Schema:
    """Return the schema of a map from any names to objects of the definition `name`, at least `least` of them."""
    limit = {"minProperties": least} if least else {}
    return {"description": doc, "type": "object", **limit, "additionalProperties": ref(name)}


def text() -> str:
    """Return the text of the schema file, JSON with a line break at its end."""
    return json.dumps(schema(), indent=2) + "\n"


_CELL = {"type": "integer", "minimum": 1, "maximum": 32}


def test_config_section() -> Schema:
    """Return the schema of the section; keys that no test reads are free (NETLIST 5)."""
    return {
        "description": "data and comparison of a test; not part of the netlist language",
        "type": ["object", "null"],
        "properties": {
            "test-args": {
                "description": "values for the parameters of programs, such as microbatch_count",
                "type": ["object", "null"],
                "additionalProperties": ref("name"),
            },
            "io-config": {
                "description": "`inputs` and `outputs`: lists of queue names; the outputs are those that are compared",
                "type": ["object", "null"],
                "additionalProperties": list_of(ref("name")),
            },
            "stimulus-config": _with_overrides("stimulus", "the data of queues that the host fills"),
            "comparison-config": _with_overrides("comparison", "how outputs are compared with expected values"),
        },
    }


def test_config_definitions() -> Schema:
    """Return the definitions to which the section refers: a stimulus and a comparison."""
    stimulus = {spec.name: _field_schema(spec) for spec in fields(Stimulus)}
    stimulus["type"] = {**stimulus["type"], **_words_schema(STIMULUS_KINDS)}
    comparison = {spec.name: _field_schema(spec) for spec in fields(Comparison)}
    return {
        "stimulus": _closed_object("one stimulus; an override takes nothing from the entry above it", stimulus),
        "comparison": _closed_object("one comparison; an override takes nothing from the entry above it", comparison),
    }


def _with_overrides(name: str, doc: str) -> Schema:
    """Return the schema of a section with the fields of the definition `name`, and of its overrides."""
    overrides = {
        "description": "the same fields by queue name, or by a regular expression that matches a whole name",
        "type": "object",
        "minProperties": 1,
        "additionalProperties": ref(name),
    }
    return {"description": doc, "allOf": [ref(name)], "properties": {"overrides": overrides}}


def _closed_object(doc: str, properties: Schema) -> Schema:
    """Return the schema of an object that allows only these properties and `overrides` of any content: the section
    around it checks its own overrides, and inside an override they are ignored."""
    ignored = {"description": "read at the top only, ignored inside an override"}
    return {
        "description": doc,
        "type": "object",
        "properties": {**properties, "overrides": ignored},
        "additionalProperties": False,
    }


def _field_schema(spec: "Field[Any]") -> Schema:
    """Return the schema of a field of a stimulus or comparison; the type of its default decides its form."""
    default = spec.default
    form: Schema = {"description": spec.metadata["doc"]}
    if spec.metadata.get("words"):
        form |= _words_schema(spec.metadata["words"])
    elif isinstance(default, tuple):
        form |= list_of(_CELL, 2, 2)
    elif isinstance(default, float):
        form |= ref("number")
    elif isinstance(default, int):
        form |= ref("integer")
    else:
        form |= ref("name")
    if default == default and default not in ("", -1):
        form["default"] = plain(default)
    return form


def _words_schema(words: Iterable[str]) -> Schema:
    """Return the schema of words in any case."""
    pattern = "|".join(map(_any_case, words))
    return {"type": "string", "pattern": f"^({pattern})$", "examples": list(words)}


def _any_case(word: str) -> str:
    """Return a regular expression that matches a word in any case."""
    return "".join(f"[{letter.upper()}{letter.lower()}]" if letter.isalpha() else letter for letter in word)
