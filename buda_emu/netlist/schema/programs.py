"""Programs and their instructions."""

from buda_emu.netlist.fields import EXECUTE_FIELDS, INSTRUCTIONS, SETTING_FIELDS
from buda_emu.netlist.schema.shapes import Schema, list_of, object_of, ref
from buda_emu.spec.varinst import OPCODES


def programs() -> Schema:
    """Definitions of a program and of an instruction."""
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
    one = {"type": "object", "minProperties": 1, "maxProperties": 1, "properties": forms, "additionalProperties": False}
    return {
        "program": {
            "description": "{name: [instructions]}",
            "type": "object",
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": {"anyOf": [{"type": "null"}, list_of(ref("instruction"))]},
        },
        "instruction": {"anyOf": [{"const": "endloop", "description": INSTRUCTIONS["endloop"].doc}, one]},
    }
