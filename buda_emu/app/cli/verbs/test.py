"""`buda-emu test`: runs netlists on generated inputs and says which outputs are within tolerance."""

import argparse
import json
import time
from pathlib import Path
from typing import Any

from buda_emu.app.cli.console import Console
from buda_emu.app.cli.coverage import settle_coverage
from buda_emu.app.cli.findings import open_baseline, settle
from buda_emu.app.cli.output import complain, say, speak_apart, write_json, write_printable, write_text
from buda_emu.app.documents.kinds import documents_among, rule_kind
from buda_emu.emulator.memory.host import default_memory_limit, usable_processors
from buda_emu.report.baselines import BaselineComparison, test_items
from buda_emu.report.machine_readable.junit import RULES, annotations
from buda_emu.report.perf_against import sides
from buda_emu.support.checker.render import as_github, as_sarif
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import Exit, HostError
from buda_emu.support.files import read_whole
from buda_emu.support.screen import note_names
from buda_emu.support.version import __version__
from buda_emu.support.workers.job import Workers
from buda_emu.testing.verify.result import CaseResult, TestRun
from buda_emu.testing.verify.runs.collect import Case, Settings, collect, part, selection
from buda_emu.testing.verify.runs.run_all import run_all
from buda_emu.testing.verify.runs.verdicts import Verdicts, failed_last_time, longest_first, remember

# What the exit code is when no output was wrong, worst first.
_EXIT_CODES = {
    "failed": Exit.DIFFERS, "error": Exit.INTERNAL, "crashed": Exit.INTERNAL, "stopped": Exit.FAILED,
    "timeout": Exit.FAILED, "unsupported": Exit.UNSUPPORTED, "rejected": Exit.REFUSED,
}  # fmt: skip
_HOW = ("paths", "timeout")  # settings that a baseline may be compared with with others


def main(args: argparse.Namespace) -> int:
    """Test and report. Exit code 1 when an output does not hold, see docs/run/test.md for the others."""
    if args.format != "text":
        speak_apart()

    if args.only_documents:
        args.path = documents_among(args.path)
        if not args.path:
            return Exit.OK
    names = collect(args.path)
    note_names(names)
    if args.k:
        selects = selection(args.k)
        names = [name for name in names if selects(name)]
        if not names:
            raise HostError(f"-k {args.k!r} selects none of the netlists")
    here = Path.cwd()
    note = ""
    if args.shard:
        note = f", part {args.shard[0]} of {args.shard[1]} of {len(names)}"
        names = part(names, *args.shard)
    if args.lf:
        failed = failed_last_time(here, names)
        note += f", {len(failed)} of them failed last time" if failed else ", none of them failed last time"
        names = failed or names
    cases = cases_of(args, names)
    baseline = open_baseline(args, "test", {key: value for key, value in _settings(args).items() if key not in _HOW})
    if args.report is not None:
        args.report.mkdir(parents=True, exist_ok=True)  # before the work, so that no work is lost
    workers = max(1, min(args.workers or usable_processors(), len(cases)))
    console = _console(args, cases, workers, note)
    start = time.perf_counter()
    results, interrupted = _run(args, cases, workers, console)
    run = TestRun(tuple(results), __version__, time.perf_counter() - start, _settings(args))
    remember(here, results)
    held = None
    if baseline is not None:
        held = baseline.against({case.netlist: test_items(case) for case in results})
    console.end(run, held.known_files if held is not None else frozenset())
    _write(args, run, held)
    covered = settle_coverage(args, results)
    if args.format != "text":
        _print(args.format, run)
    _complain_of_parameters(args, results)
    if interrupted:
        raise KeyboardInterrupt
    code = exit_code(results) if held is None else settle(held, updated=args.update_baseline)
    return code if code or covered else Exit.DIFFERS


def _console(args: argparse.Namespace, cases: list[Case], workers: int, note: str) -> Console:
    netlists = f"{plural(len(cases), 'netlist')}{note}"
    where = Workers(workers, args.dask).title
    return Console(cases, args, f"buda-emu {__version__}: {netlists}, {where}, {sides(_settings(args))}")


def exit_code(results: list[CaseResult]) -> int:
    """1 on any mismatch, else the worst of what else went wrong, else 0."""
    statuses = {case.status for case in results}
    return next((code for status, code in _EXIT_CODES.items() if status in statuses), Exit.OK)


