"""JSON schemas of what verbs print with --json, derived from the classes that they write and the fields that they
add."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from buda_emu.app.cli.verbs.debug import LINE
from buda_emu.app.cli.verbs.info import FILES
from buda_emu.app.cli.verbs.reduce import REDUCED
from buda_emu.app.documents.kinds import KINDS
from buda_emu.emulator.op_errors.numerics_result import Numerics
from buda_emu.performance.advice.result import ADVICE
from buda_emu.report.baselines import schema
from buda_emu.report.machine_readable.schema import columns_document, document
from buda_emu.report.perf_against import RunComparison
from buda_emu.report.sweep import POINTS
from buda_emu.testing.injection.result import CAMPAIGN


def _perf_sweep_schema() -> Any:
    """Return the schema of `perf --sweep --json`, whose points have a column for each axis."""
    sweep_schema = document("Results of buda-emu perf --sweep --json", netlist=str, points=[POINTS])
    sweep_schema["$defs"][POINTS.name]["additionalProperties"] = {"type": "string"}  # a column for each axis
    return sweep_schema


DEBUG_SCHEMAS: Final[Mapping[str, Callable[[], Any]]] = {
    "debug": lambda: columns_document("One line of buda-emu debug --json", LINE)
}
"""Verb -> function that returns the schema of its JSON, for the debugger, which prints a line for each command."""

SCHEMAS: Final[Mapping[str, Callable[[], Any]]] = {
    "info": lambda: document("Results of buda-emu info --json", files=[FILES]),
    "numerics": lambda: document("Results of buda-emu numerics --json", Numerics),
    "advise": lambda: columns_document("Results of buda-emu advise --json", ADVICE),
    "perf --against": lambda: document("Results of buda-emu perf --against --json", RunComparison, worst_percent=float),
    "perf --sweep": _perf_sweep_schema,
    "faults": lambda: columns_document("Results of buda-emu faults --json", CAMPAIGN),
    "reduce": lambda: columns_document("Results of buda-emu reduce --json", REDUCED),
    "baseline": schema,
    **DEBUG_SCHEMAS,
    **{verb: schema for kind in KINDS for verb, schema in kind.schemas().items()},
}
"""Verb (or `baseline`) -> function that returns the schema of its JSON."""
