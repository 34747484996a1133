"""`buda-emu check`: checks documents of any kind against the rules; `gemini check` and the like do it for one kind."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from buda_emu.app.cli.findings import open_baseline, settle, told
from buda_emu.app.cli.output import complain, require_open, say, say_data
from buda_emu.app.documents.kinds import NETLIST, Kind, documents_among, files_below, kind_of, rule_kind
from buda_emu.support.checker.render import as_github, as_json, as_sarif, concise, render_one, summary
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
    if args.statistics and args.format not in _FOR_PEOPLE:
        raise HostError(f"check: --statistics is a table for people: it does not go with --format {args.format}")
    baseline = open_baseline(args, "check", {"strict": args.strict, "arch": args.arch})
    results = check_files(args, None)
    if baseline is None:
        return tell(args, results)
    from buda_emu.report.baselines import check_items

    held = baseline.against({name: check_items(file.result.diagnostics) for name, file in results.items()})
    tell(args, {name: _without_known(name, file, held) for name, file in results.items()}, none="no new findings")
    return settle(held, updated=args.update_baseline, tell=say if args.format in _FOR_PEOPLE else complain)


def check_files(args: argparse.Namespace, only: Kind | None) -> Results:
    """What is found of every file, by its name, as far as it is told."""
    given = vars(args)
    if given.get("cluster") is not None and not args.strict:
        raise HostError("check: --cluster tells which pipes there are, and pipes are made with --strict")
    options = Options(**{name: given[name] for name in Options.__dataclass_fields__ if name in given})
    results: dict[str, CheckedFile] = {}
    for name in files_below(documents_among(args.file) if given.get("only_documents") else args.file, only):
        kind = only or kind_of(name)
        if name == "-" and kind is NETLIST:
            from buda_emu.app.documents.netlists import check_stream

            require_open("check -", "stdin")
            found: CheckResult[Any] = check_stream(sys.stdin.buffer, options)
        else:
            found = kind.check(name, options)
        note_names((name,))
        results[name] = CheckedFile(kind, replace(found, diagnostics=tuple(told(found.diagnostics, args))))
    return results


def tell(args: argparse.Namespace, results: Results, *, none: str = "", **asked: Any) -> int:
    """Print the findings, as JSON with what was `asked`; the exit code: 0 when all files are accepted, else 2. `none`
    are the words for no findings, where there may be known ones."""
    if args.format not in _FOR_PEOPLE:
        text = _WRITERS[args.format](results, asked)
    elif vars(args).get("statistics"):
        text = "\n".join([*_statistics(_found(results)), *_last_line(results, none)])
    else:
        text = "\n".join([*_lines(results, args.format), *_last_line(results, none)])
    if text:
        (say_data if args.format == "github" else say)(text)
    return Exit.OK if all(file.result.ok for file in results.values()) else Exit.REFUSED


def _without_known(name: str, file: CheckedFile, held: "BaselineComparison") -> CheckedFile:
    """Only the findings that are new or worse."""
    from buda_emu.report.baselines import finding

    bad = {change.what for change in (*held.new, *held.worse) if change.file == name}
    kept = tuple(item for item in file.result.diagnostics if finding(item) in bad)
    return CheckedFile(file.kind, replace(file.result, diagnostics=kept))


def _found(results: Results) -> "list[Diagnostic]":
    return [diagnostic for file in results.values() for diagnostic in file.result.diagnostics]


def _lines(results: Results, form: str) -> Iterator[str]:
    """Yield the findings and verdicts, in one of the formats for people."""
    screen = current()
    for name, (_, result) in results.items():
        for item in result.diagnostics:
            yield concise(item) if form == "concise" else render_one(item, screen)
        if result.verdict:
            yield f"{name}: {result.verdict}"


def _last_line(results: Results, none: str) -> Iterator[str]:
    """Yield the line that sums up: counts, who refuses what is only a warning here, and what could be fixed."""
    found = _found(results)
    if found:
        yield f"{summary(found)}{_refusals(found)}{_fixable(found)}"
    elif any(not file.result.verdict for file in results.values()) or not results:
        yield f"{plural(len(results), 'file')}: {none or summary(found)}"


def _statistics(found: "list[Diagnostic]") -> Iterator[str]:
    """Yield a line for each rule that is broken, the most frequent first: count, rule, severity, what the rule says."""
    counts = Counter((item.rule, item.severity) for item in found)
    width = len(str(max(counts.values(), default=0)))
    for (rule, severity), count in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])):
        yield f"{count:{width}}  {rule}  {severity:<7}  {rule_kind(rule).rules().rules[rule].summary}"


def _refusals(found: "list[Diagnostic]") -> str:
    """Return how many of the warnings are refused elsewhere, and by whom; "" where none is."""
    warnings = [item.rule for item in found if item.severity == "warning"]
    by_whom = Counter(rule_kind(rule).rules().refused_by(rule) for rule in warnings)
    del by_whom[""]
    if not by_whom:
        return ""
    return f"; of the warnings {', '.join(f'{count} refused by {who}' for who, count in by_whom.most_common())}"


def _fixable(found: "list[Diagnostic]") -> str:
    """What could be fixed, and how."""
    safe, others = (sum(item.fix is not None and item.fix.safe is kind for item in found) for kind in (True, False))
    said = [f"{safe} by --fix"] * bool(safe) + [f"{others} by --fix --unsafe-fixes"] * bool(others)
    return f"; fixed: {', '.join(said)}" if said else ""


def _json(results: Results, asked: Mapping[str, Any]) -> str:
    files = [
        {"path": name, "kind": kind.name, "accepted": result.ok}
        | ({"verdict": result.verdict} if result.verdict else {})
        for name, (kind, result) in results.items()
    ]
    return json.dumps({**as_json(_found(results)), **asked, "files": files}, indent=1)


def _github(results: Results, _asked: Mapping[str, Any]) -> str:
    return as_github(_found(results))


def _sarif(results: Results, _asked: Mapping[str, Any]) -> str:
    found = _found(results)
    rules = {name: rule_kind(name).rules().rules[name] for name in {item.rule for item in found}}
    return json.dumps(as_sarif(found, rules, __version__), indent=1)


_FOR_PEOPLE = ("text", "concise")
_WRITERS = {"json": _json, "github": _github, "sarif": _sarif}