def cases_of(args: argparse.Namespace, names: list[str]) -> list[Case]:
    """Of these netlists, with what the command line says."""
    workers = 1 if args.dask else max(1, min(args.workers or usable_processors(), len(names)))
    report = args.report is not None
    settings = Settings(
        precision=args.precision,
        expected=args.expected,
        compare=args.compare,
        seed=args.seed,
        arch=args.arch,
        programs=tuple(args.program),
        parameters=tuple(args.param),
        threads=max(1, usable_processors() // workers) if not args.dask else 1,
        memory_limit=_memory_limit(args, workers),
        cache=args.cache,
        per_op=args.per_op or report,
        detail=report,
        perf=args.perf,
        threshold=args.threshold,
        allow_pickle=args.allow_pickle,
        coverage=args.coverage is not None,
    )
    defaults = (str(args.defaults), read_whole(args.defaults, 16)) if args.defaults is not None else None
    found: list[Case] = []
    for name in names:
        reference = None
        if args.reference is not None:
            from buda_emu.emulator.inputs.reference import DirectoryFiles

            reference = DirectoryFiles.for_netlist(args.reference, name, settings.memory_limit)
        found.append(Case(name=name, path=name, text=None, reference=reference, defaults=defaults, settings=settings))
    return found


def _memory_limit(args: argparse.Namespace, workers: int) -> int | None:
    """Of one worker: they share the machine. On a cluster each machine knows what it has."""
    if args.dask:
        return args.memory_limit
    return (args.memory_limit or default_memory_limit()) // workers


def _run(args: argparse.Namespace, cases: list[Case], workers: int, console: Console) -> tuple[list[CaseResult], bool]:
    """The results in order, and whether Ctrl-C cut them short."""
    done: dict[int, CaseResult] = {}
    verdicts = Verdicts(cases, timeout=args.timeout, memory_limit=args.memory_limit) if args.cache else None
    order = longest_first(Path.cwd(), [case.name for case in cases]) if workers > 1 else list(range(len(cases)))
    left = args.maxfail

    def on_known(number: int, result: CaseResult) -> None:
        done[number] = result
        console.result(number, result)

    def on_result(place: int, result: CaseResult) -> None:
        if verdicts is not None:
            verdicts.keep(order[place], result)
        on_known(order[place], result)

    interrupted = False
    try:
        for number in range(len(cases)):
            known = verdicts.find(number) if verdicts is not None else None
            if known is None:
                continue
            on_known(number, known)
            left = left - 1 if left and known.status not in ("passed", "skipped") else left
            if left == 0:
                return [done[number] for number in sorted(done)], False
        order = [number for number in order if number not in done]
        todo = [cases[number] for number in order]
        if todo:
            on = Workers(workers, args.dask)
            run_all(todo, on, timeout=args.timeout, on_result=on_result, maxfail=left)
    except KeyboardInterrupt:
        interrupted = True
    return [done[number] for number in sorted(done)], interrupted


def _settings(args: argparse.Namespace) -> dict[str, Any]:
    """What was asked for, for reports."""
    return {
        "paths": args.path,
        "precision": args.precision,
        "expected": args.expected,
        "compare": args.compare,
        "seed": args.seed,
        "arch": args.arch,
        "reference": str(args.reference) if args.reference is not None else None,
        "defaults": str(args.defaults) if args.defaults is not None else None,
        "programs": args.program,
        "parameters": dict(args.param),
        "timeout": args.timeout,
        "threshold": args.threshold,
    }


def _write(args: argparse.Namespace, run: TestRun, held: BaselineComparison | None) -> None:
    if args.json is not None:
        from buda_emu.report.machine_readable.json_form import as_json

        write_json(args.json, {**as_json(run), **({"baseline": held.as_json()} if held is not None else {})})
    if args.junitxml is not None:
        from buda_emu.report.machine_readable.junit import junit_xml

        write_printable(args.junitxml, junit_xml(run))
    if args.report is not None:
        from buda_emu.report.test_report import write_report

        write_report(run, args.report)
        say(f"report: {args.report / 'report.html'}")


def _print(form: str, run: TestRun) -> None:
    """The results on standard output, for programs."""
    if form == "json":
        from buda_emu.report.machine_readable.json_form import as_json

        write_json("-", as_json(run))
        return
    found = annotations(run)
    if form == "github":
        write_text("-", f"{as_github(found)}\n" if found else "")
        return
    names = {item.rule for item in found}
    rules = {name: RULES[name] if name in RULES else rule_kind(name).rules().rules[name] for name in names}
    write_printable("-", json.dumps(as_sarif(found, rules, run.version), indent=1) + "\n")


def _complain_of_parameters(args: argparse.Namespace, results: list[CaseResult]) -> None:
    """A parameter that no netlist takes is most likely misspelt."""
    for name, _ in args.param:
        ran = [case for case in results if case.programs]
        if ran and not any(name in case.parameters for case in ran):
            complain(f"buda-emu: no tested program takes the parameter {name}")
