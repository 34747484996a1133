"""`buda-emu check`: check documents of any kind against their rules. `gemini check` and its like do so for one kind."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from buda_emu.app.cli.findings import complain_of_left_out, open_baseline, report_comparison, select_findings
from buda_emu.app.cli.output import complain, require_open, say, say_data
from buda_emu.app.documents.kinds import NETLIST, Kind, documents_among, files_below, kind_of, rule_kind
from buda_emu.support.checker.render import as_github, as_json, as_sarif, concise, render_one, summary
from buda_emu.support.checker.result import CheckResult, Options
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import Exit, HostError
from buda_emu.support.screen import current, note_names
from buda_emu.support.version import __version__

if TYPE_CHECKING:
    from buda_emu.report.baselines import Baseline, BaselineComparison
    from buda_emu.support.checker import Diagnostic


class CheckedFile(NamedTuple):
    """The kind of a document and the result of its check."""

    kind: Kind
    result: CheckResult[Any]


Results = Mapping[str, CheckedFile]


def main(args: argparse.Namespace) -> int:
    """Check every file. Exit code 0 if all are accepted, 2 otherwise; with a baseline 1 for what is new or worse."""
    if args.statistics and args.format not in _FOR_PEOPLE:
        raise HostError(f"check: --statistics is a table for people: it does not go with --format {args.format}")
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
    return _print_against(args, baseline, results)


def _print_against(args: argparse.Namespace, baseline: "Baseline", results: Results) -> int:
    """Print the findings that a baseline does not have, and what else changed; update the baseline if --update-baseline
    asks for it; return the exit code."""
    from buda_emu.report.baselines import check_items

    items = {name: check_items(file.result.diagnostics) for name, file in results.items()}
    comparison = baseline.against(items)
    new_results = {name: _select_new(name, file, comparison) for name, file in results.items()}
    print_results(args, new_results, no_findings="no new findings")
    baseline.keep(items)
    print_line = say if args.format in _FOR_PEOPLE else complain
    return report_comparison(comparison, updated=args.update_baseline, print_line=print_line)


def check_files(args: argparse.Namespace, only: Kind | None) -> Results:
    """Check every file, as a document of kind `only` or of the kind that its content shows. Return the results by file
    name, with only the findings that settings and options select. Raises HostError for options that exclude each
    other."""
    arguments = vars(args)
    if arguments.get("cluster") is not None and not args.strict:
        raise HostError("check: --cluster tells which pipes there are, and pipes are made with --strict")
    options = Options(**{name: arguments[name] for name in Options.__dataclass_fields__ if name in arguments})
    results: dict[str, CheckedFile] = {}
    for name in files_below(_paths_to_check(args), only, complain_of_left_out):
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


def _paths_to_check(args: argparse.Namespace) -> list[str]:
    """Return the files and folders of the command line, with --only-documents without files of no known kind."""
    if vars(args).get("only_documents"):
        return documents_among(args.file)
    return args.file


def print_results(args: argparse.Namespace, results: Results, *, no_findings: str = "", **fields: Any) -> int:
    """Print the results in the format of --format, for JSON together with further `fields`. Return the exit code: 0 if
    all files are accepted, else 2. `no_findings` is the text for no findings, where others may be left out."""
    if args.format not in _FOR_PEOPLE:
        text = _WRITERS[args.format](results, fields)
    elif vars(args).get("statistics"):
        text = "\n".join([*_statistics_lines(_all_diagnostics(results)), *_summary_line(results, no_findings)])
    else:
        text = "\n".join([*_finding_lines(results, args.format), *_summary_line(results, no_findings)])
    if args.format == "github" and text:
        say_data(text)
    elif text:
        say(text)
    if not all(file.result.ok for file in results.values()):
        return Exit.REFUSED
    return Exit.OK


def _select_new(name: str, file: CheckedFile, comparison: "BaselineComparison") -> CheckedFile:
    """Return the file `name` with only those findings that are new or worse than in the baseline."""
    from buda_emu.report.baselines import finding_key

    bad = {change.what for change in (*comparison.new, *comparison.worse) if change.file == name}
    remaining = tuple(diagnostic for diagnostic in file.result.diagnostics if finding_key(diagnostic) in bad)
    return CheckedFile(file.kind, replace(file.result, diagnostics=remaining))


def _all_diagnostics(results: Results) -> "list[Diagnostic]":
    """Return the findings of all files."""
    return list(chain.from_iterable(file.result.diagnostics for file in results.values()))


def _finding_lines(results: Results, form: str) -> Iterator[str]:
    """Yield the findings and verdicts as lines, in the format "text" or "concise"."""
    screen = current()
    for name, (_, result) in results.items():
        for diagnostic in result.diagnostics:
            if form == "concise":
                yield concise(diagnostic)
            else:
                yield render_one(diagnostic, screen)
        if result.verdict:
            yield f"{name}: {result.verdict}"


def _summary_line(results: Results, no_findings: str) -> Iterator[str]:
    """Yield the last line: how many findings, how many of them others refuse, and how many could be fixed; nothing if
    there are no findings and each file has a verdict."""
    diagnostics = _all_diagnostics(results)
    if diagnostics:
        yield f"{summary(diagnostics)}{_describe_refusals(diagnostics)}{_describe_fixes(diagnostics)}"
    elif any(not file.result.verdict for file in results.values()) or not results:
        yield f"{plural(len(results), 'file')}: {no_findings or summary(diagnostics)}"


def _statistics_lines(diagnostics: "list[Diagnostic]") -> Iterator[str]:
    """Yield a line for each rule that is broken, the most frequent first: count, rule, severity, what the rule says."""
    counts = Counter((diagnostic.rule, diagnostic.severity) for diagnostic in diagnostics)
    width = len(str(max(counts.values(), default=0)))
    for (rule, severity), count in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])):
        yield f"{count:{width}}  {rule}  {severity:<7}  {rule_kind(rule).rules().rules[rule].summary}"


def _describe_refusals(diagnostics: "list[Diagnostic]") -> str:
    """Return text on how many of the warnings make a tool of the vendor refuse the document, and which tool; "" if none
    does."""
    warnings = [diagnostic.rule for diagnostic in diagnostics if diagnostic.severity == "warning"]
    by_whom = Counter(rule_kind(rule).rules().refused_by(rule) for rule in warnings)
    del by_whom[""]
    if not by_whom:
        return ""
    return f"; of the warnings {', '.join(f'{count} refused by {name}' for name, count in by_whom.most_common())}"


def _describe_fixes(diagnostics: "list[Diagnostic]") -> str:
    """Return text on how many findings could be fixed, and with which options; "" if none can."""
    fixes = [diagnostic.fix for diagnostic in diagnostics if diagnostic.fix is not None]
    safe = sum(fix.safe for fix in fixes)
    unsafe = len(fixes) - safe
    parts: list[str] = []
    if safe:
        parts.append(f"{safe} with --fix")
    if unsafe:
        parts.append(f"{unsafe} with --fix --unsafe-fixes")
    if not parts:
        return ""
    return f"; fixable: {', '.join(parts)}"


def _json_text(results: Results, fields: Mapping[str, Any]) -> str:
    """Return the findings as JSON, with the verdict on each file and further fields."""
    files: list[dict[str, Any]] = []
    for name, (kind, result) in results.items():
        entry = {"path": name, "kind": kind.name, "accepted": result.ok}
        if result.verdict:
            entry["verdict"] = result.verdict
        files.append(entry)
    return json.dumps({**as_json(_all_diagnostics(results)), **fields, "files": files}, indent=1)


def _github_text(results: Results, _fields: Mapping[str, Any]) -> str:
    """Return the findings as annotations of GitHub, a line each."""
    return as_github(_all_diagnostics(results))


def _sarif_text(results: Results, _fields: Mapping[str, Any]) -> str:
    """Return the findings as SARIF (JSON of static analysis), with the rules that they break."""
    diagnostics = _all_diagnostics(results)
    rules = {name: rule_kind(name).rules().rules[name] for name in {diagnostic.rule for diagnostic in diagnostics}}
    return json.dumps(as_sarif(diagnostics, rules, __version__), indent=1)


_FOR_PEOPLE = ("text", "concise")
_WRITERS = {"json": _json_text, "github": _github_text, "sarif": _sarif_text}
