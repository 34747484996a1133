"""Schemas of the JSON that the verbs of `buda-emu darwinn` print."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from buda_emu.foreign.darwinn.assumptions import Assumptions
from buda_emu.foreign.darwinn.replaying import Event, Eviction
from buda_emu.foreign.darwinn.summary import Summary
from buda_emu.foreign.darwinn.verifying import Verification
from buda_emu.performance.timeline.order import Hazard
from buda_emu.report.machine_readable.schema import Row, Rows, document
from buda_emu.support.checker import Severity
from buda_emu.support.checker.render import findings_schema


def _inspect() -> Any:
    """Return the schema of what `darwinn inspect --json` prints."""
    findings = Rows(rule=str, severity=Severity, where=str, message=str)
    return document(_title("inspect"), path=str, verdict=str, findings=findings, summary=Summary, tree=dict[str, Any])


def _check() -> Any:
    """Return the schema of what `darwinn check --json` prints."""
    return findings_schema("darwinn check --json", runtime={"type": "integer"})


def _run() -> Any:
    """Return the schema of what `darwinn run --json` prints: the replay, which is absent where only outputs are
    computed, and the outputs."""
    fields = {
        "assumptions": Row(Assumptions),
        "packages": list[str],
        "requests": list[int],
        "events": list[Event],
        "evictions": list[Eviction],
        "resets": list[int],
        "tokens": list[int],
        "resident": list[int],
        "bytes": dict[str, int],
        "request_end_ns": list[int],
        "unknown_compute": int,
        "warnings": list[str],
        "hazards": list[Hazard] | None,
    }
    outputs = Rows(dtype=str, shape=list[int], name=str, computed_by=Literal["reference"], path=str | None)
    return document(_title("run"), fields, optional=fields, outputs=outputs)


def _verify() -> Any:
    """Return the schema of what `darwinn verify --json` prints."""
    return document(_title("verify"), Verification, path=str, source=str, matches=bool)


def _title(verb: str) -> str:
    """Return the title of the schema of a verb's JSON."""
    return f"Results of buda-emu darwinn {verb} --json"


SCHEMAS: Final[Mapping[str, Callable[[], Any]]] = {
    "darwinn inspect": _inspect, "darwinn check": _check, "darwinn run": _run, "darwinn verify": _verify,
    "darwinn link": lambda: document(_title("link"), path=str, executable=str, files=list[str]),
    "darwinn relayout": lambda: document(_title("relayout"), path=str, layer=str, dtype=str, shape=list[int]),
    "darwinn extract": lambda: document(_title("extract"), path=str, files=Rows(path=str, bytes=int)),
}  # fmt: skip
"""Functions that make the schema of a verb's JSON, by the verb's name."""
