"""`buda-emu schema`: JSON schemas, each from the tables or classes that make the documents."""

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from buda_emu.cli.output import say
from buda_emu.cli.schemas import SCHEMAS as OF_VERBS

EXAMPLE = "buda-emu schema netlist > netlist.schema.json"


def _netlist() -> Any:
    from buda_emu.netlist.schema import schema

    return schema()


def _check() -> Any:
    from buda_emu.checker.schema import schema

    return schema()


def _run() -> Any:
    from buda_emu.api.report import RunReport
    from buda_emu.report.machine_readable.schema import schema_of

    return schema_of(RunReport, "Results of buda-emu run --json", without=("arrays",))


def _test() -> Any:
    from buda_emu.report.machine_readable.schema import schema

    return schema()


def _perf() -> Any:
    from buda_emu.report.machine_readable.perf_schema import schema

    return schema()


def config() -> Any:
    """Of the settings, the options of every verb among them."""
    from buda_emu.cli.config import schema
    from buda_emu.cli.main import VERBS, build_parser

    return schema(build_parser(*VERBS).below, VERBS)


SCHEMAS: Mapping[str, tuple[str, Callable[[], Any]]] = {
    "netlist": ("the netlist language: for the editor of your choice", _netlist),
    "check": ("check --format json", _check),
    "run": ("run --json FILE", _run),
    "test": ("test --json FILE, and report.json of test --report DIR", _test),
    "perf": ("perf --json FILE", _perf),
    "config": ("buda-emu.toml, and [tool.buda-emu] of pyproject.toml", config),
    **{verb.replace(" --", "-").replace(" ", "-"): ("", made) for verb, made in OF_VERBS.items()},
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's own arguments."""
    what = "; ".join(f"{name}: {meaning}" for name, (meaning, _) in SCHEMAS.items() if meaning)
    others = ", ".join(name for name, (meaning, _) in SCHEMAS.items() if not meaning)
    what = f"{what}; and what these verbs give as JSON: {others}"
    parser.add_argument("name", choices=tuple(SCHEMAS), metavar="NAME", help=what)


def main(args: argparse.Namespace) -> int:
    """Print the schema. Exit code 0."""
    import json

    say(json.dumps(SCHEMAS[args.name][1](), indent=2))
    return 0
