"""Schema of the `test-config` section, from the tables of `spec.test_config`."""

from collections.abc import Iterable
from dataclasses import Field, fields
from typing import Any

from buda_emu.netlist.schema.objects import Schema, list_of, plain, ref
from buda_emu.spec.test_config import STIMULUS_KINDS, Comparison, Stimulus

_CELL = {"type": "integer", "minimum": 1, "maximum": 32}


def section() -> Schema:
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


def definitions() -> Schema:
    """Return the definitions to which the section refers: a stimulus and a comparison."""
    stimulus = {spec.name: _field(spec) for spec in fields(Stimulus)}
    stimulus["type"] = {**stimulus["type"], **_words(STIMULUS_KINDS)}
    comparison = {spec.name: _field(spec) for spec in fields(Comparison)}
    return {
        "stimulus": _object("one stimulus; an override takes nothing from the entry above it", stimulus),
        "comparison": _object("one comparison; an override takes nothing from the entry above it", comparison),
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


def _object(doc: str, properties: Schema) -> Schema:
    """Return the schema of a closed object with these properties, in which `overrides` is allowed without effect."""
    ignored = {"description": "read at the top only, ignored inside an override"}
    return {
        "description": doc,
        "type": "object",
        "properties": {**properties, "overrides": ignored},
        "additionalProperties": False,
    }


def _field(spec: "Field[Any]") -> Schema:
    """Return the schema of a field of a stimulus or comparison; the type of its default decides its form."""
    default = spec.default
    form: Schema = {"description": spec.metadata["doc"]}
    if spec.metadata.get("words"):
        form |= _words(spec.metadata["words"])
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


def _words(words: Iterable[str]) -> Schema:
    """Return the schema of words in any case."""
    pattern = "|".join(map(_any_case, words))
    return {"type": "string", "pattern": f"^({pattern})$", "examples": list(words)}


def _any_case(word: str) -> str:
    """Return a regular expression that matches a word in any case."""
    return "".join(f"[{letter.upper()}{letter.lower()}]" if letter.isalpha() else letter for letter in word)
