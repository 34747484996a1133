"""`buda-emu test`: run netlists on generated inputs, and report which outputs are within tolerance."""

import argparse
import json
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from buda_emu.app.cli.console import Console
from buda_emu.app.cli.coverage import record_coverage, refuse_other_coverage
from buda_emu.app.cli.findings import complain_of_left_out, open_baseline, report_comparison
from buda_emu.app.cli.output import complain, print_words_to_stderr, say, write_json, write_printable, write_text
from buda_emu.app.cli.shared_arguments import read_options, record_of
from buda_emu.app.documents.kinds import documents_among, rule_kind
from buda_emu.emulator.memory.host import machine_of_worker, usable_processors
from buda_emu.emulator.options import Machine, Memory, gather_parameters, memory_of
from buda_emu.report.baselines import BaselineComparison, test_items
from buda_emu.report.machine_readable.junit import RULES, annotations
from buda_emu.report.perf_against import describe_settings
from buda_emu.support.checker import Rule
from buda_emu.support.checker.render import as_github, as_sarif
from buda_emu.support.checker.suggest import hint_in_parentheses
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import Exit, HostError
from buda_emu.support.files import read_whole
from buda_emu.support.interrupt import Terminated, end_by_signal, termination_as_interrupt
from buda_emu.support.options import SettingsName
from buda_emu.support.output_places import make_folder
from buda_emu.support.screen import note_names
from buda_emu.support.version import __version__
from buda_emu.support.workers.job import Workers
from buda_emu.testing.verify.result import CaseResult, TestRun
from buda_emu.testing.verify.runs.collect import Case, Settings, collect, mark_shared_references, part, selection
from buda_emu.testing.verify.runs.run_all import run_all
from buda_emu.testing.verify.runs.verdicts import Verdicts, failed_last_time, longest_first, remember

# Exit codes by status, the status that decides first.
_EXIT_CODES = {
    "failed": Exit.DIFFERS, "error": Exit.INTERNAL, "crashed": Exit.INTERNAL, "stopped": Exit.FAILED,
    "timeout": Exit.FAILED, "unsupported": Exit.UNSUPPORTED, "rejected": Exit.REFUSED,
}  # fmt: skip
_NOT_COMPARED = ("paths", "timeout")  # settings that may differ between a baseline and a run


def main(args: argparse.Namespace) -> int:
    """Test and report. Exit code 1 if an output does not hold; docs/run/test.md lists the others."""
    if args.format != "text":
        print_words_to_stderr()

    if args.only_documents:
        args.path = documents_among(args.path)
        if not args.path:
            return Exit.OK
    names, note = _select_netlists(args)
    cases = make_cases(args, names)
    baseline = open_baseline(args, "test", _compared_settings(args))
    refuse_other_coverage(args)
    if args.report is not None:
        make_folder(args.report)  # before the run, so that no result is lost
    workers = _worker_count(args, len(cases))
    console = _make_console(args, cases, workers, note)
    start = time.perf_counter()
    results, ended_by = _run_cases(args, cases, workers, console)
    run = TestRun(
        cases=tuple(results),
        version=__version__,
        seconds=time.perf_counter() - start,
        settings=_report_settings(args),
        not_run=len(cases) - len(results),
    )
    remember(Path.cwd(), results)
    comparison = None
    known_files: frozenset[str] = frozenset()
    items = {case.netlist: test_items(case) for case in results}
    if baseline is not None:
        comparison = baseline.against(items)
        known_files = comparison.known_files
    console.end(run, known_files)
    _write_files(args, run, comparison, known_files)
    if args.format != "text":
        _print_for_programs(args.format, run, known_files)
    if baseline is not None:
        baseline.keep(items)  # after all other outputs, which a baseline that cannot be written does not lose
    is_covered = record_coverage(args, results)
    is_all_used = _complain_of_unused(args, results)
    _end_if_interrupted(ended_by)
    code = _report_verdict(args, results, comparison)
    if code == Exit.OK and not is_all_used:
        return Exit.REFUSED
    if code == Exit.OK and not is_covered:
        return Exit.DIFFERS
    return code


def _compared_settings(args: argparse.Namespace) -> dict[str, Any]:
    """Return the settings that must be the same in a baseline and in the run that is compared with it."""
    return {key: value for key, value in _report_settings(args).items() if key not in _NOT_COMPARED}


def _complain_of_unused(args: argparse.Namespace, results: list[CaseResult]) -> bool:
    """Print to standard error each parameter that no tested program takes, and, if all netlists were skipped, why.
    Return False if there is such a parameter of the command line or nothing was tested, which makes the exit code 2;
    True otherwise, and always for a shard, since another shard may have what this one lacks."""
    unused_settings, unmet = _unused_parameters(args, results)
    unmet += _unmet_choices(args, results)
    for text in (*unused_settings, *unmet):
        complain(f"buda-emu: {text}")
    return not unmet or args.shard is not None


