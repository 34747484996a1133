"""The JSON schema of findings as `render.as_json` and `buda-emu check --format json` give them."""

from typing import Any

from buda_emu.checker.diagnostic import SEVERITIES
from buda_emu.version import RESULT_VERSION

_COUNT = {"type": "integer", "minimum": 0}
_TEXT = {"type": "string"}
_NEEDED = {
    "path": _TEXT, "line": _COUNT, "column": _COUNT, "end_column": _COUNT, "rule": _TEXT,
    "severity": {"enum": list(SEVERITIES)}, "message": _TEXT, "hint": _TEXT,
}  # fmt: skip
_EDIT = {**dict.fromkeys(("line", "column", "end_line", "end_column"), _COUNT), "text": _TEXT}
_FIX = {"title": _TEXT, "safe": {"type": "boolean"}, "edits": {"type": "array", "items": {"$ref": "#/$defs/edit"}}}
_OPTIONAL = {"pointer": _TEXT, "offset": {"type": "integer"}, "element": _TEXT, "fix": {"$ref": "#/$defs/fix"}}


def schema(verb: str = "check", **asked: Any) -> dict[str, Any]:
    """Of one object for all documents that a verb checked; `files` is of the command, as is what it was `asked`."""
    counts = {f"{name}s": _COUNT for name in SEVERITIES}
    file = {"path": _TEXT, "kind": _TEXT, "accepted": {"type": "boolean"}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Findings of buda-emu {verb}",
        "type": "object",
        "properties": {
            "schema_version": {"const": RESULT_VERSION},
            **counts,
            "diagnostics": {"type": "array", "items": {"$ref": "#/$defs/finding"}},
            **asked,
            "files": {
                "type": "array",
                "items": {"type": "object", "properties": {**file, "verdict": _TEXT}, "required": list(file)},
            },
        },
        "required": ["schema_version", *counts, "diagnostics", *asked],
        "$defs": {
            "finding": {"type": "object", "properties": {**_NEEDED, **_OPTIONAL}, "required": list(_NEEDED)},
            "fix": {"type": "object", "properties": _FIX, "required": list(_FIX)},
            "edit": {"type": "object", "properties": _EDIT, "required": list(_EDIT)},
        },
    }
