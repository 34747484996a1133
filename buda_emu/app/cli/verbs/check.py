"""`buda-emu check`: checks documents of any kind against the rules; `gemini check` and the like do it for one kind."""

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from buda_emu.app.cli.findings import open_baseline, report_comparison, select_findings
from buda_emu.app.cli.output import complain, require_open, say, say_data
from buda_emu.app.documents.kinds import NETLIST, Kind, files_below, kind_of, rule_kind
from buda_emu.support.checker.render import as_github, as_json, as_sarif, render_one, summary
from buda_emu.support.checker.result import CheckResult, Options
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import Exit, HostError
from buda_emu.support.screen import current, note_names
from buda_emu.support.version import __version__

if TYPE_CHECKING:
    from buda_emu.report.baselines import BaselineComparison
    from buda_emu.support.checker import Diagnostic


class CheckedFile(NamedTuple):
    """A file that was checked."""

    kind: Kind
    result: CheckResult[Any]


Results = Mapping[str, CheckedFile]


def main(args: argparse.Namespace) -> int:
    """Check every file. Exit code 0 when all are accepted, 2 otherwise; with a baseline 1 for what is new or worse."""
    if args.unsafe_fixes and not (args.fix or args.diff):
        raise HostError("check: --unsafe-fixes goes with --fix or --diff")
    if args.fix or args.diff:
        from buda_emu.app.cli.fixing import fix_files

        code = fix_files(args, write=not args.diff)
        if args.diff:
            return code
    baseline = open_baseline(args, "check", {"strict": args.strict, "arch": args.arch})
    results = check_files(args, None)
    if baseline is None:
        return print_results(args, results)
    from buda_emu.report.baselines import check_items

    comparison = baseline.against({name: check_items(file.result.diagnostics) for name, file in results.items()})
    print_results(args, {name: _select_new(name, file, comparison) for name, file in results.items()})
    return report_comparison(
        comparison, updated=args.update_baseline, print_line=say if args.format == "text" else complain
    )


def check_files(args: argparse.Namespace, only: Kind | None) -> Results:
    """What is found of every file, by its name, as far as it is told."""
    arguments = vars(args)
    if arguments.get("cluster") is not None and not args.strict:
        raise HostError("check: --cluster tells which pipes there are, and pipes are made with --strict")
    options = Options(**{name: arguments[name] for name in Options.__dataclass_fields__ if name in arguments})
    results: dict[str, CheckedFile] = {}
    for name in files_below(args.file, only):
        kind = only or kind_of(name)
        if name == "-" and kind is NETLIST:
            from buda_emu.app.documents.netlists import check_stream

            require_open("check -", "stdin")
            result: CheckResult[Any] = check_stream(sys.stdin.buffer, options)
        else:
            result = kind.check(name, options)
        note_names((name,))
        results[name] = CheckedFile(kind, replace(result, diagnostics=tuple(select_findings(result.diagnostics, args))))
    return results


def print_results(args: argparse.Namespace, results: Results, **fields: Any) -> int:
    """Print the findings, as JSON with what was `fields`; the exit code: 0 when all files are accepted, else 2."""
    text = _WRITERS[args.format](results, fields)
    if text:
        (say_data if args.format == "github" else say)(text)
    return Exit.OK if all(file.result.ok for file in results.values()) else Exit.REFUSED


def _select_new(name: str, file: CheckedFile, comparison: "BaselineComparison") -> CheckedFile:
    """Only the findings that are new or worse."""
    from buda_emu.report.baselines import finding_key

    bad = {change.what for change in (*comparison.new, *comparison.worse) if change.file == name}
    remaining = tuple(diagnostic for diagnostic in file.result.diagnostics if finding_key(diagnostic) in bad)
    return CheckedFile(file.kind, replace(file.result, diagnostics=remaining))


def _all_diagnostics(results: Results) -> "list[Diagnostic]":
    return [diagnostic for file in results.values() for diagnostic in file.result.diagnostics]


def _text(results: Results, _fields: Mapping[str, Any]) -> str:
    diagnostics = _all_diagnostics(results)
    screen = current()
    lines: list[str] = []
    for name, (_, result) in results.items():
        lines += [render_one(diagnostic, screen) for diagnostic in result.diagnostics]
        lines += [f"{name}: {result.verdict}"] if result.verdict else []
    if diagnostics:
        lines.append(f"{summary(diagnostics)}{_count_fixable(diagnostics)}")
    elif len(lines) < len(results):
        lines.append(f"{plural(len(results), 'file')}: {summary(diagnostics)}")
    return "\n".join(lines)


def _count_fixable(diagnostics: "list[Diagnostic]") -> str:
    """What could be fixed, and how."""
    safe, others = (
        sum(diagnostic.fix is not None and diagnostic.fix.safe is kind for diagnostic in diagnostics)
        for kind in (True, False)
    )
    parts = [f"{safe} by --fix"] * bool(safe) + [f"{others} by --fix --unsafe-fixes"] * bool(others)
    return f"; fixed: {', '.join(parts)}" if parts else ""


def _json(results: Results, fields: Mapping[str, Any]) -> str:
    files = [
        {"path": name, "kind": kind.name, "accepted": result.ok}
        | ({"verdict": result.verdict} if result.verdict else {})
        for name, (kind, result) in results.items()
    ]
    return json.dumps({**as_json(_all_diagnostics(results)), **fields, "files": files}, indent=1)


def _github(results: Results, _fields: Mapping[str, Any]) -> str:
    return as_github(_all_diagnostics(results))


def _sarif(results: Results, _fields: Mapping[str, Any]) -> str:
    diagnostics = _all_diagnostics(results)
    rules = {name: rule_kind(name).rules().rules[name] for name in {diagnostic.rule for diagnostic in diagnostics}}
    return json.dumps(as_sarif(diagnostics, rules, __version__), indent=1)


_WRITERS = {"text": _text, "json": _json, "github": _github, "sarif": _sarif}
