"""`buda-emu check`: check documents of any kind against their rules. `gemini check` and its like do so for one kind."""

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
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
    """The kind of a document and the result of its check."""

    kind: Kind
    result: CheckResult[Any]


Results = Mapping[str, CheckedFile]


def main(args: argparse.Namespace) -> int:
    """Check every file. Exit code 0 if all are accepted, 2 otherwise; with a baseline 1 for what is new or worse."""
    if args.fix or args.diff:
        from buda_emu.app.cli.fixing import fix_files

        code = fix_files(args, write=not args.diff)
        if args.diff:
            return code
    elif args.unsafe_fixes:
        raise HostError("check: --unsafe-fixes goes with --fix or --diff")
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
    """Check every file, as a document of kind `only` or of the kind that its content shows. Return the results by file
    name, with the findings that are reported. Raises HostError."""
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
    """Print the findings, in JSON together with further `fields`. Return the exit code: 0 if all files are accepted,
    else 2."""
    text = _WRITERS[args.format](results, fields)
    if args.format == "github" and text:
        say_data(text)
    elif text:
        say(text)
    if not all(file.result.ok for file in results.values()):
        return Exit.REFUSED
    return Exit.OK


def _select_new(name: str, file: CheckedFile, comparison: "BaselineComparison") -> CheckedFile:
    """Return a checked file with only the findings that are new or worse than in the baseline."""
    from buda_emu.report.baselines import finding_key

    bad = {change.what for change in (*comparison.new, *comparison.worse) if change.file == name}
    remaining = tuple(diagnostic for diagnostic in file.result.diagnostics if finding_key(diagnostic) in bad)
    return CheckedFile(file.kind, replace(file.result, diagnostics=remaining))


def _all_diagnostics(results: Results) -> "list[Diagnostic]":
    """Return the findings of all files."""
    return list(chain.from_iterable(file.result.diagnostics for file in results.values()))


def _text(results: Results, _fields: Mapping[str, Any]) -> str:
    """Return the findings as text for people."""
    diagnostics = _all_diagnostics(results)
    screen = current()
    lines: list[str] = []
    for name, (_, result) in results.items():
        lines += [render_one(diagnostic, screen) for diagnostic in result.diagnostics]
        if result.verdict:
            lines.append(f"{name}: {result.verdict}")
    if diagnostics:
        lines.append(f"{summary(diagnostics)}{_count_fixable(diagnostics)}")
    elif len(lines) < len(results):
        lines.append(f"{plural(len(results), 'file')}: {summary(diagnostics)}")
    return "\n".join(lines)


def _count_fixable(diagnostics: "list[Diagnostic]") -> str:
    """Return how many findings could be fixed, and with which options; "" if none can."""
    fixes = [diagnostic.fix for diagnostic in diagnostics if diagnostic.fix is not None]
    safe = sum(fix.safe for fix in fixes)
    unsafe = len(fixes) - safe
    parts: list[str] = []
    if safe:
        parts.append(f"{safe} by --fix")
    if unsafe:
        parts.append(f"{unsafe} by --fix --unsafe-fixes")
    if not parts:
        return ""
    return f"; fixed: {', '.join(parts)}"


def _json(results: Results, fields: Mapping[str, Any]) -> str:
    """Return the findings as JSON, with the verdict on each file and further fields."""
    files: list[dict[str, Any]] = []
    for name, (kind, result) in results.items():
        entry = {"path": name, "kind": kind.name, "accepted": result.ok}
        if result.verdict:
            entry["verdict"] = result.verdict
        files.append(entry)
    return json.dumps({**as_json(_all_diagnostics(results)), **fields, "files": files}, indent=1)


def _github(results: Results, _fields: Mapping[str, Any]) -> str:
    """Return the findings as annotations of GitHub."""
    return as_github(_all_diagnostics(results))


def _sarif(results: Results, _fields: Mapping[str, Any]) -> str:
    """Return the findings as SARIF with the rules that they break."""
    diagnostics = _all_diagnostics(results)
    rules = {name: rule_kind(name).rules().rules[name] for name in {diagnostic.rule for diagnostic in diagnostics}}
    return json.dumps(as_sarif(diagnostics, rules, __version__), indent=1)


_WRITERS = {"text": _text, "json": _json, "github": _github, "sarif": _sarif}
