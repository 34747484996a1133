"""`buda-emu schema`: JSON schemas, derived from the tables or classes that make the documents."""

import argparse
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from buda_emu.app.api.report import RunReport
from buda_emu.app.cli.config import settings_schema as config_schema
from buda_emu.app.cli.output import say
from buda_emu.app.cli.verbs.debug import LINE
from buda_emu.app.cli.verbs.info import FILES
from buda_emu.app.cli.verbs.reduce import REDUCED
from buda_emu.app.documents.kinds import KINDS
from buda_emu.emulator.op_errors.numerics_result import Numerics
from buda_emu.netlist.schema import schema as netlist_schema
from buda_emu.performance.advice.result import ADVICE
from buda_emu.report.baselines import schema as baseline_schema
from buda_emu.report.machine_readable.perf_json import schema as perf_schema
from buda_emu.report.machine_readable.schema import columns_document, document, schema_of
from buda_emu.report.machine_readable.schema import schema as test_schema
from buda_emu.report.perf_against import RunComparison
from buda_emu.report.sweep import POINTS
from buda_emu.support.checker.render import findings_schema as check_schema
from buda_emu.testing.injection.result import CAMPAIGN

EXAMPLE = "buda-emu schema netlist > netlist.schema.json"


def _perf_sweep_schema() -> Any:
    """Return the schema of `perf --sweep --json`, whose points have a column for each axis."""
    sweep_schema = document("Results of buda-emu perf --sweep --json", netlist=str, points=[POINTS])
    sweep_schema["$defs"][POINTS.name]["additionalProperties"] = {"type": "string"}  # a column for each axis
    return sweep_schema


DEBUG_SCHEMAS: Final[Mapping[str, Callable[[], Any]]] = {
    "debug": lambda: columns_document("One line of buda-emu debug --json", LINE)
}
"""Verb -> function that returns the schema of its JSON, for the debugger, which prints a line for each command."""

VERB_SCHEMAS: Final[Mapping[str, Callable[[], Any]]] = {
    "info": lambda: document("Results of buda-emu info --json", files=[FILES]),
    "numerics": lambda: document("Results of buda-emu numerics --json", Numerics),
    "advise": lambda: columns_document("Results of buda-emu advise --json", ADVICE),
    "perf --against": lambda: document("Results of buda-emu perf --against --json", RunComparison, worst_percent=float),
    "perf --sweep": _perf_sweep_schema,
    "faults": lambda: columns_document("Results of buda-emu faults --json", CAMPAIGN),
    "reduce": lambda: columns_document("Results of buda-emu reduce --json", REDUCED),
    "baseline": baseline_schema,
    **DEBUG_SCHEMAS,
    **{verb: schema for kind in KINDS for verb, schema in kind.schemas().items()},
}
"""Verb (or `baseline`) -> function that returns the schema of its JSON."""


def _run_schema() -> Any:
    """Return the schema of `run --json`."""
    return schema_of(RunReport, "Results of buda-emu run --json", without=("arrays",))


def build_settings_schema() -> Any:
    """Return the schema of the settings with the options of every verb."""
    from buda_emu.app.cli.main import VERBS, build_parser

    return config_schema(build_parser(*VERBS).below, VERBS)


SCHEMAS: Mapping[str, tuple[str, Callable[[], Any]]] = {
    "netlist": ("the netlist language: for the editor of your choice", netlist_schema),
    "check": ("check --format json", check_schema),
    "run": ("run --json FILE", _run_schema),
    "test": ("test --json FILE, and report.json of test --report DIR", test_schema),
    "perf": ("perf --json FILE", perf_schema),
    "config": ("buda-emu.toml, and [tool.buda-emu] of pyproject.toml", build_settings_schema),
    **{verb.replace(" --", "-").replace(" ", "-"): ("", make_schema) for verb, make_schema in VERB_SCHEMAS.items()},
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the only argument of `schema`, the schema's name."""
    help_text = "; ".join(f"{name}: {meaning}" for name, (meaning, _) in SCHEMAS.items() if meaning)
    others = ", ".join(name for name, (meaning, _) in SCHEMAS.items() if not meaning)
    help_text = f"{help_text}; and what these verbs give as JSON: {others}"
    parser.add_argument("name", choices=tuple(SCHEMAS), metavar="NAME", help=help_text)


def main(args: argparse.Namespace) -> int:
    """Print the schema. Exit code 0."""
    say(json.dumps(SCHEMAS[args.name][1](), indent=2))
    return 0
