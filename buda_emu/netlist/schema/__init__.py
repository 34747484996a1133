"""The JSON schema of netlists, for editors: `python -m buda_emu.netlist.schema > schemas/netlist.schema.json`.

Made from the tables that the reader uses (`fields`, `spec.attributes`, `spec.ops`, `spec.formats`), so that it cannot
say something else. It sees values, not names: what depends on several objects is left to the rules (`buda-emu check`).
It is stricter than the reader about words that the reader drops without effect (`relu_mode: foo`).
"""

import json

from buda_emu.netlist.fields import (
    DEVICE_FIELDS,
    INPUT_FIELDS,
    OWN_SECTION,
    OWN_WORDS,
    PAD_FIELDS,
    SECTIONS,
)
from buda_emu.netlist.schema import harness_config
from buda_emu.netlist.schema.objects import (
    Schema,
    attributes,
    fused_ops,
    graph,
    object_of,
    op,
    programs,
    queue,
    ref,
    scalars,
    tm_lists,
    without,
)

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema() -> Schema:
    """Return the whole schema as plain data."""
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
            "test-config": harness_config.section(),
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
            **harness_config.definitions(),
        },
    }


def _map_of(name: str, doc: str, least: int = 0) -> Schema:
    """Return the schema of a map from any names to objects of the definition `name`, at least `least` of them."""
    limit = {"minProperties": least} if least else {}
    return {"description": doc, "type": "object", **limit, "additionalProperties": ref(name)}


def text() -> str:
    """Return the text of the schema file."""
    return json.dumps(schema(), indent=2) + "\n"
