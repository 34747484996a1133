"""`buda-emu perf`: modelled cycles of a netlist, what holds it back, and whether it meets its `performance-check`."""

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from buda_emu.cli.arguments import add_arch, add_param, add_program
from buda_emu.cli.output import Progress, say, write_file, write_json
from buda_emu.errors import HostError

if TYPE_CHECKING:
    from buda_emu.netlist.model import Netlist
    from buda_emu.spec.devices import Device
    from buda_emu.timing.checks import CheckResult
    from buda_emu.timing.result import PerfRun

EXAMPLE = "buda-emu perf netlists/attention.yaml --trace trace.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's own arguments."""
    parser.add_argument("file", metavar="FILE", help="netlist")
    add_program(parser, "model")
    add_param(parser)
    add_arch(parser)
    parser.add_argument(
        "--model", choices=("fitted", "vendor"), default="fitted",
        help="cycles of ops; fitted: on measurements of real chips; vendor: the vendor's formulas",
    )  # fmt: skip
    parser.add_argument(
        "--what-if", default="", metavar="NAME=VALUE,...",
        help="other speeds: clock (MHz), dram_gbps, host_gbps, eth_gbps, noc_bytes, gather_bytes, link_bytes, "
        "epoch_setup (cycles)",
    )  # fmt: skip
    parser.add_argument("--grid", metavar="RxC", help="a chip with so many rows and columns of cores")
    parser.add_argument("--harvest", metavar="ROWS", help="a chip without these physical rows, such as 2,7")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write a line for each epoch, the vendor's columns")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything as JSON")
    parser.add_argument("--trace", type=Path, metavar="FILE", help="write a trace for ui.perfetto.dev")
    parser.add_argument(
        "--report", type=Path, metavar="DIR",
        help="write perf.html, perf.json and the vendor's runtime_table.csv, perf_info_all_epochs.csv, "
        "op_perf_table.json there",
    )  # fmt: skip
    parser.add_argument(
        "--update-expectations", action="store_true",
        help="print the performance-check section with the modelled figures; no file is changed",
    )  # fmt: skip
    parser.add_argument("-q", "--quiet", action="store_true", help="only performance-check")


def main(args: argparse.Namespace) -> int:
    """Model and report. Exit code 1 when a figure of performance-check is missed."""
    from buda_emu import __version__
    from buda_emu.netlist.load import load
    from buda_emu.netlist.performance_check import read_performance_checks
    from buda_emu.netlist.test_config import read_test_config
    from buda_emu.report.perf_console import check_lines, perf_lines
    from buda_emu.timing.checks import evaluate
    from buda_emu.timing.model import model_netlist
    from buda_emu.verify.inputs.entries import chosen_programs, default_parameters, known_parameters

    netlist = load(args.file, arch=args.arch)
    bodies = chosen_programs(netlist, args.program)
    config = read_test_config(netlist.path, netlist.sections)
    parameters = {**default_parameters(bodies, config.args), **known_parameters(bodies, dict(args.param))}
    progress = Progress(args.quiet)
    run = model_netlist(
        netlist, bodies, parameters, what_if=_what_if(args.what_if), model=args.model,
        chip=_chip(netlist.arch_name, args.grid, args.harvest), version=__version__, progress=progress.show,
    )  # fmt: skip
    progress.clear()
    results = evaluate(netlist, run, read_performance_checks(netlist.path, netlist.sections))
    if not args.quiet:
        for line in perf_lines(netlist, run):
            say(line)
        if results:
            say()
    for line in check_lines(results):
        say(line)
    if args.update_expectations:
        from buda_emu.report.perf_console import expectation_lines

        for line in expectation_lines(netlist.sections, results):
            say(line)
    _write(args, netlist, run, results)
    return int(any(not item.passed for item in results))


def _chip(arch: str, grid: str | None, harvest: str | None) -> "Device":
    from buda_emu.spec.devices import device

    found = device(arch)
    try:
        if harvest:
            found = found.harvested([int(row) for row in harvest.split(",")])
        if grid:
            rows, _, columns = grid.partition("x")
            found = found.with_grid(int(rows), int(columns))
    except ValueError:
        raise HostError("--grid is rows x columns such as 8x8, --harvest physical rows such as 2,7") from None
    return found


def _what_if(text: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for item in filter(None, text.split(",")):
        name, _, value = item.partition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            raise HostError(f"--what-if {item}: expected NAME=VALUE") from None
    return found


def _write(args: argparse.Namespace, netlist: "Netlist", run: "PerfRun", results: "list[CheckResult]") -> None:
    if args.csv is not None:
        from buda_emu.report.perf_vendor import perf_info_all_epochs_csv

        write_file(args.csv, lambda stream: stream.write(perf_info_all_epochs_csv(run).encode()))
    if args.json is not None:
        write_json(args.json, _as_json(netlist, run, results))
    if args.report is not None:
        import shlex
        import sys

        _write_report(args.report, netlist, run, results, shlex.join(["buda-emu", *sys.argv[1:]]))
        say(f"report: {args.report / 'perf.html'}")
    if args.trace is not None:
        from buda_emu.report.trace import trace

        write_json(args.trace, trace(run))


def _write_report(
    directory: Path, netlist: "Netlist", run: "PerfRun", results: "list[CheckResult]", command: str
) -> None:
    from buda_emu.report.perf_html import perf_page
    from buda_emu.report.perf_vendor import op_perf_table, perf_info_all_epochs_csv, runtime_table_csv

    directory.mkdir(parents=True, exist_ok=True)
    texts = {
        "perf.html": perf_page(netlist, run, results, command),
        "perf_info_all_epochs.csv": perf_info_all_epochs_csv(run),
        "runtime_table.csv": runtime_table_csv(netlist, run),
    }
    for name, text in texts.items():
        data = text.encode("utf-8", "replace")
        write_file(directory / name, lambda stream, data=data: stream.write(data))
    write_json(directory / "op_perf_table.json", op_perf_table(netlist, run))
    write_json(directory / "perf.json", _as_json(netlist, run, results))


def _as_json(netlist: "Netlist", run: "PerfRun", results: "list[CheckResult]") -> dict[str, Any]:
    from buda_emu.timing.figures import op_figures
    from buda_emu.timing.result import SCHEMA_VERSION

    return {
        "schema_version": SCHEMA_VERSION, "netlist": run.netlist, "arch": run.arch, "clock_mhz": run.clock,
        "version": run.version, "parameters": dict(run.parameters), "what_if": dict(run.what_if),
        "epochs": [
            {
                "program": epoch.program, "graphs": list(epoch.graphs), "chips": list(epoch.chips),
                "runs": epoch.runs, "inputs": epoch.timing.inputs, "cycles_per_input": epoch.timing.cycles_per_input,
                "first_input_cycles": epoch.timing.first_input, "total_cycles": epoch.timing.total,
                "bottleneck": asdict(epoch.bottleneck),
                "ops": [asdict(item) for item in op_figures(netlist, run, epoch)],
                "memory": [asdict(item) for item in epoch.timing.memory],
                "transfers": [asdict(item) for item in epoch.timing.transfers],
                "noc_links": [asdict(item) for item in epoch.timing.links],
                "host_bytes": epoch.host_bytes,
            }
            for epoch in run.epochs
        ],
        "program_cycles": run.programs(), "program_host_seconds": run.host_seconds(),
        "dram": [asdict(item) for item in run.dram],
        "l1_bytes": dict(run.l1), "l1_capacity": run.l1_capacity,
        "performance_check": [{**asdict(item), "passed": item.passed} for item in results],
    }  # fmt: skip
