"""Schemas of the JSON that `buda-emu gemini` prints."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from buda_emu.foreign.gemini.compare import Comparison, TraceDifferences
from buda_emu.foreign.gemini.execution import Mismatch
from buda_emu.foreign.gemini.figures import RunFigures
from buda_emu.foreign.gemini.statistics import Statistics
from buda_emu.foreign.gemini.time.plan import TransferKind
from buda_emu.foreign.gemini.time.timing import DramSpan, NocSpan, Rates
from buda_emu.report.machine_readable.schema import Rows, document

_LINKS = Rows({"from": list[int], "to": list[int]}, bytes=int)  # cores of the mesh by column and row


def _run() -> Any:
    """Return the schema of what `gemini run --json` prints."""
    return document(
        "Results of buda-emu gemini run --json",
        RunFigures,
        dialect=str,
        mode=Literal["schedule", "assembler"],
        rates=Rates,
        workloads=Rows(core=int, workload_id=int, start=int, end=int),
        dram_items=Rows({**DramSpan.__annotations__, "kind": TransferKind}),
        noc=list[NocSpan],
        links=_LINKS,
        trace=TraceDifferences | None,
    )


def _exec() -> Any:
    """Return the schema of what `gemini exec --json` prints."""
    return document(
        "Results of buda-emu gemini exec --json",
        ok=bool,
        seed=int,
        seeded_weights=list[str],
        digests=dict[str, str],
        mismatches=list[Mismatch],
    )


def _stats() -> Any:
    """Return the schema of what `gemini stats --json` prints."""
    return document("Results of buda-emu gemini stats --json", Statistics, links=_LINKS, energy=dict[str, float] | None)


def _diff() -> Any:
    """Return the schema of what `gemini diff --json` prints."""
    return document("Results of buda-emu gemini diff --json", Comparison)


SCHEMAS: Final[Mapping[str, Callable[[], Any]]] = {
    "gemini run": _run, "gemini exec": _exec, "gemini stats": _stats, "gemini diff": _diff,
}  # fmt: skip
"""The schema of each verb's JSON."""
