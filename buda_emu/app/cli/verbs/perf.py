"""`buda-emu perf`: model the cycles of a netlist, its bottleneck, and whether it meets its `performance-check`."""

import argparse
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

from buda_emu.app.api.diff import compare, structure_of
from buda_emu.app.api.perf import Perf, PerfOptions, parse_grid, parse_rows, perf
from buda_emu.app.api.sweep import AXES, MOST_DETAILED, Point, SweepOptions, parse_axes, sweep
from buda_emu.app.cli.findings import open_baseline, print_findings, report_comparison
from buda_emu.app.cli.kernels import counted_kernels, shown_kernels
from buda_emu.app.cli.output import Progress, say, say_lines, write_json, write_picture, write_printable, write_text
from buda_emu.app.cli.shared_arguments import read_options
from buda_emu.netlist.model import Netlist
from buda_emu.report.baselines import Baseline, BaselineComparison, Measure, perf_items
from buda_emu.report.machine_readable.perf_json import (
    op_perf_table,
    perf_info_all_epochs_csv,
    read_perf_json,
    runtime_table_csv,
)
from buda_emu.report.perf_against import NO_COMPARISON, RunComparison, against, against_csv, against_lines
from buda_emu.report.pictures.epoch_picture import run_picture
from buda_emu.report.sweep import sweep_chart, sweep_table
from buda_emu.report.terminal.perf import Selection, check_lines, expectation_lines, perf_lines, sensitivity_lines
from buda_emu.report.terminal.text import prose
from buda_emu.spec.boards import another_placement
from buda_emu.support.columns import csv_text
from buda_emu.support.errors import Exit, HostError
from buda_emu.support.files import is_model, read_whole
from buda_emu.support.lazy import lazy
from buda_emu.support.output_places import make_folder
from buda_emu.support.version import RESULT_VERSION

if TYPE_CHECKING:
    from buda_emu.report.pages import comparison as comparison_pages
    from buda_emu.report.pages import sweep as sweep_pages
else:  # only a report needs them
    comparison_pages = lazy("buda_emu.report.pages.comparison")
    sweep_pages = lazy("buda_emu.report.pages.sweep")

_SINGLE_RUN_OPTIONS: Final = ("--baseline", "--update-baseline", "--update-expectations", "--trace")
_PRINTING_OPTIONS: Final = ("--top", "--sort", "--op", "--epoch")
_TRACE_ENDINGS: Final = (".json", ".json.gz", ".html")
"""Endings of a trace's name that say its format."""
_TOP: Final = 10
"""Ops of each epoch that are printed unless --top or --op says which."""
_SWEEP_OPTIONS: Final = ("--chart", "--workers", "--dask")
WITHOUT_EFFECT: Final[Mapping[str, tuple[str, ...]]] = {
    "--sweep": (
        *_SINGLE_RUN_OPTIONS,
        *_PRINTING_OPTIONS,
        "--sensitivity",
        "--against",
        "--fail-above",
        "--model",
        "--what-if",
        "--grid",
        "--harvest",
    ),
    "--against": (*_SINGLE_RUN_OPTIONS, *_PRINTING_OPTIONS, *_SWEEP_OPTIONS, "--sensitivity"),
    "": _SWEEP_OPTIONS,
}
"""Options that do nothing with --sweep, with --against, and with neither of them: giving one is refused."""
_INSTEAD: Final[Mapping[str, str]] = {
    "--what-if": "; sweep the speed itself: --sweep clock=1000,1200",
    "--grid": "; sweep it: --sweep 'grid=8x8;4x4'",
    "--harvest": "; sweep it: --sweep 'harvest=2;2,7'",
}


def main(args: argparse.Namespace) -> int:
    """Model and report. Exit code 1 if a figure of performance-check is missed, or --fail-above is exceeded."""
    _refuse_options_without_effect(args)
    if args.sweep:
        return _run_sweep(args)
    baseline = _open_baseline(args)
    modelled = _model_file(args, args.file)
    if not args.quiet:
        print_findings(modelled.netlist.diagnostics, args.file)
    if args.against is not None:
        return _compare_runs(args, modelled)
    _print_figures(args, modelled)
    comparison = None
    items = {args.file: perf_items(modelled.run, modelled.checks)}
    if baseline is not None:
        comparison = baseline.against(items)
    _write_files(args, modelled, comparison)
    if baseline is not None:
        baseline.keep(items)
    if comparison is not None:
        return report_comparison(comparison, updated=args.update_baseline)
    return Exit.OK if modelled.passed else Exit.DIFFERS