def _end_if_interrupted(ended_by: int) -> None:
    """End this process by the signal that cut the run short; return if `ended_by` is 0."""
    if ended_by == signal.SIGTERM:
        complain("buda-emu: terminated")
    if ended_by:
        end_by_signal(ended_by)


def _report_verdict(args: argparse.Namespace, results: list[CaseResult], comparison: BaselineComparison | None) -> int:
    """Return the exit code of the results; with a baseline, print the comparison with it and return the comparison's
    exit code."""
    if comparison is None:
        return exit_code(results)
    return report_comparison(comparison, updated=args.update_baseline)


def _select_netlists(args: argparse.Namespace) -> tuple[list[str], str]:
    """Return the paths of the netlists that the options select, and text on -k, --shard and --lf for the heading.
    Raises HostError if there are none."""
    names = collect(args.path, complain_of_left_out)
    note_names(names)
    if args.k:
        selects = selection(args.k)
        names = [name for name in names if selects(name)]
        if not names:
            raise HostError(f"-k {args.k!r} selects none of the netlists")
    note = ""
    if args.shard:
        note = f" of {len(names)}, part {args.shard[0]} of {args.shard[1]}"
        names = part(names, *args.shard)
    if args.lf:
        failed = failed_last_time(Path.cwd(), names)
        note += f", {len(failed) or 'none'} of them failed last time"
        names = failed or names
    return names, note


def _make_console(args: argparse.Namespace, cases: list[Case], workers: int, note: str) -> Console:
    """Print the heading that states what is tested and how, and return the console that shows the results."""
    netlists = f"{plural(len(cases), 'netlist')}{note}"
    workers_title = Workers(workers, args.dask).title
    settings = describe_settings(_report_settings(args))
    return Console(cases, args, f"buda-emu {__version__}: {netlists}, {workers_title}, {settings}")


def exit_code(results: list[CaseResult]) -> int:
    """Return the exit code of a test: 1 if an output differs, else that of the status that comes first in
    `_EXIT_CODES`, 0 if all passed or were skipped."""
    statuses = {case.status for case in results}
    return next((code for status, code in _EXIT_CODES.items() if status in statuses), Exit.OK)


def make_cases(args: argparse.Namespace, names: list[str]) -> list[Case]:
    """Make a case for each netlist, with the settings of the command line and the tensors of --reference."""
    machine = Machine(threads=1, **read_options(args, Memory))
    if not args.dask:  # whose machines know their own memory
        machine = machine_of_worker(read_options(args, Memory), _worker_count(args, len(names)))
    report = args.report is not None
    settings = record_of(
        Settings,
        args,
        programs=tuple(args.program),
        parameters=tuple(gather_parameters(args.param).items()),
        machine=machine,
        per_op=args.per_op or report,
        detail=report,
        coverage=args.coverage is not None,
    )
    defaults = None
    if args.defaults is not None:
        defaults = (str(args.defaults), read_whole(args.defaults, 16))
    cases: list[Case] = []
    for name in names:
        reference = None
        if args.reference is not None:
            from buda_emu.emulator.inputs.reference import DirectoryFiles

            reference = DirectoryFiles.for_netlist(args.reference, name, memory_of(machine))
        cases.append(Case(name=name, path=name, reference=reference, defaults=defaults, settings=settings))
    return mark_shared_references(cases)


def _worker_count(args: argparse.Namespace, cases: int) -> int:
    """Return the number of worker processes, no more than there are cases."""
    return max(1, min(args.workers or usable_processors(), cases))


def _run_cases(
    args: argparse.Namespace, cases: list[Case], workers: int, console: Console
) -> tuple[list[CaseResult], int]:
    """Run the cases that have no stored verdict. Return the results so far in the order of the cases, and the signal
    that cut the run short (SIGINT for Ctrl-C), 0 if none did."""
    suite = _Suite(args, cases, console)
    ended_by = 0
    try:
        with termination_as_interrupt():
            suite.take_stored_results()
            if suite.failures_left != 0:
                suite.run_others(workers)
    except Terminated:
        ended_by = signal.SIGTERM
    except KeyboardInterrupt:
        ended_by = signal.SIGINT
    return suite.results(), ended_by


