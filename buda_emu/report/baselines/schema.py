"""The JSON schema of a baseline's file."""

from typing import Any

from buda_emu.report.baselines.file import SCHEMA_VERSION
from buda_emu.report.baselines.verdict import MEASURES
from buda_emu.report.machine_readable.schema import versioned


def schema() -> dict[str, Any]:
    """Of a file with sections `check`, `test` and `perf`, none of which must be there."""
    sections = {name: _section(measure.name) for name, measure in MEASURES.items()}
    found = versioned("A baseline of buda-emu check, test and perf", sections, {}, SCHEMA_VERSION)
    return {**found, "required": ["schema_version"], "additionalProperties": False}


def _section(level: str) -> dict[str, Any]:
    words = {"type": "string", "pattern": r"\S"}
    item = {
        "type": "object",
        "properties": {"what": words, level: {"type": "number"}, "reason": words},
        "required": ["what"],
        "additionalProperties": False,
    }
    files = {"type": "object", "additionalProperties": {"type": "array", "items": item}}
    return {
        "type": "object",
        "properties": {"settings": {"type": "object"}, "files": files},
        "required": ["settings", "files"],
        "additionalProperties": False,
    }