def _print_figures(args: argparse.Namespace, modelled: Perf) -> None:
    """Print the figures of a netlist and what performance-check says of them; with --quiet only the latter."""
    results = modelled.checks
    if not args.quiet:
        top = _most_ops(args)
        say_lines(perf_lines(modelled.netlist, modelled.run, Selection(top, args.sort, args.op, args.epoch)))
        if modelled.sensitivity is not None:
            say_lines(sensitivity_lines(modelled.run, modelled.sensitivity, top))
        for step in modelled.on_host:
            say(f"on the host, measured, not in these figures: {step}")
        if results:
            say()
    say_lines(check_lines(results))
    for text in modelled.doubts:
        say(f"DOUBTFUL {shlex.quote(args.file)} - {text}")
    if args.update_expectations:
        say_lines(expectation_lines(modelled.netlist.sections, results))


def _most_ops(args: argparse.Namespace) -> int | None:
    """Return how many ops of each epoch are printed, None for all."""
    if args.top is None and not args.op:
        return _TOP
    return args.top or None


def _refuse_options_without_effect(args: argparse.Namespace) -> None:
    """Raise HostError for an option that the chosen mode would ignore, so that no file stays unwritten without
    notice."""
    if args.sweep:
        mode = "--sweep"
    elif args.against is not None:
        mode = "--against"
    else:
        mode = ""
    for option in WITHOUT_EFFECT[mode]:
        name = option.removeprefix("--").replace("-", "_")
        if getattr(args, name) == args.default_of(name):
            continue
        if mode:
            raise HostError(f"{option} has no effect with {mode}{_INSTEAD.get(option, '')}")
        raise HostError(f"{option} has no effect without --sweep")
    if args.fail_above != args.default_of("fail_above") and not mode and args.baseline is None:
        raise HostError("--fail-above has no effect without --against OLD or --baseline FILE")


def _open_baseline(args: argparse.Namespace) -> Baseline | None:
    """Read the baseline of the command line before the work begins; None without one. An epoch counts as worse if its
    cycles grow by more than --fail-above per cent. Raises HostError."""
    if args.baseline is None and not args.update_baseline:
        return None

    names = ("program", "param", "arch", "board", "model", "what_if", "grid", "harvest")
    measure = Measure("cycles", relative=max(args.fail_above or 0.0, 1e-6) / 100)
    return open_baseline(args, "perf", {name: getattr(args, name) for name in names}, measure)


def _model_file(args: argparse.Namespace, file: str) -> Perf:
    """Model the netlist or image in `file` with the settings of the command line. Raises the errors of `perf`."""
    with Progress(args.quiet) as progress, counted_kernels(progress):
        return perf(
            file,
            what_if=_parse_what_if(args.what_if),
            grid=parse_grid(args.grid) if args.grid else None,
            harvest=parse_rows(args.harvest),
            model=args.model,
            sensitivity=args.sensitivity,
            progress=progress.report,
            **read_options(args, PerfOptions),
        )


def _parse_what_if(text: str) -> dict[str, float]:
    """Return speeds by name from `NAME=VALUE,...`. Raises HostError."""
    speeds: dict[str, float] = {}
    for setting in filter(None, text.split(",")):
        name, _, value = setting.partition("=")
        try:
            speeds[name.strip()] = float(value)
        except ValueError:
            raise HostError(f"--what-if {setting}: expected NAME=NUMBER, such as clock=1200") from None
    return speeds


def _compare_runs(args: argparse.Namespace, modelled: Perf) -> int:
    """Compare with an earlier run: the JSON of one, or a netlist that is modelled now. Print and write the comparison.
    Returns exit code 1 if something is slower by more than --fail-above per cent, else 0."""
    text = read_whole(args.against)
    old_netlist = None
    if text.lstrip()[:1] == b"{":
        before = read_perf_json(text.decode("utf-8", "replace"), str(args.against))
    else:
        old_run = _model_file(args, str(args.against))
        old_netlist = old_run.netlist
        before = old_run.to_json()
    comparison = against(before, modelled.to_json(), str(args.against))
    if not args.quiet:
        say_lines(against_lines(comparison))
    worst = comparison.worst_percent()
    content = {"schema_version": RESULT_VERSION, "worst_percent": worst, **asdict(comparison)}
    if args.json is not None:
        write_json(args.json, content)
    if args.csv is not None:
        write_printable(args.csv, against_csv(comparison))
    if args.report is not None:
        _write_comparison(args, comparison, old_netlist, modelled.netlist)
        write_json(args.report / "comparison.json", content)
        say(f"report: {args.report / 'comparison.html'}")
    if args.fail_above is not None and worst > args.fail_above:
        say(f"slower by {worst:.1f} %, more than {args.fail_above:g} %")
        return Exit.DIFFERS
    return 0


def _write_comparison(
    args: argparse.Namespace, comparison: RunComparison, old_netlist: Netlist | None, new_netlist: Netlist
) -> None:
    """Write the page of two runs, and its table as CSV, into a folder."""
    structure = None
    if old_netlist is not None:
        structure = structure_of(compare(old_netlist, new_netlist, str(args.against), args.file))
    page = comparison_pages.comparison_page(
        comparison_pages.Side(str(args.against), old_netlist),
        comparison_pages.Side(args.file, new_netlist),
        comparison,
        title=f"buda-emu perf: {PurePath(args.file).name} against {PurePath(args.against).name}",
        command=_command_line(),
        structure=structure,
    )
    make_folder(args.report)
    write_text(args.report / "comparison.html", page)
    write_text(args.report / "comparison.csv", against_csv(comparison))


