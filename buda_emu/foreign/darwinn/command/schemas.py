"""Schemas of the JSON that the verbs of `buda-emu darwinn` print."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from buda_emu.foreign.darwinn.command.reading import INSPECTED, Extracted, Linked
from buda_emu.foreign.darwinn.command.running import REPLAY, Output, Relayouted
from buda_emu.foreign.darwinn.verifying import Verification
from buda_emu.report.machine_readable.schema import columns_document, document
from buda_emu.support.checker.render import findings_schema


def _inspect_schema() -> Any:
    """Return the schema of what `darwinn inspect --json` prints."""
    return columns_document(_title("inspect"), INSPECTED)


def _check_schema() -> Any:
    """Return the schema of what `darwinn check --json` prints."""
    return findings_schema("darwinn check --json", runtime={"type": "integer"})


def _run_schema() -> Any:
    """Return the schema of what `darwinn run --json` prints: the replay, which is absent where only outputs are
    computed, and the outputs."""
    return document(_title("run"), REPLAY, optional=[column.key for column in REPLAY.listed], outputs=list[Output])


def _verify_schema() -> Any:
    """Return the schema of what `darwinn verify --json` prints."""
    return document(_title("verify"), Verification, path=str, source=str, matches=bool)


def _title(verb: str) -> str:
    """Return the title of the schema of a verb's JSON."""
    return f"Results of buda-emu darwinn {verb} --json"


SCHEMAS: Final[Mapping[str, Callable[[], Any]]] = {
    "darwinn inspect": _inspect_schema, "darwinn check": _check_schema,
    "darwinn run": _run_schema, "darwinn verify": _verify_schema,
    "darwinn link": lambda: document(_title("link"), Linked),
    "darwinn relayout": lambda: document(_title("relayout"), Relayouted),
    "darwinn extract": lambda: document(_title("extract"), Extracted),
}  # fmt: skip
"""Functions that make the schema of a verb's JSON, by the verb's name."""