class _Suite:
    """The cases of a run, of which some have a stored verdict and the others are run."""

    def __init__(self, args: argparse.Namespace, cases: list[Case], console: Console) -> None:
        self._args = args
        self._cases = cases
        self._make_console = console
        self._results: dict[int, CaseResult] = {}
        self._verdicts = None
        if args.cache:
            self._verdicts = Verdicts(cases, timeout=args.timeout, most_bytes=memory_of(read_options(args, Memory)))
        self.failures_left: int | None = args.maxfail  # None: no limit

    def results(self) -> list[CaseResult]:
        """Return the results so far, in the order of the cases."""
        return [self._results[number] for number in sorted(self._results)]

    def take_stored_results(self) -> None:
        """Take the results of cases that have not changed since an earlier run tested them, until --maxfail is
        reached."""
        if self._verdicts is None:
            return
        for number in range(len(self._cases)):
            result = self._verdicts.find(number)
            if result is None:
                continue
            self._add(number, result)
            if self.failures_left and result.status not in ("passed", "skipped"):
                self.failures_left -= 1
            if self.failures_left == 0:
                return

    def run_others(self, workers: int) -> None:
        """Run the cases without a result; several workers begin with those that took longest last time."""
        order = list(range(len(self._cases)))
        if workers > 1:
            order = longest_first(Path.cwd(), [case.name for case in self._cases])
        order = [number for number in order if number not in self._results]

        def on_result(place: int, result: CaseResult) -> None:
            """Store the verdict on a netlist, if verdicts are stored, and add it to the suite's results."""
            if self._verdicts is not None:
                self._verdicts.keep(order[place], result)
            self._add(order[place], result)

        if order:
            run_all(
                [self._cases[number] for number in order],
                Workers(workers, self._args.dask),
                timeout=self._args.timeout,
                on_result=on_result,
                maxfail=self.failures_left,
                on_kernel=self._make_console.kernel,
            )

    def _add(self, number: int, result: CaseResult) -> None:
        """Store a result and show it."""
        self._results[number] = result
        self._make_console.result(number, result)


def _report_settings(args: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of the command line for reports."""
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
        "parameters": gather_parameters(args.param),
        "timeout": args.timeout,
        "threshold": args.threshold,
    }


def _write_files(
    args: argparse.Namespace, run: TestRun, comparison: BaselineComparison | None, known_netlists: frozenset[str]
) -> None:
    """Write the files that the command line asks for. `comparison` is that with a baseline; failures of
    `known_netlists`, which the baseline expects, are left out of JUnit's."""
    if args.json is not None:
        from buda_emu.report.machine_readable.json_form import as_json

        content = as_json(run)
        if comparison is not None:
            content["baseline"] = comparison.as_json()
        write_json(args.json, content)
    if args.junitxml is not None:
        from buda_emu.report.machine_readable.junit import junit_xml

        write_printable(args.junitxml, junit_xml(run, known_netlists))
    if args.report is not None:
        from buda_emu.report.test_report import write_report

        write_report(run, args.report)
        say(f"report: {args.report / 'report.html'}")


def _print_for_programs(form: str, run: TestRun, known_netlists: frozenset[str]) -> None:
    """Print the results to standard output as JSON, annotations or SARIF. Annotations and SARIF leave out
    `known_netlists`, which fail as the baseline expects."""
    if form == "json":
        from buda_emu.report.machine_readable.json_form import as_json

        write_json("-", as_json(run))
        return
    findings = annotations(run, known_netlists)
    if form == "github":
        write_text("-", f"{as_github(findings)}\n" if findings else "")
        return
    rules: dict[str, Rule] = {}
    for name in {finding.rule for finding in findings}:
        rules[name] = RULES.get(name) or rule_kind(name).rules().rules[name]
    write_printable("-", json.dumps(as_sarif(findings, rules, run.version), indent=1) + "\n")


def _unused_parameters(args: argparse.Namespace, results: list[CaseResult]) -> tuple[list[str], list[str]]:
    """Return a text for each parameter that no tested program takes, and which is most likely misspelt: those of the
    settings file, then those of the command line. Both are empty if no program ran."""
    of_settings: list[str] = []
    of_command_line: list[str] = []
    ran = [case for case in results if case.programs]
    parameter_names = sorted({parameter for case in ran for parameter in case.parameters})
    for name in gather_parameters(args.param):
        if not ran or name in parameter_names:
            continue
        text = f"no tested program takes the parameter {name}{hint_in_parentheses(name, parameter_names)}"
        if isinstance(name, SettingsName):
            of_settings.append(f"{text}; it is of the settings, `param` of [test]")
        else:
            of_command_line.append(text)
    return of_settings, of_command_line


def _unmet_choices(args: argparse.Namespace, results: list[CaseResult]) -> Iterator[str]:
    """Yield a text if all netlists were skipped: the most frequent reason."""
    reasons = Counter(case.message for case in results)
    if results and not args.only_documents and all(case.status == "skipped" for case in results):
        yield f"nothing was tested: {reasons.most_common(1)[0][0]}"