def _command_line() -> str:
    """Return the command, to be pasted into a shell."""
    return shlex.join(["buda-emu", *sys.argv[1:]])


def _run_sweep(args: argparse.Namespace) -> int:
    """Model every point of a sweep, print and write the results. Returns exit code 2 if no point could be modelled,
    else 0."""
    axes = parse_axes(args.sweep)
    with Progress(args.quiet) as progress, shown_kernels(progress):
        start = time.perf_counter()
        progress.show("the first points")
        points = sweep(
            args.file,
            axes,
            detailed=0 if args.report is None else MOST_DETAILED,
            progress=lambda done, count: progress.bar(done, count, time.perf_counter() - start, "points"),
            **read_options(args, SweepOptions),
        )
    rows = [point.row() for point in points]
    names = list(axes)
    if not args.quiet:
        _print_sweep(args, points, names)
    if args.csv is not None:
        write_printable(args.csv, csv_text(rows))
    if args.chart is not None:
        write_printable(args.chart, sweep_chart(rows, names, args.file))
    if args.json is not None:
        write_json(args.json, {"schema_version": RESULT_VERSION, "netlist": args.file, "points": rows})
    if args.report is not None:
        _write_sweep(args, points, names)
    if all(point.problem for point in points):
        return Exit.REFUSED
    return Exit.OK


def _print_sweep(args: argparse.Namespace, points: Sequence[Point], axes: Sequence[str]) -> None:
    """Print the table of a sweep, and a hint where a netlist, whose cores have their places, does not fit a board."""
    say(sweep_table(points, axes, same_work=set(axes) <= set(AXES)))
    if "board" in axes and not is_model(args.file) and any(point.problem for point in points):
        say_lines(prose(another_placement("NAME")))


def _write_sweep(args: argparse.Namespace, points: Sequence[Point], axes: Sequence[str]) -> None:
    """Write the page of a sweep, with each point against the first one, and its table as CSV and JSON, into a
    folder."""
    rows = [point.row() for point in points]
    first = points[0].figures
    compared: list[sweep_pages.SweepPoint] = []
    for number, point in enumerate(points):
        comparison = NO_COMPARISON
        if number and first is not None and point.figures is not None:
            comparison = against(first, point.figures)
        settings = ", ".join(f"{name}={value}" for name, value in point.settings.items())
        compared.append(sweep_pages.SweepPoint(settings, point, comparison))
    chart = sweep_chart(rows, axes, args.file, in_page=True)
    make_folder(args.report)
    page = sweep_pages.sweep_page(PurePath(args.file).name, axes, compared, chart=chart, command=_command_line())
    write_text(args.report / "sweep.html", page)
    write_text(args.report / "sweep.csv", csv_text(rows))
    write_json(args.report / "sweep.json", {"schema_version": RESULT_VERSION, "netlist": args.file, "points": rows})
    say(f"report: {args.report / 'sweep.html'}")


def _write_files(args: argparse.Namespace, modelled: Perf, comparison: BaselineComparison | None) -> None:
    """Write the files that the command line asks for, with `comparison` (with a baseline, or None) in the JSON."""
    if args.csv is not None:
        write_printable(args.csv, perf_info_all_epochs_csv(modelled.run))
    if args.json is not None:
        content = modelled.to_json()
        if comparison is not None:
            content["baseline"] = comparison.as_json()
        write_json(args.json, content)
    if args.report is not None:
        _write_report(args.report, modelled, _command_line())
        say(f"report: {args.report / 'perf.html'}")
    if args.trace is not None:
        write_picture(args.trace, run_picture(modelled.run))
        if not args.trace.name.lower().endswith(_TRACE_ENDINGS):
            say(f"trace: {args.trace} is JSON in the Trace Event Format; a name that ends in .html gives a page")


def _write_report(directory: Path, modelled: Perf, command: str) -> None:
    """Write the page, and the tables under the vendor's names, into a folder."""
    from buda_emu.report.pages.perf import perf_page

    make_folder(directory)
    netlist = modelled.netlist
    run = modelled.run
    write_text(directory / "perf.html", perf_page(netlist, run, modelled.checks, command, modelled.sensitivity))
    write_text(directory / "perf_info_all_epochs.csv", perf_info_all_epochs_csv(run))
    write_text(directory / "runtime_table.csv", runtime_table_csv(netlist, run))
    write_json(directory / "op_perf_table.json", op_perf_table(netlist, run))
    write_json(directory / "perf.json", modelled.to_json())
