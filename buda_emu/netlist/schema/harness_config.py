"""The `test-config` section, from the tables of `spec.stimulus` and `spec.comparison`."""

from collections.abc import Iterable
from dataclasses import Field, fields
from typing import Any

from buda_emu.netlist.schema.objects import Schema, list_of, plain, ref
from buda_emu.spec.test_config import STIMULUS_KINDS, Comparison, Stimulus

_CELL = {"type": "integer", "minimum": 1, "maximum": 32}


def section() -> Schema:
    """The section itself; keys that no test looks at are free (NETLIST 5)."""
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


def definitions() -> Schema:
    """What the section refers to."""
    stimulus = {item.name: _field(item) for item in fields(Stimulus)}
    stimulus["type"] = {**stimulus["type"], **_words(STIMULUS_KINDS)}
    comparison = {item.name: _field(item) for item in fields(Comparison)}
    return {
        "stimulus": _object("one stimulus; an override takes nothing from the entry above it", stimulus),
        "comparison": _object("one comparison; an override takes nothing from the entry above it", comparison),
    }


def _with_overrides(name: str, doc: str) -> Schema:
    overrides = {
        "description": "the same fields by queue name, or by a regular expression that matches a whole name",
        "type": "object",
        "minProperties": 1,
        "additionalProperties": ref(name),
    }
    return {"description": doc, "allOf": [ref(name)], "properties": {"overrides": overrides}}


def _object(doc: str, properties: Schema) -> Schema:
    ignored = {"description": "read at the top only, ignored inside an override"}
    return {
        "description": doc,
        "type": "object",
        "properties": {**properties, "overrides": ignored},
        "additionalProperties": False,
    }


def _field(item: "Field[Any]") -> Schema:
    default = item.default
    form: Schema = {"description": item.metadata["doc"]}
    if item.metadata.get("words"):
        form |= _words(item.metadata["words"])
    elif isinstance(default, tuple):
        form |= list_of(_CELL, 2, 2)
    else:
        form |= ref("number" if isinstance(default, float) else "integer" if isinstance(default, int) else "name")
    if default == default and default not in ("", -1):
        form["default"] = plain(default)
    return form


def _words(words: Iterable[str]) -> Schema:
    """Words whose case does not matter."""
    pattern = "|".join("".join(f"[{c.upper()}{c.lower()}]" if c.isalpha() else c for c in word) for word in words)
    return {"type": "string", "pattern": f"^({pattern})$", "examples": list(words)}
